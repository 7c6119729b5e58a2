"""How budgets reach a strategy, where a search starts, and when it stops."""

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.answer.outcome_files import columns_of
from nas.errors import UsageError
from nas.files.yaml_source import dump, read
from nas.problem.evaluations import Evaluations, frontier_rows
from nas.problem.problem import Problem
from nas.record.candidates import read_candidates, write_candidates
from nas.record.store import FILE, RunStore
from nas.search import loop as search
from nas.search.assembly import Study, study_of
from nas.search.discovery import ConstraintHandling, able_to, penalised, penalised_problem, strategy_module
from nas.search.lifecycle import store_columns
from nas.search.loop import Limits, Search
from nas.search.reading import read as read_study
from objectives.plugins import importable
from search_spaces.arrays import IntArray

Inside = Callable[..., Any]
HANDLINGS: tuple[ConstraintHandling, ...] = get_args(ConstraintHandling)
SEEDABLE = able_to("seedable")
FILES = ("evaluations.csv", "frontier.csv", "picks.csv")
SMALL = ("population", "batch", "initial", "block")


def few(algos: list[str]) -> list[Any]:
    """All of them in the full run, nsga2 in the fast one."""
    return [algo if algo == "nsga2" else pytest.param(algo, marks=pytest.mark.slow) for algo in algos]


def small(algo: str) -> dict[str, int]:
    """Parameters of small batches, and of few models where each takes half a second."""
    fields = strategy_module(algo).Parameters.model_fields
    return {name: 8 for name in SMALL if name in fields} | ({"startup": 26} if algo == "optuna_gp" else {})


# What a strategy is told

VALUE = st.floats(-1e6, 1e6) | st.sampled_from([0.0, -1.0, 1.0, 30.0, 1e-9])
ROW = st.tuples(VALUE, st.floats(1e-6, 1e6) | st.sampled_from([30.0, 60.0]), st.booleans())


def documented_penalty(value: float, violations: list[float], weight: float) -> float:
    """The penalty of the documentation, one number at a time."""
    return value + weight * sum(max(v, 0.0) for v in violations) * max(abs(value), 1.0)


@given(
    rows=st.lists(ROW, min_size=1, max_size=8),
    weight=st.floats(1e-3, 1e6),
    budgets=st.sampled_from([{}, {"total_ms": 30.0}, {"total_ms": 30.0, "loss": 60.0}]),
)
def test_what_is_told_follows_from_the_same_violations(
    rows: list[tuple[float, float, bool]], weight: float, budgets: dict[str, float], rows_of: Callable[..., Evaluations]
) -> None:
    metrics = {name: [np.nan if row[2] else row[i] for row in rows] for i, name in enumerate(("loss", "total_ms"))}
    found = rows_of(metrics, budgets=budgets, reasons=["broke" if row[2] else "" for row in rows])
    before, feasible = found.values.copy(), found.feasible.copy()
    told = {handling: penalised(found, handling, weight) for handling in HANDLINGS}
    np.testing.assert_array_equal(found.values, before)
    assert told["native"] is found
    if not budgets:
        assert all(seen is found for seen in told.values())
        return
    assert told["penalty"].budgets == told["reject"].budgets == ()
    assert (told["penalty"].ok == found.ok).all()
    assert (told["reject"].ok == feasible).all()
    assert (told["reject"].values[feasible] == before[feasible]).all()
    assert (told["penalty"].values[feasible] == before[feasible]).all()
    for i, (*values, broke) in enumerate(rows):
        violations = [metrics[name][i] / limit - 1 for name, limit in budgets.items()]
        expected = [np.nan if broke else documented_penalty(value, violations, weight) for value in values]
        np.testing.assert_allclose(told["penalty"].values[i], expected, rtol=1e-12)
        reason = "broke" if broke else "" if feasible[i] else "infeasible"
        assert told["reject"].reasons is not None
        assert told["reject"].reasons[i] == reason


