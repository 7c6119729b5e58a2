"""Distortions that jump, and draws per design: caches, alignment, effects of axis values, an operator without a fast kernel."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import ndtri

from plas_bench.smooth import Part
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, BoolArray, FloatArray, IntArray

COLUMNS = (  # what tells designs apart, of every space
    *("depth", "width", "head_dim", "n_heads", "n_kv_heads", "n_experts", "top_k", "expert_size"),
    *("n_local", "window", "n_kv_shared", "n_linear", "linear_kind", "n_conv"),
)
KINDS_OF_LAYERS = ("window", "linear_kind", "n_conv", "n_kv_shared", "n_local", "n_linear")
FEW = 64  # FFN ratios, above which sizes have effects by classes
CACHES, CACHE_FACTORS, CACHE_RANGE = (1, 4), (1.15, 2.0), (0.15, 0.85)  # range: quantiles of the bytes over a reference
TILES = {"width": (256, 512), "expert_size": (128, 256, 512), "kv_dim": (128, 256), "query_dim": (256, 512)}
MISALIGNED = 0.4  # more time at most, of each that is no multiple of its tile
CLIFF_FACTORS = (2.0, 4.0)
PAIRS = 2  # of axes whose pairs of values have effects


def mixed(numbers: AnyArray) -> AnyArray:
    """SplitMix64 of unsigned numbers, (n,). Source: Steele, Lea and Flood 2014."""
    with np.errstate(over="ignore"):
        z = numbers + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def uniform(seed: int, *columns: AnyArray) -> FloatArray:
    """A number between 0 and 1 of each row of whole columns: the same row and seed give the same number, (n,)."""
    found = np.full(len(columns[0]), seed, dtype=np.uint64)
    for column in columns:
        found = mixed(found ^ np.asarray(column).astype(np.int64).astype(np.uint64))
    return np.asarray(((found >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53)


def per_design(seed: int, architectures: Architectures) -> FloatArray:
    """A number between 0 and 1 of each design, (n,)."""
    return uniform(seed, *(getattr(architectures, name) for name in COLUMNS))


def seed_of(draw: np.random.Generator) -> int:
    """A seed of draws per design."""
    return int(draw.integers(0, 2**63))


@dataclass(frozen=True)
class Axes:
    """The axes of a space: the value that a design has on each, as a whole number.

    by_ratio: FFNs are told apart by their ratio (in 64ths); else by classes of sizes. Multi-head attention is one value of n_kv.
    """

    names: tuple[str, ...]
    by_ratio: bool

    @classmethod
    def of(cls, reference: Architectures) -> "Axes":
        """The axes that vary over a reference."""
        by_ratio = len(np.unique(reference.expert_ffn_ratio)) <= FEW
        every = cls((), by_ratio).values(reference)
        if (reference.query_dim == reference.width).all():  # heads follow from the width
            del every["n_heads"]
        return cls(tuple(name for name, column in every.items() if (column != column[0]).any()), by_ratio)

    def values(self, a: Architectures) -> dict[str, IntArray]:
        """By axis, each (n,)."""
        ffn = np.rint(64 * a.expert_ffn_ratio).astype(np.int64) if self.by_ratio else classes(a.expert_size)
        return {
            "depth": a.depth,
            "width": a.width,
            "head_dim": a.head_dim,
            "n_heads": a.n_heads,
            "kinds": layer_kinds(a),
            "n_experts": classes(a.n_experts),
            "top_k": a.top_k,
            "ffn": ffn,
            "n_kv_heads": np.where(a.n_kv_heads == a.n_heads, 0, a.n_kv_heads),
        }


def layer_kinds(architectures: Architectures) -> IntArray:
    """Which kinds of layers a design has, as one number, (n,): its window, its linear kind, whether there are others."""
    kinds = np.zeros(len(architectures), dtype=np.int64)
    for name in KINDS_OF_LAYERS:
        column = getattr(architectures, name)
        kinds = kinds * 8192 + (column if name in ("window", "linear_kind") else column > 0)
    return kinds


def classes(values: IntArray) -> IntArray:
    """Half octave and largest power of two that divides a value (16 at most) as one number, (n,); values to 16 themselves."""
    octave = np.floor(2.0 * np.log2(values)).astype(np.int64)
    power = np.minimum(np.log2(values & -values).astype(np.int64), 4)
    return np.where(values <= 16, values, 1024 + 8 * octave + power)


def effects(axes: Axes, sd: float, draw: np.random.Generator) -> Part:
    """A normal effect of every value of every axis."""
    seeds = {name: seed_of(draw) for name in axes.names}

    def part(a: Architectures) -> FloatArray:
        values = axes.values(a)
        return np.asarray(np.sum([sd * ndtri(uniform(seed, values[name])) for name, seed in seeds.items()], axis=0))

    return part


def pair_effects(axes: Axes, sd: float, draw: np.random.Generator) -> Part:
    """A normal effect of every pair of values of two drawn pairs of axes."""
    pairs = list(combinations(axes.names, 2))
    seeds = {pairs[place]: seed_of(draw) for place in draw.choice(len(pairs), PAIRS, replace=False).tolist()}

    def part(a: Architectures) -> FloatArray:
        values = axes.values(a)
        found = [sd * ndtri(uniform(seed, values[one], values[two])) for (one, two), seed in seeds.items()]
        return np.asarray(np.sum(found, axis=0))

    return part


def weight_bytes(a: Architectures) -> dict[str, FloatArray]:
    """Bytes at two per weight that are read again and again: of one expert, of the active weights of a layer and of all, each (n,)."""
    expert = 2.0 * 3.0 * a.width * a.expert_size
    layer = 2.0 * a.width * (2.0 * a.query_dim + 2.0 * a.kv_dim) + expert * a.top_k
    return {"expert": expert, "layer": layer, "active": layer * a.depth}


def caches(reference: Architectures, draw: np.random.Generator) -> Part:
    """1 to 3 caches: whatever of the bytes of an expert, a layer or all active weights does not fit takes a factor longer."""
    known, steps = weight_bytes(reference), list[tuple[str, float, float]]()
    for _ in range(draw.integers(*CACHES)):
        of = ("expert", "layer", "active")[draw.integers(3)]
        size = float(np.quantile(known[of], draw.uniform(*CACHE_RANGE)))
        steps.append((of, size, float(np.log(draw.uniform(*CACHE_FACTORS)))))

    def part(a: Architectures) -> FloatArray:
        used = weight_bytes(a)
        return np.asarray(np.sum([np.where(used[of] > size, factor, 0.0) for of, size, factor in steps], axis=0))

    return part


def alignment(draw: np.random.Generator) -> Part:
    """Up to 1.4 times as long for each of width, FFN, KV and query dimensions that is no multiple of its drawn tile."""
    tiles = {name: int(draw.choice(of)) for name, of in TILES.items()}
    factors = {name: float(np.log(1.0 + draw.uniform(0.0, MISALIGNED))) for name in TILES}

    def part(a: Architectures) -> FloatArray:
        return np.asarray(
            np.sum([np.where(getattr(a, name) % tiles[name], factors[name], 0.0) for name in TILES], axis=0)
        )

    return part


def cliff(draw: np.random.Generator) -> Part:
    """One drawn operator has no fast kernel: designs that need it take 2 to 4 times as long."""
    place, factor = int(draw.integers(5)), float(np.log(draw.uniform(*CLIFF_FACTORS)))

    def part(a: Architectures) -> FloatArray:
        slow: tuple[BoolArray, ...] = (
            a.top_k > 1,
            a.n_experts >= 8,
            a.n_kv_heads <= 2,
            a.expert_size < 1024,
            a.n_heads % 8 > 0,
        )
        return np.where(slow[place], factor, 0.0)

    return part


def normal(seed: int, architectures: Architectures) -> FloatArray:
    """One standard normal draw of each design, (n,)."""
    return np.asarray(ndtri(per_design(seed, architectures)))


def student(seed: int, architectures: Architectures) -> FloatArray:
    """One draw of each design from Student's t with two degrees of freedom, (n,)."""
    p = per_design(seed, architectures)
    return np.asarray((2.0 * p - 1.0) / np.sqrt(2.0 * p * (1.0 - p)))
