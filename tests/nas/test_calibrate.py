"""`calibrate` as a user runs it: a measured CSV becomes a device file that every command takes."""

import json
from pathlib import Path
from typing import Any

import pytest

HEADER = "device,engine,model,precision,batch,prompt_len,gen_len,metric,value,quality\n"
ROWS = "".join(
    f"board,engine A,{model},int4,1,2048,1,{metric},{value},A\n"
    for model, prefill, step in (("Qwen3-0.6B", 118.5, 6.15), ("Qwen3-1.7B", 308.3, 11.2), ("Qwen3-4B", 761.9, 19.7))
    for metric, value in (("prefill_ms", prefill), ("tpot_ms", step))
)
BOARD = "name: Board\nfp16: 42.5 TFLOP/s\nint8: 85 TOP/s\nbandwidth: 204.8 GB/s\nmemory: 64 GB\nmodes:\n  eco: {fp16: 20 TFLOP/s}\n"


@pytest.fixture
def folder(commands: Any) -> Path:
    """A folder with a board and its measurements."""
    commands.write("board.yaml", BOARD)
    commands.write("measured.csv", HEADER + ROWS + "board,engine A,Qwen3-4B,int4,1,2048,0,prefill_ms,9,C\n")
    found: Path = commands.folder
    return found


def test_profile_is_used(folder: Path, inside: Any) -> None:
    """The file written names the profile wherever the device is used, and errors are printed by phase."""
    answer = inside("calibrate", "measured.csv", "--device", "board.yaml", "--out", "mine.yaml")
    assert answer.code == 0, answer
    assert "engine A, int4, batch 1: 6 rows, 3 models" in answer.out
    assert "line 8: quality C is never calibrated on" in answer.out
    assert answer.out.count("held out") == 1
    used = inside(
        "explain", "--model", "qwen3_0.6b", "--device", "mine.yaml", "--precision", "int4", "--preset", "device"
    )
    assert "; efficiencies measured with engine A" in used.out


def test_json(folder: Path, inside: Any) -> None:
    """The report as JSON: profile, errors per phase and prediction."""
    report = json.loads(inside("calibrate", "measured.csv", "--device", "board.yaml", "--json").out)
    (group,) = report["groups"]
    assert group["errors"]["decode"]["held_out"]["rows"] == 3
    assert group["errors"]["prefill"]["held_out"]["median"] < 0.05 < group["errors"]["prefill"]["datasheet"]["median"]
    assert report["left_out"][0]["line"] == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere.csv", "--device", "board.yaml"), "nowhere.csv: expected a CSV file"),
        (("measured.csv", "--device", "raspberry_pi_5"), "expected measured rows of raspberry_pi_5, got none"),
        (("measured.csv", "--device", "board.yaml", "--out", "board.yaml"), "--out: expected a new file"),
        (("board.yaml", "--device", "board.yaml"), "expected measured rows"),
        (("huge.csv", "--device", "board.yaml"), "huge.csv: expected a CSV file"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], message: str, folder: Path, inside: Any) -> None:
    """What cannot be done is one line and exit code 2."""
    (folder / "huge.csv").write_text("metric,value\n" + "z" * 200_000)
    answer = inside("calibrate", *arguments)
    assert answer.code == 2
    assert message in answer.err
    assert "Traceback" not in answer.err


def test_power_mode(folder: Path, inside: Any) -> None:
    """Measurements of a power mode give a profile of that mode."""
    (folder / "eco.csv").write_text((HEADER + ROWS).replace("board,", "board.yaml@eco,"))
    answer = inside("calibrate", "eco.csv", "--device", "board.yaml@eco", "--out", "eco.yaml")
    assert answer.code == 0, answer
    assert "mode: eco" in (folder / "eco.yaml").read_text()
