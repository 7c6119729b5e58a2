"""Chooses the architectures of a space to train next, and for how many tokens, as a candidate file.

Under a prior: of each pick, every design that a draw finds best stands against it: the difference of their losses is linear in the coordinates about their mean, and
trainings shrink its variance, whatever their losses turn out to be. Trainings are chosen one by one, then exchanged, so that the least of these
variances is left, each in the proportion of the regret that the draws lose to that design. Source: V-optimality (Fedorov 1972) of contrasts.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from nas.answer.design_words import describe
from nas.errors import UsageError
from nas.problem.wording import in_words, named
from nas.search.assembly import Study
from objectives.layer_costs.costs import priced_publicly
from objectives.loss_law.features import feature
from objectives.loss_law.law import Law
from objectives.loss_law.layer_deltas import SHARES, share_of
from plas_fit.evidence.joint_form import Quantities, trainings
from plas_fit.evidence.posterior import Belief
from plas_fit.fitting.design import Goal, Knowledge, Plan, optimal, plan, shrunk, table_of, training_flops
from plas_fit.frontier_check import Judged, picks_asked
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, FloatArray, IntArray
from search_spaces.space import SearchSpace

PRIOR_GOALS = ("regret", "cost")  # of the study's picks, or that per training FLOP
OF_STUDY = ("vocabulary", "tied")  # the study prices with them; who trains takes those of the tokenizer
LEAST = 1e-12  # nats² of a difference
#: Of the law's tokens: counts for a form with tokens where no table says which are trained.
TOKEN_SHARES = (1.0, 0.5, 0.25)
MOST_COUNTS = 4


@dataclass(frozen=True, eq=False)
class Trainings:
    """Architectures to train, each on its tokens, (n,); None where tokens are unknown."""

    architectures: Architectures
    tokens: FloatArray | None

    def __len__(self) -> int:
        return len(self.architectures)

    def __getitem__(self, rows: IntArray) -> "Trainings":
        return Trainings(self.architectures[rows], None if self.tokens is None else self.tokens[rows])

    @property
    def flops(self) -> FloatArray:
        """Training FLOP of each, (n,); only ratios mean something where tokens are unknown."""
        return training_flops(self.architectures, self.tokens)

    def losses(self, law: Law) -> FloatArray:
        """What a law predicts for each on its tokens, nats, (n,)."""
        found = np.zeros(len(self))
        for rows, at in self.by_count(law):
            found[rows] = at.loss(self.architectures[rows])
        return found

    def by_count(self, law: Law) -> Iterator[tuple[IntArray, Law]]:
        """Rows of each count of tokens with the law for that count."""
        if self.tokens is None:
            yield np.arange(len(self)), law
            return
        for count in np.unique(self.tokens).tolist():
            yield np.flatnonzero(self.tokens == count), law.model_copy(update={"tokens": count})


def counts_of(law: Law, trained: FloatArray | None) -> FloatArray | None:
    """Token counts to train on, the law's own first: of a form with tokens several, those trained before where there are any."""
    if law.tokens is None:
        return None
    if "tokens" not in law.law_form.features:
        return np.array([law.tokens])
    levels = law.tokens * np.array(TOKEN_SHARES) if trained is None else np.unique(trained)[::-1]
    if len(levels) > MOST_COUNTS:
        levels = levels[np.linspace(0, len(levels) - 1, MOST_COUNTS).round().astype(np.int64)]
    return np.array([law.tokens, *(float(level) for level in levels if level != law.tokens)])


def on_counts(architectures: Architectures, counts: FloatArray | None) -> Trainings:
    """Every architecture on every count of tokens."""
    if counts is None:
        return Trainings(architectures, None)
    rows = np.tile(np.arange(len(architectures)), len(counts))
    return Trainings(architectures[rows], np.repeat(counts, len(architectures)))


GOALS: tuple[Goal, ...] = ("coefficients", "cost")
MOST = 50_000  # candidates: all of a space, or a random sample of a larger one
SHOWN = ("id", "tokens", "seed", "predicted_loss", "purpose")  # beside the architecture in words
SIZES = ("memory_gb", "resident_gb", "params_total", "params_active")  # budgets that what is trained must meet, too
HALVINGS = 20


