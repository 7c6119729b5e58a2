"""How sure an answer is: differences, expected regrets and steps against draws and misfits that are sampled, and where each is said."""

import csv
import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import nas
from nas.answer.design_words import describe
from nas.answer.first_screen import show
from nas.answer.outcome import Outcome
from nas.answer.outcome_files import doubt_in_numbers, pick_columns, summary, write_files
from nas.answer.sentences import limits
from nas.answer.sureness import (
    EVIDENCE,
    Witness,
    chance,
    difference_in_words,
    witness_in_words,
)
from nas.answer.under_laws import notes
from nas.files.yaml_source import dump
from nas.problem.picks import Pick
from nas.problem.uncertainty import AS_GOOD, Difference, differences, tied
from nas.search.assembly import Study
from nas.study.catalogue import load_law
from nas.study.study_laws import left_out_line, records
from objectives.loss_law.coverage import logs_of
from search_spaces.architectures import Architectures

Concluded = Callable[..., Outcome]
Inside = Callable[..., Any]
MODEL = "Qwen2.5-0.5B"
SD = 0.02
DRAWN = np.random.default_rng(4).normal((480.0, 0.35, 1.8), (30.0, 0.01, 0.2), (12, 3))
LAW: dict[str, Any] = {
    "name": "ours",
    "form": "parameters_power",
    "coefficients": {"kappa": 480.0, "alpha": 0.35, "l_inf": 1.8},
    "draws": [" ".join(map(repr, row)) for row in DRAWN.tolist()],
    "residual_sd": SD,
}
UNSURE = {key: value for key, value in LAW.items() if key not in ("draws", "residual_sd")}
QUICK = {"applications": {"robot": {"total_ms": 20}}}


@pytest.fixture
def outcome(concluded: Concluded) -> Outcome:
    return concluded(120, law=LAW, **QUICK)


def trained(losses: np.ndarray[Any, Any], sd: float = SD) -> np.ndarray[Any, Any]:
    """Models that are trained: a draw of the law for all, a misfit of each; losses (draws, n)."""
    rng = np.random.default_rng(9)
    return losses[rng.integers(0, len(losses), 100_000)] + rng.normal(0.0, sd, (100_000, losses.shape[1]))


def test_every_pick_is_compared_with_the_model_as_trained_ones_would_be(outcome: Outcome) -> None:
    law, (model,) = outcome.study.problem.scenario.law, outcome.study.baselines
    assert outcome.doubt is not None
    assert model.label == MODEL
    for pick, found in zip(outcome.picks, outcome.doubt.differences, strict=True):
        if pick.answer is None:
            assert found == {}
            continue
        own = outcome.study.problem.architectures(pick.answer.genotypes)
        sampled = trained(law.drawn_losses(Architectures.concatenate([own, model.architecture])))
        gap = sampled[:, 0] - sampled[:, 1]
        told = found[MODEL]
        assert told.nats == pytest.approx(float(law.loss(own)[0] - law.loss(model.architecture)[0]))
        assert (told.low, told.high) == pytest.approx(tuple(np.quantile(gap, [0.05, 0.95])), abs=0.01)
        assert told.better == pytest.approx((gap < 0).mean(), abs=0.01)


