"""The rows of a run that its page holds: what is drawn, and all that a pick under other budgets can be."""

from dataclasses import dataclass

import moocore
import numpy as np

from nas.answer.outcome import Outcome
from nas.answer.plot_data import thinned
from nas.problem.evaluations import Evaluations, rounded
from nas.problem.objective import is_rate
from search_spaces.arrays import FloatArray, IntArray

MOST = 10_000  # rows that are held whole
PICKABLE = 20_000  # rows held so that budgets can be moved
DRAWN = 4_000  # dots of a larger run, and its frontier's


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the evaluations in pick order: the first that meets the budgets is the pick.

    movable: metrics whose budgets may be moved. looser: whether a budget may also be raised above the run's own,
    and removed. why: a sentence on what cannot be moved, "" where everything can.
    """

    chosen: IntArray
    movable: tuple[str, ...]
    looser: bool
    why: str


def rows_of(outcome: Outcome) -> Rows:
    """Rows of a run's page, such that its picks are those of `select --select best`."""
    found = outcome.evaluations
    usable = np.flatnonzero(found.ok)
    usable = usable[np.argsort(_place(found)[usable])]
    solved = outcome.study.config.algo == "exact" and len(found) < outcome.study.problem.space.size
    if solved and outcome.study.problem.analytic:
        return _solved(outcome, usable)
    if len(usable) <= MOST:
        return Rows(usable, tuple(name for name in found.metrics if not is_rate(name)), True, "")
    return _of_many(outcome, usable)


def _solved(outcome: Outcome, usable: IntArray) -> Rows:
    """A run that kept its frontier and picks alone: tighter budgets on objectives choose among these."""
    objectives = outcome.frontier.objectives
    kept = usable[np.isin(usable, usable[thinned(len(usable), PICKABLE)])]
    if not outcome.whole or not {"loss", "total_ms"} <= set(objectives) or len(kept) < len(usable):
        return Rows(kept, (), False, "The space was solved, not sampled: select solves it again for other budgets.")
    why = f"The space was solved and its frontier kept: budgets on {' and '.join(objectives)} can be tightened here; "
    return Rows(kept, objectives, False, f"{why}select solves the space again for any other.")


def _of_many(outcome: Outcome, usable: IntArray) -> Rows:
    """A large run: its frontier, a share of its dots, and every row that some budgets on few metrics can pick."""
    found = outcome.evaluations
    names = tuple(dict.fromkeys([*found.objectives, *(budget.metric for budget in found.budgets)]))
    columns = [np.arange(len(usable), dtype=np.float64), *(found.metrics[name][usable] for name in names)]
    pickable = usable[moocore.is_nondominated(np.stack(columns, axis=1))]
    feasible = usable[found.feasible[usable]]
    frontier = np.flatnonzero(np.isin(found.keys, outcome.frontier.keys[thinned(len(outcome.frontier), DRAWN)]))
    drawn = np.union1d(feasible[thinned(len(feasible), DRAWN)], frontier)
    why = f"Budgets on {', '.join(names)} can be moved here; select takes any metric of all {len(found):,} evaluations."
    if len(pickable) > PICKABLE:
        pickable, names = pickable[:0], ()
        why = f"Too many of {len(found):,} evaluations can be picks to hold them here: select takes any budget."
    chosen = usable[np.isin(usable, np.union1d(drawn, pickable))]
    return Rows(chosen, names, True, why)


def _place(found: Evaluations) -> IntArray:
    """Place of each row in the order of picks: lowest loss, then total_ms (both at 12 digits), then genotype."""
    order = np.lexsort((found.keys, _rounded(found.metrics["total_ms"]), _rounded(found.metrics["loss"])))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place


def _rounded(values: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return rounded(values)
