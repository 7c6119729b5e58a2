"""The costs of kinds of layers that every study takes which gives none of its own: estimated from public pairs, with their doubt."""

from functools import cache
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from objectives.loss_law.draws import Row
from objectives.loss_law.law import Law
from objectives.plugins import packaged
from search_spaces.arrays import FloatArray

Searched = Literal["window", "kv_shared", "conv", "deltanet", "mamba2"]
Shown = Literal["tied_experts", "tied_embeddings", "shared_expert"]
Kind = Searched | Shown
#: Kinds that a search prices, and all of which pairs say something.
SEARCHED: tuple[Searched, ...] = get_args(Searched)
KINDS: tuple[Kind, ...] = (*SEARCHED, *get_args(Shown))
SEED = 20_261_125
Number = Annotated[float, Field(allow_inf_nan=False)]


class Cost(BaseModel):
    """What a kind costs in a laboratory that is new, nats, with its sd and 90 % interval; how many pairs of which laboratories say it.

    most: the largest share of the layers that a pair changed, of windows the most halvings of the context.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    nats: Number
    sd: Annotated[float, Field(gt=0)]
    interval: tuple[Number, Number]
    pairs: Annotated[int, Field(gt=0)]
    most: Annotated[float, Field(gt=0)]
    laboratories: tuple[str, ...]


class LayerCosts(BaseModel):
    """Costs by kind, and the covariance of those that a search prices, a row for each of `SEARCHED`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    source: str
    costs: dict[Kind, Cost]
    covariance: tuple[Row, ...]

    def priced(self, law: Law) -> dict[str, Any]:
        """Fields of a law that is priced by them: a delta of each kind, one of each of its draws, and how much of each kind is covered."""
        deltas = {kind: self.costs[kind].nats for kind in SEARCHED}
        count = len(law.draws) + sum(len(rival.draws) for rival in law.rivals)
        rows = {} if not count else {kind: numbers(row) for kind, row in zip(deltas, self._drawn(count).T, strict=True)}
        covers = law.covering({kind: self.costs[kind].most for kind in SEARCHED})
        return {"layer_deltas": deltas, "layer_deltas_source": self.source, "layer_delta_draws": rows, "covers": covers}

    def _drawn(self, count: int) -> FloatArray:
        """Costs of laboratories that are new, nats, (count, kinds): normal numbers about the means."""
        covariance = np.array([[float(number) for number in row.split()] for row in self.covariance])
        normal = np.random.default_rng(SEED).standard_normal((count, len(SEARCHED)))
        means = np.array([self.costs[kind].nats for kind in SEARCHED])
        centred = normal - normal.mean(axis=0) if count > 1 else normal
        return np.asarray(means + centred @ np.linalg.cholesky(covariance).T)


@cache
def public_costs() -> LayerCosts:
    """Those of this package."""
    return LayerCosts.model_validate(packaged("objectives.layer_costs", "costs"))


def priced_publicly(law: Law) -> bool:
    """Whether public pairs say what kinds of layers cost beside a law."""
    return bool(law.layer_deltas) and law.layer_deltas_source == public_costs().source


def numbers(row: FloatArray) -> Row:
    """A row of numbers in six digits."""
    return " ".join(f"{number:.6g}" for number in row)
