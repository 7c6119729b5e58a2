"""Metrics, forms, laws, devices and stacks of installed packages: found by entry points, imported when named, blamed by distribution."""

import importlib.util
import json
import os
import pickle
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nas
from nas import __main__ as nas_main
from nas.files import import_rights, yaml_source
from nas.files.faults import Faults
from nas.files.import_rights import Right
from nas.search.discovery import chosen_strategy
from nas.study import entry_points
from nas.study.catalogue import with_format
from nas.study.entry_points import PlugIn
from objectives.transfers import computing_as
from plas_board.calibrate.log import readers

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "extend.md").read_text(encoding="utf-8").partition("\n## Plug-ins")[2]
Inside = Callable[..., Any]
Installed = Callable[..., Path]
LEFT = "Path(__file__).with_suffix('.executed').write_text('')\n"
METRIC = (
    "from pathlib import Path\n" + LEFT + "def energy(architectures, scenario):\n"
    '    """Energy of a request."""\n    return 2.0 * architectures.depth * scenario.output_tokens\n'
    "energy.UNIT, energy.LOG_SCALE = 'mJ', True\n"
    "def gain(architectures):\n    return architectures.depth\ngain.DIRECTION = 'maximize'\n"
    "number = 3\n"
)
FORM = (
    '"""Two powers: of depth and of width."""\nfrom pathlib import Path\n'
    + LEFT
    + "from objectives.loss_law.form import Form, Term\n"
    "FORM = Form(terms={'depth': Term(scale='k', powers={'depth': '-a'}),\n"
    "    'width': Term(scale='m', powers={'width': '-b'}), 'irreducible': Term(scale='l_inf')})\n"
)
LAW = {"name": "theirs", "form": "two_powers", "coefficients": {"k": 9.0, "a": 1.0, "m": 90.0, "b": 0.8, "l_inf": 2.0}}
BOARD = {"name": "Their board", "fp16": "6 TFLOP/s", "int8": "12 TOP/s", "bandwidth": "51.2 GB/s", "memory": "8 GB"}
STACK = (
    '"""Their engine: a JSON file; inference."""\nimport json\nfrom pathlib import Path\n'
    + LEFT
    + "def fields(model):\n    return {'depth': model.column('depth')}\n"
    "def emit(model, folder):\n    (folder / 'engine.json').write_text(json.dumps(fields(model)))\n"
    "def read(folder):\n    return json.loads((folder / 'engine.json').read_text())\n"
    "def launch(model):\n    return 'their-engine run'\ndef size(model):\n    return 0\ndef cautions(model):\n    return ['it is new']\n"
)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages on the import path, forgotten afterwards."""
    place = tmp_path / "site"
    place.mkdir()
    monkeypatch.setattr(sys, "path", [str(place), *sys.path])
    before = set(sys.modules)
    yield place
    for name in set(sys.modules) - before:
        module = sys.modules[name]  # one without __init__.py has no file
        if any(
            str(path).startswith(str(place))
            for path in (getattr(module, "__file__", ""), *getattr(module, "__path__", ()))
        ):
            del sys.modules[name]
    nas_stack = importlib.import_module("nas.export.stack_protocol")
    nas_stack.stack.cache_clear()


@pytest.fixture
def install(site: Path) -> Installed:
    """Install a distribution: its entry points by group, and its files."""

    def made(distribution: str, points: dict[str, dict[str, str]], files: dict[str, str], version: str = "1.0") -> Path:
        info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        lines = [
            f"[plas.{kind}]\n" + "".join(f"{n} = {at}\n" for n, at in named.items()) for kind, named in points.items()
        ]
        (info / "entry_points.txt").write_text("\n".join(lines))
        for name, text in files.items():
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).write_text(text)
        entry_points._read.cache_clear()
        return site

    return made


@pytest.fixture
def theirs(install: Installed) -> Path:
    """A package with one of everything."""
    points = {
        "metrics": {
            "energy": "their_pack.metrics:energy",
            "gain": "their_pack.metrics:gain",
            "three": "their_pack.metrics:number",
        },
        "forms": {"two_powers": "their_pack.powers"},
        "laws": {"their": "their_pack.laws"},
        "devices": {"their": "their_pack.devices"},
        "stacks": {"their-engine": "their_pack.engine"},
    }
    files = {
        "their_pack/__init__.py": "",
        "their_pack/metrics.py": METRIC,
        "their_pack/powers.py": FORM,
        "their_pack/laws/their_law.yaml": yaml_source.dump(LAW),
        "their_pack/devices/their-board.yaml": yaml_source.dump(BOARD),
        "their_pack/devices/broken_board.yaml": "name: Broken\nfp16: fast\n",
        "their_pack/engine.py": STACK,
    }
    return install("their-plas", points, files)


@pytest.fixture
def study(tmp_path: Path, tiny: dict[str, Any]) -> str:
    """A study over the tiny space."""
    (tmp_path / "study.yaml").write_text(yaml_source.dump({"space": tiny, "name": "tiny"}))
    return "study.yaml"


def executed(site: Path) -> set[str]:
    """Modules of the package that were imported, by the file that each leaves; a new process would begin without."""
    found = {path.stem for path in site.rglob("*.executed")}
    for path in site.rglob("*.executed"):
        path.unlink()
    for name in [name for name in sys.modules if name.startswith("their_pack")]:
        del sys.modules[name]
    importlib.import_module("nas.export.stack_protocol").stack.cache_clear()
    return found


@pytest.mark.slow
def test_listing_names_each_with_its_distribution_and_imports_nothing(theirs: Path, inside: Inside) -> None:
    wanted = {
        "metrics": ("energy", "Energy of a request. Installed: their_pack.metrics:energy of their-plas 1.0."),
        "forms": ("two_powers", "Two powers: of depth and of width. Installed: their_pack.powers of their-plas 1.0."),
        "stacks": (
            "their-engine",
            "Their engine: a JSON file; inference. Installed: their_pack.engine of their-plas 1.0.",
        ),
        "laws": ("their_law", f"theirs Installed: {theirs}/their_pack/laws/their_law.yaml of their-plas 1.0."),
        "devices": (
            "their_board",
            f"Their board Installed: {theirs}/their_pack/devices/their-board.yaml of their-plas 1.0.",
        ),
    }
    for kind, (name, what) in wanted.items():
        rows = {row["name"]: row for row in json.loads(inside("list", kind, "--json").out)}
        assert rows[name]["what"] == what
        assert len(rows) > 1
    devices = {row["name"]: row for row in json.loads(inside("list", "devices", "--json").out)}
    assert devices["their_board"]["GB"] == 8
    assert devices["broken_board"]["what"].startswith("Broken: ")
    assert executed(theirs) == set()
    assert inside("list").code == 0
    assert executed(theirs) == set()


def test_a_broken_law_is_named_in_the_list_and_breaks_no_other(theirs: Path, inside: Inside) -> None:
    laws = theirs / "their_pack" / "laws"
    (laws / "misspelled.yaml").write_text(yaml_source.dump({**LAW, "form": "two_pouers"}))
    (laws / "torn.yaml").write_text("name: [\n")
    (laws / "empty.yaml").write_text("")
    (laws / "short.yaml").write_text(yaml_source.dump({**LAW, "form": "depth_width"}))
    entry_points._read.cache_clear()
    rows = {row["name"]: row["what"] for row in json.loads(inside("list", "laws", "--json").out)}
    for name, said in {
        "misspelled": "form: expected one of ",
        "torn": "torn.yaml:2: expected YAML",
        "empty": "empty.yaml:1: expected keys and values",
        "short": "expected a number, got nothing; add it",
    }.items():
        assert rows[name].startswith("Broken: ")
        assert said in rows[name]
    assert rows["their_law"].startswith("theirs Installed: ")
    assert executed(theirs) == set()
    assert inside("run", "--law", "their_law", "--algo", "random", "--evaluations", 5, "--out", "run").code == 0


@pytest.mark.slow
def test_a_study_of_their_device_law_and_metric_holds_what_it_needs(
    theirs: Path, study: str, inside: Inside, tmp_path: Path
) -> None:
    line = ("run", "--config", study, "--algo", "random", "--evaluations", 30, "--quiet", "--device", "their-board")
    line = (*line, "--law", "their_law", "--objectives", "loss,energy", "--budget", "energy=300", "--out", "run")
    answer = inside(*line)
    assert answer.code == 0, answer
    assert executed(theirs) == {"metrics", "powers"}
    config = yaml_source.read(tmp_path / "run" / "config.yaml")[0]
    assert config["device"]["name"] == "Their board"
    assert config["law"]["form"]["terms"]["depth"] == {"scale": "k", "powers": {"depth": "-a"}}
    assert (config["objectives"], config["budgets"]["energy"]) == (["loss", "energy"], 300.0)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["plugins"] == {"metric energy": "their-plas 1.0"}
    table = nas.read_run(tmp_path / "run").evaluations
    assert np.allclose(table.energy, 2.0 * table.depth * 16)
    for typed in (("select", "run"), ("explain", "run"), ("export", "run", "--select", "best", "--out", "out")):
        assert inside(*typed).code == 0
    assert executed(theirs) == set()
    (tmp_path / "site" / "their_plas-1.0.dist-info").rename(tmp_path / "site" / "their_plas-1.1.dist-info")
    metadata = tmp_path / "site" / "their_plas-1.1.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("1.0", "1.1"))
    entry_points._read.cache_clear()
    answer = inside("run", "--resume", "run", "--evaluations", 40)
    assert answer.code == 0, answer
    assert "metric energy their-plas 1.0 -> their-plas 1.1" in answer.err
    assert executed(theirs) == {"metrics"}


@pytest.fixture
def searching(install: Installed, tmp_path: Path, tiny: dict[str, Any]) -> Path:
    """A package with a strategy, and a study that names it."""
    template = (ROOT / "nas" / "strategies" / "_template.py").read_text()
    marked = template + "\n\nfrom pathlib import Path\n" + LEFT
    files = {"their_pack/__init__.py": "", "their_pack/search.py": marked}
    (tmp_path / "study.yaml").write_text(yaml_source.dump({"space": tiny, "name": "tiny", "algo": "their_search"}))
    (tmp_path / "c.csv").write_text("id,depth,width,n_kv_heads,expert_size\none,4,256,1,256\n")
    designs = [(depth, width) for depth in (4, 6, 8) for width in (256, 512, 768)]
    rows = "\n".join(f"{depth},{width},{2 + 90 / (depth * width) ** 0.5}" for depth, width in designs)
    (tmp_path / "runs.csv").write_text(f"depth,width,loss\n{rows}\n")
    return install("their-plas", {"strategies": {"their_search": "their_pack.search"}}, files)


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        ("theory", "--config", "study.yaml"),
        ("explain", "--config", "study.yaml", "--model", "qwen2.5_0.5b"),
        ("export", "c.csv", "--config", "study.yaml", "--vocabulary", 300, "--out", "out"),
        ("fit", "runs.csv", "--config", "study.yaml", "--form", "depth_width", "--bootstraps", 0, "--out", "law.yaml"),
    ],
    ids=lambda line: str(line[0]),
)
def test_a_command_that_does_not_search_does_not_import_the_strategy_of_a_study(
    line: tuple[str, ...], searching: Path, inside: Inside
) -> None:
    answer = inside(*line)
    assert answer.code == 0, answer
    assert executed(searching) == set()


@pytest.mark.slow
def test_a_strategy_is_imported_where_it_searches_or_is_typed(searching: Path, inside: Inside) -> None:
    run = ("run", "--config", "study.yaml", "--evaluations", 20, "--quiet", "--out", "run")
    for line in (
        run,
        ("theory", "--config", "study.yaml", "--set", "algo=their_search"),
        ("list", "--schema", "their_search"),
    ):
        assert inside(*line).code == 0
        assert executed(searching) == {"search"}
    for line in (("select", "run"), ("explain", "run"), ("theory", "--config", "run"), ("report", "run")):
        assert inside(*line).code == 0
        assert executed(searching) == set()


@pytest.mark.parametrize(
    ("command", "right", "hint"),
    [("fit", Right.NONE, "use plas run"), ("theory", Right.TYPED, "--set algo=their_search")],
)
def test_no_command_imports_a_strategy_beyond_its_right(command: str, right: Right, hint: str, searching: Path) -> None:
    faults = Faults({("algo",): "study.yaml:1"})
    with import_rights.command(command, right):
        assert chosen_strategy("their_search", {}, faults) is None
    ((_, said),) = faults.lines
    assert f"expected a strategy that ships, which is all that plas {command} takes from a study" in said
    assert hint in said
    assert executed(searching) == set()


@pytest.mark.slow
def test_worker_processes_import_a_metric_from_its_place(
    theirs: Path, study: str, inside: Inside, tmp_path: Path
) -> None:
    line = ("run", "--config", study, "--algo", "random", "--evaluations", 12, "--quiet", "--objectives", "loss,energy")
    assert inside(*line, "--out", "one").code == 0
    assert inside(*line, "--workers", 1, "--out", "two").code == 0
    assert (tmp_path / "one" / "evaluations.csv").read_bytes() == (tmp_path / "two" / "evaluations.csv").read_bytes()


def test_a_run_whose_package_is_gone_is_read_and_its_metric_named(
    theirs: Path, study: str, inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ("run", "--config", study, "--algo", "random", "--evaluations", 30, "--quiet", "--objectives", "loss,energy")
    assert inside(*line, "--device", "their_board", "--law", "their_law", "--out", "run").code == 0
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(theirs)])
    assert len(nas.read_run(tmp_path / "run").frontier)
    assert inside("select", "run").code == 0
    assert inside("explain", "run", "--select", "best").code == 0
    answer = inside("run", "--resume", "run", "--evaluations", 40)
    assert answer.code == 2
    assert "expected a metric (" in answer.err
    assert "got 'energy'" in answer.err


@pytest.mark.slow
def test_a_law_is_fitted_to_their_form_and_holds_it(theirs: Path, tmp_path: Path, inside: Inside) -> None:
    generator = np.random.default_rng(1)
    depth, width = generator.integers(4, 33, 30), 256 * generator.integers(2, 13, 30)
    loss = 9.0 / depth + 90.0 * width**-0.8 + 2.0 + generator.normal(0, 0.001, 30)
    rows = [f"{d},{w},1,{w},1,1,{x}" for d, w, x in zip(depth, width, loss, strict=True)]
    (tmp_path / "runs.csv").write_text(
        "depth,width,n_kv_heads,expert_size,n_experts,top_k,loss\n" + "\n".join(rows) + "\n"
    )
    line = ("fit", "runs.csv", "--form", "two_powers", "--bootstraps", 0, "--quiet", "--out", "law.yaml")
    answer = inside(*line)
    assert answer.code == 0, answer
    assert executed(theirs) == {"powers"}
    written = yaml_source.read(tmp_path / "law.yaml")[0]
    assert written["form"]["terms"]["width"]["powers"] == {"width": "-b"}
    assert abs(written["coefficients"]["a"] - 1.0) < 0.1
    assert inside("run", "--algo", "exact", "--law", "law.yaml", "--quiet", "--out", "run").code == 0
    assert executed(theirs) == set()
    assert "did you mean two_powers?" in inside("fit", "runs.csv", "--form", "two_power").err


def test_an_export_to_their_stack_is_checked_only_where_it_is_named(
    theirs: Path, inside: Inside, tmp_path: Path
) -> None:
    (tmp_path / "c.csv").write_text("id,depth,width,n_kv_heads,expert_size\none,4,256,1,256\n")
    answer = inside("export", "c.csv", "--vocabulary", 300, "--to", "their-engine", "--out", "out")
    assert answer.code == 0, answer
    assert "Caution, their-engine: it is new" in answer.out
    assert json.loads((tmp_path / "out" / "one" / "their-engine" / "engine.json").read_text()) == {"depth": 4}
    assert json.loads((tmp_path / "out" / "export.json").read_text())["plugins"] == {"their-engine": "their-plas 1.0"}
    assert executed(theirs) == {"engine"}
    answer = inside("export", "--verify", "out")
    assert answer.code == 0
    assert "their-engine: not checked, a stack of their-plas 1.0; add --to their-engine" in answer.err
    assert executed(theirs) == set()
    content = json.loads((tmp_path / "out" / "export.json").read_text())
    (tmp_path / "out" / "export.json").write_text(json.dumps({**content, "plugins": {}}))  # a stranger's, who hides it
    assert "not checked" in inside("export", "--verify", "out").err
    assert executed(theirs) == set()
    assert (
        "their-engine: 1 of 1 candidates as exported" in inside("export", "--verify", "out", "--to", "their-engine").out
    )
    (tmp_path / "out" / "one" / "their-engine" / "engine.json").write_text('{"depth": 5}')
    answer = inside("export", "--verify", "out", "--to", "their-engine")
    assert answer.code == 1
    assert "depth" in answer.out
    assert "expected stacks of this export, got vllm" in inside("export", "--verify", "out", "--to", "vllm").err


REFUSED = {
    ("run", "--device", "broken_board"): "device broken_board of their-plas 1.0: ",
    (
        "run",
        "--objectives",
        "loss,gain",
    ): "metric gain of their-plas 1.0: expected a metric of which less is better, got DIRECTION 'maximize'",
    (
        "run",
        "--objectives",
        "three",
    ): "metric three of their-plas 1.0: expected a function of their_pack.metrics, got 'number'",
    ("run", "--objectives", "loss,energi"): "did you mean energy?",
    ("run", "--device", "their_bord"): "did you mean their_board?",
    ("run", "--law", "their_lav"): "did you mean their_law?",
    ("export", "c.csv", "--to", "their-engin", "--out", "o"): "did you mean their-engine?",
}


@pytest.mark.parametrize("typed", REFUSED)
def test_what_is_wrong_with_a_plug_in_is_said_with_its_distribution(
    typed: tuple[str, ...], theirs: Path, inside: Inside, tmp_path: Path
) -> None:
    (tmp_path / "c.csv").write_text("id,depth,width,n_kv_heads,expert_size\none,4,256,1,256\n")
    answer = inside(*typed)
    assert answer.code == 2, answer
    assert REFUSED[typed] in answer.err
    assert not (tmp_path / "runs").exists()


def test_a_broken_package_is_blamed_by_who_names_it_alone(
    install: Installed, inside: Inside, tmp_path: Path, site: Path
) -> None:
    points = {
        "metrics": {
            "breaks": "torn.metrics:f",
            "lost": "nowhere.metrics:f",
            "width": "torn.m:f",
            "formless": "torn.m",
            "a b": "torn.m:f",
        },
        "forms": {"formless_form": "torn.form"},
        "devices": {"torn": "torn.nowhere", "empty": "torn.empty"},
        "stacks": {"half": "torn.half", "raises": "torn.raising"},
        "strategies": {"torn_search": "torn.metrics"},
    }
    raising = STACK.replace("    return ['it is new']", "    return [][1]")
    files = {
        "torn/__init__.py": "",
        "torn/metrics.py": "raise RuntimeError('first\\nsecond')\n",
        "torn/form.py": "FORM = 7\n",
        "torn/half.py": "def emit(model, folder):\n    pass\n",
        "torn/raising.py": raising,
        "torn/empty/readme.txt": "",
    }
    install("torn-plas", points, files)
    damaged = site / "damaged-1.0.dist-info"
    damaged.mkdir()
    (damaged / "entry_points.txt").write_bytes(b"[plas.metrics]\nno sign \xff\n")
    entry_points._read.cache_clear()
    (tmp_path / "c.csv").write_text("id,depth,width,n_kv_heads,expert_size\none,4,256,1,256\n")
    (tmp_path / "runs.csv").write_text("depth,width,loss\n4,256,3\n")
    for typed, said in {
        (
            "run",
            "--objectives",
            "breaks",
        ): "metric breaks of torn-plas 1.0: expected an importable module, got RuntimeError: first second; check torn.metrics",
        (
            "run",
            "--objectives",
            "lost",
        ): "metric lost of torn-plas 1.0: expected an importable module, got ModuleNotFoundError",
        ("run", "--algo", "torn_search"): "strategy torn_search of torn-plas 1.0: expected an importable module",
        ("fit", "runs.csv", "--form", "formless_form"): "form formless_form of torn-plas 1.0: expected FORM",
        (
            "export",
            "c.csv",
            "--to",
            "half",
            "--out",
            "o",
        ): "stack half of torn-plas 1.0: expected emit, launch, size, cautions, fields, read in torn.half, got no launch",
    }.items():
        answer = inside(*typed)
        assert answer.code == 2, answer
        assert said in answer.err
        assert len(answer.err.splitlines()) == 1
    answer = inside("export", "c.csv", "--vocabulary", 300, "--to", "raises", "--out", "o")
    assert answer.code == 1
    assert (
        "stack raises of torn-plas 1.0: cautions failed with IndexError: list index out of range (raising.py:"
        in answer.err
    )
    assert not (tmp_path / "o").exists()
    for kind, said in {
        "devices": (
            "torn-plas 1.0: devices: expected a folder of YAML files, got torn.nowhere, which is not there",
            "got none in torn.empty",
        ),
        "metrics": (
            "'width', the name of a column",
            "'a b'",
            "expected package.module:function for formless",
            "damaged-1.0.dist-info: its entry points",
        ),
    }.items():
        answer = inside("list", kind)
        assert answer.code == 0
        assert all(text in answer.err for text in said)
    assert inside("run", "--algo", "random", "--evaluations", 20, "--quiet").code == 0


@pytest.mark.slow
def test_a_name_that_is_shipped_stays_ours_and_is_refused_where_it_is_typed(
    install: Installed, inside: Inside, study: str, tmp_path: Path
) -> None:
    points = {
        "strategies": {"random": "their_pack.s"},
        "metrics": {"loss": "their_pack.m:f"},
        "devices": {"d": "their_pack.devices"},
        "laws": {"l": "their_pack.laws"},
        "forms": {"chinchilla": "their_pack.f"},
        "stacks": {"vllm": "their_pack.v"},
    }
    files = {
        "their_pack/__init__.py": "",
        "their_pack/devices/l4.yaml": "",
        "their_pack/laws/hw_codesign.yaml": "",
    }
    install("their-plas", points, files)
    (tmp_path / "c.csv").write_text("id,depth,width,n_kv_heads,expert_size\none,4,256,1,256\n")
    (tmp_path / "runs.csv").write_text("depth,width,loss\n4,256,3\n")
    (tmp_path / "named.yaml").write_text(
        (tmp_path / study).read_text() + "algo: random\ndevice: l4\nobjectives: [loss, total_ms]\n"
    )
    for typed, name in {
        ("run", "--algo", "random"): "strategy random",
        ("run", "--objectives", "loss,total_ms"): "metric loss",
        ("run", "--budget", "loss=3"): "metric loss",
        ("run", "--device", "l4"): "device l4",
        ("run", "--law", "hw_codesign"): "law hw_codesign",
        ("fit", "runs.csv", "--form", "chinchilla"): "form chinchilla",
        ("export", "c.csv", "--to", "vllm", "--out", "o"): "stack vllm",
        ("compare", "--algos", "random"): "strategy random",
    }.items():
        answer = inside(*typed)
        assert answer.code == 2, answer
        assert f"expected one {name}, got {name.split()[1]} shipped with plas-codesign and " in answer.err
        assert "of their-plas 1.0; " in answer.err
    for typed in (("--config", "named.yaml"), ("--config", study)):
        assert inside("run", *typed, "--evaluations", 20, "--quiet").code == 0
    assert inside("export", "c.csv", "--vocabulary", 300, "--out", "o").code == 0
    assert "got loss shipped with plas-codesign and their_pack.m:f of their-plas 1.0" in inside("list", "metrics").err
    with pytest.raises(nas.UsageError, match="device: expected one device l4, got l4 shipped with plas-codesign"):
        nas.load_study(preset="paper", device="l4")
    assert nas.load_study("named.yaml").problem.scenario.device.name == "NVIDIA L4"


def test_a_name_of_two_packages_is_refused_and_one_installed_twice_is_not(
    install: Installed, inside: Inside, site: Path
) -> None:
    one = install("one-plas", {"metrics": {"heat": "heat_one:f"}}, {"heat_one.py": "def f(a):\n    return a.depth\n"})
    install("two-plas", {"metrics": {"heat": "heat_two:f"}}, {"heat_two.py": "def f(a):\n    return a.width\n"})
    answer = inside("run", "--objectives", "loss,heat")
    assert answer.code == 2
    assert (
        "got heat_one:f of one-plas 1.0 and heat_two:f of two-plas 1.0; name one by its module and function"
        in answer.err
    )
    assert (
        inside("run", "--objectives", "loss,heat_two:f", "--algo", "random", "--evaluations", 20, "--quiet").code == 0
    )
    info = one / "two_plas-1.0.dist-info"
    (info / "entry_points.txt").write_text("[plas.metrics]\nheat = heat_one:f\n")
    entry_points._read.cache_clear()
    assert inside("run", "--objectives", "loss,heat", "--algo", "random", "--evaluations", 20, "--quiet").code == 0


def test_a_folder_of_theirs_is_answered_by_them_and_a_run_by_us(
    install: Installed, inside: Inside, copied: Path
) -> None:
    """Their folders have a manifest as runs do; what tells a run is its store."""
    reader = (
        "from os.path import isfile, join\ndef recognises(folder):\n    return isfile(join(folder, 'theirs.csv'))\n"
        "def select(request):\n    print('chosen by them')\n"
    )
    install("their-plas", {"answers": {"their": "their_pack.answers"}}, {"their_pack/answers.py": reader})
    folder = copied.parent / "answer"
    folder.mkdir()
    for name in ("theirs.csv", "manifest.json"):
        (folder / name).write_text("{}")
    (copied / "theirs.csv").write_text("{}")
    assert (answer := inside("select", "answer")).code == 0, answer.err
    assert answer.out == "chosen by them\n"
    assert (
        "expected a folder that plas explain takes, got one of reader of folders their"
        in inside("explain", "answer").err
    )
    assert (answer := inside("select", "run")).code == 0, answer.err
    assert "chosen by them" not in answer.out


@pytest.mark.slow
def test_a_damaged_manifest_names_no_plug_in(theirs: Path, study: str, inside: Inside, tmp_path: Path) -> None:
    line = ("run", "--config", study, "--algo", "random", "--evaluations", 20, "--quiet", "--out", "run")
    assert inside(*line).code == 0
    path = tmp_path / "run" / "manifest.json"
    for wrong in (3, ["a"], {"metric energy": ["x"]}, None):
        path.write_text(json.dumps({**json.loads(path.read_text()), "plugins": wrong}))
        assert inside("run", "--resume", "run", "--evaluations", 21).code == 0


GREET = (
    '"""Greet."""\nfrom typing import Annotated\nfrom pathlib import Path\n'
    + LEFT
    + "from nas.files.import_rights import Right\nfrom nas.terminal.flags import Flag\n"
    "from nas.terminal.parser import command\n"
    "def greet(name: Annotated[str, Flag('--name', 'Whom.')] = 'you') -> None:\n"
    '    """Greet somebody."""\n    print(f"Good day, {name}")\n'
    "main = command(greet, 'greet', right=Right.NONE)\n"
)
ANSWERS = (
    "from pathlib import Path\n" + LEFT + "def recognises(folder):\n    return (folder / 'their.json').is_file()\n"
    "def select(request):\n    print(f'Chosen from {request.run}')\n"
)
LOG = (
    "from pathlib import Path\n" + LEFT + "from plas_board.calibrate.figure import Figure\nNAME = 'their log'\n"
    "def recognises(document):\n    return document.text.startswith('their log')\n"
    "def figures(documents):\n    for document in documents:\n        for line in document.text.splitlines()[1:]:\n"
    "            model, metric, value = line.split()\n"
    "            written = 64 if metric == 'decode_tok_s' else 0\n"
    "            cells = {'metric': metric, 'value': float(value), 'batch': 1, 'prompt_len': 512, 'gen_len': written}\n"
    "            yield Figure((model,), {**cells, 'engine': 'theirs', 'precision': 'int8'})\n"
)


@pytest.fixture
def plas(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Inside]:
    """`plas WORDS` in this process: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> Any:
        monkeypatch.setattr(sys, "argv", ["plas", *map(str, words)])
        capsys.readouterr()
        readers.cache_clear()
        code: object = 0
        try:
            nas_main.main()
        except SystemExit as stopped:
            code = stopped.code or 0
        return SimpleNamespace(code=code, **capsys.readouterr()._asdict())

    yield run
    readers.cache_clear()


