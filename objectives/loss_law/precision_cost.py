"""The cost of few bits: laws of the loss that quantised weights and activations add to a dense model's.

Each adds scale · N^−exponent nats, N the active parameters without embeddings, so that it stands beside any law of the loss. None was fitted to
mixtures of experts: these cost as much as dense models of as many active parameters, and draws of that are twice as wide.

    qat         k D^γ_D (log2 g)^γ_G / N^γ_N            (Chen et al. 2025, D tokens, groups of g weights)
    multiplier  A (N·m)^−α − A N^−α                     (Frantar et al. 2025, m per format; A, α of `chinchilla_epoch`)
    kumar       A N_eff^−α − A N^−α, N_eff = N Π(1 − e^(−P/γ))   (Kumar et al. 2024, P bits of weights, activations, KV cache)
    post_training   a_f (N / 1e9)^−b, with draws         (published perplexities of models rounded after training, a_f per format)

Of a KV cache of few bits `kumar` alone says something; of down projections with inputs of 8 bits `qat` alone: for `multiplier` and
`kumar` they cost what all inputs at 4 bits cost. What a law has no constants for is unknown, not free: a study refuses it.

Source: arXiv 2505.14302, 2502.16440, 2411.04330, constants are transcriptions of the papers' tables; `weight_formats/costs.csv`.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import numpy as np

from objectives.loss_law.features import feature
from objectives.weight_formats.table import BILLION, ENDS, format_costs
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray
from search_spaces.formats import FORMATS, base_of, kv_bits_of, operators_of

PrecisionLaw = Literal["qat", "multiplier", "kumar", "post_training"]
FULL = ("fp16", "fp32")  # what every law counts from: no cost
GROUP = 128  # weights per scale where a study says nothing
TOKENS = 10e9
Constants = MappingProxyType[str, tuple[float, ...]]
QAT: Constants = MappingProxyType(  # k, γ_N, γ_D, γ_G
    {
        "W4A16": (0.2522, 0.3589, 0.1610, 0.3533),
        "W4A4": (0.1582, 0.2186, 0.0745, 0.7779),
        "W16A4": (0.1004, 0.1816, 0.0331, 0.9812),
        "W4A4, FC2 at 8 bits": (0.3519, 0.2637, 0.0964, 0.3407),
    }
)
QAT_OF = MappingProxyType({"int4": "W4A16", "w4a16": "W4A16", "nvfp4": "W4A4", "nvfp4_down8": "W4A4, FC2 at 8 bits"})
OWN_GROUPS = MappingProxyType({"nvfp4": 16, "w4a16": 128})
MULTIPLIERS = MappingProxyType({"int4": 0.923, "w4a16": 0.923, "nvfp4": 0.747})
CHINCHILLA = (482.01, 0.3478)  # A, α of `chinchilla_epoch`
KUMAR = (4299.0, 0.4965)  # A, α
WEIGHTS, ACTIVATIONS, KV_CACHE = 2.6745, 2.2102, 0.96  # γ
BITS = MappingProxyType(  # with the γ of what has so many
    {
        "int8": ((8, WEIGHTS), (8, ACTIVATIONS)),
        "int4": ((4, WEIGHTS),),
        "w4a16": ((4, WEIGHTS),),
        "nvfp4": ((4, WEIGHTS), (4, ACTIVATIONS)),
    }
)
#: Where each was fitted: parameters, tokens; a prediction beyond is an extrapolation. Of `post_training` each format says it.
FITTED: MappingProxyType[PrecisionLaw, MappingProxyType[str, tuple[float, float]]] = MappingProxyType(
    {
        "qat": MappingProxyType({"parameters": (74e6, 595e6), "tokens": (10e9, 100e9)}),
        "multiplier": MappingProxyType({}),
        "kumar": MappingProxyType({"parameters": (30e6, 220e6), "tokens": (1.5e9, 26e9)}),
        "post_training": MappingProxyType({}),
    }
)


SOURCES: MappingProxyType[PrecisionLaw, str] = MappingProxyType(
    {
        "qat": "Chen et al. 2025, arXiv 2505.14302",
        "multiplier": "Frantar et al. 2025, arXiv 2502.16440",
        "kumar": "Kumar et al. 2024, arXiv 2411.04330",
        "post_training": "published perplexities, objectives/weight_formats/costs.csv",
    }
)
CAVEATS: MappingProxyType[PrecisionLaw, str] = MappingProxyType(
    {
        "qat": "of dense models trained at few bits, 74 to 595 M parameters, 10 to 100 B tokens; constants transcribed",
        "multiplier": "of dense models trained at few bits, on the loss of chinchilla_epoch; constants transcribed",
        "kumar": "its authors say that its constants do not transfer; dense, 30 to 220 M parameters; constants transcribed",
        "post_training": "of dense models rounded after training, mostly 0.3 to 70 B parameters; perplexities of plain text",
    }
)


@dataclass(frozen=True)
class Penalty:
    """scale · N^−exponent nats of one format under one law, `law`, for `tokens` training tokens, N active parameters.

    fitted_on: the parameters of the models that it was fitted to, where the format has its own; of_experts: factor on a draw's cost in models with experts.
    """

    law: PrecisionLaw
    scale: float
    exponent: float
    tokens: float
    fitted_on: tuple[float, float] | None = None
    of_experts: float = 1.0

    def nats(self, active: FloatArray, sparse: BoolArray | bool = False) -> FloatArray:
        """What the format adds to the loss of models of so many active parameters without embeddings, with experts or not, nats, (n,)."""
        cost = self.scale * np.asarray(active, dtype=np.float64) ** -self.exponent
        return np.where(sparse, self.of_experts * cost, cost)

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """What it was fitted on: parameters and tokens, as far as it depends on them."""
        return dict(FITTED[self.law]) | ({} if self.fitted_on is None else {"parameters": self.fitted_on})

    def extrapolates(self, parameters: FloatArray) -> BoolArray:
        """Which models are outside what the law was fitted on, (n,)."""
        least, most = self.ranges.get("parameters", (0.0, math.inf))
        first, last = self.ranges.get("tokens", (0.0, math.inf))
        beyond: BoolArray = (parameters < least) | (parameters > most) | (not first <= self.tokens <= last)
        return beyond


@dataclass(frozen=True)
class FewBits:
    """A law of what formats cost, for a number of tokens and weights per scale; rows without a format have `precision`.

    draw: which of the law's draws to price by, in turn where there are fewer; None: its median.
    """

    law: PrecisionLaw
    precision: str
    tokens: float
    group_size: int
    draw: int | None = None

    def penalty(self, precision: str) -> Penalty | None:
        """What a format costs; None where that is nothing, or the law has no constants for it (`unpriced_formats`)."""
        name = precision or self.precision
        base, operators = base_of(name), operators_of(name)
        if self.law == "qat" and operators in QAT_OF:
            k, gamma_n, gamma_d, gamma_g = QAT[QAT_OF[operators]]
            group = OWN_GROUPS.get(base, self.group_size)
            return Penalty(self.law, k * self.tokens**gamma_d * math.log2(group) ** gamma_g, gamma_n, self.tokens)
        if self.law == "multiplier" and base in MULTIPLIERS:
            return self._fewer(*CHINCHILLA, MULTIPLIERS[base])
        if self.law == "kumar" and (few := _bits(name)):
            return self._fewer(*KUMAR, math.prod(-math.expm1(-bits / gamma) for bits, gamma in few))
        if self.law == "post_training" and operators in format_costs().nats:
            return self._rounded(operators)
        return None

    def _rounded(self, name: str) -> Penalty | None:
        """The cost of rounding; None of groups larger than those that were measured."""
        costs = format_costs()
        if name == "int4" and self.group_size > GROUP:
            return None
        if self.draw is None:
            return Penalty(self.law, *costs.term(name), self.tokens, costs.fitted_on[name])
        scale, exponent, wider = (float(each[self.draw % len(each)]) for each in _drawn_terms(name))
        return Penalty(self.law, scale, exponent, self.tokens, costs.fitted_on[name], wider)

    def prices(self, precision: str) -> bool:
        """Whether the law says what a format costs, its KV cache included."""
        known = self.law == "kumar" or kv_bits_of(precision) is None
        return known and (operators_of(precision) in FULL or self.penalty(precision) is not None)

    def interval(self, design: Architectures) -> tuple[float, float] | None:
        """Where 90 % of what its own format may cost one design lie, nats; None of a law that does not say how sure it is."""
        if self.law != "post_training":
            return None
        low, high = np.quantile(self.drawn(design, len(format_costs().draws))[:, 0], ENDS)
        return float(low), float(high)

    def _fewer(self, a: float, alpha: float, left: float) -> Penalty:
        """A (left · N)^−α − A N^−α."""
        return Penalty(self.law, a * (left**-alpha - 1.0), alpha, self.tokens)

    def _costly(self, architectures: Architectures) -> Iterator[tuple[Penalty, IntArray]]:
        """Each format and number of tokens that costs something, with its rows."""
        for name, rows in architectures.in_formats():
            own = architectures.tokens[rows]
            for tokens in np.unique(own).tolist():
                law = replace(self, tokens=float(tokens)) if tokens else self
                if (cost := law.penalty(name)) is not None:
                    yield cost, rows[own == tokens]

    def nats(self, architectures: Architectures) -> FloatArray:
        """What the formats of architectures add to the loss, nats, (n,)."""
        found = np.zeros(len(architectures))
        for cost, rows in self._costly(architectures):
            some = architectures[rows]
            found[rows] = cost.nats(feature(some, "active_parameters"), some.n_experts > 1)
        return found

    def drawn(self, architectures: Architectures, count: int) -> FloatArray:
        """The same under each of so many draws, nats, (count, n); (1, n) of a law without draws."""
        if self.law != "post_training":
            return self.nats(architectures)[None]
        found, costs = np.zeros((count, len(architectures))), format_costs()
        for name, rows in architectures.in_formats():
            if self.penalty(name) is not None:
                turns, some = np.arange(count) % len(costs.draws), architectures[rows]
                terms = _drawn_terms(operators_of(name or self.precision))
                scales, exponents, wider = (each[turns, None] for each in terms)
                cost = scales * feature(some, "active_parameters") ** -exponents
                found[:, rows] = np.where(some.n_experts > 1, wider * cost, cost)
        return found

    def extrapolates(self, architectures: Architectures) -> BoolArray:
        """Whose format costs something that the law was not fitted on, (n,)."""
        found = np.zeros(len(architectures), dtype=bool)
        for cost, rows in self._costly(architectures):
            found[rows] = cost.extrapolates(feature(architectures[rows], "active_parameters"))
        return found


def _drawn_terms(name: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scale and exponent of a format's cost under each draw, and the factor with which its distance from the median's is doubled at 10⁹ parameters, each (draws,)."""
    costs = format_costs()
    (scale, exponent), (scales, exponents) = costs.term(name), costs.drawn_terms(name)
    return scales, exponents, scales * BILLION**-exponents / (scale * BILLION**-exponent)


