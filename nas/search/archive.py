"""Everything evaluated so far, found again by key, and the feasible frontier of it as it grows."""

from collections.abc import Iterable

import numpy as np

from nas.problem.evaluations import Evaluations, frontier_rows
from nas.problem.problem import Problem
from search_spaces.arrays import AnyArray, BoolArray, IntArray


class Archive:
    """Everything evaluated so far, as growing columns with an index by key; genes in as few bytes as they need."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.index = problem, KeyIndex()
        genes = np.int16 if problem.space.gene_sizes.max() < 2**15 else np.int32
        self._genotypes: AnyArray = np.zeros((len(problem.space.gene_sizes), 1024), dtype=genes)
        self._keys: AnyArray = np.zeros(1024, dtype=np.int64)
        self._metrics: AnyArray = np.zeros((len(problem.metric_names), 1024))
        self._reasons: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.index)

    def add(self, evaluations: Evaluations) -> None:
        """Append rows whose keys are new."""
        start, end = len(self), len(self) + len(evaluations)
        if end > len(self._keys):
            size = max(end, 2 * len(self._keys))
            self._genotypes, self._keys, self._metrics = (
                longer(columns, start, size) for columns in (self._genotypes, self._keys, self._metrics)
            )
        self._genotypes[:, start:end], self._keys[start:end] = evaluations.genotypes.T, evaluations.keys
        for row, name in enumerate(self.problem.metric_names):
            self._metrics[row, start:end] = evaluations.metrics[name]
        self._reasons.update((start + i, reason) for i, reason in enumerate(evaluations.reasons or ()) if reason)
        self.index.add(evaluations.keys)

    def only_reason(self, last: int) -> str:
        """The one reason for which each of so many last rows failed; "" where one was evaluated, reasons differ, or earlier ones failed."""
        return one_of(self._reasons.values()) if len(self._reasons) == last else ""

    @property
    def latest(self) -> IntArray:
        """The genotype that was added last, (g,)."""
        return self._genotypes[:, len(self) - 1].astype(np.int64)

    def rows(self, rows: IntArray | slice) -> Evaluations:
        """Chosen rows as evaluations; a slice shares the archive's memory and its narrow genes."""
        columns = self._metrics[:, rows] if isinstance(rows, slice) else self._metrics.take(rows, axis=1)
        metrics = dict(zip(self.problem.metric_names, columns, strict=True))
        chosen = range(*rows.indices(len(self))) if isinstance(rows, slice) else rows.tolist()
        reasons = tuple(self._reasons.get(row, "") for row in chosen) if self._reasons else None
        names = tuple(objective.name for objective in self.problem.objectives)
        genotypes = self._genotypes[:, rows].T
        if not isinstance(rows, slice):
            genotypes = np.ascontiguousarray(genotypes, dtype=np.int64)
        return Evaluations(genotypes, self._keys[rows], metrics, reasons, names, self.problem.budgets)

    def all(self) -> Evaluations:
        """Every row, in order of evaluation."""
        return self.rows(slice(0, len(self)))


def one_of(reasons: Iterable[str]) -> str:
    """The reason that all of them are; "" where they differ or there is none."""
    different = set(reasons)
    return different.pop() if len(different) == 1 else ""


def longer(columns: AnyArray, used: int, size: int) -> AnyArray:
    """The same columns with room for `size` rows; memory is taken when rows are written."""
    grown = np.zeros((*columns.shape[:-1], size), dtype=columns.dtype)
    grown[..., :used] = columns[..., :used]
    return grown


class RunningFrontier:
    """The feasible frontier of an archive that grows, and how many evaluations it took to change last."""

    def __init__(self) -> None:
        self.rows: IntArray = np.zeros(0, dtype=np.int64)
        self.covered = self.changed = 0

    def update(self, archive: Archive) -> int:
        """Take in what is new, a block at a time; returns the number of evaluations at the last change."""
        while self.covered < len(archive):
            end = min(self.covered + 100, len(archive))
            candidates = np.concatenate([self.rows, np.arange(self.covered, end)])
            kept = np.sort(candidates[frontier_rows(archive.rows(candidates))])
            if len(kept) and kept[-1] >= self.covered:
                self.changed = int(kept[-1]) + 1
            self.rows, self.covered = kept, end
        return self.changed


