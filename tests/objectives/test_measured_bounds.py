"""Metrics at a quantile: factors of what was held out, of designs with experts and without, and how often they hold."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from nas.study.catalogue import load_device, load_law
from objectives.assessment import Assessment
from objectives.device import Calibration, Energy
from objectives.measured_bounds import MEASURED, conformal_factor, factors_of
from objectives.parts import composition
from objectives.precision import PRECISIONS
from objectives.scenario import Scenario
from objectives.transfers import BATCH_UP, EXPERTS
from search_spaces.architectures import Architectures, one

PROFILE = Calibration(held_out={"prefill": [0.9, 1.0, 1.25, 2.0], "decode": [0.8, 1.0]})
SHAPE = {"depth": 2, "width": 64, "head_dim": 32, "n_kv_heads": 1, "expert_size": 64}


def board(profile: Calibration | None = PROFILE, **changes: object) -> Scenario:
    """A board with a profile."""
    found = Scenario(load_law("hw_codesign"), load_device("raspberry_pi_5"), calibration=profile)
    return replace(found, **changes)  # type: ignore[arg-type]


def designs() -> Architectures:
    """A dense one and one with experts."""
    return Architectures.concatenate([one(SHAPE), one(SHAPE | {"n_experts": 8})])


@pytest.mark.parametrize(
    ("level", "factor"), [("50", 1.25), ("80", 2.0), ("60.0", 1.25), ("60.1", 2.0), ("0", 0.9), ("20", 0.9)]
)
def test_the_ratio_of_rank_ceil_of_n_plus_one_times_q(level: str, factor: float) -> None:
    assert factors_of("prefill_ms", Fraction(level) / 100, board())["prefill_ms"].dense == factor


def test_each_phase_has_its_own_factor() -> None:
    """Σ of both phases, each times what its own errors say."""
    found = Assessment(designs(), board())
    assert found["total_ms@q50"] == pytest.approx(1.25 * found["prefill_ms"] + 1.0 * found["decode_ms"])
    assert found["tpot_ms@q66"] == pytest.approx(found["tpot_ms"])
    assert found["tokens_per_second@q20"] == pytest.approx(found["tokens_per_second"] / 0.8)


def test_experts_are_off_by_more_where_none_were_measured_and_dense_designs_are_not() -> None:
    """What was seen of experts counts against who has them, at every quantile and in every metric."""
    scenario = board(PROFILE.model_copy(update={"experts": False}))
    found = Assessment(designs(), scenario)
    for name, terms in MEASURED.items():
        if "energy" in terms.values() or name == "ms_per_kilobyte":
            continue
        dense, sparse = found[f"{name}@q50"]
        sums = [
            sum(f * found[t][row] for t, f in zip(terms, of, strict=True)) for row, of in enumerate(_of(scenario, name))
        ]
        assert (dense, sparse) == pytest.approx(sums)
    factor = factors_of("decode_ms", Fraction(6, 10), scenario)["decode_ms"]
    assert factor.sparse == factor.dense * EXPERTS.seen["decode"].at(Fraction(6, 10)) > factor.dense
    assert (factor.dense, factor.count, factor.what) == (1.0, 2, "model")


def _of(scenario: Scenario, name: str) -> list[list[float]]:
    factors = factors_of(name, Fraction(1, 2), scenario).values()
    return [[f.dense for f in factors], [f.sparse for f in factors]]


def test_another_batch_widens_every_design() -> None:
    """At batch 8 of a profile measured at batch 1 the factor grows by what such a change was seen to miss by with that share."""
    factor = factors_of("prefill_ms", Fraction(8, 10), board(batch=8))["prefill_ms"]
    assert factor.dense == pytest.approx(2.0 * BATCH_UP.seen["prefill"].at(Fraction(8, 10)))
    assert factor.dense == factor.sparse


def test_designs_of_a_format_have_the_factors_of_its_profile() -> None:
    """Of a space of several formats each design is bounded by its own profile's errors."""
    other = board(PROFILE.model_copy(update={"held_out": {"prefill": [3.0] * 4, "decode": [3.0] * 4}}))
    formats = (board(), replace(other, precision=PRECISIONS["int4"]))
    chosen = Architectures.concatenate([one(SHAPE | {"precision": name}) for name in ("fp16", "int4")])
    found = Assessment(chosen, replace(board(), formats=formats))
    assert found["prefill_ms@q80"] == pytest.approx(found["prefill_ms"] * np.array([2.0, 3.0]))


