"""A problem in the theory's terms: its loss law as a convex function, bounds of the variables, the setting of the costs."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log

import numpy as np

from nas.errors import UsageError
from nas.problem.problem import Problem
from nas.terminal.doors import command
from objectives.latency.closed_form import COLUMNS, DEVICE, SCENARIO, uncovered, uncovered_in
from objectives.loss_law.form import Term, named_form, signed_exponent
from objectives.loss_law.law import Law
from plas_paper.costs import Setting, Sides, sides, sides_of_phases
from plas_paper.program import VARIABLES, Box, Convex, Posynomial
from search_spaces.arrays import BoolArray, FloatArray, IntArray
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
        uncovered_parts = [*uncovered(scenario, (*SCENARIO, *OPTIONS)), *uncovered_in(scenario.precision)]
        uncovered_parts += [*uncovered(scenario.device, DEVICE), *(gene for gene in space.genes if gene not in GENES)]
        return uncovered_parts + [name for name in first.further_columns() if name not in (*COLUMNS, "vocabulary")]

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
                "drop cache_efficiency from it, or use --set calibration=datasheet"
            )
        if pair not in self._sides:
            self._sides[pair] = sides_of_phases(self.setting_of(pair))
        return sides(metric, self._sides[pair], self.problem.scenario.output_tokens)

    @cached_property
    def _ratio_ends(self) -> FloatArray:
        """Least and largest m/d per width, (widths, 2)."""
        space = self.problem.space
        return _ends(space.expert_sizes / space.widths[:, None], space.ffn_gene.valid)

    @cached_property
    def _kv_ends(self) -> FloatArray:
        """Least and largest number of KV heads per width, (widths, 2)."""
        space = self.problem.space
        return _ends(space.kv_values.astype(np.float64), space.kv_gene.valid)

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
        limits: dict[str, float] = {}
        for budget in self.problem.budgets:
            limits[budget.metric] = min(budget.limit, limits.get(budget.metric, np.inf))
        if not limits:
            raise UsageError("theory: expected a budget, got none; add for example --budget decode_ms=20")
        return limits


def _ends(values: FloatArray, valid: BoolArray) -> FloatArray:
    """Least and largest valid value of each row, (rows, 2)."""
    return np.stack([np.where(valid, values, np.inf).min(axis=1), np.where(valid, values, -np.inf).max(axis=1)], axis=1)


POWERS = {  # what a law may depend on, as powers of the variables: d_m = d / gqa
    "depth": (1, 0, 0, 0, 0),
    "width": (0, 1, 0, 0, 0),
    "ffn_ratio": (0, 0, 1, 0, 0),
    "kv_dim": (0, 1, 0, -1, 0),
    "activation_rate": (0, 0, 0, 0, 1),
}
SOLVED_BY_HAND = ("hw_codesign", "hw_codesign_log_kv")


def loss_of(law: Law) -> Convex:
    """The loss, nats per token: powers of the variables, what is linear in their logarithms, a constant.

    A logarithm alone is linear and so convex whatever its sign; a power needs a positive coefficient.

    Raises:
        UsageError: a law that is not convex in these variables, or depends on others.
    """
    if law.law_form.of != "loss":
        raise _refused(law, "its terms add up to the logarithm of the loss")
    if law.law_form.factors:
        raise _refused(law, f"the sum of its terms is multiplied by others ({', '.join(law.law_form.factors)})")
    if law.law_form.joined:
        raise _refused(law, f"its terms {' and '.join(law.law_form.joined)} are joined, so that they do not add up")
    if law.partial:
        raise _refused(law, f"it prices {law.priced_designs}")
    powers: list[tuple[float, tuple[float, ...]]] = []
    slopes, constant = np.zeros(len(VARIABLES)), 0.0
    for name, term in law.law_form.terms.items():
        scale = _scale(law, name, term)
        logs = [feature for feature in term.logs if feature != "tokens"]
        exponents = _exponents(law, term)
        if logs and (len(logs) > 1 or exponents.any()):
            raise _refused(law, f"its term {name} multiplies a logarithm by another quantity")
        if logs:
            slopes += scale * np.array(POWERS[logs[0]])
            constant -= scale * log(term.logs[logs[0]])
        elif not exponents.any():
            constant += scale
        elif scale < 0.0:
            raise _refused(law, f"{term.scale} makes its term {name} negative ({scale:g}), which is not convex")
        else:
            powers.append((scale, tuple(exponents.tolist())))
    return Convex(Posynomial.from_terms(powers), slopes, constant)


def _scale(law: Law, name: str, term: Term) -> float:
    """The factor before the variables of a term: its scale, sign and powers and logarithms of the tokens."""
    foreign = [feature for feature in term.features if feature not in POWERS and feature != "tokens"]
    foreign += [] if term.plain else ["crossed exponents" if term.crossed else f"whether a design is {term.only}"]
    if foreign:
        raise _refused(law, f"its term {name} depends on {', '.join(foreign)}")
    factor, tokens = term.sign * law.coefficients[term.scale], law.tokens or 1.0
    if "tokens" in term.powers:
        factor *= tokens ** signed_exponent(term.powers["tokens"], law.coefficients)
    return factor * log(tokens / term.logs["tokens"]) if "tokens" in term.logs else factor


def _exponents(law: Law, term: Term) -> FloatArray:
    exponents = np.zeros(len(VARIABLES))
    for feature, written in term.powers.items():
        if feature != "tokens":
            exponents += signed_exponent(written, law.coefficients) * np.array(POWERS[feature])
    return exponents


def _refused(law: Law, because: str) -> UsageError:
    form = law.form if isinstance(law.form, str) else law.name
    return UsageError(
        f"theory: expected a law of powers of {', '.join(POWERS)} or the logarithm of one of them, got {form}: {because}; "
        f"give --law {SOLVED_BY_HAND[0]}, or use {command('run')} --algo exact"
    )


def no_closed_form(law: Law) -> str:
    """Why the cases solved by hand do not hold for a law; "" where they do."""
    own = law.law_form
    if own.joined or not any(own.terms == named_form(form).terms for form in SOLVED_BY_HAND):
        return f"they are solved for laws of the form {' or '.join(SOLVED_BY_HAND)}"
    needed = [name for name in law.coefficients if name not in ("l_inf", "beta_1", "beta_2")]
    faults = [f"{name} {law.coefficients[name]:g}" for name in needed if law.coefficients[name] <= 0.0]
    return f"they need positive coefficients, and the law has {', '.join(faults)}" if faults else ""
