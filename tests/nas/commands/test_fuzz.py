"""Generated studies, command lines, candidate files and stores: success or a clear error, never a traceback or a hang.

Every case follows from its number. One that fails is repeated with `-k` and that number's block.
"""

import csv
import io
import json
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from nas.errors import PlasError
from nas.files import yaml_source
from nas.record.database import digest, meta_digest
from nas.record.store import FILE, RunStore, read_meta
from nas.strategies.conformance.laws import AXES
from search_spaces.columns import FILE_COLUMNS
from tests.nas.commands.spoiling import Spoiler, garbled

SECONDS = 10  # of processor time that an answer may take
BLOCK = 50
TEXTS = [
    *(
        "",
        " ",
        "=1+1",
        "-cmd|x",
        "@SUM(A1)",
        "\x1b[31mred\x1b[0m",
        "a\nb",
        "\u202eabc",
        "é" * 300,
        "a" * 5000,
        "../up",
        "/",
    ),
    *(
        "none",
        "null",
        "nan",
        "1e400",
        "inf",
        "os:nothing",
        "nas.run:main",
        "$x^2$",
        "$",
        "𝕏",
        "'",
        '"',
        "0x",
        "1_000",
        "5,000",
    ),
    *(
        "10 TB",
        "1 parsec",
        "loss",
        "total_ms",
        "loss@q90",
        "total_ms@q50",
        "depth",
        "paper",
        "fine",
        "n_heads",
        "divisors",
    ),
    *(
        "nsga2",
        "random",
        "exact",
        "lhs",
        "h200",
        "h200@fast",
        "int4",
        "device",
        "float",
        "a[0]",
        "\x00",
        "\ud800",
        "~",
        "[",
        "{",
    ),
]
NUMBERS = [0, 1, -1, 2, 7, 63, 64, 2**31, 2**63, 2**64, 10**30, 10**309, 0.5, 1e-300, 1e300, 1e308, -0.0]
SPECIAL = [
    float("nan"),
    float("inf"),
    float("-inf"),
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    {"a": {"b": [1]}},
    [1, "x"],
]
KEYS = [
    "float",
    "int",
    "str",
    "dict",
    "a[0]",
    "Calibration",
    "",
    "algo",
    "name",
    "depth",
    "\x1b",
    "x" * 900,
    "<<",
    "0",
    "²",
]
HOSTILE = [
    "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)),
    *("? [a, b]\n: 1\n", "? {a: 1}\n: 1\n", "a: &a [*a]\n", "[" * 4_000, "- " * 4_000, "{a: " * 2_000, "!!set {a}\n"),
    *(f"seed: {'9' * 309}\n", f"batch: {'9' * 5_000}\n", "evaluations: !!int x\n", "a: !!binary ===\n", "<<: {a: 1}\n"),
    *("budgets: !!python/object:os.system x\n", "--- a\n--- b\n", "\ufeffalgo: x\n", "a: b: c\n", "%YAML 9.9\n---\n"),
]
STUDY: dict[str, Any] = {
    "name": "tiny",
    "space": {
        "name": "tiny",
        "axes": AXES,
        "conditions": {"max_activation_rate": 0.5},
    },
    "law": {
        "name": "mine",
        "form": {"terms": {"a": {"scale": "k", "powers": {"depth": "-x"}}, "b": {"scale": "floor"}}},
        "coefficients": {"k": 3.0, "x": 0.5, "floor": 1.5},
        "fitted_on": {"depth": [2, 40]},
    },
    "device": {
        "name": "mine",
        "fp16": "10 TFLOP/s",
        "int8": "20 TOP/s",
        "bandwidth": "100 GB/s",
        "memory": "8 GB",
        "modes": {"low": {"bandwidth": "50 GB/s"}},
    },
    "objectives": ["loss", "total_ms"],
    "budgets": {"decode_ms": 200, "total_ms": "1 s"},
    "applications": {"mine": {"total_ms": 80}},
    "baselines": ["qwen2.5_0.5b", {"name": "own", "depth": 8, "width": 768, "n_kv_heads": 2, "expert_size": 1536}],
    "algo": "random",
    "params": {"batch": 4},
    "evaluations": 12,
    "seed": 3,
}
LAYERED: dict[str, Any] = {
    "name": "layered",
    "axes": {
        "depth": {"from": 4, "to": 16, "step": 4},
        "layers": ["full", {"period": [2, 4], "local": [128, 512], "kv_shared": [0, 2]}, {"period": 3, "conv": 3}, {"period": 4, "linear": "mamba2"}],
        "width": [512, 1024],
        "head_dim": [64, 128],
        "n_heads": [4, 8, 16],
        "n_experts": [1, 8],
        "expert_size": [512, 1024],
        "n_kv_heads": "divisors",
    },
    "conditions": {"min_full_layers": 1, "full_layer_every": 6, "min_window": 128},
}  # fmt: skip
FLAGS = {
    "--algo": ["random", "lhs", "sobol", "local_search", "nsga2", "exact"],
    "--evaluations": ["5", "12", "0", "-3", "1e3", "5,000"],
    "--deltas": ["deltas.yaml", "study.yaml", "none.yaml"],
    "--space": ["paper", "study.yaml", "tiny.yaml", "layered.yaml"],
    "--law": ["hw_codesign", "none.yaml"],
    "--objectives": ["loss", "loss,total_ms", "loss,loss", "memory_gb,decode_ms", ","],
    "--budget": ["decode_ms=20", "total_ms<=1 s", "memory_gb=none", "decode_ms=1e300", "x=1", "loss=-1", "total_ms<50"],
    "--device": ["h200", "jetson_agx_orin_64gb", "h200@30w", "none"],
    "--preset": ["paper", "device"],
    "--precision": ["fp16", "int8", "int4"],
    "--vocabulary": ["0", "1000", "-1"],
    "--batch": ["1", "8", "1000000", "0"],
    "--input-tokens": ["1", "128", "100000000"],
    "--output-tokens": ["1", "16", "100000000"],
    "--set": ["space.axes[0]=1", "float=1", "params.batch=2", "budgets={}", "space.axes.depth=[3]", "a..b=1", "="],
}
COMMANDS: dict[str, list[list[str]]] = {
    "run": [["--evaluations", "5", "--algo", "random", "--quiet", "--out", "out"], ["--resume", "run", "--quiet"]],
    "select": [
        ["run"],
        ["run", "--select", "knee"],
        ["run", "--sweep", "total_ms=10:90:20"],
        ["run", "--out", "x.csv"],
    ],
    "explain": [
        ["run", "--index", "3"],
        ["--model", "qwen2.5_0.5b"],
        ["run", "--select", "best", "--json"],
    ],
    "theory": [["--budget", "decode_ms=20"], ["--json", "--budget", "memory_gb=2"]],
    "export": [
        ["run", "--out", "exported"],
        ["candidates.csv", "--out", "exported"],
        ["candidates.jsonl", "--out", "e"],
    ],
    "calibrate": [["candidates.csv", "--device", "h200", "--out", "device.yaml"]],
    "fit": [["candidates.csv", "--bootstraps", "0", "--starts", "1", "--quiet"]],
    "compare": [
        [
            "--config",
            "study.yaml",
            "--algos",
            "random",
            "--seeds",
            "1",
            "--evaluations",
            "5",
            "--quiet",
            "--out",
            "compared",
        ]
    ],
    "devices": [
        ["--devices", "h200,l4", "--quiet", "--no-plots", "--out", "out"],
        ["--table", "candidates.csv", "--quiet", "--no-plots", "--out", "out"],
        ["--models-only", "--devices", "h200"],
    ],
    "report": [["run"], ["run", "--out", "x.html"]],
    "list": [["devices"], ["studies"], ["--schema", "study"], ["--schema", "nsga2"]],
    "init": [["new.yaml"]],
}
STUDIED = ("run", "explain", "theory", "export")


