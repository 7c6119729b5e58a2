"""Published models by name: which shape a name means, and that every shape is the published one."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.errors import UsageError
from nas.study.baselines import baseline
from nas.study.config_file import architecture_of
from nas.study.towers import drafting
from objectives import published_models
from objectives.counts import total
from objectives.plugins import documents, normalised
from objectives.published_models import MODELS, further, model_ids, models_named

SHAPES = further()["models"]
AS_CLASS = {"kimi_k2": "deepseek_v3", "mimo": "qwen2", "mistral4": "deepseek_v3"}


def test_there_are_many_shapes_and_few_have_a_file() -> None:
    shapes = {str(baseline(name).architecture.columns()) for name in model_ids()}
    assert len(shapes) >= 190
    assert len(documents(MODELS)) < 50


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_has_the_published_parameters(name: str) -> None:
    """To 2 %, and nearly all exactly: some files store a tied table twice, or a layer that drafts tokens with tables of its own or without."""
    config, published = SHAPES[name]["config"], SHAPES[name]["published"]
    architecture = architecture_of(config)
    own, layer = int(total(architecture)[0]), np.nan_to_num(drafting(architecture))
    assert published == own + layer or own == pytest.approx(published, rel=0.02)
    assert SHAPES[name]["source"].startswith("https://")


def test_nearly_all_shapes_are_exact() -> None:
    off = {name for name, e in SHAPES.items() if total(architecture_of(e["config"]))[0] != e["published"]}
    assert len(off) <= 15


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_has_the_parameters_of_transformers(name: str) -> None:
    """Built without memory."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    config = SHAPES[name]["config"]
    kind = AS_CLASS.get(config["model_type"], config["model_type"])
    if config["hidden_size"] % config["num_attention_heads"] and kind == "llama":
        kind = "mistral"  # Llama's class refuses what its weights allow
    if kind == "step3p5":
        kind, config = "laguna", as_laguna(config)
    with torch.device("meta"):
        own = transformers.AutoConfig.for_model(**{**config, "model_type": kind, "pad_token_id": 0})
        model = transformers.AutoModelForCausalLM.from_config(own)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    corrections = sum(p.numel() for p in model.parameters() if not p.requires_grad)  # of routers, stored beside them
    assert total(architecture_of(SHAPES[name]["config"]))[0] in (trained, trained + corrections)


def as_laguna(config: dict[str, Any]) -> dict[str, Any]:
    """A shape of Laguna, which is kept in Step 3.5's keys, in its own."""
    heads = (config["num_sliding_attention_heads"], config["num_attention_heads"])
    return config | {
        "num_experts": config["n_routed_experts"],
        "shared_expert_intermediate_size": config["share_expert_dim"],
        "num_attention_heads_per_layer": [heads[kind == "full_attention"] for kind in config["layer_types"]],
    }


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("qwen2.5-7b", "qwen2.5_7b"), ("Qwen2.5-Coder-3B-Instruct", "qwen2.5_3b"), ("HuggingFaceTB_SmolLM3-3B", "smollm3_3b"),
        ("meta-llama/Llama-3.2-1B-Instruct-Q4_K_M", "llama_3.2_1b"), ("Llama-3.2-1B-Instruct-q4f16_1-MLC", "llama_3.2_1b"),
        ("models--Qwen--Qwen3-0.6B", "qwen3_0.6b"), ("Qwen3-4B-Instruct-2507-UD-Q4_K_XL.gguf", "qwen3_4b"), ("llama_v3_2_1b_instruct", "llama_3.2_1b"),
        ("DeepSeek-R1-Distill-Qwen-7B", "qwen2.5_7b"), ("deepseek-ai_DeepSeek-R1-Distill-Qwen-1.5B-Q4_K_M", "deepseek_r1_distill_qwen_1.5b"),
        ("deepseek-r1:1.5b", "deepseek_r1_distill_qwen_1.5b"), ("Qwen3-235B-A22B-Q4_K_M-00001-of-00003.gguf", "qwen3_235b_a22b"),
        ("OpenVINO/Phi-4-mini-instruct-int4-ov", "phi_4_mini"), ("Qwen3-1.7B_w8a8_RK3588.rkllm", "qwen3_1.7b"), ("gpt-oss 20B MXFP4 MoE", "gpt_oss_20b"), ("qwen2.5:7b-instruct-q4_K_M", "qwen2.5_7b"), ("QwQ-32B-Preview", "qwen2.5_32b"),
        ("mlx-community/Qwen3-8B-4bit", "qwen3_8b"), ("Mixtral-8x22B-Instruct-v0.1", "mixtral_8x22b_instruct_v0.1"),
        ("Mixtral-8x22B-v0.1", "mixtral_8x22b_v0.1"), ("Mistral-Small-Instruct-2409", "mistral_small_2409"), ("phi_3_5_mini_instruct", "phi_3.5_mini"),
        ("gemma-3-4b-it-qat-q4_0", "gemma_3_4b"), ("Meta-Llama-3.1-405B-Instruct-FP8", "llama_3.1_405b"),
        ("mistralai_Mistral-Small-3.2-24B-Instruct-2506-Q4_K_M", "mistral_small_24b"), ("mistralai_Devstral-Small-2507-Q4_K_M", "mistral_small_24b"),
        ("devstral:24b", "mistral_small_24b"), ("mistralai_Magistral-Small-2507-Q4_K_M", "mistral_small_24b"), ("Phi-3-medium-4k-instruct-4bit", "phi_3_medium_4k"),
        ("aya-expanse-32b-Q4_K_M", "aya_expanse_32b"), ("EXAONE-3.5-2.4B-Instruct-Q4_K_M", "exaone_3.5_2.4b"), ("internlm2_5-1_8b-chat-Q4_K_M", "internlm2.5_1.8b"),
        ("internlm3-8b-instruct-Q4_K_M", "internlm3_8b"), ("nvidia_Nemotron-3-Nano-4B-Q4_K_M", "nemotron_3_nano_4b"), ("nemotron-3-nano:30b", "nemotron_3_nano_30b_a3b"),
        ("NVIDIA-Nemotron-3-Super-120B-A12B-Q4_K_M.gguf", "nemotron_3_super_120b_a12b"), ("glm-4-9b-chat-Q4_K_M", "glm_4_9b_chat"), ("GLM-4-9B-0414", "glm_4_9b_0414"),
        ("hf.co/unsloth/Mistral-Small-3.2-24B-Instruct-2506-GGUF:Q4_K_M", "mistral_small_24b"), ("TinyLlama-1.1B-Chat-v1.0.i1-Q4_K_M", "tinyllama_1.1b"),
        ("Mawdistical-S1_Infracelestial-27B-Q4_K_M", "qwen3.5_27b"), ("Qwen3VL-2B-Instruct-Q4_K_M", "qwen3_1.7b"), ("c4ai-command-r7b-12-2024-Q4_K_M", "command_r7b_12_2024"),
    ],
)  # fmt: skip
def test_names(name: str, model: str) -> None:
    assert models_named(name) == (model,)


