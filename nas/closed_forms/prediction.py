"""Everything the theory says about one problem: budgets, regimes, closed forms, the program, the rounded design."""

from dataclasses import dataclass, replace

import numpy as np

from nas.closed_forms import cases
from nas.closed_forms.budgets import NormalisedBudgets, normalised
from nas.closed_forms.cases import ClosedForm
from nas.closed_forms.costs import COSTS, LATENCIES
from nas.closed_forms.frame import Frame
from nas.closed_forms.posynomial import VARIABLES
from nas.closed_forms.program import Box
from nas.closed_forms.regimes import Regime, regimes
from nas.closed_forms.relaxation import Relaxation, relaxed
from nas.closed_forms.rounding import Rounded, round_off
from nas.errors import InfeasibleError, UsageError
from nas.evaluations import Evaluations
from nas.exact_solution import solve as solve_exactly
from nas.objective import built_in
from nas.picks import PickRule
from nas.problem import Problem
from search_spaces.arrays import FloatArray

NAMES = {"prefill_ms": ("P1", "P2", "P3"), "decode_ms": ("D1", "D2", "D3"), "tpot_ms": ("D1", "D2", "D3")}


LARGEST = 1e15  # milliseconds or GB: beyond, nothing is limited


@dataclass(frozen=True)
class CheckedForm:
    """A closed form at a width: its loss, the budgets it exceeds, the bounds of the space it leaves, ρ* as the paper has it."""

    form: ClosedForm
    loss: float
    exceeds: tuple[str, ...]
    leaves: tuple[str, ...]
    paper_rate: float | None = None

    @property
    def holds(self) -> bool:
        """Whether it is the optimum of the whole problem at its width."""
        return not self.exceeds and not self.leaves


@dataclass(frozen=True, eq=False)
class ExactAnswer:
    """The exact discrete pick (one row), whether the rounded design lies on the exact frontier, how it was covered."""

    pick: Evaluations
    regret: float
    on_frontier: bool
    explanation: str


@dataclass(frozen=True, eq=False)
class Prediction:
    """What the theory says of one problem."""

    frame: Frame
    width: float
    budgets: NormalisedBudgets
    regimes: tuple[Regime, ...]
    forms: tuple[CheckedForm, ...]
    whole: Relaxation
    operator: Relaxation | None
    rounded: Rounded
    exact: ExactAnswer | None


def predict(problem: Problem, width: float | None = None, *, exact: bool = True) -> Prediction:
    """The theory's answer for a problem's budgets.

    Raises:
        UsageError: a law or a budget that the theory does not cover.
        InfeasibleError: nothing between the space's bounds meets the budgets.
    """
    frame = Frame(problem)
    for metric in frame.limits:
        if metric not in COSTS:
            raise UsageError(f"theory: expected budgets on {', '.join(COSTS)}, got {metric}; name one of them")
        if frame.limits[metric] > LARGEST:
            limit = frame.limits[metric]
            raise UsageError(f"theory: {metric}: expected a limit of at most {LARGEST:g}, got {limit:g}; lower it")
    box = frame.box() if width is None else _at_width(frame, width)
    whole = relaxed(frame, box)
    if whole is None:
        raise InfeasibleError(
            "theory: nothing between the space's bounds meets the budgets; python -m nas.run --algo exact says which to relax"
        )
    at = whole.optimum.point["width"]
    rounded = round_off(frame)
    return Prediction(
        frame,
        at,
        normalised(frame.limits, frame.setting),
        regimes(frame.loss, box, frame.setting, frame.limits),
        closed_forms(frame, at),
        whole,
        rounded.lowest if problem.scenario.latency == "operator" else None,
        rounded,
        _exact(frame, rounded) if exact else None,
    )


def _at_width(frame: Frame, width: float) -> Box:
    low, high = frame.box().lower[1], frame.box().upper[1]
    if not low <= width <= high:
        raise UsageError(f"width: expected {low:g} to {high:g}, the space's, got {width:g}; choose one between")
    return frame.box().fixed(width=width)


