"""A model with other blocks in place of its own, for as long as it is scored; needs torch."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy, deepcopy
from typing import Any

import numpy as np

from nas.errors import UsageError
from plas_blocks.variants import Shape, Variant
from search_spaces.arrays import FloatArray

PROJECTIONS = ("gate_proj", "up_proj", "down_proj")
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")


def layers_of(model: Any) -> list[Any]:
    """The decoder layers of a Hugging Face model like Llama, Qwen or Mistral.

    Raises:
        UsageError: layers of another build.
    """
    layers = list(getattr(getattr(model, "model", None), "layers", []))
    whole = layers and all(
        all(hasattr(getattr(layer, "self_attn", None), name) for name in ATTENTION)
        and all(hasattr(getattr(layer, "mlp", None), name) for name in PROJECTIONS)
        for layer in layers
    )
    if not whole:
        raise UsageError(
            f"--measure: expected a model with {', '.join(ATTENTION)} and a dense {', '.join(PROJECTIONS)} in each of its "
            f"layers, got {type(model).__name__}; Llama, Qwen and Mistral have them"
        )
    return layers


def shapes_of(model: Any) -> list[Shape]:
    """The shape of every layer.

    Raises:
        UsageError: layers of another build.
    """
    found = []
    for layer in layers_of(model):
        attention, mlp = layer.self_attn, layer.mlp
        head_dim = attention.head_dim
        heads, kv_heads = (p.weight.shape[0] // head_dim for p in (attention.q_proj, attention.k_proj))
        weight = mlp.up_proj.weight
        found.append(Shape(weight.shape[1], heads, kv_heads, head_dim, weight.shape[0], weight.element_size()))
    return found


@contextmanager
def mixed(model: Any, chosen: Mapping[int, Variant], importance: FloatArray) -> Iterator[None]:
    """The model with other blocks at some layers; its own again when the block ends.

    importance: (layers, channels), what each feed-forward channel contributes; the least important go first.
    """
    layers, shapes = layers_of(model), shapes_of(model)
    own = {at: (layers[at].self_attn, layers[at].mlp) for at in chosen}
    try:
        for at, variant in chosen.items():
            layers[at].self_attn = _attention(layers[at].self_attn, shapes[at], variant)
            layers[at].mlp = _feed_forward(layers[at].mlp, shapes[at], variant, importance[at])
        yield
    finally:
        for at, (attention, mlp) in own.items():
            layers[at].self_attn, layers[at].mlp = attention, mlp


def _nothing(*, attention: bool) -> Any:
    """A module that adds nothing to the residual stream."""
    import torch

    def forward(hidden_states: Any = None, **_: Any) -> Any:
        """Zeros; of attention with no weights beside them."""
        zeros = torch.zeros_like(hidden_states)
        return (zeros, None) if attention else zeros

    nothing: Any = torch.nn.Module()
    nothing.forward = forward
    return nothing


def _attention(own: Any, shape: Shape, variant: Variant) -> Any:
    """Attention with KV heads that are means of neighbouring ones."""
    if variant.kv_heads == shape.kv_heads:
        return own
    if not variant.kv_heads:
        return _nothing(attention=True)
    import torch

    smaller = copy(own)
    smaller._modules = dict(own._modules)
    for name in ("k_proj", "v_proj"):
        projection = deepcopy(getattr(own, name))
        for part in ("weight", "bias"):
            value = getattr(projection, part, None)
            if value is not None:
                heads = value.data.reshape(variant.kv_heads, -1, shape.head_dim, *value.shape[1:])
                setattr(projection, part, torch.nn.Parameter(heads.mean(dim=1).reshape(-1, *value.shape[1:])))
        smaller._modules[name] = projection
    smaller.num_key_value_groups = shape.heads // variant.kv_heads
    return smaller


def _feed_forward(own: Any, shape: Shape, variant: Variant, importance: FloatArray) -> Any:
    """The channels that contribute most, in their order."""
    if variant.channels == shape.channels:
        return own
    if not variant.channels:
        return _nothing(attention=False)
    import torch

    kept = torch.from_numpy(np.sort(np.argsort(-importance, kind="stable")[: variant.channels]))
    smaller = copy(own)
    smaller._modules = dict(own._modules)
    for name in PROJECTIONS:
        projection = deepcopy(getattr(own, name))
        inward = name == "down_proj"
        projection.weight = torch.nn.Parameter(
            projection.weight.data[:, kept] if inward else projection.weight.data[kept]
        )
        if getattr(projection, "bias", None) is not None and not inward:
            projection.bias = torch.nn.Parameter(projection.bias.data[kept])
        smaller._modules[name] = projection
    return smaller


def importance_of(model: Any, batch: Any) -> FloatArray:
    """The contribution of each feed-forward channel on a batch of token ids: mean |activation| times the norm of its column, (layers, channels)."""
    import torch

    seen: dict[int, Any] = {}
    hooks = []
    for at, layer in enumerate(layers_of(model)):
        hooks.append(
            layer.mlp.down_proj.register_forward_pre_hook(
                lambda _, given, at=at: seen.__setitem__(at, given[0].detach().float().abs().mean(dim=(0, 1)))
            )
        )
    try:
        with torch.no_grad():
            model(input_ids=batch, use_cache=False)
    finally:
        for hook in hooks:
            hook.remove()
    norms = [layer.mlp.down_proj.weight.detach().float().norm(dim=0) for layer in layers_of(model)]
    values = [(seen[at] * norm).cpu().numpy().astype(np.float64) for at, norm in enumerate(norms)]
    return np.stack(values)
