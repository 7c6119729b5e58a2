"""A discrete search space: canonical integer genotypes, one per architecture."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray, frozen
from search_spaces.axes import Axes
from search_spaces.specification import SpaceSpecification

GENES = ("depth", "width", "n_experts", "top_k", "ffn", "n_kv_heads")
DEPTH, WIDTH, EXPERTS, TOP_K, FFN, KV = range(6)


@dataclass(frozen=True, eq=False)
class SearchSpace(Axes):
    """Architectures numbered 0 … size − 1 in the order of their genotypes.

    A genotype holds six genes, each an index into its axis in ascending order. Which top_k are
    valid depends on n_experts alone, which FFN values and KV heads on width alone, so every
    question (decode, key, count, sampling) is arithmetic on small tables.
    """

    @classmethod
    def from_mapping(cls, mapping: dict[str, Any]) -> "SearchSpace":
        """A space from its YAML content.

        Raises:
            pydantic.ValidationError: each fault with its path.
        """
        return cls(SpaceSpecification.model_validate(mapping))

    @property
    def name(self) -> str:
        """The space's name."""
        return self.specification.name

    @cached_property
    def _pairs(self) -> IntArray:
        """Valid (n_experts, top_k) genes in order, (pairs, 2)."""
        return frozen(np.argwhere(self.top_k_gene.valid))

    @cached_property
    def _pair_start(self) -> IntArray:
        counts = self.top_k_gene.counts
        return frozen(np.cumsum(counts) - counts)

    @cached_property
    def counts_per_width(self) -> IntArray:
        """Architectures of one depth per width, exact, (widths,)."""
        return frozen(len(self._pairs) * self.ffn_gene.counts * self.kv_gene.counts)

    @cached_property
    def _width_start(self) -> IntArray:
        return frozen(np.cumsum(self.counts_per_width) - self.counts_per_width)

    @cached_property
    def _per_depth(self) -> int:
        return int(self.counts_per_width.sum())

    @property
    def size(self) -> int:
        """Number of distinct architectures, exact."""
        return self._per_depth * len(self.depths)

    def genotypes(self, keys: IntArray) -> IntArray:
        """Genotypes (n, 6) of keys in [0, size)."""
        depth, rest = np.divmod(keys, self._per_depth)
        width = np.searchsorted(self._width_start, rest, side="right") - 1
        rest = rest - self._width_start[width]
        rest, kv_rank = np.divmod(rest, self.kv_gene.counts[width])
        pair, ffn_rank = np.divmod(rest, self.ffn_gene.counts[width])
        experts, top_k = self._pairs[pair].T
        ffn = self.ffn_gene.nth[width, ffn_rank]
        return np.stack([depth, width, experts, top_k, ffn, self.kv_gene.nth[width, kv_rank]], axis=1)

    def keys(self, genotypes: IntArray) -> IntArray:
        """Position of each canonical genotype in the space's order, (n,), in [0, size)."""
        depth, width, experts, top_k, ffn, kv = genotypes.T.astype(np.int64, copy=False)
        pair = self._pair_start[experts] + self.top_k_gene.rank[experts, top_k]
        within = pair * self.ffn_gene.counts[width] + self.ffn_gene.rank[width, ffn]
        within = within * self.kv_gene.counts[width] + self.kv_gene.rank[width, kv]
        keys: IntArray = depth * self._per_depth + self._width_start[width] + within
        return keys

    def is_canonical(self, genotypes: IntArray) -> BoolArray:
        """Whether each row, (n, 6), is some architecture's genotype."""
        inside = ((genotypes >= 0) & (genotypes < self.gene_sizes)).all(axis=1)
        valid: BoolArray = inside & (self.repair(genotypes) == genotypes).all(axis=1)
        return valid

    def repair(self, genotypes: IntArray) -> IntArray:
        """Canonical genotypes, (n, 6): an invalid value becomes the next smaller valid one.

        Only top_k, FFN and n_kv_heads depend on other genes. A value without a smaller valid one
        becomes the smallest valid; n_heads where it equals a listed value becomes that value.
        Values outside an axis move to its nearest end.
        """
        repaired = np.clip(np.asarray(genotypes, dtype=np.int64), 0, self.gene_sizes - 1)
        width = repaired[:, WIDTH]
        repaired[:, TOP_K] = self.top_k_gene.repaired[repaired[:, EXPERTS], repaired[:, TOP_K]]
        repaired[:, FFN] = self.ffn_gene.repaired[width, repaired[:, FFN]]
        repaired[:, KV] = self.repaired_kv[width, repaired[:, KV]]
        return repaired

    def architectures(self, genotypes: IntArray) -> Architectures:
        """The architectures of canonical genotypes (n, 6)."""
        depth, width, experts, top_k, ffn, kv = genotypes.T
        return Architectures.from_shape(
            {
                "depth": self.depths[depth],
                "width": self.widths[width],
                "head_dim": np.full(len(genotypes), self.specification.head_dim),
                "n_heads": self.n_heads[width],
                "n_kv_heads": self.kv_values[width, kv],
                "n_experts": self.experts[experts],
                "top_k": self.top_ks[top_k],
                "expert_size": self.expert_sizes[width, ffn],
            }
        )

    def enumerate(self, chunk: int = 65_536) -> Iterator[IntArray]:
        """All genotypes in order, in blocks of at most `chunk` rows."""
        for start in range(0, self.size, chunk):
            yield self.genotypes(np.arange(start, min(start + chunk, self.size)))

    def sample(self, n: int, generator: np.random.Generator) -> IntArray:
        """min(n, size) distinct genotypes, uniform without replacement, in random order."""
        return self.genotypes(generator.choice(self.size, size=min(n, self.size), replace=False))

    def spread(self, points: FloatArray) -> IntArray:
        """Genotypes (n, 6) of points (n, 6) in [0, 1): equal shares of each gene's valid values, nothing to repair."""
        depth, width, experts = (
            (points[:, gene] * self.gene_sizes[gene]).astype(np.int64) for gene in (DEPTH, WIDTH, EXPERTS)
        )
        dependent = []
        for gene, table, owner in (
            (TOP_K, self.top_k_gene, experts),
            (FFN, self.ffn_gene, width),
            (KV, self.kv_gene, width),
        ):
            rank = (points[:, gene] * table.counts[owner]).astype(np.int64)
            dependent.append(table.nth[owner, rank])
        return np.stack([depth, width, experts, *dependent], axis=1)

    def neighbours(self, genotypes: IntArray, share: FloatArray | float = 0.0) -> IntArray:
        """Distinct architectures one step along one axis from any of the given ones, in key order.

        A step goes over `share` (of each row or of all) of a gene's valid values, rounded down but
        to one at least, and ends at the last of them; genes that depend on it are repaired. The
        given architectures themselves are left out.
        """
        steps = [self._step(genotypes, gene, sign, share) for gene in range(len(GENES)) for sign in (-1, 1)]
        keys = np.unique(np.concatenate([self.keys(step) for step in steps]))
        return self.genotypes(np.setdiff1d(keys, self.keys(genotypes), assume_unique=False))

    def _step(self, genotypes: IntArray, gene: int, sign: int, share: FloatArray | float) -> IntArray:
        moved = genotypes.copy()
        if gene in (TOP_K, FFN, KV):
            table = {TOP_K: self.top_k_gene, FFN: self.ffn_gene, KV: self.kv_gene}[gene]
            owner = genotypes[:, EXPERTS if gene == TOP_K else WIDTH]
            counts = table.counts[owner]
            rank = np.clip(table.rank[owner, genotypes[:, gene]] + sign * _stride(share, counts), 0, counts - 1)
            moved[:, gene] = table.nth[owner, rank]
        else:
            size = self.gene_sizes[gene]
            moved[:, gene] = np.clip(genotypes[:, gene] + sign * _stride(share, size), 0, size - 1)
        return self.repair(moved)

    def find(self, architectures: Architectures) -> IntArray:
        """Key of each architecture, (n,); −1 where it is not in the space."""
        genes = [
            _position(self.depths, architectures.depth),
            width := _position(self.widths, architectures.width),
            _position(self.experts, architectures.n_experts),
            _position(self.top_ks, architectures.top_k),
        ]
        safe = np.maximum(width, 0)
        genes.append(_position_in_rows(self.expert_sizes[safe], self.ffn_gene.valid[safe], architectures.expert_size))
        genes.append(_position_in_rows(self.kv_values[safe], self.kv_gene.valid[safe], architectures.n_kv_heads))
        genotypes = np.stack(genes, axis=1)
        found = (genotypes >= 0).all(axis=1) & (architectures.head_dim == self.specification.head_dim)
        found &= architectures.n_heads * architectures.head_dim == architectures.width
        for name in set(architectures.further_columns()) - {"vocabulary", "tied"}:
            found &= np.asarray(getattr(architectures, name) == getattr(_DEFAULT_ROW, name)[0])
        found[found] = self.is_canonical(genotypes[found])
        keys = np.full(len(genotypes), -1)
        keys[found] = self.keys(genotypes[found])
        return keys

    @property
    def dense(self) -> "SearchSpace | None":
        """The space of its dense architectures alone; None where it has none."""
        if self.experts[0] != 1 or self.top_ks[0] != 1:
            return None
        content = self.mapping()
        content["axes"] |= {"n_experts": [1], "top_k": [1]}
        return SearchSpace.from_mapping(content)

    def mapping(self) -> dict[str, Any]:
        """The space as YAML content, everything resolved."""
        return self.specification.model_dump(mode="json", by_alias=True, exclude_none=True)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of what the space contains: axes, conditions and head size, not its name."""
        content = {k: v for k, v in self.mapping().items() if k not in ("name", "description")}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _stride(share: FloatArray | float, values: IntArray) -> IntArray:
    return np.maximum(1, np.floor(share * values)).astype(np.int64)


def _position(axis: IntArray, values: IntArray) -> IntArray:
    place = np.minimum(np.searchsorted(axis, values), len(axis) - 1)
    return np.where(axis[place] == values, place, -1)


def _position_in_rows(rows: IntArray, valid: BoolArray, values: IntArray) -> IntArray:
    hit = (rows == values[:, None]) & valid
    return np.where(hit.any(axis=1), hit.argmax(axis=1), -1)


_DEFAULT_ROW = Architectures.from_shape(
    {
        name: np.ones(1, dtype=np.int64)
        for name in ("depth", "width", "head_dim", "n_heads", "n_kv_heads", "n_experts", "top_k", "expert_size")
    }
)
