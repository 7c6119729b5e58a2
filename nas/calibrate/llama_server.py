"""Timings that llama-server and llama-cli print after every request, with the model that the log above them says was loaded.

A request's output has its first token from the prompt, so that N tokens of llama-server took N - 1 steps; llama-cli counts runs.
Samples: https://github.com/ggml-org/llama.cpp/pull/12603 (with a draft), https://github.com/ggml-org/llama.cpp/pull/23269.
Source: ggml-org/llama.cpp tools/server/server.cpp (`print_timings`), src/llama-context.cpp (`llama_perf_context_print`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nas.calibrate import llama_log
from nas.calibrate.document import Document
from nas.calibrate.figure import Figure, Unusable, positive, refuse, whole
from nas.calibrate.llama_bench import after

NAME = "llama-server's timings"
COLOURS = re.compile(r"\x1b\[[0-9;]{0,9}m")
TIMING = re.compile(r"(prompt )?eval time *= *(\d{1,12}\.\d{1,3}) ms / *(\d{1,9}) (tokens|runs)")
SLOT = re.compile(r"\bid +(\d{1,4}) \| task")
KEPT = re.compile(r"(?:memory_seq_rm|kv cache rm) \[(\d{1,9}), end\)")
LEAST = 16  # tokens of an output whose mean step says something
SPECULATION = "speculative decoding: several tokens a step"


@dataclass(frozen=True)
class Timed:
    """A line of timings: milliseconds, tokens, tokens that the cache held before, and what follows from the lines around it."""

    prompt: bool
    ms: str
    tokens: str
    runs: bool
    before: int
    drafted: bool = False


def recognises(document: Document) -> bool:
    """A line of timings."""
    return TIMING.search(document.text) is not None


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """A figure a line of timings."""
    for document in documents:
        for part in llama_log.loads(COLOURS.sub("", document.text)):
            several = len(set(SLOT.findall(part))) > 1
            found = list(_timed(part))
            program = "llama-cli" if any(each.runs for each in found) else "llama-server"
            loaded = llama_log.figure(part, program)
            for each in found:
                yield _figure(each, loaded, several=several)


def _timed(text: str) -> Iterator[Timed]:
    """Lines of timings in order, marked where a draft's acceptance stands below them."""
    before, last = 0, None
    for line in text.splitlines():
        if match := KEPT.search(line):
            before = int(match[1])
        if "draft acceptance" in line and last is not None:
            last = replace(last, drafted=True)
        if match := TIMING.search(line):
            if last is not None:
                yield last
            last = Timed(bool(match[1]), match[2], match[3], match[4] == "runs", before)
            before = before + int(match[3]) if match[1] else 0
    if last is not None:
        yield last


def _figure(timed: Timed, loaded: Figure, *, several: bool) -> Figure:
    try:
        refuse([(loaded.fault, loaded.fault), (several, "several slots: requests may have run at once")])
        tokens, ms = whole(timed.tokens, "tokens"), positive(timed.ms, "eval time")
        cells: dict[str, str | float]
        if timed.prompt:
            cells = {
                "metric": "prefill_ms",
                "value": ms,
                "prompt_len": tokens,
                "gen_len": 0,
                **after(timed.before, tokens),
            }
        else:
            steps = tokens if timed.runs else tokens - 1
            refuse([(timed.drafted, SPECULATION), (steps < LEAST, f"an output of fewer than {LEAST} tokens")])
            cells = {"metric": "tpot_ms", "value": ms / steps, "prompt_len": timed.before, "gen_len": steps}
        return replace(loaded, cells={**loaded.cells, "batch": 1, **cells})
    except Unusable as error:
        return replace(loaded, cells={}, fault=str(error))
