"""Every answer in small libraries against trying every mixture: vectors, ties, the mixture that stands for them."""

import numpy as np
import pytest
from block_libraries import NAMES, by_trying, covers, half_way, random_library
from plas_blocks.checking import Meaning, checked
from plas_blocks.exact_by_kind import few_kinds
from plas_blocks.labels import tree
from plas_blocks.library import Row
from plas_blocks.problem import Limit, posed
from plas_blocks.solution import Frontier, exact_frontier
from plas_blocks.solving import solved

from nas.errors import InfeasibleError


def told(frontier: Frontier) -> dict[tuple[float, ...], tuple[int, tuple[int, list[int]]]]:
    values = [frontier.metric(name) for name in frontier.problem.names]
    keys = [tuple(round(float(column[i]), 9) for column in values) for i in range(len(frontier))]
    rest = zip(frontier.tied.tolist(), frontier.changed.tolist(), frontier.chosen.tolist(), strict=True)
    return {
        key: (int(np.nan_to_num(tied)), (changed, chosen))
        for key, (tied, changed, chosen) in zip(keys, rest, strict=True)
    }


def asked(seed: int):  # type: ignore[no-untyped-def]
    generator = np.random.default_rng(seed)
    layers, blocks = (int(n) for n in generator.integers((1, 1), (6, 5)))
    library = random_library(layers, blocks, seed, costs=3, whole=seed % 3 > 0, pairs=seed % 2 * 2)
    objectives = NAMES[: 1 + int(generator.integers(0, 3))]
    limits = []
    for name in (n for n in NAMES[1:] if generator.random() < 0.5):
        share = 2 * generator.random()
        limits.append(Limit(name, round(half_way(library, name, share), 2), bool(generator.random() < 0.3)))
    return library, objectives, limits


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(40, 400), marks=pytest.mark.slow)])
def test_every_optimum_its_ties_and_its_mixture(seeds: range) -> None:
    for seed in seeds:
        library, objectives, limits = asked(seed)
        wanted = by_trying(library, objectives, limits)
        try:
            problem = posed(library, objectives, limits, np.ones(len(library), dtype=bool))
            assert told(exact_frontier(problem, tree(problem))) == wanted, seed
            assert told(solved(problem)) == wanted, seed
        except InfeasibleError:
            assert wanted == {}, seed


@pytest.mark.parametrize("seed", range(6))
def test_at_most_so_many_kinds(seed: int) -> None:
    library = random_library(4, 4, seed, whole=seed % 2 > 0, pairs=seed % 3)
    problem = posed(library, NAMES[:2], [], np.ones(len(library), dtype=bool), whole=True)
    for most in (1, 2, 3):
        kept = [c for c in covers(library) if len({library.kinds[row] for row in c}) <= most]
        totals = {tuple(round(library.total(n, np.array(c)), 9) for n in NAMES[:2]) for c in kept}
        best = {t for t in totals if not any(o != t and o[0] <= t[0] and o[1] <= t[1] for o in totals)}
        found = few_kinds(problem, most)
        assert set(told(found)) == best
        assert (found.kinds <= most).all()
        assert found.exact


def test_rows_in_another_order_give_the_same_answer() -> None:
    library = random_library(5, 4, 1, whole=True)
    problem = posed(library, NAMES[:2], [], np.ones(len(library), dtype=bool))
    first = told(exact_frontier(problem, tree(problem)))
    again = random_library(5, 4, 1, whole=True)
    assert again.blocks == library.blocks
    assert first == by_trying(library, NAMES[:2], [])


def test_of_some_scores_more_is_better() -> None:
    rows = [
        Row(f"row {i}", (layer,), name, name == "full", {"accuracy": accuracy, "memory_mib": memory})
        for i, (layer, name, accuracy, memory) in enumerate(
            [(0, "full", 0.75, 4.0), (0, "half", 0.5, 2.0), (1, "full", 0.75, 4.0), (1, "half", 0.625, 2.0)]
        )
    ]
    library = checked("accuracies", rows, Meaning(("accuracy",)))
    asked = posed(library, ("accuracy", "memory_mib"), [Limit("accuracy", 0.5, least=True)], np.ones(4, dtype=bool))
    found = exact_frontier(asked, tree(asked))
    assert sorted(zip(found.metric("accuracy"), found.metric("memory_mib"), strict=True)) == [(0.625, 6.0), (0.75, 8.0)]
