"""Own rows on a prior: the posterior by importance sampling, levels, groups, outliers, chains, and the law that it becomes."""

from dataclasses import replace

import numpy as np
import pytest

from objectives.loss_law.coverage import Region
from objectives.loss_law.law import Law
from plas_fit.evidence.joint_form import FORM, NAMES, Quantities, Trainings, trainings
from plas_fit.evidence.posterior import (
    WIDER,
    Belief,
    Posterior,
    fingerprint,
    own_law,
    posterior,
    predicted,
    prior_of,
    widened,
)
from plas_fit.fitting.trained_models import Table
from search_spaces.arrays import FloatArray
from tests.made_up_prior import CENTRE, LEVEL, covariance, prior_law

NOISE = 0.01


@pytest.fixture(scope="module")
def law() -> Law:
    return prior_law({"dense": Region(ranges={"active_parameters": (1e7, 1e10), "tokens": (1e9, 1e12)})})


@pytest.fixture(scope="module")
def prior(law: Law) -> Belief:
    return prior_of(law)


def truth_of(prior: Belief, seed: int) -> Belief:
    generator = np.random.default_rng(seed)
    drawn = prior.mean + np.linalg.cholesky(prior.covariance) @ generator.normal(size=len(prior.mean))
    return replace(prior, mean=drawn)


def table_of(n: int, seed: int, truth: Belief, noise: float = NOISE) -> Table:
    """Dense models of 20 M to 2 B parameters with losses of a truth."""
    generator = np.random.default_rng(seed)
    depth, width = generator.integers(6, 40, n), 64 * generator.integers(6, 36, n)
    columns = {
        "depth": depth.astype(float),
        "width": width.astype(float),
        "kv_dim": width / generator.choice([1, 2, 4], n),
        "query_dim": width.astype(float),
        "expert_ffn_ratio": generator.choice([2.0, 8 / 3, 4.0], n),
        "top_k": np.ones(n),
        "parameters": 12.0 * depth * width**2,
        "tokens": 10 ** generator.uniform(9.5, 11, n),
    }
    given = trainings("", "", Table({**columns, "loss": np.ones(n)}, np.arange(n)), np.zeros(n))
    return Table({**columns, "loss": truth.losses(given.of) + noise * generator.normal(size=n)}, np.arange(n))


def rows_of(table: Table, group: FloatArray | None = None) -> Trainings:
    return trainings("own", "own", table, np.zeros(len(table)) if group is None else group)


def differences(belief: Belief, of: Quantities) -> tuple[FloatArray, FloatArray]:
    """Means and sds of differences of neighbouring designs."""
    slopes, losses = belief.slopes(of), belief.losses(of)
    apart = slopes[1:] - slopes[:-1]
    return losses[1:] - losses[:-1], np.sqrt(np.einsum("ni,ij,nj->n", apart, belief.covariance, apart))


def test_the_prior_is_the_law_s_draws(law: Law, prior: Belief) -> None:
    sd = np.sqrt(np.diag(covariance()))
    np.testing.assert_allclose(prior.theta, CENTRE, atol=0.03 * sd.max())
    np.testing.assert_allclose(prior.sd[:-1], sd, rtol=0.05)
    np.testing.assert_allclose(prior.mean[-1], LEVEL, atol=0.02)
    assert prior.scale == law.residual_sd


@pytest.mark.parametrize("n", [2, 8])
def test_the_posterior_is_that_of_importance_sampling(prior: Belief, n: int) -> None:
    """Draws of the prior weighed by Student's t of the rows at the scale that was found; a prior narrow enough for draws to reach the rows."""
    narrow = replace(prior, covariance=0.09 * prior.covariance)
    rows = rows_of(table_of(n, n, truth_of(narrow, 3), 0.03))
    found = posterior(narrow, rows)
    generator, scale = np.random.default_rng(0), found.belief.scale
    drawn = narrow.mean + generator.normal(size=(12_000, len(NAMES) + 1)) @ np.linalg.cholesky(narrow.covariance).T
    off = (rows.loss - predicted(drawn, rows.of)) / scale
    log = -2.5 * np.log1p(off**2 / 4.0).sum(axis=1)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    assert 1.0 / (weight**2).sum() > 150  # draws that count
    mean = weight @ drawn
    sd = np.sqrt(weight @ (drawn - mean) ** 2)
    assert (np.abs(mean - found.belief.mean) < 0.35 * sd).all()
    np.testing.assert_allclose(found.belief.sd, sd, rtol=0.3)


