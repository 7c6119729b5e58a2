"""vLLM's benchmarks: `vllm bench latency` as the records that name its settings, `vllm bench serve` at one request at a time.

A latency is of a whole request. Two runs that differ in their output alone tell the phases apart: T(1) is the prefill and
(T(n) - T(1)) / (n - 1) a step. Source: vllm-project/vllm vllm/benchmarks/latency.py, throughput.py, serve.py and
lib/utils.py, `convert_to_pytorch_benchmark_format`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plas_board.calibrate.figure import (
    Cells,
    Document,
    Figure,
    Unusable,
    cells_of,
    filled,
    middle,
    named,
    part,
    positive,
    refuse,
    whole,
)

NAME = "vLLM benchmark"
RECORD = {"benchmark", "model", "metric"}
LATENCY, THROUGHPUT, SERVER = (
    {"avg_latency", "latencies"},
    {"elapsed_time", "requests_per_second"},
    {"model_id", "median_ttft_ms"},
)
DTYPES = {"auto": "bf16", "bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}
MARKS = (
    *("awq", "gptq", "fp8", "int4", "int8", "4bit", "8bit", "w4a16", "w8a8", "w8a16"),
    *("nvfp4", "fp4", "bnb", "gguf", "mxfp4"),
)
PLAIN = (
    "vLLM's latency file alone names neither model nor lengths: set SAVE_TO_PYTORCH_BENCHMARK_FORMAT=1 and give the "
    ".pytorch.json that it writes beside"
)
MIXED = "throughput of many requests mixes phases and batches: run vllm bench latency"
SERVED = "a server's figures of several requests at once, whose batch changes: give --max-concurrency 1"
UNPAIRED = "a whole request: one more run with --output-len 1 separates prefill from decoding"


@dataclass(frozen=True)
class Run:
    """A latency run: what must be alike for two to be compared, tokens generated, milliseconds."""

    alike: tuple[str, str, str, int, int]
    written: int
    ms: float


def recognises(document: Document) -> bool:
    """Records with vLLM's name, or the keys of one of its files."""
    return any(_is_record(each) or each.keys() >= SERVER or _plain(each) for each in document.objects)


def _is_record(content: Mapping[str, Any]) -> bool:
    return content.keys() >= RECORD and "vllm" in str(part(content, "benchmark").get("name")).lower()


def _plain(content: Mapping[str, Any]) -> str:
    """Why a file without settings is not used; "" for others."""
    lines = ((LATENCY, PLAIN), (THROUGHPUT, MIXED))
    return next((reason for keys, reason in lines if content.keys() >= keys), "")


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """Prefills and steps of all runs together, and what cannot be used."""
    runs: list[Run] = []
    for content in (each for document in documents for each in document.objects):
        if _is_record(content):
            try:
                runs.append(_run(content))
            except Unusable as error:
                yield Figure(named(_name(content)), fault=str(error))
        elif content.keys() >= SERVER:
            yield from _served(content)
        elif reason := _plain(content):
            yield Figure((), fault=reason)
    first = {run.alike: run for run in runs if run.written == 1}
    for run in runs:
        yield _figure(run, first.get(run.alike))


def _name(content: Mapping[str, Any]) -> str:
    return str(part(content, "model").get("name") or "")


def _run(content: Mapping[str, Any]) -> Run:
    """A record of latencies.

    Raises:
        Unusable: another metric, or settings that the model of one device does not cover.
    """
    metric, arguments = part(content, "metric"), part(part(content["benchmark"], "extra_info"), "args")
    values = metric.get("benchmark_values")
    refuse((metric.get("name") != "latency", MIXED), (not isinstance(values, list) or not values, "no latencies"))
    _refuse_settings(arguments)
    seconds = [positive(value, "latency") for value in values or []]
    batch, prompt, output = (whole(arguments.get(key), key) for key in ("batch_size", "input_len", "output_len"))
    engine = "vLLM, eager" if arguments.get("enforce_eager") else "vLLM"
    alike = (_name(content), engine, precision(arguments, _name(content)), batch, prompt)
    return Run(alike, output, middle(seconds) * 1e3)


def _refuse_settings(arguments: Mapping[str, Any]) -> None:
    several = any(arguments.get(f"{kind}_parallel_size") not in (None, 1) for kind in ("tensor", "pipeline", "data"))
    speculative = arguments.get("speculative_config") or arguments.get("speculative_model")
    refuse(
        (several, "several GPUs at once"),
        (arguments.get("n") not in (None, 1) or arguments.get("use_beam_search"), "several sequences per prompt"),
        (
            arguments.get("enable_prefix_caching"),
            "prefix caching: its prompts repeat, so that prefills were skipped",
        ),
        (speculative, "speculative decoding"),
        (arguments.get("kv_cache_dtype") not in (None, "auto"), "a KV cache in another format than the model's"),
        (arguments.get("cpu_offload_gb"), "weights kept on the CPU"),
    )


def precision(arguments: Mapping[str, Any], name: str) -> str:
    """The weight format by settings and a checkpoint's name.

    Raises:
        Unusable: a quantised checkpoint without its format, or one that no profile is of.
    """
    method, low = str(arguments.get("quantization") or "").lower(), name.lower()
    if method.startswith("awq") or (not method and low.endswith("-awq")):
        return "int4_awq"
    refuse((method or any(mark in low for mark in MARKS), "a quantised checkpoint whose weight format is not stated"))
    dtype = str(arguments.get("dtype") or "auto").removeprefix("torch.")
    refuse((dtype not in DTYPES, f"weights in {dtype!r}: no profile is of that format"))
    return DTYPES[dtype]


def _figure(run: Run, first: Run | None) -> Figure:
    """The prefill of a run of one token; of a longer one a step, where a run of one token is alike."""
    name, engine, precision, batch, prompt = run.alike
    base, steps = Figure(named(name), {"engine": engine, "precision": precision}), run.written - 1
    if not steps:
        return filled(base, cells_of, "prefill_ms", run.ms, prompt, batch=batch)
    if first is None or steps < 0:
        return replace(base, cells={}, fault=UNPAIRED)
    return filled(base, cells_of, "tpot_ms", (run.ms - first.ms) / steps, prompt, steps, batch=batch)


def _served(content: Mapping[str, Any]) -> Iterator[Figure]:
    """Medians of one request at a time, of their mean lengths; a server names no weight format."""
    fault = "" if content.get("max_concurrency") == 1 else SERVED
    base = Figure(named(content["model_id"]), {"engine": "vLLM server", "precision": ""}, fault=fault)
    counts = ("completed", "total_input_tokens", "total_output_tokens")
    for metric, key in (("ttft_ms", "median_ttft_ms"), ("tpot_ms", "median_tpot_ms")):
        yield filled(base, mean_request, metric, content, key, *counts)


def mean_request(metric: str, content: Mapping[str, Any], *names: str) -> Cells:
    """A median of requests at their mean lengths; names of the median, of the requests, and of the tokens of all prompts and outputs."""
    value, requests, *tokens = (positive(content.get(name), name) for name in names)
    return cells_of(metric, value, *(round(total / requests) for total in tokens))
