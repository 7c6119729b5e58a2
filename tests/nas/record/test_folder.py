"""Run folders: never overwritten, locked, verified before they are continued, and never trusted."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.errors import UsageError
from nas.files.yaml_source import dump, read
from nas.record.folder import create, locked
from nas.record.identity import difference, fingerprints
from nas.record.store import FILE

Inside = Callable[..., Any]
KEPT = ("evaluations.csv", "frontier.csv", "picks.csv")


def bytes_of(folder: Path) -> dict[str, bytes]:
    """The files that must not differ."""
    return {name: (folder / name).read_bytes() for name in KEPT}


def meta(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Alter what a store says it was created with."""
    with sqlite3.connect(folder / FILE) as connection:
        content = {
            name: value if name == "layout" else json.loads(value)
            for name, value in connection.execute("SELECT * FROM meta")
        }
        change(content)
        connection.execute("DELETE FROM meta")
        connection.executemany(
            "INSERT INTO meta VALUES (?, ?)", [(k, v if k == "layout" else json.dumps(v)) for k, v in content.items()]
        )
    connection.close()


# Folders


def test_names_count_up_and_nothing_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [create("s-random-s0", None) for _ in range(3)] == [
        Path("runs") / name for name in ("s-random-s0", "s-random-s0-2", "s-random-s0-3")
    ]
    assert not any((tmp_path / "runs" / "s-random-s0").iterdir())


def test_out_is_a_new_or_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert create("x", tmp_path / "empty") == tmp_path / "empty"
    assert create("x", tmp_path / "a" / "b").is_dir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    (tmp_path / "file").write_text("")
    for out, said in (
        (tmp_path / "full", "with files in it"),
        (tmp_path / "file", "got a file"),
        (tmp_path / "file" / "x", "Not a directory"),
    ):
        with pytest.raises(UsageError, match=said):
            create("x", out)
    assert (tmp_path / "full" / "thesis.tex").exists()


