"""Loss laws: a form (a module of `law_forms`) with coefficients and the range they were fitted on."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, model_validator

from objectives.loss_law.coverage import (
    DOMAINS,
    RANGED,
    DesignKind,
    LeftBy,
    Range,
    Region,
    beyond,
    extrapolation,
    kinds_of,
    ranged,
)
from objectives.loss_law.draws import Draw, Rival, Row, delta_faults, draw_faults, losses_without_kinds, mixed
from objectives.loss_law.features import OF_TRAINING, feature
from objectives.loss_law.form import Coefficients, Form, beyond_floats, named_form
from objectives.loss_law.layer_deltas import CONTEXT, QUANTITIES, Context, Kind, LayerDeltas, nats, share_of
from objectives.loss_law.precision_cost import GROUP, TOKENS, FewBits, Penalty, PrecisionLaw
from objectives.quantities import Name
from objectives.text.vocabulary_cost import VocabularyCost
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, brief
from search_spaces.columns import Part
from search_spaces.specification import SHIPPED

BLOCK = 65_536
FARTHEST = 4.0  # nats that texts and tokenizers make of one loss


@brief
class Law(BaseModel):
    """A fitted loss law: natural-log loss per token of an architecture.

    `covariance` and `draws` are rows of numbers in the order of the form's coefficients: the one of
    linear theory, the other coefficients refitted to resampled data. `rivals` are draws of other forms.

    fitted_on: range of each quantity; beyond it a prediction is an extrapolation. covers: the rows near which dense designs, and those with
    experts, count as covered; where it is there it decides instead, and a kind without rows is outside. prices, prices_sparse: what every
    design, every design with experts, must be for the law to mean anything; of any other it says nothing (∞).
    vocabulary, tied: the embeddings that its counts of parameters with embeddings include. tokenizer_size: that of the tokens
    which its loss is per; None: not known. vocabulary_cost: what designs' own vocabularies cost, of a space in which they differ:
    the loss is then per as much text as a token of the law's tokenizer holds.

    precision_law: what few bits cost beside it, nats; precision: the format of designs that name none, and of the
    quantities that a composition is given; group_size: weights per scale; precision_tokens: training tokens of the
    precision law, where they are not `tokens`.

    beyond_rows: factor on the draws' spread about the prediction outside `fitted_on`, as leaving the largest rows out shows
    that it is needed; None: not known, and the draws are as they are.

    mtp: what training with a head for multi-token prediction adds, nats.

    layer_deltas: what layers of a kind cost beside it, nats, in proportion to how many of the layers they are, by
    `layer_deltas_source`, windows counted from `layer_context` tokens; layer_delta_draws: the same of each draw, those of rivals last.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Name = "custom"
    description: str = ""
    form: str | Form
    coefficients: dict[str, Annotated[float, Field(allow_inf_nan=False)]]
    fitted_on: dict[str, tuple[float, float]] = {}
    covers: dict[DesignKind, Region] = {}
    tokens: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    prices: dict[str, tuple[float, float]] = {}
    prices_sparse: dict[str, tuple[float, float]] = {}
    vocabulary: Annotated[int, Field(ge=0, le=10**7)] = 0
    tied: bool = True
    tokenizer: Name = ""
    tokenizer_size: Annotated[int, Field(gt=0, le=10**7)] | None = None
    data: Name = ""
    runs: Annotated[int, Field(gt=0)] | None = None
    cannot_see: tuple[Name, ...] = ()
    caveat: Name = Field("", description="What must be said wherever the law is used")
    precision_law: PrecisionLaw | None = None
    precision: str = ""
    group_size: Annotated[int, Field(gt=1)] | None = None
    precision_tokens: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    layer_deltas: LayerDeltas = {}
    layer_deltas_source: Name = Field("", description="Who measured layer_deltas, and how")
    layer_context: Context = CONTEXT
    layer_delta_draws: dict[Kind, Row] = {}
    vocabulary_cost: VocabularyCost | None = None
    mtp: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    transcribed: Name = Field("", description="Where constants were read from, if not from the source itself")
    residual_sd: Annotated[float, Field(ge=0)] | None = None
    implied_residual_sd: Annotated[float, Field(ge=0)] | None = Field(
        None, description="What a published R² implies for the residuals, nats: offered, never used by itself"
    )
    source: str = ""
    covariance: tuple[Row, ...] = ()
    draws: tuple[Row, ...] = ()
    rivals: tuple[Rival, ...] = ()
    beyond_rows: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = None
    provenance: dict[str, Any] = {}

    @model_validator(mode="after")
    def _known(self, info: ValidationInfo) -> "Law":
        if info.context == SHIPPED:
            return self
        needed = list(named_form(self.form).coefficients)
        faults = [
            f"coefficients.{c}: expected a number, got nothing; add it" for c in needed if c not in self.coefficients
        ]
        faults += [
            f"coefficients.{c}: expected one of {', '.join(needed)}; remove it"
            for c in self.coefficients
            if c not in needed
        ]
        faults += named_form(self.form).faults_of(self.coefficients)
        for field in ("fitted_on", *DOMAINS):
            choices = (*RANGED, "tokens") if field == "fitted_on" else RANGED
            faults += [
                f"{field}.{c}: expected one of {', '.join(choices)}; remove it"
                for c in getattr(self, field)
                if c not in choices
            ]
            faults += [
                f"{field}.{c}: expected the least and the most of a quantity, got {least:g} and {most:g}; correct them"
                for c, (least, most) in getattr(self, field).items()
                if not 0.0 <= least <= most
            ]
        if "tokens" in named_form(self.form).features and self.tokens is None:
            faults.append("tokens: expected the training tokens to predict for, got nothing; add them")
        faults += draw_faults(needed, self.covariance, self.draws, self._rival_draws(), tokens=self.tokens is not None)
        draws = [*self.draws, *(row for rival in self.rivals for row in rival.draws)]
        faults += delta_faults(self.layer_deltas, self.layer_delta_draws, len(draws))
        if not faults and any(unsound := self.faults_of(self.drawn)):
            at = next(at for at, fault in enumerate(unsound) if fault)
            faults = [f"draws: expected draws that trainings support, got in draw {at + 1} {unsound[at]}; leave it out"]
        if faults:
            raise ValueError("\n".join(faults))
        return self

    def faults_of(self, drawn: Sequence[Draw]) -> list[str]:
        """Why each draw is no law that trainings support, "" of one that is: a loss below 0 of a model of any size, a row priced far from the law's own prediction."""
        least = [draw.form.irreducible(draw.coefficients) for draw in drawn]
        shapes = [each for region in self.covers.values() if (each := region.designs_as_built) is not None]
        off: FloatArray = np.zeros(len(drawn))
        if shapes and drawn:
            rows, known = Architectures.concatenate(shapes), dict[str, FloatArray]()
            own = sum(self._values(self.law_form, rows, self.coefficients, known).values(), np.zeros(len(rows)))
            losses = losses_without_kinds(drawn, len(rows), lambda form, c: self._values(form, rows, c, known))
            off = np.abs(losses - self.law_form.loss(own)).max(axis=1)
        found = np.where(off <= FARTHEST, "", f"a loss more than {FARTHEST:g} nats from the law's own")
        below = "a loss below 0 however large a model is"
        return [below if loss < 0.0 else str(fault) for loss, fault in zip(least, found, strict=True)]

    def _rival_draws(self) -> list[tuple[Form, tuple[Row, ...]]]:
        return [(named_form(rival.form), rival.draws) for rival in self.rivals]

    @cached_property
    def law_form(self) -> Form:
        """The formula."""
        return named_form(self.form)

    @property
    def drawn(self) -> tuple[Draw, ...]:
        """Every draw, the forms mixed so that the first few hold each by its share."""
        return mixed([(self.law_form, self.draws), *self._rival_draws()], self.layer_deltas, self.layer_delta_draws)

    def feature(self, architectures: Architectures, name: str) -> FloatArray:
        """A quantity that the law depends on, (n,)."""
        if name in OF_TRAINING:
            tokens = self.tokens_of(architectures)
            return tokens if name == "tokens" else tokens / feature(architectures, "active_parameters")
        if name == "vocabulary":
            return np.where(architectures.vocabulary > 0, architectures.vocabulary, np.nan)
        if name in QUANTITIES:
            return share_of(architectures, QUANTITIES[name], self.layer_context)
        return feature(architectures, name, self.vocabulary, tied=self.tied)

    def tokens_of(self, architectures: Architectures) -> FloatArray:
        """The tokens that each architecture is trained on, (n,): its own, or those that the law predicts for.

        Args:
            architectures: (n,).

        Raises:
            ValueError: neither says them.
        """
        own = architectures.tokens
        return np.where(own > 0, own, self.stated_tokens if (own == 0).any() else 0.0).astype(np.float64)

    @property
    def stated_tokens(self) -> float:
        """The tokens that the law predicts for.

        Raises:
            ValueError: it does not say them.
        """
        if self.tokens is None:
            raise ValueError(
                f"tokens: expected training tokens, got none from law {self.name}; write them into its file"
            )
        return self.tokens

    @property
    def sees_tokens(self) -> bool:
        """Whether its predictions depend on the training tokens."""
        return "tokens" in self.law_form.features

    @beyond_floats()
    def terms(self, architectures: Architectures) -> dict[str, FloatArray]:
        """Additive parts of the loss by name, nats per token, each (n,); one part where only the log is a sum.

        Args:
            architectures: (n,).
        """
        known: dict[str, FloatArray] = {}
        values = self._values(self.law_form, architectures, self.coefficients, known)
        if self.law_form.of != "loss":
            values = {"loss": self.law_form.loss(sum(values.values(), np.zeros(len(architectures))))}
        bits = {} if self.few_bits is None else {"precision": self.few_bits.nats(architectures)}
        values |= bits | (
            {"layers": nats(architectures, self.layer_deltas, self.layer_context)} if self.layer_deltas else {}
        )
        values |= {"mtp": np.full(len(architectures), self.mtp)} if self.mtp else {}
        if self.vocabulary_cost is not None:
            total = sum(values.values(), np.zeros(len(architectures)))
            values |= {"vocabulary": self.vocabulary_cost.priced(total, architectures.vocabulary) - total}
        return values

    @beyond_floats()
    def gives_losses(self, architectures: Architectures) -> BoolArray:
        """Of which rows the formula gives a loss, a number above 0, (n,), whether or not the law prices them."""
        values = self._values(self.law_form, architectures, self.coefficients, {})
        total = self.law_form.loss(sum(values.values(), np.zeros(len(architectures))))
        found: BoolArray = np.isfinite(total) & (total > 0.0)
        return found

    def _values(
        self, form: Form, architectures: Architectures, coefficients: Coefficients, known: dict[str, FloatArray]
    ) -> dict[str, FloatArray]:
        def remembered(name: str) -> FloatArray:
            if name not in known:
                known[name] = self.feature(architectures, name)
            return known[name]

        terms = form.values(remembered, coefficients)
        return {name: np.full(len(architectures), v) if np.ndim(v) == 0 else np.asarray(v) for name, v in terms.items()}

    def drawn_losses(self, architectures: Architectures, most: int | None = None) -> FloatArray:
        """Loss of each architecture under each draw, or under the first `most` of them, nats, (draws, n).

        Args:
            architectures: (n,).
            most: draws.
        """
        known, drawn = dict[str, FloatArray](), self.drawn[:most]
        losses = losses_without_kinds(
            drawn, len(architectures), lambda form, c: self._values(form, architectures, c, known)
        )
        for row, draw in zip(losses, drawn, strict=True):
            row += nats(architectures, draw.layer_deltas, self.layer_context) if draw.layer_deltas else 0.0
        losses = losses if self.few_bits is None else losses + self.few_bits.drawn(architectures, len(losses))
        losses = losses + self.mtp if self.mtp else losses
        return losses if self.vocabulary_cost is None else self.vocabulary_cost.drawn(losses, architectures.vocabulary)

    def spread_losses(self, architectures: Architectures) -> FloatArray:
        """Losses under each draw, `beyond_rows` times as far from the prediction outside the fitted range, nats, (draws, n).

        For intervals of a design's loss. Orders of designs are the draws' own: a factor that begins at the end of the
        range would order designs on its two sides by itself.

        Args:
            architectures: (n,).
        """
        losses, factor = self.drawn_losses(architectures), self.beyond_rows
        if factor is None or not (outside := self.extrapolates(architectures)).any():
            return losses
        centre = sum(self.terms(architectures).values(), np.zeros(len(architectures)))
        return np.where(outside, centre + factor * (losses - centre), losses)

    def loss_quantile(self, architectures: Architectures, level: float) -> FloatArray:
        """A quantile of the loss over the draws, spread outside the fitted range, nats, (n,).

        Args:
            architectures: (n,).
            level: in (0, 1).

        Raises:
            ValueError: the law carries no draws.
        """
        if not self.draws:
            raise ValueError(
                f"loss@q{100 * level:g}: expected a law with draws, got {self.name} without; fit one with 'plas fit'"
            )
        blocks = [architectures[start : start + BLOCK] for start in range(0, len(architectures), BLOCK)]
        found = [np.quantile(self.spread_losses(block), level, axis=0) for block in blocks]
        return np.concatenate([np.zeros(0), *found])

    @beyond_floats()
    def loss(self, architectures: Architectures) -> FloatArray:
        """Natural-log loss per token, nats, (n,): the sum of the terms in their order; ∞ where the law does not price.

        Args:
            architectures: (n,).
        """
        terms, cost = self.terms(architectures), self.vocabulary_cost
        own = (value for name, value in terms.items() if cost is None or name != "vocabulary")
        total: FloatArray = sum(own, np.zeros(len(architectures)))
        total = total if cost is None else cost.priced(total, architectures.vocabulary)
        unpriced = self.unpriced(architectures).values()
        return np.where(np.logical_or.reduce([*unpriced]), np.inf, total) if unpriced else total

    def unpriced(self, architectures: Architectures) -> dict[str, BoolArray]:
        """Which rows the law says nothing of, per quantity for which it does not; several share a name as dense and sparse."""
        sparse, found = architectures.n_experts > 1, dict[str, BoolArray]()
        for domain, where in ((self.prices, np.ones_like(sparse)), (self.prices_sparse, sparse)):
            for name, ends in domain.items():
                out = beyond(self.feature(architectures, name), *ends) & where
                found[name] = out | found.get(name, np.zeros_like(out))
        return {name: rows for name, rows in found.items() if rows.any()}

    @property
    def partial(self) -> bool:
        """Whether there are designs of which it says nothing."""
        return bool(self.prices or self.prices_sparse)

    @property
    def priced_designs(self) -> str:
        """What it prices: `designs of n_experts 1 alone`, `every design`."""
        every = [ranged(name, *ends) for name, ends in self.prices.items()]
        sparse = [ranged(name, *ends) for name, ends in self.prices_sparse.items()]
        said = [f"designs of {' and '.join(every)}"] if every else ["dense designs"] if sparse else []
        said += [f"those with experts of {' and '.join(sparse)}"] if sparse else []
        return f"{' and '.join(said)} alone" if said else "every design"

    @property
    def separable(self) -> bool:
        """Whether it is a sum whose terms belong to one part of an architecture each and never turn along an axis of the FFN."""
        form = self.law_form
        if form.of != "loss" or form.factors or form.joined or self.prices or self.prices_sparse or self.penalty:
            return False
        return all(term.part and not term.turns for term in form.terms.values())

    def part_terms(self, architectures: Architectures, part: Part) -> tuple[FloatArray, ...]:
        """The terms of one part, each (n,); of a separable law. Kinds of layers are the attention's."""
        terms, cost = self.terms(architectures), self.vocabulary_cost
        own = [terms[name] for name, term in self.law_form.terms.items() if term.part == part]
        own += [terms["layers"]] if part == "attention" and self.layer_deltas else []
        own += [terms["mtp"]] if part == "base" and self.mtp else []
        return tuple(own if cost is None else [cost.priced(term, cost.here or 0) for term in own])

    @property
    def unseen(self) -> tuple[str, ...]:
        """What it cannot see; the vocabulary not where published runs say what designs' own cost."""
        return tuple(name for name in self.cannot_see if name != "vocabulary" or self.vocabulary_cost is None)

    @property
    def few_bits(self) -> FewBits | None:
        """What formats of few bits cost beside the law; None where nothing is said of it."""
        if self.precision_law is None:
            return None
        tokens = self.precision_tokens or self.tokens or TOKENS
        return FewBits(self.precision_law, self.precision, tokens, self.group_size or GROUP)

    @property
    def penalty(self) -> Penalty | None:
        """What its own precision costs; None where that is nothing."""
        return None if self.few_bits is None else self.few_bits.penalty("")

    def at(self, precision: str) -> "Law":
        """The law of designs of one format."""
        return self.model_copy(update={"precision": precision}) if self.precision_law and precision else self

    @property
    def regions(self) -> Mapping[DesignKind, Region]:
        """What its rows cover, of dense designs and of those with experts."""
        return self.covers or {"dense": (every := Region(ranges=self.fitted_on)), "sparse": every}

    def region_of(self, design: Architectures) -> Region | None:
        """What its rows of a design's kind cover; `design` has one row."""
        return self.regions.get("sparse" if design.n_experts[0] > 1 else "dense")

    @property
    def covered_vocabularies(self) -> dict[str, tuple[float, float]]:
        """The range of vocabularies whose cost is known, where designs have their own; {} elsewhere."""
        return {} if self.vocabulary_cost is None else {"vocabulary": self.vocabulary_cost.fitted_on}

    def covering(self, most: Mapping[Kind, float]) -> dict[DesignKind, Region]:
        """What its rows and pairs of trainings cover that say what kinds of layers cost, up to so large a share of each, of windows so many halvings."""
        shares = {name: (0.0, most[kind]) for name, kind in QUANTITIES.items() if kind in most}
        shares |= {"local_share": (0.0, 1.0)} if "window" in most else {}
        return {kind: region.within(**shares) for kind, region in self.covers.items()}

    @property
    def knows_its_rows(self) -> bool:
        """Whether it says what its rows cover, so that designs outside can be told."""
        return bool(self.covers or self.fitted_on)

    def excess(self, architectures: Architectures) -> dict[str, FloatArray]:
        """By quantity that any row leaves, and `rows`: ln of the factor by which each lies beyond what the law's rows cover, (n,), 0 inside."""
        return self._left(architectures, Region.excess)

    def _left(self, architectures: Architectures, left_by: LeftBy) -> dict[str, FloatArray]:
        def range_of(name: str) -> Range | None:
            if name in OF_TRAINING and self.tokens is None:
                return None
            return (each := self.feature(architectures, name), each)

        return kinds_of(self.regions, architectures.n_experts, range_of, self.covered_vocabularies, left_by)

    def outside(self, architectures: Architectures) -> dict[str, BoolArray]:
        """Which rows lie outside of what its rows cover, per quantity that any row leaves, and `rows`; what is merely unusual does not count."""
        return {name: over > 0.0 for name, over in self._left(architectures, Region.outside).items()}

    def extrapolation(self, architectures: Architectures) -> FloatArray:
        """How many times beyond what its rows cover, or published models usually have, each design lies, over all quantities together, (n,); 1 inside."""
        return extrapolation(self.excess(architectures), len(architectures))

    def extrapolates(self, architectures: Architectures) -> BoolArray:
        """Whether each prediction is an extrapolation, (n,).

        Args:
            architectures: (n,).
        """
        few = [] if self.few_bits is None else [self.few_bits.extrapolates(architectures)]
        flags = [np.zeros(len(architectures), dtype=bool), *self.outside(architectures).values(), *few]
        outside: BoolArray = np.logical_or.reduce(flags)
        return outside

    def mapping(self) -> dict[str, Any]:
        """The law as YAML content."""
        return self.model_dump(mode="json", exclude_defaults=True)


