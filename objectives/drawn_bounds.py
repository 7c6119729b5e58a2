"""Bounds on losses under every posterior sample of a law, over ranges of additive quantities.

Where each draw's loss rises with one term alone, whose logarithm is a sum

    z_s = ln scale_s + Σ θ_sq ln u_q,    L_s = constant_s + (exp(κ_s z_s) + joined_s^κ_s)^(1/κ_s)

as in `evidence`, draws are compared by z, one product of matrices for all of them. L_s is convex in z_s, so that the mean of the
draws lies above its tangent plane in z, which is one sum more. Other laws are bounded draw by draw.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Protocol, Self

import numpy as np

from objectives.composition import bounded, composition_of_all
from objectives.loss_law.draws import Draw
from objectives.loss_law.features import COUNTS, MADE_OF, part_of
from objectives.loss_law.form import LogProduct, Term, signed_exponent
from objectives.loss_law.law import Law
from objectives.loss_law.precision_cost import FewBits
from objectives.parts import Composition, Quantity
from search_spaces.arrays import BoolArray, FloatArray

SMALL = 64  # ranges in one product


class DrawnBounds(Protocol):
    """Bounds under a law's samples from columns of additive quantities, each (n,), as a `Composition` gets them."""

    @property
    def quantities(self) -> Mapping[Quantity, int]:
        """The additive quantities, as a `Composition` has them."""
        ...

    def losses(self, columns: Sequence[FloatArray]) -> FloatArray:
        """Return the least loss under each sample, (draws, n), nats; (draws, 1) if no quantity matters."""
        ...

    def may_improve(self, columns: Sequence[FloatArray], least: FloatArray, best: FloatArray) -> BoolArray:
        """Return which ranges may hold a loss below `least` (draws,) under some sample, or a mean of at most that of `best`."""
        ...


def drawn_bounds(law: Law) -> DrawnBounds:
    """Return the bounds for a law's samples."""
    return OneTerm.of(law) or DrawByDraw.of(law)


def mean_composition(law: Law) -> Composition:
    """Return the mean loss over a law's samples as a function of sums of parts."""
    bounds = drawn_bounds(law)
    return Composition(bounds.quantities, lambda *columns: bounds.losses(columns).mean(axis=0))


@dataclass(frozen=True, eq=False)
class DrawByDraw:
    """Bounds with each sample as a law of its own."""

    composition: Composition

    @classmethod
    def of(cls, law: Law) -> Self:
        """Return the bounds for a law's samples."""
        alone = law.model_copy(
            update={"draws": (), "rivals": (), "covariance": (), "layer_deltas": {}, "layer_delta_draws": {}}
        ).mapping()
        laws = [LawOfDraw.model_validate(alone | _of_draw(draw, at)) for at, draw in enumerate(law.drawn)]
        return cls(composition_of_all(laws, lambda losses: np.stack(np.broadcast_arrays(*losses))))

    @property
    def quantities(self) -> Mapping[Quantity, int]:
        """The additive quantities of all samples."""
        return self.composition.quantities

    def losses(self, columns: Sequence[FloatArray]) -> FloatArray:
        """See `DrawnBounds`."""
        losses = self.composition.value(*columns)
        return losses.reshape(len(losses), -1)

    def may_improve(self, columns: Sequence[FloatArray], least: FloatArray, best: FloatArray) -> BoolArray:
        """See `DrawnBounds`."""
        losses = self.losses(columns)
        return np.asarray((losses < least[:, None]).any(axis=0) | (losses.mean(axis=0) <= best.mean()))


class LawOfDraw(Law):
    """A law with the coefficients of sample `at`, which also set its costs of formats."""

    at_draw: int

    @property
    def few_bits(self) -> FewBits | None:
        """Return the costs of formats under the sample."""
        median = super().few_bits
        return None if median is None else replace(median, draw=self.at_draw)


