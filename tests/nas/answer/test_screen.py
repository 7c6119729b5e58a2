"""What a run's answer advises: limits and numbers of this very run, never constants."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas import load_study
from nas.answer.answer_document import answer_document, own_picks
from nas.answer.device_times import in_ms
from nas.answer.first_screen import next_steps, show, show_head
from nas.answer.outcome import Outcome
from nas.answer.sentences import certainty
from nas.answer.three_sentences import answer_in_numbers, engines_line
from nas.document.document import Table
from nas.files.yaml_source import dump
from nas.problem.diagnosis import lines

Concluded = Callable[..., Outcome]
APPLICATIONS = ("embodied AI", "smart home", "autonomous driving", "private serving")


@pytest.mark.parametrize("objectives", [["loss", "total_ms"], ["loss"], ["decode_ms", "loss"], ["memory_gb"]])
@pytest.mark.parametrize("study", [{}, {"device": "raspberry_pi_5"}, {"budgets": {"total_ms": 6}}], ids=str)
def test_the_suggested_budget_opens_designs_and_leaves_others_out(
    study: dict[str, Any], objectives: list[str], concluded: Concluded
) -> None:
    outcome = concluded(120, objectives=objectives, **study)
    explained, chosen, *_ = next_steps(outcome, Path("run"))
    assert explained.endswith("explain run")
    found = re.search(r"--budget (\w+)=(\S+)", chosen)
    assert found is not None
    within = outcome.frontier.metrics[found[1]] <= float(found[2])
    assert within.any()
    assert len(within) == 1 or not within.all()


def test_more_evaluations_than_the_space_holds_are_not_suggested(concluded: Concluded) -> None:
    assert next_steps(concluded(100), Path("run"))[-1].endswith("--evaluations 162")
    assert not any("--evaluations" in step for step in next_steps(concluded(162), Path("run")))


def test_every_budget_is_relaxed_where_one_alone_opens_nothing(concluded: Concluded) -> None:
    budgets = {"total_ms": 3, "loss": 3.0}
    (line,) = next_steps(concluded(60, budgets=budgets), Path("run"))
    relaxed = dict(re.findall(r"--budget (\w+)=(\S+)", line))
    assert set(relaxed) == {*budgets}
    assert len(concluded(None, algo="exact", budgets={name: float(v) for name, v in relaxed.items()}).frontier) > 0


@pytest.mark.parametrize(
    ("study", "asked"),
    [
        ({}, APPLICATIONS),
        ({"budgets": {"memory_gb": "none"}}, APPLICATIONS),
        ({"budgets": {"tpot_ms": 1}}, ()),
        ({"budgets": {"tpot_ms": 1}, "applications": {"robot": {"decode_ms": 20}}}, ("robot",)),
        ({"applications": {}}, ()),
    ],
    ids=str,
)
def test_the_papers_applications_are_asked_where_no_budget_is_given(
    study: dict[str, Any], asked: tuple[str, ...], concluded: Concluded, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = concluded(60, **study)
    labels = [q.label for q in outcome.study.problem.queries if not q.baseline]
    assert labels == ["your budgets", *asked]
    show(outcome, Path("run"), verbose=True)
    table = capsys.readouterr().out.partition("Lowest predicted loss")[2].splitlines()
    assert table[2].lstrip().startswith("your budgets ")


def test_how_many_time_limits_are_missed_on_the_device_is_said_with_the_reason(
    concluded: Concluded, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = concluded(162, precision="fp16", applications={"a": {"decode_ms": 5}, "b": {"total_ms": 1e5}})
    show(outcome, Path("run"), verbose=True)
    said = " ".join(capsys.readouterr().out.split())
    missed = sum(
        there[f"device_{p.question.budget.metric}"] > p.question.budget.limit
        for p, there in zip(outcome.picks, outcome.device_times, strict=True)
        if p.question.budget and not p.question.baseline
    )
    assert missed == 1
    assert "1 of 2 time limits are missed there" in said
    assert "an LM head of 151,936 tokens" in said
    assert "fp16; efficiencies transferred from an int4 measurement" in said
    show(outcome, Path("run"))
    first = " ".join(capsys.readouterr().out.split())
    assert f"On the real device total time is about {in_ms(outcome.device_times[0]['device_total_ms'])} ms" in first
    assert "it adds an LM head, residuals and rotary embedding, achieved speeds." in first


def test_a_study_under_preset_device_has_no_second_time(
    concluded: Concluded, shipped: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = concluded(60, preset="device", **shipped("nas.study.presets", "device"))
    show(outcome, Path("run"))
    said = capsys.readouterr().out
    assert "real device" not in said


def test_an_application_that_nothing_meets_is_a_row_beside_times_on_the_device(concluded: Concluded) -> None:
    shown = own_picks(concluded(162, applications={"a": {"decode_ms": 1e-3}, "b": {"total_ms": 1e5}}))
    for column in ("on the device", "in convention"):
        assert [row[shown.header.index(column)] == "none fits" for row in shown.rows] == [False, True, False]
    assert "device_ms" in shown.header
    assert "0 of" not in " ".join(shown.notes)


def test_a_profile_that_is_far_off_says_so_in_every_answer(inside: Callable[..., Any]) -> None:
    """Above 25 % in a phase; below that the error is not in the line of the device."""
    held_out = {"prefill": [2.0, 1.9, 2.1], "decode": [1.1, 0.9, 1.0]}
    board = {"name": "B", "fp16": "6 TFLOP/s", "int8": "12 TOP/s", "bandwidth": "51.2 GB/s", "memory": "8 GB"}
    profile = {"engine": "E", "precision": "fp16", "compute_efficiency": 0.5, "held_out": held_out}
    Path("board.yaml").write_text(dump({**board, "profiles": [profile]}))
    answer = inside("explain", "--model", "qwen2.5_0.5b", "--preset", "device", "--device", "board.yaml")
    assert "efficiencies measured with E; prefill 50 % off on models held out" in " ".join(answer.out.split())
    assert "decode 10 % off" not in answer.out


def test_what_a_pick_takes_has_names_and_units_in_the_order_of_objectives_and_budgets(concluded: Concluded) -> None:
    budgets = {"resident_gb": 20, "decode_ms": 1e4, "total_ms": 1e4}
    shown = own_picks(concluded(60, objectives=["loss", "total_ms"], budgets=budgets))
    taken = shown.rows[0][shown.header.index("in convention")]
    assert re.fullmatch(r"[\d.]+ at total [\d.,]+ ms, resident [\d.]+ GB, decode [\d.,]+ ms", taken), taken


def test_a_limit_that_is_missed_on_the_device_is_marked_in_its_row(concluded: Concluded) -> None:
    applications = {"a": {"decode_ms": 5}, "b": {"total_ms": 1e5}}
    shown = own_picks(concluded(162, precision="fp16", applications=applications))
    there = [row[shown.header.index("in convention")] for row in shown.rows]
    assert [text.endswith(" !") for text in there] == [False, True, False]
    assert "Every limit holds in this study's convention" in shown.notes[0]


CASES: list[dict[str, Any]] = [
    {},
    {"budgets": {"total_ms": 20, "memory_gb": 2}},
    {"budgets": {"total_ms": 0.5}},
    {"objectives": ["loss", "total_ms", "memory_gb"]},
    {"objectives": ["loss"]},
    {"baselines": []},
    {"law": "evidence", "budgets": {"total_ms": 20}},
    {"device": "raspberry_pi_5", "law": "evidence", "budgets": {"total_ms": 2000}, "calibration": "typical"},
]


@pytest.mark.parametrize("study", CASES, ids=str)
def test_the_answer_is_one_screen_of_24_lines(
    study: dict[str, Any], concluded: Concluded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Head and answer, 80 columns wide but for the command to type, which is never broken; wider screens change nothing."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("LINES", raising=False)
    outcome = concluded(120, **study)
    show_head(outcome.study.problem, outcome.study.config, outcome.study.calibration_note, verbose=False)
    show(outcome, Path("run"))
    said = capsys.readouterr().out
    lines = said.splitlines()
    assert len(lines) <= 24
    assert all(len(line) <= 80 for line in lines if not line.startswith("Next: "))
    assert lines[-1].startswith("Next: ")
    monkeypatch.setenv("COLUMNS", "200")
    show(outcome, Path("run"))
    assert said.endswith(capsys.readouterr().out)


def test_the_first_screen_says_design_limits_comparison_and_distance(
    concluded: Concluded, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = concluded(120, law="evidence", budgets={"total_ms": 20, "memory_gb": 2})
    show(outcome, Path("run"))
    said = " ".join(capsys.readouterr().out.split())
    answer = outcome.picks[0].answer
    assert answer is not None
    design = outcome.study.problem.architectures(answer.genotypes)
    assert f"Best design: {design.depth[0]} layers, width {design.width[0]:,}" in said
    assert f"total time {in_ms(answer.metrics['total_ms'][0])} of 20 ms" in said
    assert f"memory {in_ms(answer.metrics['memory_gb'][0])} of 2 GB" in said
    first, rate = answer.metrics["prefill_ms"][0], 1e3 / answer.metrics["tpot_ms"][0]
    assert f"First token after {in_ms(first)} ms, then {in_ms(rate)} tokens per second." in said
    assert re.search(
        r"[\d.]+ times as fast as Qwen2.5-0.5B \([\d.]+ ms, above the limit\), both on 100 B tokens: [\d.]+ nats (lower|higher)( \(90 %: |, but no training)",
        said,
    )
    assert "of the exact frontier's" in said
    blind = "Law evidence does not see n_kv_heads: the cheapest was taken."
    assert outcome.blind == ("n_kv_heads",)
    assert said.count(blind) == 1
    rest = said.replace(blind, "")
    assert not re.search(r"r_single|n_kv|layers alone|\bE \d+ K \d|top-\d|binds|convention", rest)


def test_everything_that_the_screen_leaves_out_is_behind_verbose(
    concluded: Concluded, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = concluded(60)
    show(outcome, Path("run"), verbose=True)
    said = " ".join(capsys.readouterr().out.split())
    for section in answer_document(outcome).sections:
        assert section.title in said
        for part in section.parts:
            words = part if isinstance(part, str) else part.title if isinstance(part, Table) else ""
            assert " ".join(words.split()) in said
    assert said.endswith(next_steps(outcome, Path("run"))[-1])


def test_a_smaller_vocabulary_that_lets_designs_in_is_named_where_nothing_fits(concluded: Concluded) -> None:
    least = [concluded(None, algo="exact", vocabulary=v).frontier.metrics["total_ms"].min() for v in (16_000, 151_936)]
    asked: dict[str, Any] = {"algo": "exact", "budgets": {"total_ms": float(sum(least) / 2)}}
    outcome = concluded(None, vocabulary=151_936, **asked)
    diagnosis = outcome.diagnosis
    assert diagnosis is not None
    smaller = diagnosis.vocabulary
    assert smaller is not None
    assert smaller.own == 151_936
    assert smaller.read > 1024
    lengths = {"input_tokens": smaller.read, "output_tokens": smaller.written}
    within = concluded(None, vocabulary=smaller.size, **asked, **lengths)
    assert int(within.evaluations.feasible.sum()) == smaller.opens > 0
    said = f"A vocabulary of {smaller.size:,} in place of 151,936: {smaller.opens:,} designs fit within the budgets as they are, at equal text"
    assert said in " ".join(lines(diagnosis, True))
    assert any(f"--vocabulary {smaller.size}" in step for step in next_steps(outcome, Path("run")))


def test_commands_are_proposed_by_the_name_that_was_typed(
    concluded: Concluded, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = concluded(60)
    assert all(step.startswith("python -m nas.") for step in next_steps(outcome, Path("run")))
    monkeypatch.setattr("sys.argv", ["plas run", "--algo", "nsga2"])
    assert all(step.startswith("plas ") for step in next_steps(outcome, Path("run")))


@pytest.mark.parametrize("verbose", [False, True])
def test_a_law_that_is_mute_on_a_published_model_is_shown_without_it(
    verbose: bool, concluded: Concluded, capsys: pytest.CaptureFixture[str]
) -> None:
    """Qwen2.5-0.5B's FFN is 7 times its attention, and `conditional` prices 0.5 to 5."""
    outcome = concluded(120, law="conditional", baselines=["qwen2.5_0.5b"])
    show(outcome, Path("run"), verbose=verbose)
    said = capsys.readouterr().out
    assert "Best design: " in said
    assert not verbose or "loss (nats) over total_ms" in said
    words = "no loss by this law" if verbose else "this law gives no loss for that model"
    assert words in " ".join(said.split())
    assert not re.search(r"\binf\b|\bnan\b|-100\.0 %", said)