SHOWN_DIGITS = 8  # of a hash in a sentence


class NamedText(BaseModel):
    """A file by its name and the SHA-256 of its content."""

    name: str = ""
    sha256: str = ""

    def __str__(self) -> str:
        return f"{self.name or '(no name)'} ({self.sha256[:SHOWN_DIGITS] or 'no hash'})"


class Origin(BaseModel):
    """What a law's provenance says of its fit: the tables, their rows and tokens, its verdict, the law's own file.

    seen: hashes of the tables that the laws before it were fitted on, where it was fitted on top of one; pooled: of a law
    of published trainings how many of each table.
    """

    form: str = ""
    rows: int | None = None
    tables: tuple[NamedText, ...] = ()
    tokens: tuple[float, float] | None = None
    seen: tuple[str, ...] = ()
    pooled: dict[str, int] = {}
    verdict: str = ""
    file: NamedText | None = None


def origin_of(law: Law) -> Origin | None:
    """Where a law comes from; None for one that says nothing of it, or nothing that can be read."""
    try:
        return Origin.model_validate(law.provenance) if law.provenance else None
    except ValidationError:
        return None


def tables_seen(law: Law) -> list[str]:
    """Hashes of every table that a law, or one that it was fitted on top of, was fitted on."""
    found = origin_of(law)
    return [] if found is None else [*found.seen, *(each.sha256 for each in found.tables)]