def _of_draw(draw: Draw, at: int) -> dict[str, object]:
    form, deltas = draw.form.model_dump(mode="json"), dict(draw.layer_deltas)
    return {"form": form, "coefficients": draw.coefficients, "layer_deltas": deltas, "at_draw": at}


@dataclass(frozen=True, eq=False)
class OneTerm:
    """Bounds for samples that rise with one term each.

    matrix: θ, (draws, columns); start: ln scale; constant, joined (its logarithm, −∞ of nothing) and power κ give the loss of z,
    each (draws, 1).
    """

    quantities: Mapping[Quantity, int]
    matrix: FloatArray
    start: FloatArray
    constant: FloatArray
    joined: FloatArray
    power: FloatArray

    @classmethod
    def of(cls, law: Law) -> Self | None:
        """Return the bounds for a law's samples; None if its form is another."""
        form = law.law_form
        moving = [name for name, term in form.terms.items() if set(term.features) - {"tokens"}]
        if law.rivals or law.partial or law.few_bits or law.layer_deltas:
            return None
        if form.factors or form.bent or form.of != "loss":
            return None
        if len(moving) != 1 or any(term.logs or term.only for term in form.terms.values()):
            return None
        rows = [_Row.of(draw, moving[0], law) for draw in law.drawn]
        found = [row for row in rows if row is not None]
        return None if len(found) < len(rows) else cls._of_rows(found)

    @classmethod
    def _of_rows(cls, rows: "list[_Row]") -> Self:
        names = list(dict.fromkeys(name for row in rows for name in row.exponents))
        exponents = np.array([[row.exponents.get(name, 0.0) for name in names] for row in rows])
        quantities, columns = dict[Quantity, int](), list[FloatArray]()
        for name, column in zip(names, exponents.T, strict=True):
            one_sided = (column >= 0.0).all() or (column <= 0.0).all() or not bounded(name)
            quantities[name] = (1 if column.max() > 0.0 else -1) if one_sided else 0
            columns += [column] if one_sided else [np.maximum(column, 0.0), np.minimum(column, 0.0)]
        of_rows = np.array([[row.start, row.constant, row.joined, row.power] for row in rows])
        start, constant, joined, power = of_rows.T[..., None]
        return cls(MappingProxyType(quantities), np.stack(columns, axis=1), start, constant, joined, power)

    def _logs(self, columns: Sequence[FloatArray]) -> FloatArray:
        """Logarithms of the quantities, (columns, n)."""
        sides = [name for name, side in self.quantities.items() for _ in range(1 if side else 2)]
        of_counts = (
            column if isinstance(n, LogProduct) else np.log(column) for n, column in zip(sides, columns, strict=True)
        )
        return np.stack(np.broadcast_arrays(*of_counts))

    def _at(self, z: FloatArray) -> FloatArray:
        """L of z, (draws, n)."""
        more = np.log1p(np.exp(-self.power * np.abs(z - self.joined))) / self.power
        return np.asarray(self.constant + np.exp(np.maximum(z, self.joined) + more))

    def _z_of(self, losses: FloatArray) -> FloatArray:
        """The z of losses, (draws, 1) both; −∞ of such as no design has."""
        term = np.log(np.maximum(losses - self.constant, 0.0))
        return np.asarray(term + np.log1p(-np.exp(np.minimum(self.power * (self.joined - term), 0.0))) / self.power)

    def _below(self, logs: FloatArray, limit: FloatArray) -> BoolArray:
        """Where θ · ln u is below its limit, (draws, 1), under some draw.

        In products so small that they are computed by one thread: more only wait for one another.
        """
        count = logs.shape[1]
        whole = np.zeros((len(logs), -(-count // SMALL) * SMALL))
        whole[:, :count] = logs
        products = self.matrix @ whole.reshape(len(logs), -1, SMALL).swapaxes(0, 1)
        return np.asarray((products < limit).any(axis=1)).reshape(-1)[:count]

    def losses(self, columns: Sequence[FloatArray]) -> FloatArray:
        """See `DrawnBounds`."""
        return self._at(self.start + self.matrix @ self._logs(columns))

    def may_improve(self, columns: Sequence[FloatArray], least: FloatArray, best: FloatArray) -> BoolArray:
        """See `DrawnBounds`; the mean is computed only where its tangent plane at `best` does not decide."""
        logs = self._logs(columns)
        with np.errstate(divide="ignore"):
            limit, at = self._z_of(least[:, None]), self._z_of(best[:, None])
        found = self._below(logs, limit - self.start)
        # dL/dz = exp(κ z) (L − constant)^(1 − κ), 0 where the term adds nothing
        above = np.log(np.maximum(best[:, None] - self.constant, np.finfo(float).tiny))
        slope = np.exp(self.power * at + (1.0 - self.power) * above)[:, 0]
        gain = (slope @ self.matrix) @ logs + slope @ np.where(np.isfinite(at), self.start - at, 0.0)[:, 0]
        left = np.flatnonzero(~found & (gain <= 0.0))
        found[left] = self._at(self.start + self.matrix @ logs[:, left]).mean(axis=0) <= best.mean()
        return np.asarray(found)


@dataclass(frozen=True)
class _Row:
    """One draw: the exponents of its term by additive quantity, ln scale, and what else its loss is made of."""

    exponents: Mapping[Quantity, float]
    start: float
    constant: float
    joined: float
    power: float

    @classmethod
    def of(cls, draw: Draw, moving: str, law: Law) -> Self | None:
        form, c, tokens = draw.form, draw.coefficients, law.tokens or 1.0
        term = form.terms[moving]
        exponents = _exponents(term, c)
        scale = term.sign * c[term.scale]
        if exponents is None or not scale > 0.0:
            return None
        others = {
            name: each.sign
            * c[each.scale]
            * float(np.prod([tokens ** signed_exponent(p, c) for p in each.powers.values()]))
            for name, each in form.terms.items()
            if name != moving
        }
        with_it = form.joined if moving in form.joined else ()
        power = c[form.join] if form.join else 1.0
        beside = sum(value**power for name, value in others.items() if name in with_it)
        apart = [name for name in form.joined if name not in with_it]
        constant = sum(value for name, value in others.items() if name not in form.joined)
        constant += sum(others[name] ** power for name in apart) ** (1.0 / power) if apart else 0.0
        start = float(np.log(scale)) + float(np.log(tokens)) * exponents.pop("tokens", 0.0)
        return cls(exponents, start, constant, float(np.log(beside)) / power if beside else -np.inf, power)


def _exponents(term: Term, c: dict[str, float]) -> dict[Quantity, float] | None:
    """The exponents of a term by what is additive, counts and logarithms; None where a quantity is neither."""
    found: dict[Quantity, float] = {}
    for name, written in term.powers.items():
        logs, power = _logs_of(name), signed_exponent(written, c)
        if logs is None:
            return None
        for quantity, by in logs.items():
            found[quantity] = found.get(quantity, 0.0) + power * by
    for pair, written in term.crossed.items():
        first, second = pair.split()
        if part_of(first) != part_of(second) or part_of(first) not in ("base", "attention"):
            return None
        found[LogProduct((), ((first, second, 1.0),))] = c[written]
    return found


def _logs_of(name: str) -> dict[Quantity, float] | None:
    """The logarithm of a quantity as a sum of those of counts and of logarithms that add up over parts; None of another."""
    found: dict[Quantity, float] = {}
    made = {name: 1.0} if part_of(name) is not None else MADE_OF.get(name, {name: 1.0})
    for each, power in made.items():
        if part_of(each) is None and each not in (*COUNTS, "tokens"):
            return None
        found[each if part_of(each) is None else LogProduct(((each, 1.0),))] = power
    return found
