"""Timings that llama-server and llama-cli print after every request, with the model that the log above them says was loaded.

A request's output has its first token from the prompt, so that N tokens of llama-server took N - 1 steps; llama-cli counts runs.
A step that drafts gives one token and those of its drafts that it accepts; of D drafted tokens in N - 1 - A steps the length follows.
Samples: https://github.com/ggml-org/llama.cpp/pull/12603 (with a draft), https://github.com/ggml-org/llama.cpp/pull/23269,
https://github.com/ggml-org/llama.cpp/pull/22673 (heads for multi-token prediction).
Source: ggml-org/llama.cpp tools/server/server-context.cpp (`print_timings`), src/llama-context.cpp (`llama_perf_context_print`),
common/speculative.cpp (`common_speculative_print_stats`), docs/speculative.md.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from pathlib import PureWindowsPath
from typing import Any

from plas_board.calibrate import llama_bench
from plas_board.calibrate.figure import (
    EVERY_LAYER,
    Cells,
    Document,
    Figure,
    amount,
    cells_of,
    filled,
    named,
    positive,
    precision,
    refuse,
    whole,
)
from plas_board.calibrate.llama_bench import after

NAME = "llama-server's timings"
COLOURS = re.compile(r"\x1b\[[0-9;]{0,9}m")
TIMING = re.compile(r"(prompt )?eval time *= *(\d{1,12}\.\d{1,3}) ms / *(\d{1,9}) (tokens|runs)")
SLOT = re.compile(r"\bid +(\d{1,4}) \| task")
KEPT = re.compile(r"(?:memory_seq_rm|kv cache rm) \[(\d{1,9}), end\)")
LEAST = 16  # tokens of an output whose mean step says something
DRAFTED = re.compile(r"draft acceptance(?: rate)? = +\d\.\d{1,9} \( *(\d{1,9}) accepted / *(\d{1,9}) generated\)")
#: What drafts, as the command line, the loading log or the statistics say; heads of the model are draft-mtp, in builds of May 2026 mtp.
DRAFTER = re.compile(r"(?:--spec-type[ =]|adding speculative implementation '|statistics )([a-z][\w,-]{1,60})")
LENGTH = re.compile(r"\s(?:--spec-draft-n-max|--draft-max|--draft-n|--draft)[ =](\d{1,4})\b")
HEADS, NO_HEAD = {"draft-mtp", "mtp"}, "speculative decoding by {what}: heads of the model alone have a coefficient"
ONE_LENGTH = 0.1  # tokens by which the mean length of drafts may lie off a whole number: the last one is cut
SILENT = "a server that drafts: of this request it does not say how much"
DRAFTED_PROMPT = "a prompt of a request that drafts: what drafts reads it too"


@dataclass(frozen=True)
class Timed:
    """A line of timings: milliseconds, tokens, tokens that the cache held before, and what follows from the lines around it."""

    prompt: bool
    ms: str
    tokens: str
    runs: bool
    before: int
    drafted: tuple[int, int] | None = None  # accepted, drafted


@dataclass(frozen=True)
class Drafter:
    """What a log says that drafts ("" nothing), whether it is the model's own heads alone, and how many tokens its command line asks for."""

    named: str
    heads: bool
    asked: int | None


def recognises(document: Document) -> bool:
    """A line of timings."""
    return TIMING.search(document.text) is not None


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """A figure a line of timings."""
    for document in documents:
        for part in loads(COLOURS.sub("", document.text)):
            several = len(set(SLOT.findall(part))) > 1
            found = list(_timed(part))
            program = "llama-cli" if any(each.runs for each in found) else "llama-server"
            loaded = figure(part, program)
            drafter = _drafter(part)
            for each in found:
                yield filled(loaded, _measured, each, drafter, several=several)


def _drafter(text: str) -> Drafter:
    """What drafts in a log: heads of the model alone, or the name of what else does."""
    found = dict.fromkeys(name.replace("_", "-") for name in DRAFTER.findall(text) if name != "none")
    length, model = LENGTH.search(text), DRAFT.search(text) is not None
    named = "a draft model" if model else ", ".join(found)
    heads = bool(found) and {*found} <= HEADS and not model
    return Drafter(named, heads, int(length[1]) if length else None)


