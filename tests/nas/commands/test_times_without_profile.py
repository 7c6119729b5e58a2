"""Commands say how far off times are that no profile corrects, and what counts a format of llama.cpp."""

from typing import Any


def test_commands_say_it(inside: Any) -> None:
    """run, select, explain warn on the NPU; a precision of llama.cpp is refused with what counts it; list has the figures."""
    flags = ("--algo", "random", "--evaluations", "50", "--device", "rk3588_npu", "--precision", "int8")
    for answer in (
        inside("run", *flags, "--out", "run"),
        inside("select", "run"),
        inside("explain", "run", "--select", "knee"),
    ):
        assert "prefill took 4.6 times what is predicted" in answer.err + answer.out
    refused = inside("run", "--precision", "q4_k_m", "--out", "other")
    assert refused.code == 2
    assert "the nearest is int4, counted as q4_k_m with int4_group_size=24 and head_bytes=0.82" in refused.err
    assert "on an NPU 4.6" in inside("list", "devices").out
