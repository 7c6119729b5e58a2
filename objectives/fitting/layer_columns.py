"""Layers of several kinds in a table of trained models: their columns, and what a form fits beside its own terms.

The loss of a row is the form's plus Σ over kinds of delta · share of its layers that are of the kind, nats.
"""

from collections.abc import Collection, Mapping

import numpy as np

from objectives.loss_law.form import Form, Term
from objectives.loss_law.layer_deltas import SHARES, Kind
from search_spaces.arrays import AnyArray, FloatArray
from search_spaces.columns import ALIASES, CODES, SHAPE, worded
from search_spaces.layer_kinds import KIND_DEFAULTS


def own_columns(numbers: Mapping[str, FloatArray]) -> dict[str, AnyArray]:
    """The columns of a table that say an architecture."""
    plain: dict[str, AnyArray] = {name: numbers[name] for name in (*SHAPE, *ALIASES) if name in numbers}
    kinds = {name: numbers[name] for name in KIND_DEFAULTS if name in numbers}
    return plain | {
        name: worded(name, column.astype(np.int64)) if name in CODES else column for name, column in kinds.items()
    }


def beside_kinds(form: Form, kinds: Collection[Kind]) -> Form:
    """A form with a term for each kind, `delta_KIND` times its share of the layers.

    Raises:
        ValueError: a form whose terms add up to the logarithm of the loss, beside which no nats stand.
    """
    added = {name: kind for name, kind in SHARES.items() if kind in kinds and name not in form.terms}
    if not added:
        return form
    if form.of != "loss":
        raise ValueError(
            "form: expected terms that add up to the loss beside layers of several kinds, whose deltas are nats, got terms of "
            "its logarithm; choose another form"
        )
    terms = {name: Term(scale=coefficient(kind), any_sign=True) for name, kind in added.items()}
    return Form(**{**dict(form), "terms": {**form.terms, **terms}})


def coefficient(kind: Kind) -> str:
    """The name of a kind's delta among coefficients."""
    return f"delta_{kind}"
