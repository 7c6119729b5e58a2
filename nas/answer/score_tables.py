"""Scores of tasks in words: of single designs beside published models, and of many in the steps that a score tells apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nas.answer.sureness import OUTSIDE
from nas.document.document import Section, Table, table_of
from nas.problem.objective import Baseline
from nas.problem.scores import DesignScores, FamilyScore, with_models
from nas.problem.uncertainty import has_doubt
from nas.search.assembly import Study
from nas.study.study_laws import notices_of_text
from objectives.loss_law.law import Law
from objectives.scores import Scores
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, IntArray

NOT_TOLD = "not told apart by this score"
NOT_PRICED = "not priced"
FEW = 3  # laboratories below which the spread between them rests on its prior
INTERVAL = "90 %"
STEPS = 8  # of a family that are shown


@dataclass(frozen=True, eq=False)
class Scored:
    """Designs with their scores, and the published models beside them by their place."""

    law: Law
    designs: int
    found: DesignScores
    models: Mapping[str, int]

    @property
    def scores(self) -> Scores:
        """The curves that they are by."""
        return self.found.scores

    @cached_property
    def steps(self) -> dict[str, IntArray]:
        """The step of each design by family, (designs,); see `DesignScores.steps`."""
        every = np.arange(self.designs)
        return {family: self.found.steps(family, every) for family in self.scores.families}


def scored(study: Study, designs: Architectures, models: Sequence[Baseline]) -> Scored | None:
    """Designs and published models with their scores; None of a study that names none."""
    if study.scores is None:
        return None
    found, places = with_models(study.problem, study.scores, designs, models)
    return Scored(study.problem.scenario.law, len(designs), found, places)


def design_table(of: Scored, labels: Sequence[str]) -> Table:
    """Each design by family beside each published model; `labels` name the designs, empty ones have no column."""
    named = any(labels)
    header = (*(["within"] if named else []), "family", "predicted", INTERVAL, *(f"from {each}" for each in of.models))
    rows = []
    for row, label in enumerate(labels):
        own = of.found.of(row)
        for i, family in enumerate(of.scores.families):
            first = [label if i == 0 else ""] if named else []
            rows.append((*first, family, *_cells(of, own.get(family), row), *_beside(of, family, row)))
    below = (*_outside(of, np.arange(of.designs)), *sentences(of))
    return table_of(header, rows, _title(of.scores), below)


def step_table(of: Scored) -> Table:
    """The first steps that each family's score tells apart among the designs; of each its best one."""
    rows, every = list[tuple[str, ...]](), np.arange(of.designs)
    for family, found in of.steps.items():
        steps = int(found.max(initial=-1)) + 1
        for step in range(min(steps, STEPS)):
            inside = np.flatnonzero(found == step)
            best = inside[np.argmin(of.found.bits[inside])]
            cells = _cells(of, of.found.of(int(best))[family], int(best))
            rows.append((family if step == 0 else "", str(step), f"{len(inside):,}", *cells))
        if steps > STEPS:
            rows.append(("", f"{steps - STEPS} more", f"{int((found >= STEPS).sum()):,}", "", ""))
    unclaimed = int((~of.found.known[every]).sum())
    within = f"within a step: {NOT_TOLD}; predicted and {INTERVAL} are of its best design"
    without = [f"{unclaimed:,} of {of.designs:,} designs are {OUTSIDE}: in no step"] if unclaimed else []
    below = (within, *without, *_outside(of, every), *sentences(of))
    return table_of(("family", "step", "designs", "predicted", INTERVAL), rows, _title(of.scores), below)


def score_section(of: Table) -> Section:
    """Scores with what they rest on."""
    return Section(of.title, (replace(of, title=""),))


def score_columns(of: Scored) -> dict[str, AnyArray]:
    """Scores of the designs as columns of a file: `score_FAMILY`, `_low`, `_high`, `_step`; `bits_per_byte` too."""
    every, found = np.arange(of.designs), dict[str, AnyArray]()
    found["bits_per_byte"] = of.found.bits[every]
    priced = np.isfinite(found["bits_per_byte"])
    for family in of.scores.families:
        values = np.full((3, of.designs), np.nan)
        values[:, priced] = of.found.intervals(family, every[priced])
        found |= {f"score_{family}{end}": row for end, row in zip(("", "_low", "_high"), values, strict=True)}
        found[f"score_{family}_step"] = of.steps[family]
    return found


