"""edge-llm-bench: a record of a run, prefill and decoding apart, of LiteRT-LM, llama.cpp, MLX and others on phones and Macs.

Records of runs that failed, of other tasks (speech, images, accuracy) and without the prompt's length are counted. Other projects of the same
name have other records.
Source: john-rocky/edge-llm-bench, schema/result.v1.json at commit 0b1ec56f, MIT by its README; `promptTokensPerSecond`, which its records carry for the
schema's `prefillTokensPerSecond`, results/raw/ at ca5dfe6e.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plas_board.calibrate.figure import (
    Cells,
    Document,
    Figure,
    cells_of,
    filled,
    named,
    part,
    positive,
    precision,
    refuse,
    whole,
)

NAME = "edge-llm-bench"
KEYS = {"schemaVersion", "runtime", "model", "task", "timestamp", "metrics"}
VERSION = 1
GGUF_TYPE = re.compile(r"i?q\d\w*|mxfp4|bf16|f16|f32", re.IGNORECASE)
HOT = ("serious", "critical")
PREFILL = ("prefillTokensPerSecond", "promptTokensPerSecond")
DECODE = "decodeTokensPerSecond"


def recognises(document: Document) -> bool:
    """The keys of a record, whose model has an id and a quantization."""
    return any(
        entry.keys() >= KEYS and {"id", "quantization"} <= part(entry, "model").keys() for entry in document.objects
    )


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """Prefill and decoding of every record that has rates; one figure that says so of others."""
    for document in documents:
        for entry in document.objects:
            model, metrics = part(entry, "model"), part(entry, "metrics")
            names = named(str(model.get("primaryFile") or model.get("file") or "").rpartition(".")[0], model.get("id"))
            device = next(iter(named(part(entry, "device").get("modelIdentifier"))), "")
            rates = [name for name in (*PREFILL, DECODE) if name in metrics] or [""]
            yield from (filled(Figure(names, device=device), _measured, entry, rate) for rate in rates)


def _refuse_conditions(entry: Mapping[str, Any], rate: str) -> None:
    metrics, device, conditions = (part(entry, name) for name in ("metrics", "device", "conditions"))
    ends = {str(metrics.get(f"{when}ThermalState")) for when in ("initial", "final", "peak")}
    refuse(
        (entry.get("schemaVersion") != VERSION, f"a record of another version than {VERSION}"),
        (not rate, "no rates of a language model"),
        (conditions.get("exitCode"), "a run that failed"),
        (metrics.get("firstEver"), "a run that built the engine's cache"),
        (device.get("isLowPowerModeEnabled"), "a device that saved power"),
        (ends & set(HOT), "a device that was throttled by heat"),
    )


def _engine(entry: Mapping[str, Any]) -> str:
    """Program, version, and the size of a cache that its steps read whole (LiteRT-LM's)."""
    runtime = str(entry.get("runtime") or "")
    budget = part(entry, "metrics").get("contextTokensConfigured")
    cache = f", cache of {budget} tokens" if runtime.startswith("litert") and isinstance(budget, int) else ""
    return next(iter(named(f"{runtime} {entry.get('engineVersion') or ''}".strip() + f"{cache}, {NAME}")))


def _measured(entry: Mapping[str, Any], rate: str) -> Cells:
    _refuse_conditions(entry, rate)
    metrics, quantization = part(entry, "metrics"), str(part(entry, "model").get("quantization") or "")
    written = precision(quantization) if GGUF_TYPE.fullmatch(quantization) else ""
    refuse((not metrics.get("promptTokenCount"), "tokens of the prompt are not stated"))
    prompt, value = whole(metrics["promptTokenCount"], "promptTokenCount"), positive(metrics[rate], rate)
    if rate in PREFILL:
        cells = cells_of("prefill_tok_s", value, prompt)
    else:
        refuse((not metrics.get("generatedTokenCount"), "tokens of the output are not stated"))
        output = whole(metrics["generatedTokenCount"], "generatedTokenCount")
        cells = cells_of("decode_tok_s", value, prompt, output)
    return {**cells, "engine": _engine(entry), "precision": written}
