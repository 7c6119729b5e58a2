"""What an exact run answers again: other budgets, sweeps, gains, diagnoses; and that a killed solution goes on."""

import csv
import importlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.answer.gain_sentences import gains_told
from nas.answer.sentences import question_text
from nas.errors import UsageError
from nas.exact import infeasibility as exact_diagnosis
from nas.exact import solution as exact_solution
from nas.exact.checkpoint import section_of
from nas.exact.decomposition.branch_and_bound import FEW, BranchAndBound
from nas.exact.gains import Gains, beyond, gains
from nas.exact.infeasibility import diagnosed
from nas.exact.sweeps import parse_sweep, swept
from nas.files.yaml_source import dump, read
from nas.problem.diagnosis import diagnose, lines
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from search_spaces.space import SearchSpace

Inside = Callable[..., Any]
SPACE: dict[str, Any] = {
    "name": "some",
    "axes": {
        "depth": [4, 8, 12, 16, 20],
        "width": [768, 1024, 1280, 1536],
        "n_experts": [1, 4, 8, 16],
        "top_k": [1, 2],
        "expert_ffn_ratio": [0.5, 1, 2],
        "n_kv_heads": [1, 2, "n_heads"],
    },
}


@pytest.fixture
def problem(problem_of: Callable[..., Problem]) -> Problem:
    """A problem with two budgets that both bind somewhere."""
    made = problem_of(default_budget="none", budgets={"decode_ms": 40, "memory_gb": 2}, applications={}, baselines=[])
    return replace(made, space=SearchSpace.from_mapping(SPACE))


def everything(problem: Problem) -> Evaluations:
    """The whole space, evaluated."""
    return problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))


def best(problem: Problem, budgets: tuple[Budget, ...]) -> float:
    """The lowest loss within budgets, by brute force."""
    whole = replace(everything(problem), budgets=budgets)
    row = PickRule(None).row(whole)
    return np.inf if row is None else float(whole.metrics["loss"][row])


# Gains


@pytest.fixture
def found(problem: Problem) -> Gains:
    """The gains of the problem's pick."""
    answer = gains(problem)
    assert answer is not None
    return answer


def test_the_pick_is_the_one_of_brute_force(problem: Problem, found: Gains) -> None:
    whole = everything(problem)
    row = PickRule(None).row(whole)
    assert row is not None
    assert found.pick.keys.tolist() == [whole.keys[row]]


def test_a_budget_is_free_down_to_its_tightest_and_no_further(problem: Problem, found: Gains) -> None:
    loss = float(found.pick.metrics["loss"][0])
    for gain in found.budgets:
        others = tuple(b for b in problem.budgets if b.metric != gain.budget.metric)
        assert gain.tightest <= gain.budget.limit
        assert best(problem, (*others, Budget(gain.budget.metric, gain.tightest * (1 + 1e-9)))) == loss
        assert best(problem, (*others, Budget(gain.budget.metric, gain.tightest * (1 - 1e-9)))) > loss


def test_a_relaxation_buys_what_it_says_and_nothing_smaller_buys_anything(problem: Problem, found: Gains) -> None:
    loss, helped = float(found.pick.metrics["loss"][0]), 0
    for gain in found.budgets:
        others = tuple(b for b in problem.budgets if b.metric != gain.budget.metric)
        if gain.relaxed is None:
            assert best(problem, others) == loss
            continue
        helped += 1
        assert best(problem, (*others, Budget(gain.budget.metric, gain.relaxed.at))) == gain.relaxed.loss < loss
        assert gain.relaxed.gain == pytest.approx(loss - gain.relaxed.loss)
        assert best(problem, (*others, Budget(gain.budget.metric, gain.relaxed.at * (1 - 1e-9)))) == loss
    assert helped > 0, "a budget of this problem is here because it binds"


def test_steps_beyond_the_axes_are_the_best_of_spaces_that_hold_them(problem: Problem, found: Gains) -> None:
    loss = float(found.pick.metrics["loss"][0])
    expected = {}
    for axis, value, space in beyond(problem.space):
        reached = best(replace(problem, space=space), problem.budgets)
        if reached < loss * (1 - 1e-11):
            expected[axis, value] = reached
    assert expected
    assert {(gain.change, gain.at): gain.loss for gain in found.axes} == expected


