"""Expert sizes rounded to a multiple, and what that changes in loss and latency; nothing is rounded in silence."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from nas.problem.problem import Problem
from search_spaces.architectures import Architectures
from search_spaces.arrays import frozen


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


def changes(problem: Problem, asked: Architectures, exported: Architectures) -> list[Rounded | None]:
    """Changes by rounding per candidate in the study's conventions; None where nothing changed."""
    before, after = (problem.assess(problem.headed(a)) for a in (asked, exported))
    found: list[Rounded | None] = []
    for i in range(len(asked)):
        if asked.expert_size[i] == exported.expert_size[i]:
            found.append(None)
            continue
        pairs = {name: (float(before[name][i]), float(after[name][i])) for name in ("loss", "total_ms")}
        sizes = (int(asked.expert_size[i]), int(exported.expert_size[i]))
        ratios = (float(asked.ffn_ratio[i]), float(exported.ffn_ratio[i]))
        found.append(Rounded(sizes, ratios, pairs["loss"], pairs["total_ms"]))
    return found
