"""What tables of trained models cover, for the law that is fitted to them."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from objectives.fitting.trained_models import Table
from objectives.loss_law.coverage import DesignKind, Region, region_of
from objectives.loss_law.layer_deltas import SHARES
from objectives.loss_law.ranges import RANGED
from search_spaces.arrays import FloatArray


def covered(tables: Sequence[Table]) -> dict[DesignKind, Region]:
    """What the rows of tables cover, of dense designs and of those with experts; a table without a column of experts is dense."""
    experts = [table.feature("n_experts") if table.has("n_experts") else np.ones(len(table)) for table in tables]
    kinds: dict[DesignKind, list[Table]] = {
        "dense": [table[np.flatnonzero(e == 1)] for table, e in zip(tables, experts, strict=True) if (e == 1).any()],
        "sparse": [table[np.flatnonzero(e > 1)] for table, e in zip(tables, experts, strict=True) if (e > 1).any()],
    }
    return {kind: region_of(partial(_column, of), kind).within(**_layers(of)) for kind, of in kinds.items() if of}


OF_DENSE = {"n_experts": "n_experts", "top_k": "top_k", "parameters": "active_parameters", "expert_ffn_ratio": "ffn_ratio"}


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
    shares = {name: [table.feature(name) if table.has(name) else np.zeros(1) for table in tables] for name in SHARES}
    return {name: (0.0, float(np.concatenate(each).max())) for name, each in shares.items()}
