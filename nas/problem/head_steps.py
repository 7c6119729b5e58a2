"""Changes of a design's times and bytes with a smaller vocabulary, or one shared table."""

from collections.abc import Iterator
from dataclasses import dataclass

from nas.problem.problem import Problem
from search_spaces.architectures import Architectures

VOCABULARIES = (128_000, 64_000, 32_000, 16_000)  # tried in place of a larger one, the largest first
HEAD_METRICS = ("prefill_ms", "decode_ms", "total_ms", "resident_gb")
NO_LOSS = (
    "No loss here: the law prices neither a vocabulary nor tying, and losses per token of different vocabularies are "
    "not comparable."
)


@dataclass(frozen=True)
class HeadStep:
    """Another LM head, and how times (ms) and memory (GB) differ with it."""

    step: str
    change: dict[str, float]


def head_steps(problem: Problem, chosen: Architectures) -> list[HeadStep]:
    """Every smaller vocabulary that is tried, and tying where the tables are two; none without an LM head."""
    before = problem.assess(chosen)
    return [
        HeadStep(name, {metric: float(after[metric][0] - before[metric][0]) for metric in HEAD_METRICS})
        for name, after in ((name, problem.assess(other)) for name, other in _others(chosen))
    ]


def _others(chosen: Architectures) -> Iterator[tuple[str, Architectures]]:
    own, tied = int(chosen.vocabulary[0]), bool(chosen.tied[0])
    if own and not tied:
        yield "tied in place of untied", chosen.with_vocabulary(own, tied=True)
    for smaller in VOCABULARIES:
        if smaller < own:
            yield f"vocabulary {own} -> {smaller}", chosen.with_vocabulary(smaller, tied=tied)