@dataclass(frozen=True)
class Asked:
    """How many designs, for which goal, into which file; training FLOP of all together and parameters of each at most."""

    n: int
    goal: str
    out: Path | None
    seed: int
    flops: float | None = None
    max_params: float | None = None


PlanOf = Callable[[Trainings], Plan]
LeftOf = Callable[[Trainings, Plan], float]


@dataclass(frozen=True, eq=False)
class Proposal:
    """Trainings in the order of a plan, the plan, the columns of their candidate file, the law that predicts their losses, the study, and what
    they change, in words."""

    trainings: Trainings
    plan: Plan
    columns: dict[str, AnyArray]
    law: Law
    study: Study
    effect: str


Knows = Callable[[Architectures], Knowledge]


def designs(asked: Asked, study: Study, law: Law, knowledge: Knows, trained: FloatArray | None = None) -> Proposal:
    """What to train next of the study's space.

    `knowledge` says what is known, given the candidates; `trained` are the token counts of a table, where it has them.

    Raises:
        UsageError: more designs than there are, or none within the budgets.
    """
    generator = np.random.default_rng(asked.seed)
    candidates = trainable(asked, study, law, generator)
    try:
        known = knowledge(candidates)
    except ValueError as error:
        raise UsageError(str(error)) from None
    every = on_counts(candidates, counts_of(law, trained))

    def plan_of(within: Trainings) -> Plan:
        own = generator if asked.flops is None else np.random.default_rng(asked.seed)
        return plan(known, within.architectures, asked.n, asked.goal, within.tokens, own)  # type: ignore[arg-type]

    def left(chosen: Trainings, _: Plan) -> float:
        return shrunk(_information(known, every) * asked.n / len(every), _information(known, chosen))

    after = "are {:.2f} of random designs'" if known.empty else "become {:.2f} of what they are"
    return _planned(asked, study, law, every, plan_of, left, f"standard errors {after}")


def _planned(
    asked: Asked, study: Study, law: Law, every: Trainings, plan_of: PlanOf, left: LeftOf, effect: str
) -> Proposal:
    """The trainings of a plan, with the columns of their candidate file; within a budget of FLOP those of the plan that leaves least.

    Raises:
        UsageError: more designs than there are, or none so cheap.
    """
    if asked.n > len(every):
        raise UsageError(f"next: expected at most {len(every):,} designs, all that fit, got {asked.n}; ask for fewer")
    try:
        plans = [(every, plan_of(every))] if asked.flops is None else affordable(every, asked.flops, asked.n, plan_of)
    except ValueError as error:
        raise UsageError(str(error)) from None
    chosen = [(within[plan.rows], plan) for within, plan in plans]
    trainings, best = chosen[0] if len(chosen) == 1 else min(chosen, key=lambda pair: left(*pair))
    columns: dict[str, AnyArray] = {
        "id": np.array([f"next-{i}" for i in range(len(trainings))], dtype=object),
        **{name: column for name, column in trainings.architectures.columns().items() if name not in OF_STUDY},
        "purpose": np.array(best.purpose, dtype=object),
        "seed": best.seed,
        "predicted_loss": trainings.losses(law),
    }
    if trainings.tokens is not None:
        columns["tokens"] = trainings.tokens.astype(np.int64)
        columns["training_flops"] = trainings.flops
    return Proposal(trainings, best, columns, law, study, effect.format(best.shrink))


