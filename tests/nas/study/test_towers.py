"""Sizes of towers against the classes of transformers, and of what files store beside the decoder of text."""

import json
from pathlib import Path
from typing import Any

import pytest

from nas.errors import UsageError
from nas.study.baselines import baseline
from nas.study.config_file import architecture_of, left_out
from nas.study.towers import drafting, tower
from objectives.counts import total

VIT = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 56,
    "patch_size": 14,
}
QWEN = {"hidden_size": 64, "intermediate_size": 96, "depth": 2, "num_heads": 4, "patch_size": 14}
SOUND = {"num_mel_bins": 16, "max_source_positions": 30}
TEXT = {
    "hidden_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12, "intermediate_size": 80,
    "vocab_size": 200, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
#: By model_type: the class, its tower's keys, and keys of the whole.
CASES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "gemma3": ("Gemma3ForConditionalGeneration", "vision", VIT, {}),
    "gemma3 without a head": ("Gemma3ForConditionalGeneration", "vision", VIT | {"vision_use_head": False}, {}),
    "llava": ("LlavaForConditionalGeneration", "vision", VIT | {"model_type": "clip_vision_model"}, {"text": "llama"}),
    "llava_next": ("LlavaNextForConditionalGeneration", "vision", VIT | {"model_type": "clip_vision_model"}, {"text": "llama"}),
    "mistral3": ("Mistral3ForConditionalGeneration", "vision", VIT | {"model_type": "pixtral", "head_dim": 16}, {"text": "mistral"}),
    "idefics3": ("Idefics3ForConditionalGeneration", "vision", VIT, {"text": "llama", "scale_factor": 4}),
    "smolvlm": ("SmolVLMForConditionalGeneration", "vision", VIT, {"text": "llama", "scale_factor": 4}),
    "lfm2_vl": ("Lfm2VlForConditionalGeneration", "vision", VIT | {"num_patches": 16, "model_type": "siglip2_vision_model"}, {"projector_hidden_size": 40}),
    "qwen2_vl": ("Qwen2VLForConditionalGeneration", "vision", {"embed_dim": 64, "hidden_size": 48, "depth": 2, "num_heads": 4}, {}),
    "qwen2_5_vl": ("Qwen2_5_VLForConditionalGeneration", "vision", QWEN | {"out_hidden_size": 48}, {}),
    "qwen3_vl": ("Qwen3VLForConditionalGeneration", "vision", QWEN | {"out_hidden_size": 48, "deepstack_visual_indexes": [0, 1]}, {}),
    "qwen3_5": ("Qwen3_5ForConditionalGeneration", "vision", QWEN | {"out_hidden_size": 48}, {}),
    "gemma4": ("Gemma4ForConditionalGeneration", "vision", VIT | {"num_key_value_heads": 2, "head_dim": 16, "position_embedding_size": 40}, {"audio": {}}),
    "gemma4 that hears": ("Gemma4ForConditionalGeneration", "audio", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "output_proj_dims": 32}, {"vision": {}}),
    "voxtral": ("VoxtralForConditionalGeneration", "audio", SOUND | {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}, {"text": "llama"}),
    "qwen2_audio": ("Qwen2AudioForConditionalGeneration", "audio", SOUND | {"d_model": 64, "encoder_ffn_dim": 96, "encoder_layers": 2, "encoder_attention_heads": 4}, {"text": "qwen2"}),
}  # fmt: skip
NAMES = {"vision": ("vision", "visual", "multi_modal", "connector", "image_newline"), "audio": ("audio", "multi_modal")}


