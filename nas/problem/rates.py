"""Rates, of which more is better: each is an amount over a cost, so that a limit on it is one on the cost."""

import importlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nextafter

from objectives.assessment import stating
from objectives.scenario import Workload


@dataclass(frozen=True)
class Rate:
    """rate = amount / cost, both positive; `amount` is that of a workload."""

    name: str
    cost: str
    amount: float

    def at(self, cost: float) -> float:
        """The rate of a cost, in floating point as the metric's module divides."""
        return self.amount / cost

    def largest_cost(self, least: float) -> float:
        """The largest cost whose rate is at least `least`: cost <= it exactly where rate >= least.

        The quotient of floating-point numbers falls weakly with the cost, so that there is one; amount / least misses
        it by a few last digits at most.
        """
        cost = min(max(self.amount / least, 5e-324), sys.float_info.max)
        while self.at(cost) < least:
            cost = nextafter(cost, 0.0)
        while (further := nextafter(cost, inf)) < inf and self.at(further) >= least:
            cost = further
        return cost


def costs() -> dict[str, str]:
    """The cost of every shipped rate by the rate's name."""
    return stating("COST")


def is_rate(name: str) -> bool:
    """Whether a metric, or a quantile of it, is a rate."""
    return name.partition("@")[0] in costs()


def cost_of(name: str) -> str:
    """The cost of a rate, at its quantile: `tpot_ms@q90` of `tokens_per_second@q90`; any other metric is its own."""
    base, at, level = name.partition("@")
    return f"{costs().get(base, base)}{at}{level}"


def rate_of(name: str, workload: Workload) -> Rate | None:
    """A rate of a workload by its name, at a quantile too; None of any other metric."""
    if not is_rate(name):
        return None
    module = importlib.import_module(f"objectives.metrics.{name.partition('@')[0]}")
    return Rate(name, cost_of(name), float(module.amount(workload)))


def rates_by_cost(names: Iterable[str], workload: Workload) -> dict[str, Rate]:
    """The rates among some metrics, each by its cost; of two over one cost the first."""
    rates: dict[str, Rate] = {}
    for name in names:
        if (rate := rate_of(name, workload)) is not None:
            rates.setdefault(rate.cost, rate)
    return rates


def as_costs(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Objectives with the cost in place of each rate, and what to say of them."""
    lines = [
        f"{name} is greatest where {cost_of(name)} is least, which is minimised: the frontier is the same"
        for name in names
        if is_rate(name)
    ]
    return list(dict.fromkeys(map(cost_of, names))), lines


def limits_of_costs(limits: Mapping[str, float], workload: Workload) -> tuple[dict[str, float], list[str]]:
    """The same limits with `cost <= limit` in place of each `rate >= limit`, and what to say of them.

    A quantile stays: `tokens_per_second@q90 >= 20` is `tpot_ms@q90 <= 50`. Of two limits on one cost the tighter holds.
    """
    found = {name: limit for name, limit in limits.items() if not is_rate(name)}
    lines = []
    for name, least in limits.items():
        rate = rate_of(name, workload)
        if rate is None:
            continue
        most = rate.largest_cost(least)
        lines.append(f"{name} >= {least:g} is {rate.cost} <= {most:.6g}")
        found[rate.cost] = min(most, found.get(rate.cost, inf))
    return found, lines
