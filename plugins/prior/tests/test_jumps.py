"""What jumps is learned, what lies far off bends nothing, and where nothing predicts neighbours are asked for."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from plas_prior import proposals
from plas_prior.evidence import Group, correlations, fitted
from plas_prior.prior_columns import Jumps, Ranges
from plas_prior.prior_guided import Parameters, PriorGuided, build
from plas_prior.proposals import Proposals

from nas.problem.evaluations import Evaluations, non_dominated
from nas.problem.objective import Budget, Objective
from nas.problem.problem import Problem
from nas.search.strategy import StrategyContext
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray

Made = Callable[..., Problem]
Function = Callable[[Architectures], FloatArray]


def expensive(problem: Problem, **functions: Function) -> Problem:
    """The study with own metrics in the place of shipped ones, which are their priors."""
    own = tuple(
        Objective(f"own:{name}", "ms", name == "total_ms", function, prior=name) for name, function in functions.items()
    )
    kept = tuple(o for o in problem.objectives if o.name not in functions)
    return replace(problem, objectives=(*own, *kept), functions=own)


def started(problem: Problem, **given: Any) -> PriorGuided:
    none = problem.space.genotypes(np.zeros(0, dtype=np.int64))
    return build(StrategyContext(problem, 0, none, 100), Parameters(**given))


def told(problem: Problem, count: int, seed: int = 3) -> Evaluations:
    return problem.evaluate(problem.space.sample(count, np.random.default_rng(seed)))


def error(problem: Problem, metric: str, count: int) -> float:
    """Root mean square error over the whole space of an expensive metric from designs drawn at random, on its own scale."""
    strategy = started(problem)
    reference = strategy.candidates.reference
    of = next(o for o in problem.functions if o.name == metric)
    learned = strategy.learned(told(problem, count))
    expected = learned.models[metric].mean(reference, learned.nearness(reference, learned.told))
    return float(np.sqrt(np.square(expected - of.scaled(of.values(reference.architectures, None))).mean()))


def without_jumps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of jumps without a width."""
    monkeypatch.setattr(Ranges, "one_hot", lambda self, column: np.zeros((len(column), len(self.cuts) + 1)))
    monkeypatch.setattr(Jumps, "aligned", lambda self, a: np.zeros((len(a), 1)))
    monkeypatch.setattr(Jumps, "passed", lambda self, a: np.zeros((len(a), 1)))


def jumping(problem: Problem, kind: str) -> Function:
    """The latency model and a jump."""

    def total_ms(a: Architectures) -> FloatArray:
        base = problem.assess(a)["total_ms"]
        active = a.depth * a.width * (2.0 * a.query_dim + 2.0 * a.kv_dim + 3.0 * a.top_k * a.expert_size)
        slow = {
            "cache": active > 3e8,
            "tile": a.width % 512 > 0,
            "value": (a.depth == 12) | (a.depth == 24),
        }[kind]
        return base * np.where(slow, 1.8, 1.0)

    return total_ms


