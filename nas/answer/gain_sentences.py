"""Gains of relaxing a budget or an axis, in sentences and as plain content."""

import math
from typing import Any

from nas.answer.design_words import describe
from nas.exact.gains import BudgetGain, Gain, Gains
from nas.problem.diagnosis import at_least
from nas.problem.problem import Problem
from nas.problem.quantity_words import in_words
from search_spaces.architectures import Architectures, one
from search_spaces.columns import SHAPE
from search_spaces.layer_kinds import KIND_DEFAULTS
from search_spaces.specification import FURTHER_AXES

STEPS = {"expert_size": "m", "expert_ffn_ratio": "r_single"}


def gain_lines(problem: Problem, gains: Gains, loss: float) -> list[str]:
    """The pick within the budgets, then each budget and each axis that holds a better design back."""
    best, pick = float(gains.pick.metrics["loss"][0]), problem.architectures(gains.pick.genotypes)
    named = "This is" if math.isclose(loss, best, rel_tol=1e-11) else f"Not this one, but {describe(pick)} is"
    lines = ["", "What more would buy, solved exactly"]
    lines.append(f"  {named} the lowest loss within the budgets: {best:.4f} nats")
    lines += [f"  {_budget(gain)}" for gain in gains.budgets]
    lines += [
        f"  {in_words(gain.change)} {gain.at:,g}, one step beyond its axis: {_bought(gain)}" for gain in gains.axes
    ]
    if not gains.axes:
        lines.append("  no axis: one step beyond any of them buys nothing within the budgets")
    bought = [*gains.axes, *(gain.relaxed for gain in gains.budgets if gain.relaxed is not None)]
    return lines + ["  * extrapolates the law"] * any(gain.extrapolates for gain in bought)


def _budget(gain: BudgetGain) -> str:
    budget = gain.budget
    free = f"costs nothing down to {budget.with_unit(gain.tightest, at_least(gain.tightest))}"
    if gain.relaxed is None:
        return f"{budget}: {free}; relaxing it alone buys nothing"
    more = 100 * (gain.relaxed.at / budget.limit - 1)
    at = budget.with_unit(gain.relaxed.at, at_least(gain.relaxed.at))
    needed = f"the next better design needs {at} (+{more:.2g} %)"
    return f"{budget}: {free}; {needed}: {_bought(gain.relaxed)}"


def _bought(gain: Gain) -> str:
    star = "*" if gain.extrapolates else ""
    return f"loss {gain.loss:.4f}{star} nats (−{gain.gain:.2g} nats) by {describe(_architecture(gain))}"


def _architecture(gain: Gain) -> Architectures:
    return one({name: gain.design[name] for name in (*SHAPE, *KIND_DEFAULTS, *FURTHER_AXES) if name in gain.design})


def described(gains: Gains) -> dict[str, Any]:
    """Gains as JSON content."""
    return {
        "loss": float(gains.pick.metrics["loss"][0]),
        "budgets": [
            {
                "metric": gain.budget.metric,
                "limit": gain.budget.limit,
                "tightest": gain.tightest,
                "relaxed": None if gain.relaxed is None else vars(gain.relaxed),
            }
            for gain in gains.budgets
        ],
        "axes": [vars(gain) for gain in gains.axes],
    }
