"""The commands as a user runs them: subprocesses in a folder of the user's own."""

import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.commands import run as running
from nas.commands.report import draw
from nas.files.yaml_source import dump, parse
from nas.search.discovery import strategy_module
from nas.terminal.doors import COMMANDS
from objectives.plugins import importable

Inside = Callable[..., Any]
Checked = Callable[..., str]
HEAVY = {"numpy", "scipy", "pandas", "matplotlib", "pymoo", "optuna", "moocore", "bokeh", "torch", "numba"}
SPACE = """\
name: mine
head_dim: 32
axes:
  depth: {from: 2, to: 6, step: 2}
  width: [256, 320]
  n_experts: [1, 4]
  top_k: [1, 2]
  expert_size: [128, 256]
  n_kv_heads: divisors
"""
DEVICE = "name: My board\nfp16: 2 TFLOP/s\nint8: 4 TOP/s\nbandwidth: 17 GB/s\nmemory: 4 GB\n"
LAW = """\
name: my_law
form: hw_codesign
coefficients: {kappa_l: 9, alpha_l: 1.6, kappa_rho: 0.03, alpha_rho: 1.1, alpha_r: 0.17, beta_1: -0.3, kappa_d: 480, beta_2: 0.95, kappa_m: 2e-1, alpha_m: 0.05, l_inf: 2.5}
fitted_on: {depth: [2, 6]}
"""
MODULE = """\
import numpy as np

def energy(a):
    return a.depth * a.width / 1e3

energy.LOG_SCALE = True

def gaps(a):
    return np.where(a.depth == 4, np.nan, a.depth / 3)

def raises(a):
    if (a.width == 320).any():
        raise RuntimeError("no such chip")
    return a.depth / 3

def short(a):
    return a.depth[:-1]
"""
STUDY = "name: own\nspace: space.yaml\nlaw: law.yaml\ndevice: device.yaml\nobjectives: [loss, 'mymod:energy']\nalgo: random\nevaluations: 40\nparams: {batch: 15}\n"


@pytest.fixture
def own(commands: Any) -> Any:
    """Commands in a folder with a space, a law, a device, a metric and a study of one's own."""
    for name, text in (
        ("space.yaml", SPACE),
        ("device.yaml", DEVICE),
        ("law.yaml", LAW),
        ("mymod.py", MODULE),
        ("study.yaml", STUDY),
    ):
        commands.write(name, text)
    return commands


def rows(path: Path) -> list[dict[str, str]]:
    """A CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# Help


HELP = """
import contextlib, importlib, io, json, sys
from nas.terminal.doors import door
found = {}
for name in sys.argv[1:]:
    before, out = {*sys.modules}, io.StringIO()
    sys.argv, code = ["nas", "--help"], None
    with contextlib.redirect_stdout(out):
        try:
            importlib.import_module(door(name)).main()
        except SystemExit as stopped:
            code = stopped.code
    found[name] = (code, out.getvalue(), sorted({module.partition(".")[0] for module in {*sys.modules} - before}))
print(json.dumps(found))
"""


def test_help_imports_nothing_heavy(commands: Any) -> None:
    """One command's help after the other in one process, each with what it alone brought in."""
    names = ["__main__", *COMMANDS]
    line = [sys.executable, "-c", HELP, *names]
    result = subprocess.run(
        line, cwd=commands.folder, env=commands.environment(), capture_output=True, text=True, check=True
    )
    found = json.loads(result.stdout)
    assert list(found) == names
    for name, (code, out, imported) in found.items():
        assert code in (None, 0), (name, out)
        assert "Usage:" in out, name
        assert not {*imported} & HEAVY, name
    assert list(commands.folder.iterdir()) == []


def test_the_overview_names_every_command(commands: Any, succeeded: Checked) -> None:
    said = succeeded(commands("__main__"))
    for command in COMMANDS:
        assert re.search(rf"^  {command} +\S", said, re.MULTILINE), command
    assert "Warning" not in said


# One's own everything


