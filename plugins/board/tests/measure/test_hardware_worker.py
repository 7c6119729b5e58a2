"""The rates that the hardware worker finds, on a stand-in for torch whose products take what a machine with a cache would take."""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import plas_board.measure.workers
from objectives.device import Device
from plas_board.measure.machine import device_content

WORKER = Path(plas_board.measure.workers.__file__).with_name("hardware_worker.py")
CACHE, MEMORY_RATE, CACHE_RATE, PRODUCT_RATE, PEAK = 32 << 20, 3e10, 1e11, 2e10, 1e12
START = 0.0  # seconds before a kernel runs


@dataclass
class Machine:
    """A clock that products move on, and what was allocated while vector products ran."""

    now: float = 0.0
    held: int = 0

    def array(self, *shape: int, dtype: SimpleNamespace, device: str) -> "Array":
        """An array, which takes room."""
        return Array(self, shape, dtype)

    def integers(self, low: int, high: int, shape: tuple[int, ...], device: str) -> "Array":
        """An array of whole numbers."""
        return self.array(*shape, dtype=SimpleNamespace(bits=64), device=device)


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

    def to(self, dtype: SimpleNamespace) -> "Array":
        """The same shape in another type."""
        return Array(self.machine, self.shape, dtype)

    def t(self) -> "Array":
        """Itself, as it is square."""
        return self

    def __matmul__(self, other: "Array") -> "Array":
        if len(other.shape) == 1:
            self.machine.now += START + self.bytes / PRODUCT_RATE
        else:
            self.machine.now += 2.0 * self.shape[0] ** 3 / PEAK
        return self

    def sum(self) -> None:
        """Read everything once."""
        self.machine.now += START + self.bytes / (CACHE_RATE if self.machine.held <= CACHE / 2 else MEMORY_RATE)

    def copy_(self, other: "Array") -> None:
        """Read another and write itself, at half of the rate at which sums read."""
        self.machine.now += START + 2 * self.bytes / (MEMORY_RATE / 2)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The worker's module on a machine of known rates."""
    machine, torch = Machine(), ModuleType("torch")
    types = {name: SimpleNamespace(bits=bits) for name, bits in (("float32", 32), ("bfloat16", 16), ("float16", 16))}
    torch.__dict__.update(
        types
        | {"int8": SimpleNamespace(bits=8), "randint": machine.integers, "rand": machine.array, "__version__": "0"}
    )
    torch.__dict__["finfo"] = lambda dtype: dtype
    torch.__dict__["set_num_threads"] = lambda count: None
    torch.__dict__["inference_mode"] = lambda: lambda function: function
    torch.__dict__["matmul"] = torch.__dict__["_int_mm"] = lambda a, b: a @ b
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


def test_a_large_gpu_is_read_at_its_own_rate(worker: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """7 µs before every kernel hide 40 % of 3 TB/s behind matrices of 32 MiB, and 2 % behind those that are read."""
    monkeypatch.setattr(worker.torch, "cuda", SimpleNamespace(synchronize=lambda: None), raising=False)
    for name, value in (("MEMORY_RATE", 3e12), ("START", 7e-6)):
        monkeypatch.setitem(globals(), name, value)
    assert worker.from_memory("cuda", 0.1) > 0.97 * MEMORY_RATE
    assert worker.reading("cuda", 0.1, worker.WIDTH, 128) < 0.65 * MEMORY_RATE


def test_copies_count_where_they_are_faster(worker: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte that is copied is moved twice."""
    monkeypatch.setitem(globals(), "PRODUCT_RATE", 1e9)
    monkeypatch.setattr(Array, "sum", lambda self: self @ SimpleNamespace(shape=(1,)))
    assert found(worker, 0)["bandwidth"] == pytest.approx(MEMORY_RATE / 2, rel=1e-6)


def test_no_cache_is_known(worker: ModuleType) -> None:
    assert found(worker, 0)["cache_bandwidth"] == 0.0


def test_products_without_a_kernel_of_this_machine_are_left_out_in_a_moment(
    worker: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """INT8 by torch's reference kernel, 72 times as long as single precision: one large product alone would take longer than all the rest."""

    def reference(a: Array, b: Array) -> Array:
        a.machine.now += 71 * 2.0 * a.shape[0] ** 3 / PEAK
        return a @ b

    machine = worker.torch.rand.__self__
    plain = found(worker, 0)
    took = machine.now
    monkeypatch.setattr(worker.torch, "_int_mm", reference)
    told = found(worker, 0)
    assert "int8" not in told["rates"]
    assert told["slow"] == {"int8": pytest.approx(72.0)}
    assert told["rates"] == {
        name: pytest.approx(rate, rel=1e-6) for name, rate in plain["rates"].items() if name != "int8"
    }
    assert machine.now - took < took


def test_the_device_file_says_why_int8_is_as_fast_as_half_precision() -> None:
    content = device_content(
        {"rates": {"fp32": 1e12}, "slow": {"int8": 72.0}, "bandwidth": 1e10, "engine": "torch 2"}, 2, 0
    )
    assert content["int8"] == "1 TOP/s"
    assert "INT8 took 72 times as long as fp32, as torch has no kernel for it here" in content["source"]


def test_slow_int8_on_a_busy_machine_is_not_known_and_the_rest_is_written() -> None:
    found = {"rates": {"fp32": 1e12, "int8": 0.4e12}, "bandwidth": 1e10, "engine": "torch 2"}
    content = device_content(found, 2, 0)
    assert "int8" not in content
    assert (
        "INT8 is not known: 0.4 TOP/s, less than 0.5 of fp32's, as other programs had the machine" in content["source"]
    )
    device = Device.model_validate(content)
    assert (device.int8, device.peak("fp16"), device.bandwidth) == (None, 1e12, 1e10)
