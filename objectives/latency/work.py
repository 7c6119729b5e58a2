"""FLOPs and bytes of operators in whole phases, whatever a device makes of them."""

from collections.abc import Callable, Iterable

import numpy as np

from objectives.dimensions import Dimensions
from objectives.latency.operator import CHUNK, Operator, Phase, Values, phases
from objectives.latency.operators import OF_PART, ffn_operators, head_operators, mixer_operators
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.columns import Part

Work = Callable[[Dimensions, Phase, Scenario], FloatArray]


def operator_work(operator: Operator, phase: Phase) -> tuple[Values, Values]:
    """FLOPs and bytes of all instances of an operator over a phase, each (n,): Σ over passes; S_kv from first to last."""
    context = phase.context(operator.window)
    flops, moved = operator.flops * phase.passes, operator.bytes * phase.passes
    if operator.flops_per_kv is not None and operator.bytes_per_kv is not None:
        flops, moved = flops + operator.flops_per_kv * context, moved + operator.bytes_per_kv * context
    if operator.epilogue_flops is not None:
        flops = flops + operator.epilogue_flops * phase.passes
    return operator.count * flops, operator.count * moved


def total_work(operators: Iterable[Operator], phase: Phase) -> tuple[Values, Values]:
    """FLOPs and bytes of some operators over a phase."""
    work = [operator_work(operator, phase) for operator in operators]
    return sum((flops for flops, _ in work), 0.0), sum((moved for _, moved in work), 0.0)


def phase_work(x: Dimensions, phase: Phase, scenario: Scenario) -> FloatArray:
    """FLOPs and bytes of whole architectures over a phase, (2, n)."""
    layer = total_work([*mixer_operators(x, phase, scenario), *ffn_operators(x, phase, scenario)], phase)
    head = total_work(head_operators(x, phase, scenario), phase)
    return np.stack([x.depth * of_layer + of_head for of_layer, of_head in zip(layer, head, strict=True)])


def request_work(architectures: Architectures, scenario: Scenario) -> FloatArray:
    """FLOPs and bytes of a whole request, prefill and decode, (2, n)."""
    return _over_request(architectures, scenario, phase_work)


def part_work(architectures: Architectures, scenario: Scenario, part: Part) -> FloatArray:
    """FLOPs and bytes of a layer's attention or FFN, or of the head (`base`), over a whole request, (2, n)."""

    def work(x: Dimensions, phase: Phase, scenario: Scenario) -> FloatArray:
        flops, moved = total_work(OF_PART[part](x, phase, scenario), phase)
        return np.stack(np.broadcast_arrays(flops, moved, x.depth)[:2])

    return _over_request(architectures, scenario, work)


def _over_request(architectures: Architectures, scenario: Scenario, work: Work) -> FloatArray:
    """Work of both phases together, (2, n); in cache-sized blocks."""
    found = np.zeros((2, len(architectures)))
    for start in range(0, len(architectures), CHUNK):
        x = Dimensions(architectures[start : start + CHUNK])
        for phase in phases(scenario):
            found[:, start : start + CHUNK] += work(x, phase, scenario)
    return found
