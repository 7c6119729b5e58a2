"""Exported directories in vLLM itself: log probabilities as transformers', where PLAS_VLLM names a Python that has vllm.

Position by position and through eight steps of decoding, prompts longer than the windows: root mean square of the difference of
centred log probabilities over their standard deviation. Both in 32 bits; Gated DeltaNet, which vLLM's processor kernel has in bfloat16
only, against how far transformers' own bfloat16 is from its 32 bits. Weights are three times the recipe's and norms differ from 1, so
that what is left out shows.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nas.errors import UsageError
from nas.export.families import refuse_stack
from nas.export.model import Model
from nas.export.stack_files import parsed
from nas.export.stacks import hf
from plas_stacks import vllm
from plugins.stacks.tests.test_llama_cpp_transformers import exported_values

Floats = NDArray[np.float32]
Exported = Callable[..., Model]
pytestmark = pytest.mark.slow
BASE: dict[str, Any] = {
    "depth": 3,
    "width": 256,
    "n_heads": 4,
    "head_dim": 64,
    "n_kv_heads": 2,
    "expert_size": 512,
    "vocabulary": 300,
}
EXPERTS = {"n_experts": 4, "top_k": 2, "expert_size": 256}
WINDOWS = {**BASE, "depth": 5, "n_local": 3, "window": 16}
SHARING = {**WINDOWS, "depth": 6, "n_local": 4, "norms_per_layer": 4, "n_kv_shared": 3, "n_kv_shared_local": 2}
CONVOLUTIONS = {**BASE, "depth": 5, "n_conv": 3, "conv_kernel": 3}
LINEAR = {**BASE, "depth": 5, "n_linear": 3, "linear_heads": 8, "linear_value_dim": 64, "linear_kernel": 4}
MAMBA2 = {**LINEAR, "linear_kind": "mamba2", "linear_key_heads": 1, "linear_key_dim": 32, "qk_norm": "no"}
DELTANET = {
    **LINEAR,
    **EXPERTS,
    "linear_kind": "deltanet",
    "linear_key_heads": 4,
    "linear_key_dim": 64,
    "attention_gate": True,
    "shared_expert_size": 128,
    "shared_gate": True,
    "tied": False,
}
CASES: dict[str, dict[str, Any]] = {
    "dense": BASE,
    "untied": {**BASE, "tied": False},
    "wide heads": {**BASE, "n_heads": 8},
    "experts": {**BASE, **EXPERTS},
    "one expert": {**BASE, **EXPERTS, "top_k": 1},
    "qwen2": {**BASE, "qk_norm": "no", "qkv_bias": True},
    "llama": {**BASE, "qk_norm": "no"},
    "windows": WINDOWS,
    "windows, wide heads": {**WINDOWS, "n_heads": 8, "tied": False},
    "windows, experts": {**WINDOWS, **EXPERTS},
    "windows, one expert": {**WINDOWS, **EXPERTS, "top_k": 1, "tied": False},
    "four norms": {**WINDOWS, "norms_per_layer": 4},
    "four norms, wide heads": {**WINDOWS, "norms_per_layer": 4, "n_heads": 8, "tied": False},
    "shared caches": SHARING,
    "shared caches, wide heads": {**SHARING, "n_heads": 8, "tied": False},
    "shared caches, period 1": {**SHARING, "n_local": 3, "n_kv_shared": 2, "n_kv_shared_local": 0},
    "conv": CONVOLUTIONS,
    "conv, four wide": {**CONVOLUTIONS, "conv_kernel": 4},
    "conv, experts": {**CONVOLUTIONS, **EXPERTS},
    "conv, dense first": {**CONVOLUTIONS, **EXPERTS, "top_k": 1, "n_dense": 2, "dense_size": 400},
    "mamba2": MAMBA2,
    "mamba2, groups": {**MAMBA2, "linear_key_heads": 2, "linear_value_dim": 32},
    "mamba2, shared expert": {**MAMBA2, **EXPERTS, "shared_expert_size": 128},
    "deltanet": DELTANET,
    "deltanet, wide": {**DELTANET, "linear_heads": 4, "linear_key_heads": 2, "linear_key_dim": 128, "linear_value_dim": 128},
}  # fmt: skip
#: What vLLM loads and computes otherwise, which an export refuses by name.
WRONG: dict[str, dict[str, Any]] = {
    "mamba2, wide heads": {**MAMBA2, "n_heads": 8},
    "deltanet, tied": {**DELTANET, "tied": True},
}
PROMPT = [(7 * i * i + 3 * i) % 300 for i in range(70)]
TOKENS = 8
WORKER = Path(__file__).with_name("vllm_logprobs.py")


def stirred(model: Model) -> dict[str, Floats]:
    """The exported weights, three times as large, vectors moved, every value exact in bfloat16."""
    random, found = np.random.default_rng(0), {}
    for name, values in exported_values(model).items():
        large = values * 3 if values.ndim > 1 and "embed" not in name else values
        moved = large + 0.2 * random.standard_normal(values.shape) if values.ndim == 1 else large
        bits = np.ascontiguousarray(moved, np.float32).view(np.uint32)
        found[name] = (bits & np.uint32(0xFFFF0000)).view(np.float32)
    return found


def settings(folder: Path, name: str) -> dict[str, Any]:
    """The type of a case's weights, and whose code the written script asks for."""
    (run, _) = parsed((folder / vllm.FILE).read_text(), vllm.PROGRAM)
    kind = {"dtype": "bfloat16" if name.startswith("deltanet") else "float32"}
    return {**kind, **({"model_impl": run["--model-impl"]} if "--model-impl" in run else {})}