class Overheard:
    """A strategy that notes what it is told."""

    def __init__(self, strategy: Any) -> None:
        self.strategy = strategy
        self.told: list[Evaluations] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.strategy, name)

    def ask(self, at_most: int) -> IntArray:
        """The strategy's own."""
        asked: IntArray = self.strategy.ask(at_most)
        return asked

    def tell(self, evaluations: Evaluations) -> None:
        """Note it and pass it on."""
        self.told.append(evaluations)
        self.strategy.tell(evaluations)


@pytest.mark.slow
@pytest.mark.parametrize("handling", HANDLINGS)
@pytest.mark.parametrize("algo", importable("nas.strategies"))
def test_every_strategy_is_told_the_same_numbers(
    algo: str, handling: ConstraintHandling, studied: Callable[..., Study], tmp_path: Path
) -> None:
    budgets = {"total_ms": 30, "resident_gb": 0.5}
    raw = {"algo": algo, "budgets": budgets, "constraints": handling, "params": small(algo)}
    traits = strategy_module(algo).TRAITS
    if not traits.takes_evaluations:
        handling = "native"  # a file may hold another one, which changes nothing
    if (traits.constraints, handling) == (False, "native"):
        with pytest.raises(UsageError, match="constraints: expected"):
            studied(**raw)
        return
    study = studied(**raw)
    problem, strategy = study.problem, Overheard(study.strategy())
    store = RunStore(tmp_path / FILE, problem.metric_names, tuple(study.config.objectives), problem.budgets)
    store.create({}, store_columns(study.problem))
    made = Search(problem, strategy, store, shown=lambda found: penalised(found, study.handling, 10.0))
    made.run(Limits(40 if study.traits.takes_evaluations else None))
    store.close()
    truth = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    expected = penalised(truth, handling, 10.0)
    assert study.handling == handling
    assert penalised_problem(problem, handling).budgets == (problem.budgets if handling == "native" else ())
    assert strategy.told
    infeasible = 0
    for told in strategy.told:
        assert np.array_equal(told.values, expected.values[told.keys], equal_nan=True)
        assert (told.ok == expected.ok[told.keys]).all()
        assert (told.violations == expected.violations[told.keys]).all()
        infeasible += int((~truth.feasible[told.keys]).sum())
    assert infeasible, "nothing infeasible was told"
    found = made.archive.all()
    assert (found.violations == truth.violations[found.keys]).all()
    assert (found.values == truth.values[found.keys]).all()


# The command


@pytest.fixture
def study(tmp_path: Path, tiny: dict[str, Any]) -> Path:
    """A study over the tiny space in the test's own folder."""
    path = tmp_path / "study.yaml"
    path.write_text(
        dump({"preset": "paper", "space": tiny, "name": "tiny", "budgets": {"total_ms": 30}, "baselines": []})
    )
    return path


def line(algo: str, out: str, *more: object) -> list[object]:
    """A run of a strategy in small batches."""
    parameters = [f"--param={name}={value}" for name, value in small(algo).items()]
    return ["--config", "study.yaml", "--algo", algo, *parameters, "--out", out, "--quiet", *more]


def ran(inside: Inside, *arguments: object) -> Any:
    """A run that ends well."""
    answer = inside("run", *arguments)
    assert answer.code == 0, answer
    return answer


def bytes_of(folder: Path) -> dict[str, bytes]:
    """The files that must not differ."""
    return {file: (folder / file).read_bytes() for file in FILES}


def keys_of(folder: Path, problem: Problem) -> list[int]:
    """Keys of what a run evaluated, in order."""
    return problem.space.find(read_candidates(folder / "evaluations.csv")[0]).tolist()


def test_files_hold_the_true_numbers_whatever_the_handling(study: Path, inside: Inside, tmp_path: Path) -> None:
    given = study.read_text()
    for handling in HANDLINGS:
        study.write_text(f"{given}\nconstraints: {handling}\n")
        ran(inside, *line("random", handling, "--evaluations", 50))
    assert bytes_of(tmp_path / "native") == bytes_of(tmp_path / "penalty") == bytes_of(tmp_path / "reject")


