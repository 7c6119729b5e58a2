"""A problem's space and scenario in the theory's terms: bounds of the variables and the setting of the costs."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from nas.errors import UsageError
from nas.problem.problem import Problem
from nas.terminal.program import command
from nas.theory.costs import Setting
from nas.theory.loss_terms import loss_of
from nas.theory.operator_costs import Sides, sides, sides_of_phases
from nas.theory.posynomial import Convex
from nas.theory.program import Box
from objectives.latency.closed_form import COLUMNS, DEVICE, SCENARIO, uncovered, uncovered_in
from search_spaces.arrays import FloatArray, IntArray
from search_spaces.specification import GENES, OF_HEADS

OPTIONS = ("attention", "causal", "complete", "calibration")  # of the operator model, whose sums the program takes


@dataclass(frozen=True, eq=False)
class TheoryProblem:
    """A problem seen as a geometric program.

    Raises:
        UsageError: axes of layers or heads, a law that is not convex in the theory's variables, a user's metric as a budget,
            anything that no formula is known to cover.
    """

    problem: Problem
    _sides: dict[tuple[int, int], tuple[Sides, Sides]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        space = self.problem.space
        if space.formats != [""]:
            raise UsageError(
                f"theory: expected a space of one precision, got {space.name} with precision as an axis; "
                f"choose one with --precision, or use {command('run')} --algo exact"
            )
        if space.settings:
            raise UsageError(
                f"theory: expected one value of {' and of '.join(space.settings)}, got {space.name} with an axis of them; "
                f"give one{' (--set tokens=10B)' * ('tokens' in space.settings)}, or use {command('run')} --algo exact"
            )
        if space.mixed:
            raise UsageError(
                f"theory: expected a space whose layers are all of full attention, as its formulas assume, got {space.name} "
                f"with layers as an axis; use {command('run')} --algo exact"
            )
        axes = [name for name in OF_HEADS if name in space.genes]
        if axes:
            raise UsageError(
                "theory: expected a space of one head size whose heads together are as wide as the layers (d_q = d), as its "
                f"formulas assume, got {space.name} with {' and '.join(axes)} as axes; use {command('run')} --algo exact"
            )
        if beyond := self._beyond():
            raise UsageError(
                f"theory: expected a study that its formulas cover, got one with {', '.join(beyond)}; "
                f"use {command('run')} --algo exact"
            )

    def _beyond(self) -> list[str]:
        """Parts of the study that no formula reads: fields of its scenario, genes, columns that all its designs share."""
        space, scenario = self.problem.space, self.problem.scenario
        first = self.problem.architectures(space.genotypes(np.zeros(1, dtype=np.int64)))
        found = [*uncovered(scenario, (*SCENARIO, *OPTIONS)), *uncovered_in(scenario.precision)]
        found += [*uncovered(scenario.device, DEVICE), *(gene for gene in space.genes if gene not in GENES)]
        return found + [name for name in first.further_columns() if name not in (*COLUMNS, "vocabulary")]

    @cached_property
    def setting(self) -> Setting:
        """The setting of the costs, (E, K) left open."""
        problem = self.problem
        return Setting(problem.scenario, problem.space.specification.head_dims[0], problem.vocabulary, problem.tied)

    @cached_property
    def loss(self) -> Convex:
        """The law's loss, nats per token."""
        return loss_of(self.problem.scenario.law)

    @cached_property
    def pairs(self) -> IntArray:
        """Valid (E, K), (pairs, 2)."""
        space = self.problem.space
        genes = np.argwhere(space.top_k_gene.valid)
        return np.stack([space.experts[genes[:, 0]], space.top_ks[genes[:, 1]]], axis=1)

    def setting_of(self, pair: tuple[int, int]) -> Setting:
        """The setting with (E, K) decided."""
        return replace(self.setting, experts=pair)

    def sides(self, metric: str, pair: tuple[int, int]) -> Sides:
        """Compute and memory side of every operator of a latency metric, for one (E, K).

        Raises:
            UsageError: times that depend on what a cache holds, which are no sums of operators.
        """
        if self.problem.scenario.cached:
            raise UsageError(
                "calibration: expected times that are sums of operators, got a profile with a cache tier; "
                "drop cache_efficiency from it, or use --calibration datasheet"
            )
        if pair not in self._sides:
            self._sides[pair] = sides_of_phases(self.setting_of(pair))
        return sides(metric, self._sides[pair], self.problem.scenario.output_tokens)

    @cached_property
    def _ratio_ends(self) -> FloatArray:
        """Least and largest m/d per width, (widths, 2)."""
        space = self.problem.space
        ratios = space.expert_sizes / space.widths[:, None]
        valid = space.ffn_gene.valid
        return np.stack(
            [np.where(valid, ratios, np.inf).min(axis=1), np.where(valid, ratios, -np.inf).max(axis=1)], axis=1
        )

    @cached_property
    def _kv_ends(self) -> FloatArray:
        """Least and largest number of KV heads per width, (widths, 2)."""
        space = self.problem.space
        values, valid = space.kv_values.astype(np.float64), space.kv_gene.valid
        return np.stack(
            [np.where(valid, values, np.inf).min(axis=1), np.where(valid, values, -np.inf).max(axis=1)], axis=1
        )

    def box(self, first: int = 0, last: int = -1, pair: tuple[int, int] | None = None) -> Box:
        """Bounds that hold every design of a range of widths (genes) and, if given, of one (E, K)."""
        space = self.problem.space
        last = len(space.widths) - 1 if last < 0 else last
        rows = slice(first, last + 1)
        pairs = self.pairs if pair is None else np.array([pair])
        rates = pairs[:, 1] / pairs[:, 0]
        heads, kv = space.heads[rows], self._kv_ends[rows]
        lower = [space.depths[0], space.widths[first], pairs[:, 1].min() * self._ratio_ends[rows, 0].min()]
        upper = [space.depths[-1], space.widths[last], pairs[:, 1].max() * self._ratio_ends[rows, 1].max()]
        lower += [(heads / kv[:, 1]).min(), rates.min()]
        upper += [(heads / kv[:, 0]).max(), rates.max()]
        least = float(kv[:, 0].min()) * self.setting.head_dim
        return Box(np.array(lower, dtype=np.float64), np.array(upper, dtype=np.float64), least)

    @cached_property
    def limits(self) -> dict[str, float]:
        """Budgets by metric; the tightest where one is named twice."""
        found: dict[str, float] = {}
        for budget in self.problem.budgets:
            found[budget.metric] = min(budget.limit, found.get(budget.metric, np.inf))
        if not found:
            raise UsageError("theory: expected a budget, got none; add for example --budget decode_ms=20")
        return found
