"""What kinds of layers cost in loss where somebody measured it: nats by kind, in proportion to the layers of it, windows also to how much they leave out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from objectives.quantities import Name
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.layer_kinds import LINEAR_KINDS

Kind = Literal["local", "window", "kv_shared", "conv", "deltanet", "mamba2"]
Nats = Annotated[float, Field(ge=-10, le=10, allow_inf_nan=False)]
LayerDeltas = dict[Kind, Nats]
#: Additive quantities of the mixers: the share of the layers that are of a kind.
SHARES: dict[str, Kind] = {
    "local_share": "local",
    "kv_shared_share": "kv_shared",
    "conv_share": "conv",
    "deltanet_share": "deltanet",
    "mamba2_share": "mamba2",
}
#: The same of all kinds: of windows also how often the context is halved, a layer's mean.
QUANTITIES: dict[str, Kind] = SHARES | {"window_halvings": "window"}
CONTEXT = 4096  # tokens that a model is trained on at once, where nothing else is said
Context = Annotated[int, Field(strict=True, gt=0, le=10**9)]


class MeasuredDeltas(BaseModel):
    """Deltas that somebody measured, of kinds one by one, nats where all layers are of the kind; `source` says where and how.

    window: of windows of half the context, of a quarter twice that; context: tokens from which windows are counted.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    local: Nats | None = None
    window: Nats | None = None
    kv_shared: Nats | None = None
    conv: Nats | None = None
    deltanet: Nats | None = None
    mamba2: Nats | None = None
    source: Name = ""
    context: Context | None = None

    @property
    def by_kind(self) -> LayerDeltas:
        """The kinds that were measured."""
        named: dict[Kind, float | None] = {kind: getattr(self, kind) for kind in QUANTITIES.values()}
        return {kind: delta for kind, delta in named.items() if delta is not None}


def share_of(architectures: Architectures, kind: Kind, context: int = CONTEXT) -> FloatArray:
    """n_kind / l, (n,); of windows n_local / l · log2(context / w), 0 where they are not shorter than the context."""
    a = architectures
    if kind == "window":
        halvings = np.log2(context / np.clip(np.where(a.n_local > 0, a.window, context), 1, context))
        return np.asarray(a.n_local / a.depth * halvings)
    counts = {"local": a.n_local, "kv_shared": a.n_kv_shared, "conv": a.n_conv}
    if kind in LINEAR_KINDS:
        counts[kind] = a.n_linear * (a.linear_kind == LINEAR_KINDS.index(kind))
    found: FloatArray = counts[kind] / a.depth
    return found


@dataclass(frozen=True)
class LayerCosts:
    """What kinds of layers cost together: an additive quantity of the mixers, nats."""

    deltas: tuple[tuple[Kind, float], ...]
    context: int

    def of(self, architectures: Architectures) -> FloatArray:
        """The cost of each architecture, (n,)."""
        return nats(architectures, dict(self.deltas), self.context)


def nats(architectures: Architectures, deltas: Mapping[Kind, float], context: int = CONTEXT) -> FloatArray:
    """Σ over kinds of delta · share, nats, (n,): a delta is that of a model whose layers are all of the kind."""
    found: FloatArray = np.zeros(len(architectures))
    for kind, delta in deltas.items():
        found = found + delta * share_of(architectures, kind, context)
    return found
