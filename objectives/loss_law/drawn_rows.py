"""Rows of numbers in a law's file: draws of its coefficients, and of other forms that the same data allow."""

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