@pytest.mark.parametrize(
    "name",
    ["gemma-34b", "LFM2.2-6B", "Qwen2.5-VL-7B", "Mistral-Small-Instruct-2501", "granite-3.1-2b-base", "Mistral-Small-4-24B", "Devstral-Small", "Infracelestial-7B", "gemma-3.Q8_0", "llama 7B mostly Q4_0", "Qwen", "", "/", "_", "-Q4_0"],
)  # fmt: skip
def test_a_name_of_another_shape_means_none(name: str) -> None:
    """Digits parted otherwise, another date, base where instruct is known, a tower."""
    assert models_named(name) == ()
    assert models_named(name + "_" * 10**6) == ()


def test_every_name_means_its_own_shape() -> None:
    named = {name: name for name in model_ids()} | {name: normalised(name) for name in SHAPES}
    named |= {alias: normalised(name) for name, aliases in further()["aliases"].items() for alias in aliases}
    assert set(named.values()) == set(model_ids())
    assert {name: models_named(name) for name in named} == {name: (model,) for name, model in named.items()}


def test_names_that_are_not_told_apart_are_refused_with_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """granite-3.3-8b is of base or of instruct, of vocabularies that differ; and two models whose names read alike."""
    with pytest.raises(UsageError, match=r"granite_3.3_8b_base or granite_3.3_8b_instruct"):
        baseline("granite-3.3-8b")
    first, other = (SHAPES[name] for name in ("Yi-6B", "Yi-9B"))
    twice: dict[str, Any] = {"models": {"Abc-1B": first, "ABC 1B": other}, "aliases": {}, "owners": []}
    monkeypatch.setattr(published_models, "further", lambda: twice)
    for function in (published_models.further_models, published_models.model_ids, published_models._by_words):
        function.cache_clear()
    try:
        assert models_named("abc-1b-instruct") == ("abc 1b", "abc_1b")
    finally:
        for function in (published_models.further_models, published_models.model_ids, published_models._by_words):
            function.cache_clear()


def test_shapes_are_those_of_the_list(tmp_path: Path) -> None:
    """One model a line, as `python -m studies.model_shapes` writes it."""
    text = (published_models.folder(MODELS) / "shapes.json").read_text(encoding="utf-8")
    assert sum(line.startswith('  "') for line in text.splitlines()) == len(SHAPES) + len(further()["aliases"])
    assert json.loads(text) == further()
