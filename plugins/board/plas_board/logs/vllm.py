"""vLLM's benchmarks: `vllm bench latency` as the records that name its settings, `vllm bench serve` at one request at a time.

A latency is of a whole request. Two runs that differ in their output alone tell the phases apart: T(1) is the prefill and
(T(n) - T(1)) / (n - 1) a step. Source: vllm-project/vllm vllm/benchmarks/latency.py, throughput.py, serve.py and
lib/utils.py, `convert_to_pytorch_benchmark_format`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plas_board.calibrate.figure import Document, Figure, Unusable, middle, named, number, positive, refuse, whole

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

    @property
    def figure(self) -> dict[str, str | float]:
        """Columns that prefill and decoding share."""
        _, engine, precision, batch, read = self.alike
        return {"engine": engine, "precision": precision, "batch": batch, "prompt_len": read}


def recognises(document: Document) -> bool:
    """Records with vLLM's name, or the keys of one of its files."""
    return any(_is_record(each) or each.keys() >= SERVER or _plain(each) for each in document.objects)


def _is_record(content: Mapping[str, Any]) -> bool:
    benchmark = content.get("benchmark")
    return content.keys() >= RECORD and isinstance(benchmark, dict) and "vllm" in str(benchmark.get("name")).lower()


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
    model = content.get("model")
    return str(model.get("name") or "") if isinstance(model, dict) else ""


def _run(content: Mapping[str, Any]) -> Run:
    """A record of latencies.

    Raises:
        Unusable: another metric, or settings that the model of one device does not cover.
    """
    metric, extra = content["metric"], content["benchmark"].get("extra_info")
    found: Any = extra.get("args") if isinstance(extra, dict) else None
    arguments: Mapping[str, Any] = found if isinstance(found, dict) else {}
    values = metric.get("benchmark_values") if isinstance(metric, dict) else None
    refuse(
        (
            (not isinstance(metric, dict) or metric.get("name") != "latency", MIXED),
            (not isinstance(values, list) or not values, "no latencies"),
        )
    )
    _refuse_settings(arguments)
    seconds = [positive(value, "latency") for value in values or []]
    batch, read, written = (whole(arguments.get(key), key) for key in ("batch_size", "input_len", "output_len"))
    engine = "vLLM, eager" if arguments.get("enforce_eager") else "vLLM"
    return Run(
        (_name(content), engine, precision(arguments, _name(content)), batch, read), written, middle(seconds) * 1e3
    )


def _refuse_settings(arguments: Mapping[str, Any]) -> None:
    several = any(arguments.get(f"{kind}_parallel_size") not in (None, 1) for kind in ("tensor", "pipeline", "data"))
    speculative = arguments.get("speculative_config") or arguments.get("speculative_model")
    refuse(
        (
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
    )


def precision(arguments: Mapping[str, Any], name: str) -> str:
    """The weight format by settings and a checkpoint's name.

    Raises:
        Unusable: a quantised checkpoint without its format, or one that no profile is of.
    """
    method, low = str(arguments.get("quantization") or "").lower(), name.lower()
    if method.startswith("awq") or (not method and low.endswith("-awq")):
        return "int4_awq"
    refuse(
        ((method or any(mark in low for mark in MARKS), "a quantised checkpoint whose weight format is not stated"),)
    )
    dtype = str(arguments.get("dtype") or "auto").removeprefix("torch.")
    refuse(((dtype not in DTYPES, f"weights in {dtype!r}: no profile is of that format"),))
    return DTYPES[dtype]


def _figure(run: Run, first: Run | None) -> Figure:
    """The prefill of a run of one token; of a longer one a step, where a run of one token is alike."""
    name = named(run.alike[0])
    if run.written == 1:
        return Figure(name, {**run.figure, "metric": "prefill_ms", "value": run.ms, "gen_len": 0})
    if first is None or run.written < 1:
        return Figure(name, fault=UNPAIRED)
    steps = run.written - 1
    return Figure(name, {**run.figure, "metric": "tpot_ms", "value": (run.ms - first.ms) / steps, "gen_len": steps})


def _served(content: Mapping[str, Any]) -> Iterator[Figure]:
    """Medians of one request at a time, of their mean lengths; a server names no weight format."""
    name = named(content["model_id"])
    for metric, key in (("ttft_ms", "median_ttft_ms"), ("tpot_ms", "median_tpot_ms")):
        try:
            refuse(((content.get("max_concurrency") != 1, SERVED),))
            requests = positive(content.get("completed"), "completed")
            read, written = (
                number(content.get(f"total_{kind}_tokens"), f"total_{kind}_tokens") for kind in ("input", "output")
            )
            lengths = {"prompt_len": round(read / requests), "gen_len": round(written / requests)}
            value = positive(content.get(key), key)
            yield Figure(
                name,
                {"metric": metric, "value": value, "batch": 1, **lengths, "engine": "vLLM server", "precision": ""},
            )
        except Unusable as error:
            yield Figure(name, fault=str(error))
