"""The second witness of a gain: what the law `evidence`, pooled from published trainings, says of the same two designs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from nas.answer.design_words import model_size
from nas.exact.solution import SMALL
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Baseline, PickQuery
from nas.problem.picks import Pick, answers
from nas.problem.problem import Problem
from nas.problem.uncertainty import FROM_LOSS, Difference, has_doubt, paired
from nas.study.catalogue import load_law
from nas.study.study_laws import predicting
from objectives.layer_costs.costs import priced_publicly, public_costs
from objectives.loss_law.law import Law
from objectives.loss_law.layer_deltas import nats
from search_spaces.architectures import Architectures

EVIDENCE = "evidence"
OF_EVIDENCE = {"pooled", "prior"}  # in the provenance of laws that rest on published trainings themselves
BESIDES = (
    "precision_law",
    "precision",
    "group_size",
    "precision_tokens",
    "layer_deltas",
    "layer_deltas_source",
    "vocabulary_cost",
    "layer_context",
)
NAN = float("nan")


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
    found = paired(own, designs, others, other)
    outside = (own.extrapolates(designs) | other.extrapolates(others)).tolist()
    rows = zip(nats, found, outside, strict=True)
    return [Witness(n, _unsure(d) if out else d) if np.isfinite(n) else None for n, d, out in rows]


def model_witnesses(law: Law, designs: Architectures, models: Sequence[Baseline]) -> dict[str, list[Witness | None]]:
    """Of each design beside published models, by their label; nothing of a law that says no difference from these, or rests on trainings itself."""
    if not has_doubt(law) or not needs_witness(law):
        return {}
    others = ((known.label, Architectures.concatenate([known.architecture] * len(designs))) for known in models)
    return {label: witnesses(law, designs, model) for label, model in others}


def _unsure(found: Difference) -> Difference:
    return Difference(found.nats, NAN, NAN, NAN)


def with_own_picks(
    problem: Problem, asked: Sequence[tuple[Witness | None, PickQuery]], found: Evaluations
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
    rows = under.evaluate(under.space.genotypes(np.arange(under.space.size))) if solved else _relabelled(under, found)
    inside = ~evidence.extrapolates(under.architectures(rows.genotypes))
    picks = {pick.question: pick.answer for pick in answers(under, rows[inside] if inside.any() else rows)}
    return [
        replace(witness, own=None if row is None else under.architectures(row.genotypes), solved=solved)
        if witness is not None and (row := picks.get(query)) is not None and not witness.confirms
        else witness
        for witness, query in asked
    ]


def of_picks(
    problem: Problem, baselines: Sequence[Baseline], picks: Sequence[Pick], found: Evaluations
) -> tuple[Witness | None, ...]:
    """Of each pick beside a published model, and under a law that says how sure it is of each beside the first; None of others."""
    law, models = problem.scenario.law, {known.label: known.architecture for known in baselines}
    if not needs_witness(law) or any(metric.name in FROM_LOSS for metric in problem.functions):
        return (None,) * len(picks)
    first = baselines[0].label if baselines and has_doubt(law) else ""
    beside = {at: label for at, pick in enumerate(picks) if pick.answer and (label := pick.question.baseline or first)}
    told = dict.fromkeys(range(len(picks)), None) | dict(
        zip(beside, _of_answers(problem, picks, beside, models), strict=True)
    )
    return tuple(with_own_picks(problem, [(told[at], pick.question) for at, pick in enumerate(picks)], found))


def _of_answers(
    problem: Problem, picks: Sequence[Pick], beside: Mapping[int, str], models: Mapping[str, Architectures]
) -> list[Witness | None]:
    """Of the picks in these places, each beside the model of this label."""
    if not beside:
        return []
    genotypes = [answer.genotypes for at in beside if (answer := picks[at].answer) is not None]
    designs = problem.architectures(np.concatenate(genotypes))
    return witnesses(
        problem.scenario.law, designs, Architectures.concatenate(models[label] for label in beside.values())
    )


def _relabelled(under: Problem, found: Evaluations) -> Evaluations:
    """What was evaluated, with losses of the problem's law."""
    rows = found[found.ok]
    loss = under.scenario.law.loss(under.architectures(rows.genotypes))
    return replace(rows, metrics={**rows.metrics, "loss": loss}, budgets=under.budgets)


def own_in_words(witness: Witness) -> str:
    """`its own pick: 24 layers, width 896, dense`; "" where none was looked for."""
    if witness.own is None:
        return ""
    return f"its own pick{'' if witness.solved else ' of the evaluated'}: {model_size(witness.own)}"


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
