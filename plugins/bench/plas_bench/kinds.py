"""Frozen kinds of cases: what is true and what is measured, once per design with noise, of any design, by kind and seed.

Every kind has loss (nats) and total latency (ms) as expensive objectives whose priors are the formulas, over a space on a Jetson AGX
Orin in fp16. A kind never changes; what is drawn follows from its name and the seed alone.

- `caches`: latency jumps by factors of 1.15 to 2 where bytes of an expert, a layer or all active weights pass 1 to 3 sizes;
- `alignment`: up to 1.4 times as long for each of width, FFN, KV and query dimensions that is no multiple of its tile;
- `values`: a normal effect of every value of every axis, sd 15 % of the latency and 0.05 nats;
- `value_pairs`: the same of every pair of values of two drawn pairs of axes;
- `heavy`: noise of Student's t with two degrees of freedom at 3 % and 0.005 nats; one design in twenty takes 1.5 times as long
  and one in twenty loses 0.1 nats more;
- `cliff`: designs that need a drawn operator take 2 to 4 times as long;
- `rough_wrong`: a loss of another form, slow small experts, and so much of a rough random field that the formulas rank at 0.5;
- `rough_useless`: rough random fields that the formulas rank at 0;
- `mirrored`: the formulas at the design mirrored along one or two drawn axes (depth, width, experts, FFN ratio), the same for both;
- `wrong_sign`: the formulas' negative with so much of a random field that they rank at -0.6;
- `three`: `caches` and `alignment`, and resident memory as a third objective, a formula;
- `budgets`: `cliff` and `values`, at most the median of the true frontier's latencies and 4 GB;
- `edge2026`: `values`, `alignment` and `caches` over the space edge2026 (1.3·10¹² designs).

The first six, and those made of them, stand on mildly wrong formulas: the law's coefficients and exponents times exp(0.12 z), another
profile. Noise is normal, 3 % and 0.005 nats, where nothing else is said. Fields are those of `plas_bench.smooth`, rough ones with a
length scale of 0.25 to 0.5.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from zlib import crc32

import numpy as np

from nas.problem.evaluations import non_dominated
from nas.problem.objective import Budget, Objective
from nas.problem.problem import SMALL, Problem
from nas.search.archive import KeyIndex, draw_unseen
from nas.search.assembly import assemble
from plas_bench.jumps import Axes, alignment, caches, cliff, effects, normal, pair_effects, per_design, seed_of, student
from plas_bench.smooth import Field, Part, as_wide, calibrated, jittered, other_form, ranked
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray

SCALES = {"loss": ("nats", False), "total_ms": ("ms", True)}  # of what is expensive
NOISE = {"loss": 0.005, "total_ms": 0.03}  # nats, and of the logarithm
OUTLIER, OUTLIERS = {"loss": 0.1, "total_ms": float(np.log(1.5))}, 0.05
MILD, WRONG, WRONG_SIGN, ROUGH = 0.12, 0.5, -0.6, (0.25, 0.5)
EFFECT = {"loss": 0.05, "total_ms": 0.15}
MEMORY_GB = 4.0
REFERENCE = 20_000  # designs of a large space that stand for it


@dataclass(frozen=True)
class Kind:
    """What is drawn for loss and latency, over which space, under which objectives and budgets, with which noise."""

    loss: tuple[str, ...] = ("mild",)
    total_ms: tuple[str, ...] = ("mild",)
    space: str = "paper"
    objectives: tuple[str, ...] = ("loss", "total_ms")
    budgets: bool = False
    heavy: bool = False


KINDS: dict[str, Kind] = {
    "caches": Kind(total_ms=("mild", "caches")),
    "alignment": Kind(total_ms=("mild", "alignment")),
    "values": Kind(("mild", "values"), ("mild", "values")),
    "value_pairs": Kind(("mild", "value_pairs"), ("mild", "value_pairs")),
    "heavy": Kind(heavy=True),
    "cliff": Kind(total_ms=("mild", "cliff")),
    "rough_wrong": Kind(("rough_wrong",), ("rough_wrong",)),
    "rough_useless": Kind(("rough_useless",), ("rough_useless",)),
    "mirrored": Kind(("mirrored",), ("mirrored",)),
    "wrong_sign": Kind(("wrong_sign",), ("wrong_sign",)),
    "three": Kind(total_ms=("mild", "caches", "alignment"), objectives=("loss", "total_ms", "resident_gb")),
    "budgets": Kind(("mild", "values"), ("mild", "cliff", "values"), budgets=True),
    "edge2026": Kind(("mild", "values"), ("mild", "values", "alignment", "caches"), space="edge2026"),
}


@dataclass(frozen=True, eq=False)
class Draw:
    """What a part is drawn from: the analytic problem, designs that stand for its space, a generator, axes to mirror."""

    problem: Problem
    reference: Architectures
    generator: np.random.Generator
    mirrored: IntArray

    def prior(self, metric: str, architectures: Architectures) -> FloatArray:
        """The formula on the metric's own scale, (n,)."""
        values = self.problem.assess(architectures)[metric]
        return np.asarray(np.log(values) if SCALES[metric][1] else values)


