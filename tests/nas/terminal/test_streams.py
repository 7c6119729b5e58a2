"""Streams that cannot hold what is printed: another encoding, closed, full, a reader that leaves."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.terminal.streams import HANDLER
from plugins.board.tests.calibrate.test_calibrate import BOARD, HEADER, ROWS

COMMANDS = {
    "help": ["run", "--help"],
    "list": ["list", "forms"],
    "explain": ["explain", "--model", "qwen2.5_0.5b"],
    "theory": ["theory", "--budget", "decode_ms=50", "--budget", "memory_gb=4"],
    "select": ["select", "run"],
    "mistake": ["select", "run", "--select", "nothing"],
    "usage": ["select", "run", "--rows", "many"],
}
EXPECTED = {"mistake": 2, "usage": 2}
Shell = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def shell(commands: Any, copied: Path) -> Shell:
    """A command with redirections as a shell does them, beside a finished run."""

    def run(arguments: list[str], redirection: str = "", **environment: str) -> "subprocess.CompletedProcess[bytes]":
        if "/dev/full" in redirection and not Path("/dev/full").exists():
            pytest.skip("no /dev/full here")
        line = ["sh", "-c", f'exec "$@" {redirection}', "sh", *commands.line(*arguments)]
        env = {**commands.environment(), **environment}
        return subprocess.run(line, cwd=copied.parent, env=env, capture_output=True, timeout=300, check=False)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1"])
def test_every_answer_fits_every_encoding(name: str, encoding: str, shell: Shell) -> None:
    result = shell(COMMANDS[name], PYTHONIOENCODING=encoding)
    assert b"Traceback" not in result.stderr
    assert result.returncode == EXPECTED.get(name, 0), result.stderr
    said = (result.stderr if name in EXPECTED else result.stdout).decode(encoding)
    assert said.strip()
    assert "\\u" not in said


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">&- 2>&-", "<&-", "2>/dev/full"])
def test_a_closed_stream_changes_no_exit_code(name: str, redirection: str, shell: Shell) -> None:
    result = shell(COMMANDS[name], redirection)
    assert b"Traceback" not in result.stderr + result.stdout
    assert result.returncode == EXPECTED.get(name, 0)
    if ">&-" in redirection.split() and name not in EXPECTED:
        assert result.stdout == b""


@pytest.mark.parametrize(
    "name",
    [
        name if name == "list" else pytest.param(name, marks=pytest.mark.slow)
        for name in sorted(COMMANDS.keys() - EXPECTED)
    ],
)
def test_a_full_disk_behind_the_output_is_one_line_and_exit_1(name: str, shell: Shell) -> None:
    result = shell(COMMANDS[name], ">/dev/full")
    assert result.returncode == 1
    assert result.stderr.decode().splitlines() == [
        "standard output: expected a stream that takes the result, got No space left on device; "
        "free space, or send it elsewhere"
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "redirection",
    [
        ">/dev/full",
        ">&-",
        ">&- 2>&-",
        ">/dev/full 2>/dev/full",
    ],
)
def test_a_run_keeps_its_files_whatever_becomes_of_its_words(redirection: str, shell: Shell, copied: Path) -> None:
    result = shell(["run", "--config", "run", "--out", "again"], redirection)
    assert result.returncode == (1 if "full" in redirection else 0)
    assert b"Traceback" not in result.stderr
    if redirection == ">/dev/full":
        assert b"again: holds the whole answer" in result.stderr
    for name in ("evaluations.csv", "frontier.csv", "picks.csv"):
        assert (copied.parent / "again" / name).read_bytes() == (copied / name).read_bytes()
    assert json.loads((copied.parent / "again" / "manifest.json").read_text())["state"] == "finished"


@pytest.mark.slow
def test_words_keep_their_order_where_nothing_is_buffered(shell: Shell, copied: Path) -> None:
    (copied.parent / "board.yaml").write_text(BOARD)
    (copied.parent / "measured.csv").write_text(HEADER + ROWS)
    result = shell(["calibrate", "measured.csv", "--device", "board.yaml"], "2>&1", PYTHONUNBUFFERED="1")
    said = result.stdout.decode().splitlines()
    assert said[0].startswith("Board: 6 rows")
    assert said[-1].startswith("Written: board_calibrated.yaml")


@pytest.mark.parametrize("name", ["list", *(pytest.param(name, marks=pytest.mark.slow) for name in ("help", "select"))])
@pytest.mark.parametrize("buffered", ["", "1"], ids=["at the end", "at once"])
def test_a_reader_that_leaves_ends_a_command_quietly(name: str, buffered: str, commands: Any, copied: Path) -> None:
    environment = {**commands.environment(), "PYTHONUNBUFFERED": buffered}
    line = commands.line(*COMMANDS[name])
    with subprocess.Popen(line, cwd=copied.parent, env=environment, stdout=PIPE, stderr=PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 0)


@pytest.mark.slow
def test_json_loses_nothing_where_the_encoding_is_narrow(commands: Any, shell: Shell, copied: Path) -> None:
    device = 'name: "Gerät ≤ 8 µs"\nfp16: 10 TFLOP/s\nint8: 20 TOP/s\nbandwidth: 100 GB/s\nmemory: 8 GB\n'
    (copied.parent / "mine.yaml").write_text(device, encoding="utf-8")
    line = ["run", "--algo", "random", "--evaluations", "20", "--device", "mine.yaml", "--out", "other", "--json"]
    result = shell(line, PYTHONIOENCODING="ascii")
    assert result.returncode == 0, result.stderr
    stored = json.loads((copied.parent / "other" / "summary.json").read_text(encoding="utf-8"))
    assert {**stored, "run": "other"} == json.loads(result.stdout)


@given(st.text())
def test_any_text_has_a_plain_form(text: str) -> None:
    for encoding in ("ascii", "cp1252", "latin-1", "utf-8"):
        text.encode(encoding, errors=HANDLER)
    assert text.encode("utf-8", errors="replace").decode() == text.encode("utf-8", errors=HANDLER).decode()


def test_marks_of_a_plot_stay_apart_and_in_place() -> None:
    drawn = "·o◆◇▲△■□│┤└─"
    written = drawn.encode("ascii", errors=HANDLER).decode()
    assert len(written) == len(drawn)
    assert len(set(written[:8])) == 8
    assert "η ≤ 3 · 10⁶, ρ̄ − α…".encode("ascii", errors=HANDLER) == b"eta <= 3 . 106, rho - alpha..."
