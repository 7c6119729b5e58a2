"""candidates.csv of an export: what was exported, with predicted metrics, exact parameters and training cost.

Expert sizes may be rounded to a multiple; what that changes in loss and latency is said, nothing is rounded in silence.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from nas.answer.outcome_files import file_columns
from nas.export.model import Model
from nas.export.recipe import gpu_hours, training_flops, training_tokens
from nas.problem.problem import Problem
from objectives import counts
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, frozen

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


@dataclass(frozen=True)
class Rounded:
    """One candidate's expert size, FFN ratio, loss and latency before and after."""

    expert_size: tuple[int, int]
    ffn_ratio: tuple[float, float]
    loss: tuple[float, float]
    total_ms: tuple[float, float]

    def __str__(self) -> str:
        (m, m2), (r, r2), (x, x2), (t, t2) = self.expert_size, self.ffn_ratio, self.loss, self.total_ms
        return (
            f"expert size {m} -> {m2}, FFN ratio {r:.4g} -> {r2:.4g}, loss {x:.4f} -> {x2:.4f}, "
            f"total_ms {t:.2f} -> {t2:.2f}"
        )

    def mapping(self) -> dict[str, Any]:
        """As JSON."""
        return {name: {"asked": pair[0], "exported": pair[1]} for name, pair in asdict(self).items()}


def to_multiple(architectures: Architectures, multiple: int) -> Architectures:
    """Expert sizes at the nearest multiple, halves up, at least one multiple."""
    sizes = np.maximum((architectures.expert_size + multiple // 2) // multiple, 1) * multiple
    return replace(architectures, expert_size=frozen(sizes.astype(np.int64)))


def changes(problem: Problem, designs: Architectures, exported: Architectures) -> list[Rounded | None]:
    """Changes by rounding per candidate in the study's conventions; None where nothing changed."""
    before, after = (problem.assess(problem.headed(a)) for a in (designs, exported))
    rounded: list[Rounded | None] = []
    for i in range(len(designs)):
        if designs.expert_size[i] == exported.expert_size[i]:
            rounded.append(None)
            continue
        sizes = (int(designs.expert_size[i]), int(exported.expert_size[i]))
        ratios = (float(designs.ffn_ratio[i]), float(exported.ffn_ratio[i]))
        loss, ms = ((float(before[name][i]), float(after[name][i])) for name in ("loss", "total_ms"))
        rounded.append(Rounded(sizes, ratios, loss, ms))
    return rounded