@pytest.fixture
def unable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random sampling stands for a strategy without constraints of its own."""
    module = strategy_module("random")
    monkeypatch.setattr(module, "TRAITS", replace(module.TRAITS, constraints=False))


@pytest.mark.usefixtures("unable")
def test_native_is_refused_where_a_strategy_cannot_with_those_that_can(
    study: Path, inside: Inside, tmp_path: Path
) -> None:
    answer = inside("run", *line("random", "run", "--set", "constraints=native"))
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
    assert "expected penalty or reject with random" in answer.err
    others = answer.err.rpartition("a strategy that has: ")[2].strip().split(", ")
    assert others == [name for name in importable("nas.strategies") if name in able_to("constraints")]
    assert "random" not in others
    assert "nsga2" in others
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("unable")
def test_left_out_it_is_a_penalty_said_before_the_run(study: Path, inside: Inside, tmp_path: Path) -> None:
    loud = [part for part in line("random", "run", "--evaluations", 20) if part != "--quiet"]
    answer = ran(inside, *loud)
    assert "random has no constraints of its own: budgets become a penalty of weight 10" in answer.err
    assert "--set constraints=reject" in answer.err
    assert read(tmp_path / "run" / "config.yaml")[0]["constraints"] == "penalty"
    given = study.read_text()
    study.write_text(f"{given}\nconstraints: reject\n")
    ran(inside, *line("random", "rejected", "--evaluations", 20))
    study.write_text(given)
    assert read(tmp_path / "rejected" / "config.yaml")[0]["constraints"] == "reject"
    free = ("--set", "constraints=native", "--budget", "total_ms=none", "--budget", "memory_gb=none")
    ran(inside, *line("random", "free", "--evaluations", 20, *free))


# Given designs


@pytest.fixture
def problem(problem_of: Callable[..., Problem]) -> Problem:
    """The study's problem."""
    return problem_of(budgets={"total_ms": 30}, baselines=[])


@pytest.fixture
def designs(tmp_path: Path, problem: Problem) -> Callable[..., str]:
    """A candidate file of keys, written where the command runs."""

    def write(keys: list[int], name: str = "designs.csv") -> str:
        found = problem.evaluate(problem.space.genotypes(np.array(keys, dtype=np.int64)))
        write_candidates(tmp_path / name, {"id": list(range(len(keys))), **columns_of(problem, found)})
        return name

    return write


Designs = Callable[..., str]
CHOSEN = [77, 3, 150, 20, 9, 101]


@pytest.mark.parametrize("algo", few(SEEDABLE))
@pytest.mark.parametrize("name", ["designs.csv", pytest.param("designs.jsonl", marks=pytest.mark.slow)])
def test_given_designs_come_first_and_count(
    algo: str, name: str, study: Path, designs: Designs, problem: Problem, inside: Inside, tmp_path: Path
) -> None:
    ran(inside, *line(algo, "run", "--evaluations", 30, "--set", f"seed_from={designs([*CHOSEN, 3, 77], name)}"))
    keys = keys_of(tmp_path / "run", problem)
    assert keys[: len(CHOSEN)] == CHOSEN
    assert len(keys) == len(set(keys)) == 30
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["evaluations"]["distinct"], summary["stop_reason"]) == (30, "30 distinct evaluations")
    (tmp_path / name).unlink()
    ran(inside, "--config", "run", "--out", "again", "--quiet")
    assert bytes_of(tmp_path / "again") == bytes_of(tmp_path / "run")


@pytest.mark.parametrize("algo", few(SEEDABLE))
def test_more_designs_than_evaluations_are_cut_and_continued(
    algo: str, study: Path, designs: Designs, problem: Problem, inside: Inside, tmp_path: Path
) -> None:
    many = np.random.default_rng(0).permutation(problem.space.size)[:40].tolist()
    file = designs(many)
    ran(inside, *line(algo, "run", "--evaluations", 15, "--set", f"seed_from={file}"))
    assert keys_of(tmp_path / "run", problem) == many[:15]
    ran(inside, *line(algo, "long", "--evaluations", 60, "--set", f"seed_from={file}"))
    assert keys_of(tmp_path / "long", problem)[:40] == many
    ran(inside, "--resume", "run", "--evaluations", 60, "--quiet")
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "long")


