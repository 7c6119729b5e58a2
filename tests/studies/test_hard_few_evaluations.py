"""The record of hard cases: gaps against the exact frontier, large spaces against the best found, and what is held against the targets."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("plas_bench", reason="its cases are those of plugins/bench, which is not installed")

from plas_bench.kinds import case_of

from nas.problem.evaluations import non_dominated
from nas.search.discovery import strategy_module
from studies.few_evaluations import hard
from studies.few_evaluations.hard import gaps, judged, read, searched, table


def write(folder: Path, kind: str, method: str, keys: list[int], seed: int = 100) -> None:
    cell = {"kind": kind, "method": method, "seed": seed, "keys": keys, "seconds": 1.0}
    (folder / f"{kind}--{method}--{seed}.json").write_text(json.dumps(cell), encoding="utf-8")


def test_a_gap_is_none_of_the_whole_frontier_and_all_of_what_holds_no_budget(tmp_path: Path) -> None:
    case = case_of("budgets", 100)
    every = case.problem.space.genotypes(np.arange(case.problem.space.size))
    feasible = np.flatnonzero(case.feasible(every))
    best = feasible[non_dominated(case.values(every)[feasible])]
    write(tmp_path, "budgets", "prior_guided", best.tolist())
    write(tmp_path, "budgets", "botorch_peer", np.flatnonzero(~case.feasible(every))[:100].tolist())
    write(tmp_path, "budgets", "optuna_tpe", best[:1].tolist())
    found = gaps(read(tmp_path))
    assert found["budgets", "prior_guided", 100][-1] == pytest.approx(0.0, abs=1e-12)
    assert found["budgets", "botorch_peer", 100].tolist() == [1.0, 1.0, 1.0]
    assert 0.0 < found["budgets", "optuna_tpe", 100][0] < 1.0
    lines = list(judged(tmp_path))
    assert lines[0].startswith("budgets at 50: holds ")
    assert lines[0].endswith("% / 100 % = 0.00 of botorch_peer (1 seeds)")
    assert lines[-1].startswith("holds: at most the peer's in 2 of 2 cells")
    assert any(line.startswith("| `budgets` |") for line in table(tmp_path))


def test_a_target_that_is_missed_fails(tmp_path: Path) -> None:
    write(tmp_path, "heavy", "prior_guided", [0, 1, 2])
    write(tmp_path, "heavy", "botorch_peer", list(range(0, 13_000, 130)))
    write(tmp_path, "heavy", "botorch_peer", list(range(0, 13_000, 130)), seed=101)  # prior_guided has no such seed
    lines = list(judged(tmp_path))
    assert "FAILS" in lines[0]
    assert lines[0].endswith("(1 seeds)")
    assert lines[-1] == "FAILS: at most the peer's in 0 of 2 cells"


def test_a_large_space_is_held_against_the_best_of_all(tmp_path: Path) -> None:
    space = case_of("edge2026", 100).problem.space
    keys = space.keys(space.sample(60, np.random.default_rng(0)))
    write(tmp_path, "edge2026", hard.LONG, keys.tolist())
    write(tmp_path, "edge2026", "prior_guided", keys[:30].tolist())
    found = gaps(read(tmp_path))
    assert found["edge2026", hard.LONG, 100][-1] == pytest.approx(0.0, abs=1e-12)
    assert found["edge2026", "prior_guided", 100][-1] > 0.0
    assert not any(hard.LONG in line for line in table(tmp_path))


@pytest.mark.parametrize("kind", ["three", "edge2026"])
def test_strategies_search_a_case(kind: str) -> None:
    keys = searched(case_of(kind, 100).problem, strategy_module("random"), 0, 20, {})
    assert len(np.unique(keys)) == 20