def test_all_of_the_hypervolume_is_100_percent(concluded: Concluded) -> None:
    outcome = concluded(20)
    assert outcome.distance is not None
    vars(outcome)["distance"] = replace(outcome.distance, gap=1.0)
    assert "gap 100 %" in " ".join(certainty(outcome))
    assert "gap 100 %" in " ".join(certainty(outcome, brief=True))


BOARD = {
    "name": "B",
    "chip": "npu",
    "fp16": "6 TFLOP/s",
    "int8": "12 TOP/s",
    "bandwidth": "51.2 GB/s",
    "memory": "8 GB",
}


@pytest.mark.parametrize("algo", ["exact", "nsga2"])
def test_a_pick_keeps_its_limit_in_4_of_5_cases_and_the_screen_says_what_that_costs(
    concluded: Concluded, capsys: pytest.CaptureFixture[str], algo: str
) -> None:
    evaluations = None if algo == "exact" else 2000
    limited = {"algo": algo, "device": BOARD, "calibration": "typical"}
    outcome = concluded(evaluations, **limited, budgets={"total_ms": 100})
    answer = outcome.picks[0].answer
    assert answer is not None
    if algo == "exact":
        safe = concluded(None, **limited, budgets={"total_ms@q80": 100}).picks[0].answer
        assert safe is not None
        assert answer.keys.tolist() == safe.keys.tolist()
    every = outcome.evaluations[outcome.evaluations.feasible]
    lowest = every.metrics["loss"].min()
    kept = every.metrics["loss"][every.metrics["total_ms@q80"] <= 100].min()
    assert lowest < kept == answer.first["loss"]
    show(outcome, Path("run"))
    said = " ".join(capsys.readouterr().out.split())
    assert f"Keeps total_ms <= 100 in 4 of 5 cases, which costs {kept - lowest:.2g} nats." in said
    assert "; total time limits it." in said
    content = answer_in_numbers(outcome)
    assert content is not None
    assert content["margin_nats"] == kept - lowest
    assert "in 4 of 5 cases" in content["sentences"][1]


