"""Gaussian processes with expected hypervolume improvement (Daulton et al. 2020; Ament et al. 2023), new architectures only (Optuna)."""

from collections.abc import Callable

import torch
from optuna.samplers import GPSampler
from pydantic import BaseModel, ConfigDict, Field
from threadpoolctl import ThreadpoolController

from nas.problem.evaluations import Evaluations, on_scale
from nas.search.strategy import StrategyContext, Traits
from nas.strategies._optuna import REPEATS, OneByOne, Repeats, quiet
from search_spaces.arrays import FloatArray, IntArray

TRAITS = Traits(evaluations=150, cap=150, seedable=True, objectives=4, asynchronous=True)


class Parameters(BaseModel):
    """Parameters of the strategy."""

    model_config = ConfigDict(extra="forbid")
    startup: int = Field(10, strict=True, ge=1, le=100_000, description="Random architectures before the first model")
    deterministic: bool = Field(
        True,
        strict=True,
        description="Whether the objectives have no noise, so that the models pass through the values",
    )
    batch: int = Field(1, strict=True, ge=1, le=10_000, description="Architectures proposed at once")
    repeats: Repeats = Field("neighbour", description=REPEATS)


class OnTheirScales(OneByOne):
    """Latencies reach the models as logarithms: the frontier is the same, and what is gained counts as in the results."""

    def __init__(
        self, context: StrategyContext, repeats: Repeats, batch: int, make: Callable[[int], GPSampler]
    ) -> None:
        self.objectives, self.pools = context.problem.objectives, ThreadpoolController()
        super().__init__(context, "integers", repeats, batch, make)

    def ask(self, at_most: int) -> IntArray:
        """New architectures, on one thread: steps are small, and a second one takes six times the processor where others work. The bits are the same."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with self.pools.limit(limits=1):
                return super().ask(at_most)
        finally:
            torch.set_num_threads(threads)

    def _values(self, evaluations: Evaluations) -> FloatArray:
        return on_scale(self.objectives, evaluations.values)


def build(context: StrategyContext, parameters: Parameters) -> OnTheirScales:
    """The strategy from its context and parameters."""

    def make(seed: int) -> GPSampler:
        with quiet():
            return GPSampler(
                n_startup_trials=parameters.startup,
                deterministic_objective=parameters.deterministic,
                warn_independent_sampling=False,
                seed=seed,
            )

    return OnTheirScales(context, parameters.repeats, parameters.batch, make)
