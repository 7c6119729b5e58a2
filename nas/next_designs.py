"""Which architectures of a space to train next, as a candidate file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nas.assemble import Study
from nas.console import say, table
from nas.errors import UsageError
from nas.exact_solution import quick_frontier
from objectives.fitting.design import Goal, Knowledge, Plan, plan, training_flops
from objectives.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray
from search_spaces.space import SearchSpace

GOALS: tuple[Goal, ...] = ("coefficients", "frontier", "cost")
MOST = 50_000  # candidates: all of a space, or a random sample of a larger one


@dataclass(frozen=True)
class Asked:
    """How many designs, for which goal, into which file."""

    n: int
    goal: str
    out: Path | None
    seed: int


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
    targets = frontier_of(study) if asked.goal == "frontier" else None
    try:
        known = knowledge(candidates)
        found = plan(known, candidates, asked.n, asked.goal, targets, law.tokens, generator)  # type: ignore[arg-type]
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


def show(columns: dict[str, AnyArray], asked: Asked, space: str, found: Plan, *, first: bool) -> None:
    """Print the designs; `first`: nothing was trained before."""
    if first:
        say(f"Train first: {asked.n} of the {space} space; standard errors are {found.shrink:.2f} of random designs'")
    else:
        say(f"\nTrain next: {asked.n} of the {space} space; standard errors become {found.shrink:.2f} of what they are")
    names = (
        "depth",
        "width",
        "n_kv_heads",
        "n_experts",
        "top_k",
        "expert_ffn_ratio",
        "seed",
        "predicted_loss",
        "purpose",
    )
    rows = [[_cell(columns[name][i]) for name in names] for i in range(asked.n)]
    table(names, rows, left=0)


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