def in_numbers(of: Scored, row: int) -> dict[str, Any]:
    """One design's scores as plain content; None for a difference that is not told apart."""

    def ends(score: FamilyScore | None, name: str) -> dict[str, float] | None:
        return None if score is None else {name: score.predicted, "low": score.low, "high": score.high}

    families = {}
    for name, own in of.found.of(row).items():
        apart = {label: of.found.difference(name, row, place) for label, place in of.models.items()}
        others = {label: ends(difference, "difference") for label, difference in apart.items()}
        families[name] = {**(ends(own, "predicted") or {}), "from": others}
    bits = float(of.found.bits[row])
    return {
        "table": of.scores.name,
        "bits_per_byte": bits if np.isfinite(bits) else None,
        "extrapolated": bool(of.found.outside[row]),
        "families": families,
        "said": list(sentences(of)),
    }


def sentences(of: Scored) -> tuple[str, ...]:
    """What intervals are of, and what they do not hold."""
    scores, law, many = of.scores, of.law, len(of.scores.laboratories)
    whose, few = f"further models of {scores.laboratories[0]}", ""
    if scores.new_laboratory:
        whose = "a laboratory that is not in the table"
        few = f"; {many} laboratories hardly tell how much laboratories differ" if many < FEW else ""
    text = f"of {scores.text}" if scores.text else "of a text that it does not name"
    record = ", ".join(f"{name} {own.rmse:.2g}" for name, own in scores.left_out.items())
    unsure = f"Law {law.name} does not say how sure its losses are: they are taken as they stand"
    return (
        f"{INTERVAL} of measured scores of {whose}{few}",
        *([f"Laboratories left out of the table were predicted with an RMSE of {record}"] if record else []),
        f"The table's bits per byte are {text}, law {law.name} does not say of which its loss is: where the texts differ, levels are off by more than the intervals say",
        *(f"L{said[1:]}" for said in notices_of_text(law)),
        *([] if has_doubt(law) else [unsure]),
    )


def _title(scores: Scores) -> str:
    many = len(scores.laboratories)
    return f"Predicted scores, by {scores.models:,} models of {many} laborator{'y' if many == 1 else 'ies'} ({scores.name})"


def _outside(of: Scored, rows: IntArray) -> tuple[str, ...]:
    """Which designs lie outside of the table's bits per byte."""
    bits = of.found.bits[rows]
    out = of.found.outside[rows] & np.isfinite(bits)
    if not out.any():
        return ()
    low, high = of.scores.fitted_on
    ends = f"{bits[out].min():.3f}" + (f" to {bits[out].max():.3f}" if out.sum() > 1 else "")
    which = "" if len(rows) == 1 else f"{int(out.sum()):,} of {len(rows):,} designs: "
    return (f"* {which}{ends} bits per byte, outside of the table's {low:.3f} to {high:.3f}: extrapolated",)


def _cells(of: Scored, own: FamilyScore | None, row: int) -> tuple[str, str]:
    """A score and its interval, marked where it is extrapolated."""
    if own is None:
        return NOT_PRICED, ""
    mark = "*" if of.found.outside[row] else ""
    return f"{_figure(own.predicted)}{mark}", f"{_figure(own.low)} to {_figure(own.high)}"


def _beside(of: Scored, family: str, row: int) -> list[str]:
    """The difference from each published model, or that there is none to tell."""
    cells = []
    for place in of.models.values():
        comparable = of.found.comparable(row, place)
        apart = of.found.difference(family, row, place) if comparable else None
        if apart is None:
            cells.append(NOT_TOLD if comparable else OUTSIDE)
        else:
            score, low, high = (_figure(value, "+") for value in (apart.predicted, apart.low, apart.high))
            cells.append(f"{score} ({low} to {high})")
    return cells


def _figure(value: float, sign: str = "") -> str:
    """Two decimals of a share, one of scores in percent."""
    return format(value, f"{sign}.2f" if abs(value) <= 2.0 else f"{sign}.1f")