def closed_forms(frame: Frame, width: float) -> tuple[CheckedForm, ...]:
    """The cases that the budgets allow at a width, each with what it disregards; total budgets have T1 and T3."""
    limits, found = frame.limits, []
    memory = limits.get("memory_gb")
    rate = float(frame.box().lower[4])
    c = frame.problem.scenario.law.coefficients
    for metric in (m for m in LATENCIES if m in limits):
        names = NAMES.get(metric, ("T1", "D2", "T3"))
        layer, budget = layer_cost(frame, metric, width)
        found.append(cases.single(names[0], c, width, rate, layer, budget))
        if memory is not None:
            try:
                both = cases.dual(frame.setting, width, layer, budget, memory * 1e9, rate)
                found.append(replace(both, case=names[2]))
            except ValueError:
                continue  # no point meets both with equality at prices of either sign: one of them does not bind
    if memory is not None:
        stored = cases.memory_only(frame.setting, width, memory * 1e9, rate)
        found.append(replace(stored, case="D2 = P2"))
    return tuple(_checked(frame, form) for form in found)


def layer_cost(frame: Frame, metric: str, width: float) -> tuple[cases.LayerCost, float]:
    """A latency's cost per layer and its budget, in FLOP, bytes or (total) ms."""
    s, limit = frame.setting.scenario, frame.limits[metric]
    prefill, decode = cases.prefill_layer(frame.setting, width), cases.decode_layer(frame.setting, width)
    nothing = cases.LayerCost(0.0, 0.0, 0.0)
    per_flop = 1e3 * s.batch * s.input_tokens / frame.setting.peak
    per_byte = 1e3 * s.output_tokens / s.device.bandwidth
    if metric == "prefill_ms":
        return prefill, limit / per_flop
    if metric == "total_ms":
        return nothing.plus(prefill, per_flop).plus(decode, per_byte), limit
    return decode, limit / (per_byte if metric == "decode_ms" else per_byte / s.output_tokens)


def logs_of(form: ClosedForm) -> FloatArray:
    """Logarithms of a closed form's variables."""
    return np.log([form.depth, form.width, form.ffn_ratio, form.gqa, form.activation_rate])


def _checked(frame: Frame, form: ClosedForm) -> CheckedForm:
    logs, box = logs_of(form), frame.box()
    exceeds = tuple(
        metric
        for metric, limit in frame.limits.items()
        if float(COSTS[metric](frame.setting)(logs)) > limit * (1 + 1e-6)
    )
    values = np.exp(logs)
    leaves = tuple(
        f"{name} {'below' if low else 'above'} {bound:g}"
        for name, value, low_bound, high_bound in zip(VARIABLES, values, box.lower, box.upper, strict=True)
        for low, bound in ((True, low_bound), (False, high_bound))
        if (value < bound * (1 - 1e-9) if low else value > bound * (1 + 1e-9))
    )
    return CheckedForm(form, float(frame.loss(logs)) + frame.least_loss, exceeds, leaves, _paper_rate(frame, form))


def _paper_rate(frame: Frame, form: ClosedForm) -> float | None:
    """The paper's ρ* of D3 at the same r and gqa (ERRATA 5)."""
    if form.case != "D3":
        return None
    eta = normalised(frame.limits, frame.setting).eta
    assert eta is not None
    delta = cases.cache_correction(frame.setting, form.width, form.gqa)
    return cases.decode_dual_rate(eta, form.ffn_ratio, form.gqa, delta, paper_form=True)[0]


def _exact(frame: Frame, rounded: Rounded) -> ExactAnswer | None:
    """The exact pick under the same budgets, and the rounded design's distance from it and from the frontier."""
    problem = frame.problem
    metric = next((m for m in LATENCIES if m in frame.limits), next(iter(frame.limits)))
    two = replace(problem, objectives=(built_in("loss"), built_in(metric)), questions=())
    found = solve_exactly(two, (PickRule(None),))
    pick = found.picks[0]
    if pick is None or rounded.design is None:
        return None
    regret = float(rounded.design.metrics["loss"][0] - pick.metrics["loss"][0])
    return ExactAnswer(pick, regret, bool(np.isin(rounded.design.keys, found.frontier.keys)[0]), found.explanation)