SPOILER = Spoiler(TEXTS, NUMBERS, SPECIAL, KEYS)
junk, spoilt = SPOILER.junk, SPOILER.spoilt


def study_text(rng: random.Random) -> str:
    """A study, mostly wrong."""
    content = spoilt(STUDY, rng, rng.choice([0, 1, 1, 2, 4]))
    if rng.random() < 0.1:
        return rng.choice(HOSTILE) + (yaml_source.dump(STUDY) if rng.random() < 0.5 else "")
    return yaml_text(content, rng)


def yaml_text(content: Any, rng: random.Random) -> str:
    """Content as YAML, garbled; as JSON, which YAML reads, where YAML cannot write it."""
    try:
        return garbled(yaml_source.dump(content), rng)
    except Exception:
        return json.dumps(content)


def candidates(rng: random.Random) -> str:
    """A table of architectures, losses and times, mostly wrong."""
    names = [
        "id",
        "depth",
        "width",
        "n_kv_heads",
        "expert_size",
        *rng.sample([*FILE_COLUMNS, "loss", "run", "total_ms"], 3),
    ]
    rows = [[str(i), "8", "768", "2", "1536", "3.2", "1", "40"] for i in range(rng.choice([0, 1, 5, 30]))]
    for _ in range(rng.choice([0, 1, 3])):
        if rows:
            rng.choice(rows)[rng.randrange(8)] = str(junk(rng))
    text = io.StringIO()
    csv.writer(text, lineterminator=rng.choice(["\n", "\r\n"])).writerows([names, *rows])
    return garbled(text.getvalue(), rng) if rng.random() < 0.8 else text.getvalue().replace("8,", '"8,', 1)


