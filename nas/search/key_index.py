"""Finds the row of a key, for millions of keys in little memory."""

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
