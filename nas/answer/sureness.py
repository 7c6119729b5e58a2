"""Sentences on how sure a law is of the answer, by its draws and its misfit, and where it cannot be."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from nas.answer.design_words import describe
from nas.answer.outcome import Doubt, Outcome, PickRegret
from nas.answer.witness import EVIDENCE, Witness, own_in_words, parts_of_gain
from nas.problem.objective import Baseline
from nas.problem.problem import Problem
from nas.problem.uncertainty import Difference, has_doubt
from objectives.display_text import chance
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, FloatArray

OUTSIDE = "outside of the evidence"
LEVEL = "90 %: "  # of intervals, where no head of a column says it


def doubt_outside(law: Law, outside: int) -> list[str]:
    """What is claimed of so many designs outside of the law's evidence; nothing of none, and of a law without uncertainty."""
    if not has_doubt(law) or not outside:
        return []
    said = f"Outside of the evidence ({outside:,} of the frontier) no difference is claimed"
    if not law.draws:
        return [said]
    if law.beyond_rows is None:
        return [f"{said}; loss@q is too narrow there, by how much the law's file does not say"]
    return [
        f"{said}; there loss@q spreads {law.beyond_rows:.2g} times as wide as the draws, as the law's largest rows did when left out of its fit"
    ]


def uncertainty_in_words(law: Law) -> str:
    """`residual standard deviation 0.013 nats and 256 draws`; "" where the law says neither."""
    draws = len(law.draws) + sum(len(rival.draws) for rival in law.rivals)
    known = [] if law.residual_sd is None else [f"residual standard deviation {law.residual_sd:.3g} nats"]
    return " and ".join([*known, *([f"{draws} draws"] if draws else [])])


def difference_in_short(found: Difference) -> str:
    """`-0.11 (-0.19 to -0.04), 0.98`: nats with their 90 % interval, and the probability that the loss is lower."""
    if not np.isfinite(found.nats):
        return "not priced"
    if not found.known:
        return f"{found.nats:+.2f}, {OUTSIDE}"
    return f"{_interval(found, '')}, {chance(found.better)}"


def difference_in_words(found: Difference) -> str:
    """`-0.11 nats (90 %: -0.19 to -0.04), better with probability 0.98`."""
    if not np.isfinite(found.nats):
        return "not priced"
    if not found.known:
        return f"{found.nats:+.2f} nats, {OUTSIDE}"
    return f"{_interval(found, ' nats', LEVEL)}, better with probability {chance(found.better)}"


def witness_in_words(found: Witness) -> str:
    """`-0.11 nats (90 %: -0.19 to -0.04), better with probability 0.98`, after `disagrees` and `no difference shown` where it is so; its own pick."""
    said = [*["disagrees"] * found.disagrees, *["no difference shown"] * found.undecided]
    own = own_in_words(found)
    return ", ".join([*said, difference_in_words(found.difference)]) + (f"; {own}" if own else "")


def parts_lines(law: Law, design: Architectures, models: Sequence[Baseline]) -> list[str]:
    """Which part of a design's difference from the first model rests on costs of kinds of layers and on experts; nothing where it has neither."""
    found = parts_of_gain(law, design, models[0].architecture) if models else None
    if found is None or not np.isfinite(found.whole):
        return []
    parts = [f"{found.layers:+.2g} rest on costs of layer kinds (--deltas none)"] if found.layers else []
    parts += [f"{found.experts:+.2g} rest on experts"] if found.experts else []
    whole = f"Of {found.whole:+.2g} nats from {models[0].label}"
    return [f"{whole} {' and '.join(parts)}; without {difference_in_words(found.left)}"]


def beside_evidence(found: Witness | None, *, brief: bool = False) -> str:
    """` [evidence: …]`, to stand behind a gain of another law; brief: in short, without its own pick; "" without a witness."""
    if found is None:
        return ""
    if not brief:
        return f" [evidence: {witness_in_words(found)}]"
    return f" [evidence: {witness_in_short(found)}]"


def witness_in_short(found: Witness | None) -> str:
    """`no difference shown, +0.02 (-0.05 to +0.09), 0.29`; "" without a witness."""
    if found is None:
        return ""
    return (
        "disagrees, " * found.disagrees
        + "no difference shown, " * found.undecided
        + difference_in_short(found.difference)
    )


def _interval(found: Difference, unit: str, level: str = "") -> str:
    digits = next((n for n, least in ((2, 0.1), (3, 0.01)) if found.high - found.low >= least), 4)
    return f"{found.nats:+.{digits}f}{unit} ({level}{found.low:+.{digits}f} to {found.high:+.{digits}f})"


