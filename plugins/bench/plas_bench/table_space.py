"""The rows of a table as a search space: what is proposed elsewhere is repaired to the nearest of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray
from search_spaces.space import SearchSpace


class TableSpace:
    """Distinct architectures in the order of their genotypes, with what a strategy asks of a `SearchSpace`.

    A gene is a column that varies, its values ascending. The nearest row to a genotype is that of the least Euclidean distance
    in logarithms, each column's from 0 to 1; of equally near ones the first.
    """

    free_heads, own_heads, n_settings, dense = False, False, 1, None
    headed = SearchSpace.headed
    settings: Mapping[str, IntArray] = {}
    further: tuple[str, ...] = ()

    def __init__(self, name: str, architectures: Architectures, genes: tuple[str, ...]) -> None:
        columns = [np.unique(getattr(architectures, gene), return_inverse=True) for gene in genes]
        genotypes = np.stack([place for _, place in columns], axis=1)
        order = np.lexsort(genotypes.T[::-1])
        self.name, self.genes = name, genes
        self.values = [values for values, _ in columns]
        self.rows, self.every = genotypes[order], architectures[order]
        self.gene_sizes = np.array([len(values) for values in self.values])
        self.size = len(self.rows)
        self.scaled = [np.log(values) / max(np.ptp(np.log(values)), 1e-9) for values in self.values]
        assert len(np.unique(self.rows, axis=0)) == self.size, "expected distinct architectures"

    def mapping(self) -> dict[str, Any]:
        """Its name, and the values of each gene."""
        axes = {gene: values.tolist() for gene, values in zip(self.genes, self.values, strict=True)}
        return {"name": self.name, "axes": axes}

    def genotypes(self, keys: IntArray) -> IntArray:
        """Genotypes of rows, (n, g)."""
        return self.rows[keys]

    def keys(self, genotypes: IntArray) -> IntArray:
        """The row of each genotype, or the nearest, (n,)."""
        inside = np.clip(np.asarray(genotypes, dtype=np.int64), 0, self.gene_sizes - 1)
        apart = ((self._points(inside)[:, None] - self._points(self.rows)) ** 2).sum(axis=2)
        found: IntArray = apart.argmin(axis=1)
        return found

    def _points(self, genotypes: IntArray) -> FloatArray:
        return np.stack([scaled[genotypes[:, gene]] for gene, scaled in enumerate(self.scaled)], axis=1)

    def canonical(self, genotypes: IntArray) -> tuple[IntArray, IntArray]:
        """The nearest row to each genotype of any integers, (n, g), and its number, (n,)."""
        keys = self.keys(genotypes)
        return self.rows[keys], keys

    def repair(self, genotypes: IntArray) -> IntArray:
        """The nearest rows, (n, g)."""
        return self.rows[self.keys(genotypes)]

    def is_canonical(self, genotypes: IntArray) -> BoolArray:
        """Whether each genotype is a row's, (n,)."""
        same: BoolArray = (self.repair(genotypes) == genotypes).all(axis=1)
        return same

    def architectures(self, genotypes: IntArray) -> Architectures:
        """The architectures of rows."""
        return self.every[self.keys(genotypes)]

    def find(self, architectures: Architectures) -> IntArray:
        """The row of each architecture, −1 where there is none, (n,)."""
        places = [np.searchsorted(v, getattr(architectures, g)) for v, g in zip(self.values, self.genes, strict=True)]
        genotypes = np.stack(places, axis=1)
        keys = self.keys(genotypes)
        same = np.all([getattr(self.every[keys], g) == getattr(architectures, g) for g in self.genes], axis=0)
        return np.where(same, keys, -1)

    def sample(self, n: int, generator: np.random.Generator) -> IntArray:
        """Distinct rows, uniform."""
        return self.rows[generator.choice(self.size, min(n, self.size), replace=False)]

    def spread(self, points: FloatArray) -> IntArray:
        """The rows nearest to points (n, g) in [0, 1)."""
        return self.repair((points * self.gene_sizes).astype(np.int64))

    def neighbours(self, genotypes: IntArray, share: Any = 0.0) -> IntArray:
        """Distinct rows one step along one gene from any of the given ones, repaired; without the given ones."""
        found = [np.zeros(0, dtype=np.int64)]
        for gene in range(len(self.genes)):
            for sign in (-1, 1):
                moved = genotypes.copy()
                moved[:, gene] += sign * np.maximum(1, np.floor(share * self.gene_sizes[gene])).astype(np.int64)
                found.append(self.keys(moved))
        return self.rows[np.setdiff1d(np.concatenate(found), self.keys(genotypes))]
