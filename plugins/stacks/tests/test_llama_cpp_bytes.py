"""Types and bytes of every tensor in the files that llama.cpp's own quantizer makes, and in types of 32 their content, where it is found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.export.gguf_formats import FORMATS
from nas.export.model import Model
from objectives.counts import total
from plas_stacks.gguf import entries, write_gguf
from plugins.stacks.tests.llama_cpp import gguf_package, quantised, quantiser

pytestmark = pytest.mark.slow
BASE: dict[str, Any] = {"depth": 16, "width": 512, "n_kv_heads": 2, "expert_size": 768, "vocabulary": 512}
EXPERTS = {**BASE, "depth": 5, "n_experts": 4, "top_k": 2, "expert_size": 256}
MODELS: dict[str, dict[str, Any]] = {
    "dense": BASE,
    "two tables": {**BASE, "tied": False},
    "13 layers": {**BASE, "depth": 13},
    "width and FFN no multiples of 256": {**BASE, "width": 320, "n_kv_heads": 1, "expert_size": 864, "depth": 9},
    "FFN no multiple of 32": {**BASE, "depth": 7, "expert_size": 520},
    "experts": EXPERTS,
    "8 experts, two tables": {**EXPERTS, "n_experts": 8, "tied": False, "depth": 11},
    "experts of 96": {**EXPERTS, "expert_size": 96},
}


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind != "f16"])
@pytest.mark.parametrize("name", MODELS)
def test_bytes_are_llama_cpps(exported: Callable[..., Model], tmp_path: Path, name: str, kind: str) -> None:
    gguf, _ = gguf_package(), quantiser()
    write_gguf(tmp_path / "half.gguf", exported(MODELS[name], weights=True))
    theirs = {t.name: t for t in gguf.GGUFReader(quantised(tmp_path / "half.gguf", kind)).tensors}
    model = exported(MODELS[name], weights=True, gguf=kind)
    ours = {entry.name: entry for entry in entries(model)}
    assert {n: (e.kind.name, e.bytes) for n, e in ours.items()} == {
        n: (t.tensor_type.name, int(t.n_bytes)) for n, t in theirs.items()
    }
    write_gguf(tmp_path / "ours.gguf", model)
    for tensor in gguf.GGUFReader(tmp_path / "ours.gguf").tensors:
        if not tensor.tensor_type.name.endswith("_K"):
            assert np.array_equal(tensor.data, theirs[tensor.name].data), tensor.name
    assert sum(int(t.n_elements) for t in theirs.values()) == total(model.architecture)[0]
