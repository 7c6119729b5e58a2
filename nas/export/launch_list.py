"""candidates.csv of an export: what was exported, with predicted metrics, exact parameters and training cost."""

from typing import Any

import numpy as np

from nas.answer.outcome_files import file_columns
from nas.export.model import Model
from nas.export.recipe import training_tokens
from nas.export.training_cost import gpu_hours, training_flops
from nas.problem.problem import Problem
from objectives import counts
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray

FILE = "candidates.csv"


def launch_columns(problem: Problem, models: list[Model]) -> dict[str, AnyArray]:
    """Columns of a candidate file.

    Loss, latencies and memory are the study's, in its own conventions; params_total and params_active are the
    exported model's, embeddings included, and so are FLOPs and GPU hours.
    """
    exported = Architectures.concatenate([model.architecture for model in models])
    assessment = problem.assess(problem.headed(exported))
    own = {function.name for function in problem.functions}
    metrics: dict[str, Any] = {name: assessment[name] for name in problem.metric_names if name not in own}
    metrics["params_total"] = counts.total(exported)
    metrics["params_active"] = counts.active(exported)
    recipe = models[0].recipe
    flops = training_flops(exported, recipe)
    return {
        "id": _texts([model.id for model in models]),
        "folder": _texts([model.folder for model in models]),
        **file_columns(exported, metrics),
        "recipe": _texts([recipe.name] * len(models)),
        "training_tokens": training_tokens(exported, recipe),
        "training_flops": flops,
        "gpu_hours": gpu_hours(flops, recipe),
    }


def _texts(values: list[str]) -> AnyArray:
    return np.array(values, dtype=object)
