"""Operator latency: each operator takes max(FLOPs/π, bytes/β), with what the last-level cache still holds; layers and passes add up."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from objectives.dimensions import Dimensions
from objectives.latency.operator import CHUNK, Operator, Pass, Phase, Values, passes, total_work
from objectives.latency.operators import (
    OF_PART,
    blocks_of,
    drafting_operators,
    ffn_operators,
    head_operators,
    mixer_operators,
)
from objectives.scenario import Scenario
from search_spaces.arrays import FloatArray
from search_spaces.columns import Part

Line = tuple[Values, Values]  # constant and slope in S_kv


@dataclass(frozen=True, eq=False)
class OperatorTime:
    """Seconds of an operator over all passes of a phase, (n,), all its instances together.

    `compute` and `memory` are its two roofline sides; `seconds` takes the larger in every pass, and what comes on
    top of it. `bound` is the larger side alone, of one instance.
    """

    operator: Operator
    seconds: Values
    compute: Values
    memory: Values
    bound: Values


def time_operator(operator: Operator, phase: Phase, scenario: Scenario, hits: FloatArray | None = None) -> OperatorTime:
    """Σ over passes of max(F/(η_c π), B/(η_b β)) + τ + epilogue, times the instances; of `hits`, a share, from the cache."""
    found = _from_memory(operator, phase, scenario)
    if hits is None:
        return found
    inner = _from_memory(operator, phase, scenario.in_cache())
    seconds, memory, bound = (
        (1.0 - hits) * getattr(found, name) + hits * getattr(inner, name) for name in ("seconds", "memory", "bound")
    )
    return replace(found, seconds=seconds, memory=memory, bound=bound)


def _from_memory(operator: Operator, phase: Phase, scenario: Scenario) -> OperatorTime:
    per_flop, per_byte = rates(operator, phase, scenario)
    bound = _bound(operator, phase, per_flop, per_byte)
    compute = _side(operator.flops * per_flop, operator.flops_per_kv, per_flop, operator, phase)
    memory = _side(operator.bytes * per_byte, operator.bytes_per_kv, per_byte, operator, phase)
    seconds = operator.count * (bound + _fixed(operator, phase, scenario))
    return OperatorTime(operator, seconds, operator.count * compute, operator.count * memory, bound)


def _bound(operator: Operator, phase: Phase, per_flop: Values, per_byte: Values) -> Values:
    """Σ over passes of the larger side, seconds of one instance; beyond a window both stay as they are there."""
    compute, memory = operator.flops * per_flop, operator.bytes * per_byte
    if operator.flops_per_kv is None or operator.bytes_per_kv is None:
        larger: Values = np.maximum(compute, memory)
        return larger if phase.passes == 1 else phase.passes * larger
    a, b = (compute, operator.flops_per_kv * per_flop), (memory, operator.bytes_per_kv * per_byte)
    if operator.window is None:
        return sum_of_larger(a, b, phase.first_kv, phase.last_kv)
    growing = _growing(operator.window, phase)
    within = sum_of_larger(a, b, phase.first_kv, growing)
    at_window = np.maximum(a[0] + a[1] * operator.window, b[0] + b[1] * operator.window)
    return within + (phase.last_kv - growing) * at_window


def _side(constant: Values, per_kv: Values | None, rate: float | Values, operator: Operator, phase: Phase) -> Values:
    """Σ over passes of one side, seconds of one instance."""
    if per_kv is None:
        return float(phase.passes) * constant
    slope = per_kv * rate
    if operator.window is None:
        return line_sum(constant, slope, phase.first_kv, phase.last_kv)
    growing = _growing(operator.window, phase)
    within = line_sum(constant, slope, phase.first_kv, growing)
    return within + (phase.last_kv - growing) * (constant + slope * operator.window)


def _growing(window: Values, phase: Phase) -> Values:
    """The last context length up to which a layer with a window sees more from pass to pass."""
    last: Values = np.minimum(np.maximum(window, phase.first_kv - 1), phase.last_kv)
    return last


def _fixed(operator: Operator, phase: Phase, scenario: Scenario) -> Values:
    """Launches, what comes once in the phase, and the epilogue, seconds of one instance."""
    launched = scenario.overhead_s(phase.name) or operator.wait_seconds
    fixed = operator.fixed_seconds + (launch_seconds(operator, phase, scenario) if launched else 0.0)
    return fixed if operator.epilogue_flops is None else fixed + epilogue_seconds(operator, phase, scenario)


def rates(
    operator: Operator, phase: Phase, scenario: Scenario, hits: FloatArray | None = None
) -> tuple[Values, Values]:
    """Seconds a FLOP and seconds a byte of an operator: 1/(η_c π) and 1/(η_b β) with the factors of its kind.

    Of `hits`, a share of the bytes, at the cache's rate.
    """
    if operator.own_rates is not None:
        return operator.own_rates
    if hits is not None:
        (per_flop, slow), (_, fast) = (rates(operator, phase, each) for each in (scenario, scenario.in_cache()))
        return per_flop, (1.0 - hits) * slow + hits * fast
    of_flops, of_bytes = scenario.factors(operator.kind, phase.name, phase.tokens)
    per_flop, per_byte = scenario.seconds_per_flop(operator.peak), scenario.seconds_per_byte(phase.name)
    if operator.routed is None:
        return per_flop / of_flops, per_byte / of_bytes
    streamed = scenario.seconds_per_byte(phase.name, routed=True) / of_bytes
    dense = per_flop / scenario.factors("plain", phase.name, phase.tokens)[0]
    return _of_experts(per_flop / of_flops, dense, operator.routed), _of_experts(streamed, per_byte, operator.routed)


def _of_experts(routed: float, plain: float, where: FloatArray) -> Values:
    """A rate where there are routed experts, and where there are none; their weights stream by in the prefill too."""
    return plain if routed == plain else np.where(where > 0, routed, plain)


def launch_seconds(operator: Operator, phase: Phase, scenario: Scenario) -> Values:
    """τ of every pass and what it waits for, seconds of one instance over a phase, (n,)."""
    return operator.present * ((scenario.overhead_s(phase.name) + operator.wait_seconds) * phase.passes)


def epilogue_seconds(operator: Operator, phase: Phase, scenario: Scenario) -> Values:
    """Fused dequantise at the FP16 peak, seconds of one instance over a phase, (n,); 0 without."""
    if operator.epilogue_flops is None:
        return 0.0
    return operator.epilogue_flops * (scenario.seconds_per_flop("fp16") * phase.passes)


def line_sum(constant: Values, slope: Values, first: Values, last: Values) -> Values:
    """Σ_{s=first…last} (constant + slope·s); 0 where last < first."""
    return (last - first + 1) * (constant + slope * (0.5 * (first + last)))


def sum_of_larger(a: Line, b: Line, first: int, last: Values) -> Values:
    """Σ_{s=first…last} max(a_0 + a_1 s, b_0 + b_1 s), exact in O(1).

    Two lines cross at most once: the flatter is the larger up to the crossing, the steeper after it.
    """
    (a_0, a_1), (b_0, b_1) = a, b
    if isinstance(last, int) and first == last:
        return np.maximum(a_0 + a_1 * first, b_0 + b_1 * first)
    slope, gap = np.asarray(a_1 - b_1), np.asarray(b_0 - a_0)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = np.where(slope == 0.0, np.where(gap < 0.0, np.inf, -np.inf), np.floor(gap / slope))
    turn = np.minimum(np.maximum(crossing, first - 1), last)
    a_later = slope > 0.0
    low_0, low_1 = np.where(a_later, b_0, a_0), np.where(a_later, b_1, a_1)
    high_0, high_1 = np.where(a_later, a_0, b_0), np.where(a_later, a_1, b_1)
    total: Values = line_sum(low_0, low_1, first, turn) + line_sum(high_0, high_1, turn + 1, last)
    return total


@dataclass(frozen=True, eq=False)
class PhaseTimes:
    """Operators of a pass with their times: `attention` and `ffn` per layer, `head` per pass; hits of the cache, if any."""

    one: Pass
    hits: FloatArray | None
    attention: list[OperatorTime]
    ffn: list[OperatorTime]
    head: list[OperatorTime]


def phase_times(x: Dimensions, one: Pass) -> PhaseTimes:
    """All operators of a pass; `explain` shows them, `pass_seconds` adds them."""
    phase, scenario = one.phase, one.scenario
    hits = hits_of(x, phase, scenario)

    def timed(operators: Iterable[Operator]) -> list[OperatorTime]:
        return [time_operator(operator, phase, scenario, hits) for operator in operators]

    return PhaseTimes(
        one,
        hits,
        timed(mixer_operators(x, phase, scenario)),
        timed(ffn_operators(x, phase, scenario)),
        timed(base_operators(x, one)),
    )


def base_operators(x: Dimensions, one: Pass) -> Iterator[Operator]:
    """What a pass has once: the LM head, what a head for multi-token prediction has beside its layer, a draft model."""
    if one.head:
        yield from head_operators(x, one.phase, one.scenario)
    if one.one_layer:
        yield from drafting_operators(x, one.phase, one.scenario)
    elif one.scenario.serving.with_draft and not one.name:
        yield draft_operator(x, one.phase, one.scenario)


def draft_operator(x: Dimensions, phase: Phase, scenario: Scenario) -> Operator:
    """The draft model as a constant: n of its decode passes at each place, or its prefill.

    Raises:
        ValueError: no draft model is given.
    """
    serving, none = scenario.serving, 0.0 * x.width
    if serving.draft is None:
        raise ValueError(f"draft: expected a model beside speculation {serving.speculation}, got none; give one")
    prefill, decode = (ms[0] * 1e-3 for ms in latency_ms(Dimensions(serving.draft), scenario.plainly()))
    seconds = prefill if phase.name == "prefill" else serving.drafted * decode
    return Operator("draft_model", none, none, present=none, fixed_seconds=float(seconds))


def pass_seconds(x: Dimensions, alike: Sequence[Pass], mixer: FloatArray | None = None) -> list[FloatArray]:
    """l · (Σ attention + Σ FFN) + Σ head, seconds of a pass in each scenario, each (n,); of one layer l is 1.

    The scenarios differ in device and calibration alone: a layer's operators are built once for all of them, those
    of the FFN once for each overlap of routing, and once for each rate of slow memory. `mixer` is Σ attention where it is
    known already, in one scenario.
    """
    phase, first = alike[0].phase, alike[0].scenario
    attention = list(mixer_operators(x, phase, first)) if mixer is None else []
    slow = first.serving.slow_share > 0.0
    kinds = [(id(one.scenario) if slow else one.scenario.routing_overlap) for one in alike]
    by_kind = dict(zip(kinds, alike, strict=True))
    ffns = {kind: list(ffn_operators(x, phase, one.scenario)) for kind, one in by_kind.items()}
    depth = alike[0].depth(x)

    def seconds(one: Pass, kind: float) -> FloatArray:
        hits = hits_of(x, phase, one.scenario)
        timed = partial(timed_seconds, phase=phase, scenario=one.scenario, hits=hits, alike={})
        layer = (timed(attention) if mixer is None else mixer) + timed(ffns[kind])
        found: FloatArray = depth * layer + timed(base_operators(x, one))
        return found

    return [seconds(one, kind) for one, kind in zip(alike, kinds, strict=True)]


Rates = dict[tuple[str, str, bool, tuple[float, float] | None], tuple[Values, Values]]


def timed_seconds(
    operators: Iterable[Operator], phase: Phase, scenario: Scenario, hits: FloatArray | None, alike: Rates
) -> Values:
    """Σ of `time_operator`'s seconds, in operator order, without the rest of what it says: of a small batch that is half the work."""
    seconds: Values = 0.0
    for operator in operators:
        if hits is not None:
            seconds = seconds + time_operator(operator, phase, scenario, hits).seconds
            continue
        each = operator_seconds(operator, phase, scenario, alike)
        one = isinstance(operator.count, float) and operator.count == 1.0
        seconds = seconds + (each if one else operator.count * each)
    return seconds