def test_where_no_design_keeps_a_limit_in_4_of_5_cases_the_pick_is_within_it_as_predicted(
    concluded: Concluded, capsys: pytest.CaptureFixture[str]
) -> None:
    study = {"algo": "exact", "device": BOARD, "calibration": "typical"}
    fastest = concluded(None, **study, budgets={}).evaluations
    limit = 1.001 * float(fastest.metrics["total_ms"][fastest.ok].min())
    outcome = concluded(None, **study, budgets={"total_ms": limit})
    answer = outcome.picks[0].answer
    assert answer is not None
    assert answer.first["total_ms@q80"] > limit
    show(outcome, Path("run"))
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(r"No design keeps total_ms <= [\d.]+ in 4 of 5 cases; this one is within it as predicted\.", said)


def test_a_limit_at_another_quantile_is_kept_as_it_is_typed(concluded: Concluded) -> None:
    outcome = concluded(None, algo="exact", device=BOARD, calibration="typical", budgets={"total_ms@q50": 100})
    answer, every = outcome.picks[0].answer, outcome.evaluations
    assert answer is not None
    assert answer.first["loss"] == every.metrics["loss"][every.feasible].min()
    assert "total_ms@q80" not in every.metrics


def test_the_first_screen_says_which_limits_are_reached_or_what_the_next_better_design_needs(
    concluded: Concluded, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a space that takes long to solve the next better of what was evaluated; of another the change that buys most."""
    outcome = concluded(120, budgets={"total_ms": 20})
    assert outcome.changes is not None
    show(outcome, Path("run"))
    assert "; total time limits it." in " ".join(capsys.readouterr().out.split())
    assert outcome.picks[0].answer is not None
    taken = outcome.picks[0].answer.first["total_ms"]
    (far,) = (replace(budget, limit=1.2 * taken) for budget in outcome.changes.binding)
    vars(outcome)["changes"] = replace(outcome.changes, binding=(far,))
    show(outcome, Path("run"))
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(r"; no limit is reached; the next better, loss [\d.]+, needs total time [\d.,]+ ms\.", said)
    vars(outcome)["changes"] = None
    show(outcome, Path("run"))
    found = re.search(
        r"; the next better, loss ([\d.]+), needs total time ([\d.,]+) ms\.", " ".join(capsys.readouterr().out.split())
    )
    assert found is not None
    answer, every = outcome.picks[0].answer, outcome.evaluations
    assert answer is not None
    better = every.ok & (every.metrics["loss"] < answer.metrics["loss"][0])
    assert found[2] == in_ms(every.metrics["total_ms"][better].min())
    free = concluded(None, algo="exact", budgets={"total_ms": 1e6, "memory_gb": "none"})
    show(free, Path("run"))
    assert "; no limit is reached" in " ".join(capsys.readouterr().out.split())


def test_choices_are_the_lowest_loss_and_the_fastest_that_is_hardly_worse(
    concluded: Concluded, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = concluded(None, algo="exact")
    show(outcome, Path("run"))
    said = " ".join(capsys.readouterr().out.split())
    front, answer = outcome.evaluations[outcome.evaluations.feasible], outcome.picks[0].answer
    assert answer is not None
    least = front.metrics["total_ms"][front.metrics["loss"] <= answer.metrics["loss"][0] + 0.02].min()
    assert ("fastest, +0.02 " in said) == (least < answer.metrics["total_ms"][0])
    assert least == answer.metrics["total_ms"][0] or re.search(
        rf"fastest, \+0\.02 [\d.]+ {re.escape(in_ms(least))} ", said
    )


def test_a_model_that_misses_a_limit_is_not_as_fast(concluded: Concluded, capsys: pytest.CaptureFixture[str]) -> None:
    """The design beside it keeps the study's own limits: the screen says that the model does not, and how much faster the design is."""
    outcome = concluded(None, algo="exact", preset="device", budgets={"total_ms": 60}, baselines=["qwen2.5_0.5b"])
    show(outcome, Path("run"))
    said = " ".join(capsys.readouterr().out.split())
    compared = re.search(r"([\d.]+) times as fast as Qwen2.5-0.5B \(([\d.,]+) ms, above the limit\)", said)
    assert compared is not None, said
    assert float(compared[2]) > 60
    assert "As fast as" not in said
    pick = next(pick for pick in outcome.picks if pick.question.baseline == "Qwen2.5-0.5B")
    assert pick.answer is not None
    assert float(compared[1]) == pytest.approx(float(compared[2]) / pick.answer.first["total_ms"], rel=0.01)


def test_no_engine_is_named_where_none_is_known() -> None:
    for device, said in (("hailo_10h", "Whether an engine of this NPU runs it is not known."), ("rtx_4090", "Runs as")):
        problem = load_study(device=device, preset="device", precision="int8").problem
        assert engines_line(
            problem, problem.architectures(problem.space.sample(1, np.random.default_rng(0)))
        ).startswith(said)
