"""What is said of a frontier that is too large for labels: bounds hold, mixtures are real, the tolerance covers the truth."""

from dataclasses import replace

import numpy as np
import pytest
from block_libraries import NAMES, half_way, random_library
from plas_blocks import bracketing, solving
from plas_blocks.bracketing import bracketed
from plas_blocks.gap import sieve
from plas_blocks.labels import Exceeded, Pruner, Tree, tree
from plas_blocks.linear_bounds import near
from plas_blocks.lines import lines
from plas_blocks.problem import Limit, Problem, posed
from plas_blocks.solution import exact_frontier, united
from plas_blocks.study import rounded_up

from search_spaces.arrays import FloatArray, IntArray


def problem(seed: int, objectives: int = 2):  # type: ignore[no-untyped-def]
    library = random_library(9, 6, seed, costs=3, pairs=seed % 2 * 2)
    limit = Limit("prefill_ms", half_way(library, "prefill_ms", 0.7))
    return posed(library, NAMES[:objectives], [limit], np.ones(len(library), dtype=bool))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_no_mixture_is_better_by_more_than_the_tolerance(seed: int) -> None:
    asked = problem(seed)
    exact, found = exact_frontier(asked, tree(asked)), bracketed(asked)
    assert found.tolerance == pytest.approx((found.room / np.ptp(found.sums, axis=0)).max())
    for best in exact.sums:
        assert (found.sums <= best + found.room * (1 + 1e-9)).all(axis=1).any()
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


def test_what_lies_beyond_an_end_is_not_within_the_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = problem(0)
    exact = exact_frontier(asked, tree(asked))

    def middle(*arguments: object) -> tuple[FloatArray, IntArray]:
        sums, chosen = near(*arguments)  # type: ignore[arg-type]
        third = np.quantile(exact.sums[:, 0], [0.3, 0.7])
        kept = (sums[:, 0] >= third[0]) & (sums[:, 0] <= third[1])
        return sums[kept], chosen[kept]

    monkeypatch.setattr(bracketing, "near", middle)
    found = bracketed(asked, 2)
    assert found.tolerance > 0.1
    for best in exact.sums:
        assert (found.sums <= best + found.room * (1 + 1e-9)).all(axis=1).any()


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 30))])
def test_no_label_of_an_optimum_is_ruled_out(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    library = random_library(7, 5, seed, costs=3, whole=seed % 3 == 1, pairs=seed % 2 * 2)
    limits = [Limit(name, half_way(library, name, 0.8)) for name in NAMES[2 : 3 + seed % 2]]
    asked = posed(library, NAMES[:2], limits, np.ones(len(library), dtype=bool))
    exact, few = exact_frontier(asked, tree(asked)), bracketed(asked, 1)
    few = few[np.arange(0, len(few), 2)]
    left = tree(asked, sieve=sieve(asked, few))
    found = exact_frontier(asked, left)
    for name in ("chosen", "sums", "tied"):
        assert np.array_equal(getattr(found, name), getattr(exact, name)), name
    labels = [sum(len(rows) for rows, _ in each.ways) for each in (left, tree(asked))]
    assert labels[0] < labels[1] + (seed % 3 == 1)  # among ties there may be none to rule out


def test_room_is_kept_where_frontiers_are_united() -> None:
    asked = problem(0)
    exact = exact_frontier(asked, tree(asked))
    wide = replace(exact, room=np.array([3.0, 5.0]))
    narrow = replace(exact[np.arange(2)], room=np.array([4.0, 0.0]))
    both = united(asked, [wide, narrow], "")
    assert both.room.tolist() == [4.0, 5.0]
    assert not both.exact
    assert both.tolerance == (both.room / np.ptp(both.sums, axis=0)).max()


@pytest.mark.parametrize(
    ("share", "said"), [(0.0984, "0.099"), (0.1, "0.1"), (0.10001, "0.11"), (9.96, "10"), (0, "0")]
)
def test_a_tolerance_is_never_rounded_down(share: float, said: str) -> None:
    assert rounded_up(share) == said


def test_a_wide_tolerance_is_closed_where_few_labels_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_exceeded(of: Problem, sieve: Pruner | None = None) -> Tree:
        if sieve is None:
            raise Exceeded
        return tree(of, sieve=sieve)

    asked = problem(0)
    exact = exact_frontier(asked, tree(asked))
    monkeypatch.setattr(solving, "tree", first_exceeded)
    found = solving.solved(asked)
    assert found.exact
    assert np.array_equal(found.chosen, exact.chosen)
    assert np.array_equal(found.tied, exact.tied)


@pytest.mark.slow
def test_too_many_labels_are_bounded_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    def exceeded(*_: object, **__: object) -> None:
        raise Exceeded

    asked, three = problem(0), problem(1, objectives=3)
    whole = exact_frontier(three, tree(three))
    monkeypatch.setattr(solving, "tree", exceeded)
    found = solving.solved(asked)
    assert not found.exact
    assert solving.TARGET < found.tolerance < 0.2
    sliced = solving.solved(three)
    assert sliced.tolerance >= 1 / solving.SLICES
    for best in whole.sums:
        assert (sliced.sums <= best + sliced.room * (1 + 1e-9)).all(axis=1).any()
