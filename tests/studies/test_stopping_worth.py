"""What the next trainings are worth: regret by its definition, the update by its closed form, the decision."""

import numpy as np
import pytest

from nas.problem.picks import PickRule
from nas.search.assembly import Study, assemble
from objectives.loss_law.law import Law
from plas_fit.frontier_check import Judged, under_draws
from plas_fit.next_designs import Trainings
from search_spaces.architectures import Architectures
from studies.stopping.worth import _gain, worth
from tests.made_up_law import TRUE, law_with

SCALES = ("kappa_l", "kappa_rho", "kappa_d", "kappa_m", "l_inf")


def judged_by(law: Law) -> Judged:
    study: Study = assemble({"algo": "random", "baselines": [], "law": law.mapping()}, {})
    found = under_draws(study, law)
    assert isinstance(found, Judged)
    return found


def some(judged: Judged, rows: list[int]) -> Trainings:
    architectures: Architectures = judged.study.problem.architectures(judged.found.genotypes[rows])
    return Trainings(architectures, np.full(len(rows), 1e10))


def test_the_gain_is_that_of_the_normal_posterior() -> None:
    """Draws of a linear law: the update is Σ X_cᵀ … of textbook Bayes, up to the draws' own scatter."""
    generator = np.random.default_rng(1)
    covariance = np.array([[1.0, 0.3, 0.0], [0.3, 0.5, -0.1], [0.0, -0.1, 0.2]])
    draws = generator.multivariate_normal(np.zeros(3), covariance, size=40_000)
    at, others = generator.normal(size=(4, 3)), generator.normal(size=(6, 3))
    exact = np.linalg.solve(at @ covariance @ at.T + 0.25 * np.eye(4), at @ covariance @ others.T)
    np.testing.assert_allclose(_gain(draws @ others.T, draws @ at.T, 0.5), exact, atol=0.03)


@pytest.mark.slow
def test_regret_now_is_that_of_the_definition() -> None:
    judged = judged_by(law_with(tuple(TRUE), 0.02))
    known = worth(judged, some(judged, [0, 5000]), None, 0)
    own = []
    for question in judged.study.problem.queries:
        row = PickRule(question.budget).row(judged.found)
        limit = question.budget
        within = judged.found.feasible & (True if limit is None else judged.found.metrics[limit.metric] <= limit.limit)
        architectures = judged.study.problem.architectures(judged.found.genotypes[within])
        losses = judged.law.drawn_losses(architectures)
        place = int(np.flatnonzero(np.flatnonzero(within) == row)[0])
        own.append((losses[:, place] - losses.min(axis=1)).mean())
    assert known["regret_now"] == pytest.approx(np.mean(own), abs=1e-12)
    assert len(known["picks"]) == 5


@pytest.mark.slow
def test_trainings_that_settle_everything_leave_no_regret_and_repeats_leave_most() -> None:
    """A law that is linear in what is unsure: as many clean designs as coefficients determine it."""
    judged = judged_by(law_with(SCALES, 1e-6))
    settled = worth(judged, some(judged, np.linspace(0, 12_900, 20).round().astype(int).tolist()), None, 0)
    repeated = worth(judged, some(judged, [0] * 6), None, 0)
    assert settled["regret_now"] == repeated["regret_now"] > 1e-4
    assert settled["regret_after"] < 0.01 * settled["regret_now"]
    assert repeated["regret_after"] > 0.3 * repeated["regret_now"]


@pytest.mark.slow
def test_noisy_trainings_are_worth_less() -> None:
    rows = [0, 3000, 6100, 9300, 12_400, 13_000]
    drops = []
    for sd in (0.001, 0.05, 5.0):
        judged = judged_by(law_with(tuple(TRUE), sd))
        drops.append(worth(judged, some(judged, rows), None, 0)["drop"])
    assert drops[0] > drops[1] > drops[2]
    assert abs(drops[2]) < 0.05 * drops[0]


@pytest.mark.slow
def test_the_decision_is_the_drop_per_flop_against_the_limit() -> None:
    judged = judged_by(law_with(tuple(TRUE), 0.02))
    trainings = some(judged, [0, 6000, 13_000])
    free = worth(judged, trainings, None, 0)
    assert free["decision"] is None
    assert free["drop_per_1e18_flop"] == pytest.approx(free["drop"] / trainings.flops.sum() * 1e18)
    for factor, decision in ((0.9, "go on"), (1.1, "stop")):
        known = worth(judged, trainings, factor * free["drop_per_1e18_flop"], 0)
        assert known["decision"] == decision
    unknown = worth(judged, Trainings(trainings.architectures, None), 0.1, 0)
    assert unknown["decision"] is None
