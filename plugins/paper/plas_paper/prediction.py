"""Everything the theory says about one problem: the optimum, its bound, the best design, designs worth training; or why nothing fits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from nas.errors import InfeasibleError, UsageError
from nas.exact.solution import solve as solve_exactly
from nas.problem.evaluations import Evaluations, joined
from nas.problem.objective import built_in, unit_of
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.terminal.doors import command
from plas_paper import cases
from plas_paper.cases import ClosedForm
from plas_paper.costs import COSTS, LATENCIES
from plas_paper.program import VARIABLES, Box
from plas_paper.regimes import NormalisedBudgets, Regime, normalised, regimes
from plas_paper.relaxation import Relaxation, relaxed
from plas_paper.theory_problem import TheoryProblem, no_closed_form
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, BoolArray, FloatArray, IntArray

NAMES = {"prefill_ms": ("P1", "P2", "P3"), "decode_ms": ("D1", "D2", "D3"), "tpot_ms": ("D1", "D2", "D3")}


LARGEST = 1e15  # milliseconds or GB: beyond, nothing is limited


LOOKED_AT = 200  # designs whose losses are looked at before anything is solved
PAIRS = 300  # (E, K) that are relaxed; of more, those nearest the program's activation rate


@dataclass(frozen=True)
class CheckedForm:
    """A closed form at a width: its loss, the budgets it exceeds, the bounds of the space it leaves, ρ* as the paper has it.

    `experts` is the (E, K) of the space nearest to ρ*, `operator_ms` what the form takes with it under the operator model.
    """

    form: ClosedForm
    loss: float
    exceeds: tuple[str, ...]
    leaves: tuple[str, ...]
    experts: tuple[int, int]
    operator_ms: dict[str, float]
    paper_rate: float | None = None

    @property
    def holds(self) -> bool:
        """Whether it is the optimum of the whole problem at its width: of a problem with fewer limits, and meets them all."""
        return not self.exceeds and not self.leaves


@dataclass(frozen=True, eq=False)
class Prediction:
    """The theory's prediction for one problem; `no_forms`: why its law has no closed forms ("" where it has).

    best: the design of the lowest loss within the budgets (one row), of the exact `frontier` of loss and a latency; `covered`
    says how it was found.
    """

    theory: TheoryProblem
    width: float
    budgets: NormalisedBudgets
    regimes: tuple[Regime, ...]
    forms: tuple[CheckedForm, ...]
    no_forms: str
    whole: Relaxation
    operator: Relaxation | None
    best: Evaluations
    frontier: Evaluations
    covered: str


def _refuse_boundless(problem: Problem) -> None:
    """A law whose losses leave the range of numbers in the space is refused; at both ends of it and at random designs."""
    space = problem.space
    ends = space.genotypes(np.array([0, space.size - 1]))
    some = problem.evaluate(np.concatenate([ends, space.sample(LOOKED_AT, np.random.default_rng(0))]), ("loss",))
    if not some.ok.all():
        reason = next(filter(None, some.reasons or ()))
        raise UsageError(
            f"theory: expected a law with finite losses all over the space, got {reason}; give another law"
        )


def predict(problem: Problem, width: float | None = None) -> Prediction:
    """The theory's answer for a problem's budgets.

    Raises:
        UsageError: a law, a budget or a space that the theory does not cover.
        InfeasibleError: nothing between the space's bounds, or no design, meets the budgets.
    """
    _refuse_boundless(problem)
    theory = TheoryProblem(problem)
    for metric in theory.limits:
        if "@" in metric:
            raise UsageError(
                f"theory: expected a budget on predictions, got {metric}, to which each design has a factor of its own; "
                f"give {metric.partition('@')[0]} a limit, or use plas run --algo exact"
            )
        if metric not in COSTS:
            got = next(one.rate.name if one.rate else metric for one in problem.budgets if one.metric == metric)
            raise UsageError(f"theory: expected budgets on {', '.join(COSTS)}, got {got}; name one of them")
        if theory.limits[metric] > LARGEST:
            limit = theory.limits[metric]
            raise UsageError(f"theory: {metric}: expected a limit of at most {LARGEST:g}, got {limit:g}; lower it")
    box = theory.box() if width is None else _at_width(theory, width)
    whole = relaxed(theory, box)
    if whole is None:
        raise nothing_fits(theory) if width is None else nothing_between(theory, box, width)
    at = whole.optimum.point["width"]
    best, frontier, covered = _best(theory)
    return Prediction(
        theory,
        at,
        normalised(theory.limits, theory.setting),
        regimes(theory.loss, box, theory.setting, theory.limits),
        closed_forms(theory, at),
        no_closed_form(problem.scenario.law),
        whole,
        with_operators(theory, width) if problem.scenario.latency == "operator" else None,
        best,
        frontier,
        covered,
    )


def with_operators(theory: TheoryProblem, width: float | None) -> Relaxation | None:
    """The lowest relaxation of any (E, K), at one width if it is given; None where nothing of it meets the budgets."""
    relaxations = []
    for experts, top_k in nearest_pairs(theory).tolist():
        box = theory.box(pair=(experts, top_k))
        relaxations.append(relaxed(theory, box if width is None else box.fixed(width=width), (experts, top_k)))
    return min((r for r in relaxations if r is not None), key=lambda r: r.bound, default=None)


def nearest_pairs(theory: TheoryProblem) -> IntArray:
    """The (E, K) to relax, (n, 2)."""
    pairs = theory.pairs
    whole = relaxed(theory, theory.box()) if len(pairs) > PAIRS else None
    if whole is None:
        return pairs
    away = np.abs(np.log(pairs[:, 1] / pairs[:, 0]) - whole.optimum.logs[4])
    return pairs[np.lexsort((pairs[:, 1], np.round(away, 2)))[:PAIRS]]


def _at_width(theory: TheoryProblem, width: float) -> Box:
    low, high = theory.box().lower[1], theory.box().upper[1]
    if not low <= width <= high:
        raise UsageError(f"width: expected {low:g} to {high:g}, the space's, got {width:g}; choose one between")
    return theory.box().fixed(width=width)


def closed_forms(theory: TheoryProblem, width: float) -> tuple[CheckedForm, ...]:
    """The cases that the budgets allow at a width, each with what it disregards; total budgets have T1 and T3.

    None for a law that they are not solved for; no D3, P3 or T3 where no prices meet both budgets with equality.
    """
    limits, forms = theory.limits, list[ClosedForm]()
    if no_closed_form(theory.problem.scenario.law):
        return ()
    memory = limits.get("memory_gb")
    rate = float(theory.box().lower[4])
    c = theory.problem.scenario.law.coefficients
    for metric in (m for m in LATENCIES if m in limits):
        names = NAMES.get(metric, ("T1", "D2", "T3"))
        layer, budget = layer_cost(theory, metric, width)
        forms.append(cases.single(names[0], c, width, rate, layer, budget))
        if memory is not None:
            both = cases.dual(theory.setting, width, layer, budget, memory * 1e9, rate)
            forms += [] if both is None else [replace(both, case=names[2])]
    if memory is not None:
        stored = cases.memory_only(theory.setting, width, memory * 1e9, rate)
        forms.append(replace(stored, case="D2 = P2"))
    return tuple(_checked(theory, form) for form in forms)


def layer_cost(theory: TheoryProblem, metric: str, width: float) -> tuple[cases.LayerCost, float]:
    """A latency's cost per layer and its budget, in FLOP, bytes or (total) ms."""
    s, limit = theory.setting.scenario, theory.limits[metric]
    prefill, decode = cases.prefill_layer(theory.setting, width), cases.decode_layer(theory.setting, width)
    nothing = cases.LayerCost(0.0, 0.0, 0.0)
    per_flop = 1e3 * s.batch * s.input_tokens / theory.setting.peak
    per_byte = 1e3 * s.output_tokens / s.device.bandwidth
    if metric == "prefill_ms":
        return prefill, limit / per_flop
    if metric == "total_ms":
        return nothing.plus(prefill, per_flop).plus(decode, per_byte), limit
    return decode, limit / (per_byte if metric == "decode_ms" else per_byte / s.output_tokens)


