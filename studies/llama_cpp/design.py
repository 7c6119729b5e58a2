"""The models of the llama.cpp measurement, drawn before anything is measured: `studies/llama_cpp/models.csv`."""

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from numpy.random import Generator

from nas.files.tables import csv_text
from objectives.counts import total
from search_spaces.architectures import Architectures, one
from search_spaces.arrays import FloatArray

HERE = Path(__file__).resolve().parent
MODELS = HERE / "models.csv"
COLUMNS = ("depth", "width", "head_dim", "n_heads", "n_kv_heads", "n_experts", "top_k", "expert_size", "vocabulary")
SEED, DENSE, SPARSE = 20261122, 16, 12
SMALLEST, LARGEST, NEAR = 30e6, 1e9, 0.06  # bytes of a 16-bit file; share by which a shape may miss its size
DEPTHS, WIDTHS, RATIOS, VOCABULARIES = (
    (4, 6, 8, 12, 16, 20, 24, 28),
    (256, 512, 768, 1024, 1280, 1536),
    (1, 2, 3, 4),
    (8192, 32000),
)
EXPERTS = {"d": ((1, 1),), "m": ((4, 1), (4, 2), (8, 1), (8, 2), (16, 2))}
HEAD, MULTIPLE = 64, 256


def shapes(kind: str) -> Iterator[tuple[int, ...]]:
    """Every shape of the grid, in the order of `COLUMNS`."""
    for depth, width, ratio, vocabulary, (n_experts, top_k) in product(
        DEPTHS, WIDTHS, RATIOS, VOCABULARIES, EXPERTS[kind]
    ):
        heads, size = width // HEAD, ratio * width // top_k
        if size % MULTIPLE == 0:
            for n_kv_heads in sorted({n for n in (1, 2, 4, 8, heads) if heads % n == 0 and n <= heads}):
                yield depth, width, HEAD, heads, n_kv_heads, n_experts, top_k, size, vocabulary


def half_bytes(architectures: Architectures) -> FloatArray:
    """Bytes of the weights in 16 bits, (n,)."""
    return 2.0 * np.asarray(total(architectures), dtype=np.float64)


def drawn() -> str:
    """The list as a candidate file's text; the same for the same versions."""
    generator = np.random.default_rng(SEED)
    rows = [
        (f"{kind}-{i:02}", *shape)
        for kind, n in (("d", DENSE), ("m", SPARSE))
        for i, shape in enumerate(of_kind(kind, n, generator))
    ]
    columns = zip(*rows, strict=True)
    return csv_text(
        {name: np.array(values, dtype=object) for name, values in zip(("id", *COLUMNS), columns, strict=True)}
    )


def of_kind(kind: str, n: int, generator: Generator) -> Iterator[tuple[int, ...]]:
    """A shape of each of n sizes, in even steps of the logarithm."""
    grid = np.array(list(shapes(kind)))
    sizes = half_bytes(Architectures.from_columns({name: grid[:, i] for i, name in enumerate(COLUMNS)}))
    for wanted in np.geomspace(SMALLEST, LARGEST / (1 + NEAR), n):
        yield tuple(grid[generator.choice(np.flatnonzero(np.abs(sizes / wanted - 1) <= NEAR))].tolist())


def architecture(row: dict[str, str]) -> Architectures:
    """The architecture of a row of the list."""
    return one({name: int(row[name]) for name in COLUMNS})


def design() -> None:
    """Write the list if it is not there, and refuse to go on where the one that is differs."""
    if not MODELS.exists():
        MODELS.write_text(drawn(), encoding="utf-8")
    elif MODELS.read_text(encoding="utf-8") != drawn():
        sys.exit(f"{MODELS}: differs from what this version draws; a design is not changed after the first run")
    print(f"{MODELS.name}: {DENSE + SPARSE} models")
