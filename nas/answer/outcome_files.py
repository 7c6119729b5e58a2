"""The files of a run's outcome: tables, picks, summary."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from nas.answer.device_times import limits
from nas.answer.law_verdicts import along_columns, law_columns, laws_in_numbers
from nas.answer.on_each_device import columns_on_devices
from nas.answer.outcome import Outcome
from nas.answer.sentences import active_experts, question_text
from nas.answer.sureness import doubt_in_numbers, flat, pick_in_numbers
from nas.answer.take import take_in_numbers
from nas.answer.three_sentences import answer_in_numbers
from nas.files import yaml_source
from nas.files.tables import BLOCK, csv_text, write, write_json
from nas.problem.diagnosis import lines
from nas.problem.evaluations import APPROXIMATE, Evaluations, too_many
from nas.problem.problem import Problem
from nas.problem.settings import tokens_of
from nas.record.database import Step
from objectives.loss_law.law import Law, origin_of
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, FloatArray, IntArray, python_value


def columns_of(problem: Problem, evaluations: Evaluations) -> dict[str, AnyArray]:
    """Architecture columns, then metrics: the columns of `frontier.csv`."""
    metrics = {name: evaluations.metrics[name] for name in problem.metric_names}
    return file_columns(problem.architectures(evaluations.genotypes), metrics, problem.space.further)


def file_columns(
    architectures: Architectures, metrics: Mapping[str, FloatArray], always: Collection[str] = ()
) -> dict[str, AnyArray]:
    """The shape, the metrics, then further columns that differ from their defaults, or are named."""
    further = architectures.further_columns(always)
    shape = {name: column for name, column in architectures.columns().items() if name not in further}
    return shape | {name: readable(name, column) for name, column in metrics.items()} | further


def readable(name: str, values: FloatArray) -> AnyArray:
    """Parameter counts as whole numbers (NaN of a failed row stays), everything else as it is."""
    if not name.startswith("params_"):
        return values
    if np.isfinite(values).all():
        return values.astype(np.int64)
    return np.array([int(value) if np.isfinite(value) else value for value in values.tolist()], dtype=object)


def write_files(folder: Path, outcome: Outcome) -> None:
    """evaluations.csv, frontier.csv, picks.csv and summary.json; of several laws laws.csv and laws_along.csv; a strategy's own."""
    problem = outcome.study.problem
    write(folder / "evaluations.csv", evaluation_table(problem, outcome.evaluations, outcome.batches))
    sure: dict[str, AnyArray] = {} if outcome.optimal is None else {"probability_optimal": outcome.optimal}
    if outcome.doubt is not None and outcome.doubt.groups is not None:
        sure["tied_group"] = outcome.doubt.groups
    write(folder / "frontier.csv", csv_text({**columns_of(problem, outcome.frontier), **sure}))
    write(folder / "picks.csv", csv_text(pick_columns(outcome)))
    write_json(folder / "summary.json", summary(outcome))
    if outcome.on_each_device:
        write(folder / "devices.csv", csv_text(columns_on_devices(problem, outcome.on_each_device)))
    if outcome.under_laws is not None:
        write(folder / "laws.csv", csv_text(law_columns(problem, outcome.under_laws)))
        if outcome.under_laws.along is not None:
            write(folder / "laws_along.csv", csv_text(along_columns(outcome.under_laws.laws, outcome.under_laws.along)))
    for name, content in (file for section in outcome.ending.sections for file in section.files.items()):
        write(folder / Path(name).name, csv_text(content) if name.endswith(".csv") else yaml_source.dump(content))


def write_steps(folder: Path, steps: Sequence[Step], keys: IntArray) -> None:
    """steps.csv: every design that ended a fidelity step, by its row in evaluations.csv; none without steps."""
    row = {key: index for index, key in enumerate(keys.tolist())}
    told = sorted((row[step.key], step.fidelity, step) for step in steps if step.key in row)
    if told:
        columns = {
            "index": [index for index, *_ in told],
            **{name: [getattr(step, name) for *_, step in told] for name in ("fidelity", "value", "place", "designs")},
            "goes_on": [int(step.goes_on) for *_, step in told],
        }
        write(folder / "steps.csv", csv_text(columns))


def evaluation_table(problem: Problem, found: Evaluations, batches: IntArray) -> Iterator[str]:
    """`index, batch, state, reason`, the columns of `frontier.csv`, violations: CSV in blocks."""
    for start in range(0, max(len(found), 1), BLOCK):
        part = found[slice(start, start + BLOCK)]
        reasons = part.reasons or ("",) * len(part)
        columns: dict[str, Any] = {
            "index": range(start, start + len(part)),
            "batch": batches[start : start + BLOCK],
            "state": ["failed" if reason else "ok" for reason in reasons],
            "reason": reasons,
            **columns_of(problem, part),
            **{f"violation_{b.metric}": column for b, column in zip(part.budgets, part.violations.T, strict=True)},
        }
        yield csv_text(columns, header=start == 0)