def lines_of_json(rng: random.Random) -> str:
    """The same as JSON lines."""
    row = {"id": "a", "depth": 8, "width": 768, "n_kv_heads": 2, "expert_size": 1536}
    return garbled(
        "\n".join(json.dumps(spoilt(row, rng, rng.choice([0, 1, 2]))) for _ in range(rng.choice([1, 4]))), rng
    )


def prepare(folder: Path, rng: random.Random) -> None:
    """Files that a command line may name."""
    for name, text in (
        ("study.yaml", study_text(rng)),
        ("tiny.yaml", yaml_text(spoilt(STUDY["space"], rng, 1), rng)),
        ("layered.yaml", yaml_text(spoilt(LAYERED, rng, rng.choice([0, 1])), rng)),
        ("deltas.yaml", garbled("source: ours\nconv: 0.03\nlocal: -0.01\n", rng)),
        ("candidates.csv", candidates(rng)),
        ("candidates.jsonl", lines_of_json(rng)),
    ):
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))


def line_of(rng: random.Random) -> list[str]:
    """A command and its arguments."""
    command = rng.choice([*COMMANDS, *("run", "run", "run", "run", "explain", "theory", "compare", "fit", "export")])
    words = list(rng.choice(COMMANDS[command]))
    if command in STUDIED:
        words += ["--config", "study.yaml"] if rng.random() < 0.7 and "--resume" not in words else []
        for flag in rng.sample(sorted(FLAGS), rng.choice([0, 0, 1, 2])):
            text = rng.choice(FLAGS[flag]) if rng.random() < 0.7 else str(rng.choice(TEXTS + NUMBERS))
            text = f"{rng.choice(KEYS)}={text}" if flag == "--set" and rng.random() < 0.5 else text
            words += [flag, text.replace("\x00", "").encode("utf-8", "replace").decode()]
    return [command, *words]


@contextmanager
def processor_limit(what: object) -> Iterator[None]:
    """End what takes more processor time than an answer may."""

    def late(*_: Any) -> None:
        raise AssertionError(f"more than {SECONDS} s of processor time: {what}")

    previous = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def seen_to_be_whole(folder: Path) -> None:
    """Nothing half-written is left, whatever was said."""
    for path in folder.rglob("*"):
        assert not path.name.endswith(".part"), path
        if path.name == "manifest.json":
            json.loads(path.read_text())


def attempted(number: int, inside: Callable[..., Any], finished: Path, folder: Path) -> int:
    """One generated command line in this process: its exit code."""
    rng = random.Random(number)
    folder.mkdir()
    shutil.copytree(finished, folder / "run")
    prepare(folder, rng)
    line = line_of(rng)
    with pytest.MonkeyPatch.context() as patched, processor_limit((number, line)):
        patched.chdir(folder)
        try:
            answer = inside(*line)
        except BaseException as error:
            raise AssertionError(f"case {number}: {line}") from error
    assert answer.code in (0, 1, 2, 3), (number, line, answer)
    assert answer.code == 0 or answer.err.strip(), (number, line)
    assert all(len(text) < 1_100 for text in answer.err.splitlines()), (number, line)
    assert "\x1b" not in answer.out + answer.err, (number, line)
    seen_to_be_whole(folder)
    shutil.rmtree(folder)
    return int(answer.code)


def blocks(count: int, ordinary: int) -> list[Any]:
    """Numbers of blocks; all but the first are `extended`."""
    return [pytest.param(i, marks=[pytest.mark.slow] if i < ordinary else [pytest.mark.extended]) for i in range(count)]


@pytest.mark.parametrize("block", blocks(20, 2))
def test_generated_command_lines_and_files_succeed_or_say_why(
    block: int, inside: Callable[..., Any], finished: Path, tmp_path: Path
) -> None:
    codes = [attempted(block * BLOCK + i, inside, finished, tmp_path / f"case{i}") for i in range(BLOCK)]
    assert {0, 2} <= set(codes)  # neither everything right nor everything wrong, or nothing would be tried


