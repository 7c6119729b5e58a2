"""config.json of today's families: the parameters and the caches that transformers makes of them."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nas.errors import UsageError
from nas.search.assembly import assemble
from nas.study.baselines import model_named
from nas.study.config_file import architecture_of, read_config, stored_format
from nas.study.model_types import model_types
from objectives import counts, memory
from objectives.dimensions import Dimensions
from objectives.precision import precision
from objectives.scenario import Scenario
from tests.sources import ROOT

#: config.json of published models by their names, the keys that say a shape.
CONFIGS: dict[str, dict[str, Any]] = {
    content["model"]: content["config"]
    for path in sorted((ROOT / "conformance").glob("*.json"))
    if (content := json.loads(path.read_text(encoding="utf-8"))).get("kind") == "plas_conformance"
}
#: What the checkpoints hold, of text models; shared by their pages and by papers on them.
PUBLISHED = {
    "google/gemma-2-2b": 2_614_341_888,
    "google/gemma-3-270m": 268_098_176,
    "google/gemma-3-1b-pt": 999_885_952,
    "LiquidAI/LFM2-350M": 354_483_968,
    "LiquidAI/LFM2-1.2B": 1_170_340_608,
    "openai/gpt-oss-20b": 20_914_757_184,
    "openai/gpt-oss-120b": 116_829_156_672,
    "HuggingFaceTB/SmolLM3-3B": 3_075_098_624,
    "meta-llama/Llama-3.2-1B": 1_235_814_400,
    "mistralai/Mistral-7B-v0.1": 7_241_732_096,
    "mistralai/Mixtral-8x7B-v0.1": 46_702_792_704,
    "Qwen/Qwen1.5-MoE-A2.7B": 14_315_784_192,
    "Qwen/Qwen3-30B-A3B": 30_532_122_624,
    "Qwen/Qwen3-0.6B": 596_049_920,
    "allenai/OLMoE-1B-7B-0924": 6_919_161_856,
}


def built(config: dict[str, Any]) -> Any:
    """transformers' model of a configuration, on the meta device: shapes without memory."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    rest = {key: value for key, value in config.items() if key != "model_type"}
    made = transformers.AutoConfig.for_model(config["model_type"], **rest)
    with torch.device("meta"):
        return transformers.AutoModelForCausalLM.from_config(made)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_parameters_are_those_of_transformers(name: str) -> None:
    model = built(CONFIGS[name])
    assert counts.total(architecture_of(CONFIGS[name])).tolist() == [sum(p.numel() for p in model.parameters())]


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_the_published_ones(name: str) -> None:
    assert counts.total(architecture_of(CONFIGS[name])).tolist() == [PUBLISHED[name]]


