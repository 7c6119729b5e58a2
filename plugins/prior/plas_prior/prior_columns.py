"""Variables of an expensive metric: its analytic prior, the parts of the prior, and the log variables."""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np

from nas.problem.breakdown import operator_columns
from nas.problem.objective import Objective
from nas.problem.problem import Problem
from nas.problem.quantiles import PHASES
from nas.problem.uncertainty import FROM_LOSS
from objectives.assessment import stating
from objectives.latency.operator import phases
from objectives.loss_law.law import Law
from objectives.metrics.perplexity import LARGEST_LOSS
from objectives.precision import PRECISIONS as FORMATS
from plas_prior.evidence import Group
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray
from search_spaces.columns import PRECISIONS

OF_PHASES = {**PHASES, **dict.fromkeys(stating("ENERGY"), PHASES["total_ms"])}
BITS = np.array([8.0 * FORMATS[name or "fp16"].weight_bytes for name in PRECISIONS])  # those of the study are all alike
LAUNCH_MS = 5e-3  # per operator instance: what calibrated devices show
MEDIANS = {  # of the sd of weights, before anything is seen
    "prior": 1.0,
    "parts": 0.3,  # by how much coefficients of a prior are off
    "variables": 0.3,  # what a log variable does over half its range, in sd of the metric
    "squares": 0.3,
    "values": 0.05,  # what a value of an axis does by itself
    "tiles": 0.05,
    "sizes": 0.05,  # what passing a size of cache does
}

SPARSE = ("values", "tiles", "sizes")


@dataclass(frozen=True, eq=False)
class Designs:
    """Designs with their shipped metrics, in ascending order of keys; `ok` where these are finite."""

    keys: IntArray
    genotypes: IntArray
    architectures: Architectures
    known: dict[str, FloatArray]
    ok: BoolArray

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, rows: slice | IntArray) -> "Designs":
        known = {name: column[rows] for name, column in self.known.items()}
        return Designs(self.keys[rows], self.genotypes[rows], self.architectures[rows], known, self.ok[rows])

    def followed_by(self, other: "Designs") -> "Designs":
        """These designs, then others."""
        return Designs(
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.genotypes, other.genotypes]),
            Architectures.concatenate([self.architectures, other.architectures]),
            {name: np.concatenate([column, other.known[name]]) for name, column in self.known.items()},
            np.concatenate([self.ok, other.ok]),
        )


@dataclass(frozen=True)
class Wanted:
    """Columns that every design has: shipped metrics by name, and the priors that alternative laws predict as well."""

    names: tuple[str, ...]
    rivals: tuple[Law, ...] = ()
    priors: tuple[str, ...] = ()

    def columns(self, problem: Problem, architectures: Architectures) -> tuple[dict[str, FloatArray], BoolArray]:
        """Metrics of designs, each (n,), and where the shipped ones are finite; none of the user's functions is called."""
        known, reasons = problem.metrics(architectures, self.names)
        for law in self.rivals:
            loss = law.loss(architectures) if self.priors else np.zeros(0)
            for name in self.priors:
                known[under(name, law)] = np.exp(np.minimum(loss, LARGEST_LOSS)) if name == "perplexity" else loss
        ok = np.array([not reason for reason in reasons]) if reasons else np.ones(len(architectures), dtype=bool)
        return known, ok


def under(prior: str, law: Law) -> str:
    """The name of an alternative law's prediction in the place of a prior."""
    return f"{prior} ({law.name})"


def described(problem: Problem, keys: IntArray, wanted: Wanted) -> Designs:
    """The designs of some keys, ascending, with what is wanted of them."""
    genotypes = problem.space.genotypes(keys)
    architectures = problem.architectures(genotypes)
    return Designs(keys, genotypes, architectures, *wanted.columns(problem, architectures))


