"""The problem a strategy works on: genotypes in, metrics, objective values and violations out."""

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from itertools import count
from threading import current_thread, main_thread
from typing import Any

import numpy as np

from nas.errors import NotRunError, PlasError, UsageError
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget, Objective, PickQuery
from objectives.assessment import Assessment, stating
from objectives.latency.mixer_table import MixerTable, holds
from objectives.loss_law.law import Law
from objectives.metrics.perplexity import LARGEST_LOSS
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray, brief
from search_spaces.space import Mixers, SearchSpace

SMALL = 20_000  # designs of a space that is priced as a whole, which takes as long as some ten batches
REPAID = 2000  # mixers of a space for each batch that is priced before their times are made: a search prices dozens of batches, who asks for one design one
UNCOVERED = "loss: "  # how the reason of a design begins that the law has no loss of
LARGEST = 1e100  # of a user's value; a larger one is a penalty for what failed, as sys.float_info.max is
MIXERS = 10_000  # of a space; the times of more are not made
Caller = Callable[[Objective, Architectures, Scenario], tuple[FloatArray, list[str]]]
METRIC_ORDER = (  # what is always computed; other shipped metrics are where something asks for them
    *("loss", "perplexity", "prefill_ms", "decode_ms", "tpot_ms", "total_ms"),
    *("memory_gb", "resident_gb", "params_total", "params_active"),
)


