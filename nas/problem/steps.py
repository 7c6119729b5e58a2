"""Changes of a design's times and bytes with a smaller vocabulary, or one shared table."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from nas.problem.problem import Problem
from objectives import memory
from objectives.assessment import Assessment
from objectives.scenario import Scenario
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


CONTEXTS = tuple(1024 * 2**i for i in range(8))  # 1k to 128k tokens
LONG = 8192  # prompts from which on a study is of long context


@dataclass(frozen=True)
class AtContext:
    """One architecture after a prompt: times in ms, memory in GB; `cache_gb` holds KV caches and states, part of `resident_gb`."""

    tokens: int
    prefill_ms: float
    tpot_ms: float
    cache_gb: float
    resident_gb: float
    fits: bool


def has_long_contexts(problem: Problem) -> bool:
    """Whether contexts are what a study is about: it reads long prompts, or chooses between kinds of layers."""
    return problem.scenario.input_tokens >= LONG or problem.space.specification.axes.layers is not None


def along_contexts(problem: Problem, chosen: Architectures) -> list[AtContext]:
    """A single architecture (n = 1) after each prompt of `CONTEXTS`, all else as the study has it.

    `fits`: what must be resident is within the device's memory.

    Raises:
        ValueError: the latency model does not cover the architecture.
    """
    scenario = problem.pricing(chosen)
    return [_at(chosen, replace(scenario, input_tokens=tokens)) for tokens in CONTEXTS]


def _at(chosen: Architectures, scenario: Scenario) -> AtContext:
    found = Assessment(chosen, scenario)
    parts = memory.resident_parts_gb(found.dimensions, found.parameters, scenario)
    cache = sum(float(parts[name][0]) for name in ("kv cache", "states") if name in parts)
    prefill, step, resident = (float(found[name][0]) for name in ("prefill_ms", "tpot_ms", "resident_gb"))
    return AtContext(scenario.input_tokens, prefill, step, cache, resident, resident <= scenario.device.memory_gb)
