"""Tables of trained models that others published, their parameters counted in one convention: without embeddings.

Every published count is made again from the shapes that its table states, with embeddings, norms and all; one that does not follow
within TOLERANCE is refused by name. Then the embeddings are taken off. A law that counts embeddings adds its own, as in an answer.
"""

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from objectives.fitting.trained_models import Table, read_table
from objectives.loss_law.features import COUNTS, MADE_OF, feature
from search_spaces.architectures import architectures_of
from search_spaces.arrays import FloatArray, IntArray
from search_spaces.columns import SHAPE

TOLERANCE = 1e-3  # of a count: the routing table's hold biases that it does not state
OWN = Path(__file__).parent.parent / "docs" / "data" / "trained.csv"
OWN_ROWS = ["tokens=307200"]
TOKENS_A_PARAMETER = 100  # of Bian's shapes, whose table does not say
MORPH_VOCABULARY, GEMSTONES_VOCABULARY = 50_432, 50_304
ROUTED = {
    "loss_validation": "loss", "num_experts": "n_experts", "k": "top_k", "d_model": "width", "num_blocks": "depth",
    "dense_parameter_count": "active_parameters", "total_parameter_count": "parameters",
}  # fmt: skip
ROUTED_ROWS = ["step=249000", "routing_frequency=0.5"]
Row = dict[str, str]


@dataclass(frozen=True, eq=False)
class Measured:
    """A table of trained models with the number of each row's group, (n,), and what its published counts were.

    off: the largest share by which a published count differs from that of the shapes; None where one of them is not published.
    """

    name: str
    table: Table
    group: IntArray
    counted: str
    off: float | None


def tables(folder: Path) -> Iterator[Measured]:
    """Every table, its rows grouped by size and data; one group where nothing is alike."""
    yield _morph(folder / "morph.csv")
    yield from (_gemstones(folder / "gemstones_hot.csv", tokens) for tokens in (10, 100))
    yield _routing(folder / "deepmind_routing.csv")
    yield _active_experts(folder / "deepmind_routing.csv")
    names = ["Model Size=parameters", "Training FLOP=training_flops"]
    points = read_table(folder / "chinchilla_epoch.csv", names)
    yield _together("Chinchilla points", points, "as digitised; shapes are not known", None)
    yield _fineweb(folder / "fineweb_13b.csv")
    yield bian(folder / "bian_shapes.csv")
    yield _miniature()


def follows(name: str, published: FloatArray, made: FloatArray) -> float:
    """The largest share by which published counts differ from those made of the shapes.

    Raises:
        ValueError: it is above TOLERANCE.
    """
    apart = np.abs(published / made - 1.0)
    if (off := float(apart.max())) > TOLERANCE:
        at = int(np.argmax(apart))
        raise ValueError(
            f"{name}: expected counts of parameters that follow from the shapes within {100 * TOLERANCE:g} %, got "
            f"{published[at]:.0f} for {made[at]:.0f} in row {at + 1}; correct the convention of this table"
        )
    return off


def body(depth: FloatArray, width: FloatArray, query: FloatArray, kv: FloatArray, ffn: FloatArray) -> FloatArray:
    """Parameters of gated dense layers without embeddings: projections, FFN, two norms a layer and one at the end, (n,)."""
    return depth * (2 * width * (query + kv) + 3 * width * ffn + 2 * width) + width


