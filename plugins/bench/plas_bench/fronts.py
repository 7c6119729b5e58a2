"""Exact fronts: solved when first asked for, kept in the user's cache folder, compared with the digest that the problem was frozen with."""

import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nas.errors import PlasError
from nas.exact.solution import solve
from nas.files.tables import write
from nas.problem.dominance import non_dominated
from objectives import outside
from plas_bench.digests import canonical, sha256_of, sha256_of_keys
from search_spaces.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from plas_bench.instance import BenchProblem

FOLDER = "PLAS_BENCH_CACHE"
MOST_BYTES = 50 * outside.MB
TOLERANCE = 1e-8  # relative: what processors and libraries may differ by
KEPT = 100_000  # designs of a space whose front is solved as quickly as it is read


@dataclass(frozen=True, eq=False)
class Front:
    """The feasible non-dominated designs, all ties: genotypes (n, g), keys (n,) in the space's order, values (n, m)."""

    genotypes: IntArray
    keys: IntArray
    values: FloatArray


def cache_folder() -> Path:
    """Where solved fronts are kept: `PLAS_BENCH_CACHE`, else `plas-bench` in the user's cache folder."""
    given = os.environ.get(FOLDER)
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plas-bench"


def exact_front(bench: "BenchProblem") -> Front:
    """The exact front of a problem, from the cache folder where it is there and is the frozen one.

    Raises:
        PlasError: the solver finds another one.
    """
    place = cache_folder() / f"{bench.name}.keys"
    known = None if bench.size <= KEPT else _kept(bench, place)
    if known is not None:
        return known
    found = front_of(bench, solved(bench))
    if reason := difference(bench, found):
        raise PlasError(
            f"{bench.name}: {reason}; score with a release of plas-codesign whose changelog says that it finds it"
        )
    if bench.size > KEPT:
        _keep(place, found.keys)
    return found


def solved(bench: "BenchProblem") -> IntArray:
    """Keys of the exact front, (n,): by the solver, or by pricing every row of a table or design of a distorted space."""
    if not bench.problem.functions:
        return solve(bench.problem).frontier.keys
    keys = np.arange(bench.size)
    values, feasible = bench.true(bench.problem.space.genotypes(keys))
    return keys[feasible][non_dominated(values[feasible])]


def front_of(bench: "BenchProblem", keys: IntArray) -> Front:
    """A front by its keys, values computed anew."""
    genotypes = bench.problem.space.genotypes(keys)
    return Front(genotypes, keys, bench.true(genotypes)[0])


def difference(bench: "BenchProblem", found: Front) -> str:
    """How a front differs from the frozen one, "" where its vectors are the same to seven digits, or its members are, with the same ends."""
    frozen, vectors = bench.definition.front, canonical(found.values)
    digest = sha256_of(vectors)
    if digest == frozen.sha256 or (sha256_of_keys(found.keys) == frozen.keys_sha256 and _same_ends(bench, found)):
        return ""
    if len(vectors) != frozen.vectors:
        return (
            f"expected an exact front of {frozen.vectors:,} different vectors, as it was frozen, got {len(vectors):,}"
        )
    return f"expected the exact front {frozen.sha256[:12]}, as it was frozen, got {digest[:12]}"


def _same_ends(bench: "BenchProblem", found: Front) -> bool:
    ends = np.stack([found.values.min(axis=0), found.values.max(axis=0)])
    return bool(np.allclose(ends, np.stack([bench.ideal, bench.nadir]), rtol=TOLERANCE, atol=0.0))


def _kept(bench: "BenchProblem", place: Path) -> Front | None:
    """The front in the cache folder; None where there is none, or what is there is not the frozen one."""
    try:
        keys = np.frombuffer(unpacked(outside.content(place, MOST_BYTES)), dtype="<i8").astype(np.int64)
        if len(keys) == 0 or keys.min() < 0 or keys.max() >= bench.size:
            return None
        found = front_of(bench, keys)
    except (OSError, zlib.error, ValueError):
        return None
    return None if difference(bench, found) else found


def unpacked(content: bytes) -> bytes:
    """What a compressed file holds, up to `MOST_BYTES`."""
    return zlib.decompressobj().decompress(content, MOST_BYTES)


def _keep(place: Path, keys: IntArray) -> None:
    """Keep a front for later; a folder that cannot be written to is passed over, the next use solves again."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write(place, zlib.compress(keys.astype("<i8").tobytes(), 6))
    except (OSError, PlasError):
        return
