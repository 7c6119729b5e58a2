"""Changes of a design's times and bytes with a smaller vocabulary, or one shared table."""

from collections.abc import Iterator
from dataclasses import dataclass

from nas.problem.problem import Problem
from search_spaces.architectures import Architectures

VOCABULARIES = (128_000, 64_000, 32_000, 16_000)  # tried in place of a larger one, the largest first
HEAD_METRICS = ("loss", "prefill_ms", "decode_ms", "total_ms", "resident_gb")
AT_EQUAL_TEXT = (
    "At equal text, of which a smaller vocabulary makes more tokens; its loss is by published runs that differ in their "
    "vocabulary (docs/vocabulary.md). What tying costs in loss is not known."
)


@dataclass(frozen=True)
class HeadStep:
    """Another LM head, and how loss (nats), times (ms) and memory (GB) differ with it at equal text."""

    step: str
    change: dict[str, float]


def head_steps(problem: Problem, chosen: Architectures) -> list[HeadStep]:
    """Every smaller vocabulary that is tried, and tying where the tables are two; none without an LM head, or where bytes per token are not counted."""
    found = []
    try:
        problem = problem.at_equal_text()
        before = problem.assess(chosen)
        for name, other in _others(chosen):
            after = problem.assess(other)
            found.append(
                HeadStep(name, {metric: float(after[metric][0] - before[metric][0]) for metric in HEAD_METRICS})
            )
    except ValueError:
        return []
    return found


def _others(chosen: Architectures) -> Iterator[tuple[str, Architectures]]:
    own, tied = int(chosen.vocabulary[0]), bool(chosen.tied[0])
    if own and not tied:
        yield "tied in place of untied", chosen.with_vocabulary(own, tied=True)
    for smaller in VOCABULARIES:
        if smaller < own:
            yield f"vocabulary {own} -> {smaller}", chosen.with_vocabulary(smaller, tied=tied)