def _mild(draw: Draw, metric: str) -> Part:
    if metric == "loss":
        return jittered(draw.problem.scenario.law, MILD, draw.generator).loss
    return calibrated(draw.problem, draw.generator)


def _mixture(draw: Draw, metric: str, values: Part, target: float, lengths: tuple[float, float] | None) -> Part:
    """Values with as much of a field as ranks the prior at a target."""
    of = draw.reference
    field = Field(of, draw.generator) if lengths is None else Field(of, draw.generator, lengths)
    mix = ranked(values(of), draw.prior(metric, of), field(of), target)
    return lambda a: mix(values(a), draw.prior(metric, a), field(a))


def _rough_wrong(draw: Draw, metric: str) -> Part:
    """Another form, or a profile whose small experts are slow, and a rough field."""
    if metric == "loss":
        raw, of = other_form(draw.generator), draw.reference
        wide = as_wide(raw(of), draw.prior(metric, of))
        return _mixture(draw, metric, lambda a: wide(raw(a)), WRONG, ROUGH)
    base, slow = calibrated(draw.problem, draw.generator), float(np.log(draw.generator.uniform(1.0, 1.5)))
    return _mixture(draw, metric, lambda a: base(a) + np.where(a.expert_size < 1024, slow, 0.0), WRONG, ROUGH)


def _rough_useless(draw: Draw, metric: str) -> Part:
    return _mixture(draw, metric, lambda a: np.zeros(len(a)), 0.0, ROUGH)


def _wrong_sign(draw: Draw, metric: str) -> Part:
    """The prior turned over about its mean, and a smooth field."""
    middle = 2.0 * draw.prior(metric, draw.reference).mean()
    return _mixture(draw, metric, lambda a: middle - draw.prior(metric, a), WRONG_SIGN, None)


def _mirrored(draw: Draw, metric: str) -> Part:
    """The prior of the design whose genes are turned round on the mirrored axes."""
    space, sizes = draw.problem.space, draw.problem.space.gene_sizes

    def part(a: Architectures) -> FloatArray:
        genotypes = space.genotypes(space.find(a))
        genotypes[:, draw.mirrored] = (sizes - 1 - genotypes)[:, draw.mirrored]
        return draw.prior(metric, draw.problem.architectures(space.repair(genotypes)))

    return part


PARTS: dict[str, Callable[[Draw, str], Part]] = {
    "mild": _mild,
    "caches": lambda draw, _: caches(draw.reference, draw.generator),
    "alignment": lambda draw, _: alignment(draw.generator),
    "cliff": lambda draw, _: cliff(draw.generator),
    "values": lambda draw, metric: effects(Axes.of(draw.reference), EFFECT[metric], draw.generator),
    "value_pairs": lambda draw, metric: pair_effects(Axes.of(draw.reference), EFFECT[metric], draw.generator),
    "rough_wrong": _rough_wrong,
    "rough_useless": _rough_useless,
    "wrong_sign": _wrong_sign,
    "mirrored": _mirrored,
}


class Truth:
    """What is true of the two expensive metrics, and what one measurement of a design says, for any architectures."""

    def __init__(self, kind: str, seed: int, problem: Problem, reference: Architectures) -> None:
        self.kind, generator = KINDS[kind], np.random.default_rng([seed, crc32(kind.encode())])
        wide = np.flatnonzero(problem.space.gene_sizes[:-1] > 2)  # KV heads, the last, hardly tell mirrored
        mirrored = generator.choice(wide, generator.integers(1, 3), replace=False)
        draw = Draw(problem, reference, generator, mirrored)
        recipes = {"loss": self.kind.loss, "total_ms": self.kind.total_ms}
        self.parts = {metric: [PARTS[name](draw, metric) for name in names] for metric, names in recipes.items()}
        self.seeds = {metric: (seed_of(generator), seed_of(generator)) for metric in recipes}

    def true(self, metric: str, architectures: Architectures) -> FloatArray:
        """Loss, nats, or latency, ms, (n,)."""
        return self._back(metric, self._scaled(metric, architectures))

    def measured(self, metric: str, architectures: Architectures) -> FloatArray:
        """The same with the noise of one measurement, always the same of a design, (n,)."""
        return self._back(metric, self._scaled(metric, architectures) + self.noise(metric, architectures))

    def noise(self, metric: str, architectures: Architectures) -> FloatArray:
        """What one measurement adds on the metric's own scale, (n,)."""
        of_noise, of_outliers = self.seeds[metric]
        if not self.kind.heavy:
            return NOISE[metric] * normal(of_noise, architectures)
        outlier = per_design(of_outliers, architectures) < OUTLIERS
        return NOISE[metric] * student(of_noise, architectures) + OUTLIER[metric] * outlier

    def _scaled(self, metric: str, architectures: Architectures) -> FloatArray:
        return np.asarray(np.sum([part(architectures) for part in self.parts[metric]], axis=0))

    def _back(self, metric: str, values: FloatArray) -> FloatArray:
        return np.exp(values) if SCALES[metric][1] else values


