"""A run's doubt as numbers: of picks, of the frontier, and of a pick under the law `evidence`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from nas.answer.by_evidence import ByEvidence
from nas.answer.design_words import describe
from nas.answer.doubt import Doubt, PickRegret
from nas.answer.outcome import Outcome
from nas.answer.witness import EVIDENCE, Witness
from nas.problem.problem import Problem
from nas.problem.uncertainty import Difference
from search_spaces.arrays import AnyArray

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
    """Of the frontier how many steps are told apart; the sd of one loss on an unknown text, nats; the axes that are undecided at the answer."""
    undecided = [
        {
            "step": each.step,
            **difference_in_numbers(each.difference),
            "metric": each.metric,
            "before": each.before,
            "after": each.after,
        }
        for each in doubt.undecided
    ]
    steps = None if doubt.groups is None else doubt.steps
    tied = None if doubt.tied is None else {**asdict(doubt.tied), "cheapest": describe(doubt.tied.cheapest)}
    return {"frontier_steps": steps, "loss_sd": doubt.level_sd, "undecided": undecided, "tied": tied}


def witness_in_numbers(found: Witness) -> dict[str, Any]:
    """A difference under `evidence`, whether it confirms the study's law, and its own pick."""
    own = None if found.own is None else describe(found.own)
    return {**difference_in_numbers(found.difference), "confirms": found.confirms, "own_pick": own}


def evidence_in_numbers(found: ByEvidence) -> dict[str, Any]:
    """A pick under the law `evidence`: which, and its differences."""
    parts = {"difference": found.difference, "experts": found.experts, "more_active": found.more_active}
    numbers = {name: None if each is None else difference_in_numbers(each) for name, each in parts.items()}
    best = None if found.best is None else describe(found.best)
    return {"beside": found.baseline or None, "own_best": best, "architecture": describe(found.design), **numbers}