@pytest.mark.slow
def test_intervals_of_differences_hold_what_they_say_and_shrink(prior: Belief) -> None:
    held, ratios = [], []
    for seed in range(12):
        truth = truth_of(prior, seed)
        designs = rows_of(table_of(40, 900 + seed, truth)).of
        true = np.diff(truth.losses(designs))
        last = np.inf
        for n in (4, 8, 30):
            found = posterior(prior, rows_of(table_of(n, seed, truth))).belief
            mean, sd = differences(found, designs)
            held.append((np.abs(true - mean) < 1.645 * sd).mean())
            last, before = float(np.median(sd)), last
            ratios.append(last / before)
    assert 0.83 < np.mean(held) < 0.96
    assert np.mean(np.array(ratios) < 1.0) > 0.95


def test_fewer_rows_move_less(prior: Belief) -> None:
    one = posterior(prior, rows_of(table_of(1, 0, truth_of(prior, 1))))
    np.testing.assert_allclose(one.belief.sd[:-1], prior.sd[:-1], rtol=0.06)
    assert one.belief.sd[-1] < 0.7 * prior.sd[-1]


def test_a_level_far_off_leaves_differences_alone(prior: Belief) -> None:
    table = table_of(10, 4, truth_of(prior, 4))
    found = posterior(prior, rows_of(table))
    other = posterior(prior, rows_of(replace(table, numbers={**table.numbers, "loss": table.loss + 3.0}, _known={})))
    assert (np.abs(other.belief.theta - found.belief.theta) < 0.35 * found.belief.sd[:-1]).all()
    assert other.belief.mean[-1] - found.belief.mean[-1] == pytest.approx(3.0, abs=0.1)


def test_groups_have_levels_of_their_own(prior: Belief) -> None:
    truth, group = truth_of(prior, 5), np.array([1.0, 0, 0, 0, 1, 0, 1, 0])
    table = table_of(8, 5, truth)
    apart = replace(table, numbers={**table.numbers, "loss": table.loss + 0.4 * group}, _known={})
    found = posterior(prior, rows_of(apart, group))
    assert found.main == 0
    assert found.at_reference[1] - found.at_reference[0] == pytest.approx(0.4, abs=0.04)
    assert found.belief.mean[-1] == found.at_reference[0]
    blind = posterior(prior, rows_of(apart))
    assert blind.belief.scale > 3 * found.belief.scale


def test_a_row_that_is_wrong_counts_little(prior: Belief) -> None:
    table = table_of(12, 6, truth_of(prior, 6))
    wrong = table.loss + 0.5 * (np.arange(12) == 3)
    found = posterior(prior, rows_of(replace(table, numbers={**table.numbers, "loss": wrong}, _known={})))
    assert found.weight[3] < 0.2
    assert np.delete(found.weight, 3).min() > 2 * found.weight[3]


def test_a_weight_counts_as_rows(prior: Belief) -> None:
    table = table_of(6, 7, truth_of(prior, 7))
    rows = rows_of(table)
    weight = np.array([3.0, 0.6, 0.6, 0.6, 0.6, 0.6])
    off = [abs((rows.loss - posterior(prior, rows, each).fitted)[0]) for each in (None, weight)]
    assert off[1] < off[0]


def test_fits_on_top_of_each_other_are_one_fit(law: Law, prior: Belief) -> None:
    """The level of the rows before is kept, too: rows of the same recipe, one fit after another."""
    truth = truth_of(prior, 8)
    table = table_of(20, 8, truth)
    first, second = table[np.arange(10)], table[np.arange(10, 20)]
    after: Posterior = posterior(prior, rows_of(first))
    mine = own_law(law, after.belief, first, "mine", 2e10)
    chained = posterior(prior_of(mine), rows_of(second)).belief
    once = posterior(prior, rows_of(table)).belief
    designs = rows_of(table_of(60, 80, truth)).of
    (mean, sd), (other, other_sd) = differences(once, designs), differences(chained, designs)
    assert np.abs((mean - other) / sd).max() < 1.5
    assert np.median(np.abs(mean - other) / sd) < 0.4
    assert 0.7 < np.median(other_sd / sd) < 1.4
    assert chained.before.tolist() == once.before.tolist()
    of_doubted = (np.median(differences(each.doubted, designs)[1]) for each in (chained, once))
    assert 0.9 < np.divide(*of_doubted) < 1.2, "rows of the first fit are doubted in the second, too"
    assert chained.sd[-1] < 0.9 * after.belief.sd[-1]


