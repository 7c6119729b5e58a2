"""Costs of kinds of layers from pairs: the normal case by its formula, a known truth, the shipped pairs and what is made of them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import yaml

from objectives.layer_costs.costs import KINDS, SEARCHED, Kind, public_costs
from objectives.plugins import documents
from studies.layer_kinds.estimate import (
    APART,
    CENTRE_SD,
    Estimate,
    Pair,
    Pairs,
    Prediction,
    costs_of,
    estimate,
    public_pairs,
)


def pairs_of(rows: list[tuple[str, dict[Kind, float], float]]) -> Pairs:
    """Pairs of laboratories with differences in nats."""
    source = {"url": "", "licence": "", "text": "", "bibtex": ""}
    pairs = [
        {"source": whose, "at": str(i), "variant": "", "loss": (5.0 + nats, 5.0), "change": change}
        for i, (whose, change, nats) in enumerate(rows)
    ]
    whose = {whose for whose, _, _ in rows}
    content: Any = {"sources": {name: {**source, "laboratory": name} for name in whose}, "pairs": pairs}
    return Pairs.model_validate(content)


def at_one_point(found: Estimate, apart: float, misfit: float) -> Estimate:
    """The point of an estimate whose τ and σ are nearest to given ones, alone."""
    distance = ((np.log(found.apart / apart)) ** 2).sum(axis=1) + np.log(found.misfit / misfit) ** 2
    return replace(found, weights=np.eye(len(distance))[distance.argmin()])


def test_given_how_far_laboratories_and_pairs_differ_costs_are_those_of_linear_normal_theory() -> None:
    """By the covariance of the measured differences, where the estimate inverts precisions."""
    of = pairs_of(
        [("a", {"conv": 0.5}, 0.03), ("a", {"conv": 0.75, "window": 1.0}, 0.05), ("b", {"window": 2.0}, 0.01)]
    )
    found = at_one_point(estimate(of, of.pairs), 0.02, 0.01)
    at = found.weights.argmax()
    kinds = [KINDS.index("window"), KINDS.index("conv")]
    sds, apart, misfit = CENTRE_SD[kinds], found.apart[at][kinds], found.misfit[at]
    x, whose = np.array([[0.0, 0.5], [1.0, 0.75], [2.0, 0.0]]), np.array(["a", "a", "b"])
    same = whose[:, None] == whose
    covariance = (x * sds**2) @ x.T + ((x * apart**2) @ x.T) * same + misfit**2 * np.eye(3)
    towards = np.linalg.solve(covariance, np.stack([[0.03, 0.05, 0.01], *(sds**2 * x).T], axis=1))
    for number, kind in enumerate(("window", "conv")):
        cost = found.cost(kind)  # type: ignore[arg-type]
        prior = sds[number] ** 2 * x[:, number]
        assert cost.mean == pytest.approx(prior @ towards[:, 0], rel=1e-6)
        variance = sds[number] ** 2 + apart[number] ** 2 - prior @ towards[:, 1 + number]
        assert cost.sd == pytest.approx(np.sqrt(variance), rel=1e-6)


def test_many_laboratories_that_agree_are_believed_and_a_kind_without_pairs_stays_at_its_prior() -> None:
    generator = np.random.default_rng(3)
    rows: list[tuple[str, dict[Kind, float], float]] = [
        (f"lab{i}", {"conv": x}, 0.06 * x + 0.002 * float(generator.normal())) for i in range(12) for x in (0.5, 0.75)
    ]
    of = pairs_of(rows)
    found = estimate(of, of.pairs)
    assert found.cost("conv").mean == pytest.approx(0.06, abs=0.004)
    assert found.cost("conv").sd < 0.012
    unknown = found.cost("mamba2")
    assert unknown.mean == 0
    assert unknown.sd == pytest.approx(np.hypot(0.05, 0.03), rel=0.05)


def test_laboratories_of_its_own_kind_predict_a_pair_better_than_others() -> None:
    rows: list[tuple[str, dict[Kind, float], float]] = [("a", {"kv_shared": 0.5}, -0.01)] * 4
    of = pairs_of([*rows, *[("b", {"kv_shared": 0.5}, 0.02)] * 4])
    found, pair = estimate(of, of.pairs), of.pairs[0]
    theirs, others, new = (found.difference(pair, whose) for whose in ("a", "b", "c"))
    assert theirs.mean < 0 < others.mean
    assert theirs.mean < new.mean < others.mean
    assert new.sd > theirs.sd


def test_intervals_of_a_mixture_hold_what_they_say() -> None:
    mixture = Prediction(np.array([-1.0, 2.0]), np.array([0.5, 1.5]), np.array([0.3, 0.7]))
    generator = np.random.default_rng(1)
    which = generator.random(200_000) < 0.3
    drawn = np.where(which, generator.normal(-1.0, 0.5, which.size), generator.normal(2.0, 1.5, which.size))
    assert mixture.mean == pytest.approx(drawn.mean(), abs=0.02)
    assert mixture.sd == pytest.approx(drawn.std(), abs=0.02)
    assert mixture.interval() == pytest.approx(np.quantile(drawn, [0.05, 0.95]), abs=0.03)


def test_units_become_nats_of_a_token() -> None:
    row: dict[str, Any] = {"source": "a", "at": "", "variant": "", "change": {"conv": 1.0}}
    assert Pair.model_validate({**row, "loss": (2.9, 2.8)}).nats == pytest.approx(0.1)
    assert Pair.model_validate({**row, "unit": "perplexity", "loss": (np.e, 1.0)}).nats == pytest.approx(1.0)
    assert Pair.model_validate({**row, "unit": "nats per byte", "loss": (0.53, 0.54)}).nats == pytest.approx(-0.044)


def test_every_pair_says_whose_it_is_and_where_it_stands_and_every_source_is_used() -> None:
    of = public_pairs()
    assert {pair.source for pair in of.pairs} == of.sources.keys()
    assert all(pair.at and pair.variant for pair in of.pairs)
    assert all(source.url.startswith("https://") and "@" in source.bibtex for source in of.sources.values())
    searched = [kind for pair in of.fitted for kind in pair.change if kind in SEARCHED]
    assert {kind: searched.count(kind) for kind in SEARCHED} == {
        "window": 14, "kv_shared": 15, "conv": 1, "deltanet": 4, "mamba2": 10,
    }  # fmt: skip
    shares = [(kind, x) for pair in of.pairs for kind, x in pair.change.items() if kind != "window"]
    assert all(-1 <= x <= 1 for _, x in shares)


def test_the_shipped_costs_are_those_of_the_shipped_pairs() -> None:
    of = public_pairs()
    made = costs_of(of, estimate(of, of.fitted)).model_dump(mode="json")
    shipped = yaml.safe_load(documents("objectives.layer_costs")["costs"].read_text())
    assert made["source"] == shipped["source"]
    for kind, cost in made["costs"].items():
        assert shipped["costs"][kind]["nats"] == pytest.approx(cost["nats"], abs=2e-4)
        assert shipped["costs"][kind]["interval"] == pytest.approx(cost["interval"], abs=2e-4)
        assert shipped["costs"][kind]["laboratories"] == cost["laboratories"]
    assert public_costs().costs.keys() == set(KINDS)
    assert APART.shape == CENTRE_SD.shape == (len(KINDS),)