@pytest.fixture(scope="module")
def folders(exported: Exported, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every case exported and run in one process of vLLM."""
    interpreter = os.environ.get("PLAS_VLLM")
    if not interpreter or shutil.which(interpreter) is None:
        pytest.skip("PLAS_VLLM names no Python with vllm")
    from safetensors.numpy import save_file

    place, jobs = tmp_path_factory.mktemp("vllm"), []
    for name, columns in {**CASES, **WRONG}.items():
        folder, model = place / name, exported(columns, weights=True)
        for stack in (hf, vllm):
            folder.mkdir(exist_ok=True)
            stack.emit(model, folder)
        save_file(stirred(model), folder / "model.safetensors", {"format": "pt"})
        jobs.append({"folder": str(folder), "prompt": PROMPT, "tokens": TOKENS, "settings": settings(folder, name)})
    done = subprocess.run([interpreter, str(WORKER)], input=json.dumps(jobs).encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    return place


def reference(folder: Path, tokens: list[int], dtype: str = "float32", **changed: Any) -> Floats:
    """Log probabilities of transformers, (tokens, vocabulary)."""
    import torch
    from transformers import AutoModelForCausalLM

    built = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype), **changed).eval()
    with torch.no_grad():
        return np.asarray(torch.log_softmax(built(torch.tensor([tokens]), use_cache=False).logits[0].float(), -1))


def difference(ours: Floats, theirs: Floats) -> Floats:
    """Of every position."""
    a, b = (each - each.mean(-1, keepdims=True) for each in (ours, theirs))
    return np.asarray(np.sqrt(((a - b) ** 2).mean(-1)) / b.std(-1))


def found(folder: Path) -> tuple[Floats, list[int]]:
    """What vLLM said: log probabilities, and prompt and answer."""
    error = folder / "error.txt"
    assert not error.exists(), error.read_text()
    return np.load(folder / "logprobs.npy"), [*PROMPT, *json.loads((folder / "said.json").read_text())]


@pytest.mark.parametrize("name", CASES)
def test_log_probabilities_are_transformers(exported: Exported, folders: Path, name: str) -> None:
    """Prompt and steps, whatever the class; the export takes the stack."""
    refuse_stack(exported(CASES[name]).architecture, "vllm")
    theirs, tokens = found(folders / name)
    exact = reference(folders / name, tokens)[: len(theirs)]
    if name.startswith("deltanet"):
        rounded = reference(folders / name, tokens, "bfloat16")[: len(theirs)]
        assert np.median(difference(theirs, exact)) < 1.5 * np.median(difference(rounded, exact))
    else:
        assert difference(theirs, exact).max() < 1e-4
        assert tokens[len(PROMPT) :] == list(exact[len(PROMPT) - 1 :].argmax(-1))


@pytest.mark.parametrize("name", ["windows", "windows, experts"])
def test_windows_would_be_missed(folders: Path, name: str) -> None:
    """The same weights with full attention in every layer say something else."""
    theirs, tokens = found(folders / name)
    full = reference(folders / name, tokens, sliding_window=10_000)[: len(theirs)]
    assert difference(theirs, full).max() > 0.05


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused_goes_wrong(exported: Exported, folders: Path, name: str) -> None:
    """The reason that the refusal gives holds in this version of vLLM."""
    with pytest.raises(UsageError, match="as vLLM has"):
        refuse_stack(exported(WRONG[name]).architecture, "vllm")
    theirs, tokens = found(folders / name)
    with np.errstate(invalid="ignore"):  # a head that was never loaded may hold anything
        off = difference(theirs, reference(folders / name, tokens)[: len(theirs)])
    assert not np.median(off) < 0.2
