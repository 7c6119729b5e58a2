"""What own rows make of a prior, as plain content: coordinates, differences, rows that surprise, ranges."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nas.fit.next_designs import quantities, whitened
from nas.search.assembly import Study
from objectives.evidence.joint_form import LEAST_ACTIVE, LEAST_TOKENS, MILLIARD, TOKENS, Trainings
from objectives.evidence.posterior import Belief, Posterior, named, predicted
from objectives.fitting.trained_models import Table
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, FloatArray

NORMAL = 1.645  # sds between which a normal variable lies nine times of ten
PAIRS, SETS = 200, 8
FURTHER = (4, 8, 30)
SHOWN = ("depth", "width", "kv_dim", "query_dim", "expert_ffn_ratio", "n_experts", "parameters", "active_parameters")
MISSING = {
    "aspect_ratio": "depth and width",
    "kv_ratio": "KV heads",
    "query_ratio": "attention size",
    "expert_ffn_ratio": "the size of experts or FFN",
}  # what a table may not say of shapes, by the quantity that it would give


def _logistic(value: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + np.exp(-value)))


def _same(value: FloatArray) -> FloatArray:
    return value


COORDINATES: Mapping[str, tuple[str, Callable[[FloatArray], FloatArray]]] = {
    "S_N": ("a factor e of parameters, nats", np.exp),
    "a": ("how fast that falls, exponent", np.exp),
    "s": ("share of stored parameters in it, of 1", _logistic),
    "S_D": ("a factor e of tokens, nats", np.exp),
    "b": ("how fast that falls, exponent", np.exp),
    "kappa": ("how hard it is to replace parameters by tokens, exponent", np.exp),
    "p": ("width over depth, tilt, no unit", _same),
    "q": ("width over depth, curvature, no unit", np.exp),
    "h_kv": ("KV width, exponent", _same),
    "h_query": ("attention width, exponent", _same),
    "h_split": ("experts that share the FFN, exponent", _same),
    "loss": ("at 1e9 parameters and 1e10 tokens, nats", _same),
}  # in the order of the joint form's coordinates: the number that each stands for


@dataclass(frozen=True, eq=False)
class Own:
    """Own rows: their table, as the joint form reads them, the names of their groups, the prior and what it becomes."""

    table: Table
    rows: Trainings
    groups: AnyArray
    prior: Belief
    found: Posterior

    @property
    def main_group(self) -> str:
        """The group that the law predicts for; "" where all rows are one."""
        return str(self.groups[self.found.main]) if len(self.groups) > 1 else ""


def prior_report(own: Own, given: Law, law: Law, study: Study, seed: int) -> dict[str, Any]:
    """Everything but the study's frontier."""
    after = own.found.belief
    return {
        "prior": given.name,
        "form": law.provenance["form"],
        "data": _data(own, given),
        "coordinates": _coordinates(own.prior, after),
        "differences": _differences(study, given, law, after, seed),
        "rows": _rows(own, given),
        "residual_sd": {"prior": own.prior.scale, "posterior": after.scale},
        "range": {
            name: {"prior": list(given.fitted_on[name]), "now": list(ends)}
            for name, ends in law.fitted_on.items()
            if name in given.fitted_on and ends != given.fitted_on[name]
        },
        "coefficients": _coefficients(after),
        "provenance": law.provenance,
    }


def _data(own: Own, given: Law) -> dict[str, Any]:
    table, rows = own.table, own.rows
    missing = [words for name, words in MISSING.items() if not table.has(name)]
    small = (rows.of.active < LEAST_ACTIVE - MILLIARD) | (rows.of.tokens < LEAST_TOKENS - TOKENS)
    ends = {name: table.feature(name) for name in (*SHOWN, "tokens") if table.has(name)}
    return {
        "rows": len(table),
        "notes": list(table.notes),
        "missing": missing,
        "assumed_tokens": None if table.has("tokens") else given.stated_tokens,
        "small": int(small.sum()),
        "quantities": {
            name: {"low": float(column.min()), "high": float(column.max()), "levels": len(np.unique(column))}
            for name, column in ends.items()
        },
        "groups": [
            {"name": str(name), "rows": int((rows.group == i).sum()), "loss": float(own.found.at_reference[i])}
            for i, name in enumerate(own.groups)
        ],
        "main": own.main_group,
    }


def _coordinates(prior: Belief, after: Belief) -> dict[str, Any]:
    return {
        name: {
            "what": what,
            "prior": _interval(prior, i, made),
            "posterior": _interval(after, i, made),
            "sd_ratio": float(after.sd[i] / prior.sd[i]),
        }
        for i, (name, (what, made)) in enumerate(COORDINATES.items())
    }