@pytest.mark.parametrize(
    ("axes", "conditions", "steps"),
    [
        ({}, {}, {("depth", 24), ("width", 512), ("width", 1792), ("n_experts", 24), ("top_k", 3)}),
        ({"depth": [6]}, {}, {("depth", 5), ("depth", 7)}),
        ({"expert_ffn_ratio": None, "expert_size": [256, 512]}, {}, {("expert_size", 768)}),
        ({"expert_ffn_ratio": [1, 2]}, {"max_expert_ffn_ratio": 2}, {("expert_ffn_ratio", 3)}),
        ({"n_kv_heads": "divisors"}, {}, {("depth", 24)}),
    ],
)
def test_spaces_beyond_hold_one_further_value_and_all_others(
    axes: dict[str, Any], conditions: dict[str, Any], steps: set[tuple[str, float]]
) -> None:
    kept = {name: values for name, values in {**SPACE["axes"], **axes}.items() if values is not None}
    space = SearchSpace.from_mapping({"axes": kept, "conditions": conditions})
    found = {(axis, value): further for axis, value, further in beyond(space)}
    assert steps <= set(found)
    for (axis, value), further in found.items():
        assert value not in kept[axis]
        assert further.mapping()["axes"][axis] == [value]
        for genotype in (0, further.size - 1):
            assert space.find(further.architectures(further.genotypes(np.array([genotype])))).tolist() == [-1]


def test_gains_are_said_in_words_and_as_content(problem: Problem, found: Gains) -> None:
    said = "\n".join(gains_told(problem, found, float(found.pick.metrics["loss"][0]))[0].parts)
    assert "This is the lowest loss within the budgets" in said
    assert "decode_ms <= 40: costs nothing down to" in said
    assert "one step beyond its axis" in said
    assert "Not this one, but 16 layers, " in "\n".join(gains_told(problem, found, 9.0)[0].parts)
    assert json.loads(json.dumps(gains_told(problem, found, 9.0)[1]))["budgets"][0]["metric"] == "decode_ms"


def test_nothing_feasible_has_no_gains(problem: Problem) -> None:
    assert gains(replace(problem, budgets=(Budget("total_ms", 1e-6),))) is None


# Sweeps


@pytest.mark.parametrize("metric", ["total_ms", "decode_ms", "resident_gb", "loss", "params_active"])
def test_a_sweep_is_the_pick_at_every_limit(metric: str, problem: Problem) -> None:
    whole = everything(problem)
    values = whole.metrics[metric]
    sweep = parse_sweep(f"{metric}={values.min() * 0.9}:{values.max()}:{np.ptp(values) / 40}", problem.metric_names)
    answers = list(swept(sweep, whole))
    assert len(answers) >= 40
    for limit, row in answers:
        assert row == PickRule(Budget(metric, limit)).row(whole)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["total_ms", "price"])
def test_a_sweep_shows_every_metric_that_the_run_minimises(metric: str, inside: Inside, tmp_path: Path) -> None:
    boards = {"l4": {"price": "700 USD"}, "raspberry_pi_5": {"price": "80 USD"}}
    asked = {"algo": "exact", "space": "paper", "devices": [*boards], "device_columns": boards}
    (tmp_path / "study.yaml").write_text(dump(asked | {"objectives": ["loss", "total_ms", "price", "ttft_ms"]}))
    assert inside("run", "--config", "study.yaml", "--budget", "total_ms=200", "--out", "run", "--quiet").code == 0
    limits = "price=80:700:310" if metric == "price" else "total_ms=50:150:50"
    for form in ([], ["--json"]):
        told = inside("select", "run", "--sweep", limits, *form)
        assert told.code == 0
        assert {"price", "ttft_ms"} <= {*re.findall(r"\w+", told.out)}
    assert all(row[metric] <= row["limit"] for row in json.loads(told.out))


def test_limits_of_a_sweep_include_both_ends() -> None:
    assert parse_sweep("total_ms=20 ms:0.5 s:20", ("total_ms",)).limits.tolist() == [20.0 * i for i in range(1, 26)]
    assert parse_sweep("total_ms=0.1:0.3:0.1", ("total_ms",)).limits == pytest.approx([0.1, 0.2, 0.3])
    assert parse_sweep("total_ms=5:5:1", ("total_ms",)).limits.tolist() == [5.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("total_ms=20:500", "expected metric=first:last:step"),
        ("total_ms", "expected metric=first:last:step"),
        ("speed=1:2:1", "with one of total_ms"),
        ("total_ms=a:2:1", "sweep: expected a time"),
        ("total_ms=3:2:1", "with 1 to 100,000 limits"),
        ("total_ms=1:1e9:0.001", "with 1 to 100,000 limits"),
        ("total_ms=0:2:1", "sweep: expected a positive quantity"),
    ],
)
def test_a_sweep_that_is_none_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_sweep(text, ("total_ms",))


# Diagnosis by parts


