"""Small architectures with layers of several kinds, one of every class that holds them, and some that none holds."""

from typing import Any

BASE: dict[str, Any] = {"depth": 5, "width": 128, "n_kv_heads": 1, "expert_size": 96, "vocabulary": 300}
EXPERTS = {"n_experts": 4, "top_k": 2}
WINDOWS = {**BASE, "n_local": 3, "window": 16}
FOUR = {**WINDOWS, "norms_per_layer": 4}
SHARING = {**FOUR, "depth": 7, "n_local": 5, "n_kv_shared": 3, "n_kv_shared_local": 2}
CONVOLUTIONS = {**BASE, "n_conv": 3, "conv_kernel": 3}
LINEAR = {**BASE, "n_linear": 3, "linear_heads": 4, "linear_key_dim": 16, "linear_kernel": 4}
DELTANET = {**LINEAR, "linear_kind": "deltanet", "linear_key_heads": 2, "linear_value_dim": 32, "attention_gate": True}
MAMBA2 = {**LINEAR, "linear_kind": "mamba2", "linear_key_heads": 1, "linear_value_dim": 64, "qk_norm": "no"}
SHARED = {"shared_expert_size": 64, "shared_gate": True}
#: By what they try: the class, and the columns.
HELD: dict[str, tuple[str, dict[str, Any]]] = {
    "windows": ("Qwen3ForCausalLM", WINDOWS),
    "windows, wide heads": ("Qwen3ForCausalLM", {**WINDOWS, "head_dim": 32, "n_heads": 8, "tied": False}),
    "windows, experts": ("MellumForCausalLM", {**WINDOWS, **EXPERTS, "tied": False}),
    "windows, one expert": ("MellumForCausalLM", {**WINDOWS, **EXPERTS, "top_k": 1}),
    "four norms": ("Gemma3ForCausalLM", FOUR),
    "four norms, no QK-norm": ("Gemma2ForCausalLM", {**FOUR, "qk_norm": "no"}),
    "biases, shared expert": (
        "Qwen2MoeForCausalLM",
        {**BASE, **EXPERTS, **SHARED, "qk_norm": "no", "qkv_bias": True, "tied": False},
    ),
    "biases, one expert": (
        "Qwen2MoeForCausalLM",
        {**BASE, **EXPERTS, **SHARED, "qk_norm": "no", "qkv_bias": True, "top_k": 1},
    ),
    "whole QK-norm": ("OlmoeForCausalLM", {**BASE, **EXPERTS, "qk_norm": "full", "tied": False}),
    "whole QK-norm, one expert": ("OlmoeForCausalLM", {**BASE, **EXPERTS, "qk_norm": "full", "top_k": 1}),
    "four norms, wide heads": ("Gemma3ForCausalLM", {**FOUR, "head_dim": 32, "n_heads": 8, "tied": False}),
    "shared caches": ("Gemma4ForCausalLM", SHARING),
    "shared caches, period 1": (
        "Gemma4ForCausalLM",
        {**SHARING, "n_local": 3, "n_kv_shared": 2, "n_kv_shared_local": 0},
    ),
    "shared caches, wide heads": ("Gemma4ForCausalLM", {**SHARING, "head_dim": 32, "n_heads": 24, "tied": False}),
    "deltanet": ("Qwen3NextForCausalLM", DELTANET),
    "deltanet, experts": ("Qwen3NextForCausalLM", {**DELTANET, **EXPERTS, **SHARED, "tied": False}),
    "deltanet, even": (
        "Qwen3NextForCausalLM",
        {**DELTANET, **EXPERTS, **SHARED, "linear_key_dim": 32},
    ),
    "conv": ("Lfm2ForCausalLM", CONVOLUTIONS),
    "conv, wide heads": ("Lfm2ForCausalLM", {**CONVOLUTIONS, "head_dim": 32, "n_heads": 8, "conv_kernel": 4}),
    "conv, experts": ("Lfm2MoeForCausalLM", {**CONVOLUTIONS, **EXPERTS}),
    "conv, one expert": ("Lfm2MoeForCausalLM", {**CONVOLUTIONS, **EXPERTS, "top_k": 1}),
    "conv, dense first": ("Lfm2MoeForCausalLM", {**CONVOLUTIONS, **EXPERTS, "n_dense": 2, "dense_size": 200}),
    "mamba2": ("GraniteMoeHybridForCausalLM", MAMBA2),
    "mamba2, wide heads": ("GraniteMoeHybridForCausalLM", {**MAMBA2, "head_dim": 32, "n_heads": 8, "tied": False}),
    "mamba2, narrow": ("GraniteMoeHybridForCausalLM", {**MAMBA2, "linear_value_dim": 32}),
    "mamba2, experts": ("GraniteMoeHybridForCausalLM", {**MAMBA2, **EXPERTS}),
    "mamba2, shared expert": ("GraniteMoeHybridForCausalLM", {**MAMBA2, **EXPERTS, "shared_expert_size": 32}),
}
#: Of those, what llama.cpp's form of the class cannot hold, and what is said of it.
NOT_IN_LLAMA = {
    "windows, one expert": "expected an output matrix of its own, .* Mellum.* got tied embeddings",
    "conv, wide heads": "expected heads that fill the width of 128, .* Lfm2.* got 8 of 32",
    "shared caches, period 1": "expected a layer within the window, then one of full attention, .* got full and full",
    "deltanet, experts": "keys and values of Gated DeltaNet of one size, .* Qwen3Next.* got 16 and 32",
    "mamba2, narrow": "expected Mamba2 with 256 features, twice the width, .* Granite.* got 128 in 1",
}
#: The same of vLLM's form.
NOT_IN_VLLM = {
    "deltanet, even": "vllm: expected an output matrix of its own, .* Qwen3Next.* got tied embeddings",
    "conv, wide heads": "vllm: expected heads that fill the width of 128, .* Lfm2.* got 8 of 32",
    "mamba2, wide heads": "vllm: expected heads that fill the width of 128, .* Granite.* got 8 of 32",
    "mamba2, experts": "vllm: expected a shared expert beside the others, .* Granite.* got none",
}
#: What they would need of the nearest class, and the columns.
REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "shared caches, two norms": (
        "norms_per_layer 4 .* Gemma4ForCausalLM, got norms_per_layer 2; search with --budget",
        {**SHARING, "norms_per_layer": 2},
    ),
    "shared caches, experts": ("n_kv_shared 0 .* MellumForCausalLM, got .*n_kv_shared 3", {**SHARING, **EXPERTS}),
    "shared caches elsewhere": (
        "n_kv_shared_local 2 of the last 3 layers .* Gemma4ForCausalLM, got 3",
        {**SHARING, "n_kv_shared_local": 3},
    ),
    "heads that do not divide": ("n_heads a divisor of width 128 .* Gemma3", {**FOUR, "head_dim": 32, "n_heads": 6}),
    "whole QK-norm, wide heads": (
        "qk_norm head .* Qwen3MoeForCausalLM, got qk_norm full",
        {**BASE, **EXPERTS, "qk_norm": "full", "head_dim": 32, "n_heads": 8},
    ),
    "no gate": ("attention_gate yes .* Qwen3NextForCausalLM", {**DELTANET, "attention_gate": False}),
    "no shared expert": ("shared expert gated .* Qwen3NextForCausalLM", {**DELTANET, **EXPERTS}),
    "QK-norm": ("qk_norm no .* GraniteMoeHybridForCausalLM, got qk_norm head", {**MAMBA2, "qk_norm": "head"}),
    "a dead router": ("top_k above 1 .* GraniteMoeHybridForCausalLM", {**MAMBA2, **EXPERTS, "top_k": 1}),
    "narrow Mamba2": ("multiple of width 128 .* got 96", {**MAMBA2, "linear_value_dim": 24}),
    "two kinds": ("got 1 full .*within 16.*of convolution", {**WINDOWS, "n_conv": 1, "conv_kernel": 3}),
    "no full layer": ("a layer of full attention .*, got none", {**WINDOWS, "n_local": 5}),
    "dense first": ("n_dense 0 .* Qwen3MoeForCausalLM", {**BASE, **EXPERTS, "n_dense": 1, "dense_size": 64}),
    "four norms everywhere": ("norms_per_layer 2 .* Qwen3ForCausalLM", {**BASE, "norms_per_layer": 4}),
}
