"""Sentences on how sure a law's draws are of the answer, and where they cannot be."""

import numpy as np

from nas.answer.outcome import Outcome
from objectives.loss_law.law import Law
from search_spaces.arrays import FloatArray


def draws_outside(law: Law, outside: int) -> list[str]:
    """Notes on intervals, quantiles and probabilities from a law's draws outside of its rows; empty where no design is there."""
    if not law.draws or not outside:
        return []
    if law.beyond_rows is None:
        return [
            "Outside its rows the law's draws are too narrow, by how much its file does not say: loss@q and intervals "
            "understate the doubt there; fit it again"
        ]
    return [
        f"Outside its rows the law's intervals are {law.beyond_rows:.2g} times as wide as its draws, as its largest rows need when left out"
    ]


def sureness_in_short(probability: FloatArray, draws: int, outside: int) -> str:
    """How sure the law's draws are that a member of the frontier is one; `outside` of the members lie outside the law's rows."""
    if np.isnan(probability).all():
        return f"No probability of being optimal: {_no_evidence(draws, whole=outside == len(probability))}"
    return f"Over the law's {draws} draws a frontier member is optimal with probability {np.nanmedian(probability):.2f} (median{_of_inside(probability)})"


def _no_evidence(draws: int, *, whole: bool) -> str:
    """Why draws that agree are no evidence: the whole frontier lies outside, or the form can give no other answer."""
    if whole:
        return "the whole frontier lies outside the law's rows"
    return f"each of the law's {draws} draws orders all designs alike, since its form can give no other answer"


def _of_inside(probability: FloatArray) -> str:
    """Of how many it is, where some lie outside the law's rows."""
    known = int(np.isfinite(probability).sum())
    return "" if known == len(probability) else f" of the {known:,} inside the law's rows"


def unknown_uncertainty(law: Law) -> str:
    """That nothing is known, and what a published R² would imply."""
    sd = law.implied_residual_sd
    return "uncertainty unknown" + (
        f" (its R² implies a residual sd near {sd:g}: --set residual_sd={sd:g})" if sd else ""
    )


def sureness(outcome: Outcome) -> list[str]:
    """How sure the law's draws are of the frontier's members."""
    if outcome.optimal is None:
        return []
    law, problem = outcome.study.problem.scenario.law, outcome.study.problem
    p, draws = outcome.optimal, len(law.drawn)
    if np.isnan(p).all():
        outside = int(law.extrapolates(problem.architectures(outcome.frontier.genotypes)).sum())
        why = ", where all draws extrapolate by one form and their" if outside == len(p) else "; their"
        return [f"{sureness_in_short(p, draws, outside)}{why} agreement is no evidence."]
    return [
        f"Over the law's {draws} draws a member of this frontier is Pareto-optimal among the {len(outcome.evaluations):,} evaluated with probability {np.nanmedian(p):.2f} (median{_of_inside(p)}); "
        f"{int((p >= 0.5).sum())} of {len(p)} with at least 0.5 (frontier.csv). Draws hold the coefficients' uncertainty, not the form's."
    ]
