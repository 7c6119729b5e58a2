"""What one change of a study would buy: a tenth more of a budget, as far as the device has it, a smaller vocabulary, fewer bits, twice the training tokens."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from nas.answer.sureness import Witness, with_own_picks, witnesses
from nas.errors import UsageError
from nas.exact.decomposition.branch_and_bound import Exceeded
from nas.exact.gains import covered
from nas.exact.solution import SMALL
from nas.problem.evaluations import Evaluations
from nas.problem.objective import OWN, Budget, PickQuery
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.problem.quantiles import with_margins
from nas.problem.settings import trained_on
from nas.problem.steps import VOCABULARIES
from nas.problem.uncertainty import Difference, differences, has_doubt
from nas.search.assembly import Study, in_format
from nas.study.study_laws import without_engines
from objectives.engines import RUNS, engine_of, runs_format
from search_spaces.arrays import IntArray

STEP = 0.1  # of a budget
NARROWER = {"fp16": "int8", "bf16": "int8", "int8": "int4"}  # the next format of fewer bits
NOTHING = 1e-9  # nats
Lowest = Callable[[Problem], Evaluations | None]
Tries = Callable[[Study, Problem], Iterator[tuple[float | str, Problem]]]


@dataclass(frozen=True, eq=False)
class Change:
    """One change and the lowest loss with it, nats; `at`: the limit, vocabulary or number of tokens, or the format's name.

    difference: from the pick, with how sure the law is; None of a law that does not say, and where the law itself differs.
    witness: what `evidence` says of it where it buys anything; None of a law that rests on that.
    """

    kind: str
    name: str
    at: float | str
    loss: float
    nats: float
    extrapolates: bool
    difference: Difference | None = None
    witness: Witness | None = None


@dataclass(frozen=True, eq=False)
class Changes:
    """What was tried, the one that buys most first, what was not priced and why, which budgets bind, and among what all was looked for.

    whole_memory: those that bind and are all the memory there is, so that there is no more to try; among: designs that each
    answer is the lowest of; whole: whether these are all of the space; loss: the lowest without any change, nats.
    """

    tried: tuple[Change, ...]
    unpriced: tuple[str, ...]
    binding: tuple[Budget, ...]
    whole_memory: tuple[Budget, ...]
    among: int
    whole: bool
    loss: float

    @property
    def best(self) -> Change | None:
        """The change that buys most; None where none buys anything."""
        return self.tried[0] if self.tried and self.tried[0].nats > NOTHING else None


def changes_of(study: Study, pick: Evaluations, found: Evaluations, *, solved: bool) -> Changes | None:
    """What each change buys beside a study's pick (one row): over the whole space where that takes no time or the run has `solved` it, else among `found`.

    None where a whole space that was solved would take more than seconds for one change.
    """
    problem = replace(study.problem, queries=())
    whole = problem.analytic and (solved or problem.space.size <= SMALL)
    try:
        lowest = _over_the_space(problem, found[found.ok].genotypes) if whole else _among(problem, found)
        least = pick if solved else lowest(problem)
        within = pick if least is None or pick.first["loss"] < least.first["loss"] else least
        before = within.first["loss"]
        tried = [*_budgets(problem, within, lowest, found), *_others(study, problem, within, lowest, found)]
        binding = tuple(budget for budget in problem.limits if _binds(problem, budget, before, lowest, tried))
    except (Exceeded, UsageError):
        return None
    tried.sort(key=lambda change: -change.nats)
    among = problem.space.size if whole else int(found.ok.sum())
    whole_memory = tuple(budget for budget in binding if budget.limit >= _memory(problem, budget))
    return Changes(tuple(tried), tuple(_unpriced(study, tried)), binding, whole_memory, among, whole, before)


def _over_the_space(problem: Problem, good: IntArray) -> Lowest:
    """The lowest loss of every design; all that is priced as the problem itself is covered once."""
    own = covered(problem, good=good)

    def lowest(variant: Problem) -> Evaluations | None:
        priced_alike = variant.scenario is problem.scenario
        kept = good if variant.space is problem.space else None
        return (own if priced_alike else covered(variant, good=kept)).lowest(variant.budgets)

    return lowest


def _among(problem: Problem, found: Evaluations) -> Lowest:
    """The lowest loss of what was evaluated; priced again where a change prices it otherwise."""
    usable = found[found.ok]

    def lowest(variant: Problem) -> Evaluations | None:
        rows = usable if variant.scenario is problem.scenario else variant.evaluate(usable.genotypes)
        return PickRule(None).answer(replace(rows, budgets=variant.budgets))

    return lowest


def _budgets(problem: Problem, pick: Evaluations, lowest: Lowest, evaluated: Evaluations) -> Iterator[Change]:
    """A tenth more of each budget, of memory no more than there is; a day has none."""
    law, own = problem.scenario.law, problem.architectures(pick.genotypes)
    for budget in problem.limits:
        if budget.unit == "date" or budget.limit <= 0.0 or budget.limit >= (memory := _memory(problem, budget)):
            continue
        raised = replace(budget, limit=min(budget.limit * (1.0 + STEP), memory))
        variant = with_budget(problem, raised)
        if (row := lowest(variant)) is not None:
            bought = _change(variant, "budget", budget.metric, raised.limit, pick, row)
            bought = _witnessed(bought, problem, pick, variant, row, evaluated)
            if has_doubt(law) and bought.nats > NOTHING:
                sure = differences(law, problem.architectures(row.genotypes), own)[0][0]
                bought = replace(bought, difference=sure)
            yield bought


def _memory(problem: Problem, budget: Budget) -> float:
    """The memory that a budget is a limit on, in its metric's unit: GB of the device, or 1, the whole of each; infinite of what is not memory."""
    name, device = budget.metric, problem.scenario.device
    if name in ("memory_gb", "resident_gb") and not problem.scenario.devices:
        return device.memory_gb
    if name == "slow_gb" and device.slow_memory is not None:
        return device.slow_memory.capacity_gb
    return 1.0 if name in ("memory_share", "resident_share") else math.inf


