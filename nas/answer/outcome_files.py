"""The files of a run's outcome: tables, picks, summary."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from nas.answer.design_words import describe
from nas.answer.device_times import limits
from nas.answer.on_each_device import OnDevice
from nas.answer.outcome import Doubt, Outcome, PickRegret, once
from nas.answer.sentences import active_experts, question_text
from nas.answer.sureness import column_names, difference_in_numbers, witness_in_numbers
from nas.answer.take import take_in_numbers
from nas.answer.three_sentences import answer_in_numbers
from nas.answer.under_laws import LawAnswers
from nas.exact.alternative_laws import Verdict
from nas.files import yaml_source
from nas.files.tables import BLOCK, csv_text, write, write_json
from nas.problem.diagnosis import lines
from nas.problem.evaluations import APPROXIMATE, Evaluations, too_many
from nas.problem.problem import Problem
from nas.problem.settings import tokens_of
from nas.problem.uncertainty import FROM_LOSS
from nas.record.database import Step
from objectives.loss_law.law import origin_of
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
    """evaluations.csv, frontier.csv, picks.csv and summary.json; of several laws laws.csv; a strategy's own."""
    problem, answers = outcome.study.problem, outcome.under_laws
    write(folder / "evaluations.csv", evaluation_table(problem, outcome.evaluations, outcome.batches))
    sure: dict[str, AnyArray] = {} if outcome.optimal is None else {"probability_optimal": outcome.optimal}
    if outcome.doubt is not None and outcome.doubt.groups is not None:
        sure["tied_group"] = outcome.doubt.groups
    tables: dict[str, Mapping[str, Any]] = {"frontier.csv": {**columns_of(problem, outcome.frontier), **sure}}
    tables["picks.csv"] = pick_columns(outcome)
    if outcome.on_each_device:
        tables["devices.csv"] = in_columns(_on_devices(problem, outcome.on_each_device), ["device"])
    if answers is not None:
        tables["laws.csv"] = in_columns(_under_laws(problem, answers), ["question", "of"])
    for section in outcome.ending.sections:
        tables |= {Path(name).name: content for name, content in section.files.items()}
    write_json(folder / "summary.json", summary(outcome))
    for name, content in tables.items():
        write(folder / name, csv_text(content) if name.endswith(".csv") else yaml_source.dump(content))


def in_columns(rows: Iterable[Mapping[str, Any]], least: Sequence[str], empty: Any = "") -> dict[str, list[Any]]:
    """Rows as columns, `empty` where a row has no such value; of no rows the `least` columns."""
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row)) or least
    return {name: [empty if row.get(name) is None else row[name] for row in rows] for name in names}


def _on_devices(problem: Problem, answers: Sequence[OnDevice]) -> list[dict[str, Any]]:
    """Each device with its pick's columns and metrics, empty where nothing fits, and its members of the frontier."""
    rows: list[dict[str, Any]] = []
    for each in answers:
        row: dict[str, Any] = {"device": each.name, "on_frontier": each.on_frontier}
        if each.pick is not None:
            designs = problem.architectures(each.pick.genotypes).columns()
            row |= {name: column[0] for name, column in {**designs, **each.pick.metrics}.items() if name != "device"}
        rows.append(row | {f"closest_{metric}": value for metric, value in each.missed.items()})
    return rows


def _under_laws(problem: Problem, answers: LawAnswers) -> Iterator[dict[str, Any]]:
    """One row per question and design: `of` the study, a law or the least worst regret; its regret under each law."""
    own = {metric.name for metric in problem.functions} | FROM_LOSS.keys()
    for pick, verdict in zip(answers.picks, answers.verdicts, strict=True):
        best = zip((law.name for law in answers.laws), verdict.best, strict=True)
        for of, row in (("pick", pick.answer), *best, ("least worst regret", verdict.robust)):
            if row is not None:
                design = problem.architectures(row.genotypes)
                assessed, shape = problem.assess(design), design.columns()
                regrets = zip(answers.laws, verdict.regrets(design)[0].tolist(), strict=True)
                yield {
                    "question": pick.question.label,
                    "of": of,
                    **{f"regret_{law.name}": value for law, value in regrets},
                    **{name: column.tolist()[0] for name, column in shape.items()},
                    **{name: float(assessed[name][0]) for name in problem.metric_names if name not in own},
                }


def _laws_in_numbers(problem: Problem, answers: LawAnswers) -> dict[str, Any]:
    """The laws, and per question the regret of the pick and of the least worst design under each, nats."""
    names = [law.name for law in answers.laws]

    def of(verdict: Verdict, row: Evaluations | None) -> dict[str, float | None] | None:
        if row is None:
            return None
        regrets = verdict.regrets(problem.architectures(row.genotypes))[0].tolist()
        return {name: None if np.isnan(value) else value for name, value in zip(names, regrets, strict=True)}

    questions = []
    for pick, verdict in zip(answers.picks, answers.verdicts, strict=True):
        best = [0 if row is None else int(problem.architectures(row.genotypes).n_experts[0]) for row in verdict.best]
        regrets = {"regret_of_pick": of(verdict, pick.answer), "regret_of_least_worst": of(verdict, verdict.robust)}
        experts = {"n_experts_of_each_law": dict(zip(names, best, strict=True))}
        questions.append({"question": pick.question.label, **regrets, **experts})
    return {"names": names, "questions": questions}


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
    """Per query its text and, where something fits, the architecture, its metrics, its times on the device, and how sure its loss is."""
    rows: list[dict[str, Any]] = []
    doubt, study = outcome.doubt, outcome.study
    for at, (pick, best) in enumerate(zip(outcome.picks, outcome.exact_losses, strict=True)):
        row: dict[str, Any] = {"question": question_text(study.problem, pick.question)}
        row["budgets"] = limits(study.problem, pick.question)
        if best is not None:
            row["exact_loss"] = best
        if pick.answer is not None:
            problem = study.problem.with_vocabulary(pick.question.vocabulary)
            row |= {name: python_value(column[0]) for name, column in columns_of(problem, pick.answer).items()}
            row.setdefault("vocabulary", 0)
            row |= outcome.device_times[at]
            if (witness := outcome.witnesses[at]) is not None:
                row["evidence"] = witness_in_numbers(witness)
            if doubt is not None:
                by_model = doubt.differences[at].items()
                row["differences"] = {label: difference_in_numbers(difference) for label, difference in by_model}
                row |= {} if (regret := doubt.regrets[at]) is None else regret_in_numbers(study.problem, regret)
        rows.append(row)
    return rows