def test_energy_of_a_batch_that_was_metered() -> None:
    metered = Energy(base_power=1.0, held_out=[1.0, 2.0, 4.0], batches=[1])
    found = Assessment(designs(), board(energy=metered))
    assert found["energy_j@q50"] == pytest.approx(2.0 * found["energy_j"])
    assert found["tokens_per_joule@q50"] == pytest.approx(found["tokens_per_joule"] / 2.0)
    with pytest.raises(
        ValueError, match=r"energy_j@q50: expected energy coefficients .* batch 4, which was not metered"
    ):
        factors_of("energy_j", Fraction(1, 2), board(energy=metered, batch=4))


@pytest.mark.parametrize(
    ("metric", "level", "largest", "models"),
    [("prefill_ms", "90", "q80", 4), ("prefill_ms", "80.1", "q80", 4), ("total_ms", "67", "q66.6", 2)],
)
def test_more_than_the_models_can_claim(metric: str, level: str, largest: str, models: int) -> None:
    """Four models claim 80 % and no more; the message names the largest quantile, which is then accepted."""
    message = f"expected at most {largest}, which is what {models} models held out can claim"
    with pytest.raises(ValueError, match=message):
        factors_of(metric, Fraction(level) / 100, board())
    assert factors_of(metric, Fraction(largest[1:]) / 100, board())


def test_rows_of_one_model_are_one_model() -> None:
    """Eight rows of two models claim what two models do."""
    profile = Calibration(held_out={"decode": [0.9 + 0.05 * i for i in range(8)]}, held_out_models=2)
    with pytest.raises(ValueError, match=r"q66\.6, which is what 2 models"):
        factors_of("decode_ms", Fraction(8, 10), board(profile))


@pytest.mark.parametrize("profile", [None, Calibration()])
def test_without_errors(profile: Calibration | None) -> None:
    """No profile, or one that nothing was held out of, has no quantile."""
    with pytest.raises(ValueError, match="total_ms@q90: expected a calibrated profile"):
        factors_of("total_ms", Fraction(9, 10), board(profile))


def test_a_sum_of_parts_needs_experts_only_where_they_decide() -> None:
    """Without a step to experts the factor is one, and n_experts is no quantity of the sum."""
    known = composition("total_ms@q66", board())
    assert known is not None
    assert list(known.quantities) == ["prefill_ms", "decode_ms"]
    apart = composition("total_ms@q66", board(PROFILE.model_copy(update={"experts": False})))
    assert apart is not None
    assert list(apart.quantities) == ["prefill_ms", "decode_ms", "n_experts"]
    assert composition("loss@q90", board()) is None


@pytest.mark.slow
@pytest.mark.parametrize(("models", "share"), [(4, "0.8"), (9, "0.9"), (9, "0.75"), (19, "0.9")])
def test_real_coverage_of_a_phase(models: int, share: str) -> None:
    """Over many draws an unseen model's time is within the factor as often as claimed, to one of n + 1."""
    rng, trials = np.random.default_rng(0), 10_000
    ratios, spread = np.exp(rng.normal(0.0, 0.3, (trials, models + 1))), 3 * (0.25 / trials) ** 0.5
    bounds = [conformal_factor(row[:-1].tolist(), models, Fraction(share)) or 0.0 for row in ratios]
    covered = float((ratios[:, -1] <= bounds).mean())
    assert float(share) - spread <= covered <= float(share) + 1 / (models + 1) + spread


@pytest.mark.slow
@pytest.mark.parametrize(("models", "share"), [(4, "0.8"), (9, "0.9"), (9, "0.75"), (19, "0.9")])
@pytest.mark.parametrize("common", [0.0, 0.3, 0.6])
def test_real_coverage_of_a_total(models: int, share: str, common: float) -> None:
    """A total, both phases each at its own bound, in any weights, is within it at least as often as claimed.

    Errors of the two phases of a model are independent, depend on one another, or nearly agree.
    """
    rng, trials = np.random.default_rng(1), 10_000
    both = rng.normal(0.0, common, (trials, models + 1, 1)) + rng.normal(0.0, 0.2, (trials, models + 1, 2))
    ratios, weights = np.exp(both), rng.dirichlet([0.5, 0.5], trials)
    covered = 0
    for held_out, unseen, weight in zip(ratios[:, :-1], ratios[:, -1], weights, strict=True):
        factors = [conformal_factor(held_out[:, phase].tolist(), models, Fraction(share)) or 0.0 for phase in (0, 1)]
        covered += bool(unseen @ weight <= weight @ factors)
    assert covered / trials >= float(share) - 3 * (0.25 / trials) ** 0.5
