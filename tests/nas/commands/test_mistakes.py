"""What a user gets wrong, and what the machine refuses: one clear line, an exit code, nothing written."""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

Inside = Callable[..., Any]
Checked = Callable[..., str]

SIX = """\
name: mistaken
objectves: [loss]
vocabulary: many
batch: -4
device: jetson_agx_orin_65gb
space:
  axes: {depth: [4], width: [768], n_experts: [4], top_k: [8], expert_ffn_ratio: [1], n_kv_heads: [1]}
objectives: []
"""


def test_six_mistakes_are_six_lines_exit_2_and_nothing_written(commands: Any, refused: Checked) -> None:
    commands.write("study.yaml", SIX)
    said = refused(commands("run", "--config", "study.yaml", "--algo", "nsga2")).splitlines()
    assert [line.split(": ")[:2] for line in said] == [
        ["study.yaml:2", "objectves"],
        ["study.yaml:3", "vocabulary"],
        ["study.yaml:4", "batch"],
        ["study.yaml:5", "device"],
        ["study.yaml:7", "space.axes.top_k"],
        ["study.yaml:8", "objectives"],
    ]
    assert "did you mean objectives?" in said[0]
    assert "did you mean jetson_agx_orin_64gb?" in said[3]
    assert [path.name for path in commands.folder.iterdir()] == ["study.yaml"]


BAD: list[str] = [
    "run --algo nsga9",
    "run --algo",
    "run --evaluations x",
    "run --evaluations 0",
    "run --evaluations -5",
    "run --evaluations 1.5",
    "run --seed -1",
    "run --seed 1.5e0",
    "run --time-limit 0",
    "run --time-limit -1",
    "run --time-limit x",
    "run --time-limit nan",
    "run --param population",
    "run --param population=2",
    "run --param populaton=50",
    "run --param =",
    "run --budget",
    "run --budget decode_ms",
    "run --budget haste=5",
    "run --budget decode_ms=x",
    "run --budget decode_ms=-1",
    "run --set x",
    "run --set x=1",
    "run --set budgets=5",
    "run --set params=5",
    "run --config none.yaml",
    "run --config .",
    "run --config text",
    "run --config file",
    "run --config binary",
    "run --space none",
    "run --space file",
    "run --space .",
    "run --law none",
    "run --device none",
    "run --device h200@fast",
    "run --device file",
    "run --precision fp7",
    "run --preset fast",
    "run --set latency=x",
    "run --set attention=x",
    "run --vocabulary -1",
    "run --set batch=0",
    "run --input-tokens 0",
    "run --output-tokens 0",
    "run --objectives ,",
    "run --objectives loss,loss",
    "run --objectives los",
    "run --objectives nomod:fn",
    "run --objectives os:nothing",
    "run --objectives :x",
    "run --resume none",
    "run --resume .",
    "run --resume file",
    "run --out file",
    "run --out file/x",
    "run --out full",
    "run --unknown",
    "run extra",
    "run --algo exact --evaluations 5",
    "run --set latency=closed_form --set attention=fused",
    "run --set latency=closed_form --vocabulary 100",
    "run --set latency=closed_form --precisions fp16,q4_k_m --algo random --evaluations 50",
    "select",
    "select none",
    "select . --select x",
    "select . --rows 0",
    "select . --budget x",
    "explain",
    "explain none",
    "explain --model none",
    "explain --model qwen2.5_0.5b --architecture depth=4",
    "explain --architecture x",
    "explain --architecture depth=4",
    "explain --architecture depth=0,width=768,n_kv_heads=1,expert_size=768",
    "explain --index -1",
    "explain --model qwen3_0.6b --set latency=closed_form",
    "explain . --config paper",
    "explain --model qwen2.5_0.5b --preset x",
    "explain --model qwen2.5_0.5b --set x",
    "list nothing",
    "list --schema nothing",
    "init file",
    "init x.yaml --from nothing",
    "__main__ nothing",
]


@pytest.mark.parametrize("line", BAD)
def test_a_mistake_is_exit_2_without_a_traceback_and_nothing_is_written(
    line: str, inside: Inside, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("hello: [1, 2\n")
    (tmp_path / "text").write_text("just words\n")
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "kept").write_text("")
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    answer = inside(*line.split())
    assert answer.code == 2, answer
    assert answer.err.strip()
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "line",
    [
        "init file/x.yaml",
        "init none/x.yaml",
        "select run --out file/x.csv",
        "select run --out none/x.csv",
        "select run --out run",
        "select run --out x.txt",
    ],
)
def test_a_file_that_cannot_be_written_is_one_line(line: str, copied: Path, inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    answer = inside(*line.split())
    assert answer.code in (1, 2), answer
    assert len(answer.err.splitlines()) == 1
    assert copied.is_dir()


@pytest.mark.slow  # of `list` a fast test (tests/nas/terminal/test_streams.py)
def test_a_closed_pipe_is_no_traceback(finished: Path, commands: Any) -> None:
    line = " ".join(commands.line("select", finished, "--rows", 60))
    result = subprocess.run(
        ["bash", "-c", f"{line} | true"],
        cwd=commands.folder,
        env=commands.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in result.stderr
    assert "BrokenPipe" not in result.stderr


@pytest.mark.slow
def test_a_folder_that_is_read_only_is_read(
    finished: Path, commands: Any, succeeded: Checked, refused: Checked, tmp_path: Path
) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", place], capture_output=True, check=False
    ).returncode:
        pytest.skip("no file system can be mounted here: not tried on a read-only one")
    try:
        shutil.copytree(finished, place / "run")
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        assert "chosen" in succeeded(commands("select", place / "run"))
        refused(commands("run", "--resume", place / "run"))
        refused(commands("run", "--algo", "random", "--out", place / "new"))
        refused(commands("select", place / "run", "--out", place / "x.csv"), 1)
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("package", ["torch", "threadpoolctl"])
def test_a_strategy_without_its_extra_says_which(
    package: str, inside: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == package else found(name, *more)
    )
    if package != "torch" and found("torch") is None:  # as if it were there, of another extra
        monkeypatch.setitem(sys.modules, "torch", importlib.util.module_from_spec(ModuleSpec("torch", None)))
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not there, where it is
    monkeypatch.delitem(sys.modules, "nas.strategies.optuna_gp", raising=False)
    for line in (["run", "--algo", "optuna_gp"], ["list", "--schema", "optuna_gp"]):
        answer = inside(*line)
        assert answer.code == 2
        (said,) = answer.err.splitlines()
        assert said.endswith(
            f"expected the package {package} for optuna_gp, got none installed; pip install 'plas-codesign[gp]'"
        )
    assert inside("list", "strategies").code == 0
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    "flags",
    [
        ("--algo", "exact", "--evaluations", "10"),
        ("--algo", "exact", "--set", "constraints=penalty"),
        ("--algo", "sobol", "--set", "seed_from=missing.csv"),
        ("--algo", "nsga3", "--param", "divisions=200"),
        ("--out", "taken"),
    ],
    ids=lambda flags: flags[-2].lstrip("-"),
)
def test_what_flags_alone_can_tell_is_refused_before_anything_is_said(
    flags: tuple[str, ...], inside: Inside, tmp_path: Path
) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "note.txt").touch()
    answer = inside("run", *flags)
    assert answer.code == 2
    assert answer.out == ""
    assert len(answer.err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
