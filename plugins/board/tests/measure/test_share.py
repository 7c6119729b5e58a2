"""`measure --share`: one file of device, engine and rows that names nobody, and that `calibrate` reads back to the same profile."""

import getpass
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plas_board.calibrating.shared import SharedMeasurements
from plas_board.measure.results import public_names, shared

BOARD = "name: B\nfp16: 1 TFLOP/s\nint8: 1 TOP/s\nbandwidth: 50 GB/s\nmemory: 8 GB\n"


@pytest.mark.slow
def test_a_shared_file_calibrates_to_the_same_profile(
    folder: Path, measured: Callable[..., Any], inside: Callable[..., Any]
) -> None:
    (folder / "broken").unlink()
    answer = measured("--share", "shared.json")
    assert answer.code == 0, answer
    assert "shared.json, to give to others: 4 rows of 2 models" in answer.out
    assert "not in it: no name of a host, user, candidate or folder, no path" in answer.out
    (folder / "board.yaml").write_text(BOARD)
    flags = ("--device", "board.yaml", "--contended", "median", "--json")
    found = [
        inside("calibrate", table, "doubtful=write", *flags, "--out", out)
        for table, out in (("record/measured.csv", "a.yaml"), ("shared.json", "b.yaml"))
    ]
    assert [each.code for each in found] == [0, 0], found
    own, theirs = ((folder / name).read_text() for name in ("a.yaml", "b.yaml"))
    renamed = {"measured.csv": "shared.json", "bad, good": "design-1, design-2"}
    for name, public in renamed.items():
        assert name in own
        own = own.replace(name, public)
    assert own == theirs
    device = answer.out.partition("in it: ")[2].partition(";")[0]
    assert json.loads(found[1].out)["told"][0].startswith(f"Shared measurements of {device}, 20")


def test_what_names_somebody_is_not_in_it(folder: Path, measured: Callable[..., Any]) -> None:
    """Failed rows, whose reasons hold paths, neither."""
    assert measured("--share", "shared.json").code == 0
    content = (folder / "shared.json").read_text()
    for word in (socket.gethostname(), str(folder), "good", "bad", "board", "record", "crashed"):
        assert word not in content, word
    assert f"/{getpass.getuser()}" not in content
    found = json.loads(content)
    assert set(found) == {"kind", "version", "tool", "month", "device", "rows"}
    assert {row["model"] for row in found["rows"]} == {"design-1"}
    assert set(found["device"]) <= {"processor", "cores", "system", "power_mode", "governor"}
    assert found["device"]["system"] == "Linux"
    SharedMeasurements.model_validate(found)


@pytest.mark.slow
def test_published_models_and_devices_of_the_catalogue_keep_their_names() -> None:
    assert public_names({"mine": {}, "Qwen3-0.6B": {}, "secret": {}}) == {
        "mine": "design-1", "Qwen3-0.6B": "Qwen3-0.6B", "secret": "design-2"
    }  # fmt: skip
    line = {
        "id": "x",
        "round": 1,
        "state": "ok",
        "reason": "",
        "machine": {"processor": "P", "system": "Linux-6.1-me@host"},
    }
    line["result"] = {"prefill_ms": [1.0], "decode_ms": [2.0], "engine": "e"}
    settings = {"backend": "torch", "precision": "fp32", "batch": 1, "input_tokens": 8, "output_tokens": 4}
    for name, key in (("rtx_4080", "rtx_4080"), ("RTX-4080", "rtx_4080"), ("anna's laptop", "")):
        found = shared({"x": {"depth": 2}}, [line], {**settings, "device": name})
        assert (found.device.id, found.device.system) == (key, "Linux")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--share", "shared.yaml"), "--share: expected a .json file in a folder that exists, got shared.yaml"),
        (("--share", "nowhere/shared.json"), "--share: expected a .json file in a folder that exists"),
        (("--share", "record.json"), "--share: expected a new file, got record.json which exists"),
    ],
)
def test_a_file_that_cannot_be_written_is_said_before_anything_is_measured(
    flags: tuple[str, ...], said: str, folder: Path, measured: Callable[..., Any]
) -> None:
    (folder / "record.json").touch()
    answer = measured(*flags)
    assert answer.code == 2
    assert said in answer.err
    assert not (folder / "asked").exists()


def test_a_flag_of_models_is_refused_beside_hardware(inside: Any) -> None:
    answer = inside("measure", "--hardware", "--rounds", "9", "--out", "machine.yaml")
    assert (answer.code, "--hardware: expected no --rounds with it" in answer.err) == (2, True)
    assert "--hardware: expected no --share with it" in inside("measure", "--hardware", "--share", "s.json").err