@pytest.fixture
def adding(install: Installed, tmp_path: Path) -> Path:
    """A package with a command, a reader of its folders and one of its logs; a folder and a log that only these know."""
    points = {
        "commands": {"greet": "their_pack.greet", "list": "their_pack.other"},
        "answers": {"theirs": "their_pack.answers"},
        "logs": {"theirs": "their_pack.log"},
    }
    files = {
        "their_pack/__init__.py": "",
        "their_pack/greet.py": GREET,
        "their_pack/other.py": "raise RuntimeError('this is not the list that ships')\n",
        "their_pack/answers.py": ANSWERS,
        "their_pack/log.py": LOG,
    }
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "their.json").write_text("{}")
    lines = [
        f"{model} {metric} {value}"
        for model, rates in {"Qwen3-0.6B": (900, 20), "Qwen3-1.7B": (350, 8), "Qwen3-4B": (140, 3.4)}.items()
        for metric, value in zip(("prefill_tok_s", "decode_tok_s"), rates, strict=True)
    ]
    (tmp_path / "their.log").write_text("their log\n" + "\n".join(lines) + "\n")
    return install("their-plas", points, files)


def test_a_package_adds_a_command_and_none_of_ours_changes(adding: Path, plas: Inside) -> None:
    answer = plas("greet", "--name", "Ann")
    assert (answer.code, answer.out, answer.err) == (0, "Good day, Ann\n", "")
    assert executed(adding) == {"greet"}
    answer = plas()
    assert ["greet", "Greet."] in [line.split() for line in answer.out.splitlines()]
    assert answer.out.count("  list ") == 1
    answer = plas("list", "forms")
    assert answer.code == 0, "the list that ships"
    assert "depth_width" in answer.out
    assert executed(adding) == set()
    answer = plas("greets")
    assert answer.code == 2
    assert "did you mean greet?" in answer.err


