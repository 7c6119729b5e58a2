"""Public pairs of trainings that differ in a kind of layer: read, in nats, with their sources."""

import math
from functools import cache
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from objectives.evidence.trainings import in_unit
from objectives.layer_costs.costs import Kind
from objectives.packaged import packaged
from objectives.quantities import Name

Loss = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class PairSource(BaseModel):
    """Who trained and published: a laboratory's pairs are left out together. text: what the losses are of."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    laboratory: Name
    url: str
    commit: str = ""
    licence: str
    text: str
    bibtex: str


class Pair(BaseModel):
    """A variant and its baseline, trained alike: published losses, and by how much the variant has more of each kind."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    source: Name
    at: str
    variant: str
    width: Annotated[int, Field(gt=0)] | None = None
    tokens: Annotated[float, Field(gt=0)] | None = None
    context: Annotated[int, Field(gt=0)] | None = None
    unit: Literal["nats", "perplexity", "nats per byte"] = "nats"
    loss: tuple[Loss, Loss]
    change: Annotated[dict[Kind, float], Field(min_length=1)]
    not_fitted: str = ""

    @property
    def nats(self) -> float:
        """Variant less baseline, nats of a token."""
        variant, baseline = self.loss
        if self.unit == "perplexity":
            return math.log(variant / baseline)
        return (variant - baseline) / in_unit(self.unit)


class Pairs(BaseModel):
    """The published pairs and their sources."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    sources: dict[Name, PairSource]
    pairs: tuple[Pair, ...]

    @property
    def fitted(self) -> tuple[Pair, ...]:
        """Pairs from which costs are estimated."""
        return tuple(pair for pair in self.pairs if not pair.not_fitted)

    def laboratory(self, pair: Pair) -> str:
        """Who trained a pair."""
        return self.sources[pair.source].laboratory


@cache
def public_pairs() -> Pairs:
    """Those of this package."""
    return Pairs.model_validate(packaged("objectives.layer_costs", "pairs"))
