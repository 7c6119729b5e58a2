"""Energy while a worker runs: RAPL's counters, or the power that nvidia-smi or tegrastats prints, by the clock.

The workers say when each request began and ended; what was metered is looked up by that time. On Linux every process
has the same monotonic clock.
"""

import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from objectives import outside

POWERCAP = Path("/sys/class/powercap")
EVERY_S = 0.05
LEAST = 3  # readings inside a request below which its energy is not told
RAILS = ("VDD_IN", "VIN_SYS_5V0", "VDD_CPU_GPU_CV", "POM_5V_IN")  # of tegrastats, the whole module's before its parts
COMMANDS = {
    "nvidia-smi": ["--query-gpu=power.draw", "--format=csv,noheader,nounits", "--id=0", "--loop-ms=100"],
    "tegrastats": ["--interval", "100"],
}
SOURCES = ("rapl", *COMMANDS)
_RAIL = re.compile(r"\b([A-Z]\w*) (\d+)(?:mW)?/\d+(?:mW)?")
Window = Sequence[float]


@dataclass
class Readings:
    """Joules since the start at times of the monotonic clock, as they come in, and what they are of."""

    rail: str = ""
    times: list[float] = field(default_factory=list)
    joules: list[float] = field(default_factory=list)
    _watts: float | None = None

    def counted(self, now: float, joules: float) -> None:
        """A counter's reading."""
        self.times.append(now)
        self.joules.append(joules)

    def drawn(self, now: float, watts: float) -> None:
        """A reading of power, which joins the one before in a straight line."""
        before = self._watts
        seconds = now - self.times[-1] if self.times else 0.0
        total = self.joules[-1] if self.joules else 0.0
        self.counted(now, total + (0.0 if before is None else 0.5 * (before + watts) * seconds))
        self._watts = watts

    def mean_joules(self, windows: Sequence[Window]) -> float | None:
        """Mean joules of requests from their begins and ends, s; None where one has too few readings or lies outside."""
        times = np.array(self.times)
        for begin, end in windows:
            if len(times) < 2 or not times[0] <= begin < end <= times[-1]:
                return None
            if ((times >= begin) & (times <= end)).sum() < LEAST:
                return None
        spent = [np.diff(np.interp(window, times, self.joules))[0] for window in windows]
        return float(np.mean(spent)) if spent else None


@dataclass(frozen=True)
class Domain:
    """One counter of RAPL, microjoules that begin again beyond `largest`."""

    name: str
    counter: Path
    largest: int


def rapl_domains() -> list[Domain]:
    """Packages and memories whose counters can be read; parts of a package are in it."""
    found = []
    for folder in sorted(POWERCAP.glob("intel-rapl:*")):
        with suppress(OSError, ValueError):
            name = outside.text(folder / "name", outside.MB).strip()
            largest = int(outside.text(folder / "max_energy_range_uj", outside.MB))
            int(outside.text(folder / "energy_uj", outside.MB))
            if name.startswith("package") or name == "dram":
                found.append(Domain(name, folder / "energy_uj", largest))
    return found


def present(name: str) -> bool:
    """Whether a source can be read here."""
    return bool(rapl_domains() if name == "rapl" else shutil.which(name))


def source(torch_device: str) -> str:
    """The meter for the energy of a processor (`cpu`) or of a GPU here; "" without any."""
    able = ("rapl",) if torch_device == "cpu" else ("tegrastats", "nvidia-smi")
    return next((name for name in able if present(name)), "")


@contextmanager
def metered(name: str) -> Iterator[Readings]:
    """Readings of a source while the block runs; none of an unknown one, or of one that stops telling."""
    readings, stop = Readings(), threading.Event()
    if name == "rapl":
        thread = threading.Thread(target=_count, args=(rapl_domains(), readings, stop), daemon=True)
        thread.start()
        try:
            yield readings
        finally:
            stop.set()
            thread.join()
    elif name in COMMANDS:
        with _printing([name, *COMMANDS[name]], READERS[name], readings):
            yield readings
    else:
        yield readings


def _count(domains: Sequence[Domain], readings: Readings, stop: threading.Event) -> None:
    """Read RAPL's counters again and again; a counter that wraps goes on."""
    readings.rail = f"RAPL {' + '.join(domain.name for domain in domains)}"
    total, before = 0.0, list[int]()
    while True:
        try:
            now = [int(outside.text(domain.counter, outside.MB)) for domain in domains]
        except (OSError, ValueError):
            return
        for domain, old, new in zip(domains, before, now, strict=False):
            total += (new - old if new >= old else new - old + domain.largest) * 1e-6
        before = now
        readings.counted(time.monotonic(), total)
        if stop.wait(EVERY_S):
            return


@contextmanager
def _printing(
    command: list[str], watts: Callable[[str], tuple[str, float] | None], readings: Readings
) -> Iterator[None]:
    """A program that prints power, line by line, until the block ends."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
    except OSError:
        yield
        return

    def read() -> None:
        for line in process.stdout or ():
            if (found := watts(line)) is not None:
                readings.rail = found[0]
                readings.drawn(time.monotonic(), found[1])

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        yield
    finally:
        process.kill()
        process.wait()
        thread.join()


def nvidia_smi_watts(line: str) -> tuple[str, float] | None:
    """Watts of the first GPU's board; None of a line without."""
    with suppress(ValueError):
        return "GPU 0, nvidia-smi", float(line)
    return None


def tegrastats_watts(line: str) -> tuple[str, float] | None:
    """Watts of the rail nearest to the whole module; None of a line without."""
    rails = {name: int(milliwatts) for name, milliwatts in _RAIL.findall(line)}
    return next(((name, rails[name] * 1e-3) for name in RAILS if name in rails), None)


READERS = {"nvidia-smi": nvidia_smi_watts, "tegrastats": tegrastats_watts}
