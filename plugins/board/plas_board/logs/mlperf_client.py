"""MLPerf Client: results.json, an object a run with the means of every category of prompts.

Time to first token is of the mean prompt of a category, the rate is of the tokens after it.
Source: mlcommons/mlperf_client src/CIL/benchmark_logger.cpp, BenchmarkResultToJson, of August 2026.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from plas_board.calibrate.figure import Cells, Document, Figure, cells_of, filled, named, part, positive, refuse, whole

NAME = "MLPerf Client"
KEYS = {"category_results", "Execution Provider Name", "Model Name"}
#: Its names of models that are published here, kSupportedModelsInfo in src/CIL/benchmark/runner.cpp.
MODELS = {"llama_3_1_8b_instruct": "Llama-3.1-8B", "qwen_3_8b": "Qwen3-8B"}
GEOMEAN = "a geometric mean over prompts of different lengths"


def recognises(document: Document) -> bool:
    """The keys of a run; others may be of images."""
    return any(entry.keys() >= KEYS for entry in document.objects)


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """First token and step of every category; the two of all categories together are counted."""
    for document in documents:
        for entry in document.objects:
            name, provider = str(entry.get("Model Base Name") or ""), named(entry.get("Execution Provider Name"))
            failed = "a run that failed" * (entry.get("Benchmark Success") is False)
            base = Figure(
                named(MODELS.get(name), entry.get("Model Name"), name),
                {"engine": " ".join([NAME, *provider]), "precision": ""},
                device=_device(entry),
            )
            categories = part(entry, "category_results")
            for found in (part(categories, key) for key in categories):
                used = replace(base, fault=failed)
                yield from (filled(used, phase, found) for phase in (_first_token, _steps))
            if part(entry, "overall_results"):
                yield from [replace(base, cells={}, fault=GEOMEAN)] * 2
            if not categories:
                yield replace(base, cells={}, fault="no figures of a language model")


def _device(entry: Mapping[str, Any]) -> str:
    """The only GPU, or the CPU, where that ran; "" of an NPU and among several GPUs, which are not told apart."""
    kind, gpus = str(entry.get("Device Type")).upper(), entry.get("SysInfo_GPUNames")
    one = gpus[0] if isinstance(gpus, list) and len(gpus) == 1 else ""
    return next(iter(named({"GPU": one, "CPU": entry.get("SysInfo_CPUModel")}.get(kind, ""))), "")


def _first_token(category: Mapping[str, Any]) -> Cells:
    refuse((category.get("Is Agentic"), "calls of tools between the tokens"))
    seconds = positive(category.get("Avg Time to First Token"), "Avg Time to First Token")
    prompt = whole(positive(category.get("Avg Input Tokens"), "Avg Input Tokens"), "Avg Input Tokens")
    return cells_of("prefill_ms", 1e3 * seconds, prompt)


def _steps(category: Mapping[str, Any]) -> Cells:
    refuse((category.get("Is Agentic"), "calls of tools between the tokens"))
    rate = positive(category.get("Avg 2nd+ Token Generation Rate"), "Avg 2nd+ Token Generation Rate")
    prompt = whole(positive(category.get("Avg Input Tokens"), "Avg Input Tokens"), "Avg Input Tokens")
    output = whole(category.get("Avg Generated Tokens"), "Avg Generated Tokens")
    refuse((output < 2, "an output of one token"))
    return cells_of("decode_tok_s", rate, prompt, output - 1)
