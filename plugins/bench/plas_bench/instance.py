"""A problem ready to be searched: genotypes in, objectives and constraint violations out, and how far it is from the exact front."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from nas.compare.anytime import Trace
from nas.compare.reference import Reference, exact_reference
from nas.errors import PlasError, UsageError
from nas.exact.solution import solve
from nas.problem.evaluations import Evaluations, Scale, non_dominated
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from plas_bench.definition import Definition, definition
from plas_bench.distorted import distorted
from plas_bench.fronts import TOLERANCE, Front, difference, keep, kept_keys
from plas_bench.kinds import Case
from plas_bench.measures import score_table
from plas_bench.tables import of_table
from search_spaces.arrays import BoolArray, FloatArray, IntArray

KEPT = 100_000  # designs of a space whose front is solved as quickly as it is read


class Values(NamedTuple):
    """objectives (n, m), minimised; violations (n, k) of the constraints, met where at most 0."""

    objectives: FloatArray
    violations: FloatArray


@dataclass(frozen=True, eq=False)
class BenchProblem:
    """A frozen problem of architectures.

    A genotype is one integer a gene, from 0 to `upper`; what no architecture has is repaired to the nearest, as `repair` says.
    case: of a kind with noise what is true of it; scores and the exact front are of that.
    """

    definition: Definition
    problem: Problem
    case: Case | None = None

    @property
    def name(self) -> str:
        """The problem's name."""
        return self.definition.name

    @property
    def size(self) -> int:
        """Number of designs."""
        return int(self.problem.space.size)

    @property
    def evaluations(self) -> int:
        """The budget of distinct evaluations that results are reported at."""
        return self.definition.evaluations

    @property
    def genes(self) -> tuple[str, ...]:
        """Names of the genes, (g,)."""
        return tuple(self.problem.space.genes)

    @property
    def upper(self) -> IntArray:
        """The largest value of each gene, (g,); the smallest is 0."""
        sizes: IntArray = self.problem.space.gene_sizes
        return sizes - 1

    @property
    def axes(self) -> dict[str, list[Any]]:
        """The values of each column that varies."""
        return {name: list(values) for name, values in self.problem.space.mapping()["axes"].items()}

    @property
    def categorical(self) -> tuple[str, ...]:
        """Genes whose values have no order."""
        return tuple(name for name in self.genes if name in ("layers", "precision", "device", "speculation"))

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names of what is minimised, (m,)."""
        return tuple(objective.name.partition(":")[2] or objective.name for objective in self.problem.objectives)

    @property
    def constraints(self) -> tuple[str, ...]:
        """The constraints, `total_ms <= 300`, (k,)."""
        return tuple(str(budget).removeprefix("measured:") for budget in self.problem.budgets)

    @property
    def ideal(self) -> FloatArray:
        """The best value of each objective on the exact front, as it was frozen, (m,)."""
        return np.array(self.definition.front.ideal)

    @property
    def nadir(self) -> FloatArray:
        """The worst value of each objective on the exact front, as it was frozen, (m,)."""
        return np.array(self.definition.front.nadir)

    @property
    def scale(self) -> Scale:
        """The scale that hypervolumes and distances are measured on: times and sizes as logarithms, ideal at 0, nadir at 1."""
        return Scale.from_frontier(self.problem.objectives, np.stack([self.ideal, self.nadir]))

    def repair(self, genotypes: Any) -> IntArray:
        """The genotypes of the architectures that any integers (n, g) stand for.

        Raises:
            UsageError: another shape, or what is no finite number.
        """
        try:
            given = np.asarray(genotypes, dtype=np.float64)
        except (TypeError, ValueError):
            raise UsageError(
                f"{self.name}: expected genotypes of numbers, got something else; give integers (n, {len(self.genes)})"
            ) from None
        if given.ndim != 2 or given.shape[1] != len(self.genes):
            raise UsageError(
                f"{self.name}: expected genotypes of shape (n, {len(self.genes)}), got {given.shape}; give a row a design"
            )
        if not np.isfinite(given).all():
            raise UsageError(
                f"{self.name}: expected finite genes, got {given[~np.isfinite(given)][0]}; give integers from 0 to `upper`"
            )
        found: IntArray = self.problem.space.repair(np.rint(given).astype(np.int64))
        return found

    def sample(self, n: int, seed: int) -> IntArray:
        """n distinct genotypes drawn uniformly, (n, g); all, if there are fewer."""
        return self.problem.space.sample(n, np.random.default_rng(seed))

    def evaluated(self, genotypes: IntArray) -> Evaluations:
        """Objectives and what the constraints limit of repaired genotypes (n, g)."""
        return self.problem.evaluate(genotypes, self.problem.asked)

    def evaluate(self, genotypes: Any) -> Values:
        """Objectives (n, m) and violations (n, k), `value/limit − 1`, of any integers (n, g), repaired first."""
        found = self.evaluated(self.repair(genotypes))
        return Values(found.values, found.violations)

    def prior(self, genotypes: Any) -> FloatArray:
        """What the formulas say of the objectives, (n, m), of any integers (n, g): of measured ones a first guess, of others the objective itself.

        For optimisers that learn from a prior; it costs no evaluation.
        """
        named = {function.name: function.prior for function in self.problem.functions}
        names = [named.get(objective.name) or objective.name for objective in self.problem.objectives]
        found = self.problem.evaluate(self.repair(genotypes), tuple(dict.fromkeys(names))).metrics
        return np.stack([found[name] for name in names], axis=1)

    def true(self, genotypes: IntArray) -> tuple[FloatArray, BoolArray]:
        """True objectives (n, m), and whether the limits are truly met, (n,), of repaired genotypes: without the noise of a measurement."""
        if self.case is not None:
            return self.case.values(genotypes), self.case.feasible(genotypes)
        found = self.evaluated(genotypes)
        return found.values, found.feasible

    def exact_front(self) -> Front:
        """The exact front: solved when it is first asked for, kept for later, compared with what was frozen.

        Raises:
            PlasError: the solver finds another front than the one that was frozen.
        """
        return self._front

    @cached_property
    def _front(self) -> Front:
        keys = None if self.size <= KEPT else kept_keys(self.name, self.size)
        if keys is not None and not difference(self.definition.front, kept := self.front_of(keys)):
            return kept
        found = self.front_of(self.solved())
        if reason := difference(self.definition.front, found):
            raise PlasError(
                f"{self.name}: {reason}; score with a release of plas-codesign whose changelog says that it finds it"
            )
        if self.size > KEPT:
            keep(self.name, found.keys)
        return found

    def solved(self) -> IntArray:
        """Keys of the exact front, (n,): by the solver, or by pricing every row of a table or design of a distorted space."""
        if not self.problem.functions:
            return solve(self.problem).frontier.keys
        keys = np.arange(self.size)
        values, feasible = self.true(self.problem.space.genotypes(keys))
        return keys[feasible][non_dominated(values[feasible])]

    def front_of(self, keys: IntArray) -> Front:
        """A front by its keys, values computed anew."""
        genotypes = self.problem.space.genotypes(keys)
        return Front(genotypes, keys, self.true(genotypes)[0])

    def reference(self) -> Reference:
        """The exact front as what traces are measured against."""
        front = self.exact_front()
        found = exact_reference(self.problem.objectives, front.values, front.keys)
        assert found is not None, "a frozen problem has feasible designs"
        return found

    def trace(self, genotypes: IntArray, algorithm: str, run: str, seed: int | None, asked: int) -> Trace:
        """At most `asked` distinct designs of repaired genotypes (n, g), in order; a design counts once, where it first stands."""
        keys = self.problem.space.keys(genotypes)
        first = np.sort(np.unique(keys, return_index=True)[1])[:asked]
        values, feasible = self.true(genotypes[first])
        return Trace(algorithm, run, seed, values, feasible, keys[first], "" if len(first) >= asked else "stopped")

    def score(self, genotypes: Any) -> pd.DataFrame:
        """How far designs, in the order in which they were evaluated (n, g), are from the exact front after 10, 30, 100 … of them.

        Columns: gap = 1 − HV(found)/HV(exact), share of the exact front's designs found, IGD+ and additive epsilon, on `scale`.
        A design counts once.

        Examples:
            >>> problem = plas_bench.problem("plas1-paper-loss-latency")
            >>> problem.score(problem.sample(100, seed=0)).index.tolist()
            [10, 30, 100]
        """
        repaired = self.repair(genotypes)
        return score_table(self.trace(repaired, "trace", "0", None, len(repaired)), self.reference())


@cache
def bench_problem(name: str) -> BenchProblem:
    """A problem by its name, checked.

    Raises:
        UsageError: no such problem, or its table is not there.
        PlasError: other values than those it was frozen with.
    """
    found = bench_of(definition(name))
    refuse_other_values(found)
    return found


def bench_of(known: Definition) -> BenchProblem:
    """The problem of a definition, unchecked.

    Raises:
        UsageError: its table is not there.
    """
    base = assemble(known.study, {}).problem
    if known.table is not None:
        return BenchProblem(known, of_table(known.name, known.table, base))
    if known.kind is None:
        return BenchProblem(known, base)
    case = distorted(known.kind, base)
    return BenchProblem(known, case.problem, case)


def refuse_other_values(found: BenchProblem) -> None:
    """See that a problem has the values that it was frozen with.

    Raises:
        PlasError: it has not, naming both.
    """
    check, now = found.definition.check, found.evaluate(np.array(found.definition.check.genotypes))
    for names, was, is_now in (
        (found.objectives, check.objectives, now.objectives),
        (found.constraints, check.violations, now.violations),
    ):
        frozen = np.array(was).reshape(is_now.shape)
        for row, column in np.argwhere(~np.isclose(is_now, frozen, rtol=TOLERANCE, atol=TOLERANCE)):
            raise PlasError(
                f"{found.name}: expected {names[column]} {frozen[row, column]:.12g} of design {check.genotypes[row]}, as version "
                f"{found.definition.version} was frozen on {found.definition.frozen_on}, got {is_now[row, column]:.12g}; score with a "
                "release of plas-codesign whose changelog says that it computes them"
            )


def described(found: BenchProblem) -> Mapping[str, Any]:
    """What `plas bench show` prints, as plain content."""
    known = found.definition
    return {
        "name": known.name,
        "title": known.title,
        "family": known.family,
        "designs": found.size,
        "genes": dict(zip(found.genes, (found.upper + 1).tolist(), strict=True)),
        "axes": found.axes,
        "categorical": list(found.categorical),
        "objectives": list(found.objectives),
        "constraints": list(found.constraints),
        "evaluations": known.evaluations,
        "exact_front": {"members": known.front.members, "vectors": known.front.vectors},
        "ideal": known.front.ideal,
        "nadir": known.front.nadir,
        "sha256": known.front.sha256,
        **({} if known.table is None else {"table": known.table.source}),
    }
