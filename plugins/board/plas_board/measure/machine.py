"""This machine: whether it has the program that measures, its state as a record keeps it, and its rates as a device file."""

import os
import platform
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nas.errors import PlasError, UsageError
from nas.files import yaml_source
from nas.files.tables import write
from nas.record.process import run_worker
from objectives import outside
from objectives.device import Device
from plas_board.measure.workers.llama_bench_worker import busy_s
from plas_stacks.engine import WORKER, engines

SECONDS = 2.0  # of each kind of product
IMPLAUSIBLE = 0.5  # of the best of half and single precision: slower INT8 is no property of a machine
LOOK_S = 0.25
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
WORKERS = Path(__file__).parent / "workers"
SCRIPTS = {"torch": "torch_worker.py", "vllm": "vllm_worker.py", "llama-bench": "llama_bench_worker.py"}
SCRIPTS |= dict.fromkeys(engines(), str(WORKER))
PRECISIONS = {  # of each backend, the first where none is asked for
    "torch": ("fp32", "bf16", "fp16"),
    "vllm": ("fp16", "bf16", "fp32"),
    "llama-bench": ("f16", "q8_0", "q6_k", "q5_k_m", "q4_k_m", "q4_0", "mxfp4"),
    **{name: engine.formats for name, engine in engines().items()},
}
MODULES = {
    "torch": "torch",
    "vllm": "vllm",
    **{name: engine.module.partition(".")[0] for name, engine in engines().items()},
}
MISSING = 77  # exit code of a Python that lacks the module
PROBE = f"import importlib.util, sys; sys.exit({MISSING} * (importlib.util.find_spec(sys.argv[1]) is None))"
PATIENCE_S = 60.0


def measure_hardware(out: Path, interpreter: str, torch_device: str, threads: int, timeout: float) -> str:
    """Measure and write the device file; what was found, in a line.

    Raises:
        UsageError: `out` is no new YAML file, or the interpreter has no torch.
        PlasError: the worker failed.
    """
    if out.suffix not in (".yaml", ".yml") or out.exists():
        raise UsageError(f"--out: expected a new .yaml file with --hardware, got {out}; name one")
    refuse_missing("torch", interpreter)
    cache = last_level_cache() if torch_device == "cpu" else 0
    job = {"torch_device": torch_device, "threads": threads, "seconds": SECONDS, "cache": cache}
    answer = run_worker([interpreter, str(WORKERS / "hardware_worker.py")], job, timeout, None)
    if answer.state != "ok":
        raise PlasError(
            f"--hardware: expected rates from {interpreter}, got {answer.state} ({answer.reason}); "
            "name a Python that has torch with --interpreter"
        )
    content = device_content(answer.content, threads, cache)
    device = Device.model_validate(content)
    write(out, yaml_source.dump(content))
    speed = device.cache_bandwidth
    held = f", {cache / 1e6:.4g} MB of cache at {speed / 1e9:.4g} GB/s" if speed else ""
    int8 = (
        f"{device.int8 / 1e12:.4g} TOP/s int8"
        if device.int8
        else "int8 not known (measure again without other programs)"
    )
    return (
        f"{device.name}: {device.peak('fp16') / 1e12:.4g} TFLOP/s, {int8}, "
        f"{device.bandwidth / 1e9:.4g} GB/s{held}, {device.memory_gb:.4g} GB; written to {out}"
    )


