"""The same optimum as HiGHS finds, by an integer program for every budget (scipy.optimize.milp)."""

import numpy as np
import pytest
from block_libraries import NAMES, half_way, random_library
from plas_blocks.answers import best, within
from plas_blocks.library import Library
from plas_blocks.problem import Limit, posed
from plas_blocks.solving import solved
from scipy.optimize import Bounds, LinearConstraint, milp

from nas.errors import InfeasibleError


def by_program(library: Library, limits: list[Limit]) -> float | None:
    """The least score within the limits; None where nothing is."""
    n, layers = len(library), np.arange(library.layers)[:, None]
    covers = (library.first <= layers) & (layers < library.first + library.length)
    costs = np.stack([library.metrics[limit.metric] for limit in limits])
    most = np.array([limit.value for limit in limits])
    rows = [LinearConstraint(covers.astype(float), 1, 1), LinearConstraint(costs, -np.inf, most)]
    options = {"mip_rel_gap": 0.0}
    found = milp(
        library.metrics["score"], constraints=rows, integrality=np.ones(n), bounds=Bounds(0, 1), options=options
    )
    return None if found.x is None else float(library.metrics["score"][np.flatnonzero(found.x > 0.5)].sum())


def compared(seed: int) -> None:
    generator = np.random.default_rng(seed)
    layers, blocks = (int(x) for x in generator.integers((3, 3), (13, 9)))
    library = random_library(layers, blocks, seed, costs=3, pairs=seed % 2 * 2)
    share = generator.uniform(0.3, 1.2, 3)
    limits = [Limit(name, half_way(library, name, s)) for name, s in zip(NAMES[1:], share, strict=False)]
    everything = np.ones(len(library), dtype=bool)
    for count in (2, 3):
        wanted = by_program(library, limits[:count])
        try:
            found = solved(posed(library, NAMES[:1], limits[:count], everything))
        except InfeasibleError:
            assert wanted is None, seed
            continue
        assert found.exact
        assert wanted == pytest.approx(float(found.metric("score")[0]), rel=1e-9, abs=1e-9), seed
    frontier = solved(posed(library, NAMES[:2], [], everything))
    row = best(frontier, within(frontier, limits[0]))
    assert row is not None
    assert by_program(library, limits[:1]) == pytest.approx(float(frontier.metric("score")[row]), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_a_few_libraries(seed: int) -> None:
    compared(seed)


@pytest.mark.parametrize(
    "seeds",
    [pytest.param(range(4, 54), marks=pytest.mark.slow), pytest.param(range(54, 204), marks=pytest.mark.extended)],
    ids=["50", "150 more"],
)
def test_many_libraries(seeds: range) -> None:
    for seed in seeds:
        compared(seed)