def origin_line(law: Law) -> str:
    """Form, tables, rows, tokens, standard deviation and file of a law in one line; "" where it says nothing of them."""
    found = origin_of(law)
    if found is None:
        return ""
    form = found.form or _trainings(found) or (law.form if isinstance(law.form, str) else "a form of its own")
    tables = " and ".join(str(each) for each in found.tables[:2])
    tables += f" and {len(found.tables) - 2} more tables" if len(found.tables) > 2 else ""
    parts = [
        f"Law {law.name}: {form}",
        "" if found.rows is None else f"{found.rows} rows" + (f" of {tables}" if tables else ""),
        "" if found.tokens is None else _tokens(*found.tokens),
        "" if law.residual_sd is None else f"residual standard deviation {law.residual_sd:.3g} nats",
        "" if found.file is None else f"file {found.file}",
    ]
    return ", ".join(part for part in parts if part)


def verdict_line(law: Law) -> str:
    """What its own fit says that a law is good for; "" where it does not."""
    found = origin_of(law)
    return f"Verdict of the law's fit: {found.verdict}" if found is not None and found.verdict else ""


def _trainings(found: Origin) -> str:
    """`pooled from 1,838 published trainings in 19 tables`; "" of a law that is not pooled."""
    used = [rows for rows in found.pooled.values() if rows]
    return f"pooled from {sum(used):,} published trainings in {len(used)} tables" if used else ""


def _tokens(least: float, most: float) -> str:
    return f"{most:.3g} tokens" if least == most else f"{least:.3g} to {most:.3g} tokens"
