"""Loss laws: a form (a module of `law_forms`) with coefficients and the range they were fitted on."""

import importlib
from functools import cached_property
from types import ModuleType
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from objectives.plugins import importable
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
)


class Law(BaseModel):
    """A fitted loss law: natural-log loss per token of an architecture."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str = "custom"
    description: str = ""
    form: str
    coefficients: dict[str, Annotated[float, Field(allow_inf_nan=False)]]
    fitted_on: dict[str, tuple[float, float]] = {}
    tokens: Annotated[float, Field(gt=0)] | None = None
    residual_sd: Annotated[float, Field(ge=0)] | None = None
    source: str = ""

    @model_validator(mode="after")
    def _known(self) -> "Law":
        choices = importable("objectives.law_forms")
        if self.form not in choices:
            raise ValueError(f"form: expected one of {', '.join(choices)}, got {self.form!r}; choose one")
        needed = list(self._form.COEFFICIENTS)
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
        if faults:
            raise ValueError("\n".join(faults))
        return self

    @cached_property
    def _form(self) -> ModuleType:
        return importlib.import_module(f"objectives.law_forms.{self.form}")

    def terms(self, architectures: Architectures) -> dict[str, FloatArray]:
        """Additive parts of the loss by name, nats per token, each (n,)."""
        terms: dict[str, FloatArray] = self._form.terms(architectures, self.coefficients)
        return terms

    def loss(self, architectures: Architectures) -> FloatArray:
        """Natural-log loss per token, nats, (n,): the sum of the terms in their order."""
        return sum(self.terms(architectures).values(), np.zeros(len(architectures)))

    @property
    def separable(self) -> bool:
        """Whether the form says to which part of an architecture each of its terms belongs."""
        return hasattr(self._form, "PART_OF")

    def part_terms(self, architectures: Architectures, part: Part) -> tuple[FloatArray, ...]:
        """The terms of one part, each (n,); of a separable law."""
        terms = self.terms(architectures)
        return tuple(terms[name] for name, owner in self._form.PART_OF.items() if owner == part)

    def outside(self, architectures: Architectures) -> dict[str, BoolArray]:
        """Which rows lie outside the fitted range, per quantity that any row leaves."""
        flags = {}
        for name, (least, most) in self.fitted_on.items():
            values = getattr(architectures, name)
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
