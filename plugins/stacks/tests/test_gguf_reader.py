"""GGUF files read by the package that llama.cpp's own scripts read them with."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.export.checkpoint import blocks
from nas.export.model import Model
from plas_stacks.gguf import entries, write_gguf
from plugins.stacks.tests.llama_cpp import gguf_package

Exported = Callable[..., Model]


@pytest.mark.parametrize("name", ["dense", "top1", "untied", "qwen2"])
def test_gguf_reads_the_weights_of_the_directory(
    exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path, name: str
) -> None:
    model = exported(small[name], weights=True)
    write_gguf(tmp_path / "model.gguf", model)
    reader = gguf_package().GGUFReader(tmp_path / "model.gguf")
    held = {tensor.name: tensor.data for tensor in reader.tensors}
    assert [tensor.name for tensor in reader.tensors] == [entry.name for entry in entries(model)]
    for entry in entries(model):
        drawn = [np.concatenate(list(blocks(part, model.seed, number))) for number, part in entry.parts]
        values = (np.concatenate(drawn).astype(np.uint32) << 16).view(np.float32).reshape(entry.shape)
        assert np.array_equal(held[entry.name], values.astype(held[entry.name].dtype)), entry.name
    assert reader.get_field("tokenizer.ggml.model").contents() == "none"
