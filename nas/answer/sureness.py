"""How sure a difference of losses is: by a study's law and, beside it, by `evidence`, the law pooled from published trainings.

What a law says of two designs is a `Difference`; what `evidence` says of the same two a `Witness`. Their words, numbers and columns are here, for screens,
pages, JSON and tables alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from nas.answer.design_words import describe, model_size
from nas.exact.solution import SMALL
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Baseline, PickQuery
from nas.problem.picks import Pick, answers
from nas.problem.problem import Problem
from nas.problem.uncertainty import FROM_LOSS, Difference, has_doubt, paired
from nas.study.catalogue import load_law
from nas.study.study_laws import predicting
from objectives.display_text import chance
from objectives.layer_costs.costs import priced_publicly, public_costs
from objectives.loss_law.law import Law
from objectives.loss_law.layer_deltas import nats as nats_of_layers
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray

EVIDENCE = "evidence"
OF_EVIDENCE = {"pooled", "prior"}  # in the provenance of laws that rest on published trainings themselves
OF_FORMATS = ("precision_law", "precision", "group_size", "precision_tokens")
BESIDES = (*OF_FORMATS, "layer_deltas", "layer_deltas_source", "vocabulary_cost", "layer_context")
WITHOUT_LAYERS = {"layer_deltas": {}, "layer_deltas_source": "", "layer_delta_draws": {}}
OUTSIDE = "outside of the evidence"
NUMBERS = ("nats", "low", "high", "better")
UNKNOWN = Difference(*[float("nan")] * 4)


def difference_in_words(of: Difference, *, brief: bool = False) -> str:
    """`-0.11 nats (90 %: -0.19 to -0.04), better with probability 0.98`; brief, where a column's head says what is what: `-0.11 (-0.19 to -0.04), 0.98`."""
    if not np.isfinite(of.nats):
        return "not priced"
    unit, level, better = ("", "", "") if brief else (" nats", "90 %: ", "better with probability ")
    if not of.known:
        return f"{of.nats:+.2f}{unit}, {OUTSIDE}"
    digits = next((n for n, least in ((2, 0.1), (3, 0.01)) if of.high - of.low >= least), 4)
    between = f"{level}{of.low:+.{digits}f} to {of.high:+.{digits}f}"
    return f"{of.nats:+.{digits}f}{unit} ({between}), {better}{chance(of.better)}"


def difference_in_numbers(of: Difference) -> dict[str, float | None]:
    """`nats`, `low`, `high`, `better`; None for what is not claimed."""
    return {name: None if np.isnan(value := getattr(of, name)) else value for name in NUMBERS}


def column_names(label: str) -> tuple[str, ...]:
    """`difference_MODEL`, its interval's ends, `better_than_MODEL`: of columns that hold differences from a model."""
    return f"difference_{label}", f"difference_{label}_low", f"difference_{label}_high", f"better_than_{label}"


def difference_columns(by_model: Mapping[str, Sequence[Difference]]) -> dict[str, AnyArray]:
    """Differences of designs from each model as columns of a file."""
    columns: dict[str, AnyArray] = {}
    for label, rows in by_model.items():
        values = np.array([[getattr(row, name) for name in NUMBERS] for row in rows]).reshape(-1, 4)
        columns |= dict(zip(column_names(label), values.T, strict=True))
    return columns


@dataclass(frozen=True, eq=False)
class Witness:
    """A gain of a study's law, nats below 0, and the same difference under `evidence`.

    own: the pick of `evidence` within the same budgets, where it does not confirm the gain and its pick was looked for; solved: it is
    that of the whole space.
    """

    nats: float
    difference: Difference
    own: Architectures | None = None
    solved: bool = False

    @property
    def disagrees(self) -> bool:
        """Whether the two laws give opposite signs."""
        return self.nats * self.difference.nats < 0.0

    @property
    def undecided(self) -> bool:
        """Whether the 90 % interval of `evidence` holds zero."""
        return self.difference.low <= 0.0 <= self.difference.high

    @property
    def confirms(self) -> bool:
        """Whether `evidence` shows a difference of the same sign."""
        return self.difference.known and not (self.disagrees or self.undecided)


