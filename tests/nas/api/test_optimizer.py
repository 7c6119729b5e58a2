"""Strategies in loops of one's own: the proposals of a run, in any order and parts, killed and resumed."""

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import nas
from nas.api.data_frames import designs_of
from nas.search.discovery import able_to
from objectives.plugins import importable

KEYS: dict[str, Any] = {"default_budget": "none", "baselines": [], "applications": {}}
STRATEGIES = importable("nas.strategies")
OFTEN = {"random", "nsga2", "exact"}  # the others in the slow tests
WAITING = "moead"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "python.md"
LOOP = re.search(r"## A loop of your own.*?```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def small(tiny: dict[str, Any]) -> nas.Study:
    """The tiny space within a budget."""
    return nas.load_study(preset="paper", space=tiny, budgets={"total_ms": 30}, **KEYS)


def keys_of(study: nas.Study, designs: Any) -> list[int]:
    """The keys of designs, in order."""
    return study.problem.space.find(study.problem.headed(designs_of(study.problem, designs))).tolist()


def asked(study: nas.Study, optimizer: Any, n: int, rounds: int = 10**6) -> list[int]:
    """Keys of what an optimizer proposes while it is told the study's own values, in two parts, the last first and backwards."""
    order: list[int] = []
    for _ in range(rounds):
        designs = optimizer.ask(n)
        if not len(designs):
            break
        order += keys_of(study, designs)
        for part in (designs.iloc[len(designs) // 2 :], designs.iloc[: len(designs) // 2][::-1]):
            if len(part):
                optimizer.tell(part, study.evaluate(part))
    return order


@pytest.mark.parametrize(
    "algo", [name if name in OFTEN else pytest.param(name, marks=pytest.mark.slow) for name in STRATEGIES]
)
def test_it_proposes_what_a_run_does_and_goes_on_after_a_kill(algo: str, small: nas.Study, tmp_path: Path) -> None:
    evaluations: Any = {} if algo == "exact" else {"evaluations": 45}
    found = small.search(algo=algo, seed=3, out=tmp_path / "run", **evaluations)
    expected = nas.read_run(tmp_path / "run").recorded.evaluations.keys.tolist()
    keys = {"seed": 3, "log": tmp_path / "log", "resume": True, **evaluations}
    first = small.optimizer(algo, **keys)
    order = asked(small, first, 4, rounds=5)
    lost = keys_of(small, first.ask(3))
    first.close()
    with small.optimizer(algo, **keys) as second:
        done = len(order)
        order += asked(small, second, 7)
        assert order == expected
        assert order[done : done + len(lost)] == lost
        assert second.frontier().distance_to(found).share == 1
        assert second.finished
    assert len(nas.read_run(tmp_path / "log").evaluations) == len(expected)


@pytest.mark.slow
def test_a_copy_and_a_larger_number_go_on_as_one_that_was_never_stopped(small: nas.Study, tmp_path: Path) -> None:
    whole = asked(small, small.optimizer("nsga2", seed=2, evaluations=140), 9)
    half = small.optimizer("nsga2", seed=2, evaluations=140)
    order = asked(small, half, 9, rounds=13)
    assert order + asked(small, pickle.loads(pickle.dumps(half)), 9) == whole
    with small.optimizer("nsga2", seed=2, evaluations=110, log=tmp_path / "log") as short:
        order = asked(small, short, 9)
    with small.optimizer("nsga2", seed=2, evaluations=140, log=tmp_path / "log", resume=True) as longer:
        assert order + asked(small, longer, 9) == whole


@pytest.mark.parametrize("algo", able_to("asynchronous"))
def test_one_that_need_not_wait_is_told_anything_in_any_order_and_resumed(
    algo: str, small: nas.Study, tmp_path: Path
) -> None:
    def loop(optimizer: Any, rounds: int, waiting: pd.DataFrame) -> list[int]:
        order, generator = [], np.random.default_rng(rounds)
        for _ in range(rounds):
            designs = optimizer.ask(3)
            order += keys_of(small, designs)
            waiting = pd.concat([waiting, designs], ignore_index=True)
            row = waiting.iloc[[int(generator.integers(len(waiting)))]]
            optimizer.tell(row, small.evaluate(row))
            waiting = waiting.drop(row.index)
        return order

    keys: Any = {"seed": 1, "evaluations": 60, "asynchronous": True}
    straight = small.optimizer(algo, **keys)
    order = loop(straight, 8, pd.DataFrame())
    assert len(set(order)) == len(order) > 8
    with small.optimizer(algo, **keys, log=tmp_path / "log") as first:
        assert loop(first, 8, pd.DataFrame()) == order
        out = len(order) - 8
    with small.optimizer(algo, **keys, log=tmp_path / "log", resume=True) as second:
        again = second.ask(out)  # what was never told
        assert set(keys_of(small, again)) <= set(order)
        rest = straight.ask(3)
        assert keys_of(small, second.ask(3)) == keys_of(small, rest)


def test_what_cannot_be_done_is_refused_by_name(small: nas.Study, tmp_path: Path) -> None:
    optimizer = small.optimizer(WAITING, seed=1, evaluations=100)
    designs = optimizer.ask()
    with pytest.raises(
        nas.UsageError, match=rf"values of {len(designs)} designs .* {WAITING} waits .*asynchronous=True, which"
    ):
        optimizer.ask(1)
    with pytest.raises(nas.UsageError, match=rf"expected a strategy that need not wait \(.*nsga2.*\), got {WAITING}"):
        small.optimizer(WAITING, asynchronous=True)
    with pytest.raises(nas.UsageError, match="expected a whole number from 1 on, got 0"):
        optimizer.ask(0)
    table, everything = small.evaluate(designs), small.sample(10**6)
    others = everything[~np.isin(keys_of(small, everything), keys_of(small, designs))]
    for given, values, said in (
        (designs.iloc[[0, 0]], table.iloc[[0, 0]], "each once, got another in row 2"),
        (
            others.iloc[[0]],
            table.iloc[[0]],
            r"expected designs from ask\(\) that have no values yet.* got another in row 1",
        ),
        (designs, table.iloc[:3], "expected .* numbers, got 3"),
        (designs, {"lss": table.loss}, "got lss; did you mean loss"),
        (designs, {"reason": [""] * len(designs)}, "expected columns of metrics"),
        (designs, np.zeros((2, 2)), r"rows of loss, total_ms, got shape \(2, 2\)"),
    ):
        with pytest.raises(nas.UsageError, match=said):
            optimizer.tell(given, values)
    assert not len(optimizer.evaluated)
    with pytest.raises(nas.UsageError, match="optimizer: expected no workers"):
        small.optimizer("random", workers=2, objectives="loss,total_ms")
    small.optimizer("random", log=tmp_path / "log").close()
    with pytest.raises(nas.UsageError, match="seed: 0 in the run, 4 now; give another folder"):
        small.optimizer("random", seed=4, log=tmp_path / "log", resume=True)
    with pytest.raises(nas.UsageError, match="expected a new or empty folder"):
        small.optimizer("random", log=tmp_path / "log")
    small.search(algo="random", evaluations=9, out=tmp_path / "run")
    with pytest.raises(nas.UsageError, match=r"expected a log of study\.optimizer, got a run of plas run"):
        small.optimizer("random", evaluations=9, log=tmp_path / "run", resume=True)
    with pytest.raises(nas.UsageError, match=r"whose values study\.optimizer was told"):
        small.search(algo="random", out=tmp_path / "log", resume=True)


def test_values_and_failures_are_what_was_told(small: nas.Study) -> None:
    optimizer = small.optimizer("random", evaluations=50)
    designs = optimizer.ask(4)
    optimizer.tell(designs, {"loss": [3.0, np.nan, 2.5, 2.0], "reason": ["", "", "out of memory", ""]})
    told, own = optimizer.evaluated, small.evaluate(designs)
    assert told.loss.fillna(0).tolist() == [3.0, 0, 2.5, 2.0]
    assert told.total_ms.notna().all()  # a formula
    assert told.total_ms[0] == own.total_ms[0]
    assert np.allclose(np.log(told.perplexity[[0, 3]]), [3.0, 2.0])
    assert optimizer.search.archive.all().reasons == ("", "loss: nan, as told", "out of memory", "")
    assert set(optimizer.frontier().frame.loss) <= {2.0, 3.0}


def test_a_failure_is_told_as_people_write_it(small: nas.Study) -> None:
    optimizer = small.optimizer("random", evaluations=50)
    forms: list[tuple[int, Any, list[str]]] = [
        (1, {"loss": np.nan, "reason": "OOM"}, ["OOM"]),
        (2, {"reason": "node lost"}, ["node lost"] * 2),
        (2, {"loss": [2.0, np.nan], "reason": [None, "OOM"]}, ["", "OOM"]),
        (2, pd.DataFrame({"loss": [2.0, 2.5], "reason": [np.nan, "OOM"]}), ["", "OOM"]),
        (1, pd.Series({"loss": 2.0, "reason": ""}), [""]),
    ]
    for n, values, reasons in forms:
        optimizer.tell(optimizer.ask(n), values)
        assert optimizer.evaluated.reason.tolist()[-n:] == reasons
        assert optimizer.evaluated.feasible[-n:].tolist() <= [not reason for reason in reasons]
    with pytest.raises(nas.UsageError, match="reason: expected 2 texts, got 1"):
        optimizer.tell(optimizer.ask(2), {"loss": [2.0, 2.0], "reason": ["OOM"]})


@pytest.mark.parametrize("logged", [False, True])
def test_other_threads_and_processes_take_their_turn(logged: bool, small: nas.Study, tmp_path: Path) -> None:
    optimizer = small.optimizer("nsga2", seed=1, evaluations=40, log=tmp_path / "log" if logged else None)
    designs = optimizer.ask(12)
    with ThreadPoolExecutor(4) as pool:
        rows = [designs.iloc[[row]] for row in range(len(designs))]
        for told in [pool.submit(lambda row: optimizer.tell(row, small.evaluate(row)), row) for row in rows[1:]]:
            told.result()
    assert len(optimizer.evaluated) == 11
    if logged:
        optimizer.close()
        assert json.loads((tmp_path / "log" / "manifest.json").read_text())["state"] == "interrupted"
        with pytest.raises(nas.UsageError, match="expected an open store, got Cannot operate on a closed database"):
            optimizer.tell(rows[0], small.evaluate(rows[0]))
    else:
        with ThreadPoolExecutor(1) as pool:  # as the feeder of a pool of processes does
            assert len(pickle.loads(pool.submit(pickle.dumps, optimizer).result()).evaluated) == 11


def test_results_that_outlive_the_script_are_taken(small: nas.Study, tmp_path: Path) -> None:
    keys: Any = {"seed": 1, "evaluations": 40, "log": tmp_path / "log", "resume": True}
    straight = small.optimizer("nsga2", seed=1, evaluations=40)
    order = keys_of(small, straight.ask(6))
    with small.optimizer("nsga2", **keys) as first:
        designs = first.ask(6)
    copy = pickle.loads(pickle.dumps(straight))
    with small.optimizer("nsga2", **keys) as second:
        for optimizer in (second, copy, straight):
            optimizer.tell(designs, small.evaluate(designs))
        assert keys_of(small, second.evaluated) == order
        ahead = [keys_of(small, optimizer.ask(6)) for optimizer in (second, copy, straight)]
        assert ahead[0] == ahead[1] == ahead[2]


def test_auto_reads_no_formula_where_values_are_told(small: nas.Study) -> None:
    told = small.optimizer("auto", evaluations=20, seed=1)
    assert told.study.config.algo.startswith("optuna_")
    assert len(asked(small, told, 4)) == 20
    assert small.optimizer("auto", evaluations=5000).study.config.algo == "exact"  # everything is told
    assert small.replace(algo="auto").assembled.config.algo == "exact"
    with pytest.raises(nas.UsageError, match="a strategy that your values guide, got exact, which solves"):
        nas.load_study(space="huge").optimizer("exact")


@pytest.mark.slow
def test_the_loop_of_the_manual_goes_on_after_a_kill_and_gives_the_designs_of_one_that_was_not(tmp_path: Path) -> None:
    assert LOOP is not None
    script = LOOP[1]
    assert len([line for line in script.splitlines() if line.strip()]) <= 15
    (tmp_path / "slow.py").write_text(
        "import time\n" + script.replace("    return", "    time.sleep(0.05)\n    return", 1)
    )
    (tmp_path / "lab.py").write_text(script)
    (tmp_path / "whole").mkdir()
    began = subprocess.Popen([sys.executable, "slow.py"], cwd=tmp_path, stdout=subprocess.DEVNULL)
    while not (store := tmp_path / "lab" / "evaluations.sqlite").is_file() or not len(nas_rows(store)):
        assert began.poll() is None
        time.sleep(0.05)
    os.kill(began.pid, signal.SIGKILL)
    began.wait()
    assert 0 < len(nas_rows(store)) < 60
    for folder in (tmp_path, tmp_path / "whole"):
        done = subprocess.run([sys.executable, str(tmp_path / "lab.py")], cwd=folder, capture_output=True, text=True)
        assert done.stdout.startswith("60 distinct evaluations told;"), done.stderr
    runs = [nas.read_run(folder / "lab").evaluations for folder in (tmp_path, tmp_path / "whole")]
    pd.testing.assert_frame_equal(*runs)


def nas_rows(store: Path) -> list[int]:
    """What a log that may not be laid out yet holds."""
    try:
        return nas.read_run(store.parent).recorded.evaluations.keys.tolist()
    except nas.PlasError:
        return []
