"""Frozen kinds: the same of a design whenever it is asked for, measured is true and noise, and each jumps where it says."""

import numpy as np
import pytest
from plas_bench.jumps import alignment, caches, uniform, weight_bytes
from plas_bench.kinds import KINDS, NOISE, SCALES, Case, case_of
from scipy.stats import spearmanr

from nas.problem.evaluations import non_dominated
from search_spaces.arrays import IntArray


def some(case: Case, n: int = 300) -> IntArray:
    """Genotypes spread over the space."""
    return case.problem.space.genotypes(np.linspace(0, case.problem.space.size - 1, n).astype(np.int64))


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_says_the_same_of_a_design_alone_and_among_others(kind: str) -> None:
    case, again = case_of(kind, 100), case_of(kind, 100)
    genotypes = some(case)
    both = case.problem.evaluate(genotypes)
    one = again.problem.evaluate(genotypes[7:8])
    assert np.allclose(case.values(genotypes)[7], again.values(genotypes[7:8])[0], rtol=1e-12)
    assert np.allclose(both.values[7], one.values[0], rtol=1e-12)
    other = case_of(kind, 101)
    assert not np.allclose(case.values(genotypes)[:, :2], other.values(genotypes)[:, :2])


@pytest.mark.parametrize("kind", KINDS)
def test_measured_is_true_and_noise(kind: str) -> None:
    case = case_of(kind, 100)
    architectures = case.problem.architectures(some(case, 4000))
    for metric, (_, log_scale) in SCALES.items():
        true, measured = case.truth.true(metric, architectures), case.truth.measured(metric, architectures)
        noise = np.log(measured / true) if log_scale else measured - true
        assert np.allclose(noise, case.truth.noise(metric, architectures), atol=1e-12)
        if KINDS[kind].heavy:
            assert np.abs(noise).max() > 20 * NOISE[metric]
            assert np.median(np.abs(noise)) == pytest.approx(0.8165 * NOISE[metric], rel=0.15)  # quartile of t, ν = 2
        else:
            assert noise.std() == pytest.approx(NOISE[metric], rel=0.05)
            assert abs(noise.mean()) < 0.1 * NOISE[metric]


@pytest.mark.parametrize(("kind", "rank"), [("rough_wrong", 0.5), ("rough_useless", 0.0), ("wrong_sign", -0.6)])
def test_formulas_rank_as_they_are_said_to(kind: str, rank: float) -> None:
    case = case_of(kind, 102)
    genotypes = case.problem.space.genotypes(np.arange(case.problem.space.size))
    prior, true = case.analytic.evaluate(genotypes).values, case.values(genotypes)
    for place in range(2):
        assert spearmanr(prior[:, place], true[:, place]).statistic == pytest.approx(rank, abs=1e-3)


def test_a_mirrored_prior_is_the_prior_of_other_designs() -> None:
    case = case_of("mirrored", 104)
    genotypes = case.problem.space.genotypes(np.arange(case.problem.space.size))
    prior, true = case.analytic.evaluate(genotypes).values, case.values(genotypes)
    assert np.isin(np.round(true[:, 0], 9), np.round(prior[:, 0], 9)).all()
    assert not np.allclose(prior[:, 0], true[:, 0], atol=0.1)


def test_latency_jumps_where_bytes_pass_a_cache_and_nowhere_else() -> None:
    case = case_of("caches", 100)
    every = case.problem.architectures(case.problem.space.genotypes(np.arange(case.problem.space.size)))
    part = caches(every, np.random.default_rng(3))(every)
    levels = np.unique(part)
    assert 2 <= len(levels) <= 8
    assert 1.15 <= np.exp(np.diff(levels).max()) <= 2.0
    used = np.stack(list(weight_bytes(every).values()), axis=1)
    for low, high in ((a, b) for a in range(0, len(every), 97) for b in range(0, len(every), 101)):
        assert not ((used[low] <= used[high]).all() and part[low] > part[high])  # more bytes never take less


def test_only_what_is_no_multiple_of_its_tile_takes_longer() -> None:
    case = case_of("alignment", 100)
    every = case.problem.architectures(case.problem.space.genotypes(np.arange(case.problem.space.size)))
    part = alignment(np.random.default_rng(1))(every)
    aligned = (every.width % 512 == 0) & (every.expert_size % 512 == 0) & (every.kv_dim % 256 == 0)
    assert (part[aligned] == 0).all()
    assert (part >= 0).all()
    assert len(np.unique(np.round(part, 12))) > 2


def test_budgets_leave_half_of_the_frontier() -> None:
    case = case_of("budgets", 100)
    every = case.problem.space.genotypes(np.arange(case.problem.space.size))
    values, feasible = case.values(every), case.feasible(every)
    assert 0.0 < feasible.mean() < 0.5
    assert len(case.frontier()) == len(non_dominated(values[feasible]))
    assert [b.metric for b in case.problem.budgets] == ["measured:total_ms", "memory_gb"]


def test_a_large_space_has_no_exact_frontier_here() -> None:
    with pytest.raises(ValueError, match=r"space: expected at most 20,000 designs, got 1,258,712,859,096; search it"):
        case_of("edge2026", 100).frontier()


def test_hashed_numbers_are_uniform_and_tell_rows_apart() -> None:
    found = uniform(5, np.arange(20_000), np.zeros(20_000, dtype=np.int64))
    assert abs(found.mean() - 0.5) < 0.01
    assert np.abs(np.histogram(found, 10)[0] - 2000).max() < 200
    assert not np.isclose(uniform(5, np.array([1]), np.array([2])), uniform(5, np.array([2]), np.array([1])))
    assert not np.isclose(uniform(6, np.array([1])), uniform(5, np.array([1])))
