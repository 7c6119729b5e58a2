"""Energy by counters and by programs that print power: fake files and programs, read as the real ones are."""

import csv
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plas_board.measure import power
from plas_board.measure.power import Readings, metered, nvidia_smi_watts, rapl_domains, source, tegrastats_watts

ORIN = (
    "11-22-2024 10:00:00 RAM 2500/7620MB (lfb 4x4MB) SWAP 0/3810MB CPU [5%@1510,0%@1510] GR3D_FREQ 45% "
    "cpu@48C VDD_IN 6512mW/6400mW VDD_CPU_GPU_CV 2310mW/2200mW VDD_SOC 1450mW/1440mW"
)
NANO = "RAM 1000/4000MB POM_5V_IN 3210/3100 POM_5V_GPU 400/380"


RANGE, FIRST = 1_000_000_000, 999_000_000  # microjoules: a counter's largest value, and where it begins
WATTS = {"intel-rapl:0": 20, "intel-rapl:0:1": 5}


def count(powercap: Path, seconds: float) -> None:
    """The counters after so long: the package wraps after 0.05 s, the memory after 0.2 s."""
    for folder, watts in WATTS.items():
        beside = powercap / folder / "next"
        beside.write_text(str(int(FIRST + 1e6 * watts * seconds) % RANGE))
        os.replace(beside, powercap / folder / "energy_uj")


@pytest.fixture
def powercap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package and a memory that can be read, a core inside the package, and one that cannot be read."""
    root = tmp_path / "powercap"
    counters = {"intel-rapl:0": "package-0", "intel-rapl:0:0": "core", "intel-rapl:0:1": "dram", "intel-rapl:1": "psys"}
    for folder, name in counters.items():
        (root / folder).mkdir(parents=True)
        (root / folder / "name").write_text(name + "\n")
        (root / folder / "max_energy_range_uj").write_text(f"{RANGE}\n")
        (root / folder / "energy_uj").write_text(f"{FIRST}\n")
    (root / "intel-rapl:2").mkdir()
    monkeypatch.setattr(power, "POWERCAP", root)
    return root


@pytest.fixture
def drawing(powercap: Path) -> Iterator[None]:
    """The package draws 20 W and the memory 5 W."""
    stop = threading.Event()

    def go_on() -> None:
        begin = time.monotonic()
        while not stop.wait(0.005):
            count(powercap, time.monotonic() - begin)

    thread = threading.Thread(target=go_on)
    thread.start()
    yield
    stop.set()
    thread.join()


def test_counters_of_packages_and_memories_are_read(powercap: Path) -> None:
    assert [domain.name for domain in rapl_domains()] == ["package-0", "dram"]
    assert source("cpu") == "rapl"
    (powercap / "intel-rapl:0" / "energy_uj").unlink()
    (powercap / "intel-rapl:0:1" / "energy_uj").write_text("not for you")
    assert source("cpu") == ""


def test_what_was_counted_between_two_times_goes_on_beyond_a_wrap(
    powercap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that goes on as readings are waited for, so that nothing depends on how busy the machine is."""
    now = 0.0

    def wait(seconds: float) -> bool:
        nonlocal now
        now += seconds
        count(powercap, now)
        return now > 1.2

    event = SimpleNamespace(wait=wait, set=lambda: None)
    monkeypatch.setattr(power, "threading", SimpleNamespace(Event=lambda: event, Thread=threading.Thread))
    monkeypatch.setattr(power, "time", SimpleNamespace(monotonic=lambda: now))
    with metered("rapl") as readings:
        pass
    assert readings.rail == "RAPL package-0 + dram"
    assert readings.mean_joules([(0.01, 0.61)]) == pytest.approx(25 * 0.6, rel=1e-6)
    assert readings.mean_joules([(0.01, 0.31), (0.4, 1.0)]) == pytest.approx(25 * 0.45, rel=1e-6)


def test_a_request_that_was_hardly_read_has_no_energy() -> None:
    readings = Readings()
    assert readings.mean_joules([(0.0, 1.0)]) is None
    for second in range(10):
        readings.drawn(float(second), 4.0 if second < 5 else 8.0)
    assert readings.mean_joules([(0.0, 4.0)]) == pytest.approx(16.0)
    assert readings.mean_joules([(0.0, 4.0), (5.0, 9.0)]) == pytest.approx((16.0 + 32.0) / 2)
    for window in ((-1.0, 4.0), (2.0, 9.5), (3.0, 4.5), (4.0, 2.0)):
        assert readings.mean_joules([window]) is None
    assert readings.mean_joules([]) is None


