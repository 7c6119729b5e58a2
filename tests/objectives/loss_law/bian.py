"""Bian's seven measured shapes, whose table leaves out the heads of three."""

import csv
from pathlib import Path

import numpy as np

from objectives.loss_law.features import COUNTS, MADE_OF, feature
from plas_fit.fitting.trained_models import Table
from search_spaces.architectures import architectures_of
from search_spaces.arrays import IntArray
from search_spaces.columns import SHAPE

TOKENS_A_PARAMETER = 100  # which the table does not say
Row = dict[str, str]


def bian(path: Path) -> tuple[Table, IntArray]:
    """Seven shapes and the size of each, 0 or 1, (7,); heads that the source leaves out make up the parameters of the size's first shape, 4 to 1 KV head."""
    with path.open(encoding="utf-8") as lines:
        rows = [{name: value for name, value in row.items() if value} for row in csv.DictReader(lines)]
    firsts = {
        group: next(row for row in rows if row["group"] == group) for group in sorted({row["group"] for row in rows})
    }
    shapes = [_with_heads(row, firsts[row["group"]]) for row in rows]
    architectures = architectures_of(shapes)
    numbers = {
        name: np.array([shape[name] for shape in shapes], dtype=np.float64) for name in SHAPE if name in shapes[0]
    }
    numbers |= {name: feature(architectures, name) for name in (*COUNTS, *MADE_OF)}
    numbers |= {
        "tokens": TOKENS_A_PARAMETER * numbers["parameters"],
        "loss": np.array([float(row["loss"]) for row in rows]),
    }
    table = Table(numbers, np.arange(len(rows)), names=np.array([row["name"] for row in rows]))
    return table, np.array([[*firsts].index(row["group"]) for row in rows])


def _with_heads(row: Row, first: Row) -> dict[str, object]:
    """A shape as columns; `first` is one of its size whose heads are stated."""
    width, size, ffn = int(row["width"]), int(row["head_dim"]), int(row["ffn_width"])
    both = float(int(row.get("n_heads", 0)) + int(row.get("n_kv_heads", 0)))
    if not both:
        heads = int(first["n_heads"]) + int(first["n_kv_heads"])
        layer = int(first["width"]) * (2 * int(first["head_dim"]) * heads + 3 * int(first["ffn_width"]))
        both = (layer - 3 * width * ffn) / (2 * width * size)
    kv = int(row.get("n_kv_heads", 0)) or round(both / 5)
    heads = int(row.get("n_heads", 0)) or 4 * kv
    shape = {"depth": int(row["depth"]), "width": width, "expert_size": ffn, "head_dim": size}
    return {**shape, "n_heads": heads, "n_kv_heads": kv, "n_experts": 1, "top_k": 1, "qk_norm": "no"}
