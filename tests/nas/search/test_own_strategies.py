"""Strategies from outside the package: a user's own module, an installed package's, the template that init writes."""

import json
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nas.files import yaml_source
from nas.search.discovery import in_working_folder, named
from nas.study.user_code import is_there

Inside = Callable[..., Any]
LEFT = "executed"  # the file that an imported module leaves


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The import path as it was, however a command changes it, and a study of the tiny space to run."""
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture
def study(tmp_path: Path, tiny: dict[str, Any]) -> str:
    """A study over the tiny space."""
    (tmp_path / "study.yaml").write_text(yaml_source.dump({"space": tiny, "name": "tiny"}))
    return "study.yaml"


@pytest.fixture
def own(inside: Inside, tmp_path: Path) -> Iterator[str]:
    """A strategy of the user's in the working folder, as init writes it; importing it leaves a file."""
    name = f"own_{uuid.uuid4().hex}"
    assert inside("init", f"{name}.py").code == 0
    with (tmp_path / f"{name}.py").open("a") as file:
        file.write(f"\n\nfrom pathlib import Path\n\nPath({str(tmp_path / LEFT)!r}).write_text('')\n")
    yield name
    sys.modules.pop(name, None)


def forget(name: str, tmp_path: Path) -> None:
    """As a new process would begin."""
    sys.modules.pop(name, None)
    (tmp_path / LEFT).unlink(missing_ok=True)


def table(folder: Path) -> bytes:
    return (folder / "evaluations.csv").read_bytes()


NOISY = """
from nas.strategies.random import TRAITS, Parameters, RandomSampling

print("imported")


class Noisy(RandomSampling):
    def ask(self, at_most):
        print("asked")
        return super().ask(at_most)[:SIZE]


def build(context, parameters):
    print("built")
    return Noisy(context, parameters)
"""


def test_what_a_strategy_prints_is_not_in_the_answer_and_one_that_asks_nothing_is_named(
    study: str, inside: Inside, tmp_path: Path
) -> None:
    for name, size in (("noisy_search", ""), ("mute_search", "0")):
        (tmp_path / f"{name}.py").write_text(NOISY.replace("SIZE", size))
    line = ("run", "--config", study, "--evaluations", 20, "--no-plots", "--algo")
    spoken = inside(*line, "noisy_search", "--json", "--out", "one")
    assert (spoken.code, json.loads(spoken.out)["run"]) == (0, "one")
    assert {"imported", "built", "asked"} <= set(spoken.err.splitlines())
    silent = inside(*line, "mute_search", "--out", "two")
    assert silent.code == 1
    assert "mute_search: ask: expected designs when first asked, got none; return genotypes" in silent.err


def test_a_module_in_the_working_folder_is_a_strategy(own: str, study: str, inside: Inside, tmp_path: Path) -> None:
    line = ("run", "--config", study, "--algo", own, "--evaluations", 60, "--param", "batch=7", "--quiet")
    assert inside(*line, "--out", "one").code == 0
    assert inside(*line, "--out", "two").code == 0
    assert table(tmp_path / "one") == table(tmp_path / "two")
    assert yaml_source.read(tmp_path / "one" / "config.yaml")[0]["params"] == {"batch": 7, "genes": 1}
    assert json.loads(inside("list", "--schema", own).out)["properties"]["batch"]["default"] == 20


