"""A law form on a table: predictions and derivatives of many coefficient vectors at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from objectives.loss_law.form import Form
from objectives.loss_law.layer_deltas import SHARES
from plas_fit.fitting.kept_rows import offered
from plas_fit.fitting.trained_models import Table, lacking
from search_spaces.arrays import BoolArray, FloatArray

TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Model:
    """A form whose coefficients are scales at a reference design, then the free exponents.

    base (terms, n): logarithmic factors; slopes (terms, exponents, n): ∂ ln term / ∂ exponent, zero at
    the reference design (geometric means), so that scales are contributions there and well conditioned.
    target (n,): the loss, or its logarithm. low, high (coefficients,): bounds.
    """

    form: Form
    free: tuple[str, ...]
    fixed: Mapping[str, float]
    reference: Mapping[str, float]
    base: FloatArray
    slopes: FloatArray
    target: FloatArray
    weight: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def names(self) -> tuple[str, ...]:
        """Coefficients in the order of the vectors: scales, then free exponents."""
        return (*self.form.scales, *self.free)

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.target)

    def __getitem__(self, rows: FloatArray) -> "Model":
        """The same model on some of the rows."""
        return Model(
            self.form, self.free, self.fixed, self.reference,
            self.base[:, rows], self.slopes[:, :, rows], self.target[rows], self.weight[rows], self.low, self.high,
        )  # fmt: skip

    def terms(self, exponents: FloatArray) -> FloatArray:
        """Terms of unit scale for exponents (b, e), (b, terms, n)."""
        found: FloatArray = np.exp(np.tensordot(exponents, self.slopes, axes=(1, 1))) * self.base
        return found

    def predict(self, vectors: FloatArray) -> FloatArray:
        """Predictions in the target's scale of coefficients (b, p), (b, n)."""
        return self._scaled(self._sum(vectors[:, : self.count], self.terms(vectors[:, self.count :])))

    def derivatives(self, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predictions (b, n) and their derivatives by the coefficients (b, p, n)."""
        scales = vectors[:, : self.count]
        terms = self.terms(vectors[:, self.count :])
        total = self._sum(scales, terms)
        jacobian = np.empty((len(vectors), len(self.names), self.n))
        jacobian[:, : self.count] = terms
        for e in range(len(self.free)):
            used = np.flatnonzero(self.slopes[:, e].any(axis=1))
            jacobian[:, self.count + e] = np.einsum(
                "bt,btn,tn->bn", scales[:, used], terms[:, used], self.slopes[used, e]
            )
        if self.logarithmic:
            jacobian /= np.maximum(total, TINY)[:, None, :]
        return self._scaled(total), jacobian

    @property
    def count(self) -> int:
        """Terms."""
        return len(self.base)

    @property
    def logarithmic(self) -> bool:
        """Whether the terms add up to the loss and residuals are those of its logarithm."""
        return self.form.of == "loss" and self.form.residuals == "log_loss"

    def _sum(self, scales: FloatArray, terms: FloatArray) -> FloatArray:
        return np.asarray(np.matmul(scales[:, None, :], terms)[:, 0])

    def _scaled(self, total: FloatArray) -> FloatArray:
        return np.log(np.maximum(total, TINY)) if self.logarithmic else total

    def raw(self, vectors: FloatArray) -> FloatArray:
        """Coefficients as a law file holds them, in the form's order, (b, coefficients)."""
        named = {name: vectors[:, i] for i, name in enumerate(self.names)}
        named |= {name: np.full(len(vectors), value) for name, value in self.fixed.items()}
        columns = {name: named[name] for name in self.form.exponents}
        for term in self.form.terms.values():
            shift = np.zeros(len(vectors))
            for quantity, written in term.powers.items():
                sign = -1.0 if written.startswith("-") else 1.0
                shift += sign * named[written.removeprefix("-")] * np.log(self.reference[quantity])
            columns[term.scale] = named[term.scale] * np.exp(-shift)
        return np.stack([columns[name] for name in self.form.coefficients], axis=1)

    def raw_jacobian(self, vector: FloatArray) -> FloatArray:
        """Derivatives of the file's coefficients by the vector's, (coefficients, p)."""
        order, p = list(self.form.coefficients), len(self.names)
        found = np.zeros((len(order), p))
        centre = dict(zip(order, self.raw(vector[None])[0], strict=True))
        for i, name in enumerate(self.free):
            found[order.index(name), self.count + i] = 1.0
        for i, term in enumerate(self.form.terms.values()):
            row = order.index(term.scale)
            unit = np.where(np.arange(p) == i, 1.0, vector)
            found[row, i] = self.raw(unit[None])[0, row]
            for quantity, written in term.powers.items():
                if (name := written.removeprefix("-")) in self.free:
                    sign = -1.0 if written.startswith("-") else 1.0
                    found[row, self.count + self.free.index(name)] -= (
                        sign * np.log(self.reference[quantity]) * centre[term.scale]
                    )
        return found

    def vector(self, coefficients: Mapping[str, float]) -> FloatArray:
        """The vector of a law's coefficients, (p,)."""
        named = dict(coefficients)
        for term in self.form.terms.values():
            for quantity, written in term.powers.items():
                sign = -1.0 if written.startswith("-") else 1.0
                named[term.scale] *= self.reference[quantity] ** (sign * coefficients[written.removeprefix("-")])
        return np.array([named[name] for name in self.names])


def compiled(
    form: Form, table: Table, fixed: Mapping[str, float], reference: Mapping[str, float] | None = None
) -> Model:
    """A form on a table, some exponents fixed; a term that is called as a share of a kind of layers is that share.

    Raises:
        ValueError: a form that is not fitted, a quantity that the table does not hold, or an exponent the form does not have.
    """
    _refuse(form)
    free = tuple(name for name in form.exponents if name not in fixed)
    for name in fixed:
        if name not in form.exponents:
            raise ValueError(f"fix: expected an exponent among {', '.join(form.exponents)}, got {name!r}; correct it")
    columns = _held(table, needed(form, fixed))
    centre = reference or {name: float(np.exp(np.log(column).mean())) for name, column in columns.items()}
    centre = {name: centre.get(name, 1.0) for name in form.features}
    of_kinds = {name: 1.0 for name in form.terms if name in SHARES}
    centre, kinds = centre | of_kinds, table.kinds if of_kinds else {}
    base, slopes = np.ones((len(form.terms), len(table))), np.zeros((len(form.terms), len(free), len(table)))
    for t, (term_name, term) in enumerate(form.terms.items()):
        base[t] = kinds.get(SHARES[term_name], 0.0) if term_name in SHARES else term.sign
        for name, at in term.logs.items():
            base[t] *= np.log(columns[name] / at)
        for name, written in term.powers.items():
            if name not in columns:
                continue
            sign, exponent = (-1.0, written[1:]) if written.startswith("-") else (1.0, written)
            logs = sign * np.log(columns[name] / centre[name])
            if exponent in free:
                slopes[t, free.index(exponent)] += logs
            else:
                base[t] *= np.exp(fixed[exponent] * logs)
    signs: BoolArray = np.array([term.any_sign for term in form.terms.values()])
    bounds = [form.bound(name) for name in free]
    low = np.concatenate([np.where(signs, -np.inf, 0.0), [b[0] for b in bounds]])
    high = np.concatenate([np.full(len(signs), np.inf), [b[1] for b in bounds]])
    target = np.log(table.loss) if form.residuals == "log_loss" else table.loss
    return Model(form, free, dict(fixed), centre, base, slopes, target, table.weight, low, high)


def _held(table: Table, names: Sequence[str]) -> dict[str, FloatArray]:
    """Quantities of a table, each (n,).

    Raises:
        ValueError: a line for each that it does not hold, then the columns that no law reads.
    """
    if faults := lacking(table, names):
        raise ValueError("\n".join([*faults, *offered(table.beside)]))
    return {name: table.feature(name) for name in names}


def _refuse(form: Form) -> None:
    """A form that is not fitted.

    Raises:
        ValueError: it has other terms than products of powers and logarithms.
    """
    if not form.fitted:
        raise ValueError(
            "form: expected terms that are products of powers and logarithms, got crossed exponents, bent quantities, joined "
            "terms, sums that multiply others or terms of dense or sparse designs alone; it can be used as a law, not fitted"
        )


def needed(form: Form, fixed: Mapping[str, float]) -> tuple[str, ...]:
    """Quantities that matter: not those whose every exponent is fixed at zero."""
    used = [
        name
        for term in form.terms.values()
        for name in term.features
        if name in term.logs or fixed.get(term.powers[name].removeprefix("-")) != 0.0
    ]
    return tuple(dict.fromkeys(used))
