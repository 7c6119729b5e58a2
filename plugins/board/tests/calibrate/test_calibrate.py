"""`calibrate` as a user runs it: a measured CSV becomes a device file that every command takes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.study.catalogue import load_device
from objectives.transfers import Conditions
from objectives.typical.efficiencies import typical_profile

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
    assert group["errors"]["prefill"]["held_out"]["median"] < 0.06 < group["errors"]["prefill"]["datasheet"]["median"]
    assert report["left_out"][0]["line"] == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere.csv", "--device", "board.yaml"), "nowhere.csv: expected a CSV file"),
        (("measured.csv", "--device", "raspberry_pi_5"), "expected measured rows of raspberry_pi_5, got none"),
        (("measured.csv", "--device", "board.yaml", "--out", "board.yaml"), "--out: expected a new file"),
        (("board.yaml", "--device", "board.yaml"), "board.yaml: expected columns metric, value, prompt_len"),
        (("huge.csv", "--device", "board.yaml"), "huge.csv:2: expected CSV, got a cell of more than"),
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


def test_everything_of_the_device_stays(folder: Path, inside: Any) -> None:
    """Power modes, other peaks and profiles of other keys are in the file that is written; two modes end up in one."""
    (folder / "board.yaml").write_text(
        BOARD
        + "  night: {fp16: 9 TFLOP/s, bandwidth: 99 GB/s, other_peaks: {fp4: 30 TFLOP/s}}\n"
        + "other_peaks: {fp4: 300 TFLOP/s, fp32: 5 TFLOP/s}\nmode_source: datasheet\n"
        + "profiles:\n  - {engine: B, precision: fp16, mode: eco, compute_efficiency: 0.3}\n"
        + "  - {engine: engine A, precision: int4, compute_efficiency: 0.1, overhead: 3 us}\n"
    )
    (folder / "both.csv").write_text((HEADER + ROWS) + ROWS.replace("board,", "board@eco,").replace(",A\n", ",B\n"))
    answer = inside("calibrate", "both.csv", "--device", "board.yaml@eco", "--out", "mine.yaml")
    assert answer.code == 0, answer
    assert "Use it: --device mine.yaml@eco --preset device" in answer.err
    second = inside("calibrate", "both.csv", "--device", "board.yaml", "--out", "mine.yaml")
    assert second.code == 0, second
    found = load_device(str(folder / "mine.yaml"))
    before = load_device(str(folder / "board.yaml"))
    assert found.model_copy(update={"profiles": []}) == before.model_copy(update={"profiles": []})
    kept = {(p.mode, p.engine, p.precision): p.compute_efficiency for p in found.profiles}
    assert kept.keys() == {("eco", "B", "fp16"), ("", "engine A", "int4"), ("eco", "engine A", "int4")}
    assert kept["eco", "B", "fp16"] == 0.3
    assert kept["", "engine A", "int4"] != 0.1
    night = load_device(f"{folder / 'mine.yaml'}@night")
    assert (night.fp16, night.other_peaks) == (9e12, {"fp4": 30e12})


def test_another_power_modes_rows_are_not_used(folder: Path, inside: Any) -> None:
    """Rows of the default mode are not those of a mode."""
    answer = inside("calibrate", "measured.csv", "--device", "board.yaml@eco", "--out", "mine.yaml")
    assert answer.code == 2
    assert "expected measured rows of board.yaml@eco, got none (7 of other devices" in answer.err


def test_an_edited_file_is_not_rewritten(folder: Path, inside: Any) -> None:
    """What someone wrote into the file, or another device, is not lost."""
    run = ("calibrate", "measured.csv", "--device", "board.yaml", "--out", "mine.yaml")
    assert inside(*run).code == 0
    text = (folder / "mine.yaml").read_text()
    for other in ("# mine\n" + text, text.replace("64000000000.0 B", "32000000000.0 B")):
        (folder / "mine.yaml").write_text(other)
        answer = inside(*run)
        assert answer.code == 2
        assert "--out: expected a new file, or one that calibrate wrote of Board" in answer.err
        assert (folder / "mine.yaml").read_text() == other


def test_contended_rows(folder: Path, inside: Any) -> None:
    """Rows measured beside other work are counted and left out, unless they are asked for."""
    busy = (HEADER + ROWS).splitlines()
    lines = [busy[0] + ",contended", *(line + (",yes" if "4B" in line else ",no") for line in busy[1:])]
    (folder / "busy.csv").write_text("\n".join(lines))
    run = ("calibrate", "busy.csv", "--device", "board.yaml", "--json")
    assert "2 rows, line 6, 7: others had the processor" in inside(*run[:-1], "--out", "a.yaml").out
    assert json.loads(inside(*run, "--out", "b.yaml").out)["groups"][0]["models"] == 2
    (group,) = json.loads(inside(*run, "--contended", "median", "--out", "c.yaml").out)["groups"]
    assert (group["models"], group["remarks"][0]) == (3, "2 of 6 rows were measured while others had the processor")
    (folder / "busy.csv").write_text("\n".join(line.replace(",no", ",yes") for line in lines))
    answer = inside(*run, "--out", "d.yaml")
    assert answer.code == 2
    assert "6 left out; 6 rows: others had the processor while it was measured" in answer.err
    assert "use the fastest of its repetitions with --contended minimum" in answer.err
    answer = inside(*run, "--contended", "minimum", "--out", "d.yaml")
    assert "min: expected a positive number" in answer.err
    least = [line + ("," + (f"{0.9 * float(line.split(',')[8]):g}" if i else "min")) for i, line in enumerate(lines)]
    (folder / "busy.csv").write_text("\n".join(line.replace(",no,", ",yes,") for line in least))
    (group,) = json.loads(inside(*run, "--contended", "minimum", "--out", "e.yaml").out)["groups"]
    assert group["remarks"][0].endswith("while others had the processor: the fastest of their repetitions counts")
    assert group["measurements"]["measured_ms"][0] == pytest.approx(0.9 * 118.5)


@pytest.mark.parametrize(
    ("change", "doubt"),
    [
        (("0.6B,int4,1,2048,1,tpot_ms,6.15", "0.6B,int4,1,2048,1,tpot_ms,40"), "decode: "),
        (("prefill_ms,118.5", "prefill_ms,1185"), "prefill: "),
    ],
)
def test_a_doubtful_profile_is_not_written_unless_asked_for(
    change: tuple[str, str], doubt: str, folder: Path, inside: Any
) -> None:
    """A profile that misses unseen models by far is written only with the key that the message names, and never recommended."""
    (folder / "odd.csv").write_text((HEADER + ROWS).replace(*change))
    answer = inside("calibrate", "odd.csv", "--device", "board.yaml", "--out", "odd.yaml")
    assert f"Not recommended, engine A, int4, batch 1: {doubt}" in answer.err, answer
    assert "not written, doubtful=write among the files writes it" in answer.err
    assert "Use it" not in answer.err
    assert not (folder / "odd.yaml").exists()
    answer = inside("calibrate", "odd.csv", "doubtful=write", "--device", "board.yaml", "--out", "odd.yaml")
    assert f"Not recommended, engine A, int4, batch 1: {doubt}" in answer.err, answer
    assert "not written" not in answer.err
    assert (folder / "odd.yaml").exists()
    plain = inside("calibrate", "measured.csv", "--device", "board.yaml", "--out", "mine.yaml")
    assert "Use it: --device mine.yaml --preset device" in plain.err
    assert "Not recommended" not in plain.err


def test_only_sound_profiles_are_written_and_recommended(folder: Path, inside: Any) -> None:
    """Beside a doubtful profile the other one is recommended by name, and alone in the file."""
    doubtful = ROWS.replace("engine A", "engine B").replace("prefill_ms,118.5", "prefill_ms,1185")
    (folder / "two.csv").write_text(HEADER + ROWS + doubtful)
    answer = inside("calibrate", "two.csv", "--device", "board.yaml", "--out", "two.yaml")
    assert "Not recommended, engine B, int4, batch 1: prefill: " in answer.err
    assert "Use it for engine A, int4, batch 1: --device two.yaml --preset device" in answer.err
    head, one, other = (line.split() for line in answer.out.splitlines()[1:4])
    assert (head[-1], one[-1], other[-1]) == ("use", "yes", "no")
    assert [profile.engine for profile in load_device("two.yaml").profiles] == ["engine A"]


def test_few_models_keep_the_curve_and_the_range_of_their_class(folder: Path, inside: Any) -> None:
    """Of fewer than four models each phase has one scale, whatever its lengths; its errors reach no farther than the class's."""
    (folder / "one.csv").write_text(HEADER + "".join(ROWS.splitlines(keepends=True)[:2]))
    answer = inside("calibrate", "one.csv", "--device", "board.yaml", "--out", "one.yaml")
    assert "Use it: --device one.yaml --preset device" in answer.err
    board = load_device("one.yaml")
    (own,), usual = board.profiles, typical_profile(board, Conditions("int4"))
    assert own.overhead * own.bandwidth_efficiency == pytest.approx(
        usual.overhead * usual.bandwidth_efficiency, rel=1e-3
    )
    for phase in ("prefill", "decode"):
        ours, theirs = np.log(own.held_out[phase]), np.log(usual.held_out[phase])
        assert ours.max() - ours.min() <= theirs.max() - theirs.min()


def test_every_reason_is_named(folder: Path, inside: Any) -> None:
    """Rows of which none can be used are counted by reason."""
    rows = ["board,e,Qwen3-4B,int4,1,2048,0,prefill_ms,9,C"] * 3
    rows += ["board,e,Qwen3-4B,int4,1,2048,0,speed,9,A"] * 2 + ["board,e,Qwen3-4B,int4,1,2048,0,prefill_ms,x,A"]
    (folder / "bad.csv").write_text(HEADER + "\n".join(rows))
    answer = inside("calibrate", "bad.csv", "--device", "board.yaml")
    assert answer.code == 2
    for reason in (
        "3 rows: quality C",
        "2 rows: metric: expected",
        "1 row: value: expected a positive number, got 'x'",
    ):
        assert reason in answer.err
