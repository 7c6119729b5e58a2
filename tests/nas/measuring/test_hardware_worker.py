"""The rates that the hardware worker finds, on a stand-in for torch whose products take what a machine with a cache would take."""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import nas.measuring.workers

WORKER = Path(nas.measuring.workers.__file__).with_name("hardware_worker.py")
CACHE, MEMORY_RATE, CACHE_RATE, PRODUCT_RATE, PEAK = 32 << 20, 3e10, 1e11, 2e10, 1e12


@dataclass
class Machine:
    """A clock that products move on, and what was allocated while vector products ran."""

    now: float = 0.0
    held: int = 0

    def array(self, *shape: int, dtype: SimpleNamespace, device: str) -> "Array":
        """An array, which takes room."""
        return Array(self, shape, dtype)


@dataclass
class Array:
    """A shape that takes time to sum: its bytes, from the cache if everything that lives fits into half of it.

    A product with a vector has so much arithmetic that memory and cache are alike to it.
    """

    machine: Machine
    shape: tuple[int, ...]
    dtype: SimpleNamespace

    def __post_init__(self) -> None:
        self.bytes = self.dtype.bits // 8
        for length in self.shape:
            self.bytes *= length
        self.machine.held += self.bytes

    def __del__(self) -> None:
        self.machine.held -= self.bytes

    def __matmul__(self, other: "Array") -> "Array":
        if len(other.shape) == 1:
            self.machine.now += self.bytes / PRODUCT_RATE
        else:
            self.machine.now += 2.0 * self.shape[0] ** 3 / PEAK
        return self

    def sum(self) -> None:
        """Read everything once."""
        self.machine.now += self.bytes / (CACHE_RATE if self.machine.held <= CACHE / 2 else MEMORY_RATE)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The worker's module on a machine of known rates."""
    machine, torch = Machine(), ModuleType("torch")
    types = {name: SimpleNamespace(bits=bits) for name, bits in (("float32", 32), ("bfloat16", 16), ("float16", 16))}
    torch.__dict__.update(
        types | {"int8": SimpleNamespace(bits=8), "ones": machine.array, "rand": machine.array, "__version__": "0"}
    )
    torch.__dict__["finfo"] = lambda dtype: dtype
    torch.__dict__["set_num_threads"] = lambda count: None
    torch.__dict__["inference_mode"] = lambda: lambda function: function
    torch.__dict__["_int_mm"] = lambda a, b: a @ b
    monkeypatch.setitem(sys.modules, "torch", torch)
    spec = importlib.util.spec_from_file_location("hardware_worker_under_test", WORKER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: machine.now))
    return module


def found(worker: ModuleType, cache: int) -> dict[str, Any]:
    """What the worker prints of a machine with such a cache."""
    return dict(worker.measure({"torch_device": "cpu", "threads": 2, "seconds": 0.5, "cache": cache}))


def test_memory_and_cache_are_told_apart(worker: ModuleType) -> None:
    """The matrices of the one do not fit into the cache, that of the other leaves room for other programs."""
    rates = found(worker, CACHE)
    assert rates["bandwidth"] == pytest.approx(MEMORY_RATE, rel=1e-6)
    assert rates["cache_bandwidth"] == pytest.approx(CACHE_RATE, rel=1e-6)
    assert rates["rates"]["fp32"] == pytest.approx(PEAK, rel=1e-6)


def test_the_faster_program_counts(worker: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sums are slower than products with a vector, these say how fast the memory is."""
    monkeypatch.setitem(globals(), "MEMORY_RATE", PRODUCT_RATE / 2)
    assert found(worker, 0)["bandwidth"] == pytest.approx(PRODUCT_RATE, rel=1e-6)


def test_no_cache_is_known(worker: ModuleType) -> None:
    assert found(worker, 0)["cache_bandwidth"] == 0.0
