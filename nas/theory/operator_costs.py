"""Operator-model latency of one (E, K): sums of the larger of two posynomials, bounded by cuts.

Each operator's compute and memory side is a combination of seven monomials of width, ratio and gqa,
whose coefficients are read off the operator model itself. Choosing one side for every operator
gives a posynomial that is nowhere above the latency; choosing the larger sides at a point makes it
equal there. So the program is solved again with such cuts until its optimum meets them all, and
the bound is certified at every step.
"""

from dataclasses import dataclass

import numpy as np

from nas.theory.costs import Setting
from nas.theory.posynomial import Posynomial
from objectives.dimensions import Dimensions
from objectives.latency.operator import Operator, Pass, Phase, phases
from objectives.latency.roofline import epilogue_seconds, launch_seconds, phase_times
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray

MONOMIALS = np.array(  # of one layer, in the order of VARIABLES
    [(0, 2, 0, 0, 0), (0, 2, 0, -1, 0), (0, 2, 1, 0, 0), (0, 1, 0, 0, 0), (0, 1, 0, -1, 0), (0, 1, 1, 0, 0), (0,) * 5],
    dtype=np.float64,
)
AGREE = 1e-8
PHASES = {"prefill_ms": (True, False), "decode_ms": (False, True), "tpot_ms": (False, True), "total_ms": (True, True)}


@dataclass(frozen=True, eq=False)
class Sides:
    """Coefficients (operators, 7) of compute and memory time, ms, with what is added to either; per layer and per model."""

    compute: FloatArray
    memory: FloatArray
    depths: FloatArray

    def cut(self, logs: FloatArray) -> Posynomial:
        """The posynomial of the larger side of each operator at a point."""
        at = np.exp(MONOMIALS @ logs)
        larger = np.where((self.compute @ at >= self.memory @ at)[:, None], self.compute, self.memory)
        terms = []
        for power in (0.0, 1.0):
            total = larger[self.depths == power].sum(axis=0)
            terms += [(float(c), (power, *a[1:])) for c, a in zip(total, MONOMIALS.tolist(), strict=True)]
        return Posynomial.from_terms(terms)

    def value(self, logs: FloatArray) -> float:
        """The latency at a point between designs, ms."""
        return float(self.cut(logs)(logs))


def sides(metric: str, phases: tuple[Sides, Sides], output_tokens: int) -> Sides:
    """The two sides of every operator of a latency metric, from those of prefill and decode."""
    parts = [part for part, wanted in zip(phases, PHASES[metric], strict=True) if wanted]
    scale = 1.0 / output_tokens if metric == "tpot_ms" else 1.0
    return Sides(
        np.concatenate([part.compute for part in parts]) * scale,
        np.concatenate([part.memory for part in parts]) * scale,
        np.concatenate([part.depths for part in parts]),
    )


def sides_of_phases(setting: Setting) -> tuple[Sides, Sides]:
    """The two sides of every operator of prefill and decode, for a setting with (E, K).

    Raises:
        ValueError: an operator that is no combination of the seven monomials.
    """
    sample = _sample(setting)
    basis = np.exp(_logs(sample) @ MONOMIALS.T)
    prefill, decode = phases(setting.scenario)
    found = []
    for phase in (prefill, decode):
        times = phase_times(Dimensions(sample), Pass(phase, setting.scenario))
        rows = [(t, 1.0) for t in (*times.attention, *times.ffn)] + [(t, 0.0) for t in times.head]
        added = [_added(t.operator, phase, setting.scenario) for t, _ in rows]
        compute = np.array([_fitted(basis, t.compute + a) for (t, _), a in zip(rows, added, strict=True)])
        memory = np.array([_fitted(basis, t.memory + a) for (t, _), a in zip(rows, added, strict=True)])
        found.append(Sides(1e3 * compute, 1e3 * memory, np.array([power for _, power in rows])))
    return found[0], found[1]


def _added(operator: Operator, phase: Phase, scenario: Scenario) -> FloatArray | float:
    """Launches and epilogues, seconds, which come on top of either side."""
    each = launch_seconds(operator, phase, scenario) + epilogue_seconds(operator, phase, scenario)
    return operator.count * each


def _sample(setting: Setting) -> Architectures:
    """Designs of one layer and one (E, K) that determine the monomials."""
    assert setting.experts is not None
    heads, kv, size = (
        grid.ravel() for grid in np.meshgrid([4, 12, 20, 48], [1, 2, 4], [64, 320, 1536, 4096], indexing="ij")
    )
    n = len(heads)
    shape = {
        "depth": np.ones(n, dtype=np.int64),
        "width": heads * setting.head_dim,
        "head_dim": np.full(n, setting.head_dim),
        "n_heads": heads,
        "n_kv_heads": kv,
        "n_experts": np.full(n, setting.experts[0]),
        "top_k": np.full(n, setting.experts[1]),
        "expert_size": size,
    }
    made = Architectures.from_shape({name: column.astype(np.int64) for name, column in shape.items()})
    return made.with_vocabulary(setting.vocabulary, tied=setting.tied)


def _logs(a: Architectures) -> FloatArray:
    columns = np.stack([a.depth, a.width, a.ffn_ratio, a.gqa, a.activation_rate], axis=1)
    logs: FloatArray = np.log(columns.astype(np.float64))
    return logs


def _fitted(basis: FloatArray, values: FloatArray | float) -> FloatArray:
    """Coefficients of the monomials that give the values, exactly."""
    values = np.broadcast_to(np.asarray(values, dtype=np.float64), (len(basis),))
    if not values.any():
        return np.zeros(basis.shape[1])
    scaled = basis / values[:, None]
    norms = np.sqrt((scaled**2).sum(axis=0))
    solution = np.linalg.lstsq(scaled / norms, np.ones(len(basis)), rcond=None)[0]
    found: FloatArray = np.where(np.abs(solution) * (scaled / norms).max(axis=0) < AGREE, 0.0, solution) / norms
    if (found < 0.0).any() or np.abs(basis @ found / values - 1.0).max() > AGREE:
        raise ValueError("operator: expected a positive combination of the seven monomials, got another function")
    return found