def device_content(measured: dict[str, Any], threads: int, cache: int) -> dict[str, Any]:
    """A device file's content from a worker's rates: the best of half and single precision stands for FP16.

    cache: bytes of the last-level cache; the file states it with the bandwidth that was found there, or neither. INT8 products slower
    than half precision's by more than on any device give no peak of INT8.
    """
    rates: dict[str, float] = measured["rates"]
    best = max(("fp16", "bf16", "fp32"), key=lambda name: rates.get(name, 0.0))
    half, speed_int8 = rates[best], rates.get("int8", rates[best])
    measured_int8 = speed_int8 >= IMPLAUSIBLE * half
    memory = measured.get("memory") or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    day = datetime.now(UTC).date().isoformat()
    int8 = "int8 products" if "int8" in rates else f"INT8 {_unmeasured(measured)} and is set to the same"
    if not measured_int8:
        int8 = f"INT8 is not known: {speed_int8 / 1e12:.3g} TOP/s, less than {IMPLAUSIBLE:g} of {best}'s, as other programs had the machine"
    cached = measured.get("cache_bandwidth", 0.0)
    held = {"cache": f"{cache / 1e6:.4g} MB", "cache_bandwidth": f"{cached / 1e9:.4g} GB/s"} if cached else {}
    return {
        "name": measured.get("name") or processor(),
        "fp16": f"{half / 1e12:.4g} TFLOP/s",
        **({"int8": f"{speed_int8 / 1e12:.4g} TOP/s"} if measured_int8 else {}),
        "bandwidth": f"{measured['bandwidth'] / 1e9:.4g} GB/s",
        "memory": f"{memory / 1e9:.4g} GB",
        "confidence": "measured",
        "dense_confirmed": True,
        "source": f"measured on {day} with {measured['engine']}, {threads} threads: {best} matrix products, {int8}, "
        "matrices read that no cache holds" + ", and one of a quarter of the last-level cache" * bool(held),
        "other_peaks": {name: f"{value / 1e12:.4g} TFLOP/s" for name, value in rates.items() if name != "int8"},
    } | held


def _unmeasured(measured: dict[str, Any]) -> str:
    """Why there is no rate of INT8 products."""
    times = measured.get("slow", {}).get("int8")
    if times is None:
        return "was not measured"
    return f"took {times:.0f} times as long as fp32, as torch has no kernel for it here: engines unpack 8-bit weights there;"


def machine() -> dict[str, Any]:
    """The machine as plain content; what the system does not report is left out."""
    state = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "system": platform.platform(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "clock_mhz": _field("/proc/cpuinfo", "cpu MHz"),
        "governor": _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "power_mode": _text("/etc/nvpmodel/status"),
    }
    return {name: value for name, value in state.items() if value not in ("", None)}


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
    sizes = {_text(f"{cache}/level"): _text(f"{cache}/size") for cache in CACHES.glob("index*")}
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


def batched_bench(interpreter: str) -> Path:
    """The program that llama.cpp measures several sequences with, beside its llama-bench."""
    return Path(shutil.which(interpreter) or interpreter).with_name("llama-batched-bench")


def refuse_missing(backend: str, interpreter: str, batch: int = 1) -> None:
    """Refuse a program that is not there, and a Python without the backend's package.

    Whatever else is wrong with a program shows in its first worker.

    Raises:
        UsageError: naming what to install or where to point.
    """
    if shutil.which(interpreter) is None:
        what = "the llama-bench program" if backend == "llama-bench" else "a Python"
        raise UsageError(f"--interpreter: expected {what}, got {interpreter}, which is no program; correct the path")
    if backend == "llama-bench" and batch > 1 and shutil.which(beside := batched_bench(interpreter)) is None:
        raise UsageError(
            f"--batch: expected {beside} for several sequences, got no such program; build it too, or measure --batch 1"
        )
    module = MODULES.get(backend)
    if module is not None and _lacks(interpreter, module):
        own = os.path.realpath(shutil.which(interpreter) or "") == os.path.realpath(sys.executable)
        how = "pip install 'plas-codesign[hf]'" if own and backend == "torch" else f"install {module} there"
        raise UsageError(
            f"--interpreter: expected a Python with {module}, got {interpreter} without it; {how}, or name another"
        )


def _lacks(interpreter: str, module: str) -> bool:
    command = [interpreter, "-c", PROBE, module]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == MISSING
