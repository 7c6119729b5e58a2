"""Reads a Hugging Face config.json as an architecture. The reader is closed: a key that no family knows is refused by its name."""

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from nas.study.config_kinds import Columns, Config, written
from nas.study.model_types import FAMILIES, OUTSIDE, TEXT_OF, Family, model_classes
from objectives import outside
from search_spaces.architectures import Architectures, one

MOST_BYTES = 10_000_000
#: Keys that size nothing, whatever they say: names and versions, token ids, training, generation, precision, positions, scales.
HARMLESS = frozenset(
    """
    architectures auto_map model_type name model_name _name_or_path _commit_hash transformers_version vllm_version unsloth_version
    unsloth_fixed task_specific_params tokenizer_class processor_class base_model_name model_revision revision license language
    _attn_implementation _attn_implementation_autoset _attn_implementation_internal _experts_implementation attn_implementation
    _flash_attn_2_enabled use_flash_attn use_flash_attention use_flash_attention_2 use_sdpa use_fused_rmsnorm
    torch_dtype dtype params_dtype _dtype use_bfloat16 fp16 bf16 torchscript mamba_ssm_dtype mamba_ssm_cache_dtype router_dtype
    quantization quantization_config compression_config weight_quantization kv_cache_scheme pruned_heads prefix problem_type
    bos_token_id eos_token_id pad_token_id sep_token_id unk_token_id cls_token_id mask_token_id decoder_start_token_id
    image_token_id video_token_id audio_token_id image_token_index video_token_index vision_start_token_id vision_end_token_id
    vision_token_id boi_token_id eoi_token_id bos_token eos_token pad_token bad_words_ids forced_bos_token_id forced_eos_token_id
    begin_suppress_tokens suppress_tokens is_decoder is_encoder_decoder is_llama_config is_causal add_cross_attention
    cross_attention_hidden_size tie_encoder_decoder id2label label2id num_labels finetuning_task return_dict
    return_dict_in_generate output_attentions output_hidden_states output_scores output_router_logits use_cache cache_implementation
    do_sample temperature top_k top_p typical_p min_length max_length max_new_tokens num_beams num_beam_groups num_return_sequences
    diversity_penalty early_stopping length_penalty repetition_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size
    exponential_decay_length_penalty remove_invalid_values chunk_size_feed_forward tf_legacy_loss num_logits_to_keep
    hidden_act hidden_activation activation_function mlp_hidden_act hidden_dropout hidden_dropout_prob attention_dropout
    attention_probs_dropout_prob attn_pdrop embd_pdrop resid_pdrop resid_dropout dropout ffn_dropout classifier_dropout embedding_dropout
    initializer_range initializer_factor init_std initializer_cutoff_factor rms_norm_eps layer_norm_eps layer_norm_epsilon norm_eps
    norm_epsilon layernorm_epsilon use_rms_norm rescale_prenorm_residual residual_in_fp32 fp32_residual_connection
    gradient_checkpointing use_liger_kernel z_loss_coefficient z_loss z_loss_coef load_balancing_loss_coef lm_head_dtype logit_scale
    max_position_embeddings max_sequence_length max_seq_len model_max_length seq_length seq_len n_ctx initial_context_length
    original_max_position_embeddings rope_theta rope_scaling rope_parameters rope_type rope_pct rope_local_base_freq rotary_base
    rotary_dim rotary_pct rotary_emb_base rope_base rope_interleave partial_rotary_factor rope_scaling_factor rope_ntk_factor
    use_rope use_mrope mrope_section mrope_interleaved no_rope_layers no_rope_layer_interval use_position_embeddings
    position_embedding_type swa_rope_theta global_rope_theta default_theta pretraining_tp tensor_parallel_size ep_size
    router_aux_loss_coef router_jitter_noise router_z_loss_coef aux_loss_alpha aux_loss_free_alpha seq_aux norm_topk_prob
    routed_scaling_factor scoring_func topk_method n_group topk_group moe_router_dtype output_router_probs router_bias
    use_routing_bias use_moe_router_bias expert_dtype experts_per_token swiglu_limit swiglu_alpha
    attn_logit_softcapping final_logit_softcapping query_pre_attn_scalar query_pre_attn_scalar embedding_multiplier logits_scaling
    residual_multiplier attention_multiplier embedding_scale scale_emb scale_depth dim_model_base attention_scale attn_scale
    activation_sparsity_pattern activation_sparsity use_bidirectional_attention altup_active_idx altup_coef_clip altup_correct_scale
    mamba_chunk_size chunk_size use_mamba_kernels time_step_limit time_step_min time_step_max time_step_floor conv_use_xavier_init
    theta eos_token_ids use_return_dict output_gate_type block_mlp_init_scale block_norm_eps block_out_init_scale block_use_swiglu
    block_use_xavier_init use_pos_enc _sliding_window_pattern
    """.split()  # noqa: SIM905 - a list of so many words would be longer than the table it is
)
#: What drafts tokens beside the model: never part of its layers.
DRAFTS = frozenset(
    """
    num_nextn_predict_layers num_mtp_layers num_mtp_modules mtp_num_hidden_layers mtp_use_dedicated_embeddings use_mtp
    mtp_transformer_layers mtp_layer_types mtp_mlp_layer_types mtp_loss_scaling_factor mtp_lambda
    """.split()  # noqa: SIM905
)
TIED = "tie_word_embeddings"
#: Keys of how many experts there are; a class has one of them.
EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
#: Sizes that must be sizes also where this family does not use them.
SIZES = ("intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size")
MLA = "latent attention (MLA) beside something else"