@pytest.mark.slow
def test_a_study_of_ones_own_runs_from_files_in_the_folder(
    own: Any, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "draw", draw)  # which `inside` leaves out
    answer = inside("run", "--config", "study.yaml", "--verbose")
    assert answer.code == 0, answer
    folder, said = own.folder / "runs" / "own-random-s0", answer.out
    assert "My board" in said
    assert "mine space, 144 architectures" in said
    assert "my_law" in said
    assert "a user's function cannot be enumerated" in said
    for name in (
        "config.yaml",
        "manifest.json",
        "evaluations.sqlite",
        "evaluations.csv",
        "frontier.csv",
        "picks.csv",
        "summary.json",
    ):
        assert (folder / name).stat().st_size, name
    assert {p.name for p in (folder / "plots").iterdir()} == {"frontier.png", "frontier.svg"}
    found = rows(folder / "evaluations.csv")
    assert len(found) == 40
    assert all(float(row["mymod:energy"]) == int(row["depth"]) * int(row["width"]) / 1e3 for row in found)
    assert json.loads((folder / "summary.json").read_text())["scale"]["mymod:energy"]["scale"] == "log"
    assert json.loads((folder / "manifest.json").read_text())["state"] == "finished"
    config = (folder / "config.yaml").read_text()
    assert "My board" in config
    assert "kappa_d: 480.0" in config
    assert ".yaml" not in config.replace("name: law.yaml", "")  # which file the law came from; nothing is read again


@pytest.mark.slow
def test_a_users_module_is_found_where_the_folder_is_not_on_the_path(own: Any, succeeded: Checked) -> None:
    line = own.line("run", "--config", "study.yaml", "--objectives", "mymod:energy", "--quiet")
    result = subprocess.run(
        [line[0], "-P", *line[1:]], cwd=own.folder, env=own.environment(), capture_output=True, text=True, check=False
    )
    succeeded(result)


def test_the_same_from_a_run_folder_and_from_its_config(own: Any, succeeded: Checked, inside: Inside) -> None:
    assert inside("run", "--config", "study.yaml", "--out", "first", "--quiet").code == 0
    for i, config in enumerate(("first", "first/config.yaml")):
        assert inside("run", "--config", config, "--out", f"again{i}", "--quiet").code == 0
        for name in ("evaluations.csv", "frontier.csv", "picks.csv", "config.yaml"):
            assert (own.folder / "first" / name).read_bytes() == (own.folder / f"again{i}" / name).read_bytes(), name


@pytest.mark.parametrize(
    ("function", "failed", "reason"),
    [
        ("gaps", lambda row: row["depth"] == "4", "mymod:gaps: nan"),
        ("raises", lambda row: row["width"] == "320", "mymod:raises: RuntimeError: no such chip"),
    ],
)
def test_what_a_users_metric_fails_on_is_kept_with_its_reason(
    function: str, failed: Callable[[dict[str, str]], bool], reason: str, own: Any, inside: Inside
) -> None:
    answer = inside("run", "--config", "study.yaml", "--objectives", f"loss,mymod:{function}", "--out", "run")
    assert answer.code == 0, answer
    found = rows(own.folder / "run" / "evaluations.csv")
    assert len(found) == 40
    for row in found:
        assert (row["state"], row["reason"]) == (("failed", reason) if failed(row) else ("ok", "")), row
        assert (row[f"mymod:{function}"] == "") == (row["state"] == "failed")
        assert row["loss"] != ""
    count = sum(row["state"] == "failed" for row in found)
    assert 0 < count < 40
    assert f"{count} evaluations failed; their reasons are in evaluations.csv." in answer.out
    assert not any(failed(row) for row in rows(own.folder / "run" / "frontier.csv"))


def test_a_wrong_shape_is_one_line_and_the_log_is_kept(own: Any, inside: Inside) -> None:
    answer = inside("run", "--config", "study.yaml", "--objectives", "loss,mymod:short", "--out", "run")
    said = [
        line
        for line in answer.err.splitlines()
        if not line.startswith(("Warning: this device was not measured", "Warning: without effect"))
    ]
    assert (answer.code, len(said)) == (2, 1), answer
    assert said[0].startswith("mymod:short: expected shape (1,), got (0,)")
    assert json.loads((own.folder / "run" / "manifest.json").read_text())["state"] == "failed"


def test_everything_failing_is_said_as_that(own: Any, inside: Inside) -> None:
    own.write("bad.py", "import numpy as np\ndef nan(a):\n    return np.full(len(a), np.nan)\n")
    for extra in ([], ["--budget", "memory_gb=none"]):
        answer = inside("run", "--config", "study.yaml", "--objectives", "loss,bad:nan", *extra)
        assert answer.code == 2, answer
        assert "got the same failure of all 15 evaluated: bad:nan: nan" in answer.err
        assert "Nothing fits" not in answer.out


