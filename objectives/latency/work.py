"""FLOPs and bytes of operators in whole phases, whatever a device makes of them."""

from collections.abc import Iterable

from objectives.latency.operator import Operator, Phase, Values


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
