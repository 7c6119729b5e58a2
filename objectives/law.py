"""Loss laws: a form (a module of `law_forms`) with coefficients and the range they were fitted on."""

import importlib
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from objectives.features import feature
from objectives.form import Form
from objectives.plugins import importable
from objectives.quantities import Name
from search_spaces.architectures import Architectures, Part
from search_spaces.arrays import BoolArray, FloatArray

RANGED = (
    "depth",
    "width",
    "head_dim",
    "n_experts",
    "top_k",
    "activation_rate",
    "expert_ffn_ratio",
    "ffn_ratio",
    "kv_dim",
    "parameters",
    "active_parameters",
)
BLOCK = 65_536


def _is_row(text: str) -> str:
    try:
        finite = bool(np.isfinite([float(number) for number in text.split()]).all())
    except ValueError:
        finite = False
    if not finite:
        raise ValueError(f"expected finite numbers with spaces between, got {text[:40]!r}; correct the row")
    return text


Row = Annotated[str, AfterValidator(_is_row)]


class Law(BaseModel):
    """A fitted loss law: natural-log loss per token of an architecture.

    `covariance` and `draws` are rows of numbers in the order of the form's coefficients: the one of
    linear theory, the other coefficients refitted to resampled data.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Name = "custom"
    description: str = ""
    form: str | Form
    coefficients: dict[str, Annotated[float, Field(allow_inf_nan=False)]]
    fitted_on: dict[str, tuple[float, float]] = {}
    tokens: Annotated[float, Field(gt=0)] | None = None
    residual_sd: Annotated[float, Field(ge=0)] | None = None
    implied_residual_sd: Annotated[float, Field(ge=0)] | None = Field(
        None, description="What a published R² implies for the residuals, nats: offered, never used by itself"
    )
    source: str = ""
    covariance: tuple[Row, ...] = ()
    draws: tuple[Row, ...] = ()
    provenance: dict[str, Any] = {}

    @model_validator(mode="after")
    def _known(self) -> "Law":
        needed = list(named_form(self.form).coefficients)
        faults = [
            f"coefficients.{c}: expected a number, got nothing; add it" for c in needed if c not in self.coefficients
        ]
        faults += [
            f"coefficients.{c}: expected one of {', '.join(needed)}; remove it"
            for c in self.coefficients
            if c not in needed
        ]
        faults += [
            f"fitted_on.{c}: expected one of {', '.join(RANGED)}; remove it" for c in self.fitted_on if c not in RANGED
        ]
        if "tokens" in named_form(self.form).features and self.tokens is None:
            faults.append("tokens: expected the training tokens to predict for, got nothing; add them")
        for name, rows in (("covariance", self.covariance), ("draws", self.draws)):
            if any(len(row.split()) != len(needed) for row in rows):
                faults.append(f"{name}: expected {len(needed)} numbers a row, {', '.join(needed)}; correct it")
        if self.covariance and len(self.covariance) != len(needed):
            faults.append(f"covariance: expected {len(needed)} rows, got {len(self.covariance)}; correct it")
        if faults:
            raise ValueError("\n".join(faults))
        return self

    @cached_property
    def law_form(self) -> Form:
        """The formula."""
        return named_form(self.form)

    @cached_property
    def drawn(self) -> FloatArray:
        """Coefficients of each draw, (draws, coefficients)."""
        rows = np.array([[float(number) for number in row.split()] for row in self.draws])
        return rows.reshape(len(self.draws), len(self.law_form.coefficients))

    def feature(self, architectures: Architectures, name: str) -> FloatArray:
        """A quantity that the law depends on, (n,)."""
        if name == "tokens":
            return np.full(len(architectures), self.tokens, dtype=np.float64)
        return feature(architectures, name)

    def terms(self, architectures: Architectures) -> dict[str, FloatArray]:
        """Additive parts of the loss by name, nats per token, each (n,); one part where only the log is a sum."""
        known: dict[str, FloatArray] = {}
        values = self._values(architectures, self.coefficients, known)
        if self.law_form.of == "log_loss":
            return {"loss": np.exp(sum(values.values(), np.zeros(len(architectures))))}
        return values

    def _values(
        self, architectures: Architectures, coefficients: dict[str, float], known: dict[str, FloatArray]
    ) -> dict[str, FloatArray]:
        def remembered(name: str) -> FloatArray:
            if name not in known:
                known[name] = self.feature(architectures, name)
            return known[name]

        terms = self.law_form.values(remembered, coefficients)
        return {name: np.full(len(architectures), v) if np.ndim(v) == 0 else np.asarray(v) for name, v in terms.items()}

    def drawn_losses(self, architectures: Architectures, draws: FloatArray | None = None) -> FloatArray:
        """Loss of each architecture under each draw, nats, (draws, n)."""
        n, known = len(architectures), dict[str, FloatArray]()
        losses = np.empty((len(rows := self.drawn if draws is None else draws), n))
        for row, coefficients in zip(losses, rows, strict=True):
            named = dict(zip(self.law_form.coefficients, coefficients.tolist(), strict=True))
            row[:] = sum(self._values(architectures, named, known).values(), np.zeros(n))
        return np.exp(losses) if self.law_form.of == "log_loss" else losses

    def loss_quantile(self, architectures: Architectures, level: float) -> FloatArray:
        """A quantile of the loss over the draws, nats, (n,).

        Raises:
            ValueError: the law carries no draws.
        """
        if not self.draws:
            raise ValueError(
                f"loss@q{100 * level:g}: expected a law with draws, got {self.name} without; fit one with 'plas fit'"
            )
        blocks = [architectures[start : start + BLOCK] for start in range(0, len(architectures), BLOCK)]
        found = [np.quantile(self.drawn_losses(block), level, axis=0) for block in blocks]
        return np.concatenate([np.zeros(0), *found])

    def loss(self, architectures: Architectures) -> FloatArray:
        """Natural-log loss per token, nats, (n,): the sum of the terms in their order."""
        return sum(self.terms(architectures).values(), np.zeros(len(architectures)))

    @property
    def separable(self) -> bool:
        """Whether the form says to which part of an architecture each of its terms belongs."""
        return self.law_form.of == "loss" and all(term.part for term in self.law_form.terms.values())

    def part_terms(self, architectures: Architectures, part: Part) -> tuple[FloatArray, ...]:
        """The terms of one part, each (n,); of a separable law."""
        terms = self.terms(architectures)
        return tuple(terms[name] for name, term in self.law_form.terms.items() if term.part == part)

    def outside(self, architectures: Architectures) -> dict[str, BoolArray]:
        """Which rows lie outside the fitted range, per quantity that any row leaves."""
        flags = {}
        for name, (least, most) in self.fitted_on.items():
            values = feature(architectures, name)
            out = (values < least * (1 - 1e-12)) | (values > most * (1 + 1e-12))
            if out.any():
                flags[name] = out
        return flags

    def extrapolates(self, architectures: Architectures) -> BoolArray:
        """Whether each prediction is an extrapolation, (n,)."""
        flags = self.outside(architectures).values()
        outside: BoolArray = np.logical_or.reduce([np.zeros(len(architectures), dtype=bool), *flags])
        return outside

    def mapping(self) -> dict[str, Any]:
        """The law as YAML content."""
        return self.model_dump(mode="json", exclude_defaults=True)


def named_form(form: str | Form) -> Form:
    """A shipped form by its name, or the given one.

    Raises:
        ValueError: no such form.
    """
    if isinstance(form, Form):
        return form
    choices = importable("objectives.law_forms")
    if form not in choices:
        raise ValueError(f"form: expected one of {', '.join(choices)}, got {form!r}; choose one")
    found: Form = importlib.import_module(f"objectives.law_forms.{form}").FORM
    return found
