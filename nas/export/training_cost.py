"""FLOPs and GPU hours of training a candidate by a recipe."""

from nas.errors import UsageError
from nas.export.recipe import Recipe, training_tokens
from nas.study.catalogue import load_device
from objectives import training
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray


def training_flops(architectures: Architectures, recipe: Recipe) -> FloatArray:
    """FLOPs of all their tokens, forward and backward, as metric `train_flops` counts them, (n,)."""
    return training.training_flops(architectures, training_tokens(architectures, recipe), recipe.sequence_length)


def gpu_hours(flops: FloatArray, recipe: Recipe) -> FloatArray:
    """Hours of one accelerator at the recipe's utilisation of its dense FP16 peak, (n,).

    Raises:
        UsageError: an accelerator that the catalogue does not have.
    """
    try:
        accelerator = load_device(recipe.accelerator)
    except UsageError as error:
        raise UsageError(f"recipe {recipe.name}: accelerator: {str(error).removeprefix('--device: ')}") from None
    return training.device_hours(flops, accelerator, recipe.utilisation)