def with_budget(problem: Problem, changed: Budget) -> Problem:
    """The problem with one of its budgets at another limit."""
    return replace(problem, budgets=tuple(changed if b.metric == changed.metric else b for b in problem.budgets))


def _others(
    study: Study, problem: Problem, pick: Evaluations, lowest: Lowest, evaluated: Evaluations
) -> Iterator[Change]:
    """A smaller vocabulary at equal text, fewer bits, twice the training tokens, kernels that no engine has: of each what buys most."""
    for kind, variants in TRIED.items():
        rows = [(at, variant, row) for at, variant in variants(study, problem) if (row := lowest(variant)) is not None]
        tried = [(_change(v, kind, kind, at or _lacks(v, row), pick, row), v, row) for at, v, row in rows]
        if tried:
            change, variant, row = max(tried, key=lambda each: each[0].nats)
            if kind != "kernel" or change.nats > NOTHING:
                yield _witnessed(change, problem, pick, variant, row, evaluated[:0])


def _witnessed(
    change: Change, problem: Problem, pick: Evaluations, variant: Problem, found: Evaluations, evaluated: Evaluations
) -> Change:
    """The change with what `evidence` says of its design beside the pick; its own pick is of the space, or of what was `evaluated` in these conditions."""
    if change.nats <= NOTHING:
        return change
    designs, others = variant.architectures(found.genotypes), problem.architectures(pick.genotypes)
    told = witnesses(variant.scenario.law, designs, others, problem.scenario.law)
    return replace(change, witness=with_own_picks(variant, [(told[0], PickQuery(OWN, None))], evaluated)[0])


def _of_vocabulary(study: Study, problem: Problem) -> Iterator[tuple[float, Problem]]:
    if problem.functions or not problem.vocabulary or problem.space.own_heads:
        return
    smaller = [size for size in VOCABULARIES if 2 * size <= problem.vocabulary]
    try:
        at_equal_text = problem.at_equal_text()
        variants = [(float(size), at_equal_text.with_vocabulary(size)) for size in smaller]
    except ValueError:  # a curve of bytes per token that does not count one
        return
    yield from variants if problem.space.size <= SMALL else variants[:1]