@pytest.mark.parametrize(
    ("study", "cheaper"),
    [({"law": LAW, **QUICK}, False), ({"law": EVIDENCE, "space": "paper", "budgets": {"total_ms": 100}}, True)],
    ids=["ours", EVIDENCE],
)
def test_the_designs_that_are_not_told_apart_from_the_answer_are_counted_and_the_cheapest_named(
    study: dict[str, Any], cheaper: bool, concluded: Concluded, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = concluded(1000, **study)
    problem, doubt, found = outcome.study.problem, outcome.doubt, outcome.evaluations
    assert doubt is not None
    alike = doubt.not_told_apart
    assert alike is not None
    answer = outcome.picks[0].answer
    assert answer is not None
    designs = problem.architectures(found.genotypes)
    apart = [row[0] for row in differences(problem.scenario.law, designs, problem.architectures(answer.genotypes))]
    same = np.array([each.known and each.low <= 0 <= each.high for each in apart])
    same &= found.feasible & (found.keys != answer.keys[0])
    assert alike.number == same.sum() > 0
    cost, loss = found.metrics["total_ms"], found.metrics["loss"]
    good = found.feasible & (loss <= answer.metrics["loss"][0] + AS_GOOD)
    assert alike.cost == cost[good].min()
    assert (alike.cost < answer.metrics["total_ms"][0]) == (alike.cheapest is not None) == cheaper
    said = next(line for line in limits(outcome) if line.startswith("Within your budgets"))
    assert said == f"Within your budgets {same.sum():,} evaluated designs are not told apart from the answer"
    numbers = doubt_in_numbers(doubt)["not_told_apart"]
    assert (numbers["number"], numbers["cost"], numbers["loss"]) == (alike.number, alike.cost, alike.loss)
    show(outcome, Path("run"))
    screen = " ".join(capsys.readouterr().out.split())
    if alike.cheapest is None:
        assert alike.loss == answer.metrics["loss"][0]
        assert numbers["cheapest"] is None
        assert "fastest, " not in screen
        return
    rows = np.flatnonzero(good & (cost == alike.cost))
    equal = [describe(problem.architectures(found.genotypes[[row]])) for row in rows]
    assert describe(alike.cheapest) in equal
    assert alike.loss == loss[rows[equal.index(describe(alike.cheapest))]]
    assert numbers["cheapest"] == describe(alike.cheapest)
    size = f"{alike.cheapest.depth[0]} layers, width {alike.cheapest.width[0]:,}"
    assert re.search(rf"fastest, \+0\.02 {alike.loss:.2f} [\d.,]+ [\d.]+ {size}, ", screen)


def test_files_hold_what_is_said(outcome: Outcome, tmp_path: Path) -> None:
    write_files(tmp_path, outcome)
    assert outcome.doubt is not None
    every = csv.DictReader((tmp_path / "picks.csv").open(encoding="utf-8"))
    rows = [row for row in every if not row["question"].startswith("on the device: ")]
    kept = [d for p, d in zip(outcome.picks, outcome.doubt.differences, strict=True) if p.answer is not None]
    for row, found in zip(rows, kept, strict=True):
        d = found[MODEL]
        written = [row[f"difference_{MODEL}{end}"] for end in ("", "_low", "_high")] + [row[f"better_than_{MODEL}"]]
        assert list(map(float, written)) == pytest.approx([d.nats, d.low, d.high, d.better])
    told = json.loads((tmp_path / "summary.json").read_text())
    assert told["doubt"]["frontier_steps"] == outcome.doubt.steps
    alike = outcome.doubt.not_told_apart
    kept_alike = told["doubt"]["not_told_apart"]
    assert (kept_alike is None) == (alike is None)
    if alike is not None:
        numbers = {"number": alike.number, "metric": "total_ms", "cost": alike.cost, "loss": alike.loss}
        cheapest = None if alike.cheapest is None else describe(alike.cheapest)
        assert kept_alike == {**numbers, "cheapest": cheapest}
    assert told["picks"][0]["differences"][MODEL]["better"] == pytest.approx(kept[0][MODEL].better)
    groups = [int(row["tied_group"]) for row in csv.DictReader((tmp_path / "frontier.csv").open(encoding="utf-8"))]
    designs = outcome.study.problem.architectures(outcome.frontier.genotypes)
    expected = tied(outcome.study.problem.scenario.law, designs)
    assert expected is not None
    assert groups == expected.tolist()
    assert 1 < len(set(groups)) < len(groups)
    assert f"The law tells {len(set(groups))} steps of the frontier's {len(groups)} designs apart" in " ".join(
        limits(outcome)
    )


def test_expected_regrets_are_those_of_a_table_of_the_whole_space(outcome: Outcome) -> None:
    problem = outcome.study.problem
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    losses = problem.scenario.law.drawn_losses(problem.architectures(whole.genotypes))
    assert outcome.doubt is not None
    own = [p for p in outcome.picks if not p.question.baseline]
    assert len(own) == 2
    for pick, found in zip(outcome.picks, outcome.doubt.regrets, strict=True):
        if pick.question.baseline:
            assert found is None
            continue
        allowed = whole.feasible.copy()
        for budget in pick.question.budgets:
            allowed &= whole.metrics[budget.metric] <= budget.limit
        regret = (losses - losses[:, allowed].min(axis=1, keepdims=True)).mean(axis=0)
        assert found is not None
        assert pick.answer is not None
        assert found.least.proven
        assert found.least.expected_regret == pytest.approx(regret[allowed].min())
        assert found.nats == pytest.approx(regret[whole.keys == pick.answer.keys[0]][0])
    columns = pick_columns(outcome)
    assert columns["expected_regret"][0] >= columns["least_expected_regret"][0] >= 0.0
    said = " ".join(text for text in _shown(outcome, verbose=True).split())
    assert "Expected regret over the law's draws, nats: your budgets" in said


def _shown(outcome: Outcome, *, verbose: bool) -> str:
    import contextlib
    import io

    with contextlib.redirect_stdout(io.StringIO()) as told:
        show(outcome, Path("run"), verbose=verbose)
    return told.getvalue()


def test_the_answer_says_the_difference_with_interval_and_probability(outcome: Outcome) -> None:
    assert outcome.doubt is not None
    first = outcome.doubt.differences[0][MODEL]
    said = flat_text(_shown(outcome, verbose=True))
    assert f"against {MODEL} trained alike {difference_in_words(first)}" in said
    assert "nats (90 %), better" in said.partition("At most as slow as")[2]
    assert "uncertainty unknown" not in said
    assert "residual standard deviation 0.02 nats and 12 draws" in said


@pytest.mark.parametrize("width", [80, 100, 120])
def test_the_answer_fits_the_screen(outcome: Outcome, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    said = _shown(outcome, verbose=False)
    assert max(map(len, said.splitlines())) <= width
    assert re.search(r"\d\.\d\d nats (lower|higher) \(90 %: \d\.\d\d", said)


@pytest.mark.parametrize(
    ("found", "words", "short"),
    [
        (
            Difference(-0.114, -0.19, -0.041, 0.981),
            "-0.11 nats (90 %: -0.19 to -0.04), better with probability 0.98",
            "-0.11 (-0.19 to -0.04), 0.98",
        ),
        (
            Difference(0.0042, -0.02, 0.031, 0.3),
            "+0.004 nats (90 %: -0.020 to +0.031), better with probability 0.30",
            "+0.004 (-0.020 to +0.031), 0.30",
        ),
        (
            Difference(-0.5, np.nan, np.nan, np.nan),
            "-0.50 nats, outside of the evidence",
            "-0.50, outside of the evidence",
        ),
        (Difference(np.inf, np.nan, np.nan, np.nan), "not priced", "not priced"),
    ],
)
def test_a_difference_in_words(found: Difference, words: str, short: str) -> None:
    assert difference_in_words(found) == words
    assert difference_in_words(found, brief=True) == short


def test_a_probability_is_never_as_certain_as_it_is_not() -> None:
    assert [chance(p) for p in (0.0, 1e-4, 0.5, 0.9999, 1.0)] == ["0", "0.01", "0.50", "0.99", "1"]


def test_a_misfit_alone_gives_intervals_and_no_regret(concluded: Concluded) -> None:
    found = concluded(60, law={**UNSURE, "residual_sd": SD}, **QUICK)
    assert found.doubt is not None
    d = found.doubt.differences[0][MODEL]
    half = 1.6449 * np.sqrt(2) * SD
    assert (d.low, d.high) == pytest.approx((d.nats - half, d.nats + half), abs=1e-4)
    assert set(found.doubt.regrets) == {None}
    said = " ".join(limits(found))
    assert "uncertainty unknown" not in said
    assert "loss@q" not in said
    assert not any(text.startswith("Law evidence") for text in limits(found))


def test_outside_of_the_evidence_nothing_is_claimed(concluded: Concluded) -> None:
    found = concluded(60, law={**LAW, "fitted_on": {"width": [1.0, 500.0]}}, **QUICK)
    assert found.doubt is not None
    assert found.doubt.groups is not None
    assert (found.doubt.groups == -1).all()
    assert found.doubt.steps == 0
    assert set(found.doubt.regrets) == {None}
    assert not found.doubt.differences[0][MODEL].known
    assert "but no training supports it" in flat_text(_shown(found, verbose=False))
    said = _shown(found, verbose=True)
    assert "outside of the evidence" in said.partition("Train ")[2].partition("\n  On ")[0]
    assert "steps of the frontier" not in said
    assert summary(found)["picks"][0]["differences"][MODEL]["low"] is None


def test_a_law_without_uncertainty_is_held_against_published_trainings(concluded: Concluded) -> None:
    found = concluded(120, **QUICK)
    assert found.doubt is None
    assert not {name for name in pick_columns(found) if name.startswith(("difference", "better", "expected"))}
    pick = next(p for p in found.picks if p.question.baseline == MODEL and p.answer is not None)
    assert pick.answer is not None
    design = found.study.problem.architectures(pick.answer.genotypes)
    law = load_law(EVIDENCE).model_copy(update={"tokens": found.study.problem.scenario.law.tokens})
    by_hand = differences(law, design, found.study.baselines[0].architecture)[0][0]
    told = of_pick(found, pick)
    assert asdict(told.difference) == pytest.approx(asdict(by_hand), nan_ok=True)
    assert f"evidence: {witness_in_words(told)}" in flat_text(_shown(found, verbose=True))
    assert difference_in_words(told.difference) in witness_in_words(told)


def of_pick(found: Outcome, pick: Pick) -> Witness:
    """What `evidence` says of a pick of a run."""
    told = found.witnesses[found.picks.index(pick)]
    assert told is not None
    return told


def flat_text(shown: str) -> str:
    """Lines that a screen broke, in one."""
    return " ".join(shown.split())


def test_what_is_published_of_k_is_said_once_of_a_law_that_keeps_it_low(concluded: Concluded) -> None:
    found = concluded(200, space="paper", **QUICK)
    (line,) = [text for text in limits(found) if "Few active experts are the law's choice: hw_codesign" in text]
    assert "all 12 published steps (1 to 2 to 4 active, all else equal) lower the measured loss" in line
    assert flat_text(_shown(found, verbose=True)).count("Few active experts are the law's choice") == 1


def test_without_a_model_published_trainings_are_a_witness_of_changes_alone(concluded: Concluded) -> None:
    """Under a law to which more parameters are worse."""
    reverse = {**UNSURE, "coefficients": {"kappa": 0.1, "alpha": -0.05, "l_inf": 1.8}}
    found = concluded(None, algo="exact", baselines=[], law=reverse, **QUICK)
    assert found.picks[0].answer is not None
    assert set(found.witnesses) == {None}
    assert found.doubt is None
    assert found.changes is not None
    assert all(each.witness is not None for each in found.changes.tried if each.nats)


@pytest.fixture
def ran(inside: Inside, tmp_path: Path, tiny: dict[str, Any]) -> Inside:
    """Commands beside the run of a study of the tiny space under the made-up law."""
    study = {"space": tiny, "law": "law.yaml", "algo": "exact", **QUICK}
    (tmp_path / "law.yaml").write_text(dump(LAW))
    (tmp_path / "study.yaml").write_text(dump(study))
    assert inside("run", "--config", "study.yaml", "--out", "run", "--quiet").code == 0
    return inside


@pytest.mark.slow
def test_select_explain_and_python_say_it_too(ran: Inside) -> None:
    picked = json.loads(ran("select", "run", "--select", "best", "--json").out)[0]
    row = pd.read_csv("run/picks.csv").iloc[0]
    names = [f"difference_{MODEL}", f"difference_{MODEL}_low", f"difference_{MODEL}_high", f"better_than_{MODEL}"]
    assert [picked[name] for name in names] == pytest.approx([float(row[name]) for name in names])
    assert f"nats from {MODEL}, better" in ran("select", "run", "--select", "best").out
    assert f"nats from {MODEL}, better" in ran("select", "run", "--sweep", "total_ms=20:60:20").out
    explained = json.loads(ran("explain", "run", "--select", "best", "--json").out)
    assert explained["differences"][MODEL]["better"] == pytest.approx(picked[names[3]])
    assert f"Against {MODEL} trained alike: " in ran("explain", "run", "--select", "best").out
    assert f"Against {MODEL} trained alike: " not in ran("explain", "--model", "qwen2.5_0.5b", "--law", "law.yaml").out
    run = nas.read_run("run")
    assert run.pick()[names].tolist() == pytest.approx([picked[name] for name in names])
    pd.testing.assert_series_equal(run.picks[names[0]].head(1), pd.Series([picked[names[0]]], name=names[0]))
    solved = nas.load_study("study.yaml").solve()
    assert solved.pick()[names].tolist() == pytest.approx([picked[name] for name in names])
    assert set(names) <= set(solved.select("knee"))


def test_select_takes_the_cheapest_of_what_cannot_be_told_apart(ran: Inside) -> None:
    frontier = pd.read_csv("run/frontier.csv")
    steps = frontier.sort_values("total_ms").groupby("tied_group").first()
    chosen = pd.DataFrame(json.loads(ran("select", "run", "--distinguishable", "--json").out))
    assert sorted(chosen.total_ms) == pytest.approx(sorted(steps.total_ms))
    assert chosen.loss.is_monotonic_increasing
    best = json.loads(ran("select", "run", "--select", "best", "--distinguishable", "--json").out)[0]
    assert best["total_ms"] == pytest.approx(steps.loc[0, "total_ms"])
    few = json.loads(ran("select", "run", "--select", "diverse:2", "--distinguishable", "--json").out)
    assert {row["total_ms"] for row in few} <= set(chosen.total_ms)
    said = ran("select", "run", "--distinguishable")
    assert "Of each step of the frontier that the law tells apart the cheapest alone" in said.out
    assert ran("select", "run", "--distinguishable", "--sweep", "total_ms=20:60:20").code == 2


def test_select_solves_the_expected_regret_of_a_pick_over_the_whole_space(
    ran: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("select", "run", "--select", "budget:total_ms=40", "--expected-regret")
    evaluated = json.loads(ran(*asked, "--json").out)[0]
    monkeypatch.setattr("nas.exact.expected_regret.COVERED", 0)
    solved = json.loads(ran(*asked, "--json").out)[0]
    names = ("expected_regret", "least_expected_regret")
    assert [solved[name] for name in names] == pytest.approx([evaluated[name] for name in names], abs=1e-8)
    assert solved["least_expected_architecture"] == evaluated["least_expected_architecture"]
    assert solved["least_expected_of"] == evaluated["least_expected_of"] == "space"
    assert solved["expected_regret"] >= solved["least_expected_regret"] >= 0.0
    said = " ".join(ran(*asked).out.split())
    assert f"Expected regret over the law's draws, nats: {solved['expected_regret']:.4f}, " in said
    assert "(proven over all " in said
    refused = ran("select", "run", "--expected-regret")
    assert refused.code == 2
    assert "expected-regret: expected a single pick, got 'frontier'" in refused.err


def test_a_law_without_uncertainty_tells_nothing_apart(inside: Inside, tmp_path: Path, tiny: dict[str, Any]) -> None:
    (tmp_path / "study.yaml").write_text(dump({"space": tiny, "algo": "exact", **QUICK}))
    assert inside("run", "--config", "study.yaml", "--out", "run", "--quiet").code == 0
    refused = inside("select", "run", "--distinguishable")
    assert refused.code == 2
    assert "distinguishable: expected a law with draws or a residual sd, got hw_codesign with neither" in refused.err


def test_a_quantile_of_the_loss_is_an_objective_and_a_budget_and_what_it_is_of_is_said(ran: Inside) -> None:
    law = ("--config", "study.yaml", "--no-plots")
    assert "unknown text and tokenizer" not in ran("run", *law, "--out", "plain").out
    asked = ran("run", *law, "--objectives", "loss@q90,total_ms", "--verbose", "--out", "objective")
    assert asked.code == 0, asked.err
    assert "loss@q is of one loss on an unknown text and tokenizer" in asked.out
    limit = float(pd.read_csv("objective/frontier.csv")["loss@q90"].median())
    within = ran("run", *law, "--budget", f"loss@q90={limit}", "--verbose", "--out", "budget")
    assert within.code == 0, within.err
    assert pd.read_csv("budget/frontier.csv")["loss@q90"].max() <= limit
    assert "loss@q is of one loss" in within.out


@pytest.mark.slow
def test_preset_device_takes_published_trainings_and_says_so(
    inside: Inside, tmp_path: Path, tiny: dict[str, Any]
) -> None:
    (tmp_path / "study.yaml").write_text(dump({"space": tiny, "algo": "exact", **QUICK}))
    line = ("run", "--config", "study.yaml", "--no-plots")
    said = inside(*line, "--preset", "device", "--verbose", "--out", "device").out
    assert said.startswith("On the device: ")
    assert f"Law {EVIDENCE}: pooled from" in said.splitlines()[1]
    rows = [rows for rows in load_law(EVIDENCE).provenance["pooled"].values() if rows]
    flat = " ".join(said.split())
    assert f"Law {EVIDENCE}: pooled from {sum(rows):,} published trainings in {len(rows)} tables" in flat
    assert left_out_line(load_law(EVIDENCE)) in flat
    assert "better with probability" in said
    for flags in ((), ("--preset", "paper"), ("--preset", "device", "--law", "hw_codesign")):
        name = "-".join(flags) or "bare"
        assert "\nLaw hw_codesign: wrongly favours" in inside(*line, *flags, "--out", name).out
    kept = json.loads(inside("explain", "bare", "--select", "best", "--preset", "device", "--json").out)
    assert kept["metrics"]["loss"] == json.loads(inside("select", "bare", "--select", "best", "--json").out)[0]["loss"]


def test_the_record_in_the_head_is_the_shipped_one_and_of_the_shipped_law_alone() -> None:
    law, by = load_law(EVIDENCE), records()["equal tokens"]
    said = left_out_line(law)
    assert said.startswith(f"best record on laboratories left out: {by[EVIDENCE].in_short} % of pairs")
    assert by[EVIDENCE].order == max(each.order for each in by.values())
    assert f"({max(by.keys() - {EVIDENCE}, key=lambda name: by[name].order)}: " in said
    assert left_out_line(load_law("hw_codesign")) == ""
    assert left_out_line(law.model_copy(update={"coefficients": {**law.coefficients, "A": 60.0}})) == ""


def test_a_design_unlike_any_that_was_trained_says_by_what_it_leaves(inside: Inside) -> None:
    line = ("explain", "--law", EVIDENCE, "--architecture")
    shape = "depth=12,width=1024,n_heads=16,n_kv_heads=4,n_experts={},top_k=1,expert_ffn_ratio={}"
    region = load_law(EVIDENCE).covers["sparse"]
    most = np.exp(logs_of(region.rows)[:, region.axes.index("n_experts")].max())
    many = " ".join(inside(*line, shape.format(4096, 4)).out.split())
    assert f"experts 4,096 (nearest trained: {most:,.0f})" in many
    least, most = region.usual["ffn_ratio"]
    thin = " ".join(inside(*line, shape.format(4, 0.5)).out.split())
    assert f"FFN ratio 0.5 (usual with experts: {least:.3g} to {most:.3g})" in thin
    usual = inside(*line, shape.format(16, 4)).out
    assert "outside of what law" not in " ".join(usual.split())


def test_a_vocabulary_that_is_priced_is_not_called_unseen(studied: Callable[..., Study]) -> None:
    for vocabulary, unseen in ((32_000, "vocabulary, text, "), ([16_000, 32_000], "text, ")):
        law = studied(law="evidence", preset="device", vocabulary=vocabulary, baselines=[]).problem.scenario.law
        assert any(f"evidence does not see {unseen}KV heads" in each for each in notes([law]))
