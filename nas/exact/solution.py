"""The exact frontier and picks of a whole space: by sums of parts if its metrics allow, else by enumeration."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np

from nas.errors import UsageError
from nas.exact.checkpoint import SolverCheckpoint, section_of
from nas.exact.decomposition.additive_bounds import BrokenSum, own_functions, undeclared
from nas.exact.decomposition.branch_and_bound import Exceeded
from nas.exact.decomposition.frontier import MOST_BACKBONES, backbones
from nas.exact.setting_by_setting import SettingBySetting
from nas.problem.evaluations import Evaluations, frontier_rows, joined
from nas.problem.objective import Budget, Objective
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.problem.settings import SCENARIOS, each_setting
from nas.problem.uncertainty import FROM_LOSS
from objectives.scenario import Scenario
from search_spaces.arrays import IntArray

LARGEST = 10**8  # architectures that are enumerated where parts are not declared
SMALL = 100_000  # architectures whose enumeration is quicker than setting up sums
QUICK = 2_000_000  # architectures whose enumeration takes a second or two
DRAWS_PER_EVALUATION = 4  # losses under a law's draws that cost as much as all metrics once
SECONDS = 30_000_000  # items whose bounds take a few seconds
FEW = 12  # devices that are solved one after the other, each beside what the others beat, however many architectures
Way = Literal["parts", "enumeration"]


@dataclass(frozen=True, eq=False)
class ExactSolution:
    """The frontier of every feasible architecture, the picks, and how many architectures were covered in which way."""

    frontier: Evaluations
    picks: tuple[Evaluations | None, ...]
    covered: int
    way: Way
    explanation: str


def way_of(problem: Problem, rules: tuple[PickRule, ...] = ()) -> tuple[Way, str]:
    """Return how the space can be covered, and the reason against sums of parts ("" if none).

    Raises:
        UsageError: sums are impossible and the space is too large to enumerate.
    """
    if problem.space.size <= SMALL and not problem.functions:
        return "enumeration", ""
    obstacle = _obstacle(problem, rules)
    if problem.space.size <= SMALL:
        return "enumeration", obstacle
    if not obstacle:
        _refuse_one_by_one(problem)
        return "parts", ""
    _refuse_beyond(problem, obstacle)
    return "enumeration", obstacle


def _refuse_one_by_one(problem: Problem) -> None:
    """Say that generated chips are too many to be solved one after the other.

    Raises:
        UsageError: they are.
    """
    devices = list(problem.scenario.by_device.values())
    many = [*problem.space.settings] == ["device"] and len(problem.scenario.devices) > FEW
    if not many or problem.space.size <= LARGEST or not all(alike(devices[0], d) for d in devices):
        return
    raise UsageError(
        f"exact: expected at most {LARGEST:,} architectures on more than {FEW} devices solved one by one, got "
        f"{problem.space.size:,} on {len(devices):,}; take a smaller space, fewer "
        "devices or a search strategy (--algo nsga2)"
    )


def alike(first: Scenario, other: Scenario) -> bool:
    """Return True if scenarios differ only in device figures and in shares that follow from these, as generated chips do."""
    names = (field.name for field in fields(Scenario) if field.name not in ("device", "energy", "calibration"))
    same = [(getattr(first, name), getattr(other, name)) for name in names]
    a, b = first.calibration, other.calibration
    if a is not None and b is not None:
        b = b.model_copy(update={name: getattr(a, name) for name in ("compute_efficiency", "decode_compute")})
    same.append((a, b))
    return all(a is b or a == b for a, b in same) and first.device.other_peaks.keys() == other.device.other_peaks.keys()


def _refuse_beyond(problem: Problem, obstacle: str) -> None:
    """Say that a space is too large to enumerate where an obstacle, a clause, stands against sums of parts.

    Raises:
        UsageError: it is.
    """
    if problem.space.size <= LARGEST:
        return
    metric = obstacle.partition(" ")[0]
    remedy = "take "
    if metric in own_functions(problem):
        remedy = "declare its parts or correct them, drop the metric, or take "
    elif metric in FROM_LOSS:
        remedy = "take another law, "
    raise UsageError(
        f"exact: expected at most {LARGEST:,} architectures where {obstacle}, got {problem.space.size:,}; "
        f"{remedy}a smaller space or a search strategy (--algo nsga2)"
    )


def _obstacle(problem: Problem, rules: tuple[PickRule, ...]) -> str:
    if unknown := [name for name in problem.space.settings if name not in SCENARIOS]:
        return f"{' and '.join(unknown)} as a gene {'is' if len(unknown) == 1 else 'are'} in no sum of parts"
    asked = metrics_of(problem, rules)
    missing = next((name for one in each_setting(problem) if (name := undeclared(one, asked)) is not None), None)
    if missing is not None:
        return f"{missing} does not say how it adds up from parts"
    space = problem.space
    if backbones(space) > MOST_BACKBONES:
        axes = f"depth, {'layers, ' * space.mixed}width{', heads' * space.free_heads}"
        return f"{axes} and KV heads alone have {backbones(space):,} combinations"
    return ""


def metrics_of(problem: Problem, rules: tuple[PickRule, ...]) -> tuple[str, ...]:
    """Return the metrics that dominance, budgets, picks and their ties use."""
    strict = [rule.strict(problem.budgets, problem.columns) for rule in rules]
    asked = [*problem.asked, *(metric for rule in strict for metric in rule.metrics)]
    return tuple(dict.fromkeys([*asked, "loss", "total_ms"] if rules else asked))


def solve(
    problem: Problem,
    rules: tuple[PickRule, ...] = (),
    report: Callable[[int], None] = lambda covered: None,
    checkpoint: SolverCheckpoint | None = None,
    good: IntArray | None = None,
) -> ExactSolution:
    """Return the exact answers; `report` receives the number of newly settled architectures. Without objectives only the picks.

    good: genotypes from which answers are found sooner.

    Raises:
        UsageError: more architectures than can be covered.
    """
    way, obstacle = way_of(problem, rules)
    checkpoint, settled = checkpoint or SolverCheckpoint(), Tally(report)
    if way == "parts":
        try:
            return _by_parts(problem, rules, settled, checkpoint, good=good)
        except BrokenSum as error:
            obstacle = error.reason
            _refuse_beyond(problem, obstacle)
            settled(-settled.total)
    frontier, picks = enumerate_all(problem, rules, metrics_of(problem, rules), settled, checkpoint)
    because = f", since {obstacle}" if obstacle else ""
    text = f"every one of {problem.space.size:,} architectures was evaluated{because}"
    return _solution(problem, frontier, picks, "enumeration", text)


class Tally:
    """A counter that passes counts on and adds them up."""

    def __init__(self, report: Callable[[int], None]) -> None:
        self.report, self.total = report, 0

    def __call__(self, count: int) -> None:
        self.total += count
        self.report(count)


def quick_frontier(problem: Problem) -> ExactSolution | None:
    """Return the exact frontier if it takes seconds; never calls a user's own metrics."""
    if problem.functions:
        return None
    try:
        way, _ = way_of(problem)
        if way == "enumeration":
            draws = (
                len(problem.scenario.law.drawn)
                if any(name.startswith("loss@") for name in metrics_of(problem, ()))
                else 1
            )
            return solve(problem) if problem.space.size * max(1, draws // DRAWS_PER_EVALUATION) <= QUICK else None
        return _by_parts(problem, (), lambda _: None, SolverCheckpoint(), SECONDS)
    except (UsageError, Exceeded):
        return None


def pick_of(problem: Problem, rule: PickRule) -> Evaluations | None:
    """Return the exact pick by a rule without a frontier; None if nothing is feasible.

    Raises:
        UsageError: more architectures than can be covered.
    """
    return solve(replace(problem, objectives=(), queries=()), (rule,)).picks[0]


def _by_parts(
    problem: Problem,
    rules: tuple[PickRule, ...],
    report: Callable[[int], None],
    checkpoint: SolverCheckpoint,
    most: int | None = None,
    good: IntArray | None = None,
) -> ExactSolution:
    names = metrics_of(problem, tuple(replace(rule, dense=False) for rule in rules))
    sums = SettingBySetting(problem, names, checkpoint, most, good)
    frontier = sums.frontier(problem.objectives, problem.budgets, report=report) if problem.objectives else None
    picks = _picks(problem, frontier, rules, sums.picks)
    effort = sums.effort
    text = (
        f"{problem.space.size:,} architectures were covered by sums of parts: {effort.bounded:,} bounds, {effort.evaluated:,} "
        f"architectures evaluated whole; sums and wholes differ by at most {effort.difference:.0e} of the value"
    )
    declared = [name for name in own_functions(problem) if name in metrics_of(problem, rules)]
    if declared:
        text += f"; the parts of {', '.join(declared)} were checked there and taken from the declaration elsewhere"
    nothing = problem.evaluate(np.zeros((0, len(problem.space.gene_sizes)), dtype=np.int64))
    return _solution(problem, nothing if frontier is None else frontier, picks, "parts", text)


def _picks(
    problem: Problem,
    frontier: Evaluations | None,
    rules: tuple[PickRule, ...],
    solved: Callable[[Sequence[PickRule]], list[Evaluations | None]],
) -> tuple[Evaluations | None, ...]:
    """Members of the frontier where picks must be, the others `solved`; no frontier of some objectives is no pick.

    Of equal members the pick is that which costs least in what else is minimised.
    """
    if frontier is None and problem.objectives:
        return (None,) * len(rules)
    strict = {rule: rule.strict(problem.budgets, problem.columns) for rule in rules}
    found = {rule: rule.answer(frontier) for rule in rules if frontier is not None and strict[rule].read_off(frontier)}
    rest = [rule for rule in dict.fromkeys(rules) if rule not in found]
    limited = [replace(rule, within=(*problem.budgets, *rule.within)) for rule in rest]
    found |= zip(rest, solved(limited), strict=True)
    return tuple(found[rule] for rule in rules)


def _solution(
    problem: Problem, frontier: Evaluations, picks: tuple[Evaluations | None, ...], way: Way, explanation: str
) -> ExactSolution:
    """Final values, every metric, from the ordinary code on whole architectures."""
    whole = problem.evaluate(frontier.genotypes)
    found = tuple(None if pick is None else problem.evaluate(pick.genotypes) for pick in picks)
    return ExactSolution(whole, found, problem.space.size, way, explanation)


BLOCK = 131_072


class Enumerated:
    """All architectures of a small problem, evaluated, with the answers of `SettingBySetting`."""

    def __init__(self, problem: Problem, metrics: tuple[str, ...]) -> None:
        self.problem = problem
        self.everything = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)), metrics)

    def lowest(self, budgets: tuple[Budget, ...], least: str = "loss", *, margin: bool = True) -> Evaluations | None:
        """Return the pick within budgets, one row: the least of the loss or of another metric, with the usual tie-breaks."""
        row = PickRule(None, least=least, margin=margin).row(replace(self.everything, budgets=budgets))
        return None if row is None else self.everything[row : row + 1]

    def picks(self, rules: Sequence[PickRule]) -> list[Evaluations | None]:
        """The pick by each rule, one row each."""
        return [self.lowest(rule.limits, rule.least) for rule in rules]

    def frontier(self, objectives: tuple[Objective, ...], budgets: tuple[Budget, ...]) -> Evaluations | None:
        """Return the feasible frontier with all ties, in file order; None if nothing is feasible."""
        names = tuple(objective.name for objective in objectives)
        whole = replace(self.everything, objectives=names, budgets=budgets)
        rows = frontier_rows(whole)
        return whole[rows] if len(rows) else None


