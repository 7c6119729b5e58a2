"""Training recipes: an editable YAML file, checked, the numbers that follow from it for one architecture, FLOPs and GPU hours."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import Faults, unknown
from nas.study.catalogue import is_file, load_device
from objectives import training
from objectives.plugins import documents, normalised
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, lt=1)]
Exponent = Annotated[float, Field(ge=-4, le=4)]
Whole = Annotated[int, Field(strict=True, ge=1, le=10**9)]


class LearningRate(BaseModel):
    """Linear warm-up, then cosine from peak to final; both times (width/reference)^exponent, likewise depth."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    peak: Positive
    final: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    warmup_share: Share
    width_exponent: Exponent = 0.0
    depth_exponent: Exponent = 0.0


class Initialisation(BaseModel):
    """Normal weights of this deviation times (width/reference)^exponent; what ends a residual branch / √(2 l).

    single_expert_by_count: where a token goes to one expert, what ends the experts times E, because the router's softmax
    weighs that expert by about 1/E at first.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    std: Positive
    width_exponent: Exponent = 0.0
    residual_by_depth: Annotated[bool, Field(strict=True)] = True
    single_expert_by_count: Annotated[bool, Field(strict=True)] = False


class Recipe(BaseModel):
    """How a candidate is trained; the keys of a recipe file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,60}$")]
    description: str = ""
    tokens: Positive
    sequence_length: Whole
    global_batch: Whole
    learning_rate: LearningRate
    initialisation: Initialisation
    reference_width: Whole = 1024
    reference_depth: Whole = 16
    beta1: Share
    beta2: Share
    epsilon: Positive = 1e-8
    weight_decay: Annotated[float, Field(ge=0, lt=1)]
    gradient_clip: Positive = 1.0
    auxiliary_loss: Annotated[float, Field(ge=0, le=1)] = 0.01
    accelerator: str = "h100_sxm"
    utilisation: Annotated[float, Field(gt=0, le=1)] = 0.4
    source: str = ""

    @property
    def step_tokens(self) -> int:
        """Tokens of one optimiser step."""
        return self.global_batch * self.sequence_length


@dataclass(frozen=True)
class Schedule:
    """A recipe's numbers for one architecture; the schedule in optimiser steps.

    std: of initial weights, residual_std of o_proj and down_proj, expert_std of the experts' down_proj.
    """

    steps: int
    warmup_steps: int
    peak: float
    final: float
    std: float
    residual_std: float
    expert_std: float


def schedule(recipe: Recipe, architecture: Architectures) -> Schedule:
    """Steps, learning rates and deviations of initial weights for one architecture (n = 1)."""
    width = int(architecture.width[0]) / recipe.reference_width
    depth = int(architecture.depth[0]) / recipe.reference_depth
    rate, init = recipe.learning_rate, recipe.initialisation
    scale = width**rate.width_exponent * depth**rate.depth_exponent
    tokens = float(training_tokens(architecture, recipe)[0])
    steps = math.ceil(tokens / recipe.step_tokens)
    std = init.std * width**init.width_exponent
    residual = std / math.sqrt(2 * int(architecture.depth[0])) if init.residual_by_depth else std
    single = init.single_expert_by_count and int(architecture.top_k[0]) == 1
    expert = residual * int(architecture.n_experts[0]) if single else residual
    warmup = round(steps * rate.warmup_share)
    return Schedule(steps, warmup, rate.peak * scale, rate.final * scale, std, residual, expert)


def training_tokens(architectures: Architectures, recipe: Recipe) -> FloatArray:
    """Tokens that each architecture is trained on, (n,): its own where a search chose them, else the recipe's."""
    own: FloatArray = architectures.tokens.astype(np.float64)
    return np.where(own > 0, own, recipe.tokens)


def load_recipe(name: str) -> Recipe:
    """A recipe by name or file.

    Raises:
        UsageError: unknown, unreadable, or every fault in it with its line.
    """
    shipped = documents("nas.export.recipes")
    if normalised(name) in shipped:
        path = shipped[normalised(name)]
    elif is_file(name):
        path = Path(name)
    else:
        raise UsageError(f"recipe: {unknown('a recipe', name, shipped, 'a YAML file')}")
    content, origins = yaml_source.read(path)
    return checked_recipe(yaml_source.keys_of(content, path, "see 'plas list --schema recipe'"), Faults(origins))


def checked_recipe(content: dict[str, Any], faults: Faults) -> Recipe:
    """A recipe from its content.

    Raises:
        UsageError: every fault at once.
    """
    try:
        return Recipe.model_validate(content)
    except ValidationError as error:
        faults.add_validation(error, model=Recipe)
    faults.raise_if_any()
    raise AssertionError("a validation error without faults")


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