def test_a_module_of_a_package_on_the_python_path_is_a_strategy(
    own: str, study: str, inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "elsewhere" / f"p_{uuid.uuid4().hex}"
    package.mkdir(parents=True)
    (tmp_path / f"{own}.py").rename(package / "searching.py")
    monkeypatch.syspath_prepend(str(package.parent))
    line = ("run", "--config", study, "--evaluations", 30, "--quiet")
    assert inside(*line, "--algo", f"{package.name}.searching").code == 0
    assert (tmp_path / "runs" / f"tiny-{package.name}.searching-s0" / "frontier.csv").exists()
    answer = inside(*line, "--algo", f"{package.name}.searched")
    assert answer.code == 2
    assert "--algo: expected an importable module, got ModuleNotFoundError" in answer.err


SECTIONS = """

def _sections(self, told):
    from nas.search.strategy import ReportSection

    files = {"mine.csv": {"key": told.keys}, "mine.yaml": {"evaluated": len(told)}}
    figures = {"evaluated": len(told)}
    return [ReportSection("What I saw", ("All is well.",), figures, files)]


FrontierMutation.sections = _sections
"""


@pytest.mark.slow
def test_what_a_strategy_says_stands_in_the_answer_its_page_and_its_files(
    own: str, study: str, inside: Inside, tmp_path: Path
) -> None:
    with (tmp_path / f"{own}.py").open("a") as file:
        file.write(SECTIONS)
    line = (
        sys.executable,
        "-m",
        "nas.run",
        "--config",
        study,
        "--algo",
        own,
        "--evaluations",
        "20",
        "--verbose",
        "--out",
        "run",
    )
    ran = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "All is well." in ran.stdout
    page = (tmp_path / "run" / "report.html").read_text()
    assert "<h2>What I saw</h2></summary><p>All is well." in page
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["lessons"], summary["learned"]) == (["All is well."], {"evaluated": 20})
    assert (tmp_path / "run" / "mine.csv").read_text().startswith("key\n")
    assert yaml_source.read(tmp_path / "run" / "mine.yaml")[0] == {"evaluated": 20}
    forget(own, tmp_path)
    assert inside("report", "run").code == 0
    assert "<p>All is well." in (tmp_path / "run" / "report.html").read_text()
    assert not (tmp_path / LEFT).exists()


@pytest.mark.slow
def test_a_recorded_strategy_of_ones_own_is_imported_only_when_the_command_line_names_it(
    own: str, study: str, inside: Inside, tmp_path: Path
) -> None:
    line = ("run", "--config", study, "--algo", own, "--quiet")
    assert inside(*line, "--evaluations", 60, "--out", "whole").code == 0
    assert inside(*line, "--evaluations", 37, "--out", "part").code == 0
    (tmp_path / "file.yaml").write_text((tmp_path / study).read_text() + f"algo: {own}\n")
    (tmp_path / "several.yaml").write_text(f"algos: [{own}]\nstudies:\n  tiny: {{}}\n")
    (tmp_path / "variant.yaml").write_text(f"algos: [all]\nvariants: {{mine: {own}}}\nstudies:\n  tiny: {{}}\n")
    forget(own, tmp_path)
    refused = {
        ("run", "--resume", "part", "--evaluations", 60): f"algo: {own}",
        ("run", "--config", "part"): f"--algo {own}",
        ("run", "--config", "file.yaml"): f"--algo {own}",
        ("compare", "--config", "several.yaml"): f"--algos {own}",
        ("compare", "--config", "variant.yaml"): f"--algos {own}",
    }
    for typed in refused:
        answer = inside(*typed)
        assert answer.code == 2, answer
        assert "named on the command line" in answer.err
        assert f"add {'--algos' if typed[0] == 'compare' else '--algo'} {own}" in answer.err
        assert not (tmp_path / LEFT).exists()
        assert own not in sys.modules
    for typed in (("select", "part"), ("explain", "part"), ("list", "strategies"), ("compare", "--config", "part")):
        inside(*typed, *(("--algos", "random", "--seeds", 1, "--evaluations", 5) if typed[0] == "compare" else ()))
        assert not (tmp_path / LEFT).exists()
    answer = inside("run", "--resume", "part", "--algo", own, "--evaluations", 60, "--quiet")
    assert answer.code == 0, answer
    assert table(tmp_path / "part") == table(tmp_path / "whole")
    assert inside("run", "--resume", "part", "--algo", "random").code == 2