def test_a_negative_zero_is_a_value_like_any_other(own: Any, inside: Inside) -> None:
    own.write("zero.py", "import numpy as np\ndef fn(a):\n    return -np.log(a.n_experts)\n")
    assert inside("run", "--config", "study.yaml", "--objectives", "loss,zero:fn", "--out", "run", "--quiet").code == 0
    before = (own.folder / "run" / "evaluations.csv").read_bytes()
    for command in (["select", "run"], ["run", "--resume", "run", "--quiet"]):
        answer = inside(*command)
        assert answer.code == 0, answer.err
    assert (own.folder / "run" / "evaluations.csv").read_bytes() == before


@pytest.mark.parametrize("values", ["-a.depth / 3", "np.zeros(len(a))", "np.where(a.depth == 4, -1.0, 2.0)"])
def test_a_log_scale_for_values_that_have_none_is_not_a_traceback(values: str, own: Any, inside: Inside) -> None:
    own.write("neg.py", f"import numpy as np\ndef fn(a):\n    return {values}\nfn.LOG_SCALE = True\n")
    answer = inside("run", "--config", "study.yaml", "--objectives", "loss,neg:fn", "--out", "run")
    assert answer.code in (0, 1, 2, 3)
    assert "nan" not in answer.out


def test_the_users_function_is_called_once_per_architecture(own: Any, inside: Inside) -> None:
    own.write(
        "once.py",
        "def fn(a):\n    with open('calls', 'a') as file:\n        file.write('x' * len(a))\n    return a.depth / 3\n",
    )
    study = ("--config", "study.yaml", "--objectives", "loss,once:fn", "--out", "run", "--quiet")
    assert inside("run", *study).code == 0
    assert len((own.folder / "calls").read_text()) == 40
    assert inside("run", "--resume", "run", "--quiet").code == 0
    assert len((own.folder / "calls").read_text()) == 40


# Answers


def test_json_of_every_command_parses(own: Any, inside: Inside, available: list[str]) -> None:
    def parsed(*arguments: str, code: int = 0) -> Any:
        answer = inside(*arguments)
        assert answer.code == code, answer
        return json.loads(answer.out, parse_constant=pytest.fail)

    summary = parsed("run", "--config", "study.yaml", "--out", "run", "--json")
    assert summary["run"] == "run"
    assert {k: v for k, v in summary.items() if k != "run"} == json.loads(
        (own.folder / "run" / "summary.json").read_text()
    )
    assert parsed("run", "--config", "study.yaml", "--budget", "total_ms=1e-6", "--json", code=3)["frontier"] == 0
    chosen = parsed("select", "run", "--json")
    assert [row["loss"] for row in chosen] == [float(row["loss"]) for row in rows(own.folder / "run" / "frontier.csv")]
    explained = parsed("explain", "run", "--json")
    assert set(explained) == {
        "architecture",
        "remarks",
        "metrics",
        "time_ranges",
        "time_ranges_percent",
        "outside_law",
        "loss_terms",
        "operators",
        "resident_gb",
        "device_gains",
        "budgets",
        "steps",
        "head_steps",
        "gains",
    }
    assert parsed("explain", "--model", "qwen2.5_0.5b", "--json")["metrics"]["loss"] == pytest.approx(
        3.475358, abs=1e-6
    )
    listed = parsed("list", "--json")
    assert {row["name"] for row in listed["strategies"]} == {*importable("nas.strategies"), "auto"}
    assert len(parsed("list", "devices", "--json")) >= 30
    for what in ("study", "space", "law", "device", "measurements", *available):
        assert parsed("list", "--schema", what)["type"] == "object"


def test_quiet_says_nothing(own: Any, inside: Inside) -> None:
    answer = inside("run", "--config", "study.yaml", "--out", "run", "--quiet")
    assert (answer.code, answer.out, answer.err) == (0, "", "")


def test_a_truncated_batch_holds_no_repeats(own: Any, inside: Inside) -> None:
    assert inside("run", "--config", "study.yaml", "--out", "run", "--quiet").code == 0
    said = json.loads((own.folder / "run" / "summary.json").read_text())["evaluations"]
    assert (said["distinct"], said["repeats"]) == (40, 0)