def witness_in_words(of: Witness | None, *, brief: bool = False) -> str:
    """The difference after `disagrees` and `no difference shown` where it is so, and its own pick; brief without that; "" without a witness."""
    if of is None:
        return ""
    verdicts = [*["disagrees"] * of.disagrees, *["no difference shown"] * of.undecided]
    own = ""
    if of.own is not None and not brief:
        own = f"; its own pick{'' if of.solved else ' of the evaluated'}: {model_size(of.own)}"
    return ", ".join([*verdicts, difference_in_words(of.difference, brief=brief)]) + own


def beside_evidence(of: Witness | None, *, brief: bool = False) -> str:
    """` [evidence: …]`, to stand behind a gain of another law; "" without a witness."""
    return "" if of is None else f" [{EVIDENCE}: {witness_in_words(of, brief=brief)}]"


def witness_in_numbers(of: Witness) -> dict[str, Any]:
    """A difference under `evidence`, whether it confirms the study's law, and its own pick."""
    own = None if of.own is None else describe(of.own)
    return {**difference_in_numbers(of.difference), "confirms": of.confirms, "own_pick": own}


def evidence_columns(by_model: Mapping[str, Sequence[Witness | None]]) -> dict[str, AnyArray]:
    """The same of `evidence`: `evidence_difference_MODEL` and so on; NaN where the study's law says no difference."""
    rows = {label: [row.difference if row else UNKNOWN for row in rows] for label, rows in by_model.items()}
    return {f"{EVIDENCE}_{name}": column for name, column in difference_columns(rows).items()}


def evidence_beside(law: Law) -> Law:
    """The law `evidence` for the tokens of another one, beside what that one's study says of formats, kinds of layers and vocabularies."""
    evidence = _evidence().model_copy(update={name: getattr(law, name) for name in BESIDES})
    if priced_publicly(law):
        evidence = evidence.model_copy(update=public_costs().priced(evidence))
    return predicting(evidence, law.tokens)


@cache
def _evidence() -> Law:
    """The law as it is shipped, read once for many runs in one process."""
    return load_law(EVIDENCE)


def needs_witness(law: Law) -> bool:
    """Whether a law rests on something else than published trainings, as `evidence` and fits with it as their prior do."""
    return not OF_EVIDENCE & law.provenance.keys()


def witnesses(
    law: Law, designs: Architectures, others: Architectures, of_others: Law | None = None
) -> list[Witness | None]:
    """What `evidence` says of each design against the other one in its row; `of_others`: the law of these where a change makes it another.

    None of a law that rests on published trainings itself, and where the law says nothing of one of the two.
    """
    if not needs_witness(law) or not len(designs):
        return [None] * len(designs)
    theirs = of_others or law
    own, other = evidence_beside(law), evidence_beside(theirs)
    nats = (law.loss(designs) - theirs.loss(others)).tolist()
    outside = (own.extrapolates(designs) | other.extrapolates(others)).tolist()
    return [
        Witness(by_law, replace(UNKNOWN, nats=difference.nats) if out else difference) if np.isfinite(by_law) else None
        for by_law, difference, out in zip(nats, paired(own, designs, others, other), outside, strict=True)
    ]


def model_witnesses(law: Law, designs: Architectures, models: Sequence[Baseline]) -> dict[str, list[Witness | None]]:
    """Of each design beside published models, by their label; nothing of a law that says no difference from these, or rests on trainings itself."""
    if not has_doubt(law) or not needs_witness(law):
        return {}
    others = ((model.label, Architectures.concatenate([model.architecture] * len(designs))) for model in models)
    return {label: witnesses(law, designs, model) for label, model in others}


