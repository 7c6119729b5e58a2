"""What a law that says how sure it is leaves open in a run's answer: differences, steps of the frontier, expected regret."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nas.errors import UsageError
from nas.exact.expected_regret import ExpectedRegret, least_expected_regret, least_expected_regrets
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Baseline
from nas.problem.picks import Pick, PickRule
from nas.problem.problem import Problem
from nas.problem.uncertainty import (
    FROM_LOSS,
    Difference,
    NotToldApart,
    from_models,
    has_doubt,
    misfit,
    not_told_apart_from,
    tied,
)
from objectives.loss_law.draws import spread, trimmed_mean
from objectives.loss_law.law import Law
from search_spaces.arrays import IntArray


@dataclass(frozen=True, eq=False)
class PickRegret:
    """A pick's expected regret over a law's draws, nats, and the design of the least one."""

    nats: float
    least: ExpectedRegret


@dataclass(frozen=True, eq=False)
class Doubt:
    """How sure a run's picks and frontier are.

    differences: per pick those from each published model, by its label; groups: of the frontier's designs, those of one
    group are not told apart, -1 outside of the evidence, None without a loss among the objectives; regrets: per pick,
    None beside a published model, outside of the evidence, and where nothing is known of it; level_sd: of one loss on an
    unknown text, at the first pick, nats, None without draws; not_told_apart: the evaluated designs that it cannot tell from it.
    """

    differences: tuple[dict[str, Difference], ...]
    groups: IntArray | None
    regrets: tuple[PickRegret | None, ...]
    level_sd: float | None
    not_told_apart: NotToldApart | None = None

    @property
    def steps(self) -> int:
        """How many groups of the frontier's designs are told apart."""
        return 0 if self.groups is None else int(self.groups.max(initial=-1)) + 1


def doubt_of(
    problem: Problem, baselines: Sequence[Baseline], picks: Sequence[Pick], frontier: Evaluations, found: Evaluations
) -> Doubt | None:
    """How sure the study's law is of a run's answer; None of a law that does not say it."""
    law = problem.scenario.law
    if not has_doubt(law):
        return None
    on_loss = {name.partition("@")[0] for name in frontier.objectives} & set(FROM_LOSS)
    return Doubt(
        _from_models(problem, picks, baselines),
        tied(law, problem.architectures(frontier.genotypes)) if on_loss else None,
        _regrets(problem, picks, frontier),
        _level_sd(problem, picks[0].answer) if picks and law.draws else None,
        None
        if not picks or not on_loss or picks[0].answer is None
        else not_told_apart_from(problem, picks[0].answer, found),
    )


def _from_models(
    problem: Problem, picks: Sequence[Pick], baselines: Sequence[Baseline]
) -> tuple[dict[str, Difference], ...]:
    """The difference of each pick's design from each published model; of all picks at once, since losses are drawn law by law."""
    found: list[dict[str, Difference]] = [{} for _ in picks]
    answered = {at: pick.answer.genotypes for at, pick in enumerate(picks) if pick.answer is not None}
    if answered:
        designs = problem.architectures(np.concatenate(list(answered.values())))
        for label, column in from_models(problem.scenario.law, designs, baselines).items():
            for at, difference in zip(answered, column, strict=True):
                found[at][label] = difference
    return tuple(found)


def _level_sd(problem: Problem, answer: Evaluations | None) -> float | None:
    if answer is None:
        return None
    losses = problem.scenario.law.drawn_losses(problem.architectures(answer.genotypes))
    return float(np.hypot(spread(losses[:, 0]), misfit(problem.scenario.law)))


def _regrets(problem: Problem, picks: Sequence[Pick], frontier: Evaluations) -> tuple[PickRegret | None, ...]:
    """Of the picks that are asked beside no published model, within budgets on shipped metrics."""
    law, own = problem.scenario.law, {metric.name for metric in problem.functions}
    found: list[PickRegret | None] = [None] * len(picks)
    if not law.draws or own & {budget.metric for budget in problem.budgets}:
        return tuple(found)
    asked = [
        (at, pick.answer, PickRule.for_query(pick.question))
        for at, pick in enumerate(picks)
        if pick.answer is not None
        and not pick.question.baseline
        and pick.question.least == "loss"
        and not own & set(PickRule.for_query(pick.question).metrics)
    ]
    if not asked:
        return tuple(found)
    candidates = np.concatenate([frontier.genotypes, *(answer.genotypes for _, answer, _ in asked)])
    least = least_expected_regrets(problem, law, tuple(rule for *_, rule in asked), candidates)
    for (at, answer, _), best in zip(asked, least, strict=True):
        found[at] = None if best is None else _pick_regret(problem, law, answer.genotypes[0], best)
    return tuple(found)


def solved_regret(problem: Problem, rule: PickRule, pick: IntArray) -> PickRegret | None:
    """The expected regret of a pick, a genotype (g,), over the whole space, however large; None outside of the evidence.

    Raises:
        UsageError: the law has no draws, a budget is on a user's own metric, or the space is no sum of parts.
    """
    own = {metric.name for metric in problem.functions}
    if mine := sorted(own & {budget.metric for budget in (*problem.budgets, *rule.limits)}):
        raise UsageError(
            f"expected-regret: expected budgets on shipped metrics, got one on {', '.join(mine)}; drop the budget"
        )
    law = problem.scenario.law
    if law.draws and law.extrapolates(problem.architectures(pick[None])).any():
        return None
    best = least_expected_regret(problem, law, rule)
    return None if best is None else _pick_regret(problem, law, pick, best)


def _pick_regret(problem: Problem, law: Law, pick: IntArray, best: ExpectedRegret) -> PickRegret | None:
    """A pick's own expected regret, beside the least; the pick's is the least where no other is known to be less."""
    if law.extrapolates(problem.architectures(np.stack([pick, best.genotype]))).any():
        return None
    lowest = np.minimum(own := law.drawn_losses(problem.architectures(pick[None]))[:, 0], best.lowest)
    nats = trimmed_mean(own - lowest)
    least = best if best.expected_regret < nats else replace(best, genotype=pick, expected_regret=nats)
    return PickRegret(nats, least)