def _morph(path: Path) -> Measured:
    """Rows of one nominal size and one ratio of tokens are a group: "80M_v1" at "20N"."""
    keys = [(row["model"].partition("_")[0], row["ratio"]) for row in _rows(path)]
    order, table = sorted(set(keys)), read_table(path)
    name, depth, width = "Morph", table.feature("depth"), table.feature("width")
    ffn = 256.0 * ((8 * width // 3 + 255) // 256)  # open_lm's rule
    made, embeddings = body(depth, width, width, width, ffn), 2.0 * MORPH_VOCABULARY * width
    off = follows(name, table.numbers["parameters"], made + embeddings)
    group = np.array([order.index(key) for key in keys])
    said = f"with input and output embeddings, 2·{MORPH_VOCABULARY:,}·d"
    return Measured(name, _without(table, "parameters", embeddings), group, said, off)


def _gemstones(path: Path, tokens: int) -> Measured:
    """Heads of 128, a KV head to two query heads but one at least, FFNs of 4d."""
    names = ["final_loss=loss", "params_active_precise=active_parameters"]
    table = read_table(path, names, [f"tokens>{tokens}e9", f"tokens<{tokens}.1e9"])
    name, depth, width = f"Gemstones {tokens} B", table.feature("depth"), table.feature("width")
    made = body(depth, width, width, 128.0 * np.maximum(1, width // 256), 4 * width)
    embeddings = 2.0 * GEMSTONES_VOCABULARY * width
    off = follows(name, table.numbers["active_parameters"], made + embeddings)
    said = f"with input and output embeddings, 2·{GEMSTONES_VOCABULARY:,}·d"
    return _together(name, _without(table, "active_parameters", embeddings), said, off)


def _routing(path: Path) -> Measured:
    where = ["k=1", "router_type!=RL-R", "router_type!=Hash", *ROUTED_ROWS]
    table = read_table(path, [f"{a}={b}" for a, b in ROUTED.items()], where)
    name = "Routing E"
    said = "without embeddings, with biases"
    return _together(name, table, said, _routed_counts(name, path, lambda row: _kept(row) and row["k"] == "1"))


def _active_experts(path: Path) -> Measured:
    """Triples of one size and E, trained with K 1, 2 and 4: a group each. The table counts K 1 as active; here K are."""
    where = ["router_type=S-Base", "seed=42", *ROUTED_ROWS]
    table = read_table(path, [f"{a}={b}" for a, b in ROUTED.items()], where)
    shapes = np.stack([table.feature(name) for name in ("width", "depth", "n_experts")])
    group = np.unique(shapes, axis=1, return_inverse=True)[1].reshape(-1)
    top = table.feature("top_k")
    several = np.array([{1.0, 2.0, 4.0} <= set(top[group == own].tolist()) for own in group])
    table, group, top = table[np.flatnonzero(several)], np.unique(group[several], return_inverse=True)[1], top[several]
    name = "Routing K"
    further = (top - 1) * table.feature("depth") / 2 * 8 * table.feature("width") ** 2  # experts in every other layer
    active = {"active_parameters": table.numbers["active_parameters"] + further}
    ratio = {"ffn_ratio": 4.0 * top}  # experts of 4d
    table = Table({**table.numbers, **active, **ratio}, table.lines, table.notes, table.sources)
    said = "without embeddings, with biases; active ones as of K 1, here of K"
    return Measured(name, table, group, said, _routed_counts(name, path, _kept))


def _kept(row: Row) -> bool:
    return row["router_type"] in ("S-Base", "Dense") and row["step"] == "249000" and row["routing_frequency"] == "0.5"


def _routed_counts(name: str, path: Path, kept: Callable[[Row], bool]) -> float:
    """How far the counts of the routing table are from its shapes: relative positions, FFNs of two matrices, experts in every other layer."""
    rows = [row for row in _rows(path) if kept(row)]
    width, depth, heads, size = (_column(rows, key) for key in ("d_model", "num_blocks", "num_heads", "kqv_size"))
    dense = depth * (5 * width * heads * size + 8 * width**2)
    wider = np.array([row["router_type"] == "Dense" for row in rows])  # K there is a wider FFN
    experts = np.where(wider, _column(rows, "k"), _column(rows, "num_experts"))
    off = follows(name, _column(rows, "dense_parameter_count"), dense)
    whole = dense + (experts - 1) * depth / 2 * 8 * width**2
    return max(off, follows(name, _column(rows, "total_parameter_count"), whole))


def _fineweb(path: Path) -> Measured:
    name, table, rows = "FineWeb-Edu", read_table(path, ["ffn_width=expert_size"]), _rows(path)
    query, kv = (table.feature("head_dim") * table.feature(heads) for heads in ("n_heads", "n_kv_heads"))
    made = body(table.feature("depth"), table.feature("width"), query, kv, table.feature("expert_size"))
    embeddings = _column(rows, "vocabulary") * table.feature("width")
    off = follows(name, table.numbers["parameters"], made + embeddings)
    return _together(name, _without(table, "parameters", embeddings), "with tied embeddings, 50,257·d", off)


def _miniature() -> Measured:
    name, table = "In miniature", read_table(OWN, where=OWN_ROWS)
    shapes = Table({key: column for key, column in table.numbers.items() if key in SHAPE}, table.lines)
    off = max(
        follows(name, table.numbers[count], shapes.feature(count)) for count in ("parameters", "active_parameters")
    )
    return _together(name, table, "without embeddings", off)


def bian(path: Path) -> Measured:
    """Seven shapes in two sizes; heads that the source leaves out make up the parameters of the size's first shape, 4 to 1 KV head."""
    rows = [{name: value for name, value in row.items() if value} for row in _rows(path)]
    sizes = sorted({row["group"] for row in rows})
    firsts = {size: next(row for row in rows if row["group"] == size) for size in sizes}
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
    group = np.array([sizes.index(row["group"]) for row in rows])
    table = Table(numbers, np.arange(len(rows)), names=np.array([row["name"] for row in rows]))
    return Measured("Bian", table, group, "not published; here of the shapes", None)


def _with_heads(row: Row, first: Row) -> dict[str, object]:
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


def _together(name: str, table: Table, counted: str, off: float | None) -> Measured:
    return Measured(name, table, np.zeros(len(table), dtype=np.int64), counted, off)


def _without(table: Table, count: str, embeddings: FloatArray) -> Table:
    """A table of dense models whose count has its embeddings taken off."""
    numbers = {**table.numbers, count: table.numbers[count] - embeddings}
    return Table(numbers, table.lines, table.notes, table.sources)


def _rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def _column(rows: Sequence[Row], name: str) -> FloatArray:
    return np.array([float(row[name]) for row in rows])
