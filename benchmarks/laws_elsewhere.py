"""Published laws on other people's models: ranks, regret of each law's pick, slope and level.

    PLAS_EXTERNAL_DATA=FOLDER python benchmarks/laws_elsewhere.py

FOLDER holds loss/morph.csv, gemstones_hot.csv, deepmind_routing.csv, chinchilla_epoch.csv, fineweb_13b.csv and bian_shapes.csv, which
are not part of the project (docs/laws-elsewhere.md says whose they are); docs/data/trained.csv is. A quantity that a table lacks is that of a dense model, or the
middle of the law's range.
"""

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from nas.study.catalogue import load_law
from objectives.fitting.portability import predictions, stand_ins
from objectives.fitting.trained_models import Table, read_table
from objectives.loss_law.features import COUNTS, MADE_OF, feature
from objectives.loss_law.law import Law
from objectives.plugins import documents
from search_spaces.architectures import stack
from search_spaces.arrays import IntArray
from search_spaces.columns import SHAPE

ROUTED = {
    "loss_validation": "loss", "num_experts": "n_experts", "k": "top_k", "d_model": "width", "num_blocks": "depth",
    "dense_parameter_count": "active_parameters", "total_parameter_count": "parameters",
}  # fmt: skip
OWN = Path(__file__).parent.parent / "docs" / "data" / "trained.csv"
TOKENS_A_PARAMETER = 100  # of Bian's shapes, whose table does not say
PRINTED = (
    "table",
    "law",
    "rows",
    "groups",
    "pairs",
    "ordered",
    "worst regret",
    "mean regret",
    "slope",
    "level",
    "rmse of a line",
)


@dataclass(frozen=True, eq=False)
class Measured:
    """A table of trained models with the number of each row's group, (n,)."""

    name: str
    table: Table
    group: IntArray


def tables(folder: Path) -> Iterator[Measured]:
    """Every public table, its rows grouped by size and data; one group where nothing is alike."""
    yield _morph(folder / "morph.csv")
    for tokens in (10, 100):
        names = ["final_loss=loss", "params_active_precise=active_parameters"]
        kept = [f"tokens>{tokens}e9", f"tokens<{tokens}.1e9"]
        table = _embedded(read_table(folder / "gemstones_hot.csv", names, kept))
        yield _together(f"Gemstones, {tokens} B tokens", table)
    kept = ["k=1", "router_type!=RL-R", "router_type!=Hash", "step=249000", "routing_frequency=0.5"]
    routed = read_table(folder / "deepmind_routing.csv", [f"{a}={b}" for a, b in ROUTED.items()], kept)
    yield _together("Routing, S-BASE and dense", routed)
    names = ["Model Size=parameters", "Training FLOP=training_flops"]
    yield _together("Chinchilla points", _embedded(read_table(folder / "chinchilla_epoch.csv", names)))
    fineweb = read_table(folder / "fineweb_13b.csv", ["ffn_width=expert_size"])
    yield _together("FineWeb-Edu, 3 shapes", fineweb)
    yield bian(folder / "bian_shapes.csv")
    yield _together("In miniature", read_table(OWN, where=["tokens=307200"]))


def _morph(path: Path) -> Measured:
    """Rows of one nominal size and one ratio of tokens are a group: "80M_v1" at "20N"."""
    with path.open(encoding="utf-8") as lines:
        keys = [(row["model"].partition("_")[0], row["ratio"]) for row in csv.DictReader(lines)]
    order = sorted(set(keys))
    table = _embedded(read_table(path))
    return Measured(f"Morph, {len(order)} groups of one size", table, np.array([order.index(key) for key in keys]))


def bian(path: Path) -> Measured:
    """Seven shapes in two sizes; heads that the source leaves out make up the parameters of the size's first shape, 4 to 1 KV head."""
    with path.open(encoding="utf-8") as lines:
        rows = [{name: value for name, value in row.items() if value} for row in csv.DictReader(lines)]
    sizes = sorted({row["group"] for row in rows})
    firsts = {size: next(row for row in rows if row["group"] == size) for size in sizes}
    shapes = [_with_heads(row, firsts[row["group"]]) for row in rows]
    architectures = stack(shapes)
    numbers = {
        name: np.array([shape[name] for shape in shapes], dtype=np.float64) for name in SHAPE if name in shapes[0]
    }
    numbers |= {name: feature(architectures, name) for name in (*COUNTS, *MADE_OF)}
    numbers |= {
        "tokens": TOKENS_A_PARAMETER * numbers["parameters"],
        "loss": np.array([float(row["loss"]) for row in rows]),
    }
    group = np.array([sizes.index(row["group"]) for row in rows])
    table = Table(numbers, np.arange(len(rows)), names=np.array([row["name"] for row in rows]))
    return Measured("Bian's shapes", table, group)