def answered(outcome: Outcome) -> list[dict[str, Any]]:
    """Per query its text and, where something fits, the architecture, its metrics and its times on the device."""
    rows: list[dict[str, Any]] = []
    every = zip(outcome.picks, outcome.device_times, outcome.exact_losses, strict=True)
    for place, (pick, there, best) in enumerate(every):
        row: dict[str, Any] = {"question": question_text(outcome.study.problem, pick.question)}
        row["budgets"] = limits(outcome.study.problem, pick.question)
        if best is not None:
            row["exact_loss"] = best
        if pick.answer is not None:
            problem = outcome.study.problem.with_vocabulary(pick.question.vocabulary)
            row |= {name: python_value(column[0]) for name, column in columns_of(problem, pick.answer).items()}
            row.setdefault("vocabulary", 0)
            row |= there
            row |= pick_in_numbers(outcome, place)
        rows.append(row)
    return rows


def pick_columns(outcome: Outcome) -> dict[str, Any]:
    """The answered questions as columns; `metric` and `limit` are the budget that a question adds, none for your own."""
    rows = []
    every = [*zip(outcome.picks, answered(outcome), strict=True)]
    every += zip(outcome.held, held_in_numbers(outcome), strict=True)
    for pick, row in every:
        budget = pick.question.budget
        added = {"metric": None, "limit": None} if budget is None else {"metric": budget.metric, "limit": budget.limit}
        design = {name: v for name, v in flat(row).items() if name not in ("question", "budgets", "exact_loss")}
        rows += [{"question": row["question"], **added, **design}] if pick.answer is not None else []
    names = list(dict.fromkeys(name for row in rows for name in row)) or ["question", "metric", "limit"]
    return {name: [float("nan") if row.get(name) is None else row[name] for row in rows] for name in names}


def held_in_numbers(outcome: Outcome) -> list[dict[str, Any]]:
    """The picks that hold under preset `device`, where times there are not the study's own: per question its limits, the design, its metrics there."""
    problem, rows = outcome.on_device, list[dict[str, Any]]()
    for pick in outcome.held:
        row: dict[str, Any] = {"question": f"on the device: {pick.question.label}"}
        row["budgets"] = limits(outcome.study.problem, pick.question)
        if pick.answer is not None:
            metrics = {name: pick.answer.metrics[name] for name in problem.metric_names if name in pick.answer.metrics}
            design = file_columns(problem.architectures(pick.answer.genotypes), metrics, problem.space.further)
            row |= {name: column.tolist()[0] for name, column in design.items()}
        rows.append(row)
    return rows


def law_in_numbers(law: Law, tokens: Sequence[float]) -> dict[str, Any]:
    """The law of a run: its name, form, tokens (of an axis all), residual sd and, of a fitted one, where it comes from."""
    origin = origin_of(law)
    return {
        "name": law.name,
        "form": law.form if isinstance(law.form, str) else "its own",
        "tokens": list(tokens) if len(tokens) > 1 else next(iter(tokens), None),
        "residual_sd": law.residual_sd,
        "origin": None if origin is None else origin.model_dump(mode="json"),
    }


def _counts(outcome: Outcome) -> dict[str, int]:
    """How many evaluations were asked for, took place, failed, are of designs that the law does not cover."""
    return {
        "asked": outcome.ending.asked,
        "distinct": outcome.charged,
        "known": outcome.known,
        "repeats": outcome.ending.asked - outcome.charged,
        "failed": outcome.failed,
        "stopped": outcome.stopped,
        "not_covered": outcome.uncovered,
        "feasible": int(outcome.evaluations.feasible.sum()),
    }


def summary(outcome: Outcome) -> dict[str, Any]:
    """The run in numbers, each with what it is relative to."""
    scale, problem = outcome.scale, outcome.study.problem
    rough = too_many(outcome.frontier.values)
    best = None if scale is None else scale.hypervolume(outcome.frontier.values, approximate=rough)
    return {
        "answer": answer_in_numbers(outcome),
        "train_or_take": None if outcome.take is None else take_in_numbers(outcome.take),
        "stop_reason": outcome.ending.reason,
        **({"auto": outcome.study.config.auto} if outcome.study.config.auto else {}),
        "space": {
            "name": outcome.study.problem.space.name,
            "architectures": outcome.study.problem.space.size,
            "covered": outcome.covered,
            "exact_frontier": outcome.how or None,
        },
        "evaluations": _counts(outcome),
        "frontier": len(outcome.frontier),
        "hypervolume": best,
        "hypervolume_is": APPROXIMATE if rough else "exact",
        "scale": None
        if scale is None
        else {"bounds_from": "exact frontier" if outcome.exact else "this run's frontier", **scale.described()},
        "exact": None if outcome.distance is None else asdict(outcome.distance),
        "picks": answered(outcome),
        "picks_on_device": held_in_numbers(outcome),
        "law": law_in_numbers(problem.scenario.law, tokens_of(problem)),
        "law_does_not_see": list(outcome.blind),
        "law_on_active_experts": active_experts(outcome),
        "doubt": None if outcome.doubt is None else doubt_in_numbers(outcome.doubt),
        "laws": None if outcome.under_laws is None else laws_in_numbers(problem, outcome.under_laws),
        "learned": {name: each for section in outcome.ending.sections for name, each in section.figures.items()}
        or None,
        "lessons": [line for section in outcome.ending.sections for line in section.sentences] or None,
        "diagnosis": outcome.diagnosis and lines(outcome.diagnosis, outcome.diagnosis_covers_space),
        "seconds": outcome.ending.seconds,
    }