def trainable(asked: Asked, study: Study, law: Law, generator: Generator) -> Architectures:
    """Designs of the study's space that the law prices, within the study's budgets of memory and size, and the parameters asked for.

    Raises:
        UsageError: none is.
    """
    candidates = study.problem.headed(candidates_of(study.problem.space, generator))
    assessed = study.problem.assess(candidates)
    keep = ~np.logical_or.reduce([np.zeros(len(candidates), dtype=bool), *law.unpriced(candidates).values()])
    limits = [f"what {law.name} prices, {law.priced_designs}"] if law.partial else []
    for budget in study.problem.budgets:
        if budget.metric in SIZES:
            keep &= assessed[budget.metric] <= budget.limit
            limits.append(str(budget))
    if asked.max_params is not None:
        keep &= feature(candidates, "parameters") <= asked.max_params
        limits.append(f"parameters <= {asked.max_params:g}")
    if not keep.any():
        raise UsageError(f"next: expected architectures within {' and '.join(limits)}, got none; relax one of them")
    return candidates[np.flatnonzero(keep)]


def affordable(candidates: Trainings, flops: float, n: int, plan_of: PlanOf) -> list[tuple[Trainings, Plan]]:
    """Plans within a budget, from trainings of at most all of it, half of it, a quarter …

    Raises:
        ValueError: tokens are unknown, or no n trainings are so cheap.
    """
    if candidates.tokens is None:
        raise ValueError("flops: expected training tokens that are known, got none; give --tokens 10e9")
    plans: list[tuple[Trainings, Plan]] = []
    cost = candidates.flops
    for halved in range(HALVINGS):
        limit = max(flops / 2.0**halved, flops / n)
        rows = np.flatnonzero(cost <= limit)
        if len(rows) < n:
            break
        within = candidates[rows]
        plan = plan_of(within)
        plans += [(within, plan)] if cost[rows][plan.rows].sum() <= flops else []
        if limit * n <= flops:
            break
    if not plans:
        least = float(np.sort(cost)[:n].sum())
        fit = f"a budget in which {n} models of the space fit"
        raise ValueError(f"flops: expected {fit}, got {flops:g}; the {n} cheapest need {least:.3g}")
    return plans


def _information(known: Knowledge, trainings: Trainings) -> FloatArray:
    """The information matrix once these designs are trained, (p, p)."""
    sensitivities = known.sensitivities(trainings.architectures, trainings.tokens)
    return known.information + sensitivities.T @ sensitivities


def candidates_of(space: SearchSpace, generator: np.random.Generator) -> Architectures:
    """Every architecture of a space, or a random sample of a large one."""
    if space.size <= MOST:
        return space.architectures(np.concatenate(list(space.enumerate())))
    return space.architectures(space.sample(MOST, generator))


def plan_in_words(proposal: Proposal, *, first: bool) -> dict[str, Any]:
    """Title, table and notes; `first`: nothing was trained before."""
    columns, study, law = proposal.columns, proposal.study, proposal.study.problem.scenario.law
    shown = [name for name in SHOWN if name != "tokens" or proposal.law.sees_tokens]
    names, chosen = [name for name in shown if name in columns], proposal.trainings.architectures
    words = [describe(chosen[i : i + 1], study.problem.space.settings) for i in range(len(chosen))]
    parts = [f"largest {feature(chosen, 'parameters').max():.3g} parameters without embeddings"]
    parts += [f"{columns['training_flops'].sum():.3g} training FLOP in all"] if "training_flops" in columns else []
    parts += [str(budget) for budget in study.problem.budgets if budget.metric in SIZES]
    parts += [f"{proposal.law.name} prices {proposal.law.priced_designs}"] if proposal.law.partial else []
    notes = ["; ".join(parts), *([] if first else _unaimed(proposal, law))]
    when = f"Train {'first' if first else 'next'}: {len(chosen)} of the {study.problem.space.name} space"
    return {
        "title": f"{when}; {proposal.effect}",
        "header": [*(named(name) if name == "predicted_loss" else in_words(name) for name in names), "architecture"],
        "rows": [[*(_cell(name, columns[name][i]) for name in names), words[i]] for i in range(len(chosen))],
        "notes": notes,
    }


def _unaimed(proposal: Proposal, law: Law) -> list[str]:
    """Kinds of layers that the designs have and the rows do not."""
    architectures = proposal.trainings.architectures
    priced = {} if priced_publicly(law) else law.layer_deltas
    unaimed = [kind for kind in SHARES.values() if kind not in priced and share_of(architectures, kind).any()]
    kinds = ", ".join(unaimed)
    return [f"No row has layers of {kinds}: these designs were not chosen to learn what they cost"] if unaimed else []