def _interval(belief: Belief, place: int, made: Callable[[FloatArray], FloatArray]) -> dict[str, float]:
    """A coordinate's number at the mean and at the ends of its 90 % interval, with mean and sd of the coordinate itself."""
    mean, sd = float(belief.mean[place]), float(belief.sd[place])
    value, low, high = made(mean + np.array([0.0, -NORMAL, NORMAL]) * sd).tolist()
    return {"mean": mean, "sd": sd, "value": value, "low": low, "high": high}


def _coefficients(after: Belief) -> dict[str, Any]:
    """The law's coefficients with 90 % intervals of the draws."""
    drawn = np.array([list(named(point).values()) for point in after.drawn()])
    low, high = np.quantile(drawn, (0.05, 0.95), axis=0).tolist()
    return {
        name: {"value": value, "low": low[i], "high": high[i]}
        for i, (name, value) in enumerate(named(after.mean).items())
    }


def _differences(study: Study, given: Law, law: Law, after: Belief, seed: int) -> dict[str, Any]:
    """Median widths of 90 % intervals of differences of random pairs of the space, before, now, and after random trainings more."""
    generator, space = np.random.default_rng(seed), study.problem.space
    designs = space.architectures(space.sample(2 * PAIRS, generator))
    before = given.model_copy(update={"tokens": law.tokens})
    now = _width(law.drawn_losses(designs))
    slopes = _slopes(after, law, designs)
    apart = slopes[0::2] - slopes[1::2]
    sd = np.median(np.linalg.norm(apart, axis=1))
    return {
        "pairs": PAIRS,
        "space": space.name,
        "tokens": law.tokens,
        "prior": _width(before.drawn_losses(designs)),
        "posterior": now,
        "further": {
            str(more): now
            * float(np.mean([_left(slopes, apart, after.scale, more, generator) for _ in range(SETS)]) / sd)
            for more in FURTHER
        },
    }


def _width(losses: FloatArray) -> float:
    """Median width of the draws' 90 % intervals of differences of designs side by side; losses (draws, 2 n)."""
    low, high = np.quantile(losses[:, 0::2] - losses[:, 1::2], (0.05, 0.95), axis=0)
    return float(np.median(high - low))


def _slopes(after: Belief, law: Law, designs: Architectures) -> FloatArray:
    return whitened(after, quantities(designs, law.tokens_of(designs)))


def _left(slopes: FloatArray, apart: FloatArray, scale: float, more: int, generator: np.random.Generator) -> float:
    """Median sd of differences once so many random designs are trained."""
    chosen = slopes[generator.choice(len(slopes), more, replace=False)] / scale
    after = np.linalg.inv(np.eye(slopes.shape[1]) + chosen.T @ chosen)
    return float(np.median(np.sqrt(np.einsum("ni,ij,nj->n", apart, after, apart))))


def _rows(own: Own, given: Law) -> dict[str, Any]:
    """Each row: its loss, what the law says now, how many sds it is off that, and off the prior beside the others of its group."""
    table, rows, found = own.table, own.rows, own.found
    expected, spread = _before(own)
    return {
        "line": table.lines.tolist(),
        "name": [] if table.names is None else table.names.tolist(),
        "group": rows.group.tolist(),
        "observed": table.loss.tolist(),
        "predicted": found.fitted.tolist(),
        "off": ((rows.loss - found.fitted) / found.belief.scale).tolist(),
        "surprise": ((rows.loss - expected) / spread).tolist(),
        "prior": expected.tolist(),
    }


def _before(own: Own) -> tuple[FloatArray, FloatArray]:
    """What the prior's draws expect of each row beside the median of its group, and with which sd, (n,) each; a row alone surprises nobody.

    Of the draws the median and half the middle 68 %: a few of them explode far from published rows.
    """
    rows, prior = own.rows, own.prior
    drawn = predicted(prior.drawn(), rows.of)
    expected, spread = np.empty(len(rows)), np.empty(len(rows))
    for group in range(len(own.groups)):
        at = np.flatnonzero(rows.group == group)
        level = np.median(rows.loss[at] - drawn[:, at], axis=1, keepdims=True)
        beside = drawn[:, at] + level
        low, expected[at], high = np.quantile(beside, (0.16, 0.5, 0.84), axis=0)
        spread[at] = np.hypot((high - low) / 2, prior.scale) if len(at) > 1 else np.inf
    return expected, spread