SMALL = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 50, "head_dim": 16}
SMALL |= {"intermediate_size": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
CACHED: dict[str, dict[str, Any]] = {
    "qwen3": {"num_hidden_layers": 2},
    "gemma2": {"num_hidden_layers": 3, "sliding_window": 8},
    "gemma3_text": {"num_hidden_layers": 4, "sliding_window": 8, "sliding_window_pattern": 3},
    "gemma3n_text": {
        "num_hidden_layers": 10,
        "num_kv_shared_layers": 5,
        "sliding_window": 8,
        "laurel_rank": 4,
        "hidden_size_per_layer_input": 8,
        "vocab_size_per_layer_input": 50,
    },
    "gemma4_text": {
        "num_hidden_layers": 12,
        "num_kv_shared_layers": 6,
        "global_head_dim": 16,
        "sliding_window": 8,
        "hidden_size_per_layer_input": 8,
        "vocab_size_per_layer_input": 50,
    },
    "mellum": {
        "num_hidden_layers": 3,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "mlp_layer_types": ["dense", "sparse", "sparse"],
        "sliding_window": 8,
    }
    | EXPERTS,
    "gpt_oss": {"num_hidden_layers": 3, "sliding_window": 8, "num_local_experts": 4, "num_experts_per_tok": 2},
    "lfm2": {"num_hidden_layers": 4, "full_attn_idxs": [1], "conv_L_cache": 3},
    "lfm2_moe": {"num_hidden_layers": 3, "layer_types": ["conv", "full_attention", "conv"], "num_dense_layers": 1}
    | EXPERTS,
    "granitemoehybrid": {
        "num_hidden_layers": 3,
        "layer_types": ["mamba", "attention", "mamba"],
        "shared_intermediate_size": 64,
        "num_local_experts": 0,
        "mamba_n_heads": 8,
        "mamba_d_head": 16,
        "mamba_d_state": 12,
        "mamba_n_groups": 2,
    },
    "qwen3_next": {
        "num_hidden_layers": 4,
        "linear_num_value_heads": 4,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 16,
        "shared_expert_intermediate_size": 32,
    }
    | EXPERTS,
}
BATCH, READ, WRITTEN = 2, 21, 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", CACHED)
def test_caches_are_those_that_transformers_allocates(kind: str, fp32: Scenario) -> None:
    """Elements of keys and values, and of recurrences; of a convolution's inputs it keeps the newest, too."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    config = SMALL | CACHED[kind]
    made = transformers.AutoConfig.for_model(kind, **config)
    model = transformers.AutoModelForCausalLM.from_config(made).eval()
    cache = transformers.StaticCache(config=made, max_cache_len=READ + WRITTEN)
    with torch.no_grad():
        model(torch.randint(0, 50, (BATCH, READ)), past_key_values=cache, use_cache=True)
        for _ in range(WRITTEN):
            model(torch.randint(0, 50, (BATCH, 1)), past_key_values=cache, use_cache=True)
    x = Dimensions(architecture_of(config | {"model_type": kind}))
    kept = [getattr(layer, name, None) for layer in cache.layers for name in ("keys", "values")]
    assert sum(4 * t.numel() for t in kept if t is not None) == memory.kv_cache_of(x, fp32)[0]
    states = memory.state_bytes(x, fp32)
    ours = 0.0 if states is None else float(states[0])
    assert sum(4 * elements for layer in cache.layers for elements in state_elements(layer)) == ours


@pytest.mark.slow
@pytest.mark.parametrize("kind", CACHED)
def test_small_models_have_the_parameters_of_transformers(kind: str) -> None:
    config = SMALL | CACHED[kind] | {"model_type": kind}
    assert counts.total(architecture_of(config)).tolist() == [sum(p.numel() for p in built(config).parameters())]


HEADS_APART = CACHED["gemma4_text"] | {"global_head_dim": 32, "attention_k_eq_v": True, "num_global_key_value_heads": 1}
LATENT = {"num_hidden_layers": 3, "num_key_value_heads": 4, "n_routed_experts": 8, "n_shared_experts": 2, "head_dim": 4}
LATENT |= {"num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 1, "kv_lora_rank": 16}
LATENT |= {
    "q_lora_rank": 24,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 12,
    "n_group": 2,
    "topk_group": 1,
}
DELTANET = {
    name: CACHED["qwen3_next"][name] for name in CACHED["qwen3_next"] if name.startswith(("linear", "num_hidden"))
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("gemma4_text", HEADS_APART), ("deepseek_v2", LATENT), ("deepseek_v2", LATENT | {"q_lora_rank": None}),
        ("deepseek_v3", LATENT), ("glm4_moe_lite", LATENT), ("qwen3_5_text", DELTANET), ("ministral3", {"num_hidden_layers": 2}),
    ],
)  # fmt: skip
def test_heads_apart_and_latent_attention_have_the_parameters_of_transformers(kind: str, more: dict[str, Any]) -> None:
    """Without their caches: transformers keeps keys and values of all heads where engines keep the latent vector."""
    config = SMALL | more | {"model_type": kind}
    assert counts.total(architecture_of(config)).tolist() == [sum(p.numel() for p in built(config).parameters())]


def state_elements(layer: Any) -> Iterator[int]:
    """Elements of a layer's recurrences, and of the inputs that its convolutions still need: all but the oldest kept."""
    for state in (getattr(layer, "recurrent_states", None) or {}).values():
        yield 0 if state is None else state.numel()
    for state in (getattr(layer, "conv_states", None) or {}).values():
        yield 0 if state is None else state[..., 1:].numel()


@pytest.fixture(scope="module")
def fp32() -> Scenario:
    """Four bytes an element, and what the caches are asked to hold."""
    scenario = assemble({}, {}).problem.scenario
    workload = {"batch": BATCH, "input_tokens": READ, "output_tokens": WRITTEN}
    return replace(scenario, precision=precision("fp32"), **workload)


# Refused by name


def test_a_gemma_4_of_experts_and_ffns_of_two_sizes_is_refused() -> None:
    wide = SMALL | CACHED["gemma4_text"] | {"model_type": "gemma4_text", "use_double_wide_mlp": True}
    assert architecture_of(wide).n_dense.tolist() == [6]
    with pytest.raises(ValueError, match="use_double_wide_mlp: expected False beside experts, got True"):
        architecture_of(wide | EXPERTS | {"top_k_experts": 2, "enable_moe_block": True})


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("google/gemma-4-26B-A4B", "gemma_4_26b_a4b"), ("zai-org/GLM-4.7-Flash", "glm_4.7_flash"),
        ("Qwen/Qwen3.5-27B", "qwen3.5_27b"), ("deepseek-ai/DeepSeek-V2-Lite", "deepseek_v2_lite"),
    ],
)  # fmt: skip
def test_heads_apart_latent_attention_and_qwen_3_5(model: str, name: str, tmp_path: Path) -> None:
    """A config.json gives the columns of the shipped model, also where the text's part stands in one of several."""
    config, expected = dict(CONFIGS[model]), str(model_named(name).architecture.columns())
    assert str(architecture_of(config).columns()) == expected
    tied = {"tie_word_embeddings": config.pop("tie_word_embeddings")}
    (tmp_path / "config.json").write_text(json.dumps(tied | {"text_config": config}))
    assert str(read_config(tmp_path / "config.json").columns()) == expected