def steps(outcome: Outcome) -> list[str]:
    """How many steps of the frontier the law tells apart; nothing of a law without uncertainty."""
    doubt = outcome.doubt
    if doubt is None or doubt.groups is None or not doubt.steps:
        return []
    inside = int((doubt.groups >= 0).sum())
    within = "" if inside == len(doubt.groups) else " within the evidence"
    return [
        f"The law tells {doubt.steps} steps of the frontier's {inside:,} designs{within} apart: in a step the cheapest will do"
    ]


def of_level(outcome: Outcome) -> list[str]:
    """How unsure one loss is, on a text that nobody has seen, beside a difference; nothing of a law without draws."""
    if outcome.doubt is None or outcome.doubt.level_sd is None:
        return []
    said = f"loss@q is of one loss on an unknown text and tokenizer: over the law's draws and misfit the pick's has an sd of {outcome.doubt.level_sd:.2g} nats"
    first = next(iter(outcome.doubt.differences[0].items()), None)
    if first is None or not first[1].known:
        return [f"{said}; what all designs share of it cancels in differences."]
    label, found = first
    return [
        f"{said}, its difference from {label} one near {(found.high - found.low) / 3.29:.2g}: differences are what to go by."
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


UNKNOWN = Difference(*[float("nan")] * 4)


def difference_columns(found: Mapping[str, Sequence[Difference]]) -> dict[str, AnyArray]:
    """Differences of designs from each model as columns of a file: `difference_MODEL`, its 90 % interval, `better_than_MODEL`."""
    columns: dict[str, AnyArray] = {}
    for label, rows in found.items():
        values = np.array([[each.nats, each.low, each.high, each.better] for each in rows]).reshape(-1, 4)
        columns |= dict(zip(_names(label), values.T, strict=True))
    return columns


def evidence_columns(told: Mapping[str, Sequence[Witness | None]]) -> dict[str, AnyArray]:
    """The same of `evidence`: `evidence_difference_MODEL` and so on; NaN where the study's law says no difference."""
    found = {label: [UNKNOWN if each is None else each.difference for each in rows] for label, rows in told.items()}
    return {f"{EVIDENCE}_{name}": column for name, column in difference_columns(found).items()}


def _names(label: str) -> tuple[str, str, str, str]:
    return f"difference_{label}", f"difference_{label}_low", f"difference_{label}_high", f"better_than_{label}"


def difference_in_numbers(found: Difference) -> dict[str, float | None]:
    """`nats`, `low`, `high`, `better`; None for what is not claimed."""
    return {
        name: None if np.isnan(value := getattr(found, name)) else value for name in ("nats", "low", "high", "better")
    }


def pick_in_numbers(outcome: Outcome, place: int) -> dict[str, Any]:
    """Of one pick its differences from every published model, its expected regret beside the least one, what `evidence` says of it."""
    witness = outcome.witnesses[place]
    row: dict[str, Any] = {} if witness is None else {"evidence": witness_in_numbers(witness)}
    if outcome.doubt is None:
        return row
    found = outcome.doubt.differences[place]
    row["differences"] = {label: difference_in_numbers(each) for label, each in found.items()}
    regret = outcome.doubt.regrets[place]
    return row | ({} if regret is None else regret_in_numbers(outcome.study.problem, regret))


def regret_in_numbers(problem: Problem, found: PickRegret) -> dict[str, Any]:
    """A pick's expected regret, the least one, among what, and the design that has it."""
    design = problem.architectures(found.least.genotype[None])
    return {
        "expected_regret": found.nats,
        "least_expected_regret": found.least.expected_regret,
        "least_expected_of": "space" if found.least.proven else "frontier and picks",
        "least_expected_architecture": describe(design),
    }


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A pick's numbers as cells of a table: differences in columns of their own, without what `evidence` says of them."""
    found = {name: value for name, value in row.items() if name not in ("differences", "evidence")}
    for label, each in row.get("differences", {}).items():
        found |= dict(zip(_names(label), each.values(), strict=True))
    return found


def doubt_in_numbers(doubt: Doubt) -> dict[str, Any]:
    """Of the frontier how many steps are told apart; the sd of one loss on an unknown text, nats; designs that are not told apart from the answer."""
    steps = None if doubt.groups is None else doubt.steps
    alike = doubt.not_told_apart
    cheapest = None if alike is None or alike.cheapest is None else describe(alike.cheapest)
    numbers = None if alike is None else {**asdict(alike), "cheapest": cheapest}
    return {"frontier_steps": steps, "loss_sd": doubt.level_sd, "not_told_apart": numbers}


def witness_in_numbers(found: Witness) -> dict[str, Any]:
    """A difference under `evidence`, whether it confirms the study's law, and its own pick."""
    own = None if found.own is None else describe(found.own)
    return {**difference_in_numbers(found.difference), "confirms": found.confirms, "own_pick": own}
