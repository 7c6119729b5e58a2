"""The machine's state as a record keeps it: processor, clock, governor, load."""

import os
import platform
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nas.measure.workers.llama_bench_worker import busy_s
from objectives import outside

LOOK_S = 0.25
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def machine() -> dict[str, Any]:
    """The machine as plain content; what the system does not report is left out."""
    known = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "system": platform.platform(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "clock_mhz": _field("/proc/cpuinfo", "cpu MHz"),
        "governor": _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "power_mode": _text("/etc/nvpmodel/status"),
    }
    return {name: value for name, value in known.items() if value not in ("", None)}


def busy_cores() -> float | None:
    """Processors that other programs use at the moment, over a quarter of a second; None where the system does not report it."""
    first, begin = busy_s(), time.monotonic()
    time.sleep(LOOK_S)
    second = busy_s()
    return None if first is None or second is None else max(0.0, second - first) / (time.monotonic() - begin)


def processor() -> str:
    """The processor's name."""
    return _field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()


def last_level_cache() -> int:
    """Bytes of the processor's last-level cache; 0 where the system does not report it.

    Source: Linux, Documentation/ABI/testing/sysfs-devices-system-cpu: `level` and `size` of every cache, the latter in KiB ("32768K").
    """
    sizes = {_text(f"{each}/level"): _text(f"{each}/size") for each in CACHES.glob("index*")}
    last = sizes[max(sizes)] if sizes else ""
    return 1024 * int(last.removesuffix("K")) if last.removesuffix("K").isdecimal() else 0


def _field(path: str, name: str) -> str:
    lines = [line for line in _text(path).splitlines() if line.startswith(name)]
    return lines[0].partition(":")[2].strip() if lines else ""


def _text(path: str) -> str:
    try:
        return outside.text(Path(path), 10 * outside.MB, errors="replace").strip()
    except OSError:
        return ""
