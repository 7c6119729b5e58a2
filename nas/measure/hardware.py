"""This machine as a device file: sustained rates instead of a datasheet's peaks."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nas.errors import PlasError, UsageError
from nas.files import yaml_source
from nas.files.tables import write
from nas.measure.engine import refuse_missing
from nas.measure.machine import last_level_cache, processor
from nas.measure.session import WORKERS
from nas.record.process import run_worker
from objectives.device import Device

SECONDS = 2.0  # of each kind of product
IMPLAUSIBLE = 0.5  # of the best of half and single precision: slower INT8 is no property of a machine


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
    return (
        f"{device.name}: {device.fp16 / 1e12:.4g} TFLOP/s, {device.int8 / 1e12:.4g} TOP/s int8, "
        f"{device.bandwidth / 1e9:.4g} GB/s{held}, {device.memory_gb:.4g} GB; written to {out}"
    )


def device_content(found: dict[str, Any], threads: int, cache: int) -> dict[str, Any]:
    """A device file's content from a worker's rates: the best of half and single precision stands for FP16.

    cache: bytes of the last-level cache; the file states it with the bandwidth that was found there, or neither.
    """
    rates: dict[str, float] = found["rates"]
    best = max(("fp16", "bf16", "fp32"), key=lambda name: rates.get(name, 0.0))
    half = rates[best]
    memory = found.get("memory") or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    day = datetime.now(UTC).date().isoformat()
    int8 = "int8 products" if "int8" in rates else f"INT8 {_unmeasured(found)} and is set to the same"
    cached = found.get("cache_bandwidth", 0.0)
    held = {"cache": f"{cache / 1e6:.4g} MB", "cache_bandwidth": f"{cached / 1e9:.4g} GB/s"} if cached else {}
    _refuse_implausible(rates, best)
    return {
        "name": found.get("name") or processor(),
        "fp16": f"{half / 1e12:.4g} TFLOP/s",
        "int8": f"{rates.get('int8', half) / 1e12:.4g} TOP/s",
        "bandwidth": f"{found['bandwidth'] / 1e9:.4g} GB/s",
        "memory": f"{memory / 1e9:.4g} GB",
        "confidence": "measured",
        "dense_confirmed": True,
        "source": f"measured on {day} with {found['engine']}, {threads} threads: {best} matrix products, {int8}, "
        "matrices of 4,096 × 4,096 read" + ", and one of a quarter of the last-level cache" * bool(held),
        "other_peaks": {name: f"{value / 1e12:.4g} TFLOP/s" for name, value in rates.items() if name != "int8"},
    } | held


def _unmeasured(found: dict[str, Any]) -> str:
    """Why there is no rate of INT8 products."""
    times = found.get("slow", {}).get("int8")
    if times is None:
        return "was not measured"
    return f"took {times:.0f} times as long as fp32, as torch has no kernel for it here: engines unpack 8-bit weights there;"


def _refuse_implausible(rates: dict[str, float], best: str) -> None:
    """Refuse a device whose INT8 is slower than its half precision by more than on any device.

    Raises:
        PlasError: naming both rates.
    """
    int8 = rates.get("int8", rates[best])
    if int8 < IMPLAUSIBLE * rates[best]:
        raise PlasError(
            f"--hardware: expected INT8 products at least {IMPLAUSIBLE:g} times as fast as {best}, got {int8 / 1e12:.3g} of "
            f"{rates[best] / 1e12:.3g} TOP/s; close other programs and measure again, or write the file by hand"
        )