def _checked(theory: TheoryProblem, form: ClosedForm) -> CheckedForm:
    logs: FloatArray = np.log([form.depth, form.width, form.ffn_ratio, form.gqa, form.activation_rate])
    box = theory.box()
    exceeds = tuple(
        metric
        for metric, limit in theory.limits.items()
        if float(COSTS[metric](theory.setting)(logs)) > limit * (1 + 1e-6)
    )
    values = np.exp(logs)
    leaves = tuple(
        f"{name} {'below' if low else 'above'} {bound:g}"
        for name, value, low_bound, high_bound in zip(VARIABLES, values, box.lower, box.upper, strict=True)
        for low, bound in ((True, low_bound), (False, high_bound))
        if (value < bound * (1 - 1e-9) if low else value > bound * (1 + 1e-9))
    )
    kv_heads, least = form.width / form.gqa / theory.setting.head_dim, box.least_kv_dim / theory.setting.head_dim
    leaves += (f"n_kv_heads below {least:g}",) if kv_heads < least * (1 - 1e-9) else ()
    pair = _nearest_pair(theory, form.activation_rate)
    operator_ms = {m: theory.sides(m, pair).value(logs) for m in LATENCIES if m in theory.limits}
    return CheckedForm(form, float(theory.loss(logs)), exceeds, leaves, pair, operator_ms, _paper_rate(theory, form))


def _nearest_pair(theory: TheoryProblem, rate: float) -> tuple[int, int]:
    """The (E, K) whose activation rate is nearest by ratio; of equals the one of fewest experts per token."""
    away = np.round(np.abs(np.log(theory.pairs[:, 1] / theory.pairs[:, 0] / rate)), 9)
    experts, top_k = theory.pairs[np.lexsort((theory.pairs[:, 1], away))[0]].tolist()
    return experts, top_k


