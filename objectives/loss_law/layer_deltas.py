"""What kinds of layers cost in loss where somebody measured it: nats by kind, in proportion to the layers of it."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.layer_kinds import LINEAR_KINDS

Kind = Literal["local", "kv_shared", "conv", "deltanet", "mamba2"]
LayerDeltas = dict[Kind, Annotated[float, Field(ge=-10, le=10, allow_inf_nan=False)]]
#: Additive quantities of the mixers: the share of the layers that are of a kind.
SHARES: dict[str, Kind] = {
    "local_share": "local",
    "kv_shared_share": "kv_shared",
    "conv_share": "conv",
    "deltanet_share": "deltanet",
    "mamba2_share": "mamba2",
}


def share_of(architectures: Architectures, kind: Kind) -> FloatArray:
    """n_kind / l, (n,)."""
    a = architectures
    counts = {"local": a.n_local, "kv_shared": a.n_kv_shared, "conv": a.n_conv}
    if kind in LINEAR_KINDS:
        counts[kind] = a.n_linear * (a.linear_kind == LINEAR_KINDS.index(kind))
    found: FloatArray = counts[kind] / a.depth
    return found


def nats(architectures: Architectures, deltas: LayerDeltas) -> FloatArray:
    """Σ over kinds of delta · share, nats, (n,): a delta is that of a model whose layers are all of the kind."""
    found: FloatArray = np.zeros(len(architectures))
    for kind, delta in deltas.items():
        found = found + delta * share_of(architectures, kind)
    return found
