"""Published models on each device: how fast, how much memory, whether they fit, and the loss where the law has one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nas.answer.design_words import blind_spots
from nas.answer.device_times import speeds
from nas.errors import UsageError
from nas.problem.objective import Baseline, Budget
from nas.problem.problem import Problem
from nas.problem.quantiles import time_ranges
from nas.study.baselines import baseline
from objectives.plugins import normalised
from objectives.published_models import model_ids
from objectives.token_curve import Text
from plas_range.cases import Case
from plas_range.configuration import EVERYTHING
from search_spaces.architectures import Architectures

MEMORY = ("memory_gb", "resident_gb")
METRICS = ("prefill_ms", "decode_ms", "tpot_ms", "total_ms", *MEMORY, "params_total", "params_active")


@dataclass(frozen=True, eq=False)
class ModelRow:
    """A published model in a case, with its own vocabulary and tying.

    tokens_per_second: of all sequences together, 1000·batch/tpot_ms. fits: within the case's limits on memory, else
    within the device's. missed: limits on anything else that it exceeds. loss: what the law predicts of its shape, NaN
    where the law cannot tell; `extrapolates` marks predictions outside what it was fitted on. remarks: what costs and
    law do not know of it. ranges: where its times are expected, by their names.
    """

    case: Case
    model: str
    id: str
    vocabulary: int
    metrics: dict[str, float]
    ranges: dict[str, tuple[float, float]]
    tokens_per_second: float
    fits: bool
    missed: tuple[Budget, ...]
    loss: float
    extrapolates: bool
    remarks: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Priced:
    """Published models with their ids, as one batch."""

    ids: tuple[str, ...]
    known: tuple[Baseline, ...]
    architectures: Architectures

    @classmethod
    def from_items(cls, items: Sequence[str | dict[str, Any]]) -> "Priced":
        """The models by names or mappings.

        Raises:
            UsageError: an unknown one.
        """
        names = list(model_ids()) if EVERYTHING in items else list(items)
        try:
            known = tuple(baseline(name) for name in names)
        except (UsageError, ValueError) as error:
            raise UsageError(f"--models: {error}") from None
        ids = tuple(normalised(name) if isinstance(name, str) else str(name.get("name", "custom")) for name in names)
        return cls(ids, known, Architectures.concatenate([model.architecture for model in known]))

    def covered(self, cases: Sequence[Case]) -> tuple["Priced", list[str]]:
        """The models that the latency model covers in every case, and the names of the others.

        Raises:
            UsageError: it covers none.
        """
        closed = [case.problem for case in cases if case.problem.scenario.latency == "closed_form"]
        rows = [
            i for i in range(len(self.known)) if all(_covers(problem, self.architectures[[i]]) for problem in closed)
        ]
        if not rows:
            raise UsageError("--models: expected one that the closed form covers, got none; use --set latency=operator")
        return self._of(rows)

    def counted(self, cases: Sequence[Case]) -> tuple["Priced", list[str]]:
        """The models of whose own vocabularies the tokens of a request's text are known, and the names of the others.

        Raises:
            UsageError: they are known of none.
        """
        texts = [text for case in cases if (text := case.problem.scenario.text) is not None and text.of_requests]
        rows = [i for i, size in enumerate(self.architectures.vocabulary.tolist()) if _counts(texts, size)]
        if not rows:
            raise UsageError(
                "--models: expected one of a vocabulary that token_curve counts, got none; count more sizes"
            )
        return self._of(rows)

    def _of(self, rows: list[int]) -> tuple["Priced", list[str]]:
        """The models of some rows, and the names of the others."""
        chosen = (tuple(self.ids[i] for i in rows), tuple(self.known[i] for i in rows))
        left_out = [known.label for i, known in enumerate(self.known) if i not in rows]
        return Priced(*chosen, self.architectures[rows]), left_out


def ranked(models: Priced, cases: Sequence[Case], *, own_vocabulary: bool) -> tuple[tuple[ModelRow, ...], ...]:
    """Per device and format the models: those that fit first, then those within all limits, then the faster decoding.

    Cases that differ in their application alone are one. `own_vocabulary`: each model has its own, else the study's.
    """
    distinct = {(case.named, case.format): case for case in reversed(cases)}
    wanted = [case for case in cases if distinct[case.named, case.format] is case]
    return tuple(tuple(sorted(_rows(case, models, own_vocabulary), key=_rank)) for case in wanted)


def _covers(problem: Problem, model: Architectures) -> bool:
    try:
        problem.assess(problem.headed(model))["total_ms"]
    except ValueError:
        return False
    return True


def _counts(texts: Sequence[Text], size: int) -> bool:
    try:
        return all(text.at(size).bytes_per_token_here > 0 for text in texts)
    except ValueError:
        return False


def _rank(row: ModelRow) -> tuple[bool, bool, float]:
    return not row.fits, bool(row.missed), -row.tokens_per_second


def _rows(case: Case, models: Priced, own_vocabulary: bool) -> list[ModelRow]:
    problem, scenario = case.problem, case.problem.scenario
    own = own_vocabulary and scenario.latency == "operator"
    chosen = models.architectures if own else problem.headed(models.architectures)
    limits = _limits(case)
    assessment = problem.assess(chosen)
    metrics = {name: assessment[name] for name in (*METRICS, *(budget.metric for budget in limits))}
    over = [~(budget.violation(metrics[budget.metric]) <= 0.0) for budget in limits]
    beyond = scenario.law.extrapolates(chosen)
    rows = []
    for i, model in enumerate(models.known):
        own_metrics = {name: float(column[i]) for name, column in metrics.items()}
        missed = [budget for budget, misses in zip(limits, over, strict=True) if misses[i]]
        remarks = tuple(blind_spots(model, scenario))
        rows.append(
            ModelRow(
                case,
                model.label,
                models.ids[i],
                int(chosen.vocabulary[i]),
                own_metrics,
                time_ranges(problem.pricing(chosen[[i]]), chosen[[i]], own_metrics),
                1000.0 * scenario.batch / own_metrics["tpot_ms"],
                not any(budget.metric in MEMORY for budget in missed),
                tuple(budget for budget in missed if budget.metric not in MEMORY),
                float("nan") if remarks else float(assessment["loss"][i]),
                bool(beyond[i]) and not remarks,
                remarks,
            )
        )
    return rows


def _limits(case: Case) -> Sequence[Budget]:
    """The case's limits that a model can be held against: none of a user's own functions, not the time of another model."""
    own = {function.name for function in case.problem.functions}
    of_question = () if case.question.baseline else case.question.budgets
    limits = [budget for budget in (*case.problem.limits, *of_question) if budget.metric not in own]
    held = any(budget.metric in MEMORY for budget in limits)
    return limits if held else [*limits, Budget("resident_gb", case.device.memory_gb)]


def memory_limit(case: Case) -> Budget:
    """The tightest limit on memory of those that decide whether a model fits."""
    return min((b for b in _limits(case) if b.metric in MEMORY), key=lambda b: b.limit)


def speed_note(case: Case) -> str:
    """How fast the device is taken to be: calibrated and how, or datasheet peaks and why."""
    return case.note if case.problem.scenario.calibration is None else speeds(case.problem.scenario)