@pytest.mark.parametrize("kind", ["cache", "tile", "value"])
def test_a_jump_is_learned_that_smooth_columns_miss(kind: str, bare: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = bare(space="paper", objectives=["loss", "total_ms"])
    study = expensive(problem, total_ms=jumping(problem, kind))
    found = error(study, "own:total_ms", 60)
    without_jumps(monkeypatch)
    assert found < 0.5 * error(study, "own:total_ms", 60)


def test_where_nothing_jumps_the_columns_of_jumps_cost_little(bare: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = bare(space="paper", objectives=["loss", "total_ms"])

    draw = np.random.default_rng(7)
    noise = 0.03 * draw.standard_normal(problem.space.size)

    def smooth(a: Architectures) -> FloatArray:
        curved = 1.2 + 0.3 * np.log(a.depth / 16.0) * np.log(a.width / 1536.0)
        return problem.assess(a)["total_ms"] * curved * np.exp(noise[problem.space.find(a)])

    study = expensive(problem, total_ms=smooth)
    found = error(study, "own:total_ms", 40)
    assert found > 0.03
    without_jumps(monkeypatch)
    assert found < 1.25 * error(study, "own:total_ms", 40)


def test_an_outlier_moves_no_prediction_and_normal_noise_stays_normal() -> None:
    draw = np.random.default_rng(0)
    columns = np.column_stack([np.ones(50), draw.standard_normal((50, 3))])
    variables, values = draw.uniform(-1, 1, (50, 2)), np.sqrt(2) * np.eye(50)
    among = correlations(variables, variables, values, values)
    true = columns[:, 1:] @ [1.0, -2.0, 0.5]
    clean = true + 0.02 * draw.standard_normal(50)
    spoilt = clean + np.where(np.arange(50) % 25 == 7, 3.0, 0.0)
    groups = (Group("three", 3, 0.5),)
    good, bad = (fitted(columns, groups, among, some) for some in (clean, spoilt))
    rows = np.arange(50) % 25 != 7
    away = np.abs(bad.predicted(columns, among)[rows] - true[rows])
    assert away.max() < 0.15
    assert bad.noise < 0.2
    assert good.noise == pytest.approx(0.02, rel=0.5)


def test_values_of_an_axis_are_told_apart_and_many_are_taken_together() -> None:
    few = Ranges.of_values(np.array([1.0, 2.0, 8.0, 2.0]))
    assert few.one_hot(np.array([1.0, 2.0, 8.0, 3.0])).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]]
    assert few.passed(np.array([1.0, 8.0])).tolist() == [[-0.5, -0.5], [0.5, 0.5]]
    many = Ranges.of_values(np.arange(1000.0))
    counts = many.one_hot(np.arange(1000.0)).sum(axis=0)
    assert len(counts) == 12
    assert counts.min() > 70
    assert Ranges.of_values(np.ones(5)).one_hot(np.ones(2)).tolist() == [[1], [1]]
    assert Ranges.of_quantiles(np.array([0.0, 0.0, 0.0, 5.0]), 8).passed(np.array([0.0, 5.0])).tolist() == [
        [-0.5],
        [0.5],
    ]


def noise_alone(problem: Problem) -> Problem:
    """Objectives that no model predicts: hashed from the design."""

    def hashed(salt: float) -> Function:
        def function(a: Architectures) -> FloatArray:
            total = a.depth * 7.1 + a.width * 3.3 + a.n_experts * 5.7 + a.top_k * 11.3 + a.expert_size * 1.7 + a.kv_dim
            return 3.0 + np.sin(1e3 * salt * total)

        return function

    return expensive(problem, loss=hashed(1.0), total_ms=hashed(1.7))


def test_where_nothing_predicts_half_of_what_is_asked_for_are_neighbours_of_the_best(bare: Made) -> None:
    problem = noise_alone(bare(space="paper", objectives=["loss", "total_ms"]))
    strategy, known = started(problem, few=4, batch=4), told(problem, 40)
    corrected = strategy.learned(known)
    assert corrected.error() > proposals.USELESS
    strategy.tell(known)
    asked = problem.space.keys(strategy.ask(4))
    guess = corrected.guess(strategy.candidates.reference)
    best = known.keys[non_dominated(guess.values[known.keys])]
    near = problem.space.keys(problem.space.neighbours(problem.space.genotypes(best)))
    assert np.isin(asked, near).sum() >= 2
    assert not np.isin(asked, known.keys).any()


def test_batches_are_smaller_while_left_out_designs_are_predicted_badly(bare: Made) -> None:
    problem = bare(space="paper", objectives=["loss", "total_ms"])
    known = expensive(problem, total_ms=lambda a: 1.1 * problem.assess(a)["total_ms"])
    sizes = []
    for study in (noise_alone(problem), known):
        strategy = started(study)
        strategy.tell(told(study, 40))
        sizes.append(len(strategy.ask(5)))
    assert sizes == [2, 5]


def test_budgets_on_what_is_measured_are_explored_by_a_part_of_a_batch_alone(bare: Made) -> None:
    problem = bare(space="paper", objectives=["loss", "total_ms"])
    study = expensive(problem, total_ms=jumping(problem, "tile"))
    study = replace(study, budgets=(Budget("own:total_ms", 60.0),))
    strategy, known = started(study, confidence=0.8), told(study, 60)
    corrected = strategy.learned(known)
    reference = strategy.candidates.reference
    guess, draw = corrected.guess(reference), np.random.default_rng(0)
    taken = np.isin(reference.keys, known.keys)
    for explored, least in ((0, 5), (1, 3)):
        rows = Proposals(corrected, reference, guess, taken, 0.8, explored, draw).batch(5, 2)
        assert len(rows) == 5
        assert len(np.unique(rows)) == 5
        assert (guess.holds[rows] >= 0.8).sum() >= least
