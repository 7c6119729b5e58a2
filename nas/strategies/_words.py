"""Sizes of what was learned, in words."""

from nas.problem.objective import Objective


def size(metric: Objective, sd: float) -> str:
    """A difference on a metric's own scale: in percent of a logarithm, else in its unit."""
    return f"{100 * sd:.2g} %" if metric.log_scale else f"{sd:.2g}{' ' * bool(metric.unit)}{metric.unit}"
