"""A run mirrored into an Optuna storage: what dashboards read there, after kills, in other hands and on failing disks."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import pytest
from optuna.storages.journal import JournalFileBackend, JournalStorage
from optuna.trial import FrozenTrial, TrialState

from nas.commands import optuna_mirror
from nas.files.yaml_source import dump

Inside = Callable[..., Any]


@pytest.fixture(autouse=True)
def study_file(tmp_path: Path, tiny: dict[str, Any]) -> None:
    """A study over the tiny space."""
    (tmp_path / "study.yaml").write_text(
        dump({"preset": "paper", "space": tiny, "budgets": {"total_ms": 30}, "baselines": []})
    )


def run(inside: Inside, evaluations: int, storage: str, *more: object, algo: str = "random") -> Any:
    """A run of the tiny study into a storage."""
    batch = "--param=population=12" if algo == "nsga2" else "--param=batch=12"
    limit = [f"--evaluations={evaluations}"] if algo != "exact" else []
    own = [batch] if algo in ("random", "nsga2") else []
    out = [] if "--out" in more else ["--out", "run"]
    line = [
        "--config",
        "study.yaml",
        "--algo",
        algo,
        *own,
        *limit,
        "--quiet",
        *out,
        "--set",
        f"optuna_storage={storage}",
    ]
    return inside("run", *line, *more)


def study_of(storage: str, name: str = "run") -> optuna.Study:
    """A study as a dashboard opens it."""
    kept = storage if "://" in storage else JournalStorage(JournalFileBackend(storage))
    return optuna.load_study(study_name=name, storage=kept)


def trials_of(storage: str, name: str = "run") -> list[FrozenTrial]:
    """Its trials."""
    return study_of(storage, name).trials


def rows_of(folder: str) -> pd.DataFrame:
    """What the run says itself."""
    return pd.read_csv(Path(folder) / "evaluations.csv", float_precision="round_trip")


def same(storage: str, folder: str = "run") -> bool:
    """Whether a storage holds every evaluation of a run, once, in order."""
    rows, trials = rows_of(folder), trials_of(storage, folder)
    assert [trial.user_attrs["index"] for trial in trials] == rows["index"].tolist()
    assert [trial.user_attrs["batch"] for trial in trials] == rows["batch"].tolist()
    assert [trial.values for trial in trials] == rows[["loss", "total_ms"]].to_numpy().tolist()
    return True


@pytest.mark.parametrize("algo", ["random", "exact", "local_search", "nsga2", "optuna_nsga2"])
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_every_strategy_shows_what_it_evaluated(algo: str, inside: Inside) -> None:
    assert run(inside, 40, "study.log", algo=algo).code == 0
    assert same("study.log")
    study, rows = study_of("study.log"), rows_of("run")
    assert study.metric_names == ["loss", "total_ms"]
    assert {direction.name for direction in study.directions} == {"MINIMIZE"}
    for trial, (_, row) in zip(study.trials, rows.iterrows(), strict=True):
        assert trial.state == TrialState.COMPLETE
        genes = ("depth", "width", "n_experts", "top_k", "expert_ffn_ratio", "n_kv_heads")
        assert trial.params == {gene: row[gene] for gene in genes}
        assert trial.constraints["total_ms <= 30"] == row["violation_total_ms"]
        listed = [row["violation_memory_gb"], row["violation_total_ms"]]
        assert trial.system_attrs["constraints"] == listed  # the one place where optuna-dashboard looks
        others = ("decode_ms", "memory_gb", "params_active")
        assert [trial.user_attrs[name] for name in others] == [row[name] for name in others]
        assert trial.user_attrs["run"] == "run"
    front = pd.read_csv("run/frontier.csv", float_precision="round_trip")
    assert sorted(trial.values for trial in study.best_trials) == sorted(
        front[["loss", "total_ms"]].to_numpy().tolist()
    )
    assert len(front) > 0


@pytest.mark.slow
def test_a_database_holds_the_same_as_a_journal(inside: Inside) -> None:
    assert run(inside, 24, "sqlite:///study.db").code == 0
    assert same("sqlite:///study.db")
    assert Path("run/config.yaml").read_text().count("optuna_storage: sqlite:///study.db\n") == 1


def test_a_single_objective_and_expert_sizes(inside: Inside, tiny: dict[str, Any]) -> None:
    axes = {key: value for key, value in tiny["axes"].items() if key != "expert_ffn_ratio"}
    Path("study.yaml").write_text(
        dump({"space": {"axes": {**axes, "expert_size": [512, 768]}}, "objectives": ["loss"]})
    )
    assert run(inside, 20, "study.log").code == 0
    rows, trials = rows_of("run"), trials_of("study.log")
    assert [trial.value for trial in trials] == rows["loss"].tolist()
    assert [trial.params["expert_size"] for trial in trials] == rows["expert_size"].tolist()


def test_failed_architectures_are_failed_trials_with_their_reason(
    inside: Inside, user_module: Callable[[str], str], tiny: dict[str, Any]
) -> None:
    name = user_module("import numpy as np\ndef fn(a):\n    return np.where(a.depth == 8, np.nan, a.depth / 3)\n")
    Path("study.yaml").write_text(dump({"space": tiny, "objectives": ["loss", f"{name}:fn"]}))
    assert run(inside, 30, "study.log").code == 0
    rows, trials = rows_of("run"), trials_of("study.log")
    failed = [trial.state == TrialState.FAIL for trial in trials]
    assert failed == (rows["state"] == "failed").tolist()
    assert any(failed)
    assert {trial.user_attrs["reason"] for trial in trials if trial.values is None} == {f"{name}:fn: nan"}


def test_resuming_adds_what_is_missing_and_nothing_twice(inside: Inside) -> None:
    assert run(inside, 30, "study.log").code == 0
    for evaluations in (30, 41):
        line = ("--resume", "run", "--evaluations", evaluations, "--set", "optuna_storage=study.log", "--quiet")
        assert inside("run", *line).code == 0
        assert same("study.log")
    assert len(rows_of("run")) == 41


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0, 1, 17, 29])
def test_a_mirror_behind_its_log_catches_up(kept: int, inside: Inside) -> None:
    assert run(inside, 30, "study.log").code == 0
    lines = Path("study.log").read_text().splitlines(keepends=True)
    before = next(i for i, line in enumerate(lines) if '"user_attrs"' in line)
    Path("study.log").write_text("".join(lines[: before + kept]))
    assert len(trials_of("study.log")) == kept
    line = ("--resume", "run", "--evaluations", 36, "--set", "optuna_storage=study.log", "--quiet")
    assert inside("run", *line).code == 0
    assert same("study.log")


def test_resuming_may_name_another_storage_or_none(inside: Inside) -> None:
    assert run(inside, 20, "first.log").code == 0
    assert (
        inside("run", "--resume", "run", "--set", "optuna_storage=second.log", "--evaluations", 26, "--quiet").code == 0
    )
    assert same("second.log")
    assert inside("run", "--resume", "run", "--set", "optuna_storage=none", "--evaluations", 30, "--quiet").code == 0
    assert (len(trials_of("first.log")), len(trials_of("second.log")), len(rows_of("run"))) == (20, 26, 30)


def test_a_mirrored_run_evaluates_what_an_unmirrored_one_does(inside: Inside) -> None:
    run(inside, 40, "study.log", algo="nsga2")
    run(inside, 40, "none", "--out", "plain", algo="nsga2")
    for name in ("evaluations.csv", "frontier.csv", "picks.csv"):
        assert (Path("run") / name).read_bytes() == (Path("plain") / name).read_bytes()


@pytest.mark.parametrize(
    ("storage", "says"),
    [
        ("nowhere/study.log", "No such file"),
        (".", "a folder"),
        ("study.yaml", "study.yaml (a file that is no Optuna journal)"),
        ("foo://study", "foo"),
        ("sqlite:////no/such/folder/study.db", "unable to open"),
        ("sqlite:///study.yaml", "not a database"),
        ("redis://localhost", "Redis"),
        ("mysql+nothing://me:secret@host/db", "nothing"),
    ],
)
def test_a_storage_that_cannot_be_used_is_refused_before_anything_is_written(
    storage: str, says: str, inside: Inside
) -> None:
    before = sorted(Path().iterdir())
    answer = run(inside, 20, storage)
    assert answer.code == 2
    (line,) = answer.err.splitlines()
    assert line.startswith("optuna_storage: expected a database URL")
    assert says in line
    assert "secret" not in line
    assert sorted(Path().iterdir()) == before


def test_another_runs_study_of_the_same_name_is_refused(inside: Inside) -> None:
    optuna.create_study(storage="sqlite:///mine.db", study_name="run").enqueue_trial({})
    for storage, more in (("sqlite:///mine.db", ()), ("study.log", ("--seed", 1)), ("study.log", ())):
        if storage == "study.log" and not Path("study.log").exists():
            assert run(inside, 20, storage, "--out", "first/run").code == 0
        answer = run(inside, 20, storage, *more)
        assert answer.code == 2
        assert answer.err.startswith("optuna_storage: expected no study 'run' or this run's in ")
        assert not Path("run").exists()
    assert len(trials_of("study.log")) == 20


def test_a_storage_that_fails_on_the_way_loses_nothing(inside: Inside, user_module: Callable[[str], str]) -> None:
    name = user_module(
        "import pathlib\nSEEN = []\ndef fn(a):\n    SEEN.extend(a.depth)\n    if len(SEEN) > 20 and pathlib.Path('study.log').is_file():\n"
        "        pathlib.Path('study.log').rename('kept.log')\n        pathlib.Path('study.log').mkdir()\n    return a.depth / 3\n"
    )
    Path("study.yaml").write_text(Path("study.yaml").read_text() + f"\nobjectives: [loss, '{name}:fn']\n")
    answer = run(inside, 40, "study.log")
    assert answer.code == 0
    (line,) = answer.err.splitlines()
    assert line.startswith("Warning: optuna_storage: study.log failed after ")
    assert len(rows_of("run")) == 40
    Path("study.log").rmdir()
    Path("kept.log").rename("study.log")
    assert 0 < len(trials_of("study.log")) < 40
    assert inside("run", "--resume", "run", "--set", "optuna_storage=study.log", "--quiet").code == 0
    assert [trial.user_attrs["index"] for trial in trials_of("study.log")] == list(range(40))


def test_a_password_is_not_kept(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    real = optuna_mirror.opened
    monkeypatch.setattr(optuna_mirror, "opened", lambda url: real("study.log"))
    assert run(inside, 20, "postgresql://me:secret@host/db").code == 0
    assert "optuna_storage: postgresql://me@host/db\n" in Path("run/config.yaml").read_text()
    assert all(b"secret" not in path.read_bytes() for path in Path("run").rglob("*") if path.is_file())


@pytest.mark.slow
def test_optuna_is_imported_only_for_a_mirror(commands: Any) -> None:
    commands.write("study.yaml", (commands.folder / "study.yaml").read_text())
    code = (
        "import sys; from nas.commands.run import execute; from nas.commands.requests import RunRequest; from pathlib import Path; "
        "execute(RunRequest({'algo': 'random', 'evaluations': 5}, config='study.yaml', out=Path('run'), quiet=True)); "
        "sys.exit('optuna' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=commands.folder, env=commands.environment(), check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    "storage",
    [
        pytest.param("sqlite:///study.db", marks=pytest.mark.slow),
        pytest.param("study.log", marks=pytest.mark.extended),  # waits 30 s for the lock of the process that was killed
    ],
)
def test_killed_between_log_and_mirror_the_resumed_run_mirrors_every_row_once(
    storage: str, commands: Any, succeeded: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(commands.folder)
    line = ["--config", "study.yaml", "--algo", "random", "--param", "batch=2", "--evaluations", 120, "--quiet"]
    succeeded(commands("run", *line, "--out", "whole"))
    process = commands.start("run", *line, "--out", "run", "--set", f"optuna_storage={storage}")
    for pause in (0.05, 0.3):
        while process.poll() is None and not Path("run/manifest.json").exists():
            time.sleep(0.005)
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process = commands.start("run", "--resume", "run", "--set", f"optuna_storage={storage}", "--quiet")
    out, err = process.communicate()
    assert process.returncode == 0, out + err
    assert same(storage)
    assert (Path("run/evaluations.csv")).read_bytes() == Path("whole/evaluations.csv").read_bytes()
    assert json.loads(Path("run/manifest.json").read_text())["state"] == "finished"