def _with_heads(row: dict[str, str], first: dict[str, str]) -> dict[str, object]:
    """A shape as columns; `first` is one of its size whose heads are stated."""
    width, size, ffn = int(row["width"]), int(row["head_dim"]), int(row["ffn_width"])
    both = int(row.get("n_heads", 0)) + int(row.get("n_kv_heads", 0))
    if not both:
        heads = int(first["n_heads"]) + int(first["n_kv_heads"])
        layer = int(first["width"]) * (2 * int(first["head_dim"]) * heads + 3 * int(first["ffn_width"]))
        both = (layer - 3 * width * ffn) / (2 * width * size)
    kv = int(row.get("n_kv_heads", 0)) or round(both / 5)
    heads = int(row.get("n_heads", 0)) or 4 * kv
    shape = {"depth": int(row["depth"]), "width": width, "expert_size": ffn, "head_dim": size}
    return {**shape, "n_heads": heads, "n_kv_heads": kv, "n_experts": 1, "top_k": 1, "qk_norm": "no"}


def _together(name: str, table: Table) -> Measured:
    return Measured(name, table, np.zeros(len(table), dtype=np.int64))


def _embedded(table: Table) -> Table:
    """A table whose counts of parameters include embeddings; laws without them take the same count."""
    count = "parameters" if "parameters" in table.numbers else "active_parameters"
    both = dict.fromkeys(("parameters", "active_parameters"), table.numbers[count])
    counted = {f"{name}_with_embeddings": column for name, column in both.items()}
    return Table({**table.numbers, **both, **counted}, table.lines, table.notes, table.sources)


def judged(law: Law, measured: Measured) -> dict[str, object] | None:
    """A law on a table; None where it cannot be asked, or prices too little."""
    table = measured.table
    assumed = stand_ins(law, table)
    if assumed is None:
        return None
    predicted = predictions(law, table, assumed)
    ends = {n: table.feature(n) for n in law.prices if table.has(n)}
    priced = np.ones(len(table), dtype=bool)
    for name, values in ends.items():
        priced &= (values >= law.prices[name][0]) & (values <= law.prices[name][1])
    if law.prices_sparse and table.has("n_experts"):  # what experts must be is not told by these tables
        priced &= table.feature("n_experts") == 1
    rows = np.flatnonzero(priced & np.isfinite(predicted))
    if len(rows) < 3 or np.ptp(predicted[rows]) < 1e-9:
        return None
    loss, groups = table.loss, [rows[measured.group[rows] == g] for g in np.unique(measured.group[rows])]
    pairs = [(a, b) for group in groups for a, b in combinations(group.tolist(), 2) if loss[a] != loss[b]]
    right = sum((predicted[a] - predicted[b]) * (loss[a] - loss[b]) > 0 for a, b in pairs)
    regrets = [loss[group[np.argmin(predicted[group])]] - loss[group].min() for group in groups if len(group) > 1]
    slope, offset = np.polyfit(predicted[rows], loss[rows], 1)
    line = slope * predicted[rows] + offset - loss[rows]
    return {
        "rows": len(rows), "groups": len(regrets), "pairs": len(pairs), "ordered": f"{100 * right / len(pairs):.1f} %",
        "worst regret": f"{max(regrets):.4f}", "mean regret": f"{np.mean(regrets):.4f}", "slope": f"{slope:.2f}",
        "level": f"{np.mean(predicted[rows] - loss[rows]):+.2f}", "rmse of a line": f"{np.sqrt((line**2).mean()):.4f}",
    }  # fmt: skip


def main() -> None:
    """Print a table in Markdown."""
    folder = Path(os.environ["PLAS_EXTERNAL_DATA"]) / "loss"
    print(f"| {' | '.join(PRINTED)} |\n|{'---|' * len(PRINTED)}")
    for measured in tables(folder):
        for name in documents("objectives.laws"):
            found = judged(load_law(name), measured)
            if found is not None:
                row = {"table": measured.name, "law": f"`{name}`", **found}
                print(f"| {' | '.join(str(row[column]) for column in PRINTED)} |")


if __name__ == "__main__":
    main()