def test_runs_are_never_overwritten(own: Any, inside: Inside) -> None:
    for _ in range(2):
        assert inside("run", "--config", "study.yaml", "--quiet").code == 0
    assert {p.name for p in (own.folder / "runs").iterdir()} == {"own-random-s0", "own-random-s0-2"}
    answer = inside("run", "--config", "study.yaml", "--out", "runs/own-random-s0")
    assert answer.code == 2
    assert "--resume runs/own-random-s0" in answer.err


def test_the_hints_of_a_run_are_commands_that_work(own: Any, inside: Inside) -> None:
    answer = inside("run", "--config", "study.yaml")
    hints = [
        re.split(r"\s{3,}", line.strip())[0].removeprefix("Next: ")
        for line in answer.out.splitlines()
        if "python -m nas." in line
    ]
    assert hints
    for hint in hints:
        command, *arguments = hint.removeprefix("python -m nas.").split()
        assert inside(command, *arguments).code == 0, hint


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["nsga2", "every strategy"])
def test_nothing_feasible_is_exit_3_with_a_diagnosis(
    every: bool, own: Any, inside: Inside, available: list[str]
) -> None:
    own.write("free.yaml", "preset: paper\nspace: space.yaml\nbudgets: {total_ms: 0.001}\n")
    for algo in available if every else ("nsga2",):
        answer = inside("run", "--config", "free.yaml", "--algo", algo, "--out", algo)
        assert answer.code == 3, answer
        assert "Nothing fits: of all 144 designs none is within" in answer.out
        assert "total_ms <= 0.001: binds; at " in answer.out
        assert (
            answer.err.splitlines()[-1] == f"{algo}: no feasible architecture; the diagnosis says which budget to relax"
        )
        assert rows(own.folder / algo / "frontier.csv") == []
        for command in (["select", algo], ["explain", algo]):
            assert inside(*command).code == 3
        assert inside("explain", algo, "--index", "0").code == 0
        assert inside("select", algo, "--budget", "total_ms=1e9").code == 0


def test_select_writes_candidates_that_select_chooses(copied: Path, inside: Inside, tmp_path: Path) -> None:
    frontier = rows(copied / "frontier.csv")
    for how, count in (
        ("frontier", len(frontier)),
        ("knee", 1),
        ("best", 1),
        ("diverse:4", 4),
        ("budget:decode_ms=5", 1),
    ):
        for ending in ("csv", "jsonl"):
            out = tmp_path / f"{how.partition(':')[0]}.{ending}"
            answer = inside("select", copied, "--select", how, "--out", out)
            assert answer.code == 0, answer
            assert f"{count} candidates written to {out}" in answer.err
            assert len(out.read_text().splitlines()) == count + (ending == "csv")
    chosen = rows(tmp_path / "frontier.csv")
    assert [{k: v for k, v in row.items() if k != "id"} for row in chosen] == frontier
    assert len({row["id"] for row in chosen}) == len(chosen)


@pytest.mark.parametrize("how", [["--select", "best"], ["--sweep", "total_ms=10:50:10"]])
@pytest.mark.parametrize("name", ["kept.csv", "kept.jsonl"])
def test_select_overwrites_no_file(name: str, how: list[str], copied: Path, inside: Inside, tmp_path: Path) -> None:
    kept = tmp_path / name
    kept.write_text("mine\n")
    for out in (kept, copied / "evaluations.csv"):
        before = out.read_bytes()
        answer = inside("select", copied, *how, "--out", out)
        assert (answer.code, answer.out) == (2, "")
        assert f"--out: expected a new file, got {out} which exists; name another" in answer.err
        assert out.read_bytes() == before
    assert inside("select", copied, *how, "--out", tmp_path / f"new-{name}").code == 0
    assert inside("select", copied, *how, "--out", "a" * 300 + name).code == 1  # no file can be called so


def test_select_takes_the_budget_flag_as_run_does(copied: Path, inside: Inside) -> None:
    for budget in (
        "total_ms=30",
        "total_ms<=30",
        "total_ms=0.03 s",
        "total_ms=30 ms",
        "memory_gb=none",
        "memory_gb=800 MB",
    ):
        assert inside("select", copied, "--budget", budget).code == 0, budget
    within = json.loads(inside("select", copied, "--budget", "total_ms=30", "--json").out)
    assert within
    assert all(row["total_ms"] <= 30 for row in within)


