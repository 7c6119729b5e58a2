"""Which row a key stands in, for millions of keys in little memory."""

import numpy as np

from search_spaces.arrays import BoolArray, IntArray

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
        rows = np.full(len(keys), -1)
        if len(self._keys):
            place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            rows = np.where(self._keys[place] == keys, self._rows[place], -1)
        if self._recent:
            recent = self._recent
            late = np.fromiter((recent.get(key, -1) for key in keys.tolist()), dtype=np.int64, count=len(keys))
            rows = np.where(late >= 0, late, rows)
        return rows

    def add(self, keys: IntArray, at_most: int | None = None) -> BoolArray:
        """Add keys that are new, in order, all or so many; which of them were (the first of equal ones)."""
        new: BoolArray = self.rows(keys) < 0
        if not new.any():
            return new
        first = np.zeros(len(keys), dtype=bool)
        first[np.unique(keys, return_index=True)[1]] = True
        new &= first
        if at_most is not None:
            new[np.flatnonzero(new)[at_most:]] = False
        start = len(self)
        self._recent.update(zip(keys[new].tolist(), range(start, start + int(new.sum())), strict=True))
        if len(self._recent) > _RECENT:
            self._merge()
        return new

    def _merge(self) -> None:
        keys = np.fromiter(self._recent.keys(), dtype=np.int64)
        rows = np.fromiter(self._recent.values(), dtype=np.int64)
        order = np.argsort(keys)
        place = np.searchsorted(self._keys, keys[order])
        self._keys = np.insert(self._keys, place, keys[order])
        self._rows = np.insert(self._rows, place, rows[order])
        self._recent = {}
