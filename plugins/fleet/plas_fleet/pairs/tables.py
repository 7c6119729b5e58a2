"""Tables of pairs: what a pair gains over its target alone and over other targets, its models and their sizes."""

from dataclasses import dataclass

import numpy as np

from nas.answer.answer_document import LOSS
from nas.answer.design_words import count, describe
from nas.answer.outcome_files import file_columns
from nas.problem.uncertainty import FROM_LOSS
from objectives.assessment import Assessment
from plas_fleet.pairs.rows import Pairs
from plas_fleet.pairs.solution import PairProblem, PairSolution
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, BoolArray, FloatArray, IntArray

ALONE = "-"


@dataclass(frozen=True, eq=False)
class Answered:
    """The pair and the target alone of the lowest loss within the budgets, one row each or None, and along the joint frontier:

    which rows are pairs, by how many nats they lie below the best target alone of no larger cost (inf: there is none), (n,); how
    many pairs have a draft beyond the stated acceptances, and one outside of what the law was fitted on.
    """

    problem: PairProblem
    pair: Pairs | None
    alone: Pairs | None
    is_pair: BoolArray
    gains: FloatArray
    beyond: int
    outside: int

    def targets_of(self, pairs: Pairs) -> Architectures:
        """Targets of some rows."""
        return self.problem.targets.architectures(pairs.targets)

    def drafts_of(self, pairs: Pairs) -> Architectures:
        """Drafts of some rows."""
        return self.problem.drafts.architectures(pairs.drafts)


def answered(problem: PairProblem, found: PairSolution) -> Answered:
    """Picks and gains of a solved problem."""
    is_pair = found.both.drafted > 0
    drafts = problem.drafts.architectures(found.both.drafts[is_pair])
    beyond = 0
    if not problem.acceptance.constant:
        beyond = int((~problem.acceptance.measured(problem.drafts.assess(drafts)["perplexity"])).sum())
    outside = int(problem.drafts.scenario.law.extrapolates(drafts).sum())
    gains = _below(problem, found.both, found.alone)
    return Answered(problem, _lowest(found.pairs), _lowest(found.alone), is_pair, gains, beyond, outside)


def _lowest(pairs: Pairs) -> Pairs | None:
    """The row of the lowest loss, then the least total time."""
    if len(pairs) == 0:
        return None
    row = np.lexsort((pairs.metrics["total_ms"], pairs.metrics["loss"]))[:1]
    return pairs[row]


def _below(problem: PairProblem, rows: Pairs, alone: Pairs) -> FloatArray:
    """Nats by which rows lie below the best target alone that costs no more in any other objective, (n,); inf without one."""
    costs = tuple(o.name for o in problem.targets.objectives if o.name.partition("@")[0] not in FROM_LOSS)
    own, others, loss = rows.values(costs), alone.values(costs), alone.metrics["loss"]
    best = np.full(len(rows), np.inf)
    for row, cost in enumerate(own):
        cheaper = (others <= cost * (1.0 + 1e-12)).all(axis=1)
        best[row] = loss[cheaper].min() if cheaper.any() else np.inf
    return best - rows.metrics["loss"]


def speed_ups(problem: PairProblem, pairs: Pairs) -> tuple[FloatArray, FloatArray]:
    """How many times as fast as its target alone a pair is in total and in decoding, each (n,); 1 of a target alone."""
    plain = Assessment(problem.targets.architectures(pairs.targets), problem.targets.scenario)
    total, decode = (plain[name] / pairs.metrics[name] for name in ("total_ms", "decode_ms"))
    return total, decode


def sizes(problem: PairProblem, pairs: Pairs) -> tuple[FloatArray, FloatArray]:
    """Parameters of targets and of drafts, embedding and LM head included, each (n,); 0 of no draft."""
    target = problem.targets.assess(problem.targets.architectures(pairs.targets))["params_total"]
    draft = problem.drafts.assess(problem.drafts.architectures(pairs.drafts))["params_total"]
    return target, np.where(pairs.drafted > 0, draft, 0.0)


