"""What a pair of models takes, from what target and draft take; which of that has to be on their frontiers; what budgets leave of it."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, fields

import numpy as np

from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget
from objectives.scenario import Workload
from objectives.serving import accepted_of
from plas_fleet.pairs.acceptance import AcceptanceOfDrafts
from search_spaces.arrays import BoolArray, FloatArray, IntArray

FROM_LOSS = ("loss", "perplexity", "extrapolation")  # of the target alone
MEMORY = ("memory_gb", "resident_gb")
PREFILL, DECODE = ("prefill_ms", "ttft_ms", "total_ms"), ("decode_ms", "tpot_ms", "total_ms")
OF_PAIRS = (*FROM_LOSS, "prefill_ms", "decode_ms", "tpot_ms", "ttft_ms", "total_ms", *MEMORY)
SLACK = 1.0 + 1e-9  # on limits of one model, so that rounding leaves out no pair


def supported(name: str) -> bool:
    """Whether a metric of pairs is known; quantiles are of losses alone."""
    return name in OF_PAIRS or name.partition("@")[0] in FROM_LOSS


def needed(asked: Collection[str], *, drafts_differ: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Metrics in which frontiers of targets and of drafts hold those of every pair that these metrics cannot tell is beaten."""
    losses = [name for name in asked if name.partition("@")[0] in FROM_LOSS]
    times = [name for name, of in (("prefill_ms", PREFILL), ("decode_ms", DECODE)) if {*of} & {*asked}]
    both = [*times, *(name for name in MEMORY if name in asked)]
    accepted = ["loss"] if drafts_differ and "decode_ms" in times else []
    return (*losses, *both), (*accepted, *both)


@dataclass(frozen=True, eq=False)
class Shares:
    """What drafts add to a pair, each (n,): probability that their first token is accepted, steps for each token, ms, GB.

    decode_ms: of their passes in all steps of a request.
    """

    first: FloatArray
    steps: FloatArray
    prefill_ms: FloatArray
    decode_ms: FloatArray
    memory_gb: FloatArray
    resident_gb: FloatArray

    @staticmethod
    def of(drafts: Evaluations, acceptance: AcceptanceOfDrafts, drafted: int, engine_gb: float) -> "Shares":
        """Those of drafts that draft so many tokens: 1 / (1 + accepted) steps a token, n of the draft's passes each.

        engine_gb: what the engine holds of its own, GB, which both are priced with and a pair has once.
        """
        found = drafts.metrics
        first = acceptance.first(found["perplexity"])
        steps = 1.0 / (1.0 + accepted_of(first, drafted))
        decode = steps * (drafted * found["decode_ms"])
        return Shares(first, steps, found["prefill_ms"], decode, found["memory_gb"], found["resident_gb"] - engine_gb)

    @staticmethod
    def none(n: int) -> "Shares":
        """Those of no draft."""
        zero, one = np.zeros(n), np.ones(n)
        return Shares(zero, one, zero, zero, zero, zero)

    def __getitem__(self, rows: IntArray | BoolArray) -> "Shares":
        return Shares(*(getattr(self, field.name)[rows] for field in fields(self)))

    def values(self, names: Collection[str]) -> FloatArray:
        """What of them makes pairs worse in metrics of drafts, (n, m)."""
        further = ["steps"] if "decode_ms" in names else []
        return np.stack([getattr(self, name) for name in (*further, *(n for n in names if n != "loss"))], axis=1)


def metrics_of_pairs(
    asked: Collection[str] | None,
    targets: Evaluations,
    shares: Shares,
    workload: Workload,
    *,
    paired: bool = False,
) -> dict[str, FloatArray]:
    """Metrics of each target with each draft, (n, k); `paired`: of the first with the first and so on, (n,). None: all.

    A target's decode is that of verifying where nothing is accepted.
    """
    found = targets.metrics

    def of(column: FloatArray) -> FloatArray:
        return column if paired else column[:, None]

    made = {
        "prefill_ms": lambda: of(found["prefill_ms"]) + shares.prefill_ms,
        "decode_ms": lambda: shares.steps * of(found["decode_ms"]) + shares.decode_ms,
        "memory_gb": lambda: of(found["memory_gb"]) + shares.memory_gb,
        "resident_gb": lambda: of(found["resident_gb"]) + shares.resident_gb,
    }
    made["ttft_ms"] = made["prefill_ms"]
    made["tpot_ms"] = lambda: made["decode_ms"]() / workload.output_tokens
    made["total_ms"] = lambda: made["prefill_ms"]() + made["decode_ms"]()
    of_losses = [name for name in found if name.partition("@")[0] in FROM_LOSS]
    wanted = (*of_losses, *made) if asked is None else asked
    none = 0.0 * shares.steps
    return {name: made[name]() if name in made else of(found[name]) + none for name in wanted}


def limits_of_drafts(budgets: Iterable[Budget], drafted: int, most: float, workload: Workload) -> tuple[Budget, ...]:
    """What a draft may take at most in a pair within budgets, where a step accepts `most` at best."""
    passes = (1.0 + most) / drafted
    return _limits(budgets, passes, workload, {})


def limits_of_targets(budgets: Iterable[Budget], shares: Shares, workload: Workload) -> tuple[Budget, ...]:
    """What a target may take at most in a pair within budgets beside the smallest of these drafts."""
    least = {name: float(getattr(shares, name).min()) for name in ("prefill_ms", "decode_ms", *MEMORY)}
    given = tuple(budgets)
    of_losses = tuple(limit for limit in given if limit.metric.partition("@")[0] in FROM_LOSS)
    return (*of_losses, *_limits(given, 1.0 / float(shares.steps.min()), workload, least))


def _limits(
    budgets: Iterable[Budget], passes: float, workload: Workload, least: dict[str, float]
) -> tuple[Budget, ...]:
    """The smallest limit on each of prefill, decode and memory of one model, less what the other takes at least."""
    found: dict[str, float] = {}
    for budget in budgets:
        for name, limit in _of_one(budget, passes, workload, least):
            found[name] = min(limit * SLACK, found.get(name, np.inf))
    return tuple(Budget(name, limit) for name, limit in found.items())


def _of_one(budget: Budget, passes: float, workload: Workload, least: dict[str, float]) -> Iterator[tuple[str, float]]:
    metric, limit = budget.metric, budget.limit
    if metric in MEMORY:
        yield metric, limit - least.get(metric, 0.0)
    other = {name: least.get(name, 0.0) for name in ("prefill_ms", "decode_ms")}
    both = sum(other.values()) if metric == "total_ms" else 0.0
    if metric in PREFILL:
        yield "prefill_ms", limit - (both or other["prefill_ms"])
    if metric in DECODE:
        whole = limit * workload.output_tokens if metric == "tpot_ms" else limit
        yield "decode_ms", (whole - (both or other["decode_ms"])) * passes
