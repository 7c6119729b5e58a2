"""Choices that the paper leaves open, varied: how far its findings depend on them."""

from typing import Any

import numpy as np

from nas.problem.evaluations import non_dominated
from objectives.dimensions import Dimensions
from objectives.latency.operator import Pass, phases
from objectives.latency.roofline import phase_times
from plas_paper.reproduce.claim import percent
from plas_paper.reproduce.whole_spaces import PHASES, Whole, whole
from search_spaces.arrays import FloatArray, IntArray

COARSE = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
SETTINGS: dict[str, dict[str, Any]] = {
    "as everywhere on this page": {},
    "attention fused": {"attention": "fused"},
    "head size 128": {"head_dim": 128},
    "r_single from 1 up": {"ratios": COARSE},
    "int8": {"precision": "int8"},
    "256 in / 256 out": {"workload": (1, 256, 256)},
    "closed form": {"latency": "closed_form"},
}
HEADER = (
    "setting",
    "frontier",
    "designs",
    "sparse",
    "mean E",
    "K = 1",
    "median depth",
    "median width",
    "median r",
    "r < 1",
)


def router_ms(every: Whole, phase: str) -> FloatArray:
    """Time of the routers of every design in a phase, ms."""
    x, spent = Dimensions(every.shapes), np.zeros(len(every.shapes))
    for one, name in zip(phases(every.problem.scenario), PHASES[:2], strict=True):
        if phase in (name, "total_ms"):
            routers = [
                t.seconds for t in phase_times(x, Pass(one, every.problem.scenario)).ffn if t.operator.name == "router"
            ]
            spent = spent + 1e3 * every.shapes.depth * sum(routers, np.zeros(len(every.shapes)))
    return spent


def without_router(phase: str) -> IntArray:
    """Rows of the frontier if the router took no time."""
    every = whole()
    return non_dominated(np.stack([every.metrics["loss"], every.metrics[phase] - router_ms(every, phase)], axis=1))


def rows() -> list[tuple[str, ...]]:
    """One row per setting and frontier, in the order of `HEADER`."""
    found = [
        _row(name, phase, whole(**setting), whole(**setting).frontier(phase))
        for name, setting in SETTINGS.items()
        for phase in PHASES
    ]
    return found + [_row("router for nothing", phase, whole(), without_router(phase)) for phase in PHASES]


def _row(name: str, phase: str, every: Whole, chosen: IntArray) -> tuple[str, ...]:
    c = {column: values[chosen] for column, values in every.columns.items()}
    shares = (c["n_experts"] > 1, c["top_k"] == 1, c["ffn_ratio"] < 1)
    sparse, single, small = (percent(float(share.mean())) for share in shares)
    middle = [f"{np.median(c[column]):.3g}" for column in ("depth", "width", "ffn_ratio")]
    middle[1] = f"{np.median(c['width']):.0f}"
    return (
        name,
        phase.removesuffix("_ms"),
        str(len(chosen)),
        sparse,
        f"{c['n_experts'].mean():.1f}",
        single,
        *middle,
        small,
    )