_RECENT = 8192


class KeyIndex:
    """Keys numbered in the order they are added: a sorted array plus a small dict of the latest."""

    def __init__(self) -> None:
        self._keys = np.zeros(0, dtype=np.int64)
        self._rows = np.zeros(0, dtype=np.int64)
        self._recent: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._keys) + len(self._recent)

    def rows(self, keys: IntArray) -> IntArray:
        """Row of each key, −1 where it was never added, (n,)."""
        recent = self._recent
        late = np.fromiter((recent.get(key, -1) for key in keys.tolist()), dtype=np.int64, count=len(keys))
        if not len(self._keys):
            return late
        rows = self._sorted_rows(keys)
        return np.where(late >= 0, late, rows) if recent else rows

    def _sorted_rows(self, keys: IntArray) -> IntArray:
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        found: IntArray = np.where(self._keys[place] == keys, self._rows[place], -1)
        return found

    def _merged_before(self, keys: IntArray) -> list[bool]:
        """Which keys are in the sorted array."""
        return (self._sorted_rows(keys) >= 0).tolist() if len(self._keys) else [False] * len(keys)

    def unknown(self, keys: IntArray) -> IntArray:
        """Places of keys that were never added, of equal ones the first, in order."""
        known = self._merged_before(keys)
        first: dict[int, int] = {}
        for place, key in enumerate(keys.tolist()):
            if not known[place] and key not in self._recent:
                first.setdefault(key, place)
        return np.fromiter(first.values(), dtype=np.int64, count=len(first))

    def add(self, keys: IntArray, at_most: int | None = None) -> BoolArray:
        """Add keys that are new, in order, all or so many; which of them were (the first of equal ones)."""
        known = self._merged_before(keys)
        new, recent, count = [False] * len(keys), self._recent, len(self)
        last = count + (len(keys) if at_most is None else at_most)
        for place, key in enumerate(keys.tolist()):  # most batches are small: a loop is faster than numpy's calls
            if count == last:
                break
            if not known[place] and key not in recent:
                recent[key], new[place] = count, True
                count += 1
        if len(self._recent) > _RECENT:
            self._merge()
        return np.array(new, dtype=bool)

    def _merge(self) -> None:
        keys = np.fromiter(self._recent.keys(), dtype=np.int64)
        rows = np.fromiter(self._recent.values(), dtype=np.int64)
        order = np.argsort(keys)
        place = np.searchsorted(self._keys, keys[order])
        self._keys = np.insert(self._keys, place, keys[order])
        self._rows = np.insert(self._rows, place, rows[order])
        self._recent = {}


_ROUNDS = 12
_LISTED = 50_000_000


def draw_unseen(size: int, seen: KeyIndex, n: int, generator: np.random.Generator) -> IntArray:
    """Up to n distinct keys of [0, size) outside `seen`, uniform; they are added to `seen`.

    By rejection first; when most keys are seen, from the list of those that are left.
    """
    fresh = np.zeros(0, dtype=np.int64)
    wanted = min(n, size - len(seen))
    for _ in range(_ROUNDS):
        if len(fresh) == wanted:
            return fresh
        drawn = generator.integers(0, size, size=wanted - len(fresh))
        fresh = np.concatenate([fresh, drawn[seen.add(drawn)]])
    if len(fresh) < wanted and size <= _LISTED:
        left = np.flatnonzero(seen.rows(np.arange(size)) < 0)
        drawn = generator.choice(left, size=wanted - len(fresh), replace=False)
        seen.add(drawn)
        fresh = np.concatenate([fresh, drawn])
    return fresh
