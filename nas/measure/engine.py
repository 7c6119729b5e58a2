"""Checks once, before any candidate, that the program that measures is there and has its engine."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from nas.errors import UsageError

PRECISIONS = {  # of each backend, the first where none is asked for
    "torch": ("fp32", "bf16", "fp16"),
    "vllm": ("fp16", "bf16", "fp32"),
    "llama-bench": ("f16", "q8_0", "q6_k", "q5_k_m", "q4_k_m", "q4_0", "mxfp4"),
}
MODULES = {"torch": "torch", "vllm": "vllm"}
MISSING = 77  # exit code of a Python that lacks the module
PROBE = f"import importlib.util, sys; sys.exit({MISSING} * (importlib.util.find_spec(sys.argv[1]) is None))"
PATIENCE_S = 60.0


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