def _timed(text: str) -> Iterator[Timed]:
    """Lines of timings in order, those of a request marked where a draft's acceptance stands below them."""
    found = list(_lines(text))
    for one, after_it in zip_longest(found, found[1:]):
        drafts = after_it is not None and one.prompt and not after_it.prompt
        yield replace(one, drafted=after_it.drafted) if drafts else one


def _lines(text: str) -> Iterator[Timed]:
    """Lines of timings, those of steps marked."""
    before, last = 0, None
    for line in text.splitlines():
        if match := KEPT.search(line):
            before = int(match[1])
        if (match := DRAFTED.search(line)) and last is not None:
            last = replace(last, drafted=(int(match[1]), int(match[2])))
        if match := TIMING.search(line):
            if last is not None:
                yield last
            last = Timed(bool(match[1]), match[2], match[3], match[4] == "runs", before)
            before = before + int(match[3]) if match[1] else 0
    if last is not None:
        yield last


def _drafting(drafted: tuple[int, int], tokens: int, drafter: Drafter) -> Cells:
    """Length of the drafts and the share of them that was accepted.

    Raises:
        Unusable: no head of the model drafts, or not the same number every time.
    """
    accepted, generated = drafted
    mean = generated / max(tokens - accepted, 1)
    length = round(mean)
    uneven = abs(mean - length) > ONE_LENGTH or length != (drafter.asked or length) or not length
    fault = f"drafts of {mean:.2f} tokens in the mean: not all of one length"
    what = drafter.named or "something that the log does not name"
    refuse((not drafter.heads, NO_HEAD.format(what=what)), (uneven, fault))
    return {"drafted": length, "accepted": f"{accepted / generated:.6g}"}


def _measured(timed: Timed, drafter: Drafter, *, several: bool) -> Cells:
    refuse((several, "several slots: requests may have run at once"), (drafter.named and not timed.drafted, SILENT))
    tokens, ms = whole(timed.tokens, "tokens"), positive(timed.ms, "eval time")
    if timed.prompt:
        refuse((timed.drafted, DRAFTED_PROMPT))
        return cells_of("prefill_ms", ms, tokens, **after(timed.before, tokens))
    steps = tokens if timed.runs else tokens - 1
    refuse((steps < LEAST, f"an output of fewer than {LEAST} tokens"))
    drafts = _drafting(timed.drafted, steps, drafter) if timed.drafted else {}
    return cells_of("tpot_ms", ms / steps, timed.before, steps, **drafts)


LOADED = re.compile(r"loaded meta data with .{0,80}? from (.{1,300}?) \(version", re.ASCII)
FILE = re.compile(r"(?:\s-m|--model)[ =]([^\s'\"]{1,300}\.gguf)\b")
#: `print_info: file type   = Q4_K - Medium`, in builds of 2023 and 2024 `llm_load_print_meta: model ftype = Q4_K - Medium`.
INFO = re.compile(
    r"(?:print_info|llm_load_print_meta): +(arch|general\.name|file type|model ftype|file size|model size|model params) += *([^\n]{1,120})"
)
KEYS = {"model ftype": "file type", "model size": "file size"}
DEVICE = re.compile(r"using device (\w{1,20}) \(([^()\n]{1,100})")
#: Memory of the backend that holds weights.
BUFFER = re.compile(r"load_tensors: +(?!CPU)([A-Za-z]{2,12})\d*\S{0,12} model buffer size")
CUDA = re.compile(r"Device \d{1,3}: ([^,|\n]{1,100}),")
OFFLOADED = re.compile(r"offloaded (\d{1,4})/(\d{1,4}) layers to GPU")
BUILD = re.compile(r"build: \d{1,6} \(([0-9a-f]{4,40})\)")
FLASH = re.compile(r"flash_attn += *(\w{1,10})")
CPU_EXPERTS = re.compile(r"\s(?:-ncmoe|--n-cpu-moe)[ =](\d{1,6})\b")
ALL_CPU_EXPERTS = re.compile(r"\s(?:-cmoe|--cpu-moe)(?=\s|$)")
PLACED = re.compile(r"\s(?:-ot|--override-tensor)[ =](?:\"([^\"\n]{1,2000})\"|'([^'\n]{1,2000})'|([^\s\"']{1,2000}))")
OVERRIDDEN = (
    "buffer type overridden to"  # of every tensor that is put elsewhere, by -fit too, which no command line says
)
DRAFT = re.compile(r"loading draft model")
CACHE = re.compile(r"\s(?:-ct[kv]|--cache-type-[kv])[ =](?!f16\b)\w|\b[KV] \((?!f16\))\w{2,8}\): ")
ON = {"1": "fa", "enabled": "fa", "auto": "fa auto"}


