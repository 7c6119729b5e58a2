"""The form of the law `evidence`, and the coordinates in which its coefficients are normal over laboratories.

    L = level + (C^κ + D^κ)^(1/κ)
    C = S_N/a · (N_a/10⁹)^(−a(1−s)) · (N/10⁹)^(−a s) · exp(p u + q u²) · (query_dim/width)^h_q · K^h_K
    D = S_D/b · (T/10¹⁰)^(−b)

where N, N_a are stored and active parameters without embeddings and with as many KV heads as heads (few tables say what KV heads are worth, so that
they change no loss), T tokens, u = ln(width/depth/64), K the active experts, 1 of a dense model: at an equal
active FFN, K is into how many experts that is split, the granularity of experts. κ joins what too few parameters and too few tokens cost: the larger holds the loss up, and more of what the other lacks brings less.
For 0 < s < 1 more active experts with all else equal always lower the loss.
"""

from dataclasses import dataclass, replace

import numpy as np

from objectives.loss_law.form import Form, Term
from plas_fit.fitting.trained_models import Table
from search_spaces.arrays import AnyArray, BoolArray, FloatArray, IntArray

CAPACITY = {
    "active_parameters_of_full_heads": "-alpha_active",
    "parameters_of_full_heads": "-alpha_stored",
    "aspect_ratio": "aspect",
    "query_ratio": "h_query",
    "top_k": "h_split",
}
FORM = Form(
    terms={
        "level": Term(scale="level"),
        "capacity": Term(scale="A", powers=CAPACITY, crossed={"aspect_ratio aspect_ratio": "aspect_squared"}),
        "data": Term(scale="B", powers={"tokens": "-beta"}),
    },
    joined=("capacity", "data"),
    join="kappa",
)
NAMES = ("ln S_N", "ln a", "logit s", "ln S_D", "ln b", "ln kappa", "p", "ln q", "h_query", "h_split")
MILLIARD, TOKENS, ASPECT = np.log(1e9), np.log(1e10), np.log(64.0)
LEAST_SHARE = 0.02  # of s, and of 1 - s


@dataclass(frozen=True, eq=False)
class Quantities:
    """Logarithms of what the form reads, each (n,), those of sizes and tokens over their reference; 0 where a table does not say one."""

    active: FloatArray
    stored: FloatArray
    tokens: FloatArray
    aspect: FloatArray
    query: FloatArray
    split: FloatArray

    def __len__(self) -> int:
        return len(self.active)

    def __getitem__(self, rows: AnyArray) -> "Quantities":
        return Quantities(*(column[rows] for column in self.columns))

    @property
    def columns(self) -> tuple[FloatArray, ...]:
        """All of them, in order."""
        return self.active, self.stored, self.tokens, self.aspect, self.query, self.split


REFERENCE = Quantities(*np.zeros((6, 1)))


def excess(theta: FloatArray, of: Quantities) -> FloatArray:
    """Loss above the level, nats, (n,); under many coordinates, (draws, coordinates), (draws, n)."""
    ln_c, ln_d, kappa = _sides(theta, of)
    top = np.maximum(ln_c, ln_d)
    joined = np.exp(kappa * (ln_c - top)) + np.exp(kappa * (ln_d - top))
    return np.asarray(np.exp(top) * joined ** (1.0 / kappa))


def with_slopes(theta: FloatArray, of: Quantities) -> tuple[FloatArray, FloatArray]:
    """Loss above the level, nats, (n,), and its derivatives by the coordinates, (n, coordinates)."""
    a, b, q = np.exp(theta[[1, 4, 7]])
    s = 1.0 / (1.0 + np.exp(-theta[2]))
    ln_c, ln_d, kappa = _sides(theta, of)
    top = np.maximum(ln_c, ln_d)
    c, d = np.exp(kappa * (ln_c - top)), np.exp(kappa * (ln_d - top))
    value = np.exp(top) * (c + d) ** (1.0 / kappa)
    slopes = np.empty((len(of), len(NAMES)))
    by_c, by_d = value * c / (c + d), value * d / (c + d)
    slopes[:, 0], slopes[:, 3] = by_c, by_d
    slopes[:, 1] = by_c * (-1.0 - a * ((1.0 - s) * of.active + s * of.stored))
    slopes[:, 2] = -by_c * a * (of.stored - of.active) * s * (1.0 - s)
    slopes[:, 4] = by_d * (-1.0 - b * of.tokens)
    slopes[:, 5] = by_c * (ln_c - top) + by_d * (ln_d - top) - value * np.log(c + d) / kappa
    for at, each in enumerate((of.aspect, q * of.aspect**2, of.query, of.split), 6):
        slopes[:, at] = by_c * each
    return value, slopes