def enumerate_all(
    problem: Problem,
    rules: tuple[PickRule, ...],
    metrics: tuple[str, ...],
    report: Callable[[int], None],
    checkpoint: SolverCheckpoint,
) -> tuple[Evaluations, tuple[Evaluations | None, ...]]:
    """Return the feasible frontier and the best architecture by each rule, with the given metrics; without objectives no frontier."""
    section = section_of("enumeration", problem, *(str(rule) for rule in rules))
    known = checkpoint.read(section)
    frontier = problem.evaluate(_genotypes(problem, known.get("frontier", [])), metrics)
    picks = [_row(problem, key, metrics) for key in known.get("picks", [None] * len(rules))]
    done = known.get("done", 0)
    report(done)
    for block in blocks(problem, metrics, done):
        if problem.objectives:
            both = joined(frontier, block[frontier_rows(block)])
            frontier = both[frontier_rows(both)]
        picks = [rule.better(old, block) for rule, old in zip(rules, picks, strict=True)]
        done += len(block)
        if checkpoint.due:
            keys = [None if pick is None else int(pick.keys[0]) for pick in picks]
            checkpoint.write(section, {"done": done, "frontier": frontier.keys.tolist(), "picks": keys})
        report(len(block))
    return frontier, tuple(picks)


def blocks(problem: Problem, metrics: tuple[str, ...], start: int = 0) -> Iterator[Evaluations]:
    """Yield all architectures from one on, evaluated block by block."""
    for first in range(start, problem.space.size, BLOCK):
        keys = np.arange(first, min(first + BLOCK, problem.space.size))
        yield problem.evaluate(problem.space.genotypes(keys), metrics)


def _genotypes(problem: Problem, keys: list[int]) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return problem.space.genotypes(np.array(keys, dtype=np.int64))


def _row(problem: Problem, key: int | None, metrics: tuple[str, ...]) -> Evaluations | None:
    return None if key is None else problem.evaluate(_genotypes(problem, [key]), metrics)