@pytest.mark.slow
def test_explain_explains_any_architecture(copied: Path, inside: Inside) -> None:
    text = "depth=16,width=2048,n_experts=16,top_k=1,expert_size=1024,n_kv_heads=4"
    answer = inside("explain", "--architecture", text)
    assert answer.code == 0
    for part in (
        "3.156394"[:6],
        "q_proj",
        "router",
        "compute-bound",
        "Resident memory",
        "memory 3.523 of 64 GB: 94.5 % left",
        "What one step along an axis buys",
        "layers 16 -> 20",
    ):
        assert part in answer.out, part
    headed = inside("explain", "--architecture", text, "--preset", "device").out
    assert "lm_head" in headed
    assert "lm_head" not in answer.out
    for arguments in (
        [copied],
        [copied, "--select", "best"],
        [copied, "--index", "7"],
        ["--model", "olmoe_1b_7b"],
        [copied, "--preset", "device"],
        [copied, "--precision", "int8"],
    ):
        answer = inside("explain", *arguments)
        assert answer.code == 0, (arguments, answer)


def test_explain_of_a_run_shows_the_runs_own_numbers(copied: Path, inside: Inside) -> None:
    row = rows(copied / "evaluations.csv")[7]
    metrics = json.loads(inside("explain", copied, "--index", "7", "--json").out)["metrics"]
    assert metrics.keys() - row.keys() == {"tokens_per_second", "ttft_ms"}  # follow from times that are there
    assert {name: float(row[name]) for name in metrics.keys() & row.keys()} == {
        name: value for name, value in metrics.items() if name in row
    }


def test_flags_of_explain_change_the_runs_study(copied: Path, inside: Inside) -> None:
    def total(*flags: str) -> float:
        return float(json.loads(inside("explain", copied, "--index", "7", "--json", *flags).out)["metrics"]["total_ms"])

    plain = total()
    assert total("--preset", "device") != plain
    assert total("--precision", "int8") < plain
    assert total("--set", "device.bandwidth=20 GB/s") > plain


def test_init_writes_a_study_that_runs(inside: Inside, tmp_path: Path) -> None:
    for study in ("paper", "robot_int8"):
        path = tmp_path / f"{study}.yaml"
        assert inside("init", path, "--from", study).code == 0
        assert inside("run", "--config", path, "--evaluations", 120, "--quiet").code == 0
        assert inside("init", path).code == 2
    assert inside("init").code == 0
    own = (tmp_path / "study.yaml").read_text()
    assert "\nlaw: evidence " in own
    assert "\npreset: device " in own
    assert "paper's" not in own.partition("\nname: mine\n")[0]
    answer = inside("run", "--config", tmp_path / "study.yaml", "--evaluations", 120, "--verbose")
    assert answer.code == 0, answer.err
    assert "inside the law's evidence" in " ".join(answer.out.split())


@pytest.mark.parametrize("study", ["paper", "wearable", "devices_paper"])
def test_init_writes_the_vocabulary_that_it_is_given(study: str, inside: Inside, tmp_path: Path) -> None:
    for written, expected in (("8k,32k", [8000, 32_000]), ("49152", 49_152)):
        assert inside("init", f"{expected}.yaml", "--from", study, "--vocabulary", written).code == 0
        text = (tmp_path / f"{expected}.yaml").read_text()
        assert [line for line in text.splitlines() if line.startswith("vocabulary:")] == [f"vocabulary: {expected}"]
        assert parse(text, "study")[0]["vocabulary"] == expected
    for flags in (["--vocabulary", "many"], ["--vocabulary", "8k", "--from", "compare_paper"]):
        wrong = inside("init", "other.yaml", *flags)
        assert wrong.code == 2
        assert "--vocabulary: expected" in wrong.err
    assert inside("init", "own.py", "--vocabulary", "8k").code == 2


def test_init_writes_an_application_by_any_spelling_and_names_the_choices(inside: Inside, tmp_path: Path) -> None:
    assert inside("init", "home.yaml", "--application", "Smart Home").code == 0
    assert "\n# Application: a voice assistant" in (tmp_path / "home.yaml").read_text()
    wrong = inside("init", "other.yaml", "--application", "wearables")
    assert wrong.code == 2
    assert "did you mean wearable?" in wrong.err
    assert inside("init", "other.yaml", "--application", "wearable", "--from", "paper").code == 2
    assert inside("init", "own.py", "--application", "wearable").code == 2
    assert not (tmp_path / "other.yaml").exists()


