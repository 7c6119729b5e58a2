"""NSGA-II (Deb et al. 2002) on integer genes, new architectures only (pymoo)."""

from pymoo.algorithms.moo.nsga2 import NSGA2

from nas.strategies._pymoo import PymooStrategy, Variation
from nas.strategy import Brief, Traits

TRAITS = Traits(seedable=True)


class Parameters(Variation):
    """Parameters of the strategy."""


def build(brief: Brief, parameters: Parameters) -> PymooStrategy:
    """The strategy from its brief and parameters."""
    return PymooStrategy(brief, parameters, NSGA2)