def operator_seconds(operator: Operator, phase: Phase, scenario: Scenario, alike: Rates) -> Values:
    """Seconds of one instance of an operator over all passes of a phase, read from memory, (n,).

    `alike` keeps the rates of operators of one peak and kind; all that are routed are so in the same rows.
    """
    sort = (operator.peak, operator.kind, operator.routed is not None, operator.own_rates)
    if sort not in alike:
        alike[sort] = rates(operator, phase, scenario)
    bound, fixed = _bound(operator, phase, *alike[sort]), _fixed(operator, phase, scenario)
    return bound if isinstance(fixed, float) and fixed == 0.0 else bound + fixed


def part_seconds(
    x: Dimensions, scenario: Scenario, phase: Literal["prefill", "decode"], part: Part
) -> tuple[FloatArray, FloatArray]:
    """Seconds of attention or FFN, or of the head (`base`), in a whole phase: of every layer, and once, each (n,).

    All are read from memory. The one layer that drafts counts once.
    """
    found = np.zeros((2, len(x.architectures)))
    for one in passes(scenario):
        if one.phase.name != phase:
            continue
        once = int(part == "base" or one.one_layer)
        for rows, block in x.blocks(CHUNK):
            operators = part_operators(block, one, part)
            found[once, rows] += one.time_share * timed_seconds(operators, one.phase, one.scenario, None, {})
    return found[0], found[1]