def test_code_inside_a_run_folder_is_never_a_strategy(
    own: str, study: str, inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert inside("run", "--config", study, "--algo", "random", "--evaluations", 20, "--out", "run").code == 0
    (tmp_path / f"{own}.py").rename(tmp_path / "run" / f"{own}.py")
    monkeypatch.chdir(tmp_path / "run")
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", str(tmp_path / "run"))])
    for typed in (("run", "--algo", own), ("list", "--schema", own), ("list", "strategies")):
        answer = inside_here(inside, monkeypatch, tmp_path / "run", typed)
        lists = typed == ("list", "strategies")
        assert own not in answer.out or not lists
        assert answer.code == (0 if lists else 2)
        assert not (tmp_path / LEFT).exists()
    monkeypatch.syspath_prepend(str(tmp_path / "run"))
    answer = inside_here(inside, monkeypatch, tmp_path, ("run", "--algo", own))
    assert answer.code == 2
    assert "expected code outside run folders" in answer.err
    assert not (tmp_path / LEFT).exists()


def inside_here(inside: Inside, monkeypatch: pytest.MonkeyPatch, folder: Path, typed: tuple[str, ...]) -> Any:
    """A command in this process, in a folder of choice."""
    monkeypatch.chdir(folder)
    return inside(*typed)


@pytest.mark.slow
def test_comparing_takes_a_strategy_of_ones_own_in_worker_processes(
    own: str, study: str, inside: Inside, tmp_path: Path
) -> None:
    line = ("--seeds", 2, "--evaluations", 40, "--quiet", "--param", f"{own}.batch=7", "--cap", f"{own}=30")
    answer = inside(
        "compare", "--config", study, "--algos", f"{own},nsga2", *line, "--workers", 2, "--no-baselines", "--out", "c"
    )
    assert answer.code == 0, answer
    one = tmp_path / "c" / "cells" / "tiny" / own / "s0"
    recorded = yaml_source.read(one / "config.yaml")[0]
    assert (recorded["params"]["batch"], recorded["evaluations"]) == (7, 30)
    before = (tmp_path / "c" / "tables" / "runs.csv").read_bytes()
    forget(own, tmp_path)
    answer = inside("compare", "--resume", "c", "--quiet")
    assert answer.code == 2
    assert f"add --algos {own}" in answer.err
    assert not (tmp_path / LEFT).exists()
    assert inside("compare", "--resume", "c", "--algos", own, "--interim", "--quiet").code == 0
    assert inside("compare", "--resume", "c", "--algos", "random", "--interim", "--quiet").code == 2
    assert inside("compare", "--resume", "c", "--algos", own, "--quiet").code == 0
    assert (tmp_path / "c" / "tables" / "runs.csv").read_bytes() == before


FAULTY = {
    "TRAITS = 1\n": "without TRAITS (nas.search.strategy.Traits) and Parameters",
    "raise RuntimeError('no')\n": "expected an importable module, got RuntimeError: no",
    "import sys\nsys.exit(3)\n": "expected an importable module, got SystemExit: 3",
    "def (\n": "expected an importable module, got SyntaxError",
}


@pytest.mark.parametrize("text", FAULTY)
def test_a_module_that_is_no_strategy_is_refused(
    text: str, user_module: Callable[[str], str], inside: Inside, tmp_path: Path
) -> None:
    answer = inside("run", "--algo", user_module(text))
    assert answer.code == 2
    assert answer.err.startswith("--algo: expected ")
    assert FAULTY[text] in answer.err
    assert not (tmp_path / "runs").exists()


BROKEN = {
    "return 7": "build: expected a strategy with ask and tell, got int",
    "raise KeyError('a\\nb')": r"build failed with KeyError: 'a\nb' (",
    "return Made([[1, 2, 3, 4, 5, 6]])": "ask: expected an array of integers (k, 6), got list (1, 6)",
    "return Made(np.zeros((3, 5), dtype=int))": "ask: expected an array of integers (k, 6), got int64 (3, 5)",
    "return Made(np.zeros((3, 6)))": "ask: expected an array of integers (k, 6), got float64 (3, 6)",
    "return Made(np.zeros((3, 6), dtype=int))": "tell failed with RuntimeError: told (",
}


@pytest.mark.parametrize("body", BROKEN)
def test_what_a_strategy_of_ones_own_does_wrongly_is_one_line(
    body: str, user_module: Callable[[str], str], study: str, inside: Inside
) -> None:
    name = user_module(
        "import numpy as np\nfrom nas.strategies.random import Parameters\nfrom nas.search.strategy import Traits\n"
        "TRAITS = Traits()\nclass Made:\n    def __init__(self, rows):\n        self.rows = rows\n"
        "    def ask(self, at_most):\n        return self.rows\n    def tell(self, evaluations):\n"
        f"        raise RuntimeError('told')\ndef build(context, parameters):\n    {body}\n"
    )
    answer = inside("run", "--config", study, "--algo", name, "--quiet")
    assert answer.code == 1
    assert answer.err.startswith(f"{name}: ")
    assert BROKEN[body] in answer.err
    assert len(answer.err.splitlines()) == 1


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, dict[str, str]], None]:
    """Install a distribution with entry points of our group into a folder on the Python path."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def install(distribution: str, points: dict[str, str]) -> None:
        info = site / f"{distribution}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        lines = "".join(f"{name} = {module}\n" for name, module in points.items())
        (info / "entry_points.txt").write_text(f"[plas.strategies]\n{lines}")

    return install


def test_a_strategy_of_an_installed_package_has_a_short_name(
    own: str,
    study: str,
    inside: Inside,
    tmp_path: Path,
    package: Callable[[str, dict[str, str]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nas.compare.command.draw", lambda *_: None)
    module = f"site_{uuid.uuid4().hex}"
    (tmp_path / f"{own}.py").rename(tmp_path / "site" / f"{module}.py")
    package("their-search", {"climbing": module, "random": module, "lost": "nowhere.at_all"})
    package("other-search", {"twice": module})
    package("third-search", {"twice": f"{module}.other"})
    said = inside("list", "strategies").out
    assert f"Installed: {module} of their-search 1.0." in next(
        row for row in said.splitlines() if row.startswith("  climbing ")
    )
    assert len([line for line in said.splitlines() if line.startswith("  random ")]) == 1
    assert not (tmp_path / LEFT).exists()
    line = ("run", "--config", study, "--evaluations", 40, "--quiet")
    assert inside(*line, "--algo", "climbing", "--out", "run").code == 0
    forget(module, tmp_path)
    assert inside("run", "--resume", "run", "--evaluations", 50, "--quiet").code == 0  # what is installed is trusted
    assert inside("run", "--config", "run", "--out", "again", "--quiet").code == 0
    assert table(tmp_path / "again") == table(tmp_path / "run")
    assert json.loads(inside("list", "--schema", "climbing").out)["properties"]["genes"]["default"] == 1
    assert "did you mean climbing?" in inside(*line, "--algo", "climbin").err
    assert "did you mean climbing?" in inside("compare", "--algos", "climbin").err
    assert "expected an importable module, got ModuleNotFoundError" in inside(*line, "--algo", "lost").err
    assert (
        f"got {module} of other-search 1.0 and {module}.other of third-search 1.0; name one by its module"
        in inside(*line, "--algo", "twice").err
    )
    compared = ("--seeds", 1, "--evaluations", 20, "--no-baselines", "--workers", 1, "--quiet")
    assert inside("compare", "--config", study, "--algos", "climbing,nsga2", *compared).code == 0


def test_files_that_look_like_strategies_are_listed_without_being_imported(
    own: str, inside: Inside, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_bytes(b"TRAITS = \xff\ndef build(")
    (tmp_path / "unfinished.py").write_text("TRAITS = 1\n(\ndef build(context, parameters):\n")
    (tmp_path / "other.py").write_text("def build(x):\n    return x\n")
    rows = {row["name"]: row["what"] for row in json.loads(inside("list", "strategies", "--json").out)}
    assert rows[own].startswith("Mutates members of the frontier at random")
    assert "unfinished" in rows
    assert not {"broken", "other"} & rows.keys()
    assert not (tmp_path / LEFT).exists()
    assert f"did you mean {own}?" in inside("run", "--algo", own[:-1]).err


@pytest.mark.parametrize("name", ["json", "antigravity", "nas:run", "a b", "", "..", "1a", "a..b", "os.path"])
def test_nothing_of_pythons_own_is_taken_for_a_strategy(name: str, inside: Inside) -> None:
    assert not is_there(name)
    answer = inside("run", "--algo", name)
    assert answer.code == 2
    assert "expected a strategy (" in answer.err


def test_init_writes_a_strategy_under_the_name_of_its_file(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    answer = inside("init", "deep/climber.py")
    assert answer.err == "deep/climber.py written. Edit it, then: python -m nas.run --algo deep.climber\n"
    text = (tmp_path / "deep" / "climber.py").read_text()
    assert "plas run --algo deep.climber --evaluations" in text
    assert "check_strategy('deep.climber')" in text
    before = text
    assert inside("init", "deep/climber.py").code == 2
    assert (tmp_path / "deep" / "climber.py").read_text() == before
    for typed in (("nsga2.py",), ("9.py",), ("select.py",), ("my-search.py",), ("a.py", "--from", "paper")):
        assert inside("init", *typed).code == 2
        assert not (tmp_path / typed[0]).exists()


def test_where_the_working_folder_is_gone_nothing_is_a_users_own(
    inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert not any(is_there(name) for name in ("select", "own_search", "objectives"))
    assert in_working_folder() == {}
    assert "nsga2" in named()


STUMBLING = '''
"""Random, until it stumbles."""
import sys
import numpy as np
from pathlib import Path
from nas.strategies.random import Parameters
from nas.search.strategy import Traits

TRAITS = Traits()
FLAW = Path(__file__).with_suffix(".flaw")


def stumble(where, told):
    if FLAW.exists() and FLAW.read_text() == where and told >= 2:
        if where == "tell":
            sys.exit(3)
        if where == "ask":
            np.zeros(3) @ np.zeros(4)  # line 18
        raise KeyError(where)


class Walk:
    def __init__(self, context):
        self.space, self.generator, self.told = context.problem.space, context.generator, 0

    def ask(self, at_most):
        stumble("ask", self.told)
        return self.space.genotypes(self.generator.integers(0, self.space.size, 10))

    def tell(self, evaluations):
        self.told += 1
        stumble("tell", self.told)

    def state(self):
        stumble("state", self.told)
        return {"told": self.told, "generator": self.generator.bit_generator.state}

    def restore(self, state, evaluations):
        stumble("restore", 2)
        self.told, self.generator.bit_generator.state = state["told"], state["generator"]
        return True


def build(context, parameters):
    return Walk(context)
'''
SAID = {
    "ask": r"ask failed with ValueError: matmul: .* \({name}.py:18\)",
    "tell": r"tell failed with SystemExit: 3 \({name}.py:16\)",
    "state": r"state failed with KeyError: 'state' \({name}.py:19\)",
    "restore": r"restore failed with KeyError: 'restore' \({name}.py:19\)",
}


@pytest.mark.slow
@pytest.mark.parametrize("where", SAID)
@pytest.mark.parametrize("kind", ["own", "installed"])
def test_a_strategy_that_stumbles_is_named_with_its_place_and_its_run_goes_on(
    where: str,
    kind: str,
    user_module: Callable[[str], str],
    study: str,
    inside: Inside,
    tmp_path: Path,
    package: Callable[[str, dict[str, str]], None],
) -> None:
    name = user_module(STUMBLING)
    algo = name if kind == "own" else f"walk_{name}"
    if kind == "installed":
        package("their-search", {algo: name})
    flaw = tmp_path / f"{name}.flaw"
    line = ("run", "--config", study, "--algo", algo, "--quiet")
    assert inside(*line, "--evaluations", 60, "--out", "whole").code == 0
    if where == "restore":
        assert inside(*line, "--evaluations", 30, "--out", "part").code == 0
        line = ("run", "--resume", "part", "--algo", algo, "--quiet")
    else:
        line = (*line, "--out", "part")
    flaw.write_text(where)
    answer = inside(*line, "--evaluations", 60)
    assert answer.code == 1, answer
    whose = name if kind == "own" else f"strategy {algo} of their-search 1.0"
    go_on = "python -m nas.run --resume part" + (f" --algo {name}" if kind == "own" else "")
    wanted = f"{whose}: {SAID[where].format(name=name)}; correct it there, then go on with: {go_on}\n"
    assert re.fullmatch(wanted, answer.err), answer.err
    assert json.loads((tmp_path / "part" / "manifest.json").read_text())["state"] == "failed"
    flaw.unlink()
    answer = inside(*go_on.split()[2:][0].split(".")[1:], *go_on.split()[3:], "--evaluations", 60, "--quiet")
    assert answer.code == 0, answer
    assert table(tmp_path / "part") == table(tmp_path / "whole")


@pytest.mark.slow
def test_a_comparison_says_which_strategy_of_ones_own_to_name_again(
    user_module: Callable[[str], str], study: str, inside: Inside, tmp_path: Path
) -> None:
    name = user_module(STUMBLING)
    flaw = tmp_path / f"{name}.flaw"
    flaw.write_text("ask")
    line = ("--seeds", 1, "--evaluations", 40, "--quiet", "--workers", 1, "--no-baselines", "--out", "c")
    answer = inside("compare", "--config", study, "--algos", f"{name},nsga2", *line)
    assert answer.code == 1, answer
    assert re.search(rf"{name}: {SAID['ask'].format(name=name)}; correct it there", answer.err)
    assert f"--resume c --algos {name} tries these again" in answer.err
    flaw.unlink()
    assert inside("compare", "--resume", "c", "--algos", name, "--workers", 1, "--quiet").code == 0