def _of_format(study: Study, problem: Problem) -> Iterator[tuple[str, Problem]]:
    narrower = _narrower(study)
    if narrower and not _why_no_format(study):  # every device states the peaks of these formats
        yield narrower, with_margins(replace(problem, scenario=in_format(study, narrower)))


def _of_tokens(study: Study, problem: Problem) -> Iterator[tuple[float, Problem]]:
    scenario, tokens = problem.scenario, 2.0 * (problem.scenario.law.tokens or 0.0)
    if not _why_no_tokens(study):
        yield tokens, replace(problem, scenario=replace(scenario, law=trained_on(scenario.law, tokens)))


def _kernels(study: Study, problem: Problem) -> Iterator[tuple[str, Problem]]:
    law = without_engines(problem.scenario.law)
    if law != problem.scenario.law and problem.space.specification.axes.layers and not problem.functions:
        yield "", replace(problem, scenario=replace(problem.scenario, law=law))


TRIED: dict[str, Tries] = {"vocabulary": _of_vocabulary, "format": _of_format, "tokens": _of_tokens, "kernel": _kernels}


def _lacks(problem: Problem, row: Evaluations) -> str:
    """What of a design (one row) no engine runs, and whose its gain is."""
    design = problem.architectures(row.genotypes)
    written = problem.pricing(design).precision.name
    found = dict.fromkeys(engine.lacks(design, written) for engine in RUNS.values() if engine.runs_format(written))
    return f"{' or '.join(found)} layers (gain borrowed from {problem.scenario.law.layer_deltas_source})"


def _change(variant: Problem, kind: str, name: str, at: float | str, pick: Evaluations, found: Evaluations) -> Change:
    """The change with what it buys."""
    loss, before = found.first["loss"], pick.first["loss"]
    outside = bool(variant.scenario.law.extrapolates(variant.architectures(found.genotypes))[0])
    return Change(kind, name, at, loss, max(before - loss, 0.0), outside)


def _binds(problem: Problem, budget: Budget, before: float, lowest: Lowest, tried: Sequence[Change]) -> bool:
    """Whether a lower loss is to be had without a budget, the others as they are: a tenth more of it shows that soonest."""
    if any(change.name == budget.metric and change.nats > NOTHING for change in tried):
        return True
    free = lowest(replace(problem, budgets=tuple(each for each in problem.budgets if each is not budget)))
    return free is not None and before - free.first["loss"] > NOTHING


def _unpriced(study: Study, tried: Sequence[Change]) -> Iterator[str]:
    """What was not tried, and why; of a format that was, that nothing fits with it."""
    problem = study.problem
    if problem.functions and problem.vocabulary:
        yield "vocabulary (a metric of your own)"
    if narrower := _narrower(study):
        why = _why_no_format(study)
        if why or not any(each.kind == "format" for each in tried):
            yield f"fewer bits ({why or f'nothing fits at {narrower}'})"
    if why := _why_no_tokens(study):
        yield f"more tokens ({why})"


def _narrower(study: Study) -> str:
    """The next format of fewer bits; "" of one that has none, and where designs have formats of their own."""
    own = "precision" in study.problem.space.settings
    return "" if own else NARROWER.get(study.config.precision, "")


def _why_no_format(study: Study) -> str:
    law, narrower, engine = study.problem.scenario.law, _narrower(study), study.config.engine or ""
    if study.problem.functions or study.problem.scenario.devices:
        return "a metric of your own" if study.problem.functions else "several devices"
    if not runs_format(engine, narrower):
        return f"{engine_of(engine)} is not known to run {narrower}"
    if law.few_bits is None:
        return "give --precision-law"
    return "" if law.few_bits.prices(narrower) else f"{law.precision_law} does not say what {narrower} costs"


def _why_no_tokens(study: Study) -> str:
    problem, law = study.problem, study.problem.scenario.law
    if "tokens" in problem.space.settings:
        return ""
    if problem.functions:
        return "a metric of your own"
    return "" if law.sees_tokens and law.tokens is not None else "not in the law"
