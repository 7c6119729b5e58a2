"""The worth of the next trainings: the drop in the picks' expected regret, and what it costs in training FLOP.

The regret of a pick is its loss minus that of the best design within the pick's budgets. Now: the fit's picks, with each
draw of the law as the truth. After: each draw as the truth, the trainings simulated under it with the fit's residual sd,
every loss updated by the best linear predictor that the draws' covariances give (of a law that is linear in its
coefficients with normal draws this is the refit itself), the picks made again. Source: preposterior analysis, Raiffa and
Schlaifer 1961; linear Bayes, Goldstein and Wooff 2007. What no form of the law can hold is in neither figure.
"""

from typing import Any

import numpy as np

from plas_fit.frontier_check import Judged, picks_asked, regrets_of
from plas_fit.next_designs import Trainings
from search_spaces.arrays import BoolArray, FloatArray

PER = 1e18  # training FLOP that a rate is told for
LEAST_SD = 1e-6
GO_ON, STOP = "go on", "stop"
ONE_ANSWER = "not said, as this form can give no other answer: each draw orders all designs alike, and would call any picks right"
APPROXIMATION = "each draw as the truth; trainings simulated with the residual sd; losses updated linearly by the draws' covariances; a form that is wrong is not seen"


def worth(judged: Judged | str, trainings: Trainings, stop_below: float | None, seed: int) -> dict[str, Any]:
    """Expected regret of a study's picks now and after the trainings, nats, per FLOP, and whether to go on.

    The decision is `stop` where the drop per 1e18 training FLOP is below `stop_below`; None without a limit.
    A `reason` where it cannot be said.
    """
    if isinstance(judged, str):
        return {"reason": judged}
    if judged.drawn.alike:
        return {"reason": ONE_ANSWER}
    picks = picks_asked(judged)
    now, after = regrets(judged, trainings, list(picks.values()), np.random.default_rng(seed))
    drop = (now - after).mean(axis=1)
    flops = None if trainings.tokens is None else float(trainings.flops.sum())
    rate = None if flops is None else float(drop.mean()) / flops * PER
    return {
        "picks": list(picks),
        "draws": len(drop),
        "models": len(trainings),
        "regret_now": float(now.mean()),
        "regret_after": float(after.mean()),
        "drop": float(drop.mean()),
        "drop_error": float(drop.std(ddof=1) / np.sqrt(len(drop))) if len(drop) > 1 else None,
        "training_flops": flops,
        "drop_per_1e18_flop": rate,
        "stop_below": stop_below,
        "decision": None if stop_below is None or rate is None else STOP if rate < stop_below else GO_ON,
        "approximation": APPROXIMATION,
    }


def regrets(
    judged: Judged, trainings: Trainings, asked: list[BoolArray], generator: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Regret of each pick under each draw, now and after the trainings, nats, each (draws, picks)."""
    truths = judged.drawn.losses
    told = judged.found.metrics["loss"][judged.drawn.rows]
    at = np.zeros((len(judged.law.drawn), len(trainings)))
    for rows, law in trainings.by_count(judged.law):
        at[:, rows] = law.drawn_losses(trainings.architectures[rows])
    at = at[: len(truths)]
    sd = max(judged.law.residual_sd or 0.0, LEAST_SD)
    gain = _gain(truths, at, sd)
    noise = sd * generator.normal(size=at.shape)
    surprise = at - trainings.losses(judged.law)
    now = regrets_of(truths, np.broadcast_to(told, truths.shape), asked)
    after = [regrets_of(truths, told + (surprise + each) @ gain, asked) for each in (noise, -noise)]
    return now, np.asarray((after[0] + after[1]) / 2)


def _gain(truths: FloatArray, at: FloatArray, sd: float) -> FloatArray:
    """What a nat of surprise at each training moves each design's loss by, (trainings, designs)."""
    away, off = at - at.mean(axis=0), truths - truths.mean(axis=0)
    freedom = max(len(truths) - 1, 1)
    spread = away.T @ away / freedom + sd**2 * np.eye(at.shape[1])
    return np.asarray(np.linalg.solve(spread, away.T @ off / freedom))
