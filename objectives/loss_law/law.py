"""Loss laws: a form (a module of `law_forms`) with coefficients and the range they were fitted on."""

import importlib
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from objectives.loss_law.features import feature
from objectives.loss_law.form import Form
from objectives.plugins import importable
from objectives.quantities import Name
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray
from search_spaces.columns import Part

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
    "query_dim",
    "granularity",
    "expansion_rate",
    "parameters",
    "active_parameters",
    "parameters_with_embeddings",
    "active_parameters_with_embeddings",
    "ffn_attention_ratio",
    "normalised_width",
)
DOMAINS = ("prices", "prices_sparse")
BLOCK = 65_536
ULPS = 1e-12  # relative; a quantity so close to the end of a range is inside


def _is_row(text: str) -> str:
    try:
        finite = bool(np.isfinite([float(number) for number in text.split()]).all())
    except ValueError:
        finite = False
    if not finite:
        raise ValueError(f"expected finite numbers with spaces between, got {text[:40]!r}; correct the row")
    return text


Row = Annotated[str, AfterValidator(_is_row)]


class Rival(BaseModel):
    """Another form that the same data allow: draws of its coefficients, as many as its share of the evidence."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    form: str | Form
    draws: tuple[Row, ...] = Field(min_length=1)


class Law(BaseModel):
    """A fitted loss law: natural-log loss per token of an architecture.

    `covariance` and `draws` are rows of numbers in the order of the form's coefficients: the one of
    linear theory, the other coefficients refitted to resampled data. `rivals` are draws of other forms.

    fitted_on: range of each quantity; beyond it a prediction is an extrapolation. prices, prices_sparse: what every
    design, every design with experts, must be for the law to mean anything; of any other it says nothing (∞).
    vocabulary, tied: the embeddings that its counts of parameters with embeddings include.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Name = "custom"
    description: str = ""
    form: str | Form
    coefficients: dict[str, Annotated[float, Field(allow_inf_nan=False)]]
    fitted_on: dict[str, tuple[float, float]] = {}
    tokens: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    prices: dict[str, tuple[float, float]] = {}
    prices_sparse: dict[str, tuple[float, float]] = {}
    vocabulary: Annotated[int, Field(ge=0, le=10**7)] = 0
    tied: bool = True
    tokenizer: Name = ""
    data: Name = ""
    runs: Annotated[int, Field(gt=0)] | None = None
    cannot_see: tuple[Name, ...] = ()
    caveat: Name = Field("", description="What must be said wherever the law is used")
    transcribed: Name = Field("", description="Where constants were read from, if not from the source itself")
    residual_sd: Annotated[float, Field(ge=0)] | None = None
    implied_residual_sd: Annotated[float, Field(ge=0)] | None = Field(
        None, description="What a published R² implies for the residuals, nats: offered, never used by itself"
    )
    source: str = ""
    covariance: tuple[Row, ...] = ()
    draws: tuple[Row, ...] = ()
    rivals: tuple[Rival, ...] = ()
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
        for field in ("fitted_on", *DOMAINS):
            choices = (*RANGED, "tokens") if field == "fitted_on" else RANGED
            faults += [
                f"{field}.{c}: expected one of {', '.join(choices)}; remove it"
                for c in getattr(self, field)
                if c not in choices
            ]
        if "tokens" in named_form(self.form).features and self.tokens is None:
            faults.append("tokens: expected the training tokens to predict for, got nothing; add them")
        own = [("covariance", needed, self.covariance), ("draws", needed, self.draws)]
        others = [(f"rivals[{i}].draws", named_form(r.form), r.draws) for i, r in enumerate(self.rivals)]
        for name, names, rows in [*own, *((name, list(form.coefficients), rows) for name, form, rows in others)]:
            if any(len(row.split()) != len(names) for row in rows):
                faults.append(f"{name}: expected {len(names)} numbers a row, {', '.join(names)}; correct it")
        if self.rivals and not self.draws:
            faults.append("rivals: expected draws of the law's own form beside those of others, got none; add them")
        if any("tokens" in form.features for _, form, _ in others) and self.tokens is None:
            faults.append("tokens: expected the training tokens to predict for, as a rival has them; add them")
        if self.covariance and len(self.covariance) != len(needed):
            faults.append(f"covariance: expected {len(needed)} rows, got {len(self.covariance)}; correct it")
        if faults:
            raise ValueError("\n".join(faults))
        return self

    @cached_property
    def law_form(self) -> Form:
        """The formula."""
        return named_form(self.form)

    @property
    def drawn(self) -> tuple[tuple[Form, dict[str, float]], ...]:
        """Form and coefficients of every draw, the forms mixed so that the first few hold each by its share."""
        sources = [(self.law_form, self.draws), *((named_form(rival.form), rival.draws) for rival in self.rivals)]
        placed = [
            ((i + 0.5) / len(draws), at, form, [float(number) for number in row.split()])
            for at, (form, draws) in enumerate(sources)
            for i, row in enumerate(draws)
        ]
        placed.sort(key=lambda draw: draw[:2])
        return tuple((form, dict(zip(form.coefficients, row, strict=True))) for _, _, form, row in placed)

    def feature(self, architectures: Architectures, name: str) -> FloatArray:
        """A quantity that the law depends on, (n,)."""
        if name == "tokens":
            return np.full(len(architectures), self.tokens, dtype=np.float64)
        return feature(architectures, name, self.vocabulary, tied=self.tied)

    def terms(self, architectures: Architectures) -> dict[str, FloatArray]:
        """Additive parts of the loss by name, nats per token, each (n,); one part where only the log is a sum."""
        known: dict[str, FloatArray] = {}
        values = self._values(self.law_form, architectures, self.coefficients, known)
        if self.law_form.of != "loss":
            return {"loss": self.law_form.loss(sum(values.values(), np.zeros(len(architectures))))}
        return values

    def _values(
        self, form: Form, architectures: Architectures, coefficients: dict[str, float], known: dict[str, FloatArray]
    ) -> dict[str, FloatArray]:
        def remembered(name: str) -> FloatArray:
            if name not in known:
                known[name] = self.feature(architectures, name)
            return known[name]

        with np.errstate(over="ignore", invalid="ignore"):
            terms = form.values(remembered, coefficients)
        return {name: np.full(len(architectures), v) if np.ndim(v) == 0 else np.asarray(v) for name, v in terms.items()}

    def drawn_losses(self, architectures: Architectures, most: int | None = None) -> FloatArray:
        """Loss of each architecture under each draw, or under the first `most` of them, nats, (draws, n)."""
        n, known = len(architectures), dict[str, FloatArray]()
        losses = np.empty((len(drawn := self.drawn[:most]), n))
        for row, (form, coefficients) in zip(losses, drawn, strict=True):
            row[:] = form.loss(sum(self._values(form, architectures, coefficients, known).values(), np.zeros(n)))
        return losses

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
        """Natural-log loss per token, nats, (n,): the sum of the terms in their order; ∞ where the law does not price."""
        total: FloatArray = sum(self.terms(architectures).values(), np.zeros(len(architectures)))
        unpriced = self.unpriced(architectures).values()
        return np.where(np.logical_or.reduce([*unpriced]), np.inf, total) if unpriced else total

    def unpriced(self, architectures: Architectures) -> dict[str, BoolArray]:
        """Which rows the law says nothing of, per quantity for which it does not; several share a name as dense and sparse."""
        sparse, found = architectures.n_experts > 1, dict[str, BoolArray]()
        for domain, where in ((self.prices, np.ones_like(sparse)), (self.prices_sparse, sparse)):
            for name, ends in domain.items():
                out = _beyond(self.feature(architectures, name), *ends) & where
                found[name] = out | found.get(name, np.zeros_like(out))
        return {name: rows for name, rows in found.items() if rows.any()}

    @property
    def partial(self) -> bool:
        """Whether there are designs of which it says nothing."""
        return bool(self.prices or self.prices_sparse)

    @property
    def priced_designs(self) -> str:
        """What it prices: `designs of n_experts 1`; every design where it is not partial."""
        every = [_ranged(name, *ends) for name, ends in self.prices.items()]
        sparse = [_ranged(name, *ends) for name, ends in self.prices_sparse.items()]
        said = [f"designs of {' and '.join(every)}"] if every else ["dense designs"] if sparse else ["every design"]
        return " and ".join([*said, *([f"those with experts of {' and '.join(sparse)}"] if sparse else [])])

    @property
    def separable(self) -> bool:
        """Whether it is a sum whose terms belong to one part of an architecture each and never turn along an axis of the FFN."""
        form = self.law_form
        if form.of != "loss" or form.factors or self.partial:
            return False
        return all(term.part and not term.turns for term in form.terms.values())

    def part_terms(self, architectures: Architectures, part: Part) -> tuple[FloatArray, ...]:
        """The terms of one part, each (n,); of a separable law."""
        terms = self.terms(architectures)
        return tuple(terms[name] for name, term in self.law_form.terms.items() if term.part == part)

    def outside(self, architectures: Architectures) -> dict[str, BoolArray]:
        """Which rows lie outside the fitted range, per quantity that any row leaves."""
        flags = {}
        for name, ends in self.fitted_on.items():
            if name == "tokens" and self.tokens is None:
                continue
            out = _beyond(self.feature(architectures, name), *ends)
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


def _ranged(name: str, least: float, most: float) -> str:
    return f"{name} {least:g}" + ("" if least == most else f" to {most:g}")


def _beyond(values: FloatArray, least: float, most: float) -> BoolArray:
    beyond: BoolArray = (values < least * (1 - ULPS)) | (values > most * (1 + ULPS))
    return beyond


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