def test_dense_layers_of_mellum_stand_first() -> None:
    types = ["sparse", "dense", "sparse"]
    with pytest.raises(ValueError, match="mlp_layer_types: expected dense layers first"):
        architecture_of(SMALL | CACHED["mellum"] | {"model_type": "mellum", "mlp_layer_types": types})


@pytest.mark.parametrize("kind", model_types().outside)
def test_families_that_no_columns_hold_are_refused_by_name(kind: str) -> None:
    with pytest.raises(ValueError, match="model_type: expected layers that columns hold") as caught:
        architecture_of({**CONFIGS["Qwen/Qwen3-0.6B"], "model_type": kind})
    assert str(caught.value).endswith(f"got '{kind}', which has {model_types().outside[kind]}")


LLAMA = CONFIGS["meta-llama/Llama-3.2-1B"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kv_lora_rank": 512}, "which has latent attention (MLA)"),
        ({"num_key_value_heads": [4, 8] * 8}, "num_key_value_heads: expected one value for all layers, got several"),
        ({"intermediate_size": "x"}, "intermediate_size: expected a positive integer, got 'x'"),
        ({"layer_types": ["full_attention"]}, "layer_types: expected 16 names"),
        ({"layer_types": ["chunked_attention"] * 16}, "layer_types: expected some of full_attention"),
    ],
)
def test_what_a_config_says_that_columns_cannot_is_refused(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA | change))
    with pytest.raises(UsageError) as caught:
        model_named(str(tmp_path))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_explain_prices_a_config(inside: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "gemma-3n-E2B"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"text_config": CONFIGS["google/gemma-3n-E2B"]}))
    for named in ("gemma-3n-E2B", "gemma-3n-E2B/config.json"):
        answer = inside("explain", "--model", named, "--preset", "device", "--json")
        assert answer.code == 0, answer
        found = json.loads(answer.out)
        assert found["architecture"] == "gemma-3n-E2B"
        assert found["metrics"]["params_total"] == counts.total(architecture_of(CONFIGS["google/gemma-3n-E2B"]))[0]
        said = " ".join(found["remarks"])
        assert "24 of its 30 layers attend to the last 512 tokens; Layers: 10 that share a KV cache, of 30" in said
        assert "of its parameters are of tensors without an operator: counted and held in memory, no time" in said
    refused = inside("explain", "--model", "nowhere/config.json")
    assert (refused.code, refused.out) == (2, "")
    assert "expected a Hugging Face config.json, got No such file" in refused.err


W4 = {"num_bits": 4, "type": "int", "group_size": 128}
W8A8 = {"weights": {"num_bits": 8, "type": "int"}, "input_activations": {"num_bits": 8}}


@pytest.mark.parametrize(
    ("said", "words", "name"),
    [
        ({"quant_method": "mxfp4"}, "mxfp4", "mxfp4"),
        ({"quant_method": "awq", "bits": 4}, "awq, 4 bits", "w4a16"),
        ({"quant_method": "gptq", "bits": 3}, "gptq, 3 bits", ""),
        ({"quant_method": "fp8", "fmt": "e4m3"}, "fp8", "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4", "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, "mixed_precision", ""),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "bitsandbytes, 4 bits", ""),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"a": {"weights": W4}}},
         "pack-quantized and 4 bits int", "w4a16"),
        ({"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": {"a": W8A8}},
         "int-quantized and 8 bits int", "int8"),
        (None, "", ""),
    ],
)  # fmt: skip
def test_the_format_that_a_config_says_its_weights_have(said: Any, words: str, name: str) -> None:
    for content in ({"quantization_config": said}, {"text_config": {"quantization_config": said}}):
        assert stored_format(content) == (words, name)


