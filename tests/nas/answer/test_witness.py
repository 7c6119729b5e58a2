"""Gains of laws that do not rest on published trainings stand beside what `evidence` says of the same pair of designs."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.answer.answer_document import WITNESS, beside_baselines
from nas.answer.first_screen import show, show_head
from nas.answer.outcome import Outcome
from nas.answer.outcome_files import pick_columns, summary
from nas.answer.sentences import headline, limits
from nas.answer.sureness import (
    Witness,
    dense_twin,
    difference_in_words,
    evidence_beside,
    needs_witness,
    parts_lines,
    parts_of_gain,
    witness_in_words,
    witnesses,
)
from nas.answer.three_sentences import three_sentences
from nas.files.yaml_source import dump
from nas.pages.run_page import run_page
from nas.problem.uncertainty import Difference, paired
from nas.search.assembly import Study
from nas.study.baselines import baseline
from nas.study.catalogue import load_law
from objectives.loss_law.layer_deltas import nats
from search_spaces.architectures import Architectures

Concluded = Callable[..., Outcome]
MODEL = "Qwen2.5-0.5B"
QUICK: dict[str, Any] = {"applications": {}}
OWN_LAW: dict[str, Any] = {
    "name": "ours",
    "form": "parameters_power",
    "coefficients": {"kappa": 480.0, "alpha": 0.35, "l_inf": 1.8},
    "residual_sd": 0.02,
}
NAN = float("nan")


@pytest.fixture
def bare(concluded: Concluded) -> Outcome:
    """The paper's study, solved."""
    return concluded(None, algo="exact", space="paper", baselines=["qwen2.5_0.5b"], **QUICK)


def row_of(found: Outcome, label: str) -> str:
    """What `evidence` says in a row beside the model."""
    (table,) = beside_baselines(found)
    return next(row for row in table.texts if row[0] == label)[table.header.index(WITNESS)]


def test_every_row_beside_a_model_has_both_witnesses(bare: Outcome) -> None:
    law = evidence_beside(bare.study.problem.scenario.law)
    (table,) = beside_baselines(bare)
    assert len(table.rows) == len([pick for pick in bare.picks if pick.question.baseline]) > 2
    for pick, told in zip(bare.picks, bare.witnesses, strict=True):
        assert (told is None) == (not pick.question.baseline or pick.answer is None)
        if told is None or pick.answer is None:
            continue
        design = bare.study.problem.architectures(pick.answer.genotypes)
        by_hand = paired(law, design, bare.study.baselines[0].architecture)[0]
        assert told.difference.nats == pytest.approx(by_hand.nats)
        assert told.nats < 0.0
        if told.difference.known:
            assert asdict(told.difference) == pytest.approx(asdict(by_hand))
    assert all(row[table.header.index(WITNESS)].startswith("evidence: ") for row in table.rows)


def test_a_sign_that_evidence_does_not_give_is_said_and_its_own_pick_is_named(bare: Outcome) -> None:
    assert "-7.3 %" in " ".join(beside_baselines(bare)[0].texts[1])
    said = row_of(bare, "no LM head, equal memory")
    assert said.startswith("evidence: disagrees, ")
    assert said.endswith("; its own pick: 16 layers, width 1,792, dense")
    confirmed = row_of(bare, "no LM head")
    assert re.fullmatch(
        r"evidence: -0\.09 nats \(90 %: -0\.\d\d to -0\.\d\d\), better with probability 0\.9\d", confirmed
    )
    outside = row_of(bare, "no LM head, twice the memory")
    assert outside.startswith("evidence: -0.05 nats, outside of the evidence; its own pick: ")


def test_its_own_pick_is_the_lowest_loss_under_evidence_within_the_same_limits(bare: Outcome) -> None:
    problem, law = bare.study.problem, evidence_beside(bare.study.problem.scenario.law)
    everything = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    designs = problem.architectures(everything.genotypes)
    loss = np.where(law.extrapolates(designs) | ~everything.feasible, np.inf, law.loss(designs))
    for pick, told in zip(bare.picks, bare.witnesses, strict=True):
        if told is None or told.own is None or pick.question.vocabulary not in (None, 0):
            continue
        within = np.ones(len(loss), dtype=bool)
        for budget in pick.question.budgets:
            within &= everything.metrics[budget.metric] <= budget.limit
        within &= (designs.n_experts == 1) | (not pick.question.dense)
        assert told.solved
        assert float(law.loss(told.own)[0]) == pytest.approx(float(loss[within].min()))


