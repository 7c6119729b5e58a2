"""Tables replayed: their rows as a space, regrets, and strategies that see nothing else."""

import numpy as np
import pytest

pytest.importorskip("plas_bench", reason="its cases are those of plugins/bench, which is not installed")
pytest.importorskip("plas_prior", reason="prior_guided is of plugins/prior, which is not installed")

from studies.few_evaluations import tables
from studies.few_evaluations.table_sources import Case, own
from studies.few_evaluations.tables import ALONE, by_prior, evaluated, regret


@pytest.fixture(scope="module")
def case() -> Case:
    """The project's own trainings."""
    return own()


def test_a_table_is_a_space_of_its_rows(case: Case) -> None:
    space = case.problem.space
    keys, draw = np.arange(space.size), np.random.default_rng(0)
    genotypes = space.genotypes(keys)
    assert (space.keys(genotypes) == keys).all()
    assert (np.lexsort(genotypes.T[::-1]) == keys).all()
    assert (space.find(space.architectures(genotypes)) == keys).all()
    drawn = draw.integers(-3, 40, (50, len(space.genes)))
    assert space.is_canonical(space.repair(drawn)).all()
    near = space.keys(space.neighbours(genotypes[:1]))
    assert 0 not in near
    assert len(near)


def test_a_proposal_becomes_the_nearest_row(case: Case) -> None:
    space = case.problem.space
    proposed = np.array([[1, 2, 0, 0, 2, 0], [0, 0, 2, 1, 9, 1]])
    rows = space.genotypes(np.arange(space.size))
    for genotype, key in zip(proposed, space.keys(proposed), strict=True):
        apart = np.zeros(space.size)
        for gene, values in enumerate(space.values):
            logs = np.log(values)
            apart += ((logs[rows[:, gene]] - logs[genotype[gene]]) / np.ptp(logs)) ** 2
        assert apart[key] == pytest.approx(apart.min())


def test_seeds_of_one_architecture_are_averaged(case: Case) -> None:
    assert case.problem.space.size == len(
        np.unique(case.problem.space.genotypes(np.arange(case.problem.space.size)), axis=0)
    )
    assert 80 <= case.problem.space.size <= 104
    assert 1.6 < case.values["table:loss"].min() < case.values["table:loss"].max() < 2.0


def test_everything_evaluated_leaves_no_regret_and_nothing_all_of_it(case: Case) -> None:
    every = np.arange(case.problem.space.size)
    assert regret(case, every) == 0.0
    assert regret(case, every[:0]) > 0.1
    assert sorted(by_prior(case).tolist()) == every.tolist()


@pytest.mark.parametrize("method", ["prior_guided", ALONE, "random", "nsga2"])
def test_methods_evaluate_distinct_rows(case: Case, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "CHECKPOINTS", (12,))
    keys = evaluated(case, method, 0)
    assert len(keys) == len(np.unique(keys)) == 12
