"""The torch worker's QK-norm against a definition in NumPy; torch itself is stood in for by what the norm uses."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import plas_board.measure.workers

WORKER = Path(plas_board.measure.workers.__file__).with_name("torch_worker.py")


def rms_norm(x: Any, shape: tuple[int, ...], weight: Any) -> Any:
    """What torch.nn.functional.rms_norm does over the last dimension."""
    assert shape == x.shape[-1:]
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True)) * weight


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The worker's module with NumPy in the place of torch."""
    for name in ("float32", "bfloat16", "float16", "inference_mode"):
        monkeypatch.setattr(np, name, getattr(np, name, lambda: lambda function: function), raising=False)
    functional = SimpleNamespace(rms_norm=rms_norm)
    torch = ModuleType("torch")
    torch.__dict__.update({name: getattr(np, name) for name in ("float32", "bfloat16", "float16", "inference_mode")})
    torch.__dict__["ones"] = lambda *shape, **place: np.ones(shape)
    torch.__dict__["empty"] = lambda *shape, **place: SimpleNamespace(normal_=lambda mean, sd: np.full(shape, sd))
    nn = ModuleType("torch.nn")
    nn.__dict__["functional"] = functional
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.nn", nn)
    spec = importlib.util.spec_from_file_location("torch_worker_under_test", WORKER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SHAPE = {"width": 32, "head_dim": 8, "n_heads": 4, "n_kv_heads": 2, "n_experts": 1, "top_k": 1, "expert_size": 16}


@pytest.mark.parametrize(("kind", "sizes"), [("head", [8, 8]), ("full", [32, 16]), ("no", None), (None, [8, 8])])
def test_norms_of_queries_and_keys(worker: ModuleType, kind: str | None, sizes: list[int] | None) -> None:
    """A layer has the norm that its architecture states, per head unless it says otherwise."""
    layer = worker.Layer(SHAPE | ({} if kind is None else {"qk_norm": kind}), {})
    assert [None if norm is None else len(norm) for norm in layer.qk_norms] == (sizes or [None, None])


@pytest.mark.parametrize("size", [8, 32])
def test_norm(worker: ModuleType, size: int) -> None:
    """Every group of `size` values of a token has mean square 1 times its weights."""
    rng = np.random.default_rng(0)
    x, norm = rng.normal(size=(2, 3, 32)), rng.uniform(0.5, 2.0, size)
    found = worker.normed(x, norm)
    assert found.shape == x.shape
    for group in range(32 // size):
        part = slice(group * size, (group + 1) * size)
        expected = x[..., part] / np.sqrt((x[..., part] ** 2).mean(-1, keepdims=True)) * norm
        np.testing.assert_allclose(found[..., part], expected, rtol=1e-12)
    assert worker.normed(x, None) is x


@pytest.mark.parametrize("top_k", [1, 2])
def test_experts_at_once(top_k: int) -> None:
    """Grouped products give what expert after expert gives, an expert that no token chose among them."""
    torch = pytest.importorskip("torch")
    from plas_board.measure.workers import torch_worker

    torch.manual_seed(0)
    shape = SHAPE | {"n_experts": 6, "top_k": top_k}
    layer = torch_worker.Layer(shape, {"dtype": torch.float32, "device": "cpu"})
    tokens = torch.randn(5, 32)
    one_by_one = layer.ffn(tokens)
    layer.grouped = True
    assert torch.allclose(layer.ffn(tokens), one_by_one, atol=1e-5)
    assert float(one_by_one.abs().max()) > 0.1
