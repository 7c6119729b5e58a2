"""Whole spaces evaluated once per setting, with their frontiers."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, lru_cache
from inspect import signature
from typing import Any

import numpy as np

from nas.problem.evaluations import Evaluations, non_dominated, rounded
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from nas.study.catalogue import load_space
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray

PHASES = ("prefill_ms", "decode_ms", "total_ms")
NEEDED = ("loss", *PHASES, "memory_gb")
_SEEN: ContextVar[dict[Hashable, int] | None] = ContextVar("seen", default=None)


@contextmanager
def looked_at() -> Iterator[dict[Hashable, int]]:
    """How many designs each setting holds that is looked at meanwhile, evaluated now or before."""
    seen: dict[Hashable, int] = {}
    token = _SEEN.set(seen)
    try:
        yield seen
    finally:
        _SEEN.reset(token)


def look_at(setting: Hashable, designs: int) -> None:
    """Note that a setting's designs are looked at."""
    if (seen := _SEEN.get()) is not None:
        seen[setting] = designs


@dataclass(frozen=True, eq=False)
class Whole:
    """Every design of a space in one setting: its problem, shapes, metrics."""

    problem: Problem
    shapes: Architectures
    metrics: dict[str, FloatArray]

    def frontier(self, metric: str) -> IntArray:
        """Rows of the loss–metric frontier, by rising metric."""
        rows = non_dominated(np.stack([self.metrics["loss"], self.metrics[metric]], axis=1))
        ordered: IntArray = rows[np.lexsort((self.metrics["loss"][rows], self.metrics[metric][rows]))]
        return ordered

    def mean(self, column: str, metric: str) -> float:
        """Mean of a column along the loss–metric frontier."""
        return float(self.columns[column][self.frontier(metric)].mean())

    def best(self, **limits: float) -> int | None:
        """Row of the lowest loss within limits, ties to the lowest first limited metric, then total_ms; None: nothing fits."""
        fits = np.ones(len(self.shapes), dtype=bool)
        for metric, limit in limits.items():
            fits &= self.metrics[metric] <= limit
        if not fits.any():
            return None
        rows = np.flatnonzero(fits)
        keys = [rounded(self.metrics[name][rows]) for name in ("total_ms", next(iter(limits)), "loss")]
        return int(rows[np.lexsort(tuple(keys))[0]])

    @cached_property
    def columns(self) -> dict[str, FloatArray]:
        """Depth, width, E, K, r, r_single, gqa, ρ as float64."""
        names = ("depth", "width", "n_experts", "top_k", "ffn_ratio", "expert_ffn_ratio", "gqa", "activation_rate")
        return {name: np.asarray(getattr(self.shapes, name), dtype=np.float64) for name in names}


def problem(**study: Any) -> Problem:
    """The problem of a study without budgets, applications or baselines."""
    raw = {"algo": "exact", "default_budget": "none", "applications": {}, "baselines": [], **study}
    return assemble(raw, {}).problem


def everything(made: Problem, names: tuple[str, ...] | None = None) -> Evaluations:
    """Every design of a problem's space, with these metrics or all."""
    look_at(object(), made.space.size)
    return made.evaluate(made.space.genotypes(np.arange(made.space.size)), names)


def whole(**setting: Any) -> Whole:
    """Every design of a space under the paper's conventions and these changes, evaluated once: the arguments of `evaluated`."""
    usual = {name: parameter.default for name, parameter in signature(evaluated).parameters.items()}
    changed = {name: value for name, value in setting.items() if usual[name] != value}
    found = evaluated(**changed)
    look_at(tuple(sorted(changed.items())), len(found.shapes))
    return found


@lru_cache(maxsize=64)
def evaluated(
    space: str = "paper",
    precision: str = "fp16",
    latency: str = "operator",
    device: str = "jetson_agx_orin_64gb",
    attention: str = "unfused",
    workload: tuple[int, int, int] = (1, 1024, 16),
    head_dim: int = 64,
    ratios: tuple[float, ...] = (),
) -> Whole:
    """Every design of a space; `ratios` replaces the r_single grid."""
    content = load_space(space).mapping() | {"head_dim": head_dim}
    if ratios:
        content["axes"] = {**content["axes"], "expert_ffn_ratio": list(ratios)}
    batch, read, written = workload
    made = problem(
        space=content,
        precision=precision,
        latency=latency,
        device=device,
        attention=attention,
        batch=batch,
        input_tokens=read,
        output_tokens=written,
    )
    found = made.evaluate(made.space.genotypes(np.arange(made.space.size)), NEEDED)
    return Whole(made, made.architectures(found.genotypes), found.metrics)
