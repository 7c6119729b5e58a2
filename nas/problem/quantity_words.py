"""Quantities of designs in words: what a reader sees in place of a column's name."""

#: A quantity's words, with its unit where they do not say it.
QUANTITIES = {
    "depth": "layers",
    "layers": "kinds of layers",
    "width": "width (features)",
    "n_heads": "heads",
    "head_dim": "head size (features)",
    "query_dim": "query dimension (features)",
    "n_kv_heads": "KV heads",
    "kv_dim": "KV dimension (features)",
    "gqa": "heads per KV head",
    "n_experts": "experts",
    "top_k": "active experts",
    "activation_rate": "active share of experts",
    "expert_size": "hidden size of an expert (features)",
    "expert_ffn_ratio": "FFN ratio each",
    "ffn_ratio": "FFN ratio",
    "ffn": "FFN",
    "parameters": "parameters",
    "active_parameters": "active parameters",
    "tokens": "training tokens",
    "kv_ratio": "KV dimension per width",
    "query_ratio": "query dimension per width",
    "aspect_ratio": "width per layer",
    "ffn_attention_ratio": "FFN parameters per attention parameter",
    "predicted_loss": "loss (nats)",
}


def named(quantity: str) -> str:
    """A quantity over a column, with its unit: `KV dimension (features)` of kv_dim; a name that is not known as it is."""
    return QUANTITIES.get(quantity, quantity)


def in_words(text: str) -> str:
    """A text with the names of quantities in words, without units: `FFN ratio below 0.5` of `ffn_ratio below 0.5`."""
    return " ".join(named(word).partition(" (")[0] for word in text.split(" "))