def regret_in_numbers(problem: Problem, regret: PickRegret) -> dict[str, Any]:
    """A pick's expected regret, the least one, among what, and the design that has it."""
    least = regret.least
    return {
        "expected_regret": regret.nats,
        "least_expected_regret": least.expected_regret,
        "least_expected_of": "space" if least.proven else "frontier and picks",
        "least_expected_architecture": describe(problem.architectures(least.genotype[None])),
    }


NOT_OF_A_TABLE = ("question", "budgets", "exact_loss", "differences", "evidence")


def pick_columns(outcome: Outcome) -> dict[str, Any]:
    """The answered questions as columns; `metric` and `limit` are the budget that a question adds, none for your own."""
    rows = []
    every = [*zip(outcome.picks, answered(outcome), strict=True)]
    every += zip(outcome.held, held_in_numbers(outcome), strict=True)
    for pick, row in every:
        if pick.answer is not None:
            budget = pick.question.budget
            metric, limit = (None, None) if budget is None else (budget.metric, budget.limit)
            design = {name: value for name, value in row.items() if name not in NOT_OF_A_TABLE}
            for label, difference in row.get("differences", {}).items():
                design |= dict(zip(column_names(label), difference.values(), strict=True))
            rows.append({"question": row["question"], "metric": metric, "limit": limit, **design})
    return in_columns(rows, ["question", "metric", "limit"], float("nan"))


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


def doubt_in_numbers(doubt: Doubt) -> dict[str, Any]:
    """Of the frontier how many steps are told apart; the sd of one loss on an unknown text, nats; designs that are not told apart from the answer."""
    alike = doubt.not_told_apart
    cheapest = None if alike is None or alike.cheapest is None else describe(alike.cheapest)
    numbers = None if alike is None else {**asdict(alike), "cheapest": cheapest}
    steps = None if doubt.groups is None else doubt.steps
    return {"frontier_steps": steps, "loss_sd": doubt.level_sd, "not_told_apart": numbers}


@once  # a run's file and its JSON are the same
def summary(outcome: Outcome) -> dict[str, Any]:
    """The run in numbers, each with what it is relative to."""
    scale, problem, sections = outcome.scale, outcome.study.problem, outcome.ending.sections
    rough, asked = too_many(outcome.frontier.values), outcome.ending.asked
    bounds = "exact frontier" if outcome.exact else "this run's frontier"
    law, tokens = problem.scenario.law, tokens_of(problem)
    origin = origin_of(law)
    return {
        "answer": answer_in_numbers(outcome),
        "train_or_take": None if outcome.take is None else take_in_numbers(outcome.take),
        "stop_reason": outcome.ending.reason,
        **({"auto": outcome.study.config.auto} if outcome.study.config.auto else {}),
        "space": {
            "name": problem.space.name,
            "architectures": problem.space.size,
            "covered": outcome.covered,
            "exact_frontier": outcome.how or None,
        },
        "evaluations": {
            "asked": asked,
            "distinct": outcome.charged,
            "known": outcome.known,
            "repeats": asked - outcome.charged,
            **outcome.without_value,
            "feasible": int(outcome.evaluations.feasible.sum()),
        },
        "frontier": len(outcome.frontier),
        "hypervolume": None if scale is None else scale.hypervolume(outcome.frontier.values, approximate=rough),
        "hypervolume_is": APPROXIMATE if rough else "exact",
        "scale": None if scale is None else {"bounds_from": bounds, **scale.described()},
        "exact": None if outcome.distance is None else asdict(outcome.distance),
        "picks": answered(outcome),
        "picks_on_device": held_in_numbers(outcome),
        "law": {
            "name": law.name,
            "form": law.form if isinstance(law.form, str) else "its own",
            "tokens": list(tokens) if len(tokens) > 1 else next(iter(tokens), None),  # of an axis all
            "residual_sd": law.residual_sd,
            "origin": None if origin is None else origin.model_dump(mode="json"),
        },
        "law_does_not_see": list(outcome.blind),
        "law_on_active_experts": active_experts(outcome),
        "doubt": None if outcome.doubt is None else doubt_in_numbers(outcome.doubt),
        "laws": None if outcome.under_laws is None else _laws_in_numbers(problem, outcome.under_laws),
        "learned": {name: figure for section in sections for name, figure in section.figures.items()} or None,
        "lessons": [line for section in sections for line in section.sentences] or None,
        "diagnosis": outcome.diagnosis and lines(outcome.diagnosis, outcome.diagnosis_covers_space),
        "seconds": outcome.ending.seconds,
    }
