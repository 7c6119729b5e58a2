"""What an engine holds: a fixed part and a factor on the model's memory, told from rows that state it, and used where that engine is."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from nas.study.catalogue import load_device
from objectives.counts import count
from objectives.device import Device
from objectives.dimensions import Dimensions
from objectives.loss_law.law import Law
from objectives.memory import resident_gb
from objectives.profile_choice import calibration_for
from objectives.transfers import Conditions
from plas_board.calibrating.group import calibrate, with_memory
from plas_board.calibrating.measurements import Measurement
from plas_board.calibrating.terms import scenario_of
from plas_board.measure.results import measured_rows, shared
from plugins.board.tests.calibrating.conftest import MODELS, shown


def of_model(m: Measurement, board: Device, law: Law) -> float:
    """GB of a row's model, all that is resident of it."""
    return float(resident_gb(Dimensions(m.architecture), count(m.architecture), scenario_of(m, board, law))[0])


def fitted(rows: list[Measurement], board: Device, law: Law) -> tuple[float | None, float | None]:
    """The fixed part and the factor of the rows' profile."""
    profile = with_memory(calibrate(rows, board, law, "a test"), board, law).profile
    return profile.engine_gb, profile.memory_factor


@pytest.fixture
def held(board: Device, law: Law) -> Callable[..., list[Measurement]]:
    """Rows of models whose decoding states what an engine held that takes so much for itself, and so many copies."""

    def of(own: float, factor: float, models: tuple[str, ...] = MODELS) -> list[Measurement]:
        rows = [replace(m, engine="an engine") for m in shown(board, law, models)]
        return [replace(m, memory=own + factor * of_model(m, board, law)) if m.phase == "decode" else m for m in rows]

    return of


@pytest.mark.parametrize(("own", "factor"), [(0.25, 2.1), (0.0, 1.0), (0.05, 6.0)])
def test_what_made_the_rows_is_told(held: Any, board: Device, law: Law, own: float, factor: float) -> None:
    assert fitted(held(own, factor), board, law) == pytest.approx((own, factor), rel=1e-3, abs=1e-6)


def test_models_of_one_size_tell_the_fixed_part_alone(held: Any, board: Device, law: Law) -> None:
    (prefill, step) = held(0.25, 2.0, MODELS[:1])
    own, factor = fitted([prefill, step], board, law)
    assert factor == 1.0
    assert own == pytest.approx(step.memory - of_model(step, board, law), rel=1e-3)


def test_less_than_the_model_has_is_no_calibration_below_it(held: Any, board: Device, law: Law) -> None:
    assert fitted(held(0.0, 0.6), board, law) == (0.0, 1.0)


def test_rows_without_memory_say_nothing_of_it(held: Any, board: Device, law: Law) -> None:
    rows = [replace(m, memory=None) for m in held(0.25, 2.0)]
    group = calibrate(rows, board, law, "a test")
    assert with_memory(group, board, law) is group
    assert group.profile.engine_gb is group.profile.memory_factor is None
    assert not {"engine_gb", "memory_factor"} & set(group.profile.model_dump(exclude_none=True))


@pytest.mark.parametrize(
    ("asked", "used"),
    [
        (Conditions("int4"), True),
        (Conditions("int4", engine="an engine"), True),
        (Conditions("int4", engine="another"), False),
        (Conditions("int8"), False),
    ],
)
def test_memory_of_one_engine_and_format_says_nothing_of_others(
    held: Any, board: Device, law: Law, asked: Conditions, used: bool
) -> None:
    profile = with_memory(calibrate(held(0.25, 2.0), board, law, "a test"), board, law).profile
    chosen, _ = calibration_for(board.model_copy(update={"profiles": [profile]}), asked)
    assert chosen is not None
    assert (chosen.memory_factor is not None) == used


def test_measured_memory_is_a_column_of_the_request_and_is_shared() -> None:
    """What loading added at most, of all rounds; none where nobody looked."""
    result = {"prefill_ms": [1.0], "decode_ms": [2.0], "engine": "e", "base_bytes": 2e8, "peak_bytes": 5e8}
    line = {"id": "x", "state": "ok", "machine": {}, "result": result}
    more = {**line, "result": {**result, "peak_bytes": 6e8}}
    settings = {
        "backend": "b", "device": "d", "precision": "int8", "batch": 1, "input_tokens": 8, "output_tokens": 4
    }  # fmt: skip
    rows = measured_rows({"x": {"depth": 2}}, [line, more], settings)
    assert [row.get("memory_gb") for row in rows] == [None, pytest.approx(0.4)]
    assert [row.memory_gb for row in shared({"x": {"depth": 2}}, [line, more], settings).rows] == [None, 0.4]
    silent = {**line, "result": {**result, "base_bytes": 0, "peak_bytes": 0}}
    assert all("memory_gb" not in row for row in measured_rows({"x": {"depth": 2}}, [silent], settings))


def test_a_study_on_the_device_holds_and_limits_what_the_engine_holds(inside: Any, commands: Any) -> None:
    """From the measured CSV: the report, the file and back, what a design takes there, and the limit on it."""
    names = ("Qwen3-0.6B", "Qwen3-1.7B", "Qwen3-4B")
    lines = ["device,engine,model,precision,prompt_len,gen_len,metric,value,memory_gb"]
    for name, prefill, step, memory in zip(
        names, (118.5, 308.3, 761.9), (6.15, 11.2, 19.7), (1.3, 3.0, 6.4), strict=True
    ):
        lines += [
            f"b,engine A,{name},int4,1024,0,prefill_ms,{prefill},",
            f"b,engine A,{name},int4,1024,16,tpot_ms,{step},{memory}",
        ]
    for name, table in (("with", lines), ("without", [line.rpartition(",")[0] for line in lines])):
        commands.write(f"{name}.csv", "\n".join(table) + "\n")
        commands.write("b.yaml", "name: B\nfp16: 42.5 TFLOP/s\nint8: 85 TOP/s\nbandwidth: 204.8 GB/s\nmemory: 64 GB\n")
        answer = inside("calibrate", f"{name}.csv", "--device", "b.yaml", "--out", f"{name}.yaml")
        assert answer.code == 0, answer
        assert ("times the model's + " in answer.out) == (name == "with")
    device = load_device(str(commands.folder / "with.yaml"))
    (profile,) = device.profiles
    assert Device.model_validate(device.mapping()) == device
    assert profile.memory_factor is not None
    shape = ("--preset", "device", "--precision", "int4", "--input-tokens", "1024", "--output-tokens", "16", "--json")
    gb, plain = (
        inside("explain", "--model", "qwen3_1.7b", "--device", f"{name}.yaml", *shape) for name in ("with", "without")
    )
    assert gb.code == plain.code == 0, gb
    more, less = (json.loads(each.out) for each in (gb, plain))
    assert more["metrics"]["resident_gb"] == pytest.approx(
        profile.engine_gb + profile.memory_factor * less["metrics"]["resident_gb"], rel=1e-12
    )
    assert more["metrics"]["resident_gb"] == pytest.approx(3.0, rel=0.1)
    assert sum(more["resident_gb"].values()) == pytest.approx(more["metrics"]["resident_gb"], rel=1e-12)
    assert (
        "efficiencies and memory measured with engine A"
        in inside("explain", "--model", "qwen3_1.7b", "--device", "with.yaml", *shape[:-1]).out
    )
