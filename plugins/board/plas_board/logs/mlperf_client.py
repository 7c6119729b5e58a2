"""MLPerf Client: results.json, an object a run with the means of every category of prompts.

Time to first token is of the mean prompt of a category, the rate is of the tokens after it.
Source: mlcommons/mlperf_client src/CIL/benchmark_logger.cpp, BenchmarkResultToJson, of August 2026.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from plas_board.calibrate.figure import Document, Figure, Unusable, named, positive, refuse, whole

NAME = "MLPerf Client"
KEYS = {"category_results", "Execution Provider Name", "Model Name"}
#: Its names of models that are published here, kSupportedModelsInfo in src/CIL/benchmark/runner.cpp.
MODELS = {"llama_3_1_8b_instruct": "Llama-3.1-8B", "qwen_3_8b": "Qwen3-8B"}
Phase = Callable[[Mapping[str, Any]], dict[str, str | float]]
GEOMEAN = "a geometric mean over prompts of different lengths"


def recognises(document: Document) -> bool:
    """The keys of a run; others may be of images."""
    return any(entry.keys() >= KEYS for entry in document.objects)


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """First token and step of every category; the two of all categories together are counted."""
    for document in documents:
        for entry in document.objects:
            categories = entry.get("category_results")
            for found in categories.values() if isinstance(categories, dict) else ():
                for phase in (_first_token, _steps):
                    yield _figure(entry, found if isinstance(found, dict) else {}, phase)
            if isinstance(entry.get("overall_results"), dict):
                yield from [Figure(_names(entry), device=_device(entry), fault=GEOMEAN)] * 2
            if not isinstance(categories, dict) or not categories:
                yield Figure(_names(entry), device=_device(entry), fault="no figures of a language model")


def _names(entry: Mapping[str, Any]) -> tuple[str, ...]:
    base = str(entry.get("Model Base Name") or "")
    return named(MODELS.get(base), entry.get("Model Name"), base)


def _device(entry: Mapping[str, Any]) -> str:
    """The only GPU, or the CPU, where that ran; "" of an NPU and among several GPUs, which are not told apart."""
    kind, gpus = str(entry.get("Device Type")).upper(), entry.get("SysInfo_GPUNames")
    one = gpus[0] if isinstance(gpus, list) and len(gpus) == 1 else ""
    return next(iter(named({"GPU": one, "CPU": entry.get("SysInfo_CPUModel")}.get(kind, ""))), "")


def _figure(entry: Mapping[str, Any], found: Mapping[str, Any], phase: Phase) -> Figure:
    provider = next(iter(named(entry.get("Execution Provider Name"))), "")
    shared: dict[str, str | float] = {"engine": f"{NAME} {provider}".strip(), "precision": "", "batch": 1}
    try:
        refuse(
            [
                (entry.get("Benchmark Success") is False, "a run that failed"),
                (found.get("Is Agentic"), "calls of tools between the tokens"),
            ]
        )
        return Figure(_names(entry), shared | phase(found), device=_device(entry))
    except Unusable as error:
        return Figure(_names(entry), device=_device(entry), fault=str(error))


def _first_token(found: Mapping[str, Any]) -> dict[str, str | float]:
    seconds = positive(found.get("Avg Time to First Token"), "Avg Time to First Token")
    read = whole(positive(found.get("Avg Input Tokens"), "Avg Input Tokens"), "Avg Input Tokens")
    return {"metric": "prefill_ms", "value": 1e3 * seconds, "prompt_len": read, "gen_len": 0}


def _steps(found: Mapping[str, Any]) -> dict[str, str | float]:
    rate = positive(found.get("Avg 2nd+ Token Generation Rate"), "Avg 2nd+ Token Generation Rate")
    read = whole(positive(found.get("Avg Input Tokens"), "Avg Input Tokens"), "Avg Input Tokens")
    written = whole(found.get("Avg Generated Tokens"), "Avg Generated Tokens")
    refuse([(written < 2, "an output of one token")])
    return {"metric": "decode_tok_s", "value": rate, "prompt_len": read, "gen_len": written - 1}
