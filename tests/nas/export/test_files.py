"""What is written, checked without any stack: parameters, spellings, weights, tokenizer, recipes."""

import json
import math
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.errors import UsageError
from nas.export import checkpoint
from nas.export.checkpoint import Tensor, tensors
from nas.export.families import family_of
from nas.export.hf_config import architecture_of, config_of
from nas.export.launch_list import changes, to_multiple
from nas.export.model import Model
from nas.export.recipe import gpu_hours, load_recipe, schedule, training_flops
from nas.export.stack_files import architecture_fields
from nas.export.tokenizer import byte_level, refuse_larger, tokenizer_for
from nas.problem.problem import Problem
from nas.study.baselines import baseline
from objectives import counts
from plas_stacks.gguf import entries, holds, read_gguf, write_gguf
from search_spaces.architectures import Architectures, one

Exported = Callable[..., Model]
NAMES = ("dense", "top1", "top2", "untied", "qwen2", "llama", "wide heads")


@pytest.mark.parametrize("name", NAMES)
def test_tensors_hold_our_parameters(exported: Exported, small: dict[str, dict[str, Any]], name: str) -> None:
    model = exported(small[name])
    assert sum(t.size for t in tensors(model)) == counts.total(model.architecture)[0]


def test_tensors_of_published_models_hold_their_parameters(exported: Exported) -> None:
    for name, total in (
        ("qwen2.5_0.5b", 494_032_768),
        ("qwen3_30b_a3b", 30_532_122_624),
        ("llama_3.2_1b", 1_235_814_400),
    ):
        assert sum(t.size for t in tensors(exported(baseline(name).architecture))) == total


@pytest.mark.parametrize("name", NAMES)
def test_config_reads_back(exported: Exported, small: dict[str, dict[str, Any]], name: str) -> None:
    model = exported(small[name])
    again = architecture_of(json.loads(json.dumps(config_of(model))))
    assert architecture_fields(again) == architecture_fields(model.architecture)


