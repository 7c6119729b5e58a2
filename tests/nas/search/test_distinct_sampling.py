"""Drawing what was not seen: distinct, uniform, and down to the last one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.search import archive
from nas.search.archive import KeyIndex, draw_unseen


@given(st.integers(1, 60), st.sets(st.integers(0, 59)), st.integers(0, 80), st.integers(0, 5))
def test_drawn_keys_are_new_distinct_and_noted(size: int, known: set[int], n: int, seed: int) -> None:
    seen = KeyIndex()
    seen.add(np.array(sorted(key for key in known if key < size), dtype=np.int64))
    before = set(range(size)) - {key for key in known if key < size}
    drawn = draw_unseen(size, seen, n, np.random.default_rng(seed)).tolist()
    assert len(drawn) == len(set(drawn)) == min(n, len(before))
    assert set(drawn) <= before
    assert (seen.rows(np.array(drawn, dtype=np.int64)) >= 0).all()


def test_the_same_generator_draws_the_same() -> None:
    first, second = (draw_unseen(10**9, KeyIndex(), 50, np.random.default_rng(3)).tolist() for _ in range(2))
    assert first == second


def test_the_last_of_a_large_space_is_found() -> None:
    seen = KeyIndex()
    seen.add(np.delete(np.arange(200_000), 123_456))
    assert draw_unseen(200_000, seen, 10, np.random.default_rng(0)).tolist() == [123_456]
    assert draw_unseen(200_000, seen, 10, np.random.default_rng(0)).tolist() == []


def test_drawing_is_uniform() -> None:
    generator, counts = np.random.default_rng(0), np.zeros(20)
    for _ in range(4000):
        counts[draw_unseen(20, KeyIndex(), 5, generator)] += 1
    assert counts.sum() == 20_000
    assert ((counts - 1000) ** 2 / 1000).sum() < 43.8, "chi-square with 19 degrees of freedom at 0.001"


def test_where_the_space_cannot_be_listed_fewer_may_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_LISTED", 10)
    seen = KeyIndex()
    seen.add(np.arange(99_999))
    assert set(draw_unseen(100_000, seen, 5, np.random.default_rng(0)).tolist()) <= {99_999}
