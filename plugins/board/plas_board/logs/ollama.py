"""Ollama: the lines that `ollama run --verbose` prints after an answer, and results of its API (`/api/generate`, `/api/chat`).

The prompt's tokens are those that were read, without what the cache held. Until version 0.12.7 the last 512 tokens of a longer prompt were timed
alone, and no result names the version. A model of the library has its format in its tag, or none.
Source: ollama/ollama cmd/cmd.go `runEntry.Summary`, api/types.go `Metrics`, pull request 12742; samples in its issues 1806 and 2163.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plas_board.calibrate.figure import Cells, Document, Figure, cells_of, filled, named, positive, refuse, whole

NAME = "Ollama"
KEYS = {"model", "eval_count", "eval_duration"}
LINE = re.compile(r"^\s*(prompt eval count|prompt eval duration|eval count|eval duration): +(\S{1,40})", re.MULTILINE)
COMMAND = re.compile(r"\bollama run +(?:--?[\w-]+(?:=\S+)? +)*([\w./:-]{1,200})")
DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(h|ms|m|s|µs|us|ns)")
UNITS = {"h": 3.6e6, "m": 6e4, "s": 1e3, "ms": 1.0, "µs": 1e-3, "us": 1e-3, "ns": 1e-6}
SPLIT = re.compile(r"\b\d{1,2}%/\d{1,2}% CPU/GPU")
DRAFTING = re.compile(r"\bmtp\b", re.IGNORECASE)
BATCH, LEAST = 512, 16  # tokens


def recognises(document: Document) -> bool:
    """Its four lines, or the keys of a result."""
    return any(entry.keys() >= KEYS for entry in document.objects) or {"eval count", "eval duration"} <= {
        match[1] for match in LINE.finditer(document.text)
    }


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """A prefill and the mean step of every answer."""
    for document in documents:
        results = [entry for entry in document.objects if entry.keys() >= KEYS]
        for entry in results:
            yield from _of_answer(entry, named(entry["model"]), 1e-6, split=False)
        for heads, part in () if results else document.segments():
            yield from _of_text(part, heads)


def _of_text(text: str, heads: Sequence[str]) -> Iterator[Figure]:
    """Answers of a text, each of the model of the last command above it."""
    model, found, split = "", dict[str, Any](), SPLIT.search(text) is not None
    for line in text.splitlines():
        command, match = COMMAND.search(line), LINE.match(line)
        model = command[1] if command else model
        if match:
            found[match[1].replace(" ", "_")] = match[2]
        if match and match[1] == "eval duration":
            yield from _of_answer(found, named(model, *heads), 1.0, split=split)
            found = {}


def _of_answer(found: Mapping[str, Any], names: tuple[str, ...], unit: float, *, split: bool) -> Iterator[Figure]:
    base = Figure(
        names, {"engine": NAME, "precision": ""}, fault="some layers on the GPU, the others on the CPU" * split
    )
    drafts = any(map(DRAFTING.search, names[:1]))
    yield filled(base, _prefill, found, unit)
    yield filled(base, _step, found, unit, drafts=drafts)


def _prefill(found: Mapping[str, Any], unit: float) -> Cells:
    refuse((not found.get("prompt_eval_count"), "a prompt that the cache held"))
    tokens = whole(found["prompt_eval_count"], "prompt eval count")
    longer = f"a prompt of more than {BATCH} tokens: before version 0.12.7 its last part was timed alone"
    refuse((tokens > BATCH, longer))
    return cells_of("prefill_ms", _milliseconds(found.get("prompt_eval_duration"), unit), tokens)


def _step(found: Mapping[str, Any], unit: float, *, drafts: bool) -> Cells:
    refuse((drafts, "a model that drafts tokens ahead (MTP): how many were accepted is not stated"))
    tokens, prompt = whole(found.get("eval_count"), "eval count"), whole(found.get("prompt_eval_count") or 0, "prompt")
    refuse((tokens < LEAST, f"an output of fewer than {LEAST} tokens"))
    return cells_of("tpot_ms", _milliseconds(found.get("eval_duration"), unit) / tokens, prompt, tokens)


def _milliseconds(value: Any, unit: float) -> float:
    """A duration as Go writes it (`2m7.682s`), or a number of units."""
    if not isinstance(value, str):
        return positive(value, "duration") * unit
    parts = DURATION.findall(value)
    refuse(("".join(map("".join, parts)) != value, f"duration: expected one as 2m7.682s, got {value[:20]!r}"))
    return positive(sum(float(number) * UNITS[kind] for number, kind in parts), "duration")
