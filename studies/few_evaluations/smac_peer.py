"""SMAC3 (random forest, ParEGO) over the genes by its ask and tell: one design at a time, after its own initial designs.

A repaired repeat is told the value it had; a failed or infeasible design is told the worst values so far. Genes are ordinal integers.
"""

import tempfile
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace, UniformIntegerHyperparameter
from pydantic import BaseModel
from smac import HyperparameterOptimizationFacade, Scenario
from smac.multi_objective.parego import ParEGO
from smac.runhistory.dataclasses import TrialInfo, TrialValue

from nas.problem.evaluations import Evaluations
from nas.search.strategy import StrategyContext
from search_spaces.arrays import IntArray


class Parameters(BaseModel):
    """None."""


class SmacPeer:
    """Asks for one design at a time."""

    def __init__(self, context: StrategyContext, parameters: Parameters) -> None:
        self.space, self.objectives = context.problem.space, context.problem.objectives
        genes = [
            UniformIntegerHyperparameter(f"g{place}", 0, int(size) - 1)
            for place, size in enumerate(self.space.gene_sizes)
            if size > 1
        ]
        configurations = ConfigurationSpace(seed=context.seed)
        configurations.add(genes)
        names = [f"o{place}" for place in range(len(self.objectives))]
        scenario = Scenario(
            configurations,
            objectives=names,
            n_trials=10 * (context.evaluations or 100),
            seed=context.seed,
            deterministic=True,
            output_directory=Path(tempfile.mkdtemp()),
        )
        self.smac = HyperparameterOptimizationFacade(
            scenario,
            lambda config, seed=0: dict.fromkeys(names, 0.0),
            multi_objective_algorithm=ParEGO(scenario),
            overwrite=True,
            logging_level=False,
        )
        self.known: dict[int, list[float]] = {}
        self.waiting: deque[tuple[int, TrialInfo]] = deque()

    def ask(self, at_most: int) -> IntArray:
        while True:
            info = self.smac.ask()
            genotype = np.zeros((1, len(self.space.gene_sizes)), dtype=np.int64)
            for name, value in dict(info.config).items():
                genotype[0, int(name[1:])] = value
            genotype = self.space.repair(genotype)
            key = int(self.space.keys(genotype)[0])
            if key in self.known:
                self.smac.tell(info, TrialValue(cost=self.known[key]))
                continue
            self.waiting.append((key, info))
            return genotype

    def tell(self, evaluations: Evaluations) -> None:
        scaled = [o.scaled(column) for o, column in zip(self.objectives, evaluations.values.T, strict=True)]
        for key, feasible, *values in zip(
            evaluations.keys.tolist(), evaluations.feasible.tolist(), *scaled, strict=True
        ):
            worst = [max(column) for column in zip(*self.known.values(), values, strict=True)]
            self.known[key] = [float(value) for value in (values if feasible else worst)]
            for place, (asked, info) in enumerate(self.waiting):
                if asked == key:
                    self.smac.tell(info, TrialValue(cost=self.known[key]))
                    del self.waiting[place]
                    break


def build(context: StrategyContext, parameters: Parameters) -> Any:
    """The peer from its context and parameters."""
    return SmacPeer(context, parameters)
