"""Precision `nvfp4` in a study: only where the device states an FP4 peak, and reproducible from what a run records."""

from typing import Any

FLAGS = ("--precision", "nvfp4", "--preset", "device")


def test_without_an_fp4_peak(inside: Any) -> None:
    """A device that does not state the peak is a usage error that names those which do."""
    for device in ("jetson_agx_orin_64gb", "raspberry_pi_5"):
        answer = inside("run", "--algo", "exact", *FLAGS, "--device", device)
        assert answer.code == 2
        assert "precision: nvfp4: expected a device with an fp4 peak, got" in answer.err
        assert "jetson_agx_thor" in answer.err


def test_calibrated_and_repeatable(inside: Any, commands: Any) -> None:
    """Thor's own NVFP4 profile is used, and a run's recorded study, which embeds the peak, gives the same bytes."""
    flags = ("--algo", "random", "--evaluations", "40")
    first = inside("run", *flags, *FLAGS, "--device", "jetson_agx_thor", "--verbose", "--out", "first")
    assert "efficiencies measured with TensorRT-Edge-LLM 0.10.0" in first.out, first
    again = inside("run", "--config", "first/config.yaml", "--out", "again")
    assert again.code == 0, again
    tables = [(commands.folder / name / "evaluations.csv").read_bytes() for name in ("first", "again")]
    assert tables[0] == tables[1]
