"""Time and memory of an architecture at growing contexts."""

from dataclasses import dataclass, replace

from nas.problem.problem import Problem
from objectives import memory
from objectives.assessment import Assessment
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures

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
