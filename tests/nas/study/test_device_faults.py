"""What a device's file names is refused where no study could ask for it, and power modes are found as people write them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.files.yaml_source import dump
from nas.study.catalogue import load_device

Inside = Callable[..., Any]
BOARD: dict[str, Any] = {
    "name": "board",
    "fp16": "6 TFLOP/s",
    "int8": "12 TOP/s",
    "bandwidth": "51.2 GB/s",
    "memory": "8 GB",
    "modes": {"High-Perf": {"fp16": "7 TFLOP/s"}, "15W": {"bandwidth": "34 GB/s"}},
}
PROFILE = {"precision": "fp16", "compute_efficiency": 0.5, "bandwidth_efficiency": 0.5}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"profiles": [PROFILE | {"precision": "fp17"}]}, "profiles.0.precision: expected a weight format"),
        ({"profiles": [PROFILE | {"precision": "FP16"}]}, "got 'FP16'; did you mean fp16?"),
        ({"profiles": [PROFILE, PROFILE | {"format": "q4"}]}, "profiles.1.format: expected a weight format"),
        (
            {"profiles": [PROFILE | {"mode": "turbo"}]},
            "profiles.0.mode: expected a power mode of the file (high_perf, 15w), got 'turbo'; add it to modes",
        ),
        ({"energy": [{"base_power": "5 W", "mode": "turbo"}]}, "energy.0.mode: expected a power mode of the file"),
        ({"energy": [{"precisions": ["int4", "fp17"]}]}, "energy.0.precisions.1: expected a weight format"),
        ({"modes": {"15W": {}, "15w": {}}}, "modes: expected names that differ by more than case and hyphens, got 15W"),
    ],
)
def test_names_that_no_study_could_ask_for_are_refused_with_their_line(
    content: dict[str, Any], said: str, inside: Inside, tmp_path: Path
) -> None:
    (tmp_path / "board.yaml").write_text(dump(BOARD | content))
    told = inside("explain", "--model", "qwen2.5_0.5b", "--device", "board.yaml")
    assert told.code == 2
    assert told.err.startswith("board.yaml:")
    assert said in told.err


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["High-Perf", "high_perf", "15W", "15w"])
def test_a_power_mode_is_found_as_its_file_or_the_command_writes_it(mode: str, inside: Inside, tmp_path: Path) -> None:
    profiles = [PROFILE | {"mode": mode}]
    (tmp_path / "board.yaml").write_text(dump(BOARD | {"profiles": profiles}))
    found = load_device(f"board.yaml@{mode}")
    assert found.mode == mode.lower().replace("-", "_")
    assert [each.mode for each in found.profiles] == [found.mode]
    told = inside("explain", "--model", "qwen2.5_0.5b", "--preset", "device", "--device", f"board.yaml@{mode}")
    assert told.code == 0
    assert "efficiencies measured with an unnamed engine" in " ".join(told.out.split())
