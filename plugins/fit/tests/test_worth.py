"""What the next trainings are worth: regret by its definition, the update by its closed form, the decision, the files."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.errors import UsageError
from nas.problem.picks import best_row
from nas.search.assembly import Study, assemble
from objectives.loss_law.law import Law
from plas_fit.command import execute
from plas_fit.fit_document import worth_section
from plas_fit.frontier_check import Judged, under_draws
from plas_fit.next_designs import Trainings, counts_of, on_counts
from plas_fit.request import FitRequest
from plas_fit.worth import _gain, worth
from search_spaces.architectures import Architectures

TRUE = {
    "kappa_l": 9.96, "alpha_l": 1.63, "kappa_rho": 0.031, "alpha_rho": 1.09, "alpha_r": 0.17,
    "beta_1": -0.33, "kappa_d": 500.0, "beta_2": 0.97, "kappa_m": 0.005, "l_inf": 2.6,
}  # fmt: skip
SCALES = ("kappa_l", "kappa_rho", "kappa_d", "kappa_m", "l_inf")


def law_with(varying: tuple[str, ...], sd: float, draws: int = 60) -> Law:
    """Draws around the true coefficients, of some of them."""
    generator = np.random.default_rng(0)
    off = np.array([0.08 * (name in varying) for name in TRUE])
    rows = np.array(list(TRUE.values())) * (1 + off * generator.normal(size=(draws, len(TRUE))))
    return Law.model_validate(
        {
            "form": "hw_codesign_log_kv",
            "coefficients": TRUE,
            "draws": tuple(" ".join(repr(v) for v in row) for row in rows.tolist()),
            "tokens": 1e10,
            "residual_sd": sd,
        }
    )


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
        row = best_row(judged.found, question.budget)
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
    assert "--stop-below NATS decides" in worth_section(free).parts[-1]
    for factor, decision, said in ((0.9, "go on", "Go on: these save"), (1.1, "stop", "Stop: these save")):
        known = worth(judged, trainings, factor * free["drop_per_1e18_flop"], 0)
        assert known["decision"] == decision
        assert worth_section(known).parts[-1].startswith(said)
    unknown = worth(judged, Trainings(trainings.architectures, None), 0.1, 0)
    assert unknown["decision"] is None
    assert "unknown" in worth_section(unknown).parts[-1]


def test_a_form_with_tokens_is_trained_on_several_counts() -> None:
    law = Law.model_validate(
        {
            "form": "chinchilla",
            "coefficients": {"a": 400.0, "alpha": 0.34, "b": 2000.0, "beta": 0.37, "e": 1.8},
            "tokens": 8e6,
        }
    )
    assert counts_of(law, None) is not None
    assert counts_of(law, None).tolist() == [8e6, 4e6, 2e6]  # type: ignore[union-attr]
    assert counts_of(law, np.array([1e6, 1e6, 4e6])).tolist() == [8e6, 4e6, 1e6]  # type: ignore[union-attr]
    dense = law_with((), 0.01)
    assert counts_of(dense, np.array([1e6, 4e6])).tolist() == [1e10]  # type: ignore[union-attr]
    problem = assemble({}, {}).problem
    two = problem.architectures(problem.space.genotypes(np.array([0, 5000])))
    every = on_counts(two, counts_of(law, None))
    assert len(every) == 6
    np.testing.assert_allclose(every.flops[2:4] / every.flops[:2], 0.5)
    np.testing.assert_allclose(every.losses(law)[:2], law.loss(two))
    assert (every.losses(law)[2:4] > every.losses(law)[:2]).all()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Thirty trained models, each on one of two counts of tokens."""
    generator = np.random.default_rng(1)
    problem = assemble({}, {}).problem
    a = problem.architectures(problem.space.genotypes(generator.choice(problem.space.size, 30, replace=False)))
    tokens = np.where(np.arange(30) % 3, 10e9, 2e9)
    loss = law_with((), 0.01).loss(a) + 100 / tokens**0.3 + generator.normal(0, 0.01, 30)
    names = ("depth", "width", "n_kv_heads", "n_experts", "top_k", "expert_size")
    path = tmp_path / "runs.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "tokens", "loss"])
        columns = [getattr(a, name).tolist() for name in names]
        writer.writerows(zip(*columns, tokens.tolist(), loss.tolist(), strict=True))
    return path


def quick(runs: Path, **changes: Any) -> FitRequest:
    return FitRequest((runs,), **({"starts": 4, "bootstraps": 40, "next": 6, "where": ("tokens=10e9",)} | changes))


@pytest.mark.slow
def test_a_loop_stops_by_the_file_that_is_not_written(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    law, report = tmp_path / "law.yaml", tmp_path / "report"
    execute(quick(runs, stop_below=0.0, candidates=first, out=law, report=report))
    said = capsys.readouterr()
    assert first.exists()
    assert json.loads((report / "report.json").read_text())["worth"]["decision"] == "go on"
    assert "Go on: these save" in said.out
    assert f"Next: plas train {first} --tokens 1e+10 --out trained --data YOUR_TEXT" in said.err
    assert f"      plas run --algo exact --law {law}" in said.err
    execute(quick(runs, stop_below=1e6, candidates=second, json=True))
    said = capsys.readouterr()
    content = json.loads(said.out)
    assert content["worth"]["decision"] == "stop"
    assert not second.exists()
    assert f"{second} is not written" in said.err
    assert "plas train" not in said.err
    execute(quick(runs, candidates=second, quiet=True))
    assert second.exists()


@pytest.mark.slow
def test_token_counts_are_proposed_where_the_form_has_them_and_doubted_where_not(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "next.csv"
    execute(quick(runs, where=(), form="chinchilla", candidates=out, next=12))
    rows = list(csv.DictReader(out.open()))
    assert {float(row["tokens"]) for row in rows} == {10e9, 2e9}
    said = capsys.readouterr().out
    assert "tokens vary" not in said
    execute(quick(runs, where=(), quiet=True))
    said = " ".join(capsys.readouterr().out.split())
    assert "the rows differ in tokens" in said
    assert "--where tokens=10000000000 keeps 20 of 30 rows of one count" in said
    assert "Their training FLOP are unknown: give --tokens" in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"next": None}, "stop_below: expected --next N with it"),
        ({"stop_below": float("nan")}, "stop_below: expected nats per 1e18 training FLOP"),
        ({"stop_below": -1.0}, "stop_below: expected nats per 1e18 training FLOP"),
        ({"bootstraps": 0}, "stop_below: expected draws to judge the picks by"),
        ({"runs": ()}, "stop_below: expected a CSV of trained models with it"),
    ],
)
def test_a_limit_that_cannot_be_held_is_a_clear_line(changes: dict[str, Any], said: str) -> None:
    request = FitRequest(**({"runs": (Path("runs.csv"),), "next": 6, "stop_below": 0.1} | changes))
    with pytest.raises(UsageError, match=said):
        execute(request)
