"""This machine as a device file: sustained rates instead of a datasheet's peaks."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nas.errors import PlasError, UsageError
from nas.files import yaml_source
from nas.files.tables import write
from nas.measuring.engine import refuse_missing
from nas.measuring.machine import processor
from nas.measuring.process import run_worker
from nas.measuring.session import WORKERS
from objectives.device import Device

SECONDS = 2.0  # of each kind of product


def measure_hardware(out: Path, interpreter: str, torch_device: str, threads: int, timeout: float) -> str:
    """Measure and write the device file; what was found, in a line.

    Raises:
        UsageError: `out` is no new YAML file, or the interpreter has no torch.
        PlasError: the worker failed.
    """
    if out.suffix not in (".yaml", ".yml") or out.exists():
        raise UsageError(f"--out: expected a new .yaml file with --hardware, got {out}; name one")
    refuse_missing("torch", interpreter)
    job = {"torch_device": torch_device, "threads": threads, "seconds": SECONDS}
    answer = run_worker([interpreter, str(WORKERS / "hardware_worker.py")], job, timeout, None)
    if answer.state != "ok":
        raise PlasError(
            f"--hardware: expected rates from {interpreter}, got {answer.state} ({answer.reason}); "
            "name a Python that has torch with --interpreter"
        )
    content = device_content(answer.content, threads)
    device = Device.model_validate(content)
    write(out, yaml_source.dump(content))
    return (
        f"{device.name}: {device.fp16 / 1e12:.4g} TFLOP/s, {device.int8 / 1e12:.4g} TOP/s int8, "
        f"{device.bandwidth / 1e9:.4g} GB/s, {device.memory_gb:.4g} GB; written to {out}"
    )


def device_content(found: dict[str, Any], threads: int) -> dict[str, Any]:
    """A device file's content from a worker's rates: the best of half and single precision stands for FP16."""
    rates: dict[str, float] = found["rates"]
    best = max(("fp16", "bf16", "fp32"), key=lambda name: rates.get(name, 0.0))
    half = rates[best]
    memory = found.get("memory") or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    day = datetime.now(UTC).date().isoformat()
    int8 = "int8 products" if "int8" in rates else "INT8 was not measured and is set to the same"
    return {
        "name": found.get("name") or processor(),
        "fp16": f"{half / 1e12:.4g} TFLOP/s",
        "int8": f"{rates.get('int8', half) / 1e12:.4g} TOP/s",
        "bandwidth": f"{found['bandwidth'] / 1e9:.4g} GB/s",
        "memory": f"{memory / 1e9:.4g} GB",
        "confidence": "measured",
        "dense_confirmed": True,
        "source": f"measured on {day} with {found['engine']}, {threads} threads: {best} matrix products, {int8}, "
        "and vector products with 4,096 × 4,096 matrices",
        "other_peaks": {name: f"{value / 1e12:.4g} TFLOP/s" for name, value in rates.items() if name != "int8"},
    }
