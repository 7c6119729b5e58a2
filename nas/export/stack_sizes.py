"""Sizes, tied embeddings and experts that a stack's own form of a class fixes and the class leaves open."""

from collections.abc import Iterator

from nas.export.layer_order import FULL, in_order
from search_spaces.architectures import Architectures

Fault = tuple[bool, str, str]
GEMMA3_27B = 62  # layers by which llama.cpp tells that model


def unlike(a: Architectures, model_type: str, stack: str) -> Iterator[tuple[str, str, str]]:
    """Differences between a stack and an architecture (n = 1): wanted, given, whose code it is."""
    if stack == "llama_bench":
        yield from ((want, got, "llama.cpp") for holds, want, got in _llama(a).get(model_type, []) if not holds)
    if stack == "vllm":
        yield from ((want, got, "vLLM") for holds, want, got in _vllm(a).get(model_type, []) if not holds)


def _llama(a: Architectures) -> dict[str, list[Fault]]:
    """llama.cpp's, by model_type."""
    width, groups = int(a.width[0]), int(a.linear_key_heads[0])
    inner = int(a.linear_heads[0] * a.linear_value_dim[0])
    keys, values = int(a.linear_key_dim[0]), int(a.linear_value_dim[0])
    mamba = f"Mamba2 with {2 * width} features, twice the width, in one group"
    return {
        "lfm2": [_heads(a)],
        "lfm2_moe": [_heads(a)],
        "mellum": [_output(a)],
        "granitemoehybrid": [((inner, groups) == (2 * width, 1), mamba, f"{inner} in {groups}")],
        "qwen3_next": [(keys == values, "keys and values of Gated DeltaNet of one size", f"{keys} and {values}")],
        "gemma3_text": [_another_depth(a)],
        "gemma4_text": [_last_owners(a)],
    }


def _vllm(a: Architectures) -> dict[str, list[Fault]]:
    """vLLM's, by model_type: it loads Granite's heads of another size and a tied Qwen3-Next all the same, and computes something else."""
    shared = bool(a.n_experts[0] == 1 or a.shared_expert_size[0])
    return {
        "lfm2": [_heads(a)],
        "lfm2_moe": [_heads(a)],
        "granitemoehybrid": [_heads(a), (shared, "a shared expert beside the others", "none")],
        "qwen3_next": [_output(a)],
    }


def _heads(a: Architectures) -> Fault:
    width = int(a.width[0])
    return bool(a.query_dim[0] == width), f"heads that fill the width of {width}", f"{a.n_heads[0]} of {a.head_dim[0]}"


def _output(a: Architectures) -> Fault:
    return not a.tied[0], "an output matrix of its own", "tied embeddings"


def _another_depth(a: Architectures) -> Fault:
    wanted = "another depth than Gemma 3 27B's, whose heads it scales otherwise"
    return bool(a.depth[0] != GEMMA3_27B), wanted, str(GEMMA3_27B)


def _last_owners(a: Architectures) -> Fault:
    """The two layers whose KV caches the last layers read."""
    owners = in_order(a)[: int(a.depth[0] - a.n_kv_shared[0])][-2:]
    wanted = "a layer within the window, then one of full attention, last before those that share"
    return owners == ["local", FULL], wanted, " and ".join(owners)