def loads(text: str) -> Iterator[str]:
    """The text of each model that was loaded, what stands before the first one with it."""
    found = list(LOADED.finditer(text))
    own = [one for before, one in zip([None, *found], found, strict=False) if not _drafts(text, before, one)]
    starts = [match.start() for match in own]
    bounds = [0, *starts[1:], len(text)]
    yield from (text[start:end] for start, end in pairwise(bounds))


def _drafts(text: str, before: re.Match[str] | None, one: re.Match[str]) -> bool:
    """Whether the model that is loaded here drafts for the one before."""
    return before is not None and DRAFT.search(text, before.end(), one.start()) is not None


def figure(text: str, program: str) -> Figure:
    """A figure without times of the model that a log says was loaded first; it names nothing that the log does not."""
    info = {KEYS.get(key, key): value.strip() for key, value in reversed(INFO.findall(text))}
    named_files = dict.fromkeys(LOADED.findall(text)[:1] or FILE.findall(text))
    file = next(iter(named_files), "") if len(named_files) == 1 else ""
    base = Figure(
        named(PureWindowsPath(file).name.removesuffix(".gguf"), info.get("general.name", "")),
        family=info.get("arch", ""),
        parameters=amount(info.get("model params", "")),
        size=amount(info.get("file size", "").partition(" (")[0]),
        gpu_layers=_on_gpu(text),
        device=_device(text),
        **_elsewhere(text),
    )
    several = f"commands of {len(named_files)} models, and no line says which one was loaded" * (len(named_files) > 1)
    moved = OVERRIDDEN in text and not base.experts_on_cpu and not base.placed
    return filled(replace(base, fault=several), _loaded, text, program, info.get("file type", ""), moved=moved)


def _loaded(text: str, program: str, file_type: str, *, moved: bool) -> Cells:
    """Engine and weight format of what was loaded."""
    refuse(
        (len(_devices(text)) > 1, "several GPUs at once"),
        (moved, "tensors were kept elsewhere, and no command line says which (-ncmoe, -ot, -fit)"),
        (CACHE.search(text), "a KV cache in another format than f16"),
    )
    written = llama_bench.described(file_type)[1] or file_type
    return {"engine": _engine(text, program), "precision": precision(written)}


def _on_gpu(text: str) -> int | None:
    """Layers on the GPU where these are not all."""
    match = OFFLOADED.search(text)
    return None if match is None or match[1] in ("0", match[2]) else int(match[1])


def _elsewhere(text: str) -> dict[str, Any]:
    """Layers whose experts lay in host memory, and tensors that were put somewhere by hand, by the command line."""
    counts = [int(number) for number in CPU_EXPERTS.findall(text)]
    every = [EVERY_LAYER] * bool(ALL_CPU_EXPERTS.search(text))
    placed = ",".join(dict.fromkeys(next(filter(None, found)) for found in PLACED.findall(text)))
    return {"experts_on_cpu": max([0, *counts, *every]), "placed": placed}


def _devices(text: str) -> list[tuple[str, str]]:
    """Backend and name of every GPU that holds layers, those that the build saw where it does not say which it uses."""
    offloaded = OFFLOADED.search(text)
    if offloaded is not None and offloaded[1] == "0":
        return []
    found = [(match[1], match[2].strip()) for match in DEVICE.finditer(text)]
    return list(dict.fromkeys(found)) or [("", match[1]) for match in CUDA.finditer(text)]


def _device(text: str) -> str:
    return next(iter(named(*(name for _, name in _devices(text)))), "")


def _engine(text: str, program: str) -> str:
    build, device, flash = BUILD.search(text), DEVICE.search(text) or BUFFER.search(text), FLASH.search(text)
    parts = [program, build[1] if build else "of an unknown build", device[1].rstrip("0123456789") if device else ""]
    setting = ON.get(flash[1], "") if flash else ""
    return next(iter(named(" ".join(part for part in parts if part) + (f", {setting}" if setting else ""))), "")
