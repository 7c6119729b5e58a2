"""Predicted perplexity against Qwen2.5-0.5B at equal total time, under rules of memory."""

import math
from dataclasses import dataclass

from nas.answer.design_words import describe
from nas.answer.sureness import of_picks, witness_in_words
from nas.problem.picks import answers
from nas.study.baselines import baseline
from plas_paper.reproduce.whole_spaces import everything, problem

MODEL = "qwen2.5_0.5b"
PRINTED_GAIN = 19.42  # per cent


@dataclass(frozen=True)
class Gain:
    """A pick beside the published model: how much lower its perplexity is predicted to be, per cent, its weights, GB, and what `evidence` says of it."""

    name: str
    percent: float
    memory_gb: float
    design: str
    evidence: str = ""


def gains_at_equal_latency() -> tuple[list[Gain], float]:
    """Layers alone on both sides: the exact optima, and the published model's weights, GB."""
    made = problem(baselines=[MODEL])
    theirs, found = made.assess(baseline(MODEL).architecture), []
    evaluated = everything(made)
    picks = answers(made, evaluated)
    told = of_picks(made, [baseline(MODEL)], picks, evaluated)
    for pick, witness in zip(picks, told, strict=True):
        if pick.answer is None or not pick.question.baseline or pick.question.vocabulary:
            continue
        lower = 100 * (1 - math.exp(pick.answer.metrics["loss"][0] - theirs["loss"][0]))
        name = pick.question.label.partition("no LM head")[2].removeprefix(", ") or "any memory"
        shape = describe(made.architectures(pick.answer.genotypes))
        said = "" if witness is None else witness_in_words(witness)
        found.append(Gain(name, lower, float(pick.answer.metrics["memory_gb"][0]), shape, said))
    return found, float(theirs["memory_gb"][0])
