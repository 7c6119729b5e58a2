"""Exports read by the stacks' own code, where they are installed: torchtitan, LLaMA-Factory, Megatron core."""

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from nas.export.model import Model
from nas.export.stack_files import parsed
from nas.export.stacks import hf
from objectives import counts
from plas_stacks import llamafactory, megatron, torchtitan
from tests.sources import ROOT

Exported = Callable[..., Model]
pytestmark = pytest.mark.extended
NAMES = ("dense", "top1", "top2", "untied", "qwen2", "llama", "wide heads")
TITAN = """
import json, sys, torch
from torchtitan.config import ConfigManager
config = ConfigManager().parse_args(["--module", "candidate", "--config", "candidate"])
spec = config.model_spec.model
spec.update_from_config(config=config)
with torch.device("meta"):
    model = spec.build()
shared = {id(p): p.numel() for p in model.parameters()}
groups = config.optimizer.param_groups
print(json.dumps({"total": sum(shared.values()), "norm": getattr(spec, "norm_topk_prob", None), "steps": config.training.steps,
    "lr": groups[0].optimizer_kwargs["lr"], "betas": groups[0].optimizer_kwargs["betas"], "sequence": config.training.seq_len}))
"""
FACTORY = """
import json
from llamafactory.hparams.parser import _parse_train_args
m, d, t, f, _ = _parse_train_args(json.load(open("arguments.json")))
print(json.dumps({"scratch": m.train_from_scratch, "aux": m.moe_aux_loss_coef, "lr": t.learning_rate, "steps": t.max_steps,
    "warmup": t.warmup_steps, "beta2": t.adam_beta2, "decay": t.weight_decay, "sequence": d.cutoff_len, "stage": f.stage,
    "schedule": t.lr_scheduler_type.value, "kwargs": t.lr_scheduler_kwargs, "clip": t.max_grad_norm}))
"""


def needs(package: str) -> None:
    """Skip by name where a stack is not installed."""
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


def said(script: str, folder: Path, *paths: Path) -> dict[str, Any]:
    """What a script prints in an interpreter of its own."""
    environment = {"PYTHONPATH": ":".join(map(str, (*paths, ROOT))), "DISABLE_VERSION_CHECK": "1", "HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


@pytest.mark.parametrize("name", NAMES)
def test_torchtitan_builds_our_parameters(
    exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path, name: str
) -> None:
    needs("torchtitan")
    model = exported(small[name], recipe="scaled")
    for stack, folder in ((hf, "hf"), (torchtitan, "torchtitan")):
        (tmp_path / folder).mkdir()
        stack.emit(model, tmp_path / folder)
    found = said(TITAN, tmp_path, tmp_path / "torchtitan")
    assert found["total"] == counts.total(model.architecture)[0]
    assert found["norm"] == ({"top1": False, "top2": True}.get(name))
    assert (found["steps"], found["sequence"], found["betas"]) == (19_074, 2048, [0.9, 0.95])
    assert found["lr"] == model.schedule.peak


@pytest.mark.parametrize("name", ["dense", "top1"])
def test_llamafactory_reads_our_recipe(
    exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path, name: str
) -> None:
    needs("llamafactory")
    model = exported(small[name], recipe="scaled")
    (tmp_path / "hf").mkdir()
    hf.emit(model, tmp_path / "hf")
    arguments = {**llamafactory.content(model), "use_cpu": True}
    (tmp_path / "arguments.json").write_text(json.dumps(arguments))
    found = said(FACTORY, tmp_path)
    plan = model.schedule
    assert found == {
        "scratch": True,
        "aux": 0.01 if name == "top1" else None,
        "lr": plan.peak,
        "steps": 19_074,
        "warmup": 38,
        "beta2": 0.95,
        "decay": 0.01,
        "sequence": 2048,
        "stage": "pt",
        "schedule": "cosine_with_min_lr",
        "kwargs": {"min_lr": plan.final},
        "clip": 1.0,
    }


@pytest.mark.parametrize("name", NAMES)
def test_megatron_core_takes_our_arguments(
    exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path, name: str
) -> None:
    needs("megatron")
    from megatron.core.transformer.transformer_config import TransformerConfig

    megatron.emit(exported(small[name]), tmp_path)
    (flags,) = parsed((tmp_path / "train.sh").read_text(), megatron.PROGRAM)
    integers = [
        "num-layers",
        "hidden-size",
        "num-attention-heads",
        "num-query-groups",
        "kv-channels",
        "ffn-hidden-size",
    ]
    sparse = {"num-experts": "num_moe_experts", "moe-router-topk": "moe_router_topk"}
    named = {i: i.replace("-", "_") for i in [*integers, "moe-ffn-hidden-size"]} | sparse
    settings: dict[str, Any] = {key: int(flags[f"--{flag}"]) for flag, key in named.items() if f"--{flag}" in flags}
    settings |= {
        "qk_layernorm": "--qk-layernorm" in flags,
        "add_qkv_bias": "--add-qkv-bias" in flags,
        "add_bias_linear": "--disable-bias-linear" not in flags,
        "gated_linear_unit": "--swiglu" in flags,
        "normalization": flags["--normalization"],
        "moe_router_pre_softmax": "--moe-router-pre-softmax" in flags,
    }
    assert TransformerConfig(**settings).num_query_groups == small[name]["n_kv_heads"]
    if name == "top1":
        with pytest.raises(ValueError, match="pre-softmax"):
            TransformerConfig(**{**settings, "moe_router_pre_softmax": False})