@brief
@dataclass(frozen=True, eq=False)
class Problem:
    """Space, scenario, objectives and budgets; `functions` are a user's own metrics.

    `vocabulary` and `tied` dress every architecture; `queries` is what the result must answer; `columns` are shipped
    metrics to compute besides those that always are.
    """

    space: SearchSpace
    scenario: Scenario
    objectives: tuple[Objective, ...]
    budgets: tuple[Budget, ...] = ()
    functions: tuple[Objective, ...] = ()
    vocabulary: int = 0
    tied: bool = True
    queries: tuple[PickQuery, ...] = ()
    columns: tuple[str, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """Pickled without what was computed of it."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def asked(self) -> tuple[str, ...]:
        """The metrics of objectives and budgets, each once."""
        return tuple(dict.fromkeys((*(o.name for o in self.objectives), *(b.metric for b in self.budgets))))

    @property
    def limits(self) -> tuple[Budget, ...]:
        """The budgets on what a design takes, without the one that keeps designs inside of the law's evidence."""
        return tuple(budget for budget in self.budgets if not budget.of_evidence)

    @property
    def fenced(self) -> bool:
        """Whether designs outside of the law's evidence are kept out, so that what they would buy is not known."""
        return len(self.limits) < len(self.budgets)

    @cached_property
    def metric_names(self) -> tuple[str, ...]:
        """Every metric that is computed and stored, in file order."""
        own = [f.name for f in self.functions]
        further = dict.fromkeys(name for name in (*self.asked, *self.columns) if name not in (*METRIC_ORDER, *own))
        return (*METRIC_ORDER, *further, *own)

    @property
    def asked_besides(self) -> tuple[str, ...]:
        """Shipped metrics that are computed because an objective, a budget or a column needs them."""
        return self.metric_names[len(METRIC_ORDER) : len(self.metric_names) - len(self.functions)]

    @property
    def priors(self) -> tuple[str, ...]:
        """Shipped metrics that approximate the user's own."""
        return tuple(dict.fromkeys(own.prior for own in self.functions if own.prior))

    @property
    def of_text(self) -> bool:
        """Whether losses or metrics depend on the curve of bytes per token."""
        return self.space.own_heads or any(name.partition("@")[0] in stating("PER_BYTE") for name in self.metric_names)

    @property
    def analytic(self) -> bool:
        """Whether every metric is a shipped formula, so that the whole space may be enumerated."""
        return not self.functions

    def with_vocabulary(self, vocabulary: int | None) -> "Problem":
        """The same problem with another vocabulary; None is the study's own, and designs whose vocabulary is a gene keep theirs.

        Args:
            vocabulary: entries; 0: no LM head.
        """
        if vocabulary is None or self.space.own_heads:
            return self
        return replace(self, vocabulary=vocabulary, scenario=self.scenario.of_vocabulary(vocabulary))

    def at_equal_text(self) -> "Problem":
        """The same where architectures of other vocabularies are priced for as much text; see `Scenario.at_equal_text`.

        Raises:
            ValueError: a vocabulary that the curve of bytes per token does not count.
        """
        return self if self.space.own_heads else replace(self, scenario=self.scenario.at_equal_text())

    def architectures(self, genotypes: IntArray) -> Architectures:
        """Architectures of canonical genotypes, with the head that they are priced with.

        Args:
            genotypes: canonical, (n, g).
        """
        return self.headed(self.space.architectures(genotypes))

    @property
    def has_head(self) -> bool:
        """Whether designs are priced with an embedding and LM head, the study's or their own."""
        return self.vocabulary > 0 or self.space.own_heads

    def headed(self, architectures: Architectures) -> Architectures:
        """Any architectures with the embedding and LM head that this study prices them with: see `SearchSpace.headed`.

        Args:
            architectures: (n,).
        """
        return self.space.headed(architectures, self.vocabulary, tied=self.tied)

    def assess(self, architectures: Architectures) -> Assessment:
        """Metrics of any architectures in the study's scenario.

        Args:
            architectures: (n,).
        """
        return Assessment(architectures, self.scenario)

    def priced(self, genotypes: IntArray) -> Assessment:
        """Metrics of canonical genotypes (n, g) in the study's scenario; those of a small space are computed together, once.

        Args:
            genotypes: canonical, (n, g).
        """
        architectures = self.architectures(genotypes)
        if self.space.size > SMALL:
            return Assessment(architectures, self.scenario, mixer=self._mixer_of(genotypes))
        return Assessment(architectures, self.scenario, whole=self._whole, rows=self.space.keys(genotypes))

    @cached_property
    def _whole(self) -> Assessment:
        """Metrics of the whole space, (size,)."""
        return self.assess(self.architectures(self.space.genotypes(np.arange(self.space.size))))

    def _mixer_of(self, genotypes: IntArray) -> Callable[[], FloatArray] | None:
        """Seconds of a layer's mixer, (2, n), from the times of all; None of so few batches that these do not repay."""
        mixers = self._mixers
        if mixers is None or next(self._batches) < len(mixers) // REPAID:
            return None
        return partial(self._mixer_table.seconds, genotypes)

    @cached_property
    def _batches(self) -> Iterator[int]:
        """Numbers of the batches that are priced."""
        return count()

    @cached_property
    def _mixers(self) -> Mixers | None:
        """The mixers of the space; None of very many, or where designs that share one may differ in its time."""
        mixers, scenario = Mixers(self.space), self.scenario
        differing = self.space.settings or scenario.devices or scenario.formats
        return None if differing or not holds(scenario) or len(mixers) > MIXERS else mixers

    @cached_property
    def _mixer_table(self) -> MixerTable:
        """The times of all mixers."""
        mixers = self._mixers
        assert mixers is not None
        return MixerTable.made(mixers, self.architectures(mixers.designs()), self.scenario)

    def pricing(self, chosen: Architectures) -> Scenario:
        """The scenario that a single architecture is priced in, that of its format and vocabulary where it has its own.

        Args:
            chosen: one architecture, (1,).
        """
        (name, _), *_ = chosen.in_formats()
        own = [scenario for _, scenario in self.scenario.by_design(chosen)]
        return own[0] if own else self.scenario.at(name)

    def evaluate(
        self,
        genotypes: IntArray,
        names: tuple[str, ...] | None = None,
        call: Caller | None = None,
        assessment: Assessment | None = None,
    ) -> Evaluations:
        """Metrics of canonical genotypes (n, g); every one unless `names` says which.

        `call` evaluates a user's metric, in this process unless it is given; `assessment` is that of these genotypes where
        it is there already.
        A row whose user metric raises or is not finite is failed, with the reason; so is one whose loss has no
        finite perplexity, whichever metrics are asked for.
        """
        assessment = assessment or self.priced(genotypes)
        metrics, reasons = self.metrics(assessment.architectures, names, call, assessment)
        names_of = tuple(objective.name for objective in self.objectives)
        found = None if reasons is None else tuple(reasons)
        return Evaluations(genotypes, self.space.keys(genotypes), metrics, found, names_of, self.budgets)

    def metrics(
        self,
        architectures: Architectures,
        names: tuple[str, ...] | None = None,
        call: Caller | None = None,
        assessment: Assessment | None = None,
    ) -> tuple[dict[str, FloatArray], list[str] | None]:
        """Metrics of any architectures, each (n,), and why each row failed ("" where it did not); None where none did.

        Raises:
            ValueError: the latency model does not cover an architecture.
        """
        assessment = assessment or self.assess(architectures)
        wanted = self.metric_names if names is None else names
        own = {f.name: f for f in self.functions}
        metrics = {name: assessment[name] for name in wanted if name not in own}
        called = [name for name in wanted if name in own]
        screened = self.screened(assessment) if called else None
        reasons = screened or unusable({"loss": assessment["loss"], **metrics}, self.scenario.law)
        for name in called:
            metrics[name], failures = self._of_users(own[name], architectures, screened, call or call_user_metric)
            if any(failures):
                reasons = [a or b for a, b in zip(reasons or [""] * len(failures), failures, strict=True)]
        if reasons:  # what was evaluated of a failed row stays
            metrics = {name: np.where(np.isfinite(column), column, np.nan) for name, column in metrics.items()}
        return metrics, reasons

    def screened(self, assessment: Assessment) -> list[str] | None:
        """Why each architecture is not given to the user's metrics, "" where it is; None where all of them are.

        Where one of these says what it costs, or has fidelities, formulas come first: what they call unusable or over a budget is not called for.
        """
        own = {f.name for f in self.functions}
        if not any(f.cost_s or f.fidelities for f in self.functions):
            return None
        shipped = {name: assessment[name] for name in self.metric_names if name not in own}
        reasons = unusable(shipped, self.scenario.law) or [""] * len(shipped["loss"])
        for budget in (b for b in self.budgets if b.metric not in own):
            values = shipped[budget.metric]
            for row in np.flatnonzero(budget.violation(values) > 0).tolist():
                reasons[row] = reasons[row] or f"screened: {budget.metric} {values[row]:.6g} > {budget.limit:g}"
        return reasons if any(reasons) else None

    def _of_users(
        self, metric: Objective, architectures: Architectures, screened: list[str] | None, call: Caller
    ) -> tuple[FloatArray, list[str]]:
        """A user's metric of architectures that are not screened out; NaN and no reason for the others."""
        if screened is None:
            return call(metric, architectures, self.scenario)
        rows: BoolArray = np.array([not reason for reason in screened], dtype=bool)
        values, reasons = np.full(len(rows), np.nan), [""] * len(rows)
        if rows.any():
            values[rows], found = call(metric, architectures[rows], self.scenario)
            for row, reason in zip(np.flatnonzero(rows).tolist(), found, strict=True):
                reasons[row] = reason
        return values, reasons


def is_mute(problem: Problem, genotype: IntArray) -> bool:
    """Whether the law says nothing of a design (g,), which fails for that: no fault of a metric, and another design may have a loss."""
    chosen = problem.architectures(genotype[None])
    return bool(problem.pricing(chosen).law.unpriced(chosen))


def unusable(metrics: Mapping[str, FloatArray], law: Law) -> list[str] | None:
    """Why each row of shipped metrics, the loss among them, cannot be used ("" where it can); None where all can."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(sum(metrics.values())).all() and (metrics["loss"] <= LARGEST_LOSS).all():
            return None  # as of nearly every batch: a sum is finite only where everything in it is
    message = {name: (~np.isfinite(column), "which is not finite") for name, column in metrics.items()}
    beyond = f"beyond {LARGEST_LOSS:g} nats no perplexity is finite"
    beyond = f"{law.name} prices {law.priced_designs}" if law.partial else beyond
    message["loss"] = (~(metrics["loss"] <= LARGEST_LOSS), beyond)
    if not any(rows.any() for rows, _ in message.values()):
        return None
    reasons = [""] * len(metrics["loss"])
    for name, (rows, why) in message.items():
        for row in np.flatnonzero(rows).tolist():
            reasons[row] = reasons[row] or f"{name}: {metrics[name][row]:g}, {why}"
    return reasons


def call_user_metric(
    metric: Objective, architectures: Architectures, scenario: Scenario | None
) -> tuple[FloatArray, list[str]]:
    """A user's function on a batch; where it raises, once per architecture to find which fail, as one that ships always.

    One that takes the scenario gets designs of each device and format with theirs. What it prints goes to the standard error: the output is the command's answer.
    """
    apart = scenario.by_design(architectures) if metric.wants_scenario and scenario is not None else []
    if apart:
        values, reasons = np.zeros(len(architectures)), [""] * len(architectures)
        for places, own in apart:
            values[places], found = call_user_metric(metric, architectures[places], own)
            for row, reason in zip(places.tolist(), found, strict=True):
                reasons[row] = reason
        return values, reasons
    try:
        if metric.settings is None or len(architectures) == 1:
            with printed_aside():
                returned = metric.values(architectures, scenario)
            return checked(metric, architectures, returned)
    except (UsageError, NotRunError, KeyboardInterrupt):
        raise
    except BaseException as error:  # SystemExit and asyncio's CancelledError are none of Exception
        if len(architectures) == 1:
            return np.full(1, np.nan), [failure(metric.name, error)]
    rows = [call_user_metric(metric, architectures[i : i + 1], scenario) for i in range(len(architectures))]
    return np.concatenate([values for values, _ in rows]), [reason for _, reasons in rows for reason in reasons]


def checked(metric: Objective, architectures: Architectures, returned: Any) -> tuple[FloatArray, list[str]]:
    """A user's values as float64 (n,), with a reason for each that is not finite."""
    several = f", or a mapping of arrays and name one: {metric.name.partition('.')[0]}.x"
    try:
        if np.iscomplexobj(returned):
            raise TypeError
        values: FloatArray = np.array(returned, dtype=np.float64) + 0.0  # no negative zero
    except (TypeError, ValueError):
        given = f"an array of {returned.dtype}" if isinstance(returned, np.ndarray) else type(returned).__name__
        raise UsageError(
            f"{metric.name}: expected real numbers of shape (n,), got {given}; return an array of them{several}"
        ) from None
    if values.shape != (len(architectures),):
        raise UsageError(
            f"{metric.name}: expected shape ({len(architectures)},), got {values.shape}; return one value per architecture{several * (values.ndim > 1)}"
        )
    reasons = [reason_against(metric, value) for value in values.tolist()]
    return np.where([not reason for reason in reasons], values, np.nan), reasons


def reason_against(metric: Objective, value: float) -> str:
    """Why a user's value cannot be used; "" when it can."""
    if not abs(value) <= LARGEST:
        huge = math.isfinite(value)
        return f"{metric.name}: {value:g}" + (
            f", beyond {LARGEST:g}, where squares overflow: taken as a failure" if huge else ""
        )
    return f"{metric.name}: {value}, which has no logarithm (LOG_SCALE)" if metric.log_scale and value <= 0 else ""


def failure(name: str, error: BaseException) -> str:
    """The reason of a metric that raised."""
    message = one_line(error)
    return f"{name}: {message}" if isinstance(error, PlasError) else f"{name}: {type(error).__name__}: {message}"


def one_line(error: BaseException) -> str:
    """An exception's message without line breaks, at most 200 characters."""
    return " ".join(str(error).split())[:200]


@contextmanager
def printed_aside() -> Iterator[None]:
    """The standard output is the standard error; of the main thread alone, since all threads share the one output and another may outlive it."""
    if current_thread() is not main_thread():
        yield
        return
    with redirect_stdout(sys.stderr):
        yield
