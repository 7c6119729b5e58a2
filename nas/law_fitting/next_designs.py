"""Which architectures of a space to train next, as a candidate file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from nas.errors import UsageError
from nas.exact.solution import quick_frontier
from nas.search.assembly import Study
from objectives.fitting.design import Goal, Knowledge, Plan, plan, shrunk, training_flops
from objectives.loss_law.features import feature
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, FloatArray, IntArray
from search_spaces.space import SearchSpace

GOALS: tuple[Goal, ...] = ("coefficients", "frontier", "cost")
MOST = 50_000  # candidates: all of a space, or a random sample of a larger one


SIZES = ("memory_gb", "resident_gb", "params_total", "params_active")  # budgets that what is trained must meet, too
NOISY = 0.05  # residual sd, nats, from which designs aimed at the frontier are doubted
DOUBTED = "were not shown to pick better than random ones (24 simulations; figures in docs/fit.md)"
DOUBTED_FIRST = "beat random ones only as far as the assumed law is right; after a table no gain was shown"
HALVINGS = 20
SHOWN = (
    *("id", "depth", "width", "n_kv_heads", "n_experts", "top_k", "expert_ffn_ratio"),
    *("seed", "predicted_loss", "purpose"),
)


@dataclass(frozen=True)
class Asked:
    """How many designs, for which goal, into which file; training FLOP of all together and parameters of each at most."""

    n: int
    goal: str
    out: Path | None
    seed: int
    flops: float | None = None
    max_params: float | None = None


def designs(
    asked: Asked, study: Study, law: Law, knowledge: Callable[[Architectures], Knowledge]
) -> tuple[dict[str, AnyArray], Plan]:
    """A candidate file's columns, and the plan, for the study's space and, by goal, its frontier.

    `knowledge` says what is known, given the candidates.

    Raises:
        UsageError: more designs than the space has.
    """
    generator = np.random.default_rng(asked.seed)
    candidates = candidates_of(study.problem.space, generator)
    if asked.n > len(candidates):
        raise UsageError(
            f"next: expected at most {len(candidates):,} designs, the space's size, got {asked.n}; ask for fewer"
        )
    candidates = trainable(asked, study, candidates)
    targets = frontier_of(study) if asked.goal == "frontier" else None
    try:
        candidates, found = planned(asked, candidates, targets, law, knowledge(candidates), generator)
    except ValueError as error:
        raise UsageError(str(error)) from None
    chosen = candidates[found.rows]
    flops = training_flops(chosen, law.tokens)
    columns: dict[str, AnyArray] = {
        "id": np.array([f"next-{i}" for i in range(len(chosen))], dtype=object),
        **chosen.columns(),
        "purpose": np.array(found.purpose, dtype=object),
        "seed": found.seed,
        "predicted_loss": law.loss(chosen),
    }
    return columns | ({} if law.tokens is None else {"training_flops": flops}), found


def trainable(asked: Asked, study: Study, candidates: Architectures) -> Architectures:
    """Candidates within the study's budgets of memory and size, and the parameters asked for.

    Raises:
        UsageError: none is.
    """
    assessed = study.problem.assess(study.problem.with_own_vocabulary(candidates))
    keep = np.ones(len(candidates), dtype=bool)
    said = []
    for budget in study.problem.budgets:
        if budget.metric in SIZES:
            keep &= assessed[budget.metric] <= budget.limit
            said.append(str(budget))
    if asked.max_params is not None:
        keep &= feature(candidates, "parameters") <= asked.max_params
        said.append(f"parameters <= {asked.max_params:g}")
    if not keep.any():
        raise UsageError(f"next: expected architectures within {' and '.join(said)}, got none; relax one of them")
    return candidates[np.flatnonzero(keep)]


def planned(
    asked: Asked,
    candidates: Architectures,
    targets: Architectures | None,
    law: Law,
    known: Knowledge,
    generator: Generator,
) -> tuple[Architectures, Plan]:
    """Candidates and the plan that numbers them; within a budget of FLOP, the most telling of plans with ever smaller models.

    Raises:
        ValueError: fewer candidates than designs, or none so cheap.
    """

    def plan_of(within: Architectures) -> Plan:
        own = generator if asked.flops is None else np.random.default_rng(asked.seed)
        return plan(known, within, asked.n, asked.goal, targets, law.tokens, own)  # type: ignore[arg-type]

    if asked.flops is None:
        return candidates, plan_of(candidates)
    if law.tokens is None:
        raise ValueError("flops: expected training tokens that are known, got none; give --tokens 10e9")
    cost = training_flops(candidates, law.tokens)
    found = affordable(candidates, cost, asked.flops, asked.n, plan_of)
    if not found:
        least = float(np.sort(cost)[: asked.n].sum())
        raise ValueError(
            f"flops: expected a budget in which {asked.n} models of the space fit, got {asked.flops:g}; "
            f"the {asked.n} cheapest need {least:.3g}"
        )
    usual = _information(known, candidates, np.arange(len(candidates)), law.tokens) * asked.n / len(candidates)
    return min(found, key=lambda pair: shrunk(usual, _information(known, pair[0], pair[1].rows, law.tokens)))


def affordable(
    candidates: Architectures, cost: FloatArray, flops: float, n: int, plan_of: Callable[[Architectures], Plan]
) -> list[tuple[Architectures, Plan]]:
    """Plans within a budget, from models of at most all of it, half of it, a quarter …; `cost` in FLOP, (candidates,)."""
    found: list[tuple[Architectures, Plan]] = []
    for halved in range(HALVINGS):
        limit = max(flops / 2.0**halved, flops / n)
        rows = np.flatnonzero(cost <= limit)
        if len(rows) < n:
            break
        within = candidates[rows]
        each = plan_of(within)
        found += [(within, each)] if cost[rows][each.rows].sum() <= flops else []
        if limit * n <= flops:
            break
    return found


def _information(known: Knowledge, candidates: Architectures, rows: IntArray, tokens: float | None) -> FloatArray:
    """What is known once these rows are trained, (p, p)."""
    sensitivities = known.sensitivities(candidates[rows], tokens)
    return known.information + sensitivities.T @ sensitivities


def candidates_of(space: SearchSpace, generator: np.random.Generator) -> Architectures:
    """Every architecture of a space, or a random sample of a large one."""
    if space.size <= MOST:
        return space.architectures(np.concatenate(list(space.enumerate())))
    return space.architectures(space.sample(MOST, generator))


def frontier_of(study: Study) -> Architectures:
    """The exact frontier of a study, under its law.

    Raises:
        UsageError: it takes more than seconds.
    """
    solved = quick_frontier(study.problem)
    if solved is None or len(solved.frontier) == 0:
        raise UsageError(
            f"goal: expected a study whose frontier is found in seconds, got {study.problem.space.name} space; "
            "choose coefficients or cost"
        )
    return study.problem.architectures(solved.frontier.genotypes)


def said_of(
    columns: dict[str, AnyArray], asked: Asked, study: Study, found: Plan, noise: float | None, *, first: bool
) -> dict[str, Any]:
    """Title, table and notes; `first`: nothing was trained before; `noise`: residual sd of the law, where known, nats."""
    after = f"are {found.shrink:.2f} of random designs'" if first else f"become {found.shrink:.2f} of what they are"
    when = "first" if first else "next"
    parts = [f"largest {feature(Architectures.from_columns(columns), 'parameters').max():.3g} parameters"]
    parts += [f"{columns['training_flops'].sum():.3g} training FLOP in all"] if "training_flops" in columns else []
    parts += [str(budget) for budget in study.problem.budgets if budget.metric in SIZES]
    notes = ["; ".join(parts)]
    if asked.goal == "frontier" and noise is not None and noise >= NOISY:
        why = DOUBTED_FIRST if first else DOUBTED
        notes.append(f"At a residual sd of {noise:.2g} nats designs aimed at the frontier {why}")
    return {
        "title": f"Train {when}: {asked.n} of the {study.problem.space.name} space; standard errors {after}",
        "header": list(SHOWN),
        "rows": [[_cell(columns[name][i]) for name in SHOWN] for i in range(asked.n)],
        "notes": notes,
    }


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