def test_a_package_answers_for_its_folders(adding: Path, plas: Inside, finished: Path) -> None:
    answer = plas("select", "folder")
    assert (answer.code, answer.out) == (0, "Chosen from folder\n")
    assert executed(adding) == {"answers"}
    answer = plas("explain", "folder")
    assert answer.code == 2
    assert (
        "folder: expected a folder that plas explain takes, got one of reader of folders theirs of their-plas 1.0"
        in answer.err
    )
    executed(adding)
    assert plas("select", finished).code == 0
    assert executed(adding) == set(), "a run folder is ours: nothing is imported for it"


def test_a_package_reads_its_logs(adding: Path, plas: Inside) -> None:
    line = ("calibrate", "their.log", "doubtful=write", "--device", "jetson_agx_orin_64gb", "--out", "board.yaml")
    answer = plas(*line, "--json")
    assert answer.code == 0, answer
    assert executed(adding) == {"log"}
    assert json.loads(answer.out)["rows_used"] == 6
    assert [profile["engine"] for profile in yaml_source.read(Path("board.yaml"))[0]["profiles"]].count("theirs") == 1


def test_a_broken_module_of_a_package_is_one_line_with_its_name(
    install: Installed, plas: Inside, tmp_path: Path
) -> None:
    points = {
        "commands": {"torn": "torn_pack.command", "lost": "torn_pack.nowhere", "empty": "torn_pack"},
        "answers": {"torn": "torn_pack.answers"},
        "logs": {"torn": "torn_pack"},
    }
    broken = "raise RuntimeError('first\\nsecond')\n"
    files = {f"torn_pack/{name}.py": broken for name in ("command", "answers")}
    install("torn-plas", points, {"torn_pack/__init__.py": "", **files})
    (tmp_path / "folder").mkdir()
    (tmp_path / "some.log").write_text("some log\n")
    for typed, said in {
        (
            "torn",
        ): "plas torn: expected a module with main, got RuntimeError: first second; install the package of torn_pack.command",
        ("lost", "--help"): "plas lost: expected a module with main, got ModuleNotFoundError: ",
        ("empty",): "plas empty: expected a module with main, got AttributeError: ",
        (
            "select",
            "folder",
        ): "reader of folders torn of torn-plas 1.0: expected an importable module, got RuntimeError: first second",
        (
            "calibrate",
            "some.log",
            "--device",
            "l4",
            "--out",
            "o.yaml",
        ): "log reader torn of torn-plas 1.0: expected NAME, recognises, figures",
    }.items():
        answer = plas(*typed)
        assert answer.code == 2, answer
        assert said in answer.err
        refused = typed[0] == "calibrate"  # the log too, which nobody reads
        assert len(answer.err.splitlines()) == 1 + refused
        assert answer.out == ""
    assert plas("list", "forms").code == 0


