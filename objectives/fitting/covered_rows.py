"""What tables of trained models cover, for the law that is fitted to them."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from objectives.fitting.trained_models import Table
from objectives.loss_law.coverage import RANGED, DesignKind, Region, region_of
from objectives.loss_law.layer_deltas import SHARES
from search_spaces.arrays import FloatArray


def covered(tables: Sequence[Table]) -> dict[DesignKind, Region]:
    """What the rows of tables cover, of dense designs and of those with experts; a table that says nothing of experts is dense."""
    found: dict[DesignKind, Region] = {}
    kinds: tuple[tuple[DesignKind, bool], ...] = (("dense", False), ("sparse", True))
    for kind, wanted in kinds:
        rows = [np.flatnonzero(table.sparse == wanted) for table in tables]
        of = [table[some] for table, some in zip(tables, rows, strict=True) if len(some)]
        if of:
            found[kind] = region_of(partial(_column, of), kind).within(**_layers(of))
    return found


OF_DENSE = {
    "n_experts": "n_experts",
    "top_k": "top_k",
    "parameters": "active_parameters",
    "expert_ffn_ratio": "ffn_ratio",
}


def fitted_ranges(covers: Mapping[DesignKind, Region]) -> dict[str, tuple[float, float]]:
    """The range of each quantity over designs of both kinds."""
    found = [region.ranges for region in covers.values()]
    if (dense := covers.get("dense")) is not None:
        known = {"n_experts": (1.0, 1.0), "top_k": (1.0, 1.0), **dense.ranges}
        found.append({name: known[same] for name, same in OF_DENSE.items() if same in known})
    ends = {name: [each[name] for each in found if name in each] for name in (*RANGED, "tokens")}
    return {name: (min(low for low, _ in each), max(high for _, high in each)) for name, each in ends.items() if each}


def _column(tables: Sequence[Table], name: str) -> FloatArray | None:
    """A quantity of every row, NaN in tables that do not say it; None where none does."""
    if not any(table.has(name) for table in tables):
        return None
    return np.concatenate([table.feature(name) if table.has(name) else np.full(len(table), np.nan) for table in tables])


def _layers(tables: Sequence[Table]) -> dict[str, tuple[float, float]]:
    """The range of the share of layers of each kind; a table that names none has full attention in all of them."""
    most = {
        name: max(float(table.kinds.get(kind, np.zeros(1)).max()) for table in tables) for name, kind in SHARES.items()
    }
    return {name: (0.0, share) for name, share in most.items()}