@pytest.mark.parametrize("algo", few(SEEDABLE))
def test_the_whole_space_given_is_the_space_exhausted(
    algo: str, study: Path, designs: Designs, problem: Problem, inside: Inside, tmp_path: Path
) -> None:
    given = designs(list(range(problem.space.size)))
    ran(inside, *line(algo, "run", "--set", f"seed_from={given}", "--evaluations", problem.space.size))
    assert keys_of(tmp_path / "run", problem) == list(range(problem.space.size))
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["stop_reason"] == "space exhausted"


def test_a_frontier_seeds_the_next_run(study: Path, problem: Problem, inside: Inside, tmp_path: Path) -> None:
    ran(inside, *line("random", "first", "--evaluations", 60))
    ran(inside, *line("local_search", "second", "--evaluations", 60, "--set", "seed_from=first/frontier.csv"))
    with (tmp_path / "first" / "frontier.csv").open(newline="") as file:
        size = len(list(csv.DictReader(file)))
    truth = problem.evaluate(problem.space.genotypes(np.array(keys_of(tmp_path / "second", problem)[:size])))
    assert sorted(frontier_rows(truth).tolist()) == list(range(size))


@pytest.mark.parametrize("algo", [name for name in importable("nas.strategies") if name not in SEEDABLE])
def test_a_strategy_that_cannot_start_from_designs_names_those_that_can(
    algo: str, study: Path, designs: Designs, inside: Inside, tmp_path: Path
) -> None:
    answer = inside("run", *line(algo, "run", "--set", f"seed_from={designs(CHOSEN)}"))
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
    assert f"({', '.join(SEEDABLE)}), got {algo}" in answer.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "depth,width,n_kv_heads,expert_size\n4,768,1,768\n4,832,1,832\n4,896,1,896\n",
            "got row 2 outside it (2 of 3 are)",
        ),
        (
            "depth,width,n_kv_heads,expert_size,shared_expert_size\n4,768,1,768,128\n",
            "got row 1 outside it (1 of 1 are)",
        ),
        ("depth,width,n_kv_heads,expert_size\n4,768,1,x\n", "row 1: expert_size: expected a positive integer"),
        ("depth,width,n_kv_heads,expert_size\n4,768,5,768\n", "row 1: n_kv_heads: expected a divisor"),
        ("depth,width,n_kv_heads,expert_size\n", "expected architectures, got an empty file"),
        ("", "expected architectures, got an empty file"),
    ],
    ids=["outside", "a shared expert", "no number", "no divisor", "only a head", "empty"],
)
def test_designs_that_are_none_of_the_space_are_refused_before_anything_is_written(
    text: str, said: str, study: Path, inside: Inside, tmp_path: Path
) -> None:
    (tmp_path / "designs.csv").write_text(text)
    answer = inside("run", *line("nsga2", "run", "--set", "seed_from=designs.csv"))
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
    assert said in answer.err
    assert not (tmp_path / "run").exists()


def test_designs_may_be_written_out_in_a_study(
    study: Path, designs: Designs, problem: Problem, inside: Inside, tmp_path: Path
) -> None:
    written = {"depth": 4, "width": 768, "n_kv_heads": 2, "expert_ffn_ratio": 1}
    study.write_text(study.read_text() + dump({"seed_from": [written, written, {**written, "depth": 8}]}))
    ran(inside, *line("nsga2", "run", "--evaluations", 20))
    found = problem.architectures(problem.space.genotypes(np.array(keys_of(tmp_path / "run", problem)[:2])))
    assert found.depth.tolist() == [4, 8]
    assert found.n_kv_heads.tolist() == [2, 2]