def _paper_rate(theory: TheoryProblem, form: ClosedForm) -> float | None:
    """The paper's ρ* of D3 at the same r and gqa (ERRATA 5)."""
    if form.case != "D3":
        return None
    eta = normalised(theory.limits, theory.setting).eta
    assert eta is not None
    delta = cases.cache_correction(theory.setting, form.width, form.gqa)
    return cases.decode_dual_rate(eta, form.ffn_ratio, form.gqa, delta, paper_form=True)[0]


def _best(theory: TheoryProblem) -> tuple[Evaluations, Evaluations, str]:
    """The exact pick within the budgets, the frontier of loss and the first latency, and how they were found."""
    metric = next((m for m in LATENCIES if m in theory.limits), next(iter(theory.limits)))
    two = replace(theory.problem, objectives=(built_in("loss"), built_in(metric)), queries=())
    solution = solve_exactly(two, (PickRule(None),))
    (pick,) = solution.picks
    if pick is None:
        raise nothing_fits(theory)
    return pick, solution.frontier, solution.explanation


def nothing_fits(theory: TheoryProblem) -> InfeasibleError:
    """No design of the space: the least value of each cost over all designs."""
    return InfeasibleError(
        f"theory: no design meets the budgets {_against(theory, least_costs(theory))}; "
        f"{command('run')} --algo exact says which to relax"
    )


def nothing_between(theory: TheoryProblem, box: Box, width: float) -> InfeasibleError:
    """No point of one width: the least closed-form costs between the bounds."""
    least = {metric: float(COSTS[metric](theory.setting)(box.cheapest)) for metric in theory.limits}
    return InfeasibleError(
        f"theory: nothing of width {width:g} meets the budgets, closed-form costs, {_against(theory, least)}; "
        "choose a smaller width, or leave --width out"
    )


def least_costs(theory: TheoryProblem) -> dict[str, float]:
    """The least of each budgeted metric over the whole space, in its unit, designs whose loss gives no perplexity included.

    At one width and (E, K) every cost rises with depth, FFN size and KV heads, so that the smallest of each has the least of all.
    """
    space, rows = theory.problem.space, []
    for width in range(len(space.widths)):
        heads = space.kv_gene.nth[width, : space.kv_gene.counts[width]]
        fewest = heads[np.argmin(space.kv_values[width, heads])]
        for experts, top_k in theory.pairs.tolist():
            places = np.searchsorted(space.experts, experts), np.searchsorted(space.top_ks, top_k)
            rows.append((0, width, *places, space.ffn_gene.nth[width, 0], fewest))
    priced = theory.problem.priced(np.array(rows, dtype=np.int64))
    return {metric: float(priced[metric].min()) for metric in theory.limits}


def _against(theory: TheoryProblem, least: dict[str, float]) -> str:
    lines = [
        f"{budget} (least {least[budget.metric]:.4g} {unit_of(budget.metric)})"
        for budget in theory.problem.budgets
        if theory.limits.get(budget.metric) == budget.limit
    ]
    together = ", each met by some but not all by one" if all(least[m] <= v for m, v in theory.limits.items()) else ""
    return ", ".join(lines) + together


DIFFERENCES: dict[str, Callable[[Architectures, Architectures], BoolArray]] = {
    "another sparsity": lambda all_, one: all_.activation_rate != one.activation_rate[0],
    "another width": lambda all_, one: all_.width != one.width[0],
    "another depth": lambda all_, one: all_.depth != one.depth[0],
}


def worth_training(prediction: Prediction) -> tuple[list[str], Evaluations]:
    """The best design, then the best on the frontier of another sparsity, width and depth; with why each."""
    reasons, chosen, frontier = ["the best"], prediction.best, prediction.frontier
    problem = prediction.theory.problem
    shapes, first = problem.architectures(frontier.genotypes), problem.architectures(chosen.genotypes)
    for reason, differs in DIFFERENCES.items():
        pool = frontier[differs(shapes, first) & ~np.isin(frontier.keys, chosen.keys)]
        pick = PickRule(None).answer(pool)
        if pick is not None:
            reasons, chosen = [*reasons, reason], joined(chosen, pick)
    return reasons, chosen


def by_operators(problem: Problem, chosen: Evaluations, metric: str) -> FloatArray:
    """A latency of some designs under the operator model, ms, (n,)."""
    truth = replace(problem, scenario=replace(problem.scenario, latency="operator"))
    return truth.evaluate(chosen.genotypes, (metric,)).metrics[metric]


def candidate_columns(prediction: Prediction) -> Mapping[str, AnyArray]:
    """The designs worth training as a candidate file: id, why, architecture, metrics."""
    reasons, chosen = worth_training(prediction)
    shapes = prediction.theory.problem.architectures(chosen.genotypes)
    ids = [f"theory-{number}" for number in range(1, len(reasons) + 1)]
    return {"id": np.array(ids), "reason": np.array(reasons), **shapes.columns(), **chosen.metrics}