@pytest.mark.parametrize("case", CASES)
def test_towers_have_the_parameters_of_transformers(case: str) -> None:
    """With what joins them to the decoder; built without memory."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    name, part, own, whole = CASES[case]
    kind = case.partition(" ")[0]
    text = {"text_config": TEXT | ({"model_type": whole["text"]} if "text" in whole else {})}
    more = {key: value for key, value in whole.items() if key not in ("text", "audio", "vision")}
    others = {f"{other}_config": whole[other] for other in ("audio", "vision") if other in whole}
    content = {"model_type": kind, f"{part}_config": own, **more}
    with torch.device("meta"):
        config = getattr(transformers, name).config_class(
            **text, **others, **{k: v for k, v in content.items() if k != "model_type"}
        )
        model = getattr(transformers, name)(config)
    theirs = sum(p.numel() for label, p in model.named_parameters() if any(word in label for word in NAMES[part]))
    assert tower(content, part, TEXT["hidden_size"]) == theirs


#: What repositories store beside the decoder of text, by the tower's keys: the whole file less a copy of the text part alone.
#: Source: parameters of Hugging Face repositories, llmfit 1.1.17 (github.com/AlexsJones/llmfit).
SEEING = {
    "hidden_size": 1152,
    "image_size": 896,
    "intermediate_size": 4304,
    "num_hidden_layers": 27,
    "patch_size": 14,
    "vision_use_head": False,
}
OF_25 = {"model_type": "qwen2_5_vl", "hidden_size": 1280, "intermediate_size": 3420}
OF_3 = {"model_type": "qwen3_vl", "deepstack_visual_indexes": [5, 11, 17]}
STORED = [
    ("gemma3", SEEING, 2560, 4_300_079_472 - 3_880_263_168), ("gemma3", SEEING, 3840, 12_187_325_040 - 11_766_034_176),
    ("gemma3", SEEING, 5376, 27_432_406_640 - 27_009_346_304),
    ("qwen2_vl", {"model_type": "qwen2_vl"}, 3584, 8_291_375_616 - 7_615_616_512),
    ("qwen2_5_vl", OF_25 | {"out_hidden_size": 3584}, 3584, 8_292_166_656 - 7_615_616_512),
    ("qwen2_5_vl", OF_25 | {"out_hidden_size": 2048}, 2048, 3_754_622_976 - 3_085_938_688),
    ("qwen3_vl", OF_3 | {"hidden_size": 1024, "depth": 24, "intermediate_size": 4096, "out_hidden_size": 2560}, 2560, 4_437_815_808 - 4_022_468_096),
    ("qwen3_vl", OF_3 | {"out_hidden_size": 4096}, 4096, 8_767_123_696 - 8_190_735_360),
    ("qwen3_5", {"model_type": "qwen3_5", "out_hidden_size": 4096}, 4096, 9_409_813_744 - 8_953_803_264),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "own", "width", "published"), STORED)
def test_towers_have_the_parameters_of_published_files(
    kind: str, own: dict[str, Any], width: int, published: int
) -> None:
    assert tower({"model_type": kind, "vision_config": own}, "vision", width) == published


#: Qwen3.5's files: decoder of text, tower, and the layer that drafts tokens.
WHOLE = [
    ("qwen3.5_27b", 5120, 27_781_427_952),
    ("qwen3.5_35b_a3b", 2048, 35_951_822_704),
    ("qwen3.5_122b_a10b", 3072, 125_086_497_008),
]


@pytest.mark.parametrize(("model", "width", "published"), WHOLE)
def test_a_file_holds_a_decoder_a_tower_and_a_layer_that_drafts(model: str, width: int, published: int) -> None:
    decoder = baseline(model).architecture
    seeing = tower(
        {"model_type": "qwen3_5_moe", "vision_config": {"model_type": "qwen3_5_moe", "out_hidden_size": width}},
        "vision",
        width,
    )
    assert seeing is not None
    assert int(total(decoder)[0]) + seeing + int(drafting(decoder)) == published


MIMO = {
    "model_type": "mimo", "num_hidden_layers": 36, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 11008, "vocab_size": 151680, "attention_bias": True, "tie_word_embeddings": False, "num_nextn_predict_layers": 1,
}  # fmt: skip


def test_a_layer_that_drafts_tokens_has_the_parameters_of_a_published_file() -> None:
    """MiMo-7B stores 7,833,409,536 with one."""
    decoder = total(architecture_of(MIMO))[0]
    assert left_out(MIMO) == {"1 layer that drafts tokens (num_nextn_predict_layers)": 7_833_409_536 - int(decoder)}


@pytest.mark.parametrize(
    ("kind", "own"),
    [
        ("gemma3n", {"hidden_size": 2048}), ("gemma3", {"model_type": "clip_vision_model"}), ("gemma3", {"hidden_size": "wide"}),
        ("gemma3", {"hidden_size": 10**12}), ("gemma3", [3]), ("unheard", {"hidden_size": 8}),
    ],
)  # fmt: skip
def test_a_tower_of_another_kind_has_no_size(kind: str, own: Any) -> None:
    assert tower({"model_type": kind, "vision_config": own}, "vision", 64) is None


def test_towers_take_memory_where_a_baseline_says_so(tmp_path: Path) -> None:
    """As tables of 16 bits do; a tower of no known size is refused."""
    text = {key: value for key, value in MIMO.items() if key not in ("num_nextn_predict_layers", "attention_bias")} | {
        "model_type": "gemma3_text"
    }
    content = {"model_type": "gemma3", "text_config": text, "vision_config": SEEING}
    (tmp_path / "config.json").write_text(json.dumps(content))
    plain, whole = (baseline({"config": str(tmp_path), "towers": towers}).architecture for towers in (False, True))
    assert whole.table_parameters[0] - plain.table_parameters[0] == tower(content, "vision", 4096)
    (tmp_path / "config.json").write_text(json.dumps(content | {"vision_config": {"model_type": "unheard"}}))
    with pytest.raises(UsageError, match="towers: expected towers of a known kind, got its vision tower"):
        baseline({"config": str(tmp_path), "towers": True})