def limited() -> None:
    """No more processor time than an answer may take; the system ends what takes more."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


@pytest.mark.parametrize("block", blocks(15, 1))
def test_generated_command_lines_as_processes(block: int, commands: Any, finished: Path, tmp_path: Path) -> None:
    for number in range(5_000 + 4 * block, 5_004 + 4 * block):
        rng, folder = random.Random(number), tmp_path / f"case{number}"
        folder.mkdir()
        shutil.copytree(finished, folder / "run")
        prepare(folder, rng)
        line = line_of(rng)
        done = subprocess.run(
            commands.line(*line),
            cwd=folder,
            env=commands.environment(),
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=limited,
        )
        assert done.returncode in (0, 1, 2, 3), (number, line, done.stderr)
        assert "Traceback" not in done.stderr, (number, line, done.stderr)
        assert done.returncode == 0 or done.stderr.strip(), (number, line)
        seen_to_be_whole(folder)


def described_otherwise(folder: Path, rng: random.Random) -> None:
    """Change what a store says of itself, and its digest with it."""
    with closing(sqlite3.connect(folder / FILE)) as store:
        written = dict(store.execute("SELECT name, value FROM meta"))
        written.pop("digest")
        name = rng.choice([name for name in written if name != "layout"])
        content = {"": json.loads(written[name])}
        times = 1 if rng.random() < 0.7 else 3
        written[name] = json.dumps(spoilt(content, rng, times).get(""))
        store.execute("UPDATE meta SET value = ? WHERE name = ?", (written[name], name))
        store.execute("UPDATE meta SET value = ? WHERE name = 'digest'", (json.dumps(meta_digest(written)),))
        store.commit()


def rows_otherwise(folder: Path, rng: random.Random) -> None:
    """Change a cell of a table."""
    with closing(sqlite3.connect(folder / FILE)) as store:
        table = rng.choice(["evaluations", "batches"])
        names = [row[1] for row in store.execute(f"PRAGMA table_info({table})")]
        value = rng.choice([None, "x", -1, 2**62, 1.5, b"\xff", 10**15, ""])
        try:
            store.execute(f'UPDATE {table} SET "{rng.choice(names)}" = ? WHERE rowid = {rng.randrange(12)}', (value,))
        except (sqlite3.IntegrityError, OverflowError):
            return
        store.commit()


def digests_anew(folder: Path) -> None:
    """Give every batch the digest of what its rows say now, as whoever altered them would."""
    meta = read_meta(folder / FILE)
    store = RunStore(folder / FILE, tuple(meta["metrics"]), tuple(meta["resolved"]["objectives"]), ())
    store._verify = lambda *_: None  # type: ignore[method-assign]
    try:
        found = store.read().evaluations
    except PlasError:
        return
    with store.connection as connection:
        for start, rows in connection.execute("SELECT start, rows FROM batches").fetchall():
            new = (digest(found[slice(start, start + rows)]), start)
            connection.execute("UPDATE batches SET digest = ? WHERE start = ?", new)
    store.close()


OPENED = (
    ("select", "run"),
    ("explain", "run", "--index", 1),
    ("run", "--resume", "run", "--quiet"),
    ("export", "run", "--out", "e"),
)


@pytest.mark.parametrize("block", blocks(12, 1))
def test_a_store_that_says_something_else_is_read_or_refused(
    block: int, inside: Callable[..., Any], finished: Path, tmp_path: Path
) -> None:
    for number in range(9_000 + 40 * block, 9_040 + 40 * block):
        rng, folder = random.Random(number), tmp_path / f"case{number}"
        folder.mkdir()
        shutil.copytree(finished, folder / "run")
        if rng.random() < 0.5:
            described_otherwise(folder / "run", rng)
        else:
            rows_otherwise(folder / "run", rng)
            digests_anew(folder / "run")
        line = rng.choice(OPENED)
        with pytest.MonkeyPatch.context() as patched, processor_limit((number, line)):
            patched.chdir(folder)
            try:
                answer = inside(*line)
            except BaseException as error:
                raise AssertionError(f"case {number}: {line}") from error
        assert answer.code in (0, 1, 2, 3), (number, line, answer)
        assert answer.code == 0 or answer.err.strip(), (number, line)
        shutil.rmtree(folder)
