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
from itertools import zip_longest

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
        for part in llama_log.loads(COLOURS.sub("", document.text)):
            several = len(set(SLOT.findall(part))) > 1
            found = list(_timed(part))
            program = "llama-cli" if any(each.runs for each in found) else "llama-server"
            loaded = llama_log.figure(part, program)
            drafter = _drafter(part)
            for each in found:
                yield _figure(each, loaded, drafter, several=several)


def _drafter(text: str) -> Drafter:
    """What drafts in a log: heads of the model alone, or the name of what else does."""
    found = dict.fromkeys(name.replace("_", "-") for name in DRAFTER.findall(text) if name != "none")
    length, model = LENGTH.search(text), llama_log.DRAFT.search(text) is not None
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


def _drafting(drafted: tuple[int, int], tokens: int, drafter: Drafter) -> dict[str, str | float]:
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
    refuse([(not drafter.heads, NO_HEAD.format(what=what)), (uneven, fault)])
    return {"drafted": length, "accepted": f"{accepted / generated:.6g}"}


def _figure(timed: Timed, loaded: Figure, drafter: Drafter, *, several: bool) -> Figure:
    try:
        refuse([(loaded.fault, loaded.fault), (several, "several slots: requests may have run at once")])
        refuse([(drafter.named and not timed.drafted, SILENT)])
        tokens, ms = whole(timed.tokens, "tokens"), positive(timed.ms, "eval time")
        cells: dict[str, str | float]
        if timed.prompt:
            refuse([(timed.drafted, DRAFTED_PROMPT)])
            cells = {
                "metric": "prefill_ms",
                "value": ms,
                "prompt_len": tokens,
                "gen_len": 0,
                **after(timed.before, tokens),
            }
        else:
            steps = tokens if timed.runs else tokens - 1
            refuse([(steps < LEAST, f"an output of fewer than {LEAST} tokens")])
            cells = {"metric": "tpot_ms", "value": ms / steps, "prompt_len": timed.before, "gen_len": steps}
            cells |= _drafting(timed.drafted, steps, drafter) if timed.drafted else {}
        return replace(loaded, cells={**loaded.cells, "batch": 1, **cells})
    except Unusable as error:
        return replace(loaded, cells={}, fault=str(error))