def test_what_programs_print_is_read() -> None:
    assert tegrastats_watts(ORIN) == ("VDD_IN", pytest.approx(6.512))
    assert tegrastats_watts(ORIN.replace("VDD_IN", "VDD_XX")) == ("VDD_CPU_GPU_CV", pytest.approx(2.31))
    assert tegrastats_watts(NANO) == ("POM_5V_IN", pytest.approx(3.21))
    assert tegrastats_watts("RAM 1/2MB") is None
    assert nvidia_smi_watts(" 61.27\n") == ("GPU 0, nvidia-smi", 61.27)
    assert nvidia_smi_watts("[N/A]") is None


def program(folder: Path, name: str, line: str) -> None:
    """A program that prints a line again and again, and notes that it was asked as the real one is."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(
        f"#!{sys.executable} -S\nimport sys, time\nopen({str(folder / 'asked')!r}, 'w').write(' '.join(sys.argv[1:]))\n"
        f"while True:\n    print({line!r}, flush=True)\n    time.sleep(0.05)\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize(
    ("name", "line", "watts"), [("nvidia-smi", "40.0", 40.0), ("tegrastats", ORIN, 6.512)], ids=["nvidia-smi", "tegra"]
)
def test_a_program_is_read_while_the_block_runs_and_ended(
    name: str, line: str, watts: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin", name, line)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert source("cuda") == name
    with metered(name) as readings:
        deadline = time.monotonic() + 20
        while len(readings.times) < 8 and time.monotonic() < deadline:
            time.sleep(0.05)
        end = readings.times[-1]
    begin = readings.times[0]
    assert readings.mean_joules([(begin, end)]) == pytest.approx(watts * (end - begin))
    assert (tmp_path / "bin" / "asked").read_text() == " ".join(power.COMMANDS[name])


def test_nothing_is_metered_where_nothing_can_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(power, "POWERCAP", tmp_path)
    assert (source("cpu"), source("cuda")) == ("", "")
    for name in ("", "nvidia-smi"):
        with metered(name) as readings:
            pass
        assert readings.times == []


#: Stands in for an interpreter: requests of 0.4 s each, told by the monotonic clock.
WORKER = f"""#!{sys.executable} -S
import json, sys, time
job = json.load(sys.stdin)
requests = []
time.sleep(0.2)
for _ in range(2):
    begin = time.monotonic()
    time.sleep(0.4)
    requests.append((begin, time.monotonic()))
time.sleep(0.2)
print(json.dumps({{"prefill_ms": [200, 200], "decode_ms": [50, 50], "requests_s": requests, "wall_s": 1.0, "cpu_s": 1.0,
                  "threads": job["threads"], "engine": "stand-in"}}))
"""


@pytest.mark.slow
def test_measure_meters_requests_and_calibrate_reads_them(
    drawing: None, commands: Any, inside: Callable[..., Any]
) -> None:
    worker = commands.write("python", WORKER)
    worker.chmod(worker.stat().st_mode | stat.S_IXUSR)
    commands.write("board.yaml", "name: Board\nfp16: 4 TFLOP/s\nint8: 8 TOP/s\nbandwidth: 20 GB/s\nmemory: 64 GB\n")
    models = [word for name in ("smollm2_135m", "qwen3_0.6b", "qwen2.5_0.5b") for word in ("--model", name)]
    settings = ("--device", "board", "--rounds", "1", "--threads", "1", "--output-tokens", "4", "--quiet")
    done = inside("measure", *models, "--interpreter", str(worker), *settings, "--out", "record")
    assert done.code is None or done.code == 0, done.err
    rows = list(csv.DictReader((commands.folder / "record" / "measured.csv").open()))
    metered_rows = [row for row in rows if row["metric"] == "total_ms"]
    assert [row["rail"] for row in metered_rows] == ["RAPL package-0 + dram"] * 3
    assert all(float(row["energy_j"]) == pytest.approx(10, rel=0.5) for row in metered_rows)
    assert all(float(row["value"]) == pytest.approx(400, rel=0.5) for row in metered_rows)
    answer = inside("calibrate", "record/measured.csv", "--device", "board.yaml", "--out", "mine.yaml")
    assert "stand-in, energy: 3 rows, 3 models" in answer.out
    assert "RAPL package-0 + dram" in answer.out
    assert "rail: RAPL package-0 + dram" in (commands.folder / "mine.yaml").read_text()


def test_a_source_that_is_not_here_is_refused(commands: Any, inside: Callable[..., Any], powercap: Path) -> None:
    for asked, said in (("wattmeter", "expected a source"), ("tegrastats", "expected tegrastats on this machine")):
        answer = inside("measure", "--model", "smollm2_135m", "--power", asked, "--out", "r")
        assert answer.code == 2
        assert f"--power: {said}" in answer.err


def test_power_between_two_readings_is_a_straight_line() -> None:
    readings = Readings()
    for second, watts in ((0.0, 10.0), (2.0, 30.0), (3.0, 0.0)):
        readings.drawn(second, watts)
    assert readings.joules == [0.0, 40.0, 55.0]
