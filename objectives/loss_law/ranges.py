"""Ranges of quantities that a law was fitted on, or that it prices."""

from search_spaces.arrays import BoolArray, FloatArray

RANGED = (
    *("depth", "width", "head_dim", "n_experts", "top_k", "activation_rate", "expert_ffn_ratio", "ffn_ratio"),
    *("kv_dim", "query_dim", "granularity", "expansion_rate", "parameters", "active_parameters"),
    *("parameters_with_embeddings", "active_parameters_with_embeddings", "ffn_attention_ratio", "normalised_width"),
    *("aspect_ratio", "query_ratio", "kv_ratio"),
)
DOMAINS = ("prices", "prices_sparse")
ULPS = 1e-12  # relative; a quantity so close to the end of a range is inside


def ranged(name: str, least: float, most: float) -> str:
    return f"{name} {least:g}" + ("" if least == most else f" to {most:g}")


def beyond(values: FloatArray, least: float, most: float) -> BoolArray:
    outside: BoolArray = (values < least * (1 - ULPS)) | (values > most * (1 + ULPS))
    return outside