def test_designs_are_read_once_for_any_number_of_strategies(tiny: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "start.csv"
    path.write_text("depth,width,n_kv_heads,expert_ffn_ratio\n4,768,2,1\n")
    asked = read_study({"space": tiny, "seed_from": str(path)}, {})
    path.unlink()
    for algo in ("nsga2", "local_search"):
        assert len(study_of(asked.searched_by(algo, {}, {})).start) == 1


@pytest.mark.parametrize("row", [{"depth": 4}, {"depth": 4, "width": 768, "n_kv_heads": 5, "expert_size": 768}, {}])
def test_a_written_design_that_is_no_architecture_is_one_line(row: dict[str, Any], study: Path, inside: Inside) -> None:
    study.write_text(study.read_text() + dump({"seed_from": [row]}))
    answer = inside("run", *line("nsga2", "run"))
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
    assert answer.err.startswith("seed_from: row 1: ")


def test_designs_are_looked_for_beside_the_study(
    study: Path, designs: Designs, problem: Problem, inside: Inside, tmp_path: Path
) -> None:
    (tmp_path / "studies").mkdir()
    designs(CHOSEN, "studies/designs.csv")
    (tmp_path / "studies" / "study.yaml").write_text(study.read_text() + "seed_from: designs.csv\n")
    arguments = line("nsga2", "run", "--evaluations", 20)
    ran(inside, "--config", "studies/study.yaml", *arguments[2:])
    assert keys_of(tmp_path / "run", problem)[: len(CHOSEN)] == CHOSEN


def test_other_designs_are_another_run(study: Path, designs: Designs, inside: Inside) -> None:
    ran(inside, *line("nsga2", "run", "--evaluations", 20, "--set", f"seed_from={designs(CHOSEN)}"))
    ran(inside, "--resume", "run", "--set", f"seed_from={designs(CHOSEN)}", "--quiet")
    answer = inside("run", "--resume", "run", "--set", f"seed_from={designs(CHOSEN[::-1])}")
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
    assert "strategy.seed_from" in answer.err


# When it stops


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A clock that is a second later whenever the search looks at it."""
    ticks = count(1000)  # nobody knows when a clock began
    clock = SimpleNamespace(monotonic=lambda: next(ticks), perf_counter=search.time.perf_counter)
    with monkeypatch.context() as patched:
        patched.setattr(search, "time", clock)
        yield


STOPS = [  # in batches of 8, a second before each
    ((160, 1000, 1000), "160 distinct evaluations"),
    ((160, 4, 1000), "time limit of 4 s"),
    ((160, 1000, 7), "stable: nothing new on the frontier in 7 evaluations"),
    ((20, 2, 1000), "time limit of 2 s"),
    ((20, 4, 1000), "20 distinct evaluations"),
    ((None, 3, None), "time limit of 3 s"),
    ((None, None, 7), "stable: nothing new on the frontier in 7 evaluations"),
]


@pytest.mark.usefixtures("seconds")
@pytest.mark.parametrize(("limits", "reason"), STOPS, ids=str)
def test_the_first_limit_that_is_reached_ends_the_run_and_is_said(
    limits: tuple[int | None, int | None, int | None], reason: str, study: Path, inside: Inside, tmp_path: Path
) -> None:
    keys = ("evaluations", "time_limit", "stop_when_stable")
    given = [f"--set={key}={limit}" for key, limit in zip(keys, limits, strict=True) if limit is not None]
    loud = [part for part in line("random", "run", *given) if part != "--quiet"]
    answer = ran(inside, *loud)
    assert reason.replace("distinct ", "") in answer.out
    for file in ("summary.json", "manifest.json"):
        assert json.loads((tmp_path / "run" / file).read_text())["stop_reason"] == reason


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "stable"),
    [(0, 4), *((s, n) for s in (1, 2) for n in (1, 4, 15, 40))],
)
def test_stable_is_counted_from_the_last_new_member(
    stable: int, seed: int, study: Path, problem: Problem, inside: Inside, tmp_path: Path
) -> None:
    more = ("--seed", seed, "--param", "batch=1", "--evaluations", 162)
    ran(inside, *line("random", "all", *more))
    everything = problem.evaluate(problem.space.genotypes(np.array(keys_of(tmp_path / "all", problem))))
    last, expected = 0, 162
    for n in range(1, 163):
        if n - 1 in frontier_rows(everything[:n]):
            last = n
        if n - last >= stable:
            expected = n
            break
    answer = inside("run", *line("random", "run", *more, "--set", f"stop_when_stable={stable}"))
    assert answer.code in (0, 3)
    assert len(keys_of(tmp_path / "run", problem)) == expected
    inside("run", "--resume", "run", "--quiet")
    assert len(keys_of(tmp_path / "run", problem)) == expected


@pytest.mark.parametrize("algo", few(["nsga2", "local_search", "random"]))
def test_a_run_that_time_ended_replays_to_the_same_bytes(algo: str, inside: Inside, tmp_path: Path) -> None:
    fields = strategy_module(algo).Parameters.model_fields
    small = [f"--param={name}=8" for name in SMALL if name in fields]
    ran(inside, "--algo", algo, *small, "--evaluations", 13_000, "--time-limit", 0.1, "--out", "run", "--quiet")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["stop_reason"] == "time limit of 0.1 s"
    expected = bytes_of(tmp_path / "run")
    size = expected["evaluations.csv"].count(b"\n") - 1
    assert 0 < size < 13_000
    ran(inside, "--config", "run", "--evaluations", size, "--set", "time_limit=none", "--out", "again", "--quiet")
    assert bytes_of(tmp_path / "again") == expected
    ran(inside, "--resume", "run", "--evaluations", size, "--quiet")
    assert bytes_of(tmp_path / "run") == expected


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"int4_group_size": 64, "precision": "int8"}, "int4_group_size (no design is in int4)"),
        ({"int4_group_size": 64, "precision": "int4"}, ""),
        ({"penalty_weight": 3.0}, "penalty_weight (constraints are no penalty)"),
        ({"algo": "nsga2", "constraints": "penalty", "penalty_weight": 3.0, "budgets": {"total_ms": 9}}, ""),
        ({"algo": "random", "constraints": "reject", "budgets": {"total_ms": 9}}, "constraints (random does not learn from evaluations)"),
        ({"algo": "nsga2", "constraints": "reject", "default_budget": "none"}, "constraints (there is no budget)"),
        ({"workers": 2, "penalty_weight": 3.0}, "penalty_weight (constraints are no penalty), workers (no metric is your own)"),
        ({}, ""),
    ],
    ids=str,
)  # fmt: skip
def test_keys_that_change_nothing_are_named_in_one_notice(keys: dict[str, Any], said: str, studied: Any) -> None:
    notices = [text for text in studied(**keys).notices if text.startswith("without effect")]
    assert notices == [f"without effect in this study: {said}"] * bool(said)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("int4_group_size", 64), ("formats", {"mine": {"weights": ["Q4_K"], "source": "me"}}),
        ("device_columns", {"jetson_agx_orin_64gb": {"price": "900 USD"}}), ("constraints", "reject"),
        ("penalty_weight", 3.0), ("workers", 2), ("evaluation_timeout", 5), ("resources", {"GPU": 1}),
        ("precision_law", ["qat"]), ("token_curve", "python"), ("training", {"served_tokens": 2e12}),
    ],
)  # fmt: skip
def test_a_key_without_effect_is_refused_where_it_is_typed_and_named_where_a_file_has_it(key: str, value: Any) -> None:
    raw = {"algo": "random", key: value}
    assert f"without effect in this study: {key} (" in "".join(study_of(read_study(raw, {})).notices)
    with pytest.raises(UsageError, match=f"^{key}: expected a key that has an effect, got one without: .*; drop it$"):
        study_of(read_study(raw, {(key,): f"--set {key}"}))


def test_an_exact_frontier_of_many_objectives_is_warned_of_before_it_begins(studied: Any) -> None:
    asked = {"space": "fine", "algo": "exact"}
    four = studied(**asked, objectives=["loss", "total_ms", "memory_gb", "params_active"])
    assert any(
        text.startswith("exact: the frontier of 4 objectives") and "--algo nsga2" in text for text in four.notices
    )
    assert not any("the frontier of" in text for text in studied(**asked).notices)