def test_a_diagnosis_by_parts_is_the_diagnosis_of_the_whole(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    hopeless = replace(problem, budgets=(Budget("total_ms", 0.5), Budget("memory_gb", 1e-4), Budget("decode_ms", 1e3)))
    whole = everything(hopeless)
    expected = diagnose(whole)
    monkeypatch.setattr(exact_diagnosis, "QUICK", 0)
    monkeypatch.setattr(exact_solution, "SMALL", 0)
    by_parts = diagnosed(hopeless, whole[slice(0, 3)])
    assert by_parts.examined == problem.space.size
    for mine, theirs in zip(by_parts.relaxations, expected.relaxations, strict=True):
        assert (mine.limit is None) == (theirs.limit is None)
        assert mine.limit is None or mine.limit == pytest.approx(theirs.limit, rel=1e-9)
        assert mine.opens == theirs.opens
    assert by_parts.together == expected.together
    assert by_parts.closest.keys.tolist() == expected.closest.keys.tolist()


@pytest.mark.parametrize("seed", range(12))
def test_the_closest_misses_by_parts_are_the_closest_of_the_whole(
    seed: int, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, generator = everything(problem), np.random.default_rng(seed)
    metrics = generator.choice(["total_ms", "decode_ms", "memory_gb", "resident_gb", "loss"], 3, replace=False)
    shares = generator.uniform(0.3, 0.99, 3)
    budgets = tuple(Budget(m, s * float(whole.metrics[m].min())) for m, s in zip(metrics.tolist(), shares, strict=True))
    expected = diagnose(replace(whole, budgets=budgets)).closest.violations.max(axis=1)
    monkeypatch.setattr(exact_diagnosis, "QUICK", 0)
    monkeypatch.setattr(exact_solution, "SMALL", 0)
    found = diagnosed(replace(problem, budgets=budgets), whole[slice(0, 3)]).closest
    assert found.violations.max(axis=1) == pytest.approx(expected, rel=1e-12)
    assert len(set(found.keys.tolist())) == 3


def test_what_was_not_diagnosed_over_the_space_is_not_said_to_be() -> None:
    nothing = Evaluations(
        np.zeros((0, 6), dtype=np.int64), np.zeros(0, dtype=np.int64), {"loss": np.zeros(0)}, None, ("loss",), ()
    )
    assert lines(diagnose(nothing), whole_space=False) == [
        "No architecture satisfies the budgets, and none is at hand to say how far they are missed."
    ]


def test_one_budget_alone_is_diagnosed_too(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    hopeless = replace(problem, budgets=(Budget("total_ms", 0.5),))
    expected = diagnose(everything(hopeless))
    monkeypatch.setattr(exact_diagnosis, "QUICK", 0)
    monkeypatch.setattr(exact_solution, "SMALL", 0)
    found = diagnosed(hopeless, everything(hopeless)[slice(0, 1)])
    assert found.relaxations[0].limit == pytest.approx(expected.relaxations[0].limit)


def test_a_diagnosis_over_the_space_that_takes_too_long_is_of_what_was_evaluated(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In spaces of 10^17 designs the closest misses alone took minutes, after a search of seconds."""
    hopeless = replace(problem, budgets=(Budget("total_ms", 0.5),))
    evaluated = everything(hopeless)[slice(0, 7)]
    monkeypatch.setattr(exact_diagnosis, "QUICK", 0)
    monkeypatch.setattr(exact_solution, "SMALL", 0)
    monkeypatch.setattr(exact_diagnosis, "SECONDS", FEW - 1)
    found = diagnosed(hopeless, evaluated)
    assert found.examined == 7
    assert found.closest.keys.tolist() == diagnose(evaluated).closest.keys.tolist()


# The commands


@pytest.fixture
def exact_run(tmp_path: Path, inside: Inside, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run of exact whose log holds the frontier and the picks alone."""
    monkeypatch.setattr(
        importlib.import_module("nas.strategies.exact"), "SMALL", 0
    )  # first: an import copies the other
    monkeypatch.setattr(exact_solution, "SMALL", 0)
    study = {
        "preset": "paper",
        "space": SPACE,
        "name": "some",
        "budgets": {"total_ms": 40},
        "applications": {},
        "baselines": [],
    }
    (tmp_path / "study.yaml").write_text(dump(study))
    assert inside("run", "--algo", "exact", "--config", "study.yaml", "--out", "run", "--quiet").code == 0
    return "run"


def test_select_solves_anew_under_other_budgets(exact_run: str, inside: Inside, problem: Problem) -> None:
    whole = everything(replace(problem, budgets=(Budget("memory_gb", 64.0), Budget("total_ms", 25.0))))
    answer = inside("select", exact_run, "--select", "best", "--budget", "total_ms=25", "--json")
    row = PickRule(None).row(whole)
    assert row is not None
    chosen = json.loads(answer.out)
    assert [c["loss"] for c in chosen] == [whole.metrics["loss"][row]]
    assert f"-key{whole.keys[row]}" in chosen[0]["id"]
    said = inside("select", exact_run, "--select", "budget:decode_ms=9").out
    assert f"solved exactly over all {problem.space.size:,} architectures" in said


def test_select_of_the_runs_own_question_reads_the_log(exact_run: str, inside: Inside, problem: Problem) -> None:
    said = inside("select", exact_run).out
    assert f"of all {problem.space.size:,} architectures" in said
    assert "index" in said


def test_a_sweep_of_an_exact_run_covers_the_space(exact_run: str, inside: Inside, problem: Problem) -> None:
    answer = inside("select", exact_run, "--sweep", "decode_ms=0.5:20:0.5", "--out", "sweep.csv", "--rows", "3")
    assert answer.code == 0
    assert "decode_ms <=" in answer.out
    assert "limits up to" in answer.out
    whole = everything(replace(problem, budgets=(Budget("memory_gb", 64.0), Budget("total_ms", 40.0))))
    with open("sweep.csv") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        expected = PickRule(Budget("decode_ms", float(row["limit"]))).row(whole)
        assert expected is not None
        assert float(row["loss"]) == whole.metrics["loss"][expected]
    assert all(float(a["loss"]) >= float(b["loss"]) for a, b in pairwise(rows))


def test_a_sweep_that_nothing_meets_is_exit_3_and_wrong_flags_are_2(exact_run: str, inside: Inside) -> None:
    assert inside("select", exact_run, "--sweep", "decode_ms=0.001:0.002:0.001").code == 3
    assert inside("select", exact_run, "--sweep", "decode_ms=1:2").code == 2
    assert inside("select", exact_run, "--sweep", "decode_ms=1:2:1", "--select", "knee").code == 2


def test_nothing_feasible_in_an_exact_run_is_diagnosed_over_the_space(
    exact_run: str, inside: Inside, problem: Problem
) -> None:
    answer = inside("select", exact_run, "--budget", "decode_ms=0.01")
    assert answer.code == 3
    assert f"among all {problem.space.size:,} architectures of the space" in answer.err


@pytest.mark.slow
def test_explain_says_what_more_would_buy(exact_run: str, inside: Inside) -> None:
    said = inside("explain", exact_run, "--select", "best").out
    assert "What more would buy, solved exactly" in said
    assert "This is the lowest loss within the budgets" in said
    content = json.loads(inside("explain", exact_run, "--select", "budget:decode_ms=5", "--json").out)
    assert {b["metric"] for b in content["gains"]["budgets"]} == {"memory_gb", "total_ms", "decode_ms"}


def test_explain_says_why_it_cannot_say_what_more_would_buy(
    exact_run: str, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact_solution, "SECONDS", 3)
    said = inside("explain", exact_run, "--select", "best").out
    assert "What more would buy is not computed: exact answers in the some space would take more than seconds" in said
    assert json.loads(inside("explain", exact_run, "--select", "best", "--json").out)["gains"] is None


def test_exact_takes_budgets_itself(inside: Inside) -> None:
    answer = inside("run", "--algo", "exact", "--set", "constraints=penalty")
    assert answer.code == 2
    assert "constraints: expected a key that has an effect, got one without: exact covers the whole space" in answer.err


@pytest.fixture
def enumerated(tmp_path: Path, user_module: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study with a baseline and a metric that says nothing of parts, solved in small blocks with a note after each."""
    monkeypatch.setattr(
        importlib.import_module("nas.strategies.exact"), "SMALL", 0
    )  # first: an import copies the other
    monkeypatch.setattr(exact_solution, "SMALL", 0)
    monkeypatch.setattr("nas.exact.solution.BLOCK", 200)
    monkeypatch.setattr("nas.exact.checkpoint.SAVE_EVERY_S", 0.0)
    name = user_module("def fn(a):\n    return a.depth / a.width + a.n_experts\n")
    study = {
        "preset": "paper",
        "space": SPACE,
        "name": "some",
        "objectives": ["loss", f"{name}:fn"],
        "applications": {},
    }
    study |= {"baselines": ["smollm2_135m"], "budgets": {f"{name}:fn": 100}}
    (tmp_path / "study.yaml").write_text(dump(study))
    return tmp_path


def test_notes_of_one_question_never_answer_another(enumerated: Path, inside: Inside) -> None:
    """The study's own vocabulary is 0, as that of a baseline's layers alone: the same space, other questions."""
    assert inside("run", "--algo", "exact", "--config", "study.yaml", "--out", "run", "--quiet").code == 0
    problem = assemble(read(enumerated / "study.yaml")[0], {}).problem
    with open("run/picks.csv") as file:
        picks = {row["question"]: float(row["loss"]) for row in csv.DictReader(file)}
    assert any(question.vocabulary == 0 for question in problem.queries)
    for question in problem.queries:
        whole = everything(problem.with_vocabulary(question.vocabulary))
        row = PickRule.for_query(question).row(whole)
        assert picks.get(question_text(problem, question)) == (None if row is None else whole.metrics["loss"][row]), (
            question.label
        )


def test_an_interrupted_enumeration_goes_on(enumerated: Path, inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    inside("run", "--algo", "exact", "--config", "study.yaml", "--out", "whole", "--quiet")
    evaluate, left = Problem.evaluate, [4]

    def interrupted(self: Problem, *arguments: Any, **named: Any) -> Evaluations:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return evaluate(self, *arguments, **named)

    monkeypatch.setattr(Problem, "evaluate", interrupted)
    assert inside("run", "--algo", "exact", "--config", "study.yaml", "--out", "again", "--quiet").code == 130
    monkeypatch.setattr(Problem, "evaluate", evaluate)
    assert inside("run", "--resume", "again", "--quiet").code == 0
    for name in ("evaluations.csv", "frontier.csv", "picks.csv"):
        assert Path("again", name).read_bytes() == Path("whole", name).read_bytes()


def test_sections_tell_budgets_apart_to_the_last_digit(problem: Problem) -> None:
    near = [replace(problem, budgets=(Budget("total_ms", limit),)) for limit in (93.4185783, 93.4185784)]
    assert len({section_of("parts", each) for each in near}) == 2
    rules = [PickRule(None), PickRule(near[0].budgets[0]), PickRule(near[1].budgets[0])]
    rules += [PickRule(None, near[0].budgets), PickRule(None, dense=True)]
    assert len({section_of("enumeration", problem, str(rule)) for rule in rules}) == len(rules)


def test_explain_under_a_law_without_parts_says_so(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_solution, "undeclared", lambda problem, metrics: "loss")
    assert gains(problem) is not None  # every architecture of a small space is evaluated
    monkeypatch.setattr(exact_solution, "SMALL", 0)
    with pytest.raises(UsageError, match="loss does not say how it adds up from parts"):
        gains(problem)


def test_gains_of_a_limit_that_keeps_a_margin_are_the_same_from_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = {"preset": "device", "device": "rpi5", "space": SPACE, "budgets": {"total_ms": 9000}, "baselines": []}
    whole = gains(assemble(raw, {}).problem)
    monkeypatch.setattr(exact_solution, "SMALL", 0)
    parts = gains(assemble(raw, {}).problem)
    assert whole is not None
    assert parts is not None
    of_parts, of_whole = (
        [b.relaxed and (b.relaxed.change, b.relaxed.at, b.relaxed.loss) for b in found.budgets]
        for found in (parts, whole)
    )
    assert of_parts == of_whole


def test_a_solution_interrupted_twice_ends_in_the_same_files(
    exact_run: str, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nas.exact.checkpoint.SAVE_EVERY_S", 0.0)
    monkeypatch.setattr("nas.exact.decomposition.frontier.BLOCK", 40)
    settle, left = BranchAndBound.settle, [0]

    def interrupted(self: BranchAndBound, *arguments: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        settle(self, *arguments)

    monkeypatch.setattr(BranchAndBound, "settle", interrupted)
    left[0] = 3
    answer = inside("run", "--algo", "exact", "--config", "study.yaml", "--out", "again", "--quiet")
    assert (answer.code, "--resume again" in answer.err) == (130, True)
    left[0] = 2
    assert inside("run", "--resume", "again", "--quiet").code == 130
    left[0] = 10**9
    assert inside("run", "--resume", "again", "--quiet").code == 0
    for name in ("evaluations.csv", "frontier.csv", "picks.csv"):
        assert Path("again", name).read_bytes() == Path(exact_run, name).read_bytes()
    assert inside("run", "--algo", "exact", "--config", "study.yaml", "--out", "whole", "--quiet").code == 0
    whole, again = (json.loads(Path(run, "summary.json").read_text()) for run in ("whole", "again"))
    assert again["space"] == whole["space"], "counts of what was done do not tell that it was interrupted"