def read_config(path: Path) -> Architectures:
    """The architecture of a config.json, of its text part where the model also sees or hears.

    Raises:
        UsageError: no such file, a family or a key that is not read, or a value that no columns hold.
    """
    try:
        return architecture_of(text_part(content_of(path)))
    except OSError as error:
        raise UsageError(f"{path}: expected a Hugging Face config.json, got {error.strerror}; check the path") from None
    except ValueError as error:
        message = str(error).splitlines()[0]
        raise UsageError(f"{path}: {message}; give a Hugging Face config.json of a decoder that columns hold") from None


def content_of(path: Path) -> Mapping[str, Any]:
    """A config.json as it is.

    Raises:
        OSError: it cannot be read.
        ValueError: no JSON, no mapping, or a key that stands there twice.
    """
    try:
        content = outside.parsed(outside.text(path, MOST_BYTES, encoding="utf-8-sig"), once=True)
    except json.JSONDecodeError as error:
        raise ValueError(f"expected JSON, got a fault in line {error.lineno}: {error.msg}") from None
    except UnicodeDecodeError:
        raise ValueError("expected JSON, got something else") from None
    if not isinstance(content, dict):
        raise ValueError(f"expected the keys of a config.json, got {written(content)}")
    return content


def text_part(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of the decoder of text: the file's own, or those of its `text_config`.

    Whether tables are tied is what the whole model says, else what its text part says, else what the whole model's class takes.

    Raises:
        ValueError: a text part that holds no keys.
    """
    text, kind = content.get("text_config", content.get("llm_config")), str(content.get("model_type"))
    if text is None:
        return {**content, "model_type": TEXT_OF[kind]} if kind in TEXT_OF else content
    if not isinstance(text, dict):
        raise ValueError(f"text_config: expected the keys of a decoder, got {written(text)}")
    whole = model_classes()[kind].defaults if kind in TEXT_OF else {}
    tied = {TIED: content.get(TIED, text.get(TIED, whole.get(TIED)))}
    own = {"model_type": text.get("model_type") or TEXT_OF.get(kind, kind)}
    return {**text, **own, **(tied if tied[TIED] is not None else {})}


#: Formats of ours by the quantisation that a config.json names.
STORED = {"mxfp4": "mxfp4", "mxfp4-pack-quantized": "mxfp4", "nvfp4": "nvfp4", "nvfp4-pack-quantized": "nvfp4"}
TOWERS = ("vision_config", "audio_config")


def stored_format(content: Mapping[str, Any]) -> tuple[str, str]:
    """How a config.json says its weights are stored, in its words, and as a format of ours; "" where it says nothing or we have none."""
    text = content.get("text_config")
    said = content.get("quantization_config") or (text.get("quantization_config") if isinstance(text, dict) else None)
    if not isinstance(said, dict):
        return "", ""
    method = str(said.get("quant_method", "")).lower()
    bits = said.get(
        "bits", said.get("w_bit", 4 if said.get("load_in_4bit") else 8 if said.get("load_in_8bit") else None)
    )
    name = str(said.get("quant_algo") or (said.get("format") if method == "compressed-tensors" else method)).lower()
    words = f"{name}, {bits} bits" if bits else name
    if method in ("gptq", "awq") and bits == 4:
        return words, "w4a16"
    if method == "compressed-tensors" and name not in STORED:
        return _compressed(said, name)
    return words, STORED.get(name, "")


def _compressed(said: Mapping[str, Any], name: str) -> tuple[str, str]:
    """The format of compressed tensors, where all groups of layers have one of integers."""
    groups = said.get("config_groups")
    found = {
        (
            group.get("weights", {}).get("num_bits"),
            group.get("weights", {}).get("type"),
            bool(group.get("input_activations")),
        )
        for group in (groups.values() if isinstance(groups, dict) else ())
        if isinstance(group, dict) and isinstance(group.get("weights"), dict)
    }
    known = {(4, "int", False): "w4a16", (8, "int", True): "int8"}
    kinds = [f"{bits} bits {kind}" for bits, kind, _ in found]
    return " and ".join([name, *kinds]), known.get(next(iter(found)), "") if len(found) == 1 else ""


def left_out(content: Mapping[str, Any]) -> list[str]:
    """What a config.json describes beside the decoder of text, which its numbers leave out."""
    text = text_part(content)
    towers = [name.removesuffix("_config") + " tower" for name in TOWERS if content.get(name)]
    drafts = [key for key in ("num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers") if text.get(key)]
    return [*towers, *(f"{text[key]} layer that drafts tokens ({key})" for key in drafts[:1])]


def architecture_of(content: Mapping[str, Any]) -> Architectures:
    """The architecture that the keys of a decoder describe.

    Raises:
        ValueError: `key: expected X, got Y`.
    """
    family, config = family_named(str(content.get("model_type")), content), settings_of(content)
    for key, plain in family.plain.items():
        if config.get(key) not in (None, plain):
            raise ValueError(f"{key}: expected {plain!r}, got {written(config.get(key))}")
    experts = next((key for key in EXPERTS if key in config.values), "")
    sparse = bool(family.experts) and config.get(experts) != 0
    columns: Columns = {
        "depth": config.whole("num_hidden_layers"),
        "width": config.whole("hidden_size"),
        "n_heads": config.whole("num_attention_heads"),
        **_key_value_heads(config, family),
        "n_experts": config.whole(experts) if sparse else 1,
        "top_k": config.whole(_chosen(config)) if sparse else 1,
        "qk_norm": family.qk_norm,
        **_biases(config, family),
        "norms_per_layer": family.norms,
        "tied": _tied(config),
        "vocabulary": config.whole("vocab_size"),
    }
    if family.shared and sparse and config.get("shared_expert_intermediate_size") is not None:
        columns |= {"shared_expert_size": config.whole("shared_expert_intermediate_size"), "shared_gate": True}
    own = family.kinds(config)
    further = columns.pop("further_parameters", 0) + own.get("further_parameters", 0)
    columns |= own | {"further_parameters": further}
    if "expert_size" not in columns:
        columns["expert_size"] = config.whole(family.experts if sparse else "intermediate_size")
    for key in SIZES:
        config.count(key)
    return one(columns)


def family_named(name: str, content: Mapping[str, Any]) -> Family:
    """The family of a model_type.

    Raises:
        ValueError: none that columns hold, with the reason or the nearest one.
    """
    found = FAMILIES.get(name)
    mixed = found is None and bool(content.get("kv_lora_rank"))
    if why := OUTSIDE.get(name, MLA if mixed else ""):
        raise ValueError(f"model_type: expected layers that columns hold, got {name[:60]!r}, which has {why}")
    if found is None:
        near = difflib.get_close_matches(name, FAMILIES, n=1, cutoff=0.0)[0]
        raise ValueError(
            f"model_type: expected a family that is read (docs/layer-kinds.md), got {name[:60]!r}; the nearest is {near}"
        )
    if found.mixer != "latent_size" and content.get("kv_lora_rank"):
        raise ValueError(f"model_type: expected layers that columns hold, got {name!r}, which has {MLA}")
    return found


def settings_of(content: Mapping[str, Any]) -> Config:
    """The keys of a file, spelt as its class spells them, over what the class takes for those that are left out.

    Raises:
        ValueError: no family of ours, a key that no class knows, or two spellings of one key that differ.
    """
    name = str(content.get("model_type"))
    family = family_named(name, content)
    of = model_classes()[family.as_class or name]
    values, given = {TIED: False, "layer_types": None, **family.more, **of.defaults}, dict[str, str]()
    for key, value in content.items():
        spelt = of.renamed.get(key, key)
        if spelt in given and value != values[spelt]:
            raise ValueError(f"{key}: expected {written(values[spelt])}, as {given[spelt]} says, got {written(value)}")
        known = spelt in values or spelt in family.plain
        if not known and key not in HARMLESS | DRAFTS and not _of_another_class(key):
            raise ValueError(
                f"{key}: expected keys of a {name} model, got one that is not read and may change its layers; "
                "remove it if it does not"
            )
        if known:
            values[spelt], given[spelt] = value, key
    return Config(values)


def _of_another_class(key: str) -> bool:
    """Whether a key is one of another family's, left there by whoever made the file: this class does not read it."""
    return any(key in of.defaults or key in of.renamed for of in model_classes().values())


def _key_value_heads(config: Config, family: Family) -> Columns:
    """KV heads, and the size of a head where it is not that of latent attention.

    Raises:
        ValueError: no head_dim, and a width that the heads do not divide.
    """
    heads, width = config.whole("num_attention_heads"), config.whole("hidden_size")
    kv_heads = heads if config.get("num_key_value_heads") is None else config.whole("num_key_value_heads")
    if family.mixer == "latent_size":
        return {"n_kv_heads": kv_heads}
    if config.get("head_dim") is not None:
        return {"n_kv_heads": kv_heads, "head_dim": config.whole("head_dim")}
    if width % heads:
        raise ValueError(f"head_dim: expected it where {heads} heads do not divide hidden_size {width}, got nothing")
    return {"n_kv_heads": kv_heads, "head_dim": width // heads}


def _chosen(config: Config) -> str:
    """The key of how many experts a token takes."""
    return next(key for key in ("num_experts_per_tok", "moe_k", "top_k_experts") if key in config.values)


def _biases(config: Config, family: Family) -> Columns:
    """Biases of q, k and v, and of the projection behind attention, as further parameters.

    Raises:
        ValueError: a bias where this family's has no columns.
    """
    asked = config.get("qkv_bias" if "qkv_bias" in config.values else "attention_bias")
    if asked not in (None, True, False):
        raise ValueError(f"attention_bias: expected true or false, got {written(asked)}")
    if "qkv_bias" in config.values:
        return {"qkv_bias": bool(asked)}
    if not family.bias:
        if asked and not family.qkv_bias:
            raise ValueError(f"attention_bias: expected False, got {written(asked)}")
        return {"qkv_bias": family.qkv_bias}
    further = config.whole("num_hidden_layers") * config.whole("hidden_size") if asked and "o" in family.bias else 0
    return {"qkv_bias": bool(asked), "further_parameters": further}


def _tied(config: Config) -> bool:
    """Whether embedding and LM head are one table.

    Raises:
        ValueError: the config says something else than true or false.
    """
    older = config.get("tie_embedding")
    value = config.get(TIED) if older is None else older
    if not isinstance(value, bool):
        raise ValueError(f"{TIED}: expected true or false, got {written(value)}")
    return value
