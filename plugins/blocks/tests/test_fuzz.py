"""Generated libraries, folders and command lines: success or a clear error, never a traceback or a hang.

Every case follows from its number. One that fails is repeated with `-k` and that number's group.
"""

import csv
import io
import json
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from core_tests import loaded

from nas.files import yaml_source

SECONDS = 10  # of processor time that an answer may take
GROUP = 50
TEXTS = [
    *(
        "",
        " ",
        "=1+1",
        "-cmd|x",
        "\x1b[31mred\x1b[0m",
        "a\nb",
        "\u202eabc",
        "é" * 300,
        "a" * 5000,
        "../up",
        "/",
        "none",
    ),
    *("null", "nan", "1e400", "inf", "$", "𝕏", "'", '"', "0x", "1_000", "5,000", "10 TB", "loss", "score", "parent"),
    *("memory_mib", "a[0]", "\x00", "\ud800", "~", "[", "{"),
]
NUMBERS = [0, 1, -1, 2, 7, 63, 2**31, 2**63, 2**64, 10**30, 10**309, 0.5, 1e-300, 1e300, 1e308, -0.0]
SPECIAL = [float("nan"), float("inf"), float("-inf"), None, True, False, [], {}, [[]], [None], {"a": {"b": [1]}}, [1]]
KEYS = ["command", "metrics", "stats", "budgets", "picks", "is_teacher", "block_config", "x", "", "ü", "1"]
REPLACEMENTS: dict[str, Any] = {
    f"replacement_{i}": {
        "parent_layer_indices": [i // 2],
        "block_config": {"attention": {"no_op": i % 2 > 0}, "ffn": {"intermediate_size": 512 - 256 * (i % 2)}},
        "metrics": {"lm_loss": 2.0 + i % 2 / 8, "token_accuracy_top_1": 0.5},
        "stats": {"memory_mib": 40.5 - 20 * (i % 2), "runtime_ms": 1.0, "num_params": 10**6},
        "is_teacher": i % 2 == 0,
    }
    for i in range(6)
}
ANSWER: dict[str, Any] = {
    "command": "blocks",
    "library": "library.csv",
    "objectives": ["score", "memory_mib"],
    "budgets": [],
    "fixed": [],
    "max_kinds": "none",
    "picks": [],
}
FLAGS = {
    "--objective": ["score,memory_mib", "score", "memory_mib", "lm_loss,memory_mib,num_params", "x", "loss,loss"],
    "--budget": ["memory_mib=900", "memory_mib>=900", "score<=1", "memory_mib=1e300", "memory_mib=0", "x=1"],
    "--pick": ["memory_mib=900", "score=0.1", "memory_mib>=1", "x"],
    "--fix": ["0=parent", "0-2=b", "9=a", "2-0=a", "=", "0="],
    "--max-kinds": ["1", "2", "0", "100000"],
    "--score": ["score", "memory_mib", "x"],
    "--bigger-is-better": ["score", "memory_mib", "x"],
    "--rest": ["memory_mib=5", "memory_mib=-1", "memory_mib=nan", "x=1"],
}
COMMANDS: dict[str, list[list[str]]] = {
    "blocks": [
        ["library.csv", "--no-plots", "--quiet", "--out", "out"],
        ["replacements.json", "--objective", "lm_loss,memory_mib", "--no-plots", "--json", "--out", "out"],
        ["answer", "--no-plots", "--out", "out"],
        ["others.csv", "--no-plots", "--out", "out"],
    ],
    "select": [
        ["answer", "--select", "budget:memory_mib=900"],
        ["answer", "--sweep", "memory_mib=0:1000:100", "--out", "x.csv"],
    ],
    "explain": [["answer"], ["answer", "--index", "1", "--json"]],
    "report": [["answer"], ["answer", "--out", "x.html"]],
}


spoiling = loaded("nas/commands/spoiling.py")
SPOILER, garbled = spoiling.Spoiler(TEXTS, NUMBERS, SPECIAL, KEYS), spoiling.garbled
junk, spoilt = SPOILER.junk, SPOILER.spoilt


def table(rng: random.Random) -> str:
    """A library as a table, often wrong."""
    names = ["layer", "block", "parent", "score", "memory_mib"]
    rows = [[f"{i}", "ab"[j], f"{1 - j}", f"{j / 8}", f"{400 - 200 * j}"] for i in range(4) for j in range(2)]
    for _ in range(rng.choice([0, 0, 0, 1, 3])):
        rng.choice([names, *rows])[rng.randrange(5)] = str(junk(rng))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [names, *rows, *([["1-2", "c", "0", "0.5", "90"]] * rng.choice([0, 1, 2]))]
    )
    return garbled(text.getvalue(), rng) if rng.random() < 0.3 else text.getvalue()


def prepare(folder: Path, rng: random.Random) -> None:
    """Libraries, another table, and the folder of an answer."""
    (folder / "answer").mkdir(parents=True)
    others = "answer,layer,block\n" + "".join(f"x,{i},{rng.choice('aab')}\n" for i in range(4))
    for name, text in (
        ("library.csv", table(rng)),
        ("replacements.json", garbled(json.dumps(spoilt(REPLACEMENTS, rng, rng.choice([0, 0, 1, 3]))), rng)),
        ("others.csv", garbled(others, rng)),
        ("answer/library.csv", table(rng)),
        ("answer/config.yaml", garbled(yaml_source.dump(spoilt(ANSWER, rng, rng.choice([0, 0, 1]))), rng)),
    ):
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))


def line_of(rng: random.Random) -> list[str]:
    """A command and its arguments."""
    command = rng.choice([*COMMANDS, "blocks", "blocks", "blocks"])
    words = list(rng.choice(COMMANDS[command]))
    for flag in rng.sample(sorted(FLAGS), rng.choice([0, 0, 1, 2])) if command == "blocks" else ():
        text = rng.choice(FLAGS[flag]) if rng.random() < 0.7 else str(rng.choice(TEXTS + NUMBERS))
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


def attempted(number: int, inside: Callable[..., Any], folder: Path) -> int:
    """One generated command line in this process: its exit code."""
    rng = random.Random(number)
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
    for path in folder.rglob("*"):
        assert not path.name.endswith(".part"), path
        if path.name == "manifest.json":
            json.loads(path.read_text())
    shutil.rmtree(folder)
    return int(answer.code)


@pytest.mark.parametrize(
    "group", [pytest.param(i, marks=[pytest.mark.slow] if i < 1 else [pytest.mark.extended]) for i in range(8)]
)
def test_generated_command_lines_and_files_succeed_or_say_why(
    group: int, inside: Callable[..., Any], tmp_path: Path
) -> None:
    codes = [attempted(group * GROUP + i, inside, tmp_path / f"case{i}") for i in range(GROUP)]
    assert {0, 2} <= set(codes)  # neither everything right nor everything wrong, or nothing would be tried
