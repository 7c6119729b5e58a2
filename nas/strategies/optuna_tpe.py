"""Multi-objective tree-structured Parzen estimator (Bergstra et al. 2011; Ozaki et al. 2022), new architectures only (Optuna)."""

from optuna.distributions import BaseDistribution
from optuna.samplers import TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial
from pydantic import BaseModel, ConfigDict, Field

from nas.search.strategy import StrategyContext, Traits
from nas.strategies._optuna import REPEATS, Encoding, OneByOne, Repeats, gene_distributions

TRAITS = Traits(evaluations=1000, cap=2000, seedable=True, asynchronous=True)


class Parameters(BaseModel):
    """Parameters of the strategy."""

    model_config = ConfigDict(extra="forbid")
    startup: int = Field(10, strict=True, ge=1, le=100_000, description="Random architectures before the estimator")
    candidates: int = Field(
        24,
        strict=True,
        ge=1,
        le=100_000,
        description="Draws from the density of good values, of which the best is proposed",
    )
    encoding: Encoding = Field("integers", description="Whether the estimator sees the order of a gene's values")
    multivariate: bool = Field(True, strict=True, description="One density over all genes instead of one for each")
    batch: int = Field(1, strict=True, ge=1, le=10_000, description="Architectures proposed at once")
    repeats: Repeats = Field("neighbour", description=REPEATS)


class Tpe(TPESampler):
    """Optuna's sampler, given the genes; its own search for them reads all trials at every draw."""

    genes: dict[str, BaseDistribution]

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Every gene with a choice, sorted; none without `multivariate`."""
        return self.genes


def build(context: StrategyContext, parameters: Parameters) -> OneByOne:
    """The strategy from its context and parameters."""
    genes = gene_distributions(context.problem.space, parameters.encoding).items() if parameters.multivariate else ()

    def make(seed: int) -> TPESampler:
        sampler = Tpe(
            n_startup_trials=parameters.startup,
            n_ei_candidates=parameters.candidates,
            multivariate=parameters.multivariate,
            seed=seed,
        )
        sampler.genes = {name: distribution for name, distribution in sorted(genes) if not distribution.single()}
        return sampler

    return OneByOne(context, parameters.encoding, parameters.repeats, parameters.batch, make)
