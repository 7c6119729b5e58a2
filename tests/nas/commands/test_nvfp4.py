"""Precision `nvfp4` in a study: also where the device states no FP4 peak, and reproducible from what a run records."""

from typing import Any

import pytest

FLAGS = ("--precision", "nvfp4", "--preset", "device")


def test_without_an_fp4_peak(inside: Any) -> None:
    """Weights of 4 bits are priced as engines compute them there, at the FP16 peak, and the answer says so; of inputs in few bits nothing is."""
    answer = inside("explain", "--model", "qwen3_8b", *FLAGS, "--device", "h100_sxm")
    assert answer.code == 0, answer
    assert "nvfp4: device NVIDIA H100 SXM 80 GB states no FP4 peak; 4-bit weights are priced as widened" in " ".join(
        answer.out.split()
    )
    refused = inside("run", "--algo", "exact", "--precision", "nvfp4_down8", "--device", "raspberry_pi_5")
    assert refused.code == 2
    assert "precision: nvfp4_down8: expected a device with an fp4 peak, got" in refused.err
    assert "jetson_agx_thor" in refused.err


@pytest.mark.slow
def test_calibrated_and_repeatable(inside: Any, commands: Any) -> None:
    """Thor's own NVFP4 profile is used, and a run's recorded study, which embeds the peak, gives the same bytes."""
    flags = ("--algo", "random", "--evaluations", "40")
    first = inside("run", *flags, *FLAGS, "--device", "jetson_agx_thor", "--verbose", "--out", "first")
    assert "efficiencies measured with TensorRT-Edge-LLM 0.10.0" in first.out, first
    again = inside("run", "--config", "first/config.yaml", "--out", "again")
    assert again.code == 0, again
    tables = [(commands.folder / name / "evaluations.csv").read_bytes() for name in ("first", "again")]
    assert tables[0] == tables[1]