FORMAT = {
    "types": {"ACME4": {"weights": 64, "bytes": 36, "fallback": "F16"}},
    "weights": "ACME4",
    "inputs": "INT8",
    "peak": "int8",
    "profile": "int8",
    "source": "our datasheet",
}


@pytest.fixture
def formatting(install: Installed) -> Path:
    """A package with a weight format, and one under a name that ships."""
    files = {
        "their_pack/__init__.py": "",
        "their_pack/formats/acme4.yaml": yaml_source.dump(FORMAT),
        "their_pack/formats/int4.yaml": yaml_source.dump(FORMAT),
        "their_pack/formats/torn.yaml": yaml_source.dump({**FORMAT, "weights": "ACME5"}),
    }
    return install("their-plas", {"formats": {"theirs": "their_pack.formats"}}, files)


@pytest.mark.slow
def test_a_run_in_their_format_holds_it_and_is_repeated_without_the_package(
    formatting: Path, study: str, inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ("run", "--config", study, "--algo", "random", "--evaluations", 30, "--quiet")
    assert inside(*line, "--precision", "int4", "--out", "shipped").code == 0
    answer = inside(*line, "--precision", "acme4", "--out", "run")
    assert answer.code == 0, answer
    table = nas.read_run(tmp_path / "run").evaluations
    shipped = nas.read_run(tmp_path / "shipped").evaluations
    assert np.allclose(table.memory_gb, shipped.memory_gb * 36 / 64 / 0.5), (
        "36 bytes per 64 weights, int4 has half a byte"
    )
    config = yaml_source.read(tmp_path / "run" / "config.yaml")[0]
    assert config["formats"] == {"acme4": {**FORMAT, "weights": ["ACME4"]}}
    assert "formats" not in yaml_source.read(tmp_path / "shipped" / "config.yaml")[0]
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(formatting)])
    for typed in (("select", "run"), ("explain", "run", "--preset", "device"), ("report", "run")):
        answer = inside(*typed)
        assert answer.code == 0, answer
    assert inside("run", "--config", "run", "--out", "again", "--quiet").code == 0
    assert (tmp_path / "run" / "evaluations.csv").read_bytes() == (tmp_path / "again" / "evaluations.csv").read_bytes()
    assert inside("run", "--resume", "run", "--evaluations", 40, "--quiet").code == 0
    answer = inside(*line, "--precision", "acme4", "--out", "unknown")
    assert answer.code == 2
    assert "got 'acme4'" in answer.err


