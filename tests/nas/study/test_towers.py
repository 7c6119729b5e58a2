"""Sizes of towers against the classes of transformers, and of layers that draft tokens against published files."""

from typing import Any

import pytest

from nas.study.towers import tower

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