def columns_of(problem: PairProblem, pairs: Pairs) -> dict[str, AnyArray]:
    """Columns of a table of pairs: the target's as in any frontier.csv, then the draft's with `draft_` before them."""
    target, draft = (
        side.architectures(genotypes)
        for side, genotypes in ((problem.targets, pairs.targets), (problem.drafts, pairs.drafts))
    )
    with_draft = pairs.drafted > 0
    (target_size, draft_size), (faster, faster_decode) = sizes(problem, pairs), speed_ups(problem, pairs)
    of_pair = {
        "drafted": pairs.drafted,
        "first_accepted": pairs.first,
        "tokens_per_second": 1e3 * problem.targets.scenario.batch / pairs.metrics["tpot_ms"],
        "speed_up": faster,
        "decode_speed_up": faster_decode,
        "params": target_size.astype(np.int64),
        "draft_params": draft_size.astype(np.int64),
    }
    of_draft = {f"draft_{name}": np.where(with_draft, column, 0) for name, column in file_columns(draft, {}).items()}
    return {**file_columns(target, pairs.metrics), **of_pair, **of_draft}


def shown_rows(pairs: Pairs, most: int) -> IntArray:
    """So many rows evenly along a frontier, its ends among them."""
    return np.unique(np.linspace(0, len(pairs) - 1, min(most, len(pairs))).astype(np.int64))


def shown_table(
    problem: PairProblem, found: PairSolution, answer: Answered, rows: IntArray
) -> tuple[list[str], list[list[str]]]:
    """Header and cells of some rows of the joint frontier."""
    part = found.both[rows]
    targets, drafts = answer.targets_of(part), answer.drafts_of(part)
    of_pairs = _of_pairs(problem, part, answer.gains[rows])
    (target, draft), numbers = sizes(problem, part), _numbers(problem, part)
    header = [*numbers, "drafted", "faster", "sizes", "nats", "target", "draft"]
    cells = [
        [
            *(column[i] for column in numbers.values()),
            *of_pairs[i],
            f"{count(target[i])}, {describe(targets[i : i + 1])}",
            f"{count(draft[i])}, {describe(drafts[i : i + 1])}" if part.drafted[i] else ALONE,
        ]
        for i in range(len(part))
    ]
    return header, cells


def _numbers(problem: PairProblem, part: Pairs) -> dict[str, list[str]]:
    """Loss, time, rate, memory and the study's further objectives, as they are shown."""
    shown = {
        LOSS: [f"{value:.4f}" for value in part.metrics["loss"].tolist()],
        "total_ms": [f"{value:.4g}" for value in part.metrics["total_ms"].tolist()],
        "tokens/s": [
            f"{value:.3g}" for value in (1e3 * problem.targets.scenario.batch / part.metrics["tpot_ms"]).tolist()
        ],
        "resident_gb": [f"{value:.3g}" for value in part.metrics["resident_gb"].tolist()],
    }
    further = [o.name for o in problem.targets.objectives if o.name not in ("loss", *shown)]
    return shown | {name: [f"{value:.4g}" for value in part.metrics[name].tolist()] for name in further}


def _of_pairs(problem: PairProblem, part: Pairs, gains: FloatArray) -> list[list[str]]:
    """Tokens drafted, how many times as fast as the target alone, sizes, nats below the best target alone; `-` without a draft."""
    (target, draft), (faster, _) = sizes(problem, part), speed_ups(problem, part)
    columns = (part.drafted.tolist(), faster.tolist(), target.tolist(), draft.tolist(), gains.tolist())
    return [
        [str(n), f"{times:.2f}x", f"1/{large / small:.0f}", "first" if gain == np.inf else f"-{gain:.4f}"]
        if n
        else [ALONE] * 4
        for n, times, large, small, gain in zip(*columns, strict=True)
    ]
