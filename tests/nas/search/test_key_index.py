"""The index of keys against a plain dictionary."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nas.search.archive import KeyIndex

KEYS = st.lists(st.lists(st.integers(0, 30) | st.integers(0, 2**62), max_size=12), max_size=8)


def as_array(keys: list[int]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Keys as int64."""
    return np.array(keys, dtype=np.int64)


def check(index: KeyIndex, model: dict[int, int], probe: list[int]) -> None:
    """The index says what the dictionary says."""
    assert len(index) == len(model)
    assert index.rows(as_array(probe)).tolist() == [model.get(key, -1) for key in probe]
    unknown = index.unknown(as_array([*probe, *probe[::-1]]))
    assert unknown.tolist() == [i for i, key in enumerate(probe) if key not in model and key not in probe[:i]]


@given(KEYS)
def test_rows_are_numbered_in_the_order_of_adding(batches: list[list[int]]) -> None:
    index, model = KeyIndex(), dict[int, int]()
    for batch in batches:
        expected = []
        for key in batch:
            expected.append(key not in model)
            model.setdefault(key, len(model))
        assert index.add(as_array(batch)).tolist() == expected
        check(index, model, [*batch, *range(31), -1])


def test_many_keys_in_batches_of_every_size() -> None:
    generator, index, model = np.random.default_rng(1), KeyIndex(), dict[int, int]()
    for size in (1, 8191, 1, 1, 8193, 3, 20_000, 0, 5000, 5000):
        batch = generator.integers(0, 60_000, size=size)
        expected = []
        for key in batch.tolist():
            expected.append(key not in model)
            model.setdefault(key, len(model))
        assert index.add(batch).tolist() == expected
        check(index, model, generator.integers(0, 60_000, size=500).tolist())
    assert index.rows(np.arange(60_000)).tolist() == [model.get(key, -1) for key in range(60_000)]


def test_an_empty_index_knows_nothing() -> None:
    assert KeyIndex().rows(as_array([0, 5])).tolist() == [-1, -1]
    assert KeyIndex().rows(as_array([])).tolist() == []
