"""What training a candidate takes: FLOPs and GPU hours."""

import numpy as np

from nas.errors import UsageError
from nas.exporting.recipe import Recipe
from nas.study.catalogue import load_device
from objectives.counts import count
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray


def training_flops(architectures: Architectures, recipe: Recipe) -> FloatArray:
    """FLOPs of all tokens, forward and backward, (n,); one multiply-accumulate is 2.

    3 tokens [2 (P_active + V d) + 4 l d_q (S + 1)/2], where P_active are the linear weights and the router
    that one token uses, V d the LM head, and S the sequence length under a causal mask.
    """
    g = count(architectures)
    head = architectures.vocabulary.astype(np.float64) * architectures.width
    used = g.attention + g.experts_active + g.shared_expert + g.router + head
    scores = 4.0 * architectures.depth * architectures.query_dim * (recipe.sequence_length + 1) / 2
    flops: FloatArray = 3.0 * recipe.tokens * (2.0 * used + scores)
    return flops


def gpu_hours(flops: FloatArray, recipe: Recipe) -> FloatArray:
    """Hours of one accelerator at the recipe's utilisation of its dense FP16 peak, (n,).

    Raises:
        UsageError: an accelerator that the catalogue does not have.
    """
    try:
        peak = load_device(recipe.accelerator).fp16
    except UsageError as error:
        raise UsageError(f"recipe {recipe.name}: accelerator: {str(error).removeprefix('--device: ')}") from None
    hours: FloatArray = flops / (recipe.utilisation * peak) / 3600.0
    return hours