@pytest.mark.parametrize("place", ["pathlib.Path.mkdir", "nas.record.folder.TemporaryFile"])
@pytest.mark.parametrize("out", [None, Path("there")])
def test_a_folder_that_cannot_be_written_is_a_usage_error(
    place: str, out: Path | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(place, denied)
    with pytest.raises(UsageError, match=r"expected a writable folder, got .*Permission denied"):
        create("study", out)


def test_a_folder_is_held_by_one_process(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(UsageError, match="another process works on"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


# What must not differ


def test_fingerprints_differ_where_a_section_differs(finished: Path) -> None:
    resolved, _ = read(finished / "config.yaml")
    base = fingerprints(resolved)
    assert json.loads((finished / "manifest.json").read_text())["fingerprints"] == base
    assert set(base) == {"space", "law", "device", "scenario", "objectives", "budgets", "strategy", "answer"}
    for section, key, value in (
        ("scenario", "batch", 2),
        ("objectives", "objectives", ["loss"]),
        ("budgets", "budgets", {}),
        ("strategy", "seed", 1),
    ):
        other = fingerprints({**resolved, key: value})
        assert [name for name in base if base[name] != other[name]] == [section]
        assert (difference(resolved, {**resolved, key: value}) or "").startswith(f"{section}.") or section in (
            "objectives",
            "budgets",
        )
    for renamed in (
        {**resolved, "law": {**resolved["law"], "description": "else", "source": "else"}},
        {**resolved, "device": {**resolved["device"], "npu": True}},
        {**resolved, "device": {**resolved["device"], "chip": "npu"}},
    ):
        assert fingerprints(renamed) == base
        assert difference(resolved, renamed) is None


DIFFERENT: list[tuple[list[str], str]] = [
    (["--space", "paper"], "space"),
    (["--device", "h200"], "device"),
    (["--precision", "int8"], "scenario.precision"),
    (["--seed", "6"], "strategy.seed"),
    (["--objectives", "loss,decode_ms"], "objectives"),
    (["--budget", "total_ms=50"], "budgets.total_ms"),
    (["--budget", "decode_ms=50"], "budgets.decode_ms"),
    (["--budget", "memory_gb=none"], "budgets.memory_gb"),
    (["--param", "population=16"], "strategy.params.population"),
    (["--algo", "random"], "strategy.algo"),
    (["--preset", "device"], "scenario"),
    (["--set", "latency=closed_form"], "scenario.latency"),
    (["--output-tokens", "17"], "scenario.output_tokens"),
    (["--set", "law.coefficients.kappa_l=9"], "law"),
    (["--set", "training.utilisation=0.3"], "scenario.training.utilisation"),
    (["--set", "baselines=[qwen3_0.6b]"], "answer.baselines"),
    (["--set", "applications.mine={total_ms: 50}"], "answer.applications"),
    (["--set", "residual_sd=0.1"], "law.residual_sd"),
    (["--set", "columns=[train_flops]"], "objectives.columns"),
    (["--set", "default_budget.share=0.5"], "default_budget"),
    (["--set", "known_as={a: b}"], "known_as"),
]


@pytest.mark.parametrize(("flags", "said"), DIFFERENT, ids=lambda value: value if isinstance(value, str) else " ")
def test_resume_refuses_a_difference_and_names_it(flags: list[str], said: str, copied: Path, inside: Inside) -> None:
    before = {path.name: path.read_bytes() for path in copied.iterdir() if path.is_file() and "-" not in path.name}
    answer = inside("run", "--resume", copied, *flags)
    assert answer.code == 2, answer
    assert said in answer.err, answer.err
    assert len(answer.err.splitlines()) == 1
    assert {name: (copied / name).read_bytes() for name in before} == before


def test_resume_takes_no_config_and_no_out(copied: Path, inside: Inside) -> None:
    assert inside("run", "--resume", copied, "--out", "x").code == 2
    assert inside("run", "--resume", copied, "--config", "paper").code == 2


def test_resume_of_a_finished_run_changes_nothing(copied: Path, finished: Path, inside: Inside) -> None:
    assert inside("run", "--resume", copied, "--quiet").code == 0
    assert bytes_of(copied) == bytes_of(finished)
    assert (copied / "config.yaml").read_bytes() == (finished / "config.yaml").read_bytes()


@pytest.fixture
def longer(finished: Path, inside: Inside, tmp_path: Path) -> Path:
    """The same study with 100 evaluations from the start."""
    assert inside("run", "--config", finished, "--evaluations", 100, "--out", tmp_path / "longer", "--quiet").code == 0
    return tmp_path / "longer"


def test_an_extended_run_is_the_longer_run(copied: Path, longer: Path, inside: Inside) -> None:
    assert inside("run", "--resume", copied, "--evaluations", 100, "--quiet").code == 0
    assert bytes_of(copied) == bytes_of(longer)
    assert (copied / "config.yaml").read_bytes() == (longer / "config.yaml").read_bytes()


def test_an_extended_run_stays_extended(copied: Path, longer: Path, inside: Inside) -> None:
    """Resuming once more without flags neither forgets the extension nor what repeats it."""
    assert inside("run", "--resume", copied, "--evaluations", 100, "--quiet").code == 0
    assert inside("run", "--resume", copied, "--quiet").code == 0
    assert read(copied / "config.yaml")[0]["evaluations"] == 100
    assert bytes_of(copied) == bytes_of(longer)
    assert json.loads((copied / "summary.json").read_text())["stop_reason"] == "100 distinct evaluations"


def test_an_extension_killed_in_the_middle_resumes_to_its_end(
    copied: Path, longer: Path, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nas.commands import run as running

    class KilledError(BaseException):
        """Stands for a kill: nothing of the product handles it."""

    def killed(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(running, "conclude", killed)
        with pytest.raises(KilledError):
            inside("run", "--resume", copied, "--evaluations", 80, "--quiet")
    assert inside("run", "--resume", copied, "--evaluations", 100, "--quiet").code == 0
    assert bytes_of(copied) == bytes_of(longer)


def test_fewer_evaluations_than_recorded_are_refused_or_change_nothing(
    copied: Path, finished: Path, inside: Inside, tmp_path: Path
) -> None:
    inside("run", "--resume", copied, "--evaluations", 10, "--quiet")
    assert bytes_of(copied) == bytes_of(finished)
    assert inside("run", "--config", copied / "config.yaml", "--out", tmp_path / "again", "--quiet").code == 0
    assert bytes_of(tmp_path / "again") == bytes_of(copied)


def test_the_files_are_made_again_when_they_are_lost(copied: Path, finished: Path, inside: Inside) -> None:
    for path in list(copied.iterdir()):
        if path.name != FILE:
            path.unlink()
    assert inside("run", "--resume", copied, "--quiet").code == 0
    assert bytes_of(copied) == bytes_of(finished)
    assert (copied / "config.yaml").read_bytes() == (finished / "config.yaml").read_bytes()
    assert json.loads((copied / "manifest.json").read_text())["state"] == "finished"


def only_config(folder: Path) -> None:
    """Killed before the store was made."""
    for path in list(folder.iterdir()):
        if path.name != "config.yaml":
            path.unlink()


def empty_store(folder: Path) -> None:
    """Killed when the store's file was opened."""
    only_config(folder)
    (folder / FILE).write_bytes(b"")


def half_a_store(folder: Path) -> None:
    """Killed between the store's tables."""
    only_config(folder)
    with sqlite3.connect(folder / FILE) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute('CREATE TABLE evaluations ("index" INTEGER PRIMARY KEY)')
    connection.close()


@pytest.mark.parametrize("killed", [only_config, empty_store, half_a_store])
def test_a_run_killed_before_its_first_evaluation_resumes(
    killed: Callable[[Path], None], copied: Path, finished: Path, inside: Inside
) -> None:
    killed(copied)
    answer = inside("run", "--resume", copied, "--quiet")
    assert answer.code == 0, answer
    assert bytes_of(copied) == bytes_of(finished)


def test_other_versions_are_a_warning(copied: Path, finished: Path, inside: Inside) -> None:
    path = copied / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["versions"] |= {"numpy": "1.0.0"}
    path.write_text(json.dumps(manifest))
    answer = inside("run", "--resume", copied)
    assert answer.code == 0
    assert "Warning: versions differ from the run's (numpy 1.0.0 -> " in answer.err
    assert bytes_of(copied) == bytes_of(finished)


# Damage


def garbage(name: str, content: bytes = b"\x00\xff garbage: [\n") -> Callable[[Path], None]:
    """Replace a file's content."""
    return lambda folder: (folder / name).write_bytes(content) and None


def drop(name: str, *keys: str) -> Callable[[Path], None]:
    """Take something out of what the store was created with."""

    def change(content: dict[str, Any]) -> None:
        target = content
        for key in keys:
            target = target[key]
        target.pop(name)

    return lambda folder: meta(folder, change)


def put(value: Any, *keys: str) -> Callable[[Path], None]:
    """Put something else into what the store was created with."""

    def change(content: dict[str, Any]) -> None:
        target = content
        for key in keys[:-1]:
            target = target[key]
        target[keys[-1]] = value

    return lambda folder: meta(folder, change)


def as_folder(folder: Path) -> None:
    """A folder where the store should be."""
    (folder / FILE).unlink()
    (folder / FILE).mkdir()


def not_json(folder: Path) -> None:
    """What the store was created with is no JSON."""
    with sqlite3.connect(folder / FILE) as connection:
        connection.execute("UPDATE meta SET value = '{' WHERE name = 'resolved'")
    connection.close()


DAMAGED: dict[str, Callable[[Path], None]] = {
    "no store": lambda folder: (folder / FILE).unlink(),
    "an empty store": garbage(FILE, b""),
    "a text for a store": garbage(FILE, b"hello " * 1000),
    "half a store": lambda folder: (folder / FILE).write_bytes((folder / FILE).read_bytes()[:9000]) and None,
    "a folder for a store": as_folder,
    "resolved is no JSON": not_json,
    "another layout": put("2", "layout"),
    "no layout": drop("layout"),
    "no resolved": drop("resolved"),
    "resolved is a list": put([1], "resolved"),
    "resolved is empty": put({}, "resolved"),
    "no metrics": drop("metrics"),
    "metrics are a number": put(5, "metrics"),
    "another metric": put(["loss", "speed"], "metrics"),
    "no log scale": drop("log_scale"),
    "no space": drop("space", "resolved"),
    "a name for a space": put("paper", "resolved", "space"),
    "an impossible space": put({"axes": {"depth": []}}, "resolved", "space"),
    "another space": put(
        {"axes": {"depth": [4], "width": [768], "expert_ffn_ratio": [1], "n_kv_heads": [1]}}, "resolved", "space"
    ),
    "no objectives": drop("objectives", "resolved"),
    "an unknown objective": put(["loss", "speed"], "resolved", "objectives"),
    "no budgets": drop("budgets", "resolved"),
    "a budget in words": put({"total_ms": "fast"}, "resolved", "budgets"),
    "a budget on nothing": put({"speed": 5}, "resolved", "budgets"),
    "no vocabulary": drop("vocabulary", "resolved"),
    "no algo": drop("algo", "resolved"),
}


UNREAD = {("select", "no algo"), ("explain", "no algo"), ("run", "no log scale")}  # what a command has no use for


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize(
    "command", [["select", "{}", "--select", "knee"], ["explain", "{}"], ["run", "--resume", "{}"]], ids=lambda c: c[0]
)
def test_a_damaged_or_foreign_run_is_said_in_a_line(
    damage: str, command: list[str], copied: Path, inside: Inside
) -> None:
    DAMAGED[damage](copied)
    answer = inside(*(part.format(copied) for part in command))
    if answer.code == 0 and (command[0], damage) in UNREAD:
        return
    assert answer.code in (1, 2), answer
    assert answer.err.startswith((str(copied), "resume", "space", "algo", "budgets", "objectives")), answer.err
    assert 1 <= len(answer.err.splitlines()) <= 3, answer.err


MANGLED: dict[str, Callable[[Path], None]] = {
    "manifest": garbage("manifest.json"),
    "manifest without versions": garbage("manifest.json", b"{}"),
    "manifest with a list of versions": garbage("manifest.json", b'{"versions": [1]}'),
    "manifest is a list": garbage("manifest.json", b"[]"),
    "summary": garbage("summary.json"),
    "summary without a scale": garbage("summary.json", b'{"scale": null}'),
    "summary with words": garbage("summary.json", b'{"scale": {"loss": {"best": "x", "worst": []}, "total_ms": 5}}'),
    "csv": garbage("evaluations.csv"),
}


@pytest.mark.slow
@pytest.mark.parametrize("mangle", MANGLED.values(), ids=MANGLED)
def test_files_that_follow_from_the_store_are_not_needed(
    mangle: Callable[[Path], None], copied: Path, finished: Path, inside: Inside
) -> None:
    mangle(copied)
    for command in (["select", copied, "--select", "knee"], ["explain", copied]):
        answer = inside(*command)
        assert answer.code == 0, answer
    answer = inside("run", "--resume", copied, "--quiet")
    if answer.code == 0:
        assert bytes_of(copied) == bytes_of(finished)
    else:
        assert (answer.code, len(answer.err.splitlines()), "manifest.json" in answer.err) == (2, 1, True), answer


@pytest.mark.parametrize(
    "content",
    [
        b"\xff",
        b"seed: [",
        b"- 1",
        b"seed: 1\n",
        b"{}",
        b"!!python/object/apply:os.system [touch owned]\n",
        b"space: !!python/name:os.system\n",
    ],
)
def test_an_edited_config_is_refused_and_nothing_in_it_runs(
    content: bytes, copied: Path, finished: Path, inside: Inside, tmp_path: Path
) -> None:
    (copied / "config.yaml").write_bytes(content)
    for command in (["run", "--resume", copied], ["run", "--config", copied, "--evaluations", 20, "--out", "new"]):
        answer = inside(*command)
        if content in (b"seed: 1\n", b"{}") and "--config" in command:
            continue
        assert answer.code == 2, answer
        assert len(answer.err.splitlines()) == 1
    assert not (tmp_path / "owned").exists()
    assert bytes_of(copied) == bytes_of(finished)


def test_a_config_that_says_something_else_than_the_store_is_refused(copied: Path, inside: Inside) -> None:
    content, _ = read(copied / "config.yaml")
    (copied / "config.yaml").write_text(dump({**content, "seed": 6}))
    answer = inside("run", "--resume", copied)
    assert answer.code == 2
    assert "strategy.seed: 5 in the run, 6 now" in answer.err


@pytest.mark.parametrize("where", ["none", ".", "file", "run/plots", "run/evaluations.csv", "", "\u00e9" * 300])
@pytest.mark.parametrize("command", [["select"], ["explain"], ["run", "--resume"]], ids=" ".join)
def test_what_is_no_run_folder_is_said_in_a_line(
    where: str, command: list[str], copied: Path, inside: Inside, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    (copied / "plots").mkdir(exist_ok=True)
    answer = inside(*command, where)
    assert answer.code == 2, answer
    assert len(answer.err.splitlines()) == 1
    of_rows = command == ["explain"] and where.endswith(".csv")  # which it reads, and asks for one
    expected = "shorten it" if command == ["explain"] and len(where) > 255 else "run folder"
    assert ("--index" if of_rows else expected) in answer.err


# Strangers


@pytest.fixture
def trap(tmp_path: Path, inside: Inside, user_module: Callable[[str], str]) -> Path:
    """A run of a user's metric, in whose folder a stranger has put a module of that name that leaves a mark."""
    name = user_module("def fn(a):\n    return a.depth / 3\n")
    study = {
        "preset": "paper",
        "objectives": ["loss", f"{name}:fn"],
        "budgets": {f"{name}:fn": 100},
        "applications": {"mine": {f"{name}:fn": 3}},
        "baselines": [],
    }
    (tmp_path / "study.yaml").write_text(dump(study))
    assert (
        inside("run", "--config", "study.yaml", "--algo", "random", "--evaluations", 20, "--out", "run", "--quiet").code
        == 0
    )
    (tmp_path / f"{name}.py").unlink()
    shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
    (tmp_path / "run" / f"{name}.py").write_text(
        f"open({str(tmp_path / 'owned')!r}, 'w').close()\ndef fn(a):\n    return a.depth / 3\n"
    )
    import sys

    sys.modules.pop(name)
    return tmp_path / "run"


@pytest.mark.parametrize(
    "command",
    [
        ["select", "."],
        ["select", ".", "--select", "knee"],
        ["explain", "."],
        ["explain", ".", "--index", "3"],
        ["run", "--resume", "."],
        ["run", "--config", ".", "--out", "../new", "--evaluations", "10", "--algo", "random"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("there", [True, False], ids=["in it", "beside it"])
def test_a_module_in_a_run_folder_is_never_imported(
    command: list[str], there: bool, trap: Path, inside: Inside, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if there:
        monkeypatch.chdir(trap)
        monkeypatch.syspath_prepend(str(trap))
    answer = inside(*(part if there or part != "." else str(trap) for part in command))
    assert not (tmp_path / "owned").exists(), "a stranger's code ran"
    assert answer.code in (0, 2)
    if command[0] != "run":
        assert answer.code == 0, answer