def with_own_picks(
    problem: Problem, asked: Sequence[tuple[Witness | None, PickQuery]], evaluated: Evaluations
) -> list[Witness | None]:
    """The witnesses, those that do not confirm a gain beside their own pick for the same question.

    Of the whole space where that takes no time, else of what was evaluated; inside of the evidence where anything is.
    """
    wanted = tuple(dict.fromkeys(query for witness, query in asked if witness is not None and not witness.confirms))
    if not wanted:
        return [witness for witness, _ in asked]
    evidence = evidence_beside(problem.scenario.law)
    under = replace(problem, scenario=replace(problem.scenario, law=evidence), queries=wanted)
    solved = problem.analytic and problem.space.size <= SMALL
    if solved:
        rows = under.evaluate(under.space.genotypes(np.arange(under.space.size)))
    else:
        rows = evaluated[evaluated.ok]
        loss = evidence.loss(under.architectures(rows.genotypes))
        rows = replace(rows, metrics={**rows.metrics, "loss": loss}, budgets=under.budgets)
    inside = ~evidence.extrapolates(under.architectures(rows.genotypes))
    picks = {pick.question: pick.answer for pick in answers(under, rows[inside] if inside.any() else rows)}
    return [
        replace(witness, own=under.architectures(row.genotypes), solved=solved)
        if witness is not None and (row := picks.get(query)) is not None and not witness.confirms
        else witness
        for witness, query in asked
    ]


def of_picks(
    problem: Problem, baselines: Sequence[Baseline], picks: Sequence[Pick], evaluated: Evaluations
) -> tuple[Witness | None, ...]:
    """Of each pick beside a published model, and under a law that says how sure it is of each beside the first; None of others."""
    law, models = problem.scenario.law, {model.label: model.architecture for model in baselines}
    if not needs_witness(law) or any(metric.name in FROM_LOSS for metric in problem.functions):
        return (None,) * len(picks)
    first = baselines[0].label if baselines and has_doubt(law) else ""
    beside = {at: label for at, pick in enumerate(picks) if pick.answer and (label := pick.question.baseline or first)}
    by_pick: dict[int, Witness | None] = {}
    if beside:
        genotypes = [answer.genotypes for at in beside if (answer := picks[at].answer) is not None]
        designs = problem.architectures(np.concatenate(genotypes))
        others = Architectures.concatenate(models[label] for label in beside.values())
        by_pick = dict(zip(beside, witnesses(law, designs, others), strict=True))
    return tuple(
        with_own_picks(problem, [(by_pick.get(at), pick.question) for at, pick in enumerate(picks)], evaluated)
    )


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
    cost, theirs = (float(nats_of_layers(each, law.layer_deltas, law.layer_context)[0]) for each in (design, model))
    sparse = int(design.n_experts[0]) > 1
    if not has_doubt(law) or not (sparse or cost != theirs):
        return None
    experts = float(plain.loss(design)[0] - plain.loss(dense)[0]) if sparse else 0.0
    return PartsOfGain(cost - theirs, experts, paired(plain, dense, model)[0])


def dense_twin(designs: Architectures) -> Architectures:
    """Dense designs of as many active parameters."""
    one = np.ones_like(designs.top_k)
    return replace(designs, n_experts=one, top_k=one, expert_size=designs.top_k * designs.expert_size)


def parts_lines(law: Law, design: Architectures, models: Sequence[Baseline]) -> list[str]:
    """Which part of a design's difference from the first model rests on costs of kinds of layers and on experts; nothing where it has neither."""
    gain = parts_of_gain(law, design, models[0].architecture) if models else None
    if gain is None or not np.isfinite(gain.whole):
        return []
    parts = [f"{gain.layers:+.2g} rest on costs of layer kinds (--deltas none)"] if gain.layers else []
    parts += [f"{gain.experts:+.2g} rest on experts"] if gain.experts else []
    whole = f"Of {gain.whole:+.2g} nats from {models[0].label}"
    return [f"{whole} {' and '.join(parts)}; without {difference_in_words(gain.left)}"]
