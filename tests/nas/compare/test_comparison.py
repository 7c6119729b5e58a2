"""Comparisons as a user runs them, in this process: results, growth, failures, nothing feasible, comparisons of earlier releases."""

import csv
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nas.files import yaml_source
from nas.record.store import FILE

STEPPED = "def cost(a, *, fidelity):\n    return a.width / fidelity\n\n\ncost.FIDELITIES = (1, 4)\n"
Compare = Callable[..., Any]
Written = Callable[..., str]


def tables(folder: Path) -> dict[str, bytes]:
    """What must not differ between two comparisons of the same: every table and the page."""
    return {path.name: path.read_bytes() for path in [*(folder / "tables").iterdir(), folder / "report.md"]}


def rows(path: Path) -> list[dict[str, str]]:
    """A CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def made(small_comparison: Path, tmp_path: Path) -> Path:
    """A copy of a small comparison of two studies, that a test may change."""
    shutil.copytree(small_comparison, tmp_path / "made")
    return tmp_path / "made"


def test_the_last_checkpoint_is_what_a_runs_summary_says(made: Path, inside: Compare, tmp_path: Path) -> None:
    cell = made / "cells" / "tight" / "nsga2" / "s1"
    assert inside("run", "--config", cell, "--out", tmp_path / "run", "--quiet").code == 0
    exact = json.loads((tmp_path / "run" / "summary.json").read_text())["exact"]
    (row,) = [
        row
        for row in rows(made / "tables" / "runs.csv")
        if (row["study"], row["strategy"], row["run"], row["evaluations"]) == ("tight", "nsga2", "s1", "40")
    ]
    assert {name: float(row[name]) for name in ("gap", "share", "igd_plus", "epsilon")} == {
        name: exact[name] for name in ("gap", "share", "igd_plus", "epsilon")
    }


@pytest.mark.slow
def test_growing_step_by_step_ends_in_the_same_bytes(
    compare: Compare, comparison_file: Written, tmp_path: Path
) -> None:
    config = comparison_file()
    small = ("--config", config, "--studies", "loose", "--algos", "nsga2", "--seeds", 1, "--evaluations", 25)
    assert compare(*small, "--out", tmp_path / "grown").code == 0
    log = tmp_path / "grown" / "cells" / "loose" / "nsga2" / "s0" / "config.yaml"
    started = log.with_name("manifest.json").read_text().split('"started": ')[1][:30]
    for more in (("--seeds", 2), ("--algos", "sobol"), ("--evaluations", 40), ("--config", config), ("--seeds", 3)):
        answer = compare("--resume", tmp_path / "grown", *more)
        assert answer.code == 0, answer.err
    assert compare("--config", config, "--out", tmp_path / "once").code == 0
    assert tables(tmp_path / "grown") == tables(tmp_path / "once")
    assert started in log.with_name("manifest.json").read_text()


def test_what_is_there_is_not_run_again(made: Path, compare: Compare) -> None:
    before = {path: path.stat().st_mtime_ns for path in made.rglob("evaluations.sqlite")}
    kept = tables(made)
    assert compare("--resume", made, "--quiet").code == 0
    assert {path: path.stat().st_mtime_ns for path in made.rglob("evaluations.sqlite")} == before
    assert tables(made) == kept


@pytest.mark.slow
def test_a_damaged_run_counts_as_failed_and_is_named(made: Path, compare: Compare) -> None:
    store = made / "cells" / "loose" / "sobol" / "s2" / "evaluations.sqlite"
    content = bytearray(store.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 4096] = b"\xff" * 4096
    store.write_bytes(content)
    answer = compare("--resume", made)
    assert answer.code == 0
    assert "Failed: sobol s2 in loose: " in answer.out
    assert "2 (1 failed)" in answer.out
    (row,) = [
        row
        for row in rows(made / "tables" / "results.csv")
        if (row["study"], row["strategy"], row["measure"]) == ("loose", "sobol", "gap")
    ]
    assert (row["runs"], row["failed"]) == ("2", "1")
    paired = [row for row in rows(made / "tables" / "pairs.csv") if row["study"] == "loose" and "sobol" in row.values()]
    assert {row["runs"] for row in paired} == {"2"}
    shutil.rmtree(store.parent)
    assert "failed" not in compare("--resume", made).out


@pytest.mark.slow
def test_a_strategy_all_of_whose_runs_failed_is_a_failed_comparison(made: Path, compare: Compare) -> None:
    for store in (made / "cells" / "loose" / "sobol").glob("*/evaluations.sqlite"):
        content = bytearray(store.read_bytes())
        content[len(content) // 2 : len(content) // 2 + 4096] = b"\xff" * 4096
        store.write_bytes(content)
    answer = compare("--resume", made)
    assert answer.code == 1
    assert "every run of sobol on loose failed: " in answer.err
    assert "nsga2" in answer.out


def test_a_lost_manifest_or_log_is_made_again(made: Path, compare: Compare) -> None:
    kept = tables(made)
    (made / "cells" / "loose" / "nsga2" / "s0" / "manifest.json").unlink()
    (made / "cells" / "loose" / "nsga2" / "s1" / "evaluations.sqlite").unlink()
    shutil.rmtree(made / "tables")
    assert compare("--resume", made, "--quiet").code == 0
    assert tables(made) == kept


def test_a_run_that_was_extended_by_itself_counts_as_far_as_asked(
    made: Path, compare: Compare, inside: Compare
) -> None:
    kept = tables(made)
    assert (
        inside("run", "--resume", made / "cells" / "tight" / "nsga2" / "s1", "--evaluations", 70, "--quiet").code == 0
    )
    assert compare("--resume", made, "--quiet").code == 0
    assert tables(made) == kept


def test_a_capped_run_that_was_extended_by_itself_counts_to_its_cap(
    comparison_file: Written, compare: Compare, inside: Compare, tmp_path: Path
) -> None:
    config = comparison_file(studies={"loose": {}}, caps={"sobol": 20})
    assert compare("--config", config, "--out", tmp_path / "capped", "--quiet").code == 0
    kept = tables(tmp_path / "capped")
    cell = tmp_path / "capped" / "cells" / "loose" / "sobol" / "s1"
    assert inside("run", "--resume", cell, "--evaluations", 30, "--quiet").code == 0
    assert compare("--resume", tmp_path / "capped", "--quiet").code == 0
    assert tables(tmp_path / "capped") == kept


def test_a_run_of_another_study_is_refused(made: Path, compare: Compare) -> None:
    cells = made / "cells" / "loose" / "sobol"
    shutil.rmtree(cells / "s0")
    shutil.copytree(cells / "s1", cells / "s0")
    assert "seed: 1 in the run, 0 now" in compare("--resume", made).out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--seeds", 2), "expected at least 3"),
        (("--evaluations", 30), "expected at least 40"),
        (("--param", "nsga2.population=20"), "params.nsga2"),
        (("--cap", "sobol=30"), "caps.sobol: expected at least 40"),
        (("--cap", "sobol"), "write for example --cap optuna_gp=60"),
        (("--cap", "optuna_tpe=few"), "caps.optuna_tpe: expected"),
        (("--device", "l4"), "flags of a study only with --studies"),
        (("--out", "x"), "expected no --out with it"),
        (("--no-baselines",), "expected --no-baselines only when a comparison begins"),
        (("--studies", "nothing"), "studies: expected a study of the comparison, a shipped one or a file"),
    ],
)
def test_what_does_not_fit_the_folder_is_refused(
    made: Path, compare: Compare, flags: tuple[Any, ...], said: str
) -> None:
    answer = compare("--resume", made, *flags)
    assert (answer.code, said in answer.err) == (2, True), answer.err


@pytest.mark.slow
def test_what_a_file_asks_for_beside_its_studies_is_said_to_be_left(
    made: Path, compare: Compare, comparison_file: Written
) -> None:
    answer = compare("--resume", made, "--config", comparison_file(seeds=4, algos=["nsga2", "spea2"]))
    assert answer.code == 0
    assert "only its studies are added; seeds, algos stay as recorded" in answer.err
    assert "stay as recorded" not in compare("--resume", made, "--config", comparison_file()).err


def test_an_interim_result_holds_what_is_complete_and_runs_nothing(made: Path, compare: Compare) -> None:
    missing = made / "cells" / "loose" / "nsga2" / "s1"
    shutil.rmtree(missing)
    answer = compare("--resume", made, "--interim", "--json")
    assert answer.code == 0, answer.err
    assert not missing.exists()
    found = json.loads(answer.out)
    assert {row["strategy"] for row in found["results"] if row["study"] == "loose"} == {"sobol", "random", "lhs"}
    assert {row["strategy"] for row in found["results"] if row["study"] == "tight"} == {
        "nsga2",
        "sobol",
        "random",
        "lhs",
    }
    assert found["left_out"] == ["Skipped: nsga2 in loose: 2 of 3 runs are there yet"]
    shutil.rmtree(made / "cells")
    answer = compare("--resume", made, "--interim")
    assert (answer.code, "got none; continue it first" in answer.err) == (2, True)
    answer = compare("--resume", made, "--interim", "--seeds", 4)
    assert (answer.code, "--interim: expected no --seeds with it" in answer.err) == (2, True)


def test_a_comparison_of_an_earlier_release_goes_on_without_the_traces_beside_it(made: Path, compare: Compare) -> None:
    kept, plan = tables(made), made / "comparison.yaml"
    plan.write_text(plan.read_text() + "columns: [key=net]\nreference: {loss: 4.0, total_ms: 100.0}\nbounds: {}\n")
    (made / "traces").mkdir()
    answer = compare("--resume", made)
    assert (answer.code, tables(made) == kept) == (0, True)


def test_another_study_of_the_same_name_is_refused(made: Path, compare: Compare, comparison_file: Written) -> None:
    other = comparison_file(studies={"tight": {"budgets": {"total_ms": 41}}})
    answer = compare("--resume", made, "--config", other)
    assert answer.code == 2
    assert "budgets.total_ms: 40.0 in the run, 41.0 now" in answer.err


@pytest.mark.slow
def test_nothing_feasible_in_one_study_and_in_all(compare: Compare, comparison_file: Written, tmp_path: Path) -> None:
    config = comparison_file(studies={"loose": {}, "none": {"budgets": {"total_ms": 1e-6}}})
    answer = compare("--config", config, "--seeds", 1, "--out", tmp_path / "some")
    assert answer.code == 0
    assert "none: no run found a feasible design" in answer.out
    answer = compare("--config", config, "--studies", "none", "--seeds", 1, "--out", tmp_path / "all")
    assert (answer.code, "no feasible architecture in any study" in answer.err) == (3, True)


def test_a_small_space_is_exhausted_and_said(compare: Compare, comparison_file: Written, tmp_path: Path) -> None:
    config = comparison_file(studies={"loose": {}}, seeds=1, evaluations=500)
    answer = compare("--config", config, "--algos", "sobol", "--out", tmp_path / "out")
    assert "exhausted" in answer.out
    (row,) = [
        row
        for row in rows(tmp_path / "out" / "tables" / "results.csv")
        if (row["strategy"], row["measure"]) == ("sobol", "gap")
    ]
    assert (row["median"], row["ended"]) == ("0.0", "exhausted")


@pytest.mark.slow
def test_without_an_exact_frontier_the_union_stands_in(
    compare: Compare, comparison_file: Written, user_module: Callable[[str], str], tmp_path: Path
) -> None:
    module = user_module(
        "def cost(a):\n    import numpy as np\n"
        "    return np.where(a.depth == 8, np.nan, a.width / a.depth * (1 + a.n_kv_heads % 3))\n"
    )
    config = comparison_file(studies={"mine": {"objectives": ["loss", f"{module}:cost"]}}, seeds=2)
    answer = compare("--config", config, "--out", tmp_path / "out")
    assert answer.code == 0, answer.err
    assert "gap to union" in answer.out
    assert "There is no exact frontier here" in answer.out
    assert {row["reference"] for row in rows(tmp_path / "out" / "tables" / "results.csv")} == {"union of all runs"}


def test_fidelity_steps_are_left_out_and_it_says_so(
    compare: Compare, comparison_file: Written, user_module: Callable[[str], str], tmp_path: Path
) -> None:
    name = f"{user_module(STEPPED)}:cost"
    config = comparison_file(studies={"mine": {"objectives": ["loss", name]}}, seeds=1, evaluations=6)
    answer = compare("--config", config, "--algos", "random", "--out", tmp_path / "out")
    assert answer.code == 0, answer.err
    said = f"{name}: every evaluation at the full fidelity, a comparison takes no steps."
    assert said in " ".join(answer.out.split())
    assert said in (tmp_path / "out" / "report.md").read_text()
    with closing(sqlite3.connect(tmp_path / "out" / "cells" / "mine" / "random" / "s0" / FILE)) as store:
        found = store.execute(f'SELECT width, "{name}" FROM evaluations').fetchall()
    assert [value for _, value in found] == [width / 4 for width, _ in found]
    assert len(found) == 6


def test_json_and_files_hold_the_same(compare: Compare, comparison_file: Written, tmp_path: Path) -> None:
    answer = compare(
        "--config", comparison_file(), "--seeds", 2, "--studies", "loose", "--out", tmp_path / "out", "--json"
    )
    content = json.loads(answer.out)
    assert len(content["results"]) == len(rows(tmp_path / "out" / "tables" / "results.csv")) == 4 * 5
    assert content["reading"]["loose"]
    assert (tmp_path / "out" / "timing" / "overhead.csv").exists()


def test_a_comparison_is_no_study(inside: Compare, comparison_file: Written) -> None:
    answer = inside("run", "--config", comparison_file())
    assert (answer.code, "plas compare --config" in answer.err) == (2, True)


def test_failed_evaluations_are_tried_again_when_asked(
    compare: Compare, comparison_file: Written, user_module: Callable[[str], str], tmp_path: Path
) -> None:
    module = user_module(
        "from pathlib import Path\n\n\ndef cost(a):\n"
        f"    if not Path({str(tmp_path / 'ready')!r}).exists() and a.depth[0] == 12:\n        raise RuntimeError('busy')\n"
        "    return a.width * 1.0\n"
    )
    config = comparison_file(studies={"mine": {"objectives": ["loss", f"{module}:cost"]}}, seeds=1, evaluations=12)
    assert compare("--config", config, "--algos", "sobol", "--out", tmp_path / "out").code == 0
    before = yaml_source.read(tmp_path / "out" / "comparison.yaml")
    (tmp_path / "ready").touch()
    kept = tables(tmp_path / "out")
    assert compare("--resume", tmp_path / "out").code == 0
    assert tables(tmp_path / "out") == kept
    assert compare("--resume", tmp_path / "out", "--retry-failed").code == 0
    assert tables(tmp_path / "out") != kept
    assert yaml_source.read(tmp_path / "out" / "comparison.yaml") == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--seeds", 0), "seeds"),
        (("--algos", ""), "algos"),
        (("--workers", 0), "workers: expected at least 1, got '0'"),
        (("--retry-failed",), "--retry-failed: expected --resume with it, got none"),
        (("--set", "seed=3"), "--set seed"),
        (("--param", "population=3"), "nsga2.population"),
        (("--param", "nsga3.population=8", "--algos", "nsga2"), "--param nsga3: expected a strategy compared here"),
        (("--config", "nothing.yaml"), "expected a file or a shipped study"),
        (("--resume", "nothing"), "expected a comparison"),
    ],
)
def test_mistakes_are_one_line(compare: Compare, tmp_path: Path, arguments: tuple[Any, ...], said: str) -> None:
    answer = compare(*arguments)
    assert (answer.code, said in answer.err) == (2, True), answer.err
    assert list(tmp_path.iterdir()) == []


def test_baselines_are_left_out_where_asked(compare: Compare, comparison_file: Written, tmp_path: Path) -> None:
    small = ("--studies", "loose", "--algos", "sobol", "--seeds", 1, "--evaluations", 15, "--quiet")
    for flags, expected in (((), {"sobol", "random", "lhs"}), (("--no-baselines",), {"sobol"})):
        folder = tmp_path / str(len(flags))
        assert compare("--config", comparison_file(), *small, *flags, "--out", folder).code == 0
        assert {row["strategy"] for row in rows(folder / "tables" / "runs.csv")} == expected
