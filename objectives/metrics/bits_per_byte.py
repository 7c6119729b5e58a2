"""Loss per byte of text, bits, what its vocabulary costs included, (n,)."""

import math

from objectives.assessment import Assessment
from objectives.metrics.loss import composition as composition_of_loss
from objectives.parts import Composition
from objectives.scenario import Scenario
from search_spaces.arrays import FloatArray

UNIT = "bits/byte"
LOG_SCALE = False
PER_BYTE = True  # a curve of bytes per token decides it


def evaluate(assessment: Assessment) -> FloatArray:
    """loss / (ln 2 · bytes per token of the law's tokenizer), (n,); with one vocabulary times what that costs beside the law's own.

    Raises:
        ValueError: no text, or a vocabulary that its curve does not count.
    """
    text, law, loss = assessment.scenario.text_here, assessment.scenario.law, assessment["loss"]
    if law.vocabulary_cost is None:
        loss = text.cost.priced(loss, assessment.architectures.vocabulary)
    return loss / (math.log(2.0) * text.bytes_of_law)


def composition(scenario: Scenario) -> Composition:
    """It rises with the loss, all designs being of one vocabulary."""
    loss, text = composition_of_loss(scenario), scenario.text_here
    bits = math.log(2.0) * text.bytes_of_law

    def value(*u: FloatArray) -> FloatArray:
        found = loss.value(*u)
        return (found if scenario.law.vocabulary_cost else text.cost.priced(found, text.cost.here or 0)) / bits

    return Composition(loss.quantities, value)
