"""config.json of published models, the keys that say a shape.

Source: the models' pages on Hugging Face (recalled; each count is checked against the class of transformers).
"""

from typing import Any

GEMMA3 = {
    "model_type": "gemma3_text", "head_dim": 256, "vocab_size": 262_144, "sliding_window": 512,
    "sliding_window_pattern": 6, "tie_word_embeddings": True,
}  # fmt: skip
LFM2 = {
    "model_type": "lfm2", "num_hidden_layers": 16, "num_key_value_heads": 8, "vocab_size": 65_536, "conv_L_cache": 3,
    "conv_bias": False, "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0, "block_auto_adjust_ff_dim": True,
    "full_attn_idxs": [2, 5, 8, 10, 12, 14], "tie_embedding": True,
}  # fmt: skip
GEMMA3N = {
    "model_type": "gemma3n_text", "hidden_size": 2048, "num_attention_heads": 8, "num_key_value_heads": 2,
    "head_dim": 256, "vocab_size": 262_400, "vocab_size_per_layer_input": 262_144, "hidden_size_per_layer_input": 256,
    "sliding_window": 512, "laurel_rank": 64, "altup_num_inputs": 4, "tie_word_embeddings": True,
}  # fmt: skip
GRANITE = {
    "model_type": "granitemoehybrid", "vocab_size": 100_352, "mamba_d_conv": 4, "mamba_d_state": 128,
    "mamba_expand": 2, "mamba_n_groups": 1, "mamba_conv_bias": True, "mamba_proj_bias": False, "attention_bias": False,
    "tie_word_embeddings": True,
}  # fmt: skip
GPT_OSS = {
    "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_attention_heads": 64,
    "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201_088, "sliding_window": 128, "num_experts_per_tok": 4,
    "attention_bias": True, "tie_word_embeddings": False,
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "google/gemma-2-2b": {
        "model_type": "gemma2", "hidden_size": 2304, "num_hidden_layers": 26, "num_attention_heads": 8,
        "num_key_value_heads": 4, "head_dim": 256, "intermediate_size": 9216, "vocab_size": 256_000,
        "sliding_window": 4096,
    },
    "google/gemma-3-270m": {
        **GEMMA3, "hidden_size": 640, "num_hidden_layers": 18, "num_attention_heads": 4, "num_key_value_heads": 1,
        "intermediate_size": 2048,
    },
    "google/gemma-3-1b-pt": {
        **GEMMA3, "hidden_size": 1152, "num_hidden_layers": 26, "num_attention_heads": 4, "num_key_value_heads": 1,
        "intermediate_size": 6912,
    },
    "google/gemma-3n-E2B": {
        **GEMMA3N, "num_hidden_layers": 30, "intermediate_size": [8192] * 30, "num_kv_shared_layers": 10,
    },
    "google/gemma-3n-E4B": {
        **GEMMA3N, "num_hidden_layers": 35, "intermediate_size": [16384] * 35, "num_kv_shared_layers": 15,
    },
    "LiquidAI/LFM2-350M": {**LFM2, "hidden_size": 1024, "num_attention_heads": 16, "block_ff_dim": 6656},
    "LiquidAI/LFM2-700M": {**LFM2, "hidden_size": 1536, "num_attention_heads": 24, "block_ff_dim": 10_240},
    "LiquidAI/LFM2-1.2B": {**LFM2, "hidden_size": 2048, "num_attention_heads": 32, "block_ff_dim": 12_288},
    "LiquidAI/LFM2-8B-A1B": {
        "model_type": "lfm2_moe", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 7168, "moe_intermediate_size": 1792, "num_dense_layers": 2,
        "num_experts": 32, "num_experts_per_tok": 4, "vocab_size": 65_536, "conv_L_cache": 3, "conv_bias": False,
        "tie_word_embeddings": True,
        "layer_types": ["full_attention" if i in (2, 6, 10, 14, 18, 21) else "conv" for i in range(24)],
    },
    "ibm-granite/granite-4.0-h-350m": {
        **GRANITE, "hidden_size": 768, "num_hidden_layers": 32, "num_attention_heads": 12, "num_key_value_heads": 4,
        "intermediate_size": 2048, "shared_intermediate_size": 2048, "num_local_experts": 0, "num_experts_per_tok": 0,
        "mamba_n_heads": 48, "mamba_d_head": 32,
        "layer_types": ["attention" if i in (10, 13, 17, 27) else "mamba" for i in range(32)],
    },
    "ibm-granite/granite-4.0-h-tiny": {
        **GRANITE, "hidden_size": 1536, "num_hidden_layers": 40, "num_attention_heads": 12, "num_key_value_heads": 4,
        "intermediate_size": 512, "shared_intermediate_size": 1024, "num_local_experts": 64, "num_experts_per_tok": 6,
        "mamba_n_heads": 48, "mamba_d_head": 64,
        "layer_types": ["attention" if i in (5, 15, 25, 35) else "mamba" for i in range(40)],
    },
    "Qwen/Qwen3-Next-80B-A3B-Instruct": {
        "model_type": "qwen3_next", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 16,
        "num_key_value_heads": 2, "head_dim": 256, "intermediate_size": 5120, "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512, "num_experts": 512, "num_experts_per_tok": 10,
        "full_attention_interval": 4, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
        "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "vocab_size": 151_936,
        "decoder_sparse_step": 1, "mlp_only_layers": [], "tie_word_embeddings": False,
    },
    "openai/gpt-oss-20b": {**GPT_OSS, "num_hidden_layers": 24, "num_local_experts": 32},
    "openai/gpt-oss-120b": {**GPT_OSS, "num_hidden_layers": 36, "num_local_experts": 128},
    "HuggingFaceTB/SmolLM3-3B": {
        "model_type": "smollm3", "hidden_size": 2048, "num_hidden_layers": 36, "num_attention_heads": 16,
        "num_key_value_heads": 4, "intermediate_size": 11_008, "vocab_size": 128_256, "tie_word_embeddings": True,
        "use_sliding_window": False, "sliding_window": None,
    },
    "meta-llama/Llama-3.2-1B": {
        "model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 8192, "vocab_size": 128_256,
        "tie_word_embeddings": True,
    },
    "mistralai/Mistral-7B-v0.1": {
        "model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14_336, "vocab_size": 32_000, "sliding_window": 4096,
        "tie_word_embeddings": False,
    },
    "mistralai/Mixtral-8x7B-v0.1": {
        "model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14_336, "vocab_size": 32_000, "num_local_experts": 8,
        "num_experts_per_tok": 2, "sliding_window": None, "tie_word_embeddings": False,
    },
    "Qwen/Qwen1.5-MoE-A2.7B": {
        "model_type": "qwen2_moe", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16,
        "num_key_value_heads": 16, "intermediate_size": 5632, "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 5632, "num_experts": 60, "num_experts_per_tok": 4, "vocab_size": 151_936,
        "use_sliding_window": False, "sliding_window": 32_768, "max_window_layers": 21, "tie_word_embeddings": False,
    },
    "Qwen/Qwen3-30B-A3B": {
        "model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32,
        "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768,
        "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151_936, "tie_word_embeddings": False,
    },
    "Qwen/Qwen3-0.6B": {
        "model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16,
        "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072, "vocab_size": 151_936,
        "tie_word_embeddings": True, "use_sliding_window": False, "sliding_window": None, "max_window_layers": 28,
    },
    "allenai/OLMoE-1B-7B-0924": {
        "model_type": "olmoe", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16,
        "num_key_value_heads": 16, "intermediate_size": 1024, "num_experts": 64, "num_experts_per_tok": 8,
        "vocab_size": 50_304, "tie_word_embeddings": False,
    },
}  # fmt: skip
