"""Gaps of a frontier: edges of its minimum spanning tree, found without the tree where it is a chain."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nas.problem.evaluations import non_dominated
from nas.strategies.adaptive_lhs import edges


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 60))
def test_edges_of_a_chain_are_those_of_the_tree(seed: int, n: int) -> None:
    points = np.random.default_rng(seed).random((n, 2))
    front = points[non_dominated(points)]
    pairs, lengths = edges(front, chain=True)
    others, expected = edges(front, chain=False)
    assert {frozenset(pair) for pair in pairs.tolist()} == {frozenset(pair) for pair in others.tolist()}
    np.testing.assert_allclose(np.sort(lengths), np.sort(expected), atol=1e-11)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 40), m=st.integers(1, 4))
def test_edges_join_all_points_whatever_they_are(seed: int, n: int, m: int) -> None:
    points = np.random.default_rng(seed).random((n, m))
    pairs, lengths = edges(points, chain=False)
    assert len(pairs) == len(lengths) == n - 1
    joined = {0}
    for _ in range(n):
        joined |= {place for pair in pairs.tolist() if joined & set(pair) for place in pair}
    assert joined == set(range(n))
    np.testing.assert_allclose(lengths, np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1), atol=1e-11)