def test_the_law_says_what_the_belief_says(law: Law, prior: Belief) -> None:
    table = table_of(9, 9, truth_of(prior, 9))
    found = posterior(prior, rows_of(table)).belief
    mine = own_law(law, found, table, "mine", 2e10)
    read = Law.model_validate(mine.mapping())
    again = prior_of(read)
    assert again.mean.tolist() == found.mean.tolist()
    assert again.covariance.tolist() == found.covariance.tolist()
    assert again.before.tolist() == prior.covariance.tolist()
    values = FORM.values(table.feature, read.coefficients)
    total = sum(values.values(), np.zeros(len(table)))
    np.testing.assert_allclose(total, found.losses(rows_of(table).of), rtol=1e-9)
    assert (len(read.draws), read.residual_sd, read.tokens) == (256, WIDER * found.scale, 2e10)
    assert read.provenance["prior"] == {"name": "others", "sha256": fingerprint(law)}


def test_ranges_are_widened_to_own_rows(prior: Belief) -> None:
    table = table_of(5, 1, truth_of(prior, 1))
    ends = widened({"parameters": (1e9, 2e9), "tokens": (1.0, 1e15), "head_dim": (64.0, 128.0)}, table)
    assert ends["parameters"] == (table.feature("parameters").min(), max(2e9, table.feature("parameters").max()))
    assert ends["tokens"] == (1.0, 1e15)
    assert ends["head_dim"] == (64.0, 128.0)


def test_another_law_is_no_prior(law: Law) -> None:
    other = Law.model_validate(
        {"name": "small", "form": "parameters_power", "coefficients": {"kappa": 1.0, "alpha": 0.3, "l_inf": 2.0}}
    )
    with pytest.raises(ValueError, match="prior: expected a law of the joint form, got small"):
        prior_of(other)
    with pytest.raises(ValueError, match="prior: expected a law with 22 draws or more, got 3"):
        prior_of(law.model_copy(update={"draws": law.draws[:3]}))
    broken = " ".join(["-1.0"] * len(FORM.coefficients))
    with pytest.raises(ValueError, match="prior: expected draws of positive scales"):
        prior_of(law.model_copy(update={"draws": (*law.draws[1:], broken)}))


def test_what_rows_say_nothing_of_stays_as_it_was(prior: Belief) -> None:
    """Dense rows that lie where the prior's mean has them: stored parameters' share is as unsure as before."""
    centre = replace(prior, mean=prior.mean.copy())
    found = posterior(prior, rows_of(table_of(20, 11, centre))).belief
    share = NAMES.index("logit s")
    assert found.sd[share] == pytest.approx(prior.sd[share], rel=0.02)


def test_a_laboratory_far_off_is_followed(prior: Belief) -> None:
    """Coordinates two and a half sds off the prior's mean, five at once: twelve rows find most of the differences."""
    far = replace(prior, mean=prior.mean + 2.5 * np.append(prior.sd[:6] * [1, 1, 0, -1, 1, -1], np.zeros(5)))
    designs = rows_of(table_of(60, 71, far)).of
    true = np.diff(far.losses(designs))
    off = [
        np.diff(belief.losses(designs)) - true
        for belief in (prior, posterior(prior, rows_of(table_of(12, 70, far))).belief)
    ]
    before, after = (float(np.sqrt((each**2).mean())) for each in off)
    assert after < 0.25 * before


def test_doubt_of_what_rows_add_is_never_more_than_the_priors(prior: Belief) -> None:
    found = posterior(prior, rows_of(table_of(9, 9, truth_of(prior, 9)))).belief
    doubted = found.doubted
    added, counted = (np.linalg.inv(each.covariance) - np.linalg.inv(prior.covariance) for each in (found, doubted))
    np.testing.assert_allclose(counted, added / WIDER**2, rtol=1e-6, atol=1e-9 * np.abs(added).max())
    assert doubted.scale == WIDER * found.scale
    assert (doubted.sd >= np.minimum(found.sd, prior.sd) * 0.98).all()
    assert (doubted.sd <= np.maximum(found.sd, prior.sd) * 1.02).all()