def _sides(theta: FloatArray, of: Quantities) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Logarithms of what too few parameters and too few tokens cost, each (n,) or (draws, n), and κ."""
    ln_c, ln_a, logit_s, ln_d, ln_b, ln_kappa, p, ln_q, query, split = np.moveaxis(theta, -1, 0)[..., None]
    s = 1.0 / (1.0 + np.exp(-logit_s))
    shape = p * of.aspect + np.exp(ln_q) * of.aspect**2
    shape += query * of.query + split * of.split
    size = (1.0 - s) * of.active + s * of.stored
    return ln_c - ln_a - np.exp(ln_a) * size + shape, ln_d - ln_b - np.exp(ln_b) * of.tokens, np.exp(ln_kappa)


def coefficients(theta: FloatArray, level: float) -> dict[str, float]:
    """The form's coefficients of coordinates (coordinates,) and a level, nats."""
    s = float(np.clip(1.0 / (1.0 + np.exp(-theta[2])), LEAST_SHARE, 1.0 - LEAST_SHARE))
    a, b, kappa, q = (float(np.exp(theta[i])) for i in (1, 4, 5, 7))
    p = float(theta[6])
    return {
        "level": level,
        "A": float(np.exp(theta[0] + a * MILLIARD - p * ASPECT + q * ASPECT**2)) / a,
        "alpha_active": a * (1.0 - s),
        "alpha_stored": a * s,
        "aspect": p - 2.0 * q * ASPECT,
        "h_query": float(theta[8]),
        "h_split": float(theta[9]),
        "aspect_squared": q,
        "B": float(np.exp(theta[3] + b * TOKENS)) / b,
        "beta": b,
        "kappa": kappa,
    }


def coordinates(c: dict[str, float]) -> tuple[FloatArray, float]:
    """The coordinates (coordinates,) and the level of the form's coefficients."""
    a, b, q = c["alpha_active"] + c["alpha_stored"], c["beta"], c["aspect_squared"]
    p = c["aspect"] + 2.0 * q * ASPECT
    theta = [
        np.log(c["A"] * a) - a * MILLIARD + p * ASPECT - q * ASPECT**2,
        np.log(a),
        np.log(c["alpha_stored"] / c["alpha_active"]),
        np.log(c["B"] * b) - b * TOKENS,
        np.log(b),
        np.log(c["kappa"]),
        p,
        np.log(q),
        c["h_query"],
        c["h_split"],
    ]
    return np.array(theta), c["level"]


BYTES_PER_TOKEN = 4.4  # of tokenizers of 50,000 to 150,000 tokens on English text
LEAST_ACTIVE, LEAST_TOKENS = np.log(1e7), np.log(1e8)
LEAST_PER_PARAMETER = np.log(
    2.0
)  # tokens for each active parameter, a tenth of what is usual: with fewer a run is hardly past its warmup
MOST_EPOCHS = 4.0  # readings of a text that are as good as new ones, by Muennighoff et al. 2023


def in_unit(unit: str) -> float:
    """What a difference of one nat per token is in a unit of losses."""
    return 1.0 / BYTES_PER_TOKEN if unit == "nats per byte" else 1.0


@dataclass(frozen=True, eq=False)
class Trainings:
    """Models of one table.

    loss: as published, (n,); group: which rows have one level, (n,), counted from 0; per: what a difference of the law is in the losses' unit;
    fitted: rows of at most MOST_EPOCHS readings of their text, and of the size and tokens from which the law is fitted, (n,).
    """

    name: str
    laboratory: str
    table: Table
    loss: FloatArray
    group: IntArray
    of: Quantities
    fitted: BoolArray
    per: float = 1.0

    def __len__(self) -> int:
        return len(self.loss)

    def __getitem__(self, rows: AnyArray) -> "Trainings":
        group: IntArray = np.unique(self.group[rows], return_inverse=True)[1]
        return replace(
            self, table=self.table[rows], loss=self.loss[rows], group=group, of=self.of[rows], fitted=self.fitted[rows]
        )


def trainings(
    name: str,
    laboratory: str,
    table: Table,
    group: AnyArray,
    *,
    unit: str = "nats per token",
    epochs: FloatArray | None = None,
    outside: bool = False,
) -> Trainings:
    """A table's rows; what it does not say of shapes is taken as that of the reference, unknown tokens as 10¹⁰.

    unit: of its losses, "nats per byte" or per token. epochs: readings of the text, (n,); one without. outside: no row is fitted.

    Raises:
        ValueError: neither stored nor active parameters are known.
    """
    ones = np.ones(len(table))

    def log(quantity: str, reference: float, missing: float) -> FloatArray:
        return np.log(table.feature(quantity)) - reference if table.has(quantity) else np.full(len(table), missing)

    stored = np.log(table.feature("parameters_of_full_heads")) - MILLIARD
    active = "active_parameters_of_full_heads"
    of = Quantities(
        active=np.log(table.feature(active)) - MILLIARD if table.has(active) else stored,
        stored=stored,
        tokens=log("tokens", TOKENS, 0.0),
        aspect=log("aspect_ratio", ASPECT, 0.0),
        query=log("query_ratio", 0.0, 0.0),
        split=log("top_k", 0.0, 0.0),
    )
    fitted = ((ones if epochs is None else epochs) <= MOST_EPOCHS) & (not outside)
    fitted &= (of.active >= LEAST_ACTIVE - MILLIARD) & (of.tokens >= LEAST_TOKENS - TOKENS)
    fitted &= of.tokens + TOKENS - of.active - MILLIARD >= LEAST_PER_PARAMETER
    numbered: IntArray = np.unique(group, return_inverse=True)[1]
    return Trainings(name, laboratory, table, table.loss, numbered, of, fitted, in_unit(unit))
