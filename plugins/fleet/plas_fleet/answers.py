"""What a fleet is: its models, the cases that each serves, what each case gives up, how full its limits are, and what holds a model back."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from string import ascii_uppercase

import numpy as np

from nas.exact.infeasibility import diagnosed
from nas.problem.evaluations import Evaluations
from objectives.assessment import Assessment
from plas_fleet.designs import limited
from plas_fleet.patterns import Patterns
from plas_fleet.solution import Fleet, Fleets
from plas_range.answers import Answer, evaluated
from plas_range.cases import Case
from plas_range.result import shortage
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray

GAIN = 1e-11  # nats from which on leaving a case out is a gain
SAMPLE = 2_000  # designs that say what is short where no exact answer can
TRAINING = ("train_flops", "train_hours")


@dataclass(frozen=True)
class Hold:
    """A case (its number) that a model would be better without, and by how many nats."""

    case: int
    nats: float


@dataclass(frozen=True, eq=False)
class Model:
    """A model of a fleet: its key, place, loss, the numbers of the cases that it serves, cost of training by metric, what holds it back.

    used: per served case, value/limit of every limit there.
    """

    key: int
    loss: float
    cases: tuple[int, ...]
    training: dict[str, float]
    used: tuple[dict[str, float], ...]
    holds: tuple[Hold, ...]


@dataclass(frozen=True, eq=False)
class Described:
    """A fleet in full: its models, and per case which serves it (place), its loss, and its regret, (cases,)."""

    fleet: Fleet
    models: tuple[Model, ...]
    regret: FloatArray
    training: dict[str, float]

    @property
    def worst(self) -> float:
        """The largest regret."""
        return float(self.regret.max())


@dataclass(frozen=True, eq=False)
class FleetAnswer:
    """Fleets with everything that is said of them; `lost`: why no design serves a case, by its label."""

    fleets: Fleets
    described: tuple[Described, ...]
    lost: dict[str, str]

    @property
    def chosen(self) -> Described | None:
        """The fleet that is written for export: the largest that was found."""
        return self.described[-1] if self.described else None

    @cached_property
    def gains(self) -> tuple[float | None, ...]:
        """What each fleet is better by than the one before it, nats; None of the first."""
        values = [each.fleet.value for each in self.described]
        return (None, *(a - b for a, b in pairwise(values))) if values else ()

    @cached_property
    def names(self) -> dict[int, str]:
        """A letter per design of all fleets: those of the largest first, by loss."""
        keys = dict.fromkeys(model.key for each in reversed(self.described) for model in each.models)
        return {key: letter(place) for place, key in enumerate(keys)}

    def name(self, each: Described, case: int) -> str:
        """The design that serves a case in a fleet."""
        return self.names[each.models[int(each.fleet.serves[case])].key]

    def architectures(self, keys: Sequence[int] | IntArray) -> Architectures:
        """The architectures of keys, as every case prices them."""
        problem = self.fleets.problem
        return problem.architectures(problem.space.genotypes(np.asarray(keys, dtype=np.int64)))


def letter(place: int) -> str:
    """`A`, …, `Z`, `A1`, …"""
    return ascii_uppercase[place % 26] + (str(place // 26) if place >= 26 else "")


def answered(fleets: Fleets) -> FleetAnswer:
    """Everything about solved fleets."""
    lost = {case.label: _why(case) for case in fleets.unserved}
    return FleetAnswer(fleets, tuple(_described(fleets, fleet) for fleet in fleets.found), lost)


def _why(case: Case) -> str:
    """Why nothing fits a case."""
    problem = limited(case)
    sample = problem.evaluate(problem.space.sample(SAMPLE, np.random.default_rng(0)))
    return shortage(Answer(case, sample[:0], None, {}, diagnosed(problem, sample)))


def _described(fleets: Fleets, fleet: Fleet) -> Described:
    found = _in_cases(fleets, fleet.keys)
    training = _training(fleets, fleet.keys)
    models = tuple(_model(fleets, fleet, place, found, training) for place in range(len(fleet.keys)))
    return Described(
        fleet, models, fleet.loss - fleets.best, {name: float(values.sum()) for name, values in training.items()}
    )


def _in_cases(fleets: Fleets, keys: IntArray) -> list[Evaluations]:
    """The designs evaluated in every case, in the order of the keys."""
    found = dict(evaluated(fleets.cases, fleets.problem.space.genotypes(keys)))
    return [found[number] for number in range(len(fleets.cases))]


def _training(fleets: Fleets, keys: IntArray) -> dict[str, FloatArray]:
    """What training each design costs, by the metrics that the study states, each (n,)."""
    problem, found = fleets.problem, dict[str, FloatArray]()
    assessment = Assessment(problem.architectures(problem.space.genotypes(keys)), problem.scenario)
    for name in TRAINING:
        try:
            found[name] = assessment[name]
        except ValueError:  # nothing says the tokens, or no device trains
            continue
    return found


def _model(
    fleets: Fleets, fleet: Fleet, place: int, found: Sequence[Evaluations], training: dict[str, FloatArray]
) -> Model:
    cases = np.flatnonzero(fleet.serves == place).tolist()
    used = tuple(
        {b.metric: float(found[case].metrics[b.metric][place]) / b.limit for b in fleets.cases[case].limits}
        for case in cases
    )
    costs = {name: float(values[place]) for name, values in training.items()}
    loss = float(fleet.loss[cases[0]])
    return Model(int(fleet.keys[place]), loss, tuple(cases), costs, used, _holds(fleets.designs.known, loss, cases))


def _holds(known: Patterns, loss: float, cases: Sequence[int]) -> tuple[Hold, ...]:
    """Cases without which, each alone, their model could have less loss; the largest gain first."""
    everything = sum(1 << case for case in cases)
    without = [everything & ~(1 << case) for case in cases] if len(cases) > 1 else []
    gains = loss - known.least(np.array(without, dtype=np.uint64))
    holds = [Hold(case, gain) for case, gain in zip(cases, gains.tolist(), strict=False) if gain > GAIN]
    return tuple(sorted(holds, key=lambda hold: -hold.nats))


def fullest(model: Model, case: int) -> tuple[str, float]:
    """The limit of a served case that its model fills most, and how far; of a case without limits nothing."""
    used = model.used[model.cases.index(case)]
    return max(used.items(), key=lambda item: item[1], default=("", 0.0))


def percent(share: float) -> str:
    """How full a limit is; never 100 % of one that is not quite reached."""
    return "100 %" if share >= 1.0 else f"{min(100 * share, 99.9):.3g} %"


def held_by(fleets: Fleets, model: Model) -> str:
    """The case without which, alone, the model would be better, with its fullest limit there; else the fullest of all."""
    if model.holds:
        hold = model.holds[0]
        metric, share = fullest(model, hold.case)
        return f"held by {fleets.cases[hold.case].label} ({metric} {percent(share)}): {hold.nats:.4f} nats better without it"
    number = max(model.cases, key=lambda case: fullest(model, case)[1])
    metric, share = fullest(model, number)
    if not metric:
        return "no limit holds it"
    alone = "its limit" if len(model.cases) == 1 else "no case alone holds it; fullest"
    return f"{alone}: {metric} {percent(share)} of {fleets.cases[number].label}"
