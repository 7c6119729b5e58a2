"""llmfit: a submission of `llmfit bench --share`, with a mean rate of every model.

Ollama gives the rate of decoding alone. Of llama-server, vLLM and MLX the rate is the tokens of a request over its whole time: a
prefill of a short prompt, which reads the weights once as a step does, and the steps after it; their engine says so. Prompts are four, of 10 to 45 tokens
by their texts, which no submission states: they are counted as `PROMPT`, under 0.1 % of a step's bytes from any of them.
Source: AlexsJones/llmfit, commit 3f44fd30, MIT: llmfit-core/data/community/schema.json (version 1), llmfit-core/src/bench.rs.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plas_board.calibrate.figure import (
    WRITTEN,
    Cells,
    Document,
    Figure,
    cells_of,
    filled,
    format_in,
    named,
    part,
    positive,
    refuse,
    refuse_scatter,
    whole,
)

NAME = "llmfit"
KEYS = {"schemaVersion", "tool", "hardware", "results"}
VERSION = 1
PROMPT = 25  # tokens
ENGINES = {
    "ollama": "Ollama",
    "llamacpp": "llama-server, whole requests",
    "vllm": "vLLM, whole requests",
    "mlx": "MLX, whole requests",
}
DRAFTING = re.compile(r"\bmtp\b", re.IGNORECASE)
MLX_BITS = re.compile(r"-([468]bit)$", re.IGNORECASE)
FEW = 32  # tokens of an output, below which a request is more its beginning than its steps


def recognises(document: Document) -> bool:
    """The keys of a submission, whose tool is llmfit."""
    return any(entry.keys() >= KEYS and part(entry, "tool").get("name") == NAME for entry in document.objects)


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """A rate of every model; times to first token are counted."""
    for document in documents:
        for entry in document.objects:
            results = entry.get("results")
            for result in results if isinstance(results, list) else ():
                yield from _of_result(entry, result if isinstance(result, dict) else {})


def _of_result(entry: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[Figure]:
    hardware = part(entry, "hardware")
    file = str(result.get("model") or "").removesuffix(".gguf")
    names = named(file, WRITTEN.split(file)[0].rstrip("-_.:"))
    device = next(iter(named(hardware.get("hardwareName"), hardware.get("cpu"))), "")
    memory = hardware.get("vramGb")  # of a GPU with its own; else it is the processor's
    stated = isinstance(memory, int | float) and hardware.get("hwClass") == "DISCRETE_GPU"
    base = Figure(names, device=device, gpu_bytes=memory * 2.0**30 if memory and stated else None)
    yield filled(base, _measured, entry, result, file)
    if result.get("avgTtftMs") is not None:
        yield Figure(names, device=device, fault="time to first token of prompts whose length is not stated")


def _written(file: str, provider: str) -> str:
    """The weight format that a name states; MLX's by its bits."""
    bits = MLX_BITS.search(file)
    return f"mlx_{bits[1].lower()}" if bits and provider == "mlx" else format_in(file)


def _measured(entry: Mapping[str, Any], result: Mapping[str, Any], file: str) -> Cells:
    hardware = part(entry, "hardware")
    if hardware.get("hwClass") == "DISCRETE_GPU" and hardware.get("vramGb") is not None:
        positive(hardware["vramGb"], "vramGb")
    refuse(
        (entry.get("schemaVersion") != VERSION, f"a submission of another version than {VERSION}"),
        (whole(hardware.get("gpuCount") or 0, "gpuCount") > 1, "several GPUs"),
    )
    rate, output = positive(result.get("avgTps"), "avgTps"), whole(result.get("avgOutputTokens"), "avgOutputTokens")
    low, high = (positive(result.get(name), name) for name in ("minTps", "maxTps"))
    refuse_scatter((high - low) / 2, rate)
    provider = str(result.get("provider"))
    drafts = provider == "ollama" and DRAFTING.search(str(result.get("model"))) is not None
    refuse(
        (drafts, "a model that drafts tokens ahead (MTP): how many were accepted is not stated"),
        (provider not in ENGINES, f"a provider that is not known here: {provider[:20]!r}"),
        (output < FEW, f"an output of fewer than {FEW} tokens"),
    )
    engine = next(iter(named(f"{ENGINES[provider]}, llmfit {part(entry, 'tool').get('version', '')}".strip())))
    written = _written(file, provider)
    return {**cells_of("decode_tok_s", rate, PROMPT, output), "engine": engine, "precision": written}