@pytest.mark.parametrize(
    ("nats", "difference", "said"),
    [
        (-0.1, Difference(-0.11, -0.19, -0.04, 0.98), "-0.11 nats (90 %: -0.19 to -0.04), better with probability 0.98"),
        (-0.1, Difference(-0.01, -0.05, 0.06, 0.6), "no difference shown, -0.01 nats (90 %: -0.05 to +0.06), better with probability 0.60"),
        (-0.1, Difference(0.02, -0.05, 0.09, 0.29), "disagrees, no difference shown, +0.02 nats (90 %: -0.05 to +0.09), better with probability 0.29"),
        (-0.1, Difference(0.05, 0.01, 0.12, 0.03), "disagrees, +0.05 nats (90 %: +0.01 to +0.12), better with probability 0.03"),
        (-0.1, Difference(0.05, NAN, NAN, NAN), "disagrees, +0.05 nats, outside of the evidence"),
        (0.1, Difference(0.05, 0.01, 0.12, 0.03), "+0.05 nats (90 %: +0.01 to +0.12), better with probability 0.03"),
    ],
)  # fmt: skip
def test_what_a_witness_says(nats: float, difference: Difference, said: str) -> None:
    assert witness_in_words(Witness(nats, difference)) == said


def test_under_evidence_and_fits_with_it_as_their_prior_nothing_is_doubled(concluded: Concluded) -> None:
    evidence = load_law("evidence")
    fitted = evidence.model_copy(update={"name": "ours", "provenance": {"prior": {"name": "evidence"}}})
    assert not needs_witness(evidence)
    assert not needs_witness(fitted)
    assert all(needs_witness(load_law(name)) for name in ("hw_codesign", "sparsity_iso", "chinchilla"))
    found = concluded(60, law="evidence", baselines=["qwen2.5_0.5b"], **QUICK)
    assert set(found.witnesses) == {None}
    assert found.changes is not None
    assert {each.witness for each in found.changes.tried} == {None}
    assert WITNESS not in beside_baselines(found)[0].header
    assert "evidence" not in summary(found)["picks"][-1]


def test_a_change_of_a_budget_is_held_against_it_too(concluded: Concluded) -> None:
    found = concluded(None, algo="exact", space="paper", budgets={"total_ms": 300}, **QUICK)
    assert found.changes is not None
    best = found.changes.best
    assert best is not None
    assert best.witness is not None
    assert best.witness.nats == pytest.approx(-best.nats)
    said = three_sentences(found)
    assert said is not None
    assert f"[evidence: {witness_in_words(best.witness)}]" in said.buys
    (row,) = [each for each in summary(found)["answer"]["changes"] if each["kind"] == "budget" and each["nats"]]
    assert row["evidence"]["confirms"] is best.witness.confirms


def test_a_law_of_ones_own_that_says_how_sure_it_is_has_it_beside_its_intervals(concluded: Concluded) -> None:
    found = concluded(120, law=OWN_LAW, baselines=["qwen2.5_0.5b"], **QUICK)
    told, said = found.witnesses[0], three_sentences(found)
    assert told is not None
    assert said is not None
    assert f"[evidence: {witness_in_words(told)}]" in said.train
    assert not {name for name in pick_columns(found) if "evidence" in name}
    assert summary(found)["picks"][0]["evidence"]["nats"] == pytest.approx(told.difference.nats)


@pytest.mark.slow
def test_of_a_large_space_its_own_pick_is_of_what_was_evaluated(concluded: Concluded) -> None:
    found = concluded(60, space="fine", law=OWN_LAW, baselines=["qwen2.5_0.5b"], **QUICK)
    doubted = [told for told in found.witnesses if told is not None and told.own is not None]
    assert doubted
    assert not any(told.solved for told in doubted)
    designs = found.study.problem.architectures(found.evaluations.genotypes)
    shapes = set(zip(designs.depth.tolist(), designs.width.tolist(), designs.n_experts.tolist(), strict=True))
    assert {(int(o.depth[0]), int(o.width[0]), int(o.n_experts[0])) for told in doubted if (o := told.own)} <= shapes
    assert "its own pick of the evaluated: " in witness_in_words(doubted[0])


