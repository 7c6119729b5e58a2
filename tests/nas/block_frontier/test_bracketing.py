"""What is said of a frontier that is too large for labels: bounds hold, mixtures are real, the tolerance covers the truth."""

import numpy as np
import pytest

from nas.block_frontier import solving
from nas.block_frontier.bracketing import bracketed
from nas.block_frontier.labels import Exceeded, tree
from nas.block_frontier.lines import lines
from nas.block_frontier.problem import Limit, posed
from nas.block_frontier.solution import exact_frontier
from tests.nas.block_frontier.libraries import NAMES, half_way, random_library


def problem(seed: int, objectives: int = 2):  # type: ignore[no-untyped-def]
    library = random_library(9, 6, seed, costs=3, pairs=seed % 2 * 2)
    limit = Limit("prefill_ms", half_way(library, "prefill_ms", 0.7))
    return posed(library, NAMES[:objectives], [limit], np.ones(len(library), dtype=bool))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_no_mixture_is_better_by_more_than_the_tolerance(seed: int) -> None:
    asked = problem(seed)
    exact, found = exact_frontier(asked, tree(asked)), bracketed(asked)
    room = found.tolerance * np.maximum(np.ptp(found.sums, axis=0), 1.0)
    for best in exact.sums:
        assert (found.sums <= best + room * (1 + 1e-9)).all(axis=1).any()
    assert (found.metric("prefill_ms") <= asked.dimensions[2].value(np.array(asked.limits[2])) + 1e-9).all()
    for number, name in enumerate(asked.names):
        again = [asked.library.total(name, np.array(found.replacements(row))) for row in range(len(found))]
        assert found.metric(name) == pytest.approx(again)
        assert asked.dimensions[number].name == name


def test_no_mixture_lies_below_a_line() -> None:
    asked = problem(5)
    exact = exact_frontier(asked, tree(asked))
    scale = np.ptp(exact.sums, axis=0)
    told = lines(asked, np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]) / scale)
    assert (exact.sums @ told.weights[:, :2].T >= told.bounds * (1 - 1e-9)).all()


@pytest.mark.slow
def test_too_many_labels_are_bounded_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    def exceeded(*_: object) -> None:
        raise Exceeded

    asked, three = problem(0), problem(1, objectives=3)
    whole = exact_frontier(three, tree(three))
    monkeypatch.setattr(solving, "tree", exceeded)
    found = solving.solved(asked)
    assert not found.exact
    assert 0 < found.tolerance < 0.2
    sliced = solving.solved(three)
    assert sliced.tolerance >= 1 / solving.SLICES
    span = (three.most[-1] - three.least[-1])[:3]
    for best in whole.sums:
        assert (sliced.sums <= best + sliced.tolerance * span).all(axis=1).any()