class Variables:
    """The log variables that vary over a reference, each from -1 to 1 over it."""

    def __init__(self, reference: Designs) -> None:
        logs = log_variables(reference.architectures)
        low, high = logs.min(axis=0), logs.max(axis=0)
        self.varying = np.flatnonzero(high > low)
        self.low, self.span = low[self.varying], (high - low)[self.varying]
        self.ranges = [Ranges.of_values(column) for column in self(reference).T]

    def __call__(self, designs: Designs) -> FloatArray:
        """Of designs, (n, v)."""
        return np.asarray(2.0 * (log_variables(designs.architectures)[:, self.varying] - self.low) / self.span - 1.0)

    def values(self, designs: Designs) -> FloatArray:
        """Which value designs have on each axis, (n, k): one 1 for each axis."""
        parts = [of.one_hot(column) for of, column in zip(self.ranges, self(designs).T, strict=True)]
        return np.concatenate([np.zeros((len(designs), 0)), *parts], axis=1)


class Columns:
    """The groups of columns of one metric, centred and scaled by the designs of a reference."""

    def __init__(
        self, problem: Problem, metric: Objective, reference: Designs, variables: Variables, rivals: tuple[Law, ...]
    ) -> None:
        self.problem, self.metric, self.reference, self.variables = problem, metric, reference, variables
        own = problem.scenario.law
        self.laws = {metric.prior: own} | {under(metric.prior, law): law for law in rivals if metric.prior in FROM_LOSS}
        self.centres = {law.name: _means(law, reference.architectures) for law in self.laws.values()}
        self.priors = {name: _ends(self._prior(name, reference)[reference.ok]) for name in self.laws if metric.prior}
        self.jumps = Jumps(reference.architectures)

    def matrix(self, designs: Designs) -> FloatArray:
        """A constant, the prior, its parts, the log variables, their squares and products, (n, p)."""
        return self._of_reference if designs is self.reference else self._matrix(designs)

    @cached_property
    def _of_reference(self) -> FloatArray:
        return self._matrix(self.reference)

    def _matrix(self, designs: Designs) -> FloatArray:
        return np.column_stack([np.ones(len(designs)), *self._groups(designs).values()])

    @cached_property
    def scheme(self) -> tuple[Group, ...]:
        """The groups of columns after the constant."""
        few = self.reference[:1]
        return tuple(
            Group(name, columns.shape[1], MEDIANS[name], name in SPARSE) for name, columns in self._groups(few).items()
        )

    def _groups(self, designs: Designs) -> dict[str, FloatArray]:
        """Columns by group, each (n, k); a prior's only where there is one."""
        variables = self.variables(designs)
        pairs = list(combinations_with_replacement(range(variables.shape[1]), 2))
        squares = np.stack([variables[:, i] * variables[:, j] for i, j in pairs], axis=1) if pairs else variables
        sparse = np.where(designs.architectures.n_experts > 1, 0.5, -0.5)
        free = {"variables": np.column_stack([variables, sparse]), "squares": squares}
        free |= self._jumps(designs)
        if not self.metric.prior:
            return free
        prior = [(self._prior(name, designs) - middle) / width for name, (middle, width) in self.priors.items()]
        parts = [self._parts(name, designs) for name in self.priors]
        return {"prior": _finite(np.stack(prior, axis=1)), "parts": _finite(np.concatenate(parts, axis=1)), **free}

    def _jumps(self, designs: Designs) -> dict[str, FloatArray]:
        """Columns of effects per value, and of a metric that is no loss of tiles and sizes."""
        values = {"values": self.variables.values(designs)}
        if self.metric.prior in FROM_LOSS:
            return values
        of = designs.architectures
        return values | {"tiles": self.jumps.aligned(of), "sizes": self.jumps.passed(of)}

    def _prior(self, name: str, designs: Designs) -> FloatArray:
        """A prior on the metric's own scale, (n,)."""
        with np.errstate(invalid="ignore"):
            return self.metric.scaled(designs.known[name])

    def _parts(self, name: str, designs: Designs) -> FloatArray:
        """How a prior changes with each of its coefficients, over the prior's own sd, (n, k); (n, 0) of one without parts."""
        prior, value = self.metric.prior, designs.known[name]
        if prior in FROM_LOSS:
            parts = self._law_parts(self.laws[name], designs.architectures)
            slope = value if prior == "perplexity" else np.ones(len(designs))
        elif prior in OF_PHASES:
            times = time_parts(self.problem, designs, OF_PHASES[prior])
            parts, slope = times / times[:, :-1].sum(axis=1, keepdims=True), value
        else:
            return np.zeros((len(designs), 0))
        if self.metric.log_scale:
            slope = slope / value
        return parts * slope[:, None] / self.priors[name][1]

    def _law_parts(self, law: Law, architectures: Architectures) -> FloatArray:
        """A law's terms and each times the centred logarithms of what it depends on, nats, (n, k)."""
        logs, centres = law_logs(law, architectures), self.centres[law.name]
        parts: list[FloatArray] = []
        for name, term in law.terms(architectures).items():
            of = quantities(law, name)
            parts += [term, *(term * (logs[q] - centres[q]) for q in of)] if of else []
        return np.stack(parts, axis=1) if parts else np.zeros((len(architectures), 0))


