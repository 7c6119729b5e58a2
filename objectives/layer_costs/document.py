"""Makes the document of the costs from the pairs."""

import numpy as np

from objectives.layer_costs.costs import KINDS, SEARCHED, Cost, Kind, LayerCosts, numbers
from objectives.layer_costs.estimate import Estimate
from objectives.layer_costs.pairs import Pair, Pairs


def costs_of(of: Pairs, found: Estimate) -> LayerCosts:
    """The document of an estimate from the fitted pairs."""
    at = [KINDS.index(kind) for kind in SEARCHED]
    return LayerCosts(
        source=source_of(of),
        costs={kind: _cost(of, found, kind) for kind in KINDS},
        covariance=tuple(numbers(row) for row in found.covariance[np.ix_(at, at)]),
    )


def source_of(of: Pairs) -> str:
    """Which pairs price what a search sees: `42 public pairs of 7 laboratories, widths 512 to 3,072, contexts 2,048 to 32,768 tokens; recall is not seen`."""
    used = [pair for pair in of.fitted if pair.change.keys() & set(SEARCHED)]
    widths = [pair.width for pair in used if pair.width]
    contexts = [pair.context for pair in used if pair.context]
    whose = len({of.laboratory(pair) for pair in used})
    ends = f"widths {min(widths):,} to {max(widths):,}, contexts {min(contexts):,} to {max(contexts):,} tokens"
    return f"{len(used)} public pairs of {whose} laboratories, {ends}; recall is not seen"


def _cost(of: Pairs, found: Estimate, kind: Kind) -> Cost:
    said, pairs = found.cost(kind), having(of.fitted, kind)
    low, high = said.interval()
    whose = sorted({of.laboratory(pair) for pair in pairs})
    most = max(abs(pair.change[kind]) for pair in pairs)
    rounded = [float(f"{number:.4f}") for number in (said.mean, said.sd, low, high)]
    return Cost(
        nats=rounded[0],
        sd=rounded[1],
        interval=(rounded[2], rounded[3]),
        pairs=len(pairs),
        most=most,
        laboratories=tuple(whose),
    )


def having(pairs: tuple[Pair, ...], kind: Kind) -> list[Pair]:
    """The pairs that differ in a kind."""
    return [pair for pair in pairs if kind in pair.change]
