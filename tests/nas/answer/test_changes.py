"""What one change buys, held against every design of a space under the changed study."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nas
from nas.answer.changes import Change, Changes, changes_of
from nas.answer.outcome import Outcome
from nas.answer.outcome_files import pick_columns
from nas.answer.three_sentences import three_sentences
from nas.exact.gains import covered
from nas.files.yaml_source import dump
from nas.problem.breakdown import operators
from nas.problem.picks import answers
from nas.problem.problem import Problem
from nas.search.assembly import Study

Concluded = Callable[..., Outcome]


def _lowest(problem: Problem, among: np.ndarray[Any, Any] | None = None) -> float:
    genotypes = problem.space.genotypes(np.arange(problem.space.size)) if among is None else among
    priced = problem.evaluate(genotypes)
    safe = priced.feasible.copy()
    for budget in problem.budgets:
        safe &= priced.metrics.get(f"{budget.metric}@q80", np.zeros(len(safe))) <= budget.limit
    return float(priced.metrics["loss"][safe if safe.any() else priced.feasible].min())


def _by_kind(changes: Changes) -> dict[str, Change]:
    return {each.name: each for each in changes.tried}


def _study(tiny: dict[str, Any], **keys: Any) -> Any:
    return nas.load_study(space=tiny, name="tiny", **keys)


@pytest.mark.parametrize("evaluated", [40, 162])
def test_a_tenth_more_of_each_budget_buys_what_every_design_within_it_shows(
    evaluated: int, concluded: Concluded
) -> None:
    outcome = concluded(evaluated, budgets={"total_ms": 30, "resident_gb": 1})
    changes, problem = outcome.changes, outcome.study.problem
    assert changes is not None
    assert (changes.among, changes.whole) == (162, True)
    before = _lowest(problem)
    assert changes.loss == before
    assert [budget.metric for budget in problem.budgets] == ["memory_gb", "total_ms", "resident_gb"]
    for budget in problem.budgets[1:]:
        raised = tuple(replace(b, limit=1.1 * b.limit) if b is budget else b for b in problem.budgets)
        found = _by_kind(changes)[budget.metric]
        assert found.at == pytest.approx(1.1 * budget.limit)
        assert found.loss == _lowest(replace(problem, budgets=raised))
        assert found.nats == before - found.loss
        without = tuple(b for b in problem.budgets if b is not budget)
        assert (budget in changes.binding) == (_lowest(replace(problem, budgets=without)) < before)
    assert [each.nats for each in changes.tried] == sorted((each.nats for each in changes.tried), reverse=True)


@pytest.mark.parametrize(
    ("memory_gb", "resident_gb", "tried"), [(1.3, 1.3, 0), (1.3, 1.25, 1.3), (1.3, 1.0, 1.1), (1.0, 1.2, 0)]
)
def test_a_budget_rises_no_further_than_the_memory_there_is(
    memory_gb: float, resident_gb: float, tried: float, concluded: Concluded
) -> None:
    device = {
        "name": "small",
        "fp16": "10 TFLOP/s",
        "int8": "20 TOP/s",
        "bandwidth": "100 GB/s",
        "memory": f"{memory_gb} GB",
    }
    budgets = {"memory_gb": "none", "resident_gb": resident_gb}
    outcome = concluded(162, device=device, budgets=budgets)
    changes, said = outcome.changes, three_sentences(outcome)
    assert changes is not None
    assert said is not None
    assert [each.at for each in changes.tried] == ([pytest.approx(tried)] if tried else [])
    words = f"resident_gb <= {resident_gb:g} is all there is"
    assert (words in said.buys) == (not tried)
    assert ("No one change is left to try: " in said.buys) == (not tried)


def test_vocabulary_format_and_tokens_are_tried_as_studies_of_their_own_would_find(tiny: dict[str, Any]) -> None:
    keys = {
        "preset": "device",
        "outside": "allow",
        "precision": "int8",
        "precision_law": "kumar",
        "budgets": {"total_ms": 60},
    }
    outcome_of = _study(tiny, **keys)
    said = outcome_of.search(algo="exact")
    assert "one change" in said.answer
    study = outcome_of.assembled
    changes = _changes(study)
    found = _by_kind(changes)
    assert set(found) == {"total_ms", "resident_gb", "vocabulary", "format", "tokens"}
    assert found["format"].at == "int4"
    narrower = _study(tiny, **{**keys, "precision": "int4"}).problem
    assert found["format"].loss == pytest.approx(_lowest(narrower), rel=1e-12)
    own = study.problem.scenario.law.tokens
    assert own is not None
    twice = _study(tiny, **keys, tokens=2 * own).problem
    assert found["tokens"].at == 2 * own
    assert found["tokens"].loss == pytest.approx(_lowest(twice), rel=1e-12)
    at_equal_text = study.problem.at_equal_text()
    sizes = {size: _lowest(at_equal_text.with_vocabulary(size)) for size in (64_000, 32_000, 16_000)}
    assert found["vocabulary"].loss == pytest.approx(min(sizes.values()), rel=1e-12)
    assert sizes[int(found["vocabulary"].at)] == min(sizes.values())


@pytest.mark.parametrize(("linear", "lacking"), [("mamba2", "mamba2"), ("conv", "")])
def test_layers_that_no_engine_runs_are_a_kernel_to_write(linear: str, lacking: str) -> None:
    axes = {"depth": [12, 16], "width": [1024, 1536], "n_experts": [1, 8], "top_k": [1, 2], "expert_ffn_ratio": [1, 2]}
    layers = ["full", {"linear": linear, "period": 4} if lacking else {"conv": 3, "period": 2}]
    space = {"name": "kinds", "axes": {**axes, "n_kv_heads": [4], "layers": layers}}
    prompt: dict[str, Any] = {"input_tokens": 16_384, "output_tokens": 512, "budgets": {"total_ms": 300_000}}
    device: dict[str, Any] = {"device": "raspberry_pi_5", "precision": "q4_k_m", "law": "evidence", "preset": "device"}
    study = _study(space, **device, **prompt)
    said = study.solve().answer
    assert "Runs as trained in llama.cpp" in str(said)
    assert (f"a kernel of yours for {lacking} layers (gain borrowed from 42 public pairs" in str(said)) == bool(lacking)
    changed = [each for each in _changes(study.assembled).tried if each.kind == "kernel"]
    assert len(changed) == bool(lacking)


def _changes(study: Any) -> Changes:
    problem = study.problem
    every = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    pick = answers(problem, every)[0].answer
    assert pick is not None
    found = changes_of(study, pick, every, solved=False)
    assert found is not None
    return found


def test_what_is_not_priced_is_said_with_its_reason(concluded: Concluded) -> None:
    changes = concluded(60, precision="int8").changes
    assert changes is not None
    assert changes.unpriced == ("fewer bits (give --precision-law)", "more tokens (not in the law)")
    assert changes.tried == ()


def test_fewer_bits_of_several_devices_are_said_not_to_be_priced(tiny: dict[str, Any]) -> None:
    study = _study(tiny, preset="paper", devices=["l4", "jetson_agx_orin_64gb"], precision_law="qat").assembled
    changes = _changes(study)
    assert changes.unpriced == ("fewer bits (several devices)", "more tokens (not in the law)")


def test_fewer_bits_whose_cost_is_unknown_are_not_tried(tiny: dict[str, Any]) -> None:
    changes = _changes(_study(tiny, precision_law="qat", budgets={"total_ms": 1000}).assembled)
    assert "format" not in {each.kind for each in changes.tried}
    assert changes.unpriced[0] == "fewer bits (qat does not say what int8 costs)"


def test_fewer_bits_with_which_nothing_fits_are_said(tiny: dict[str, Any]) -> None:
    slow = {"name": "slow at int8", "fp16": "1 TFLOP/s", "int8": "1 GOP/s", "bandwidth": "10 GB/s", "memory": "8 GB"}
    study = _study(tiny, preset="paper", device=slow, precision_law="kumar", budgets={"total_ms": 1000}).assembled
    changes = _changes(study)
    assert {each.kind for each in changes.tried} == {"budget"}
    assert changes.unpriced == ("fewer bits (nothing fits at int8)", "more tokens (not in the law)")


def test_a_metric_of_a_users_own_is_not_called_for_it(concluded: Concluded, user_module: Callable[[str], str]) -> None:
    name = user_module("def fn(a):\n    return a.width / 7.0\n") + ":fn"
    outcome = concluded(30, objectives=["loss", name], budgets={name: 150.0}, vocabulary=151_936)
    changes = outcome.changes
    assert changes is not None
    assert (changes.among, changes.whole) == (30, False)
    said = three_sentences(outcome)
    assert said is not None
    assert "the 30 evaluated designs" in said.buys
    assert "vocabulary (a metric of your own)" in said.buys
    found = outcome.evaluations
    within = found.metrics[name] <= 165.0
    assert _by_kind(changes)[name].loss == found.metrics["loss"][within].min()


@pytest.mark.slow
def test_a_space_of_a_trillion_designs_that_was_solved_says_what_binds_and_what_a_budget_buys(
    studied: Callable[..., Study],
) -> None:
    study = studied(space="huge", budgets={"memory_gb": 32})
    problem = replace(study.problem, queries=())
    pick = covered(problem).lowest(problem.budgets)
    assert pick is not None
    changes = changes_of(study, pick, pick, solved=True)
    assert changes is not None
    assert (changes.among, changes.whole) == (1_502_920_036_352, True)
    assert [budget.metric for budget in changes.binding] == ["memory_gb"]
    (raised,) = changes.tried
    found = covered(problem).lowest((replace(problem.budgets[0], limit=32 * 1.1),))
    assert found is not None
    assert raised.loss == found.metrics["loss"][0] < changes.loss == pick.metrics["loss"][0]


def test_what_the_search_missed_is_no_gain_of_a_change(concluded: Concluded) -> None:
    outcome = concluded(5, budgets={"total_ms": 40})
    said, best = three_sentences(outcome), _lowest(outcome.study.problem)
    assert said is not None
    assert outcome.changes is not None
    assert outcome.changes.loss == best
    pick = outcome.picks[0].answer
    assert pick is not None
    assert pick.metrics["loss"][0] > best
    assert f"This search missed loss {best:.4f} nats within your budgets (--algo exact finds it)." in said.buys


@pytest.mark.parametrize(("metric", "limit", "phase"), [("tpot_ms", 8, "decode"), ("prefill_ms", 90, "prefill")])
def test_what_time_goes_to_is_said_of_the_phase_that_is_asked_for(
    metric: str, limit: float, phase: str, concluded: Concluded
) -> None:
    outcome = concluded(162, budgets={metric: limit}, objectives=["loss", metric])
    said, pick = three_sentences(outcome), outcome.picks[0].answer
    assert said is not None
    assert pick is not None
    rows = operators(outcome.study.problem, outcome.study.problem.architectures(pick.genotypes))[phase]
    spent = {kind: sum(row.ms_by_kind[kind] for row in rows) for kind in ("compute", "memory")}
    most = max(spent, key=spent.__getitem__)
    share, where = 100 * spent[most] / sum(row.ms for row in rows), {"compute": "the arithmetic peak"}
    assert f"{share:.0f} % of {phase} goes to {where.get(most, 'memory bandwidth')}." in said.takes


@pytest.mark.parametrize(
    ("keys", "said_of_it"),
    [
        ({"precision": "int4"}, True),
        ({"precision": "int4", "precision_law": "qat"}, False),
        ({"precision": "fp16"}, False),
    ],
)
def test_a_loss_that_knows_nothing_of_few_bits_says_so(
    keys: dict[str, str], said_of_it: bool, concluded: Concluded
) -> None:
    said = three_sentences(concluded(60, **keys))
    assert said is not None
    assert (", as if in 16 bits)" in said.train) == said_of_it


@pytest.mark.slow
def test_application_picks_hold_on_the_device_they_are_shown_for(
    concluded: Concluded, shipped: Callable[..., dict[str, Any]]
) -> None:
    applications = {"a": {"decode_ms": 30}, "b": {"total_ms": 60}, "never": {"total_ms": 1e-3}}
    outcome = concluded(162, precision="fp16", applications=applications)
    on_device = outcome.on_device
    every = on_device.evaluate(outcome.evaluations.genotypes)
    held = {pick.question.label: pick for pick in outcome.held}
    assert set(held) == {"your budgets", *applications}
    memory = (every.metrics["memory_gb"] <= 64) & (every.metrics["resident_gb"] <= 0.9 * 64)
    for label, limits in applications.items():
        ((metric, limit),) = limits.items()
        within, answer = memory & (every.metrics[metric] <= limit), held[label].answer
        assert (answer is None) == (not within.any())
        if answer is not None:
            assert answer.metrics["loss"][0] == every.metrics["loss"][within].min()
            assert answer.metrics[metric][0] <= limit
    columns = pick_columns(outcome)
    rows = dict(zip(columns["question"], columns["total_ms"], strict=True))
    assert rows["on the device: b"] <= 60
    assert "on the device: never" not in rows
    assert concluded(60, preset="device", **shipped("nas.study.presets", "device")).held == ()


@pytest.mark.parametrize("budgets", [{"total_ms": 0.5}, {"total_ms": 3, "loss": 3.0}])
def test_where_nothing_fits_the_three_sentences_say_what_opens_a_design(
    budgets: dict[str, float], concluded: Concluded
) -> None:
    outcome = concluded(40, budgets=budgets)
    said = three_sentences(outcome)
    assert said is not None
    assert said.train.startswith("Nothing fits: of all 162 designs none is within ")
    assert ", for 1,024 tokens in and 16 out the closest takes total " in said.takes
    problem = outcome.study.problem
    if len(budgets) == 1:
        limit = float(said.buys.partition("total_ms <= ")[2].split()[0])
        raised = tuple(replace(b, limit=limit) if b.metric == "total_ms" else b for b in problem.budgets)
        assert np.isfinite(_lowest(replace(problem, budgets=raised)))
    else:
        assert said.buys.startswith("No one change opens a design")


def test_the_sentences_are_the_same_in_every_place(
    inside: Callable[..., Any], tmp_path: Path, tiny: dict[str, Any]
) -> None:
    (tmp_path / "study.yaml").write_text(
        dump({"preset": "paper", "space": tiny, "name": "tiny", "budgets": {"total_ms": 40}})
    )
    shown = inside("run", "--config", "study.yaml", "--algo", "exact", "--out", "run", "--verbose").out
    content = json.loads(inside("run", "--resume", "run", "--json").out)["answer"]
    assert len(content["sentences"]) == 3
    for sentence in content["sentences"]:
        assert " ".join(sentence.split()) in " ".join(shown.split())
    run = nas.read_run(tmp_path / "run")
    assert run.answer.splitlines() == content["sentences"]
    solved = nas.load_study(tmp_path / "study.yaml").solve().answer.splitlines()
    assert solved == content["sentences"]
    assert nas.load_study(tmp_path / "study.yaml").search(algo="exact").answer.splitlines() == solved
    page = (tmp_path / "run" / "report.html").read_text() if (tmp_path / "run" / "report.html").exists() else ""
    assert not page or all(sentence.split(";")[0] in page for sentence in content["sentences"])


def test_a_run_without_an_answer_says_how_to_go_on(tmp_path: Path, inside: Callable[..., Any]) -> None:
    inside("run", "--evaluations", "30", "--no-plots", "--out", "run")
    (tmp_path / "run" / "summary.json").unlink()
    with pytest.raises(nas.UsageError, match=r"answer: expected summary\.json of a finished run"):
        _ = nas.read_run(tmp_path / "run").answer
