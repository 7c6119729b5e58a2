"""Which architectures of a space to train next, as a candidate file."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nas.assemble import assemble
from nas.console import say, table
from nas.errors import UsageError
from nas.exact_solution import quick_frontier
from nas.faults import unknown
from nas.layers import over
from nas.named import load_space
from objectives.fitting.design import Plan, plan, training_flops
from objectives.fitting.fit import Fit
from objectives.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray
from search_spaces.space import SearchSpace

GOALS = ("coefficients", "frontier", "cost")
MOST = 50_000  # candidates: all of a space, or a random sample of a larger one


@dataclass(frozen=True)
class Asked:
    """How many designs of which space, for which goal, into which file."""

    n: int
    space: str
    goal: str
    out: Path | None
    seed: int


def designs(asked: Asked, fit: Fit, law: Law) -> tuple[dict[str, AnyArray], Plan]:
    """A candidate file's columns, and the plan.

    Raises:
        UsageError: an unknown goal or space, or more designs than it has.
    """
    if asked.goal not in GOALS:
        raise UsageError(f"goal: {unknown('a goal', asked.goal, GOALS)}")
    space = load_space(asked.space)
    generator = np.random.default_rng(asked.seed)
    candidates = candidates_of(space, generator)
    targets = frontier_of(asked.space, law) if asked.goal == "frontier" else None
    try:
        found = plan(fit, candidates, asked.n, asked.goal, targets, law.tokens, generator)  # type: ignore[arg-type]
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


def frontier_of(space: str, law: Law) -> Architectures:
    """The exact frontier of loss and total latency of the default study in this space, under the fitted law.

    Raises:
        UsageError: it takes more than seconds.
    """
    study = assemble(*over({}, {}, {"space": space, "law": law.mapping(), "baselines": []}, []))
    solved = quick_frontier(study.problem)
    if solved is None or len(solved.frontier) == 0:
        raise UsageError(
            f"goal: expected a space whose frontier is found in seconds, got {space}; choose coefficients or cost"
        )
    return study.problem.architectures(solved.frontier.genotypes)


def show(columns: dict[str, AnyArray], asked: Asked, found: Plan) -> None:
    """Print the designs."""
    say()
    say(
        f"Train next: {asked.n} of the {asked.space} space; standard errors become {found.shrink:.2f} of what they are (geometric mean)"
    )
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