def _cell(name: str, value: Any) -> str:
    if name == "tokens":
        return f"{value / 1e9:.4g} B"
    return f"{value:.4g}" if isinstance(value, float) else str(value).replace("_", " ")


def proposed(
    asked: Asked, study: Study, law: Law, belief: Belief, judged: Judged | str, trained: FloatArray | None
) -> Proposal:
    """What to train next: for the picks, or for the coordinates where these cannot be judged; `trained` are token counts of a table.

    Raises:
        UsageError: more designs than there are, or none within the budgets.
    """
    candidates = trainable(asked, study, law, np.random.default_rng(asked.seed))
    plan_of = _planner(asked, belief, None if isinstance(judged, str) else contrasts(judged, belief))
    every = on_counts(candidates, counts_of(law, trained))
    effect = "{:.2f} of the variance that matters to the picks is left"
    return _planned(asked, study, law, every, plan_of, lambda _, plan: plan.shrink, effect)


def contrasts(judged: Judged, belief: Belief) -> FloatArray:
    """Differences between each pick and what a draw finds best, as slopes in whitened coordinates, (m, k + 1).

    Their squares add up to the regret that the draws lose to these designs; none where no draw loses anything.
    """
    losses, predicted = judged.drawn.losses, judged.found.metrics["loss"][judged.drawn.rows]
    aims = [np.zeros((0, len(belief.mean)))]
    for within in picks_asked(judged).values():
        rows = np.flatnonzero(within)
        pick, best = int(rows[predicted[rows].argmin()]), rows[losses[:, rows].argmin(axis=1)]
        lost = losses[:, pick] - losses[np.arange(len(losses)), best]
        others, place = np.unique(best, return_inverse=True)
        share = np.bincount(place, np.maximum(lost, 0.0)) / len(losses)
        compared = judged.drawn.rows[np.append(pick, others[share > 0])]
        designs = judged.study.problem.architectures(judged.found.genotypes[compared])
        slopes = whitened(belief, quantities(designs, judged.law.tokens_of(designs)))
        apart = slopes[1:] - slopes[0]
        variance = np.maximum((apart**2).sum(axis=1), LEAST)
        aims.append(apart * np.sqrt(share[share > 0] / variance)[:, None])
    return np.concatenate(aims)


def whitened(belief: Belief, of: Quantities) -> FloatArray:
    """Derivatives of losses by coordinates of unit covariance, (n, k + 1)."""
    return np.asarray(belief.slopes(of) @ np.linalg.cholesky(belief.covariance))


def quantities(architectures: Architectures, tokens: float | FloatArray) -> Quantities:
    """What the joint form reads of architectures trained on tokens."""
    table = table_of(architectures, tokens)
    return trainings("", "", table, np.zeros(len(table))).of


def _planner(asked: Asked, belief: Belief, aims: FloatArray | None) -> PlanOf:
    """Plans of `asked.n` trainings; `shrink` is what is left of the aims' variances, or of the coordinates' sds, relative to now."""
    size = len(belief.mean)
    aimed = aims is not None and len(aims) > 0
    targets = np.linalg.qr(aims)[1] if aimed and aims is not None else None

    def plan_of(within: Trainings) -> Plan:
        assert within.tokens is not None  # a law of the joint form has tokens
        rows = whitened(belief, quantities(within.architectures, within.tokens)) / belief.scale
        cost = within.flops if asked.goal == "cost" else None
        chosen = optimal(rows, asked.n, np.eye(size), targets, cost)
        after = np.linalg.inv(np.eye(size) + rows[chosen].T @ rows[chosen])
        left = after.trace() / size if targets is None else np.trace(targets @ after @ targets.T) / (targets**2).sum()
        return Plan(chosen, (asked.goal,) * asked.n, np.zeros(asked.n, dtype=np.int64), float(left))

    return plan_of
