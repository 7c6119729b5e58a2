"""LocalScore: what `localscore -o json` or `-o csv` prints, and a result as localscore.ai's API gives it.

Every test is a prompt and what is generated after it, timed apart; time to first token repeats the prompt's and power is of
both together: neither is read. Source: Mozilla-Ocho/llamafile localscore/, `test::get_fields` and `json_printer`;
cjpais/LocalScore src/pages/api/result/[id].ts.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plas_board.calibrate.figure import (
    UNCOUNTED,
    Cells,
    Document,
    Figure,
    Unusable,
    cells_of,
    named,
    number,
    part,
    positive,
    precision,
    refuse_scatter,
    stated,
    whole,
)
from plas_board.calibrate.llama_bench import described

NAME = "LocalScore"
TEST = {"n_prompt", "n_gen", "prompt_tps", "gen_tps"}


def recognises(document: Document) -> bool:
    """A run with its tests, or columns of tests."""
    return any(_tests(run) for run in document.objects) or set(document.header) >= TEST


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """Prefill and decoding of every test."""
    for document in documents:
        runs = document.objects or [{"results": document.table}]
        for run in runs:
            for test in _tests(run):
                yield from (_figure(run, test, phase) for phase in ("prompt", "gen"))


def _tests(run: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    tests = run.get("results")
    return [test for test in tests if isinstance(test, dict) and test.keys() >= TEST] if isinstance(tests, list) else []


def _figure(run: Mapping[str, Any], test: Mapping[str, Any], phase: str) -> Figure:
    model, runtime, accelerator = (
        part(run, "model"),
        part(run, "runtime_info", "runtime"),
        part(run, "accelerator_info", "accelerator"),
    )
    kind, file_type = described(str(test.get("model_type") or ""))
    name = test.get("model_name") or model.get("name")
    found: dict[str, Any] = {"names": named(name, test.get("model_filename"), kind), "family": kind.partition(" ")[0]}
    try:
        found["parameters"] = stated(test.get("model_n_params") or model.get("params"), "parameters", UNCOUNTED)
        found["size"] = stated(test.get("model_size"), "model_size")
        found["device"] = next(iter(named(accelerator.get("name"))), "")
        quant = file_type or str(test.get("model_quant_str") or model.get("quant") or "")
        cells = {"engine": _engine(runtime), "precision": precision(quant), **_measured(test, phase)}
        return Figure(**found, cells=cells)
    except Unusable as error:
        return Figure(**found, fault=str(error))


def _engine(runtime: Mapping[str, Any]) -> str:
    lines = [
        runtime.get("name") or "llamafile",
        runtime.get("version"),
        runtime.get("commit") or runtime.get("commit_hash"),
    ]
    return next(iter(named(" ".join(str(part) for part in lines if part) + ", LocalScore")))


def _measured(test: Mapping[str, Any], phase: str) -> Cells:
    prompt, output = whole(test["n_prompt"], "n_prompt"), whole(test["n_gen"], "n_gen")
    rate = positive(test[f"{phase}_tps"], f"{phase}_tps")
    refuse_scatter(number(test.get(f"{phase}_tps_stddev") or 0, f"{phase}_tps_stddev"), rate)
    if phase == "prompt":
        return cells_of("prefill_tok_s", rate, prompt)
    return cells_of("decode_tok_s", rate, prompt, output)
