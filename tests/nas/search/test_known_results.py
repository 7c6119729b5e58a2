"""Results from before a run: told, answered and kept, charged to nobody; what is not of the study is refused or left out by name."""

import csv
import importlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import IntDistribution
from optuna.storages.journal import JournalFileBackend, JournalStorage

from nas.files.yaml_source import dump
from nas.record.store import FILE, KNOWN
from nas.search.discovery import strategy_module
from objectives.plugins import importable

Inside = Callable[..., Any]
COST = """\
CALLS = []

def cost(a):
    CALLS.extend(range(len(a)))
    return a.depth * a.width / 1e4 + 1 / (1 + a.n_kv_heads)

cost.LOG_SCALE = True
"""
FILES = ("evaluations.csv", "frontier.csv", "picks.csv")
SMALL = {"population": 12, "batch": 10, "initial": 10, "block": 16, "startup": 1000}
HEAVY = [name for name in importable("nas.strategies") if name not in ("nsga2", "local_search", "random")]


class Study:
    """A study of the tiny space with a metric of the user's own, whose calls are counted."""

    def __init__(self, inside: Inside, folder: Path, module: str, tiny: dict[str, Any]) -> None:
        self.inside, self.folder, self.metric = inside, folder, f"{module}:cost"
        self.module = importlib.import_module(module)
        study = {"preset": "paper", "space": tiny, "objectives": ["loss", self.metric], "budgets": {"total_ms": 60}}
        self.write("study.yaml", dump({**study, "baselines": [], "applications": {}}))

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return name

    def calls(self) -> int:
        """Evaluations since the last question."""
        count = len(self.module.CALLS)
        self.module.CALLS.clear()
        return count

    def run(self, algo: str, out: str, *more: object, evaluations: int | None = 30) -> Any:
        """A run of the study, in small batches."""
        fields = strategy_module(algo).Parameters.model_fields
        small = [f"--param={name}={value}" for name, value in SMALL.items() if name in fields]
        limit = [] if evaluations is None else ["--evaluations", evaluations]
        return self.inside("run", "--config", "study.yaml", "--algo", algo, *small, *limit, "--out", out, *more)

    def ran(self, algo: str, out: str, *more: object, **options: Any) -> Any:
        answer = self.run(algo, out, *more, **options)
        assert answer.code == 0, answer
        return answer

    def rows(self, out: str) -> list[dict[str, str]]:
        with (self.folder / out / "evaluations.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    def summary(self, out: str) -> dict[str, Any]:
        found = json.loads((self.folder / out / "summary.json").read_text())
        assert isinstance(found, dict)
        return found

    def bytes_of(self, out: str) -> dict[str, bytes]:
        return {name: (self.folder / out / name).read_bytes() for name in FILES}


@pytest.fixture
def lab(inside: Inside, tmp_path: Path, user_module: Callable[[str], str], tiny: dict[str, Any]) -> Study:
    """The study, and an earlier run of 30 evaluations in `first`."""
    study = Study(inside, tmp_path, user_module(COST), tiny)
    study.ran("random", "first", "--quiet")
    assert study.calls() == 30
    return study


SHAPE = ("depth", "width", "n_experts", "top_k", "expert_size", "n_kv_heads")


def shape(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in SHAPE)


def told_to_optuna(lab: Study, name: str, storage: Any) -> None:
    """The rows of the earlier run as trials of a study of this name."""
    study = optuna.create_study(storage=storage, study_name=name, directions=["minimize"] * 2)
    study.set_metric_names(["loss", lab.metric])
    numbers = dict.fromkeys(SHAPE, IntDistribution(1, 100_000))
    for row in lab.rows("first"):
        params, values = {key: int(row[key]) for key in SHAPE}, [float(row["loss"]), float(row[lab.metric])]
        study.add_trial(optuna.create_trial(params=params, distributions=numbers, values=values))


@pytest.mark.parametrize(
    "algo", ["nsga2", "local_search", "random", *(pytest.param(name, marks=pytest.mark.slow) for name in HEAVY)]
)
def test_every_strategy_takes_known_results_for_nothing(algo: str, lab: Study) -> None:
    limit = None if algo == "exact" else 40
    lab.ran(algo, "run", "--set", "known=first", "--seed", 7, "--quiet", evaluations=limit)
    rows, charged = lab.rows("run"), 40 if limit else 162 - 30
    assert lab.calls() == charged
    assert [row["batch"] for row in rows[:30]] == [str(KNOWN)] * 30
    assert [shape(row) for row in rows[:30]] == [shape(row) for row in lab.rows("first")]
    assert len({shape(row) for row in rows}) == len(rows) == 30 + charged
    counted = lab.summary("run")["evaluations"]
    assert (counted["distinct"], counted["known"]) == (charged, 30)
    lab.ran(algo, "again", "--set", "known=first", "--seed", 7, "--quiet", evaluations=limit)
    assert lab.bytes_of("again") == lab.bytes_of("run")
    if limit and not strategy_module(algo).TRAITS.horizon:  # whose schedule depends on the number that was asked for
        lab.ran(algo, "part", "--set", "known=first", "--seed", 7, "--quiet", evaluations=17)
        lab.calls()
        assert lab.inside("run", "--resume", "part", "--evaluations", 40, "--quiet").code == 0
        assert lab.calls() == 23
        assert lab.bytes_of("part") == lab.bytes_of("run")


@pytest.mark.slow
@pytest.mark.parametrize("algo", ["nsga2", "local_search"])
def test_without_waiting_they_are_charged_to_nobody_either(algo: str, lab: Study) -> None:
    lab.ran(
        algo,
        "run",
        "--set",
        "known=first",
        "--workers",
        2,
        "--set",
        "asynchronous=true",
        "--seed",
        7,
        "--quiet",
        evaluations=20,
    )
    assert lab.inside("run", "--resume", "run", "--evaluations", 30, "--quiet").code == 0
    rows = lab.rows("run")
    assert [shape(row) for row in rows[:30]] == [shape(row) for row in lab.rows("first")]
    assert len({shape(row) for row in rows}) == len(rows) == 60
    counted = lab.summary("run")["evaluations"]
    assert (counted["distinct"], counted["known"]) == (30, 30)


def test_the_folder_holds_what_was_known(lab: Study, tmp_path: Path) -> None:
    said = lab.ran("nsga2", "run", "--set", "known=first", evaluations=20)
    assert "known: first: 30 results taken, not charged" in said.out
    assert "30 results were known before" in said.out
    (entry,) = json.loads((tmp_path / "run" / "manifest.json").read_text())["known"]
    assert entry == {"source": "first", "used": 30, "left_out": {}, "notes": []}
    expected = lab.bytes_of("run")
    (tmp_path / "first").rename(tmp_path / "gone")
    assert lab.inside("run", "--config", "run", "--out", "again", "--quiet").code == 0
    assert lab.bytes_of("again") == expected
    (tmp_path / "run" / "known.csv").unlink()
    lab.calls()
    assert lab.inside("run", "--resume", "run", "--evaluations", 25, "--quiet").code == 0
    assert lab.calls() == 5
    report = lab.inside("report", "run")
    assert report.code == 0, report
    counted = json.loads(lab.inside("watch", "run", "--once", "--json").out)
    assert counted["evaluations"] == counted["limit"] == 25


@pytest.mark.slow
def test_a_run_its_table_its_store_and_its_trials_say_the_same(lab: Study, tmp_path: Path) -> None:
    told_to_optuna(lab, "one", "sqlite:///study.db")
    told_to_optuna(lab, "one", JournalStorage(JournalFileBackend("study.log")))
    (tmp_path / "known.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lab.rows("first")))
    sources = [
        "first",
        "first/evaluations.csv",
        f"first/{FILE}",
        "known.jsonl",
        "study.db",
        "sqlite:///study.db",
        "study.log",
    ]
    found = {}
    for number, source in enumerate(sources):
        lab.ran("nsga2", f"run{number}", "--set", f"known={source}", "--quiet", evaluations=20)
        found[source] = lab.bytes_of(f"run{number}")
    assert all(files == found["first"] for files in found.values()), [s for s in sources if found[s] != found["first"]]


def test_of_several_studies_in_a_storage_one_is_named(lab: Study) -> None:
    for name in ("one", "two"):
        told_to_optuna(lab, name, JournalStorage(JournalFileBackend("study.log")))
    answer = lab.run("nsga2", "run", "--set", "known=study.log")
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
    assert "expected one study, got one, two; name one: study.log#STUDY" in answer.err
    lab.ran("nsga2", "run", "--set", "known=study.log#two", "--quiet")


def test_what_is_not_of_the_study_is_left_out_by_name(lab: Study, tmp_path: Path) -> None:
    rows = lab.rows("first")
    rows[0] |= {"depth": "6"}
    rows[1] |= {"state": "failed", "reason": "no power"}
    rows[2] |= {lab.metric: ""}
    rows[3] |= {lab.metric: "-1"}
    table = [{"precision": "int8" if number == 4 else "fp16", **row} for number, row in enumerate(rows)]
    with (tmp_path / "some.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows(table)
    lab.ran("nsga2", "run", "--set", "known=some.csv", "--quiet")
    (entry,) = json.loads((tmp_path / "run" / "manifest.json").read_text())["known"]
    assert entry["used"] == 25
    assert entry["left_out"] == {
        "failed there": 1,
        "outside the space tiny": 1,
        "of another precision": 1,
        f"without {lab.metric}": 1,
        f"{lab.metric} has no logarithm": 1,
    }


def known_csv(*values: object, name: str = "value", extra: str = "") -> str:
    """A table of designs of one width, the first of which is told twice."""
    depths = [4, 4, 8, 12]
    head = f"depth,width,n_kv_heads,expert_ffn_ratio,{name}{extra and ',tokens'}\n"
    return head + "".join(
        f"{depth},768,2,1,{value}{extra and f',{extra}e{i}'}\n"
        for i, (depth, value) in enumerate(zip(depths, values, strict=False))
    )


def test_a_column_is_named_and_a_design_told_twice_counts_by_its_mean(lab: Study) -> None:
    lab.write("mine.csv", known_csv(1.0, 3.0, 5.0))
    lab.ran(
        "nsga2", "run", "--set", "known=mine.csv", "--set", f"known_as={lab.metric}=value", "--quiet", evaluations=5
    )
    assert [float(row[lab.metric]) for row in lab.rows("run")[:2]] == [2.0, 5.0]
    lab.write("short.csv", known_csv(0.1, 0.1, 0.7, name="cost"))
    lab.ran("nsga2", "short", "--set", "known=short.csv", "--quiet", evaluations=5)
    assert [float(row[lab.metric]) for row in lab.rows("short")[:2]] == [0.1, 0.7]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        (known_csv(1, 2), (), "expected a column cost with values of"),
        (known_csv(1, 2), ("--set", "known_as=loss=value"), "known_as: expected a metric of your own"),
        (known_csv(1, 2), ("--set", "known_as=value"), "expected METRIC=COLUMN, got 'value'"),
        (known_csv("", "nan", name="cost"), (), "expected a column cost"),
        (known_csv(1, 2, name="cost", extra="1"), (), "expected results of one number of training tokens"),
        (known_csv(-1, -2, name="cost"), (), "got none (2 "),
        ("depth,width,n_kv_heads,expert_ffn_ratio,cost\n4,832,1,1,3\n", (), "got none (1 outside the space tiny)"),
        ("depth,width\n4,x\n", (), "row 1: "),
        ("", (), "expected architectures, got an empty file"),
        (known_csv(1, 2, name="\x1b[31mcost"), (), "\\u001b[31mcost"),
    ],
)
def test_what_cannot_be_used_is_one_line_before_anything_is_written(
    text: str, more: tuple[str, ...], said: str, lab: Study, tmp_path: Path
) -> None:
    lab.write("mine.csv", text)
    answer = lab.run("nsga2", "run", "--set", "known=mine.csv", *more)
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
    assert said in answer.err
    assert "\x1b" not in answer.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("source", ["nowhere", "study.yaml", "note.txt", "other.db", "first/plots", "x\0y"])
def test_what_is_no_source_is_one_line(source: str, lab: Study, tmp_path: Path) -> None:
    lab.write("note.txt", "hello\n")
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE t (a)")
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    answer = lab.run("nsga2", "run", "--set", f"known={source}")
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_formulas_of_another_law_or_device_are_no_results_of_this_study(lab: Study, inside: Inside) -> None:
    plain = ["--config", "study.yaml", "--objectives", "loss,total_ms", "--evaluations", 20, "--quiet"]
    assert inside("run", *plain, "--algo", "random", "--out", "plain").code == 0
    again = [*plain, "--algo", "nsga2", "--param=population=12"]
    assert inside("run", *again, "--set", "known=plain", "--out", "same").code == 0
    answer = inside("run", *again, "--set", "known=plain", "--device", "jetson_agx_thor", "--out", "thor")
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
    assert "as this study computes them, got others in 20 of 20 rows" in answer.err
    measured = lab.ran("nsga2", "thor", "--set", "known=first", "--device", "jetson_agx_thor")
    assert "computed again: 30 rows of the source differ" in measured.out


def test_a_function_of_the_scenario_takes_results_of_the_same_device_alone(
    inside: Inside, tmp_path: Path, user_module: Callable[[str], str], tiny: dict[str, Any]
) -> None:
    module = user_module("CALLS = []\ndef cost(a, scenario):\n    return a.depth * scenario.device.memory_gb\n")
    study = Study(inside, tmp_path, module, tiny)
    study.ran("random", "first", "--quiet")
    answer = study.run("nsga2", "run", "--set", "known=first", "--device", "jetson_agx_thor")
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
    assert "which takes the scenario, of this study's device" in answer.err
    study.ran("nsga2", "run", "--set", "known=first", "--quiet")


def test_known_results_belong_to_the_beginning_and_to_single_runs(lab: Study) -> None:
    lab.ran("nsga2", "run", "--quiet")
    for line in (
        ("run", "--resume", "run", "--set", "known=first"),
        ("run", "--resume", "run", "--set", "known=[first]"),
        ("compare", "--config", "study.yaml", "--algos", "nsga2", "--set", "known=[first]"),
    ):
        answer = lab.inside(*line)
        assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
        assert answer.err.removeprefix("--set ").startswith("known: expected "), answer.err


def test_a_metric_that_always_fails_is_told_whatever_was_known(lab: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any) -> Any:
        raise OSError("no board")

    monkeypatch.setattr(lab.module, "cost", broken)
    answer = lab.run("random", "run", "--set", f"known_as={lab.metric}={lab.metric}", "--set", "known=first", "--quiet")
    assert answer.code == 2
    assert "no board" in answer.err
    assert len(lab.rows("first")) == 30
