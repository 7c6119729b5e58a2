"""Draws of a law's coefficients as its file holds them: rows of numbers, those of other forms with their form."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from objectives.loss_law.form import Form


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


def draw_faults(
    needed: Sequence[str],
    covariance: Sequence[str],
    draws: Sequence[str],
    rivals: Sequence[tuple[Form, Sequence[str]]],
    *,
    tokens: bool,
) -> list[str]:
    """What is wrong with a law's rows of coefficients and those of its rivals; `tokens` tells whether the law has them."""
    own = [("covariance", needed, covariance), ("draws", needed, draws)]
    others = [(f"rivals[{i}].draws", list(form.coefficients), rows) for i, (form, rows) in enumerate(rivals)]
    faults = [
        f"{name}: expected {len(names)} numbers a row, {', '.join(names)}; correct it"
        for name, names, rows in (*own, *others)
        if any(len(row.split()) != len(names) for row in rows)
    ]
    if rivals and not draws:
        faults.append("rivals: expected draws of the law's own form beside those of others, got none; add them")
    if any("tokens" in form.features for form, _ in rivals) and not tokens:
        faults.append("tokens: expected the training tokens to predict for, as a rival has them; add them")
    if covariance and len(covariance) != len(needed):
        faults.append(f"covariance: expected {len(needed)} rows, got {len(covariance)}; correct it")
    return faults