@pytest.mark.slow
def test_their_format_is_the_same_in_cases_of_devices(formatting: Path, inside: Inside, tmp_path: Path) -> None:
    axes = {"depth": [8, 16], "width": [512, 1024], "expert_ffn_ratio": [2, 4], "n_kv_heads": [1]}
    (tmp_path / "dense.yaml").write_text(yaml_source.dump({"name": "dense", "axes": axes}))
    line = ("devices", "--preset", "paper", "--space", "dense.yaml", "--devices", "l4", "--quiet")
    assert inside(*line, "--set", "precision=acme4", "--out", "one").code == 0
    (formatting / "their_pack" / "formats" / "acme4.yaml").unlink()
    assert inside("devices", "--config", "one", "--out", "two", "--quiet").code == 0
    assert (tmp_path / "one" / "cases.csv").read_bytes() == (tmp_path / "two" / "cases.csv").read_bytes()
    assert inside(*line, "--out", "three").code == 0
    assert "formats" not in yaml_source.read(tmp_path / "three" / "config.yaml")[0]


def test_what_their_format_cannot_be_is_refused_by_name(
    formatting: Path, study: str, inside: Inside, tmp_path: Path
) -> None:
    (tmp_path / "c.csv").write_text("id,depth,width,n_kv_heads,expert_size,precision\none,4,256,1,256,acme4\n")
    line = ("run", "--config", study, "--algo", "random", "--evaluations", 30, "--quiet")
    for typed, said in {
        (*line, "--precisions", "fp16,acme4"): "got 'acme4'",
        (*line, "--precision", "acme4_kv8"): "got 'acme4_kv8'",
        (*line, "--precision", "torn"): "--precision: format torn of their-plas 1.0: ",
        (*line, "--precision", "acme4", "--set", "precision_law=post_training"): "got acme4",
        (*line, "--precision", "acme4", "--set", "latency=closed_form"): "precision acme4",
        ("export", "c.csv", "--vocabulary", 300, "--out", "out"): "precision: expected one of fp16, ",
        (
            *line,
            "--set",
            "formats={int4: {weights: F16, source: us}}",
        ): "int4: expected one format of a name, got another",
        (
            *line,
            "--set",
            "formats={a_kv8: {weights: F16, source: us}}",
        ): "a_kv8: expected a name without _kv and _down8",
        (
            *line,
            "--set",
            "formats={a: {weights: F99, source: us}}",
            "--set",
            "precision=a",
        ): "or types of its own, got F99",
    }.items():
        answer = inside(*typed)
        assert answer.code == 2, answer
        assert said in answer.err
        assert len(answer.err.splitlines()) == 1
    listed = inside("list", "formats", "--json")
    rows = {row["name"]: row for row in json.loads(listed.out)}
    assert rows["acme4"]["weight bits"] == 4.5
    assert "ACME4 Installed: " in rows["acme4"]["types"]
    assert rows["torn"]["types"].startswith("Broken: format torn of their-plas 1.0: ")
    assert rows["int4"]["weight bits"] == 4.0, "ours"
    assert "Not used: expected one format int4, got int4 shipped with plas-codesign and " in listed.err


