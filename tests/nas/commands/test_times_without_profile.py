"""Commands say how far off times are that no profile corrects, and what a format is called here."""

from typing import Any


def test_commands_say_it(inside: Any) -> None:
    """run, select, explain warn on the NPU; list has the figures."""
    flags = (
        "--algo",
        "random",
        "--evaluations",
        "50",
        "--device",
        "rk3588_npu",
        "--preset",
        "paper",
        "--precision",
        "int8",
    )
    for answer in (
        inside("run", *flags, "--out", "run"),
        inside("select", "run"),
        inside("explain", "run", "--select", "knee"),
    ):
        assert "prefill took 4.6 times what is predicted" in answer.err + answer.out
    assert "on an NPU 4.6" in inside("list", "devices").out