def test_the_bare_command_says_whose_study_and_what_its_law_gets_wrong(
    bare: Outcome, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, *_ = headline(bare.study.problem, bare.study.config, bare.study.calibration_note)
    assert first == "exact, seed 0: paper space, 13,120 architectures; the paper's study and law"
    assert second == "Law hw_codesign: wrongly favours experts at equal memory and few active ones (K)"
    assert max(len(first), len(second)) <= 80
    show(bare, Path("run"))
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("Best design: 32 layers, width 3,072, 8 experts of which one is used")
    assert (
        "As fast as Qwen2.5-0.5B (93.4 ms): 0.32 nats lower, 3.52 for 0.72 GB; in its memory 0.08 nats lower." in said
    )
    assert "By published trainings: 0.09 nats lower (90 %: 0.01 to 0.18)." in said
    show_head(bare.study.problem, bare.study.config, bare.study.calibration_note, verbose=False)
    head = capsys.readouterr().out.splitlines()
    assert head[0] == "The paper's study: NVIDIA Jetson AGX Orin 64 GB, fp16, 1,024 tokens in, 16 out"
    assert head[1] == "Law hw_codesign: wrongly favours experts at equal memory and few active ones (K)"


def test_the_page_and_the_long_tables_have_both_for_every_row(
    bare: Outcome, capsys: pytest.CaptureFixture[str]
) -> None:
    flat = unescape(re.sub("<[^>]+>", "", run_page(bare, "run", {}, {})))
    show(bare, Path("run"), verbose=True)
    said = " ".join(capsys.readouterr().out.split())
    for told in filter(None, bare.witnesses):
        assert f"evidence: {witness_in_words(told)}" in flat
        assert f"evidence: {witness_in_words(told)}" in said


@pytest.mark.slow
def test_explain_and_select_say_it_too(inside: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "law.yaml").write_text(dump(OWN_LAW))
    flags = (
        "--law",
        "law.yaml",
        "--algo",
        "exact",
        "--budget",
        "total_ms=100",
        "--set",
        "baselines=qwen2.5_0.5b",
        "--quiet",
        "--no-plots",
        "--out",
        "run",
    )
    assert inside("run", *flags).code == 0
    (picked,) = json.loads(inside("select", "run", "--select", "best", "--json").out)
    assert np.isfinite(picked[f"evidence_difference_{MODEL}"])
    explained = json.loads(inside("explain", "run", "--select", "best", "--json").out)
    assert explained["evidence"][MODEL]["nats"] == pytest.approx(picked[f"evidence_difference_{MODEL}"])
    relaxed = next(each["relaxed"] for each in explained["gains"]["budgets"] if each["metric"] == "total_ms")
    assert {"nats", "low", "high", "better", "confirms"} <= relaxed["evidence"].keys()
    said = inside("explain", "run", "--select", "best").out
    assert said.count("[evidence: ") >= 3
    assert f"Against {MODEL} trained alike: " in said


def test_which_part_of_a_gain_rests_on_kinds_of_layers_and_on_experts(studied: Callable[..., Study]) -> None:
    study = studied(space="edge2026", law="evidence", baselines=["qwen2.5_0.5b"])
    law, (model,) = study.problem.scenario.law, study.baselines
    designs = study.problem.architectures(study.problem.space.sample(50, np.random.default_rng(1)))
    costs = nats(designs, law.layer_deltas, law.layer_context)
    row = int(np.flatnonzero((costs != 0.0) & (designs.n_experts > 1))[0])
    design = designs[[row]]
    found = parts_of_gain(law, design, model.architecture)
    assert found is not None
    assert found.layers == pytest.approx(costs[row])
    assert found.whole == pytest.approx(float(law.loss(design)[0] - law.loss(model.architecture)[0]))
    active = law.feature(design, "active_parameters")
    assert law.feature(dense_twin(design), "active_parameters") == pytest.approx(active, rel=0.01)
    (line,) = parts_lines(law, design, study.baselines)
    assert f"{found.layers:+.2g} rest on costs of layer kinds (--deltas none)" in line
    assert f"{found.experts:+.2g} rest on experts; without {difference_in_words(found.left)}" in line
    assert parts_of_gain(law, model.architecture, model.architecture) is None


def test_the_answer_says_what_is_left_without_experts(concluded: Concluded) -> None:
    found = concluded(60, space="paper", law="evidence", budgets={"total_ms": 60}, baselines=["qwen2.5_0.5b"], **QUICK)
    answer, problem = found.picks[0].answer, found.study.problem
    assert answer is not None
    design = problem.architectures(answer.genotypes)
    assert design.n_experts[0] > 1
    assert parts_lines(problem.scenario.law, design, found.study.baselines)[0] in limits(found)


def test_a_pair_that_the_law_does_not_price_has_no_witness() -> None:
    dense = load_law("hw_codesign").model_copy(update={"prices": {"n_experts": (1.0, 1.0)}})
    sparse, model = baseline("qwen2.5_0.5b").architecture, baseline("qwen2.5_0.5b").architecture
    sparse = replace(sparse, n_experts=8 * sparse.n_experts)
    both = Architectures.concatenate([sparse, model]), Architectures.concatenate([model, model])
    unpriced, told = witnesses(dense, *both)
    assert unpriced is None
    assert told is not None
