"""What a predicted gain over a published model rests on: costs of kinds of layers, experts, and what is left without either."""

from dataclasses import dataclass, replace

import numpy as np

from nas.problem.uncertainty import Difference, has_doubt, paired
from objectives.loss_law.law import Law
from objectives.loss_law.layer_deltas import nats
from search_spaces.architectures import Architectures

WITHOUT_LAYERS = {"layer_deltas": {}, "layer_deltas_source": "", "layer_delta_draws": {}}


@dataclass(frozen=True)
class PartsOfGain:
    """A design's loss less a model's, nats, is `layers` + `experts` + what is left.

    layers: by what kinds of layers cost; experts: of the design from a dense one of as many active parameters; left: of this one from
    the model, both without costs of kinds.
    """

    layers: float
    experts: float
    left: Difference

    @property
    def whole(self) -> float:
        """All three, nats."""
        return self.layers + self.experts + self.left.nats


def parts_of_gain(law: Law, design: Architectures, model: Architectures) -> PartsOfGain | None:
    """The parts of one design's difference from a model; None of a dense design of plain layers, and of a law that does not say how sure it is."""
    plain, dense = law.model_copy(update=WITHOUT_LAYERS), dense_twin(design)
    cost, theirs = (float(nats(each, law.layer_deltas, law.layer_context)[0]) for each in (design, model))
    sparse = int(design.n_experts[0]) > 1
    if not has_doubt(law) or not (sparse or cost != theirs):
        return None
    experts = float(plain.loss(design)[0] - plain.loss(dense)[0]) if sparse else 0.0
    return PartsOfGain(cost - theirs, experts, paired(plain, dense, model)[0])


def dense_twin(designs: Architectures) -> Architectures:
    """Dense designs of as many active parameters."""
    one = np.ones_like(designs.top_k)
    return replace(designs, n_experts=one, top_k=one, expert_size=designs.top_k * designs.expert_size)
