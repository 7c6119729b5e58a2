"""The cost of few bits: laws of the loss that quantised weights and activations add to a dense model's.

Each adds scale · N^−exponent nats, N the active parameters without embeddings, so that it stands beside any law of the loss. None was fitted to
mixtures of experts: these cost as much as dense models of as many active parameters, and draws of that are twice as wide.

    qat         k D^γ_D (log2 g)^γ_G / N^γ_N            (Chen et al. 2025, D tokens, groups of g weights)
    kumar       A N_eff^−α − A N^−α, N_eff = N Π(1 − e^(−P/γ))   (Kumar et al. 2024, P bits of weights, activations, KV cache)
    post_training   a_f (N / 1e9)^−b, with draws         (published perplexities of models rounded after training, a_f per format)

Of a KV cache of few bits `kumar` alone says something; of down projections with inputs of 8 bits `qat` alone: for `kumar` they cost what
all inputs at 4 bits cost. A format that nobody measured lies, under `post_training`, between the measured ones next to it in bits; a study
refuses what a law says nothing of.

Source: arXiv 2505.14302, 2411.04330, constants are transcriptions of the papers' tables; `weight_formats/costs.csv`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import numpy as np

from objectives.loss_law.features import feature
from objectives.weight_formats.table import BILLION, ENDS, format_costs
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray
from search_spaces.formats import FORMATS, base_of, kv_bits_of, operators_of

PrecisionLaw = Literal["qat", "kumar", "post_training"]
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
        "kumar": MappingProxyType({"parameters": (30e6, 220e6), "tokens": (1.5e9, 26e9)}),
    }
)


SOURCES: MappingProxyType[PrecisionLaw, str] = MappingProxyType(
    {
        "qat": "Chen et al. 2025, arXiv 2505.14302",
        "kumar": "Kumar et al. 2024, arXiv 2411.04330",
        "post_training": "published perplexities, objectives/weight_formats/costs.csv",
    }
)
CAVEATS: MappingProxyType[PrecisionLaw, str] = MappingProxyType(
    {
        "qat": "of dense models trained at few bits, 74 to 595 M parameters, 10 to 100 B tokens; constants transcribed",
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
        return dict(FITTED.get(self.law, {})) | ({} if self.fitted_on is None else {"parameters": self.fitted_on})

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
        if self.law == "kumar" and (few := _bits(name)):
            (a, alpha), left = KUMAR, math.prod(-math.expm1(-bits / gamma) for bits, gamma in few)
            return Penalty(self.law, a * (left**-alpha - 1.0), alpha, self.tokens)
        return self._rounded(operators) if self.law == "post_training" else None

    def _rounded(self, name: str) -> Penalty | None:
        """The cost of rounding; None of what no measured format is next to, and of groups larger than those that were measured."""
        costs = format_costs()
        names = costs.measured(name)
        if names is None or (name == "int4" and self.group_size > GROUP):
            return None
        if self.draw is None:
            return Penalty(self.law, *costs.term(names), self.tokens, costs.fitted_on[names[0]])
        scale, exponent, wider = (float(each[self.draw % len(each)]) for each in _drawn_terms(name))
        return Penalty(self.law, scale, exponent, self.tokens, costs.fitted_on[names[0]], wider)

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
    names = costs.measured(name) or (name, name)
    (scale, exponent), (scales, exponents) = costs.term(names), costs.drawn_terms(names)
    return scales, exponents, scales * BILLION**-exponents / (scale * BILLION**-exponent)


def _bits(precision: str) -> tuple[tuple[int, float], ...]:
    """What a format has of few bits: how many, with the γ of it."""
    cache = kv_bits_of(precision)
    return (*BITS.get(base_of(precision), ()), *([] if cache is None else [(cache, KV_CACHE)]))


def priced(law: PrecisionLaw) -> list[str]:
    """The formats that a law has constants for; last caches of few bits."""
    plain = [name for name in FORMATS if name not in FULL and kv_bits_of(name) is None]
    unknown = unpriced_formats(law, plain)
    known = [name for name in plain if name not in unknown and (law == "qat" or name == base_of(name))]
    return [*known, *(["kv8", "kv4"] if law == "kumar" else [])]


def unpriced_formats(law: PrecisionLaw, formats: Sequence[str], group_size: int = GROUP) -> list[str]:
    """Those of some formats that a law does not say the cost of."""
    return [name for name in formats if not FewBits(law, name, TOKENS, group_size).prices(name)]


def taken_as_another(law: PrecisionLaw, formats: Sequence[str]) -> list[str]:
    """What a law prices as another format, which costs more, or as two that it lies between, a clause each."""
    operators = dict.fromkeys(operators_of(name) for name in formats)
    found = [f"{n}: taken as {base_of(n)}, which costs more" for n in operators if n != base_of(n) and law != "qat"]
    pairs = {name: format_costs().measured(name) for name in operators if law == "post_training"}
    others = {n: " or ".join(dict.fromkeys(pair)) for n, pair in pairs.items() if pair and n not in pair}
    return found + [f"{name}: nobody measured it, taken as {those}" for name, those in others.items()]
