"""Exact fronts: kept in the user's cache folder, compared with the digest that the problem was frozen with."""

import os
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nas.errors import PlasError
from nas.files.tables import write
from objectives import outside
from plas_bench.definition import FrozenFront
from plas_bench.digests import canonical, sha256_of, sha256_of_keys
from search_spaces.arrays import FloatArray, IntArray

FOLDER = "PLAS_BENCH_CACHE"
MOST_BYTES = 50 * outside.MB
TOLERANCE = 1e-8  # relative: what processors and libraries may differ by


@dataclass(frozen=True, eq=False)
class Front:
    """The feasible non-dominated designs, all ties: genotypes (n, g), keys (n,) in the space's order, values (n, m)."""

    genotypes: IntArray
    keys: IntArray
    values: FloatArray


def place_of(name: str) -> Path:
    """Where the solved front of a problem is kept: in `PLAS_BENCH_CACHE`, else in `plas-bench` of the user's cache folder."""
    given = os.environ.get(FOLDER)
    folder = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plas-bench"
    return folder / f"{name}.keys"


def difference(frozen: FrozenFront, found: Front) -> str:
    """How a front differs from the frozen one, "" where its vectors are the same to seven digits, or its members are, with the same ends."""
    vectors = canonical(found.values)
    digest = sha256_of(vectors)
    if digest == frozen.sha256 or (sha256_of_keys(found.keys) == frozen.keys_sha256 and _same_ends(frozen, found)):
        return ""
    if len(vectors) != frozen.vectors:
        return (
            f"expected an exact front of {frozen.vectors:,} different vectors, as it was frozen, got {len(vectors):,}"
        )
    return f"expected the exact front {frozen.sha256[:12]}, as it was frozen, got {digest[:12]}"


def _same_ends(frozen: FrozenFront, found: Front) -> bool:
    ends = np.stack([found.values.min(axis=0), found.values.max(axis=0)])
    return bool(np.allclose(ends, np.array([frozen.ideal, frozen.nadir]), rtol=TOLERANCE, atol=0.0))


def kept_keys(name: str, size: int) -> IntArray | None:
    """Keys of a front in the cache folder, (n,), of a space of `size` designs; None where there are none, or the file is damaged."""
    try:
        keys = np.frombuffer(unpacked(outside.content(place_of(name), MOST_BYTES)), dtype="<i8").astype(np.int64)
    except (OSError, zlib.error, ValueError):
        return None
    return keys if len(keys) and keys.min() >= 0 and keys.max() < size else None


def unpacked(content: bytes) -> bytes:
    """What a compressed file holds, up to `MOST_BYTES`."""
    return zlib.decompressobj().decompress(content, MOST_BYTES)


def keep(name: str, keys: IntArray) -> None:
    """Keep a front for later; a folder that cannot be written to is passed over, the next use solves again."""
    place = place_of(name)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write(place, zlib.compress(keys.astype("<i8").tobytes(), 6))
    except (OSError, PlasError):
        return