def test_two_formats_of_one_name_are_never_taken_for_each_other(
    formatting: Path, study: str, inside: Inside, tmp_path: Path
) -> None:
    line = ("run", "--config", study, "--algo", "random", "--evaluations", 20, "--quiet", "--precision", "acme4")
    assert inside(*line, "--out", "run").code == 0
    path = formatting / "their_pack" / "formats" / "acme4.yaml"
    path.write_text(path.read_text().replace("bytes: 36", "bytes: 40"))
    mine = {"acme4": {"weights": "Q8_0", "source": "us"}}
    studies = (
        nas.load_study("run"),
        *(nas.load_study(study, precision="acme4", **own) for own in ({}, {"formats": mine})),
    )
    assert len(nas.read_run("run").evaluations) == 20
    in_order = [each.problem.scenario for each in studies]
    assert [scenario.precision.weight_bytes for scenario in in_order] == [36 / 64, 40 / 64, 34 / 32]
    assert [computing_as(scenario.conditions(experts=False)) for scenario in in_order] == ["int8", "int8", "acme4"]
    answer = inside("run", "--resume", "run", "--evaluations", 30, "--set", "formats.acme4.types.ACME4.bytes=40")
    assert answer.code == 2
    assert "formats" in answer.err


def test_a_worker_knows_the_format_that_it_receives(formatting: Path, tiny: dict[str, Any], tmp_path: Path) -> None:
    scenario = nas.load_study(space=tiny, precision="acme4").problem.scenario
    (tmp_path / "scenario").write_bytes(pickle.dumps(scenario))
    code = "import pickle, sys; s = pickle.load(open(sys.argv[1], 'rb')); from objectives.transfers import computing_as as c; "
    code += "print(s.precision.bytes_of('weights'), c(s.conditions(experts=False)))"
    line = [sys.executable, "-c", code, str(tmp_path / "scenario")]
    done = subprocess.run(line, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0.5625", "int8"]


@pytest.mark.parametrize(
    "named", [{}, {"precision": "int4"}, {"precision": 3}, {"precision": "a", "formats": {"a": {}}}]
)
def test_packages_are_read_for_a_format_that_does_not_ship_alone(
    named: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_points, "read", lambda: pytest.fail("packages were read"))
    assert with_format(named, Faults()) is named


def samples() -> Any:
    """The page's blocks, as tests/docs reads them."""
    spec = importlib.util.spec_from_file_location("plug_in_samples", ROOT / "tests" / "docs" / "samples.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.blocks_of(PAGE)


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package of the page, built by its own pyproject and installed into a folder of its own."""
    hatchling = pytest.importorskip("hatchling.build", reason="hatchling builds the package of docs/extend.md")
    for block in samples():
        if name := block.marks.get("file"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("\n".join(block.lines) + "\n")
    (tmp_path / "acme-plas" / "acme_plas" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path / "acme-plas")
    wheel = hatchling.build_wheel(str(tmp_path))
    zipfile.ZipFile(tmp_path / wheel).extractall(tmp_path / "installed")
    return tmp_path / "installed"


@pytest.mark.slow
def test_the_package_of_the_page_does_what_the_page_shows(built: Path, tmp_path: Path) -> None:
    shown = [line for block in samples() if "not run" in block.marks for line in block.lines]
    environment = {**os.environ, "PYTHONPATH": f"{built}{os.pathsep}{ROOT}"}
    commands = [i for i, line in enumerate(shown) if line.startswith("$ plas ")]
    for at, end in zip(commands, [*commands[1:], len(shown)], strict=True):
        line = [sys.executable, "-P", "-m", "nas", *shown[at].split()[2:]]
        done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        wanted = [text.strip() for text in shown[at + 1 : end] if text != "…"]
        assert wanted
        printed = " ".join(done.stdout.split())
        assert [text for text in wanted if " ".join(text.split()) not in printed] == []


def test_the_table_of_groups_is_the_one_that_is_read(built: Path) -> None:
    table = [line for line in PAGE.splitlines() if line.startswith("| `plas.")]
    assert {line.split("`")[1] for line in table} == {f"plas.{kind}" for kind in (*entry_points.KINDS, "commands")}
    points = tomllib.loads((built.parent / "acme-plas" / "pyproject.toml").read_text())["project"]["entry-points"]
    assert points.keys() <= {f"plas.{kind}" for kind in entry_points.KINDS}


def test_a_plug_in_says_its_origin() -> None:
    plug_in = PlugIn("strategies", "climb", "a.b", "pack 2")
    assert (str(plug_in), plug_in.origin) == ("strategy climb of pack 2", "a.b of pack 2")


@pytest.mark.parametrize("installed", [False, True])
def test_a_study_of_several_devices_and_a_folder_may_be_of_a_packages_command(
    installed: bool, install: Installed, inside: Inside, tmp_path: Path
) -> None:
    study, folder = tmp_path / "study.yaml", tmp_path / "theirs"
    study.write_text("devices: [l4]\nacme: {models: 2}\n")
    folder.mkdir()
    (folder / "manifest.json").write_text('{"command": "acme"}')
    if installed:
        install("acme-plas", {"commands": {"acme": "acme.__main__"}}, {"acme/__main__.py": '"""What they do."""\n'})
    asked = inside("devices", "--config", study, "--no-plots", "--quiet", "--out", tmp_path / "out")
    got = "a folder of plas acme" if installed else "no evaluations.sqlite in it"
    assert f"theirs: expected a run folder, got {got}" in inside("select", folder).err
    assert (asked.code, "study.yaml:2: acme: unknown key" in asked.err) == ((0, False) if installed else (2, True))
