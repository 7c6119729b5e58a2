"""Bytes of a KV cache."""

import numpy as np

from objectives.dimensions import Dimensions
from search_spaces.arrays import FloatArray


def kv_cache_bytes(x: Dimensions, context: int, per_element: float) -> FloatArray:
    """2 d_m for every token that a layer keeps, all of the context or as many as its window is long, times bytes (n,).

    Of latent attention r + c; layers of full attention with heads of their own have their own d_m. `per_element` are B b_kv.
    """
    elements = 2.0 * x.kv_dim * x.kinds.kept_tokens(context)
    if x.kinds.own_headed_kv_layers is not None:
        elements = elements + x.kinds.own_headed_kv_layers * context * 2.0 * (x.full_kv_dim - x.kv_dim)
    if x.latent is not None:
        elements = np.where(x.latent > 0, x.kinds.own_kv_layers * context * x.latent_kept, elements)
    kept: FloatArray = elements * per_element
    return kept