@dataclass(frozen=True, eq=False)
class Case:
    """A kind and a seed: the problem that a method works on, with measured objectives, and what is true."""

    problem: Problem
    analytic: Problem
    truth: Truth

    def values(self, genotypes: IntArray) -> FloatArray:
        """True values of the objectives, (n, m)."""
        return np.stack([self._true(o.name, genotypes) for o in self.analytic.objectives], axis=1)

    def feasible(self, genotypes: IntArray) -> BoolArray:
        """Whether the true values hold the budgets, (n,)."""
        held = [b.violation(self._true(b.metric, genotypes)) <= 0 for b in self.analytic.budgets]
        return np.logical_and.reduce(held) if held else np.ones(len(genotypes), dtype=bool)

    def frontier(self) -> FloatArray:
        """Values of the exact frontier, (k, m), of a space that can be priced whole.

        Raises:
            ValueError: a larger space.
        """
        if self.problem.space.size > SMALL:
            raise ValueError(f"space: expected at most {SMALL:,} designs, got {self.problem.space.size:,}; search it")
        every = self.problem.space.genotypes(np.arange(self.problem.space.size))
        values = self.values(every)[self.feasible(every)]
        return values[non_dominated(values)]

    def _true(self, metric: str, genotypes: IntArray) -> FloatArray:
        architectures = self.analytic.architectures(genotypes)
        if metric in SCALES:
            return self.truth.true(metric, architectures)
        return self.analytic.assess(architectures)[metric]


@cache
def _analytic(space: str, objectives: tuple[str, ...]) -> tuple[Problem, Architectures]:
    """The formulas' own problem without budgets, and designs that stand for its space."""
    raw = {
        "space": space,
        "objectives": list(objectives),
        "default_budget": "none",
        "baselines": [],
        "applications": {},
    }
    problem = assemble(raw, {}).problem
    whole = problem.space.size <= SMALL
    generator = np.random.default_rng(0)
    drawn = draw_unseen(problem.space.size, KeyIndex(), REFERENCE, generator) if not whole else None
    keys = np.arange(problem.space.size) if drawn is None else np.sort(drawn)
    return problem, problem.architectures(problem.space.genotypes(keys))


def case_of(kind: str, seed: int) -> Case:
    """The case of a kind and a seed.

    Raises:
        KeyError: a kind that is none of `KINDS`.
    """
    chosen = KINDS[kind]
    problem, reference = _analytic(chosen.space, chosen.objectives)
    truth = Truth(kind, seed, problem, reference)
    if chosen.budgets:
        median = float(np.median(Case(problem, problem, truth).frontier()[:, 1]))
        problem = replace(problem, budgets=(Budget("total_ms", median), Budget("memory_gb", MEMORY_GB)))
    return Case(_measured(problem, truth), problem, truth)


def _measured(problem: Problem, truth: Truth) -> Problem:
    """The problem with measured metrics in the place of formulas, which are their priors."""
    own = {name: measured(name, truth) for name in SCALES}
    objectives = tuple(own.get(o.name, o) for o in problem.objectives)
    budgets = tuple(replace(b, metric=own[b.metric].name) if b.metric in own else b for b in problem.budgets)
    return replace(problem, objectives=objectives, budgets=budgets, functions=tuple(own.values()))


def measured(metric: str, truth: Truth) -> Objective:
    """A metric as it is measured, once per design."""

    def function(architectures: Architectures) -> FloatArray:
        return truth.measured(metric, architectures)

    unit, log_scale = SCALES[metric]
    return Objective(f"measured:{metric}", unit, log_scale, function, prior=metric)
