"""What kinds of layers cost in loss where somebody measured it: nats by kind, in proportion to the layers of it."""

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from objectives.quantities import Name
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.layer_kinds import LINEAR_KINDS

Kind = Literal["local", "kv_shared", "conv", "deltanet", "mamba2"]
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


class MeasuredDeltas(BaseModel):
    """Deltas that somebody measured, of kinds one by one, nats where all layers are of the kind; `source` says where and how."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    local: Nats | None = None
    kv_shared: Nats | None = None
    conv: Nats | None = None
    deltanet: Nats | None = None
    mamba2: Nats | None = None
    source: Name = ""

    @property
    def by_kind(self) -> LayerDeltas:
        """The kinds that were measured."""
        named: dict[Kind, float | None] = {kind: getattr(self, kind) for kind in SHARES.values()}
        return {kind: delta for kind, delta in named.items() if delta is not None}


def share_of(architectures: Architectures, kind: Kind) -> FloatArray:
    """n_kind / l, (n,)."""
    a = architectures
    counts = {"local": a.n_local, "kv_shared": a.n_kv_shared, "conv": a.n_conv}
    if kind in LINEAR_KINDS:
        counts[kind] = a.n_linear * (a.linear_kind == LINEAR_KINDS.index(kind))
    found: FloatArray = counts[kind] / a.depth
    return found


def nats(architectures: Architectures, deltas: Mapping[Kind, float]) -> FloatArray:
    """Σ over kinds of delta · share, nats, (n,): a delta is that of a model whose layers are all of the kind."""
    found: FloatArray = np.zeros(len(architectures))
    for kind, delta in deltas.items():
        found = found + delta * share_of(architectures, kind)
    return found