def law_logs(law: Law, architectures: Architectures) -> dict[str, FloatArray]:
    """Logarithms of what a law depends on, each (n,)."""
    return {name: np.log(law.feature(architectures, name)) for name in quantities(law, "")}


def _means(law: Law, architectures: Architectures) -> dict[str, float]:
    return {name: float(column.mean()) for name, column in law_logs(law, architectures).items()}


def _ends(values: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation of finite values, 0 and 1 without any."""
    values = values[np.isfinite(values)]
    return (float(values.mean()), float(values.std()) or 1.0) if len(values) else (0.0, 1.0)


def quantities(law: Law, term: str) -> tuple[str, ...]:
    """Variables of an architecture that a term of a law depends on; of no single term, those of the whole law."""
    form = law.law_form
    named = form.terms[term].features if term in form.terms else form.features
    plain = (form.bent[name].of if name in form.bent else name for name in named)
    return tuple(dict.fromkeys(name for name in plain if name != "tokens"))


def log_variables(architectures: Architectures) -> FloatArray:
    """Logarithms of whatever may be an axis, (n, 15): shape, heads beside the width, tokens, bits of a weight, 1 + layers of each kind, window."""
    a = architectures
    shape = (a.depth, a.width, a.n_experts, a.top_k, a.expert_ffn_ratio, a.n_kv_heads)
    further = (a.head_dim, a.query_dim / a.width, np.maximum(a.tokens, 1), BITS[a.precision])
    kinds = (1 + kind for kind in (a.n_local, a.window, a.n_kv_shared, a.n_linear, a.n_conv))
    return np.log(np.stack([*shape, *further, *kinds], axis=1).astype(np.float64))


def time_parts(problem: Problem, designs: Designs, asked: tuple[str, ...]) -> FloatArray:
    """Milliseconds by phase, by attention, FFN and head, by what binds; last, what launches of LAUNCH_MS would take, (n, k)."""
    scenario, found = problem.scenario, list[FloatArray]()
    launches = np.zeros(len(designs))
    columns = operator_columns(scenario, designs.architectures)
    for phase in (phase for phase in phases(scenario) if phase.name in asked):
        by_part: dict[tuple[str, str], FloatArray] = {}
        for operator in columns[phase.name]:
            launches = launches + operator.instances * (phase.passes * LAUNCH_MS)
            for kind in ("compute", "memory"):
                place = (operator.part, kind)
                by_part[place] = by_part.get(place, 0.0) + operator.ms_by_kind[kind]
        found += by_part.values() if by_part else [problem.assess(designs.architectures)[f"{phase.name}_ms"]]
    return np.stack([*found, launches], axis=1)


def _finite(columns: FloatArray) -> FloatArray:
    """Columns with 0 where a design has no finite value, which is none that can be proposed."""
    return np.where(np.isfinite(columns), columns, 0.0)


MOST_VALUES = 48  # of an axis with a column each; of more, values are taken together
TOGETHER = 12  # ranges of such an axis
TILES = (128, 256, 512)
SIZES = 16  # places at which bytes may pass a size, spread over the designs of a reference


@dataclass(frozen=True, eq=False)
class Ranges:
    """One variable cut at ascending places, (r − 1,), midway between its values where these are few."""

    cuts: FloatArray

    @classmethod
    def of_values(cls, column: FloatArray) -> "Ranges":
        """A range of every value of a reference (n,), or ranges of several values with as many designs."""
        values = np.unique(column)
        if len(values) <= MOST_VALUES:
            return cls((values[1:] + values[:-1]) / 2.0)
        return cls.of_quantiles(column, TOGETHER)

    @classmethod
    def of_quantiles(cls, column: FloatArray, count: int) -> "Ranges":
        """So many ranges of a reference (n,), of fewer values a range each."""
        values = np.unique(column)
        inner = np.quantile(column, np.arange(1, count) / count, method="lower")
        places = np.unique(np.searchsorted(values, inner, side="right"))
        places = places[places < len(values)]
        return cls((values[places] + values[places - 1]) / 2.0)

    def one_hot(self, column: FloatArray) -> FloatArray:
        """1 in the range of each value, else 0, (n, r)."""
        place = np.searchsorted(self.cuts, column)
        return np.asarray((place[:, None] == np.arange(len(self.cuts) + 1)).astype(np.float64))

    def passed(self, column: FloatArray) -> FloatArray:
        """0.5 from each cut on, −0.5 below, (n, r − 1)."""
        return np.where(column[:, None] > self.cuts, 0.5, -0.5)


class Jumps:
    """Columns of jumps over the dimensions and bytes that vary over a reference."""

    def __init__(self, reference: Architectures) -> None:
        tiles = fits(reference)
        self.varying: BoolArray = (tiles != tiles[:1]).any(axis=0)
        self.sizes = [Ranges.of_quantiles(column, SIZES) for column in logs_of_bytes(reference).T]

    def aligned(self, architectures: Architectures) -> FloatArray:
        """Whether dimensions are multiples of tiles, and heads are of a kind of their own, ±0.5, (n, k)."""
        return np.asarray(fits(architectures)[:, self.varying])

    def passed(self, architectures: Architectures) -> FloatArray:
        """Which sizes bytes have passed, ±0.5, (n, k): weights of normal steps are a Brownian function of the bytes."""
        columns = logs_of_bytes(architectures).T
        return np.concatenate([size.passed(column) for size, column in zip(self.sizes, columns, strict=True)], axis=1)


def fits(a: Architectures) -> FloatArray:
    """±0.5, (n, k): width, FFN, KV and query dimensions by tile, heads by 8; one KV head, one for each head, several experts active."""
    dimensions = (a.width, a.expert_size, a.kv_dim, a.query_dim)
    tiles = [column % tile == 0 for column in dimensions for tile in TILES]
    others = [a.n_heads % 8 == 0, a.n_kv_heads == 1, a.n_kv_heads == a.n_heads, a.top_k > 1, a.n_experts > 1]
    return np.where(np.stack([*tiles, *others], axis=1), 0.5, -0.5)


def logs_of_bytes(a: Architectures) -> FloatArray:
    """Logarithms of weights that are read again and again: of an expert, active ones of a layer, of all layers, all there are; of the KV cache, (n, 5)."""
    expert = 3.0 * a.width * a.expert_size
    attention = a.width * (2.0 * a.query_dim + 2.0 * a.kv_dim)
    layer = attention + expert * a.top_k
    whole = a.depth * (attention + expert * a.n_experts)
    return np.asarray(np.log(np.stack([expert, layer, layer * a.depth, whole, 1.0 * a.depth * a.kv_dim], axis=1)))