@pytest.mark.parametrize(("top_k", "renormalised"), [(1, False), (2, True), (3, True)])
def test_the_router_keeps_its_gradient(
    exported: Exported, small: dict[str, dict[str, Any]], top_k: int, renormalised: bool
) -> None:
    config = config_of(exported({**small["top1"], "top_k": top_k}))
    assert config["norm_topk_prob"] is renormalised
    assert config["output_router_logits"] is False
    assert config["num_experts"] == config["num_local_experts"] == 4


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("num_local_experts", 128, "num_local_experts"),
        ("dtype", "float32", "dtype"),
        ("rope_theta", 10_000, "rope_parameters"),
        ("norm_topk_prob", True, "norm_topk_prob"),
        ("output_router_logits", True, "output_router_logits"),
        ("mlp_only_layers", [0], "mlp_only_layers"),
        ("eos_token_id", 300, "eos_token_id"),
        ("model_type", "gemma", "model_type"),
        ("attention_bias", True, "attention_bias"),
    ],
)
def test_a_config_that_readers_would_understand_differently_is_refused(
    exported: Exported, small: dict[str, dict[str, Any]], key: str, value: object, named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        architecture_of({**config_of(exported(small["top1"])), key: value})


@pytest.mark.parametrize(
    ("name", "class_name"),
    [
        ("gemma_2_2b", "Gemma2ForCausalLM"),
        ("gemma_3_1b", "Gemma3ForCausalLM"),
        ("olmoe_1b_7b", "OlmoeForCausalLM"),
        ("qwen1.5_moe_a2.7b", "Qwen2MoeForCausalLM"),
    ],
)
def test_published_models_have_their_own_class(name: str, class_name: str) -> None:
    assert family_of(baseline(name).architecture).class_name == class_name


def test_weights_have_the_recipe_deviations(exported: Exported, small: dict[str, dict[str, Any]]) -> None:
    model = exported({**small["top1"], "width": 256, "depth": 8}, recipe="scaled")
    held = {t.name: t for t in tensors(model)}
    assert held["model.layers.3.self_attn.q_proj.weight"].std == 0.04
    for name in ("self_attn.o_proj", "mlp.experts.1.down_proj"):
        assert held[f"model.layers.3.{name}.weight"].std == pytest.approx(0.01, rel=1e-12)
    drawn = np.concatenate(list(checkpoint.blocks(Tensor("x", (300, 300), 0.04), 0, 5)))
    values = (drawn.astype(np.uint32) << 16).view(np.float32)
    assert values.std() == pytest.approx(0.04, rel=0.02)
    assert abs(values.mean()) < 0.001


def test_weights_are_repeatable_and_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = Tensor("x", (70, 30), 0.02)
    first = np.concatenate(list(checkpoint.blocks(tensor, 1, 0)))
    monkeypatch.setattr(checkpoint, "BLOCK", 512)
    assert np.array_equal(first, np.concatenate(list(checkpoint.blocks(tensor, 1, 0))))
    assert not np.array_equal(first, np.concatenate(list(checkpoint.blocks(tensor, 2, 0))))
    assert not np.array_equal(first, np.concatenate(list(checkpoint.blocks(tensor, 1, 1))))


def test_bfloat16_rounds_to_even() -> None:
    given = np.array([1.0, -2.5, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 0.0], dtype=np.float32)
    assert checkpoint.bfloat16(given).tolist() == [0x3F80, 0xC020, 0x3F80, 0x3F82, 0x3F81, 0]


def test_large_weights_are_sharded(
    exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "SHARD_BYTES", 200_000)
    model = exported(small["top2"])
    checkpoint.write_weights(tmp_path, model)
    index = json.loads((tmp_path / checkpoint.INDEX).read_text())
    assert index["metadata"]["total_size"] == checkpoint.weight_bytes(model)
    assert set(index["weight_map"]) == {t.name for t in tensors(model)} == set(checkpoint.read_headers(tmp_path))
    shards = sorted(set(index["weight_map"].values()))
    assert len(shards) > 2
    assert shards[0] == f"model-00001-of-{len(shards):05}.safetensors"
    (tmp_path / shards[1]).write_bytes((tmp_path / shards[1]).read_bytes()[:-1])
    with pytest.raises(ValueError, match=shards[1]):
        checkpoint.read_headers(tmp_path)


def test_gguf_holds_every_weight(exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    model = exported(small["top2"])
    write_gguf(tmp_path / "m.gguf", model)
    metadata, held = read_gguf(tmp_path / "m.gguf")
    assert metadata["general.architecture"] == "qwen3moe"
    assert sum(math.prod(shape) for _, shape in held.values()) == counts.total(model.architecture)[0]
    assert held["blk.1.ffn_down_exps.weight"] == (1, (4, 128, 96))
    assert list(held) == [entry.name for entry in entries(model)]
    (tmp_path / "m.gguf").write_bytes((tmp_path / "m.gguf").read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"m\.gguf"):
        read_gguf(tmp_path / "m.gguf")


def test_the_byte_level_vocabulary_is_gpt2s() -> None:
    content = json.loads(byte_level().files["tokenizer.json"])
    vocabulary = content["model"]["vocab"]
    assert sorted(vocabulary.values()) == list(range(257))
    assert (vocabulary["Ġ"], vocabulary["Ċ"], vocabulary["!"], vocabulary["ÿ"]) == (32, 10, 33, 255)


def tokenizer_folder(folder: Path, eos: object = "<end>") -> Path:
    """A given tokenizer of 5 ids, the last added."""
    added = [{"id": 4, "content": "<end>"}]
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3}}
    (folder / "tokenizer.json").write_text(json.dumps({"model": model, "added_tokens": added}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": eos, "bos_token": {"content": "a"}}))
    (folder / "weights.bin").write_text("not copied")
    return folder


def test_a_given_tokenizer_is_copied_with_its_special_ids(tmp_path: Path) -> None:
    found = tokenizer_for(str(tokenizer_folder(tmp_path)))
    assert (found.size, found.eos, found.bos, found.pad) == (5, 4, 0, 4)
    assert sorted(found.files) == ["tokenizer.json", "tokenizer_config.json"]
    refuse_larger(found, 5)
    with pytest.raises(UsageError, match="--vocabulary 5"):
        refuse_larger(found, 4)
    with pytest.raises(UsageError, match="eos_token"):
        tokenizer_for(str(tokenizer_folder(tmp_path, eos="<other>")))
    with pytest.raises(UsageError, match=r"tokenizer\.json"):
        tokenizer_for(str(tmp_path / "nowhere"))


def test_recipe_paper_is_the_papers() -> None:
    recipe = load_recipe("paper")
    rate = recipe.learning_rate
    assert (recipe.tokens, recipe.global_batch, recipe.weight_decay) == (10e9, 256, 0.01)
    assert (recipe.beta1, recipe.beta2, rate.peak, rate.final, rate.warmup_share) == (0.9, 0.95, 1e-4, 1e-6, 0.002)


def test_recipe_scaled_is_paper_at_its_reference() -> None:
    reference = one({"depth": 16, "width": 1024, "n_kv_heads": 4, "expert_size": 1024})
    assert schedule(load_recipe("scaled"), reference) == schedule(load_recipe("paper"), reference)
    plan = schedule(load_recipe("scaled"), one({"depth": 4, "width": 2048, "n_kv_heads": 4, "expert_size": 1024}))
    assert plan.peak == pytest.approx(1e-4, rel=1e-12)  # half for twice the width, twice for a quarter of the depth
    assert plan.std == pytest.approx(0.02 / math.sqrt(2), rel=1e-12)
    assert plan.residual_std == pytest.approx(0.02 / math.sqrt(2) / math.sqrt(8), rel=1e-12)
    assert (plan.steps, plan.warmup_steps) == (19_074, 38)


def test_single_experts_start_with_the_weight_of_a_dense_branch(tmp_path: Path) -> None:
    """With K = 1 the router weighs the chosen expert by 1/E at first; of more it makes the weights add up to 1."""
    text = Path(str(files("nas.export.recipes") / "scaled.yaml")).read_text(encoding="utf-8")
    (tmp_path / "own.yaml").write_text(
        text.replace("residual_by_depth: true", "residual_by_depth: true\n  single_expert_by_count: true")
    )
    sizes = {"depth": 4, "width": 2048, "n_kv_heads": 4, "expert_size": 1024}
    for recipe, experts, chosen, factor in (
        (str(tmp_path / "own.yaml"), 8, 1, 8),
        (str(tmp_path / "own.yaml"), 8, 2, 1),
        (str(tmp_path / "own.yaml"), 1, 1, 1),
        ("scaled", 8, 1, 1),
    ):
        plan = schedule(load_recipe(recipe), one({**sizes, "n_experts": experts, "top_k": chosen}))
        assert plan.expert_std == factor * plan.residual_std


def test_a_faulty_recipe_names_every_fault_with_its_line(tmp_path: Path) -> None:
    content = "name: mine\ntokens: -1\nglobal_batch: 256\nbeta1: 0.9\nbeta2: 1.5\nweigth_decay: 0.1\n"
    (tmp_path / "r.yaml").write_text(content)
    with pytest.raises(UsageError) as caught:
        load_recipe(str(tmp_path / "r.yaml"))
    lines = str(caught.value)
    for place in ("r.yaml:2: tokens", "r.yaml:5: beta2", "r.yaml:6: weigth_decay", "learning_rate"):
        assert place in lines
    assert "did you mean weight_decay?" in lines


def test_training_flops_of_one_by_hand() -> None:
    recipe = load_recipe("paper")
    a = one(
        {"depth": 3, "width": 128, "n_kv_heads": 1, "expert_size": 64, "n_experts": 4, "top_k": 2, "vocabulary": 500}
    )
    per_layer = 2 * 128 * 128 + 2 * 128 * 64 + 2 * 3 * 128 * 64 + 4 * 128
    scores = sum(2 * 2 * 128 * (i + 1) for i in range(2048)) / 2048
    expected = 3 * 10e9 * (3 * (2 * per_layer + scores) + 2 * 500 * 128)
    assert training_flops(a, recipe)[0] == pytest.approx(expected, rel=1e-12)
    assert gpu_hours(training_flops(a, recipe), recipe)[0] == pytest.approx(
        expected / (0.4 * 989.5e12 * 3600), rel=1e-3
    )


def test_an_unknown_accelerator_is_a_fault_of_the_recipe() -> None:
    recipe = load_recipe("paper").model_copy(update={"accelerator": "h100_sxn"})
    with pytest.raises(UsageError, match=r"recipe paper: accelerator: expected a device.*did you mean h100_sxm"):
        gpu_hours(np.ones(1), recipe)


@st.composite
def architectures(draw: st.DrawFn) -> Architectures:
    """Any architecture that a class holds."""
    experts = draw(st.integers(1, 12))
    flags = draw(st.sampled_from([{}, {"qk_norm": "no"}, {"qk_norm": "no", "qkv_bias": True}])) if experts == 1 else {}
    kv = draw(st.integers(1, 4))
    columns = {
        "depth": draw(st.integers(1, 5)),
        "width": draw(st.integers(1, 40)) * 8,
        "head_dim": draw(st.sampled_from([16, 64, 128])),
        "n_kv_heads": kv,
        "n_heads": kv * draw(st.integers(1, 4)),
        "n_experts": experts,
        "top_k": draw(st.integers(1, max(experts - 1, 1))),
        "expert_size": draw(st.integers(1, 500)),
        "vocabulary": draw(st.integers(257, 1000)),
        "tied": draw(st.booleans()),
    }
    return one({**columns, **flags})


@given(architectures())
def test_any_architecture_reads_back_with_all_its_parameters(exported: Exported, architecture: Architectures) -> None:
    model = exported(architecture)
    wanted = architecture_fields(architecture)
    assert architecture_fields(architecture_of(json.loads(json.dumps(config_of(model))))) == wanted
    assert sum(t.size for t in tensors(model)) == counts.total(architecture)[0]
    if holds(model):
        assert sum(math.prod(e.shape) for e in entries(model)) == counts.total(architecture)[0]


def test_rounding_shows_both_numbers(default_problem: Problem) -> None:
    asked = Architectures.concatenate(
        [one({"depth": 8, "width": 768, "n_kv_heads": 4, "expert_size": m}) for m in (96, 160, 20, 512)]
    )
    exported = to_multiple(asked, 64)
    assert exported.expert_size.tolist() == [128, 192, 64, 512]
    assert asked.expert_size.tolist() == [96, 160, 20, 512]
    found = changes(default_problem, asked, exported)
    assert found[3] is None
    assert found[0] is not None
    before, after = (default_problem.assess(x) for x in (asked, exported))
    assert found[0].loss == (before["loss"][0], after["loss"][0])
    assert found[0].total_ms == (before["total_ms"][0], after["total_ms"][0])
    assert found[0].ffn_ratio == (0.125, 128 / 768)
    assert "96 -> 128" in str(found[0])
