"""Which cases flags, files and tables ask for, and what is said of those that cannot be."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.errors import UsageError
from nas.files.yaml_source import dump
from objectives.plugins import documents
from plas_range.case_list import case_list
from plas_range.cases import priced_cases
from plas_range.request import DevicesRequest

Ask = Callable[..., DevicesRequest]
BOARD = {"name": "Board", "fp16": "6 TFLOP/s", "int8": "12 TOP/s", "bandwidth": "51.2 GB/s", "memory": "8 GB"}


def labels(request: DevicesRequest) -> list[str]:
    """Labels of the cases."""
    return [case.label for case in priced_cases(case_list(request)).cases]


def fault(request: DevicesRequest) -> str:
    """What is said of a request that cannot be."""
    with pytest.raises(UsageError) as caught:
        priced_cases(case_list(request))
    return str(caught.value)


def table(folder: Path, *lines: str) -> Path:
    """A table of cases."""
    path = folder / "cases.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_flags_are_crossed_and_labels_name_what_differs(request_for: Ask) -> None:
    assert labels(request_for(devices="rtx-4090,l4")) == ["rtx_4090", "l4"]
    found = labels(request_for(devices="l4", precisions="fp16,int8", workloads="1024/16,8/256/32"))
    assert found == ["l4 fp16 1024/16", "l4 fp16 8/256/32", "l4 int8 1024/16", "l4 int8 8/256/32"]
    found = labels(request_for(devices="l4", applications="all"))
    assert found == ["l4 embodied AI", "l4 smart home", "l4 autonomous driving", "l4 private serving"]


def test_all_devices_and_all_modes_of_one(request_for: Ask) -> None:
    assert labels(request_for(devices="all")) == list(documents("objectives.devices"))
    modes = ["jetson_agx_orin_64gb", *(f"jetson_agx_orin_64gb@{mode}" for mode in ("50w", "30w", "15w"))]
    assert labels(request_for(devices="jetson_agx_orin_64gb@all")) == modes
    assert labels(request_for(devices="l4,l4@all,L4")) == ["l4"]


def test_without_a_device_the_shipped_study_asks_for_twelve(request_for: Ask) -> None:
    found = priced_cases(case_list(request_for())).cases
    assert len({case.device.name for case in found}) == 12
    assert {case.question.baseline for case in found} == {"Qwen2.5-0.5B"}


def test_a_workload_is_what_its_flags_would_be(request_for: Ask) -> None:
    (case,) = priced_cases(case_list(request_for(devices="l4", workloads="8/4096/256"))).cases
    scenario = case.problem.scenario
    assert (scenario.batch, scenario.input_tokens, scenario.output_tokens) == (8, 4096, 256)


def test_the_reference_model_limits_cases_without_a_limit_of_their_own(request_for: Ask, tmp_path: Path) -> None:
    path = table(tmp_path, "case,device,budget", "a,l4,", "b,l4,total_ms=9", "c,l4,memory_gb=none")
    asked_for = {case.label: case.question.budget for case in priced_cases(case_list(request_for(table=path))).cases}
    assert [budget is None for budget in asked_for.values()] == [False, True, False]
    explicit = priced_cases(case_list(request_for(table=path, as_fast_as="smollm2_360m"))).cases
    assert [case.question.baseline for case in explicit] == ["SmolLM2-360M"] * 3
    assert [c.question.budget for c in priced_cases(case_list(request_for(table=path, as_fast_as="none"))).cases] == [
        None
    ] * 3


def test_a_tables_columns_are_named_as_study_keys(request_for: Ask, tmp_path: Path) -> None:
    path = table(
        tmp_path,
        "case,device,precision,input_tokens,output_tokens,budget",
        "robot,jetson_orin_nano_super_8gb,int8,512,8,decode_ms<=100 ms resident_gb=4 GB",
        "car,jetson_agx_orin_64gb@30w,,,,total_ms=100 memory_gb=16",
    )
    robot, car = priced_cases(case_list(request_for(table=path, flags={"attention": "fused", "preset": "paper"}))).cases
    assert {b.metric: b.limit for b in robot.budgets} == {"memory_gb": 8.0, "decode_ms": 100.0, "resident_gb": 4.0}
    assert {b.metric: b.limit for b in car.budgets} == {"total_ms": 100.0, "memory_gb": 16.0}
    assert (robot.config.precision, robot.config.input_tokens, robot.config.attention) == ("int8", 512, "fused")
    assert (car.config.precision, car.config.input_tokens, car.device.mode) == ("fp16", 1024, "30w")


def test_every_fault_of_a_table_is_said_with_line_and_column(request_for: Ask, tmp_path: Path) -> None:
    path = table(
        tmp_path,
        "case,device,precision,batch,budget",
        "a,rtx_4080x,int3,1,",
        "b,rtx_4090,fp16,x,decod_ms=3",
        "a,l4,fp16,0,decode_ms>3",
    )
    said = fault(request_for(table=path)).splitlines()
    assert [line.removeprefix(f"{path}:").partition(": ")[0] for line in said] == [
        "2:2",
        "2:3",
        "3:4",
        "3:5",
        "4:1",
        "4:4",
        "4:5",
    ]
    assert "did you mean rtx_4080?" in said[0]
    assert "(the 61 names of 'plas list formats'), got 'int3'" in said[1]
    assert "decode_ms" in said[3]
    assert "got 'a' as in line 2" in said[4]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("case,device,precison", "a,l4,fp16"), ":1:3: expected a column"),
        (("case,device,device", "a,l4,l4"), ":1: expected each column once, got device twice"),
        (("case,device", "a,l4,fp16"), ":2: expected 2 cells, got 3"),
        (("case,device",), "expected a header and a row per case"),
        (("case,device,batch", "a,l4,~"), ":2:3: batch: expected an integer, got '~'"),
        (("case,device,batch", "a,l4,0x10"), ":2:3: batch: expected an integer, got '0x10'"),
        (("case,device,batch", "a,l4,4k"), ":2:3: batch: expected an integer, got '4k'"),
        (("case,device,weight", "a,l4,1k"), ":2:3: weight: expected a positive number, got '1k'"),
        (("case,device,application", "a,l4,smart hom"), ":2:3: application: expected an application"),
        (
            ("case,device,precision", "a,l4,nvfp4_down8"),
            ":2:3: precision: nvfp4_down8: expected a device with an fp4 peak",
        ),
    ],
)
def test_other_faults_of_tables(lines: tuple[str, ...], expected: str, request_for: Ask, tmp_path: Path) -> None:
    assert expected in fault(request_for(table=table(tmp_path, *lines)))


def test_flags_that_cannot_be(request_for: Ask, tmp_path: Path) -> None:
    assert "--devices: expected a device" in (said := fault(request_for(devices="orin,l5")))
    assert "jetson_agx_orin_64gb" in said
    assert len(said.splitlines()) == 2
    assert "nvfp4_down8 (no fp4 peak is stated for l4, rtx_3090)" in fault(
        request_for(devices="l4,rtx_3090", precisions="nvfp4_down8")
    )
    assert "--workloads: expected INPUT/OUTPUT" in fault(request_for(devices="l4", workloads="1024"))
    assert "--table: expected the cases in" in fault(request_for(devices="l4", table=table(tmp_path, "device", "l4")))
    assert "--as-fast-as: expected a published model" in fault(request_for(devices="l4", as_fast_as="qwen9"))
    assert "--applications: expected an application" in fault(request_for(devices="l4", applications="car"))
    assert "at least 1" in fault(request_for(devices="l4", workloads="0/16"))


def test_a_precision_that_some_devices_lack_is_left_out_there_and_said(request_for: Ask) -> None:
    found = case_list(request_for(devices="l4,rtx_5090", precisions="fp16,nvfp4,nvfp4_down8"))
    assert [row.label for row in found.rows] == [
        "l4 fp16",
        "l4 nvfp4",
        "rtx_5090 fp16",
        "rtx_5090 nvfp4",
        "rtx_5090 nvfp4_down8",
    ]
    assert found.notices == ("nvfp4_down8 is left out where the device has none: no fp4 peak is stated for l4",)


@pytest.mark.parametrize("metric", ["energy_j", "energy_per_kilobyte"])
def test_a_device_without_energy_is_left_out_of_a_study_of_it(metric: str, request_for: Ask, tmp_path: Path) -> None:
    study = {"objectives": ["loss", metric], "vocabulary": 32_000, "calibration": "shipped"}
    (tmp_path / "study.yaml").write_text(dump(study), encoding="utf-8")
    found = case_list(request_for(config=str(tmp_path / "study.yaml"), devices="l4,jetson_orin_nano_super_8gb"))
    assert [row.label for row in found.rows] == ["jetson_orin_nano_super_8gb"]
    assert found.notices == ("energy is left out where the device has none: no coefficients are known for l4",)


def test_a_board_of_ones_own_by_file_and_in_a_study(request_for: Ask, tmp_path: Path) -> None:
    (tmp_path / "board.yaml").write_text(dump({**BOARD, "modes": {"eco": {"fp16": "3 TFLOP/s"}}}))
    assert labels(request_for(devices=f"{tmp_path / 'board.yaml'}@eco,l4")) == ["board@eco", "l4"]
    (tmp_path / "study.yaml").write_text(dump({"preset": "paper", "device": BOARD, "precision": "int8"}))
    (case,) = priced_cases(case_list(request_for(config=str(tmp_path / "study.yaml")))).cases
    assert (case.label, case.device.memory_gb, case.config.precision) == ("Board", 8.0, "int8")
    (tmp_path / "several.yaml").write_text(dump({"devices": {"mine": {**BOARD, "fp16": "6 TB/s"}}}))
    assert "several.yaml:4: device.fp16: expected a quantity" in fault(
        request_for(config=str(tmp_path / "several.yaml"))
    )


def test_a_board_of_ones_own_is_priced_as_it_is(request_for: Ask, tmp_path: Path) -> None:
    board, study = str(tmp_path / "board.yaml"), tmp_path / "several.yaml"
    Path(board).write_text(dump({**BOARD, "modes": {"eco": {"fp16": "3 TFLOP/s"}}}))
    study.write_text(dump({"devices": {"mine": BOARD}}))
    for one in (board, f"l4,{board}@eco"):
        assert case_list(request_for(devices=one)).shared.config.preset == "device"
    assert case_list(request_for(config=str(study))).shared.config.preset == "device"
    assert case_list(request_for(table=table(tmp_path, "device", board))).shared.config.preset == "device"
    assert case_list(request_for(devices=board, flags={"preset": "paper"})).shared.config.preset == "paper"
    assert case_list(request_for(devices="l4")).shared.config.preset == "device"
    assert case_list(request_for()).shared.config.preset == "paper"


def test_keys_of_a_file_that_are_none(request_for: Ask, tmp_path: Path) -> None:
    path: Any = tmp_path / "several.yaml"
    path.write_text(dump({"preset": "paper", "devices": ["l4"], "workload": ["1/2"], "precision": "fp12"}))
    said = fault(request_for(config=str(path)))
    assert "unknown key" in said
    assert "fp12" in said


def test_two_boards_of_one_file_name_keep_labels_apart(request_for: Ask, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "board.yaml").write_text(dump({**BOARD, "name": folder}))
    both = ",".join(str(tmp_path / folder / "board.yaml") for folder in ("a", "b"))
    assert labels(request_for(devices=both)) == ["1: board", "2: board"]


def test_conventions_that_do_not_exist_are_said(request_for: Ask) -> None:
    assert "expected paper or device, got 'devise'" in fault(request_for(devices="l4", flags={"preset": "devise"}))
    assert "expected operator or closed_form" in fault(request_for(devices="l4", flags={"latency": "closed"}))


def test_a_case_of_a_file_that_is_none_is_said_with_its_line(request_for: Ask, tmp_path: Path) -> None:
    path = tmp_path / "several.yaml"
    path.write_text("cases:\n- {case: 1, device: l4}\n- case: two\n  device: l5\n  presision: fp16\n")
    said = fault(request_for(config=str(path)))
    assert "several.yaml:4: device: expected a device" in said
    assert "several.yaml:5: presision: unknown key" in said
