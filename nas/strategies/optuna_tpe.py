"""Multi-objective tree-structured Parzen estimator (Bergstra et al. 2011; Ozaki et al. 2022), new architectures only (Optuna)."""

from optuna.samplers import TPESampler
from pydantic import BaseModel, ConfigDict, Field

from nas.search.strategy import StrategyContext, Traits
from nas.strategies._optuna import REPEATS, Encoding, GivenGenes, OneByOne, Repeats, gene_distributions, with_choice

TRAITS = Traits(evaluations=1000, cap=2000, seedable=True, asynchronous=True)

ENOUGH, FEW_DESIGNS = 300, 100_000  # evaluations and designs between which categories find more than integers


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
    encoding: Encoding = Field(
        "integers",
        description="integers: the estimator sees the order of a gene's values; categories: it does not, "
        "the default from 300 evaluations on in a space of up to 100,000 designs",
    )
    multivariate: bool = Field(True, strict=True, description="One density over all genes instead of one for each")
    batch: int = Field(1, strict=True, ge=1, le=10_000, description="Architectures proposed at once")
    repeats: Repeats = Field("redraw", description=f"{REPEATS}; neighbour is the default where categories are")

    def following(self, evaluations: int, designs: int) -> dict[str, str]:
        """Categories where there are evaluations enough to learn each value on its own, else integers and repeats drawn again.

        Source: studies/strategies/results.md, chosen on twelve smooth studies, eight hard ones and two large spaces.
        """
        many = evaluations >= ENOUGH and designs <= FEW_DESIGNS
        return {"encoding": "categories", "repeats": "neighbour"} if many else {}


class Tpe(GivenGenes, TPESampler):
    """Optuna's sampler, given the genes."""


def build(context: StrategyContext, parameters: Parameters) -> OneByOne:
    """The strategy from its context and parameters."""
    genes = gene_distributions(context.problem.space, parameters.encoding) if parameters.multivariate else {}
    chosen = with_choice(genes)

    def make(seed: int) -> TPESampler:
        sampler = Tpe(
            n_startup_trials=parameters.startup,
            n_ei_candidates=parameters.candidates,
            multivariate=parameters.multivariate,
            seed=seed,
        )
        sampler.genes = chosen
        return sampler

    return OneByOne(context, parameters.encoding, parameters.repeats, parameters.batch, make)
