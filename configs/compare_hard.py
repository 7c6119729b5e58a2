"""Objectives on the paper's space that are hard for a search in one known way each, for `configs/compare_hard.yaml`.

A design's steps are its genes: places along the axes of the paper's space. `smooth` is what the others distort: it falls with every
gene while time grows, so that a frontier runs through the whole space. Random numbers are drawn once, from a fixed seed.
"""

from functools import cache

import numpy as np

from nas.files import yaml_source
from objectives.plugins import documents
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray
from search_spaces.space import SearchSpace

WEIGHTS = np.array([0.30, 0.30, 0.10, 0.05, 0.15, 0.10])  # of the genes: depth, width, experts, top-k, FFN, KV heads
LEVELS = 5  # of a plateau
SEED = 2026


@cache
def paper() -> SearchSpace:
    """The paper's space."""
    return SearchSpace.from_mapping(yaml_source.read(documents("search_spaces.spaces")["paper"])[0])


def steps(architectures: Architectures) -> IntArray:
    """Genes of architectures of the paper's space, (n, 6)."""
    return paper().genotypes(paper().find(architectures))


def shares(architectures: Architectures) -> FloatArray:
    """The same as shares of each axis, from 0 to 1, (n, 6)."""
    return steps(architectures) / (paper().gene_sizes - 1)


def smooth(architectures: Architectures) -> FloatArray:
    """2 − Σ w √share: no obstacle at all, (n,)."""
    found: FloatArray = 2.0 - np.sqrt(shares(architectures)) @ WEIGHTS
    return found


def parity(architectures: Architectures) -> FloatArray:
    """As a budget of 1: met where the sum of the genes is even, so that hardly any single step leads from one such design to another, (n,)."""
    found: FloatArray = 0.5 + steps(architectures).sum(axis=1) % 2
    return found


def tiles(architectures: Architectures) -> FloatArray:
    """As a budget of 1: the chequerboard of tiles of two steps by two, (n,)."""
    found: FloatArray = 0.5 + (steps(architectures) // 2).sum(axis=1) % 2
    return found


def cliffs(architectures: Architectures) -> FloatArray:
    """`smooth`, but 0.5 more where width and FFN stand off their grids of three and two steps: every step falls off, (n,)."""
    genes = steps(architectures)
    aligned = (genes[:, 1] % 3 == 0) & (genes[:, 4] % 2 == 0)
    return smooth(architectures) + np.where(aligned, 0.0, 0.5)


def ridge(architectures: Architectures) -> FloatArray:
    """`smooth`, and twice how far depth and width, FFN and KV heads are apart: along the ridge two genes change at once, (n,)."""
    x = shares(architectures)
    return smooth(architectures) + 2.0 * (np.abs(x[:, 0] - x[:, 1]) + np.abs(x[:, 4] - x[:, 5]))


def trap(architectures: Architectures) -> FloatArray:
    """A deceptive slope per gene: best at its end, but better and better away from it, (n,). Source: Deb and Goldberg 1993."""
    x = shares(architectures)
    found: FloatArray = 1.0 + np.where(x == 1.0, 0.0, 0.3 + 0.7 * x) @ WEIGHTS
    return found


def rugged(architectures: Architectures) -> FloatArray:
    """`smooth`, and a random number for every three neighbouring genes, (n,). Source: Kauffman 1993, NK landscapes, K = 2."""
    genes, generator = steps(architectures), np.random.default_rng(SEED)
    found = smooth(architectures)
    for first in range(genes.shape[1] - 2):
        table = generator.uniform(0.0, 0.3, size=paper().gene_sizes[first : first + 3])
        found = found + table[tuple(genes[:, first : first + 3].T)]
    return found


def plateau(architectures: Architectures) -> FloatArray:
    """`smooth` in five levels: most steps change nothing, (n,)."""
    return np.floor(LEVELS * smooth(architectures)) / LEVELS


def levels(architectures: Architectures) -> FloatArray:
    """Weights of a layer times layers, as a power of two: a cost in levels, (n,)."""
    a = architectures
    weights = a.depth * a.width * (2.0 * a.query_dim + 2.0 * a.kv_dim + 3.0 * a.n_experts * a.expert_size)
    found: FloatArray = 2.0 ** np.floor(np.log2(weights))
    return found


def noise(architectures: Architectures) -> FloatArray:
    """`smooth` times 1 + 0.1 z with a normal z of each design's own, the same at every call, (n,)."""
    z = np.random.default_rng(SEED).standard_normal(paper().size)
    return smooth(architectures) * (1.0 + 0.1 * z[paper().find(architectures)])


levels.LOG_SCALE = True  # type: ignore[attr-defined]
