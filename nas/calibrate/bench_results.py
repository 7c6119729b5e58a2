"""Reads what an export's bench scripts wrote as the measured rows that `calibrate` takes."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from nas.calibrate import llama_bench
from nas.calibrate.figure import Unusable
from nas.calibrate.models import Model
from nas.calibrate.offload import slow_share
from nas.errors import UsageError
from nas.export.candidates import columns
from nas.export.folder import folder_names, read_manifest
from nas.export.launch_list import FILE
from nas.export.model import Workload
from nas.files.tables import csv_text
from nas.record.candidates import read_candidates
from objectives import outside

Row = dict[str, Any]
DRAFTED = "tokens drafted ahead by a model of random or unknown weights: what it accepts is not in its result"


def bench_lines(folder: Path) -> list[str]:
    """Lines of a measured CSV from the results in an export.

    Raises:
        UsageError: no export, or none of its benches has run.
    """
    written = read_manifest(folder)
    architectures, ids = read_candidates(folder / FILE)
    each = written.of_candidates(folder, len(ids))
    rows: list[Row] = []
    for i, (name, place, (workload, served)) in enumerate(zip(ids, folder_names(ids), each, strict=True)):
        model = Model(name, architectures[i : i + 1])
        drafted = {"left_out": DRAFTED} if served.drafted else {}
        found = [*(row | drafted for row in _vllm(folder / place, workload)), *_llama_bench(folder / place, model)]
        known = {"model": name, **columns(model.architecture)}
        rows += [known | row for row in found]
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


def _llama_bench(place: Path, model: Model) -> Iterator[Row]:
    """Every test of llama-bench's JSON: prompts alone are prefills, generation alone decodes."""
    file = place / "llama-bench" / "result.json"
    if not file.exists():
        return
    try:
        entries = _content(file)
        yield from [_llama_row(entry, model) for entry in entries if entry["n_prompt"] + entry["n_gen"]]
    except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError, OSError) as error:
        yield {"engine": "llama-bench", "state": f"garbled result of llama-bench ({type(error).__name__})"}


def _llama_row(entry: dict[str, Any], model: Model) -> Row:
    found = llama_bench.figure(entry)
    row = {"engine": f"llama-bench {entry.get('build_commit', 'unknown')}", **found.cells}
    if found.fault:
        return row | {"state": found.fault}
    try:
        slow = slow_share(model, found)
    except Unusable as error:
        return row | {"left_out": str(error)}
    return row | ({"slow_share": f"{slow:.6g}"} if slow else {})


def _content(file: Path) -> Any:
    return outside.json_of(file, 100 * outside.MB)
