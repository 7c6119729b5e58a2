"""Points that strategies start from."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import qmc

from nas.strategies._front import hypercube


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 60), axes=st.integers(1, 9))
def test_a_latin_hypercube_is_scipys_and_leaves_the_generator_as_that_does(seed: int, n: int, axes: int) -> None:
    ours, scipys = np.random.default_rng(seed), np.random.default_rng(seed)
    for _ in range(2):
        np.testing.assert_array_equal(
            hypercube(n, axes, ours), qmc.LatinHypercube(d=axes, rng=scipys).random(n), strict=True
        )
    assert ours.random() == scipys.random()