@pytest.mark.slow
@pytest.mark.parametrize("algo", importable("nas.strategies"))
def test_a_flag_may_choose_another_strategy_than_the_file(algo: str, inside: Inside) -> None:
    limit = [] if algo == "exact" else ["--evaluations", min(120, (strategy_module(algo).TRAITS.cap or 1200) // 10)]
    answer = inside("run", "--config", "paper", "--algo", algo, *limit, "--quiet")
    assert answer.code == 0, answer.err


@pytest.mark.parametrize(
    "kind", ["strategies", "spaces", "laws", "forms", "devices", "models", "metrics", "presets", "studies"]
)
def test_list_names_what_there_is(kind: str, inside: Inside) -> None:
    answer = inside("list", kind)
    assert answer.code == 0
    assert len(answer.out.splitlines()) > 2
    if kind == "spaces":
        assert "13,120" in answer.out


def test_a_list_of_everything_is_one_screen_of_kinds(inside: Inside) -> None:
    """1,075 lines told nobody what there is; with words every kind is searched, and those without a row are not shown."""
    answer = inside("list")
    assert len(answer.out.splitlines()) <= 50
    rows = json.loads(inside("list", "--json").out)
    for kind, own in rows.items():
        assert re.search(rf"{kind} +{len(own):,} ", answer.out), kind


def test_nothing_that_no_budget_opens_is_advised(inside: Inside) -> None:
    axes = "depth: [1, 2], width: [64], n_kv_heads: [1], n_experts: [1], top_k: [1], expert_ffn_ratio: [1]"
    Path("tiny.yaml").write_text(f"name: tiny\naxes: {{{axes}}}\n")
    answer = inside("run", "--device", "raspberry_pi_5", "--space", "tiny.yaml", "--out", "run")
    assert answer.code == 3
    assert "Only --set outside=allow, which recommends designs that no training supports." in answer.out
    assert "--config run/config.yaml --set outside=allow" in answer.out
    assert "--budget extrapolation" not in answer.out


def test_the_version_is_said(inside: Inside) -> None:
    answer = inside("__main__", "--version")
    assert answer.code == 0
    assert re.fullmatch(r"plas-codesign \d+\.\d+\.\d+\S*\n", answer.out)


def test_a_device_that_looks_sparse_is_a_warning(own: Any, inside: Inside) -> None:
    own.write("device.yaml", DEVICE.replace("2 TFLOP/s", "20 TFLOP/s").replace("4 TOP/s", "40 TOP/s"))
    answer = inside("run", "--config", "study.yaml")
    assert answer.code == 0
    assert "it looks like a sparsity figure" in answer.err
    own.write(
        "device.yaml",
        DEVICE.replace("2 TFLOP/s", "20 TFLOP/s").replace("4 TOP/s", "40 TOP/s") + "dense_confirmed: true\n",
    )
    assert "sparsity" not in inside("run", "--config", "study.yaml").err


def test_a_config_dumped_by_the_product_is_what_a_user_may_write(own: Any, inside: Inside) -> None:
    own.write(
        "flat.yaml",
        dump(
            {
                "space": "space.yaml",
                "law": "law.yaml",
                "device": "device.yaml",
                "objectives": "loss,total_ms",
                "budgets": ["total_ms<=1 s"],
            }
        ),
    )
    assert inside("run", "--config", "flat.yaml", "--algo", "random", "--evaluations", 20, "--quiet").code == 0


@pytest.mark.slow
def test_no_plots_draws_none_and_links_to_none(inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Path] = []
    monkeypatch.setattr(running, "draw", lambda _, folder: drawn.append(folder))
    given = ("--evaluations", 120, "--no-plots")
    told = inside("run", "--algo", "random", "--out", "bare", *given)
    assert told.code == 0
    assert "plots/" not in told.out
    assert (tmp_path / "bare" / "frontier.csv").exists()
    assert inside("run", "--resume", "bare", "--evaluations", 150, "--no-plots", "--quiet").code == 0
    assert not drawn
    assert inside("run", "--resume", "bare", "--evaluations", 160, "--quiet").code == 0
    assert len(drawn) == 1
    seeds = ("--algos", "random,lhs", "--seeds", 2, "--workers", 1)
    told = inside("compare", "--out", "both", *seeds, *given)
    assert told.code == 0
    assert "plots/" not in told.out
    assert not (tmp_path / "both" / "plots").exists()
    assert "![" not in (tmp_path / "both" / "report.md").read_text()
