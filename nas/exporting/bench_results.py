"""What an export's bench scripts wrote, as the measured rows that `calibrate` reads."""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from nas.errors import UsageError
from nas.exporting.launch_list import FILE
from nas.exporting.manifest import read_manifest
from nas.exporting.model import Workload
from nas.exporting.writing import folder_names
from nas.files.tables import csv_text
from nas.measuring.chosen import columns
from nas.record.candidates import read_candidates
from objectives.calibrating.formats import FORMATS

Row = dict[str, Any]
#: llama-bench's names of file types that end otherwise than ours.
LLAMA_TYPES = {"all f32": "fp32", "q4_k - medium": "q4_k_m"}


def bench_lines(folder: Path) -> list[str]:
    """Lines of a measured CSV from the results in an export.

    Raises:
        UsageError: no export, or none of its benches has run.
    """
    workload = read_manifest(folder).workload
    architectures, ids = read_candidates(folder / FILE)
    rows: list[Row] = []
    for i, (name, place) in enumerate(zip(ids, folder_names(ids), strict=True)):
        known = {"model": name, **columns(architectures[i : i + 1])}
        rows += [known | row for row in (*_vllm(folder / place, workload), *_llama_bench(folder / place))]
    if not rows:
        raise UsageError(
            f"{folder}: expected results of bench.sh, got none; run vllm/bench.sh or llama-bench/bench.sh in the candidates' folders"
        )
    names = list(dict.fromkeys(name for row in rows for name in row))
    return csv_text({name: [row.get(name, "") for row in rows] for name in names}).splitlines()


def _vllm(place: Path, workload: Workload) -> Iterator[Row]:
    """T(1) is the prefill, (T(n + 1) - T(1)) / n a decode step: medians of `vllm bench latency`'s runs."""
    steps = workload.output_tokens
    files = [place / "vllm" / f"latency-{tokens}.json" for tokens in (1, steps + 1)]
    if not any(file.exists() for file in files):
        return
    common = {"engine": "vLLM", "precision": "bf16", "batch": workload.batch, "prompt_len": workload.input_tokens}
    try:
        one, all_ = (median(float(s) for s in _content(file)["latencies"]) * 1e3 for file in files)
    except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError, OSError) as error:
        yield common | {"state": f"garbled result of vllm ({type(error).__name__})"}
        return
    yield common | {"metric": "prefill_ms", "value": one, "gen_len": 0}
    yield common | {"metric": "tpot_ms", "value": (all_ - one) / steps, "gen_len": steps}


def _llama_bench(place: Path) -> Iterator[Row]:
    """Every test of llama-bench's JSON: prompts alone are prefills, generation alone decodes."""
    file = place / "llama-bench" / "result.json"
    if not file.exists():
        return
    try:
        yield from [_llama_row(entry) for entry in _content(file)]
    except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError, OSError) as error:
        yield {"engine": "llama-bench", "state": f"garbled result of llama-bench ({type(error).__name__})"}


def _llama_row(entry: dict[str, Any]) -> Row:
    read, written, context = int(entry["n_prompt"]), int(entry["n_gen"]), int(entry.get("n_depth") or 0)
    ms = median(float(ns) for ns in entry["samples_ns"]) / 1e6
    common = {
        "engine": f"llama-bench {entry.get('build_commit', 'unknown')}",
        "precision": _format(str(entry.get("model_type", ""))),
        "batch": 1,
    }
    if written == 0 and context == 0:
        return common | {"metric": "prefill_ms", "value": ms, "prompt_len": read, "gen_len": 0}
    if read == 0:
        return common | {"metric": "tpot_ms", "value": ms / written, "prompt_len": context, "gen_len": written}
    return common | {"state": "prompt and generation measured together"}


def _format(model_type: str) -> str:
    """`qwen3 1.7B Q4_K - Medium` to the name of a weight format; one that is not known stays."""
    low = model_type.lower()
    known = {**LLAMA_TYPES, **{name: name for name in FORMATS}}
    return next((ours for ending, ours in known.items() if low.endswith(ending)), model_type)


def _content(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))
