"""llama.cpp: its programs, in the folder that PLAS_LLAMA_CPP names, else on the PATH, and the package that reads its files."""

import importlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nas.export.gguf_formats import FORMATS
from plas_stacks.llama_bench import QUANTISED_AS


def program(name: str) -> str:
    """The path of a program; the test is skipped by name where it is not found."""
    found = shutil.which(name, path=os.environ.get("PLAS_LLAMA_CPP") or None)
    if found is None:
        pytest.skip(f"{name} is not in PLAS_LLAMA_CPP or on the PATH; studies/llama_cpp/build.py builds it")
    return found


def gguf_package() -> Any:
    """The package that reads GGUF files for llama.cpp; where its programs were named, a test without it fails and is not skipped."""
    if not os.environ.get("PLAS_LLAMA_CPP"):
        pytest.importorskip("gguf", reason="gguf is not installed (extra gguf)")
    importlib.import_module("gguf.quants")
    return importlib.import_module("gguf")


def said(*command: object, given: str = "") -> bytes:
    """What a program prints; the test fails with the end of its errors where it does."""
    done = subprocess.run([str(word) for word in command], input=given.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    return done.stdout


def quantiser() -> Any:
    """llama-cpp-python, or None where llama-quantize is found; a test without both is skipped by name, whatever else `llama_cpp` is on the path."""
    if shutil.which("llama-quantize", path=os.environ.get("PLAS_LLAMA_CPP") or None) is not None:
        return None
    reason = "neither llama-quantize nor llama-cpp-python is installed"
    package = pytest.importorskip("llama_cpp", reason=reason)
    if not hasattr(package, "llama_model_quantize"):
        pytest.skip(reason)
    return package


def quantised(half: Path, kind: str) -> Path:
    """A file made of a 16-bit one by llama-quantize, or by the same function of llama-cpp-python where that is installed alone."""
    out = half.with_name(f"theirs-{kind}.gguf")
    if (package := quantiser()) is not None:
        settings = package.llama_model_quantize_default_params()
        settings.ftype, settings.nthread = FORMATS[kind], 1
        assert package.llama_model_quantize(str(half).encode(), str(out).encode(), settings) == 0
        return out
    said(program("llama-quantize"), half, out, QUANTISED_AS.get(kind, kind))
    return out