def part_operators(x: Dimensions, one: Pass, part: Part) -> Iterator[Operator]:
    """Operators of a pass by part of an architecture."""
    return base_operators(x, one) if part == "base" else OF_PART[part](x, one.phase, one.scenario)


def latency_ms(x: Dimensions, scenario: Scenario, mixer: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
    """Prefill and decode of the operator model, ms, each (n,); `mixer` is a layer's in seconds where it is known already, (2, n)."""
    return latencies_ms(x, [scenario], mixer)[0]


def latencies_ms(
    x: Dimensions, scenarios: Sequence[Scenario], mixer: FloatArray | None = None
) -> list[tuple[FloatArray, FloatArray]]:
    """`latency_ms` in each of scenarios that differ in device and calibration alone; in cache-sized blocks."""
    result = np.zeros((len(scenarios), 2, len(x.architectures)))
    alike = list(zip(*(passes(scenario) for scenario in scenarios), strict=True))
    for rows, block in x.blocks(CHUNK):
        for each in alike:
            row = int(each[0].phase.name == "decode")
            known = None if mixer is None else mixer[row, rows]
            for place, (one, seconds) in enumerate(zip(each, pass_seconds(block, each, known), strict=True)):
                result[place, row, rows] += one.time_share * seconds
    result *= 1e3
    return [(prefill, decode) for prefill, decode in result]


#: How fast hits fall beyond capacity: (C/W)^FALL is within 0.03 of h = exp(-(1 - h) W/C), the hits of a pass over W bytes
#: again and again in a cache of C bytes that replaces at random.
FALL = 2.25


def hit_share(working_set: Values, capacity: float) -> Values:
    """h = min(1, C/W)^2.25: the share of a working set W that a cache of C bytes serves, (n,)."""
    found: Values = np.minimum(1.0, capacity / working_set) ** FALL
    return found


def hits_of(x: Dimensions, phase: Phase, scenario: Scenario) -> FloatArray | None:
    """The share of each operator that a decode pass finds in the cache, (n,); None where none is known to matter."""
    if phase.name == "prefill" or not scenario.cached:
        return None
    return np.asarray(hit_share(working_set(x, phase, scenario), scenario.device.cache or 0.0))


def working_set(x: Dimensions, phase: Phase, scenario: Scenario) -> FloatArray:
    """W: bytes that decode passes come back to, (n,): l layers and the head, under uniform routing."""
    layer = part_working_set(x, phase, scenario, "attention") + part_working_set(x, phase, scenario, "ffn")
    found: FloatArray = x.depth * layer + part_working_set(x, phase, scenario, "base")
    return found


def part_working_set(x: Dimensions, phase: Phase, scenario: Scenario, part: Part) -> Values:
    """The working set of a layer's attention or FFN, or of the head: bytes of a mean pass; experts that it leaves out count half.

    They come back, after E/K passes on average, and find less than what every pass reads.
    """
    plain = replace(scenario, calibration=None)
    moved = total_work(OF_PART[part](x, phase, plain), phase)[1] / phase.passes
    if part != "ffn":
        return moved
    left: Values = 0.0
    for block, share in blocks_of(x, "ffns"):
        layers = block.kinds.experts * (1.0 if share is None else share)
        unread = layers * (block.n_experts - block.touched_experts(phase.tokens)) * block.expert_size * block.width
        up, down = plain.precision.bytes_of_ffn(block.sparse)
        left = left + 0.5 * unread * (block.before_activation * up + down)
    return moved + left