def _bits(precision: str) -> tuple[tuple[int, float], ...]:
    """What a format has of few bits: how many, with the γ of it."""
    cache = kv_bits_of(precision)
    return (*BITS.get(base_of(precision), ()), *([] if cache is None else [(cache, KV_CACHE)]))


def priced(law: PrecisionLaw) -> list[str]:
    """The formats that a law has constants for; last caches of few bits."""
    known: dict[PrecisionLaw, Collection[str]] = {
        "qat": QAT_OF,
        "multiplier": MULTIPLIERS,
        "kumar": BITS,
        "post_training": format_costs().nats,
    }
    return [*(name for name in FORMATS if name in known[law]), *(["kv8", "kv4"] if law == "kumar" else [])]


def unpriced_formats(law: PrecisionLaw, formats: Sequence[str], group_size: int = GROUP) -> list[str]:
    """Those of some formats that a law does not say the cost of."""
    return [name for name in formats if not FewBits(law, name, TOKENS, group_size).prices(name)]


def taken_as_wider(law: PrecisionLaw, formats: Sequence[str]) -> list[str]:
    """What a law prices as another format, which costs more, a clause each."""
    operators = dict.fromkeys(operators_of(name) for name in formats)
    wider = [name for name in operators if name != base_of(name)] if law != "qat" else []
    return [f"{name}: taken as {base_of(name)}, which costs more" for name in wider]