@pytest.mark.slow
def test_a_config_is_priced_in_its_own_format_and_says_what_it_leaves_out(
    inside: Callable[..., Any], tmp_path: Path
) -> None:
    """Qwen3's text inside of a model that sees, its weights in 4 bits, on a device with and without their peak."""
    text = CONFIGS["Qwen/Qwen3-0.6B"] | {"model_type": "qwen3_vl_text", "num_nextn_predict_layers": 1}
    whole = {"model_type": "qwen3_vl", "tie_word_embeddings": True, "text_config": text, "vision_config": {"depth": 24}}

    def explained(said: dict[str, Any], *more: str) -> Any:
        (tmp_path / "seeing.json").write_text(json.dumps(whole | {"quantization_config": said}))
        return inside(
            "explain", "--model", "seeing.json", "--preset", "device", "--device", "rtx_4090", *more, "--json"
        )

    found = json.loads(explained({"quant_method": "awq", "bits": 4}).out)
    assert found["architecture"] == "seeing"
    assert (
        found["remarks"][0]
        == "Its config.json stores weights as awq, 4 bits: priced in w4a16; --precision takes another."
    )
    assert found["remarks"][1].startswith(
        "Left out: its vision tower (521 M parameters, 1.04 GB in 16 bits) and its 1 layer that drafts"
    )
    in_16 = json.loads(explained({"quant_method": "awq", "bits": 4}, "--precision", "fp16").out)
    assert in_16["remarks"][0] == "Warning: its config.json stores weights as awq, 4 bits; priced in fp16."
    assert found["resident_gb"]["linear weights"] < 0.3 * in_16["resident_gb"]["linear weights"]
    widened = json.loads(explained({"quant_method": "modelopt", "quant_algo": "NVFP4"}).out)
    assert "priced in nvfp4" in widened["remarks"][0]


def test_per_layer_tables_are_held_as_embeddings_are(fp32: Scenario) -> None:
    """Gemma 3n: two billion parameters of tables, which no token uses whole."""
    design = architecture_of(CONFIGS["google/gemma-3n-E2B"])
    tables = 262_144 * 256 * 30
    assert design.table_parameters.tolist() == [tables]
    assert counts.total(design)[0] - counts.active(design)[0] == tables
    of_file = replace(fp32, precision=precision("q4_k_m"))
    x, groups = Dimensions(design), counts.count(design)
    held = memory.resident_parts_gb(x, groups, of_file)["embeddings and head"][0]
    without = memory.resident_parts_gb(x, replace(groups, tables=0.0 * groups.tables), of_file)["embeddings and head"][
        0
    ]
    assert held - without == pytest.approx(tables * 4.5 / 8 / 1e9, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "bits"), [("int4", 4.0), ("int8", 8.0), ("w4a16", 4.15625), ("fp8", 8.0), ("fp16", 16.0)]
)
def test_per_layer_tables_have_the_bits_of_the_format(name: str, bits: float, fp32: Scenario) -> None:
    """Engines keep embedding and head in 16 bits, and never these: 2.35 billion parameters of Gemma 4 E2B."""
    design = architecture_of(CONFIGS["google/gemma-3n-E2B"])
    x, groups, scenario = Dimensions(design), counts.count(design), replace(fp32, precision=precision(name))
    held, without = (
        memory.embedding_bytes(x, each, scenario)[0] for each in (groups, replace(groups, tables=0.0 * groups.tables))
    )
    assert held - without == pytest.approx(design.table_parameters[0] * bits / 8, rel=1e-12)
    assert without == pytest.approx(2.0 * design.vocabulary[0] * design.width[0], rel=1e-12)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ('"hidden_size": ' + "9" * 400, "an integer of 400 digits"),
        ('"hidden_size": 9223372036854775808', "hidden_size: expected at most 1,000,000,000, got"),
        ('"num_hidden_layers": 4611686018427387904', "num_hidden_layers: expected at most 1,000,000,000, got"),
        ('"tie_word_embeddings": "x"', "tie_word_embeddings: expected true or false, got 'x'"),
        ('"intermediate_size": -1', "intermediate_size: expected 0 or a positive integer, got -1"),
    ],
)
def test_numbers_that_no_model_has_are_a_sentence(written: str, says: str, tmp_path: Path) -> None:
    content = {
        "model_type": "qwen3_moe",
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "num_attention_heads": 32,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
        "intermediate_size": 6144,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "vocab_size": 151_936,
        "tie_word_embeddings": False,
    }
    key = written.partition(":")[0].strip('"')
    old = json.dumps({key: content[key]})[1:-1]
    (tmp_path / "config.json").write_text(json.dumps(content))
    assert read_config(tmp_path / "config.json").n_experts[0] == 128
    (tmp_path / "config.json").write_text(json.dumps(content).replace(old, written))
    with pytest.raises(UsageError) as refused:
        read_config(tmp_path / "config.json")
    assert says in str(refused.value)
