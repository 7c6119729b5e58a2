"""The cost of few bits: published laws of the loss that quantised weights and activations add to a dense model's.

Each adds scale · N^−exponent nats, N the parameters without embeddings, so that it stands beside any law of the loss. None
was fitted to mixtures of experts: of few bits each prices dense models alone.

    qat         k D^γ_D (log2 g)^γ_G / N^γ_N            (Chen et al. 2025, D tokens, groups of g weights)
    multiplier  A (N·m)^−α − A N^−α                     (Frantar et al. 2025, m per format; A, α of `chinchilla_epoch`)
    kumar       A N_eff^−α − A N^−α, N_eff = N Π(1 − e^(−P/γ))   (Kumar et al. 2024, P bits of weights, activations, KV cache)

Of a KV cache of few bits `kumar` alone says something; of down projections with inputs of 8 bits `qat` alone. For the
others such a cache is free, and such a format costs what all inputs at 4 bits cost; the answer says so.

Source: arXiv 2505.14302, 2502.16440, 2411.04330; constants are transcriptions of the papers' tables.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import numpy as np

from objectives.loss_law.features import feature
from objectives.weight_formats.table import WEIGHT_FORMATS, TensorClass
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray
from search_spaces.formats import FORMATS, base_of, kv_bits_of, operators_of

PrecisionLaw = Literal["qat", "multiplier", "kumar"]
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
#: Where each was fitted: parameters, tokens; a prediction beyond is an extrapolation.
FITTED: MappingProxyType[PrecisionLaw, MappingProxyType[str, tuple[float, float]]] = MappingProxyType(
    {
        "qat": MappingProxyType({"parameters": (74e6, 595e6), "tokens": (10e9, 100e9)}),
        "multiplier": MappingProxyType({}),
        "kumar": MappingProxyType({"parameters": (30e6, 220e6), "tokens": (1.5e9, 26e9)}),
    }
)


SOURCES: MappingProxyType[PrecisionLaw, str] = MappingProxyType(
    {
        "qat": "Chen et al. 2025, arXiv 2505.14302",
        "multiplier": "Frantar et al. 2025, arXiv 2502.16440",
        "kumar": "Kumar et al. 2024, arXiv 2411.04330",
    }
)
CAVEATS: MappingProxyType[PrecisionLaw, str] = MappingProxyType(
    {
        "qat": "of models trained at few bits, dense, 74 to 595 M parameters, 10 to 100 B tokens; constants transcribed",
        "multiplier": "of dense models trained at few bits, on the loss of chinchilla_epoch; constants transcribed",
        "kumar": "its authors say that its constants do not transfer; dense, 30 to 220 M parameters; constants transcribed",
    }
)


@dataclass(frozen=True)
class Penalty:
    """scale · N^−exponent nats of one format under one law, `law`, for `tokens` training tokens; dense models alone."""

    law: PrecisionLaw
    scale: float
    exponent: float
    tokens: float

    def nats(self, parameters: FloatArray) -> FloatArray:
        """What the format adds to the loss of models of so many parameters without embeddings, nats, (n,)."""
        cost: FloatArray = self.scale * np.asarray(parameters, dtype=np.float64) ** -self.exponent
        return cost

    def extrapolates(self, parameters: FloatArray) -> BoolArray:
        """Which models are outside what the law was fitted on, (n,)."""
        ends = FITTED[self.law]
        least, most = ends.get("parameters", (0.0, math.inf))
        first, last = ends.get("tokens", (0.0, math.inf))
        beyond: BoolArray = (parameters < least) | (parameters > most) | (not first <= self.tokens <= last)
        return beyond


@dataclass(frozen=True)
class FewBits:
    """A law of what formats cost, for a number of tokens and weights per scale; rows without a format have `precision`."""

    law: PrecisionLaw
    precision: str
    tokens: float
    group_size: int

    def penalty(self, precision: str) -> Penalty | None:
        """What a format costs; None where that is nothing, or the law has no constants for it (`unknown`)."""
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
        return None

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
            found[rows] = cost.nats(feature(architectures[rows], "parameters"))
        return found

    def of(self, architectures: Architectures) -> BoolArray:
        """Which have a format of few bits, (n,)."""
        found = np.zeros(len(architectures), dtype=bool)
        for name, rows in architectures.in_formats():
            found[rows] = (name or self.precision) not in FULL
        return found

    def extrapolates(self, architectures: Architectures) -> BoolArray:
        """Whose format costs something that the law was not fitted on, (n,)."""
        found = np.zeros(len(architectures), dtype=bool)
        for cost, rows in self._costly(architectures):
            found[rows] = cost.extrapolates(feature(architectures[rows], "parameters"))
        return found


def _bits(precision: str) -> tuple[tuple[int, float], ...]:
    """What a format has of few bits: how many, with the γ of it."""
    cache = kv_bits_of(precision)
    return (*BITS.get(base_of(precision), ()), *([] if cache is None else [(cache, KV_CACHE)]))


def priced(law: PrecisionLaw) -> list[str]:
    """The formats that a law has constants for; last caches of few bits."""
    known: dict[PrecisionLaw, Collection[str]] = {"qat": QAT_OF, "multiplier": MULTIPLIERS, "kumar": BITS}
    return [*(name for name in FORMATS if name in known[law]), *(["kv8", "kv4"] if law == "kumar" else [])]


_MATRICES: tuple[TensorClass, ...] = ("weights", "experts")


def _below_8_bits(precision: str) -> bool:
    """Whether some matrices of a format have fewer than 8 bits a weight."""
    written = WEIGHT_FORMATS[base_of(precision)]
    return any(each.per_weight < 1.0 for kind in _MATRICES for each in written.types(kind))


def without_constants(law: PrecisionLaw, formats: Sequence[str]) -> list[str]:
    """What a law has no constants for in some formats, and what is taken instead, a clause each."""
    operators = list(dict.fromkeys(operators_of(name) for name in formats))
    free = [name for name in operators if name not in FULL and FewBits(law, name, TOKENS, GROUP).penalty("") is None]
    wider = [name for name in operators if name != base_of(name)] if law != "qat" else []
    caches = sorted({bits for name in formats if (bits := kv_bits_of(name)) is not None}) if law != "kumar" else []
    unknown = [name for name in free if _below_8_bits(name)]
    near = [name for name in free if name not in unknown]
    said = [f"{' and '.join(near)}: taken as free"] if near else []
    said += (
        [
            f"{' and '.join(unknown)}: what this costs is unknown and counted as 0, so that such designs look better than they are"
        ]
        if unknown
        else []
    )
    said += [f"{name}: taken as {base_of(name)}, which costs more" for name in wider]
    return said + [f"a KV cache of {' or '.join(map(str, caches))} bits: taken as free"] * bool(caches)
