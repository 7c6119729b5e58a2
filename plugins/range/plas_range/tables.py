"""A device study as plain tables: cases, picks, frontiers, transfers, models; and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nas.answer.outcome_files import file_columns
from nas.files.tables import csv_text, write, write_json
from nas.problem.quantiles import time_ranges
from objectives.metrics.perplexity import perplexity_percent
from plas_range.cases import Case
from plas_range.models import ModelRow, memory_limit, speed_note
from plas_range.result import DeviceStudy, Models, architecture, shortage, spread
from search_spaces.arrays import python_value
from search_spaces.columns import SHAPE, worded

NAN = float("nan")


def write_tables(folder: Path, study: DeviceStudy | None, models: Models) -> None:
    """cases.csv, picks.csv, frontiers.csv, transfer.csv and summary.json of a study; models.csv.

    Raises:
        PlasError: the folder cannot be written.
    """
    if models:
        write(folder / "models.csv", csv_text(model_columns(models)))
    if study is None:
        return
    write(folder / "cases.csv", csv_text(case_columns(study)))
    write(folder / "picks.csv", csv_text(_columns(pick_rows(study))))
    write(folder / "frontiers.csv", frontier_blocks(study))
    write(folder / "transfer.csv", transfer_blocks(study))
    write_json(folder / "summary.json", summary(study))


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns, in the order in which names first come; what a row does not have is empty."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name, NAN) for row in rows] for name in names}


def setting_of(case: Case) -> dict[str, Any]:
    """The device, precision and workload of a case."""
    config, device = case.config, case.device
    where = {"device": case.named, "device_name": device.name, "mode": device.mode, "precision": config.precision}
    return where | {name: getattr(config, name) for name in ("batch", "input_tokens", "output_tokens")}


def case_columns(study: DeviceStudy) -> dict[str, list[Any]]:
    """A row per case: on what, its limits, the device's figures, the size of its frontier, why nothing fits."""
    rows = []
    for answer in study.rows:
        case = answer.case
        limit = case.question.budget
        rows.append(
            {
                "case": case.label,
                **setting_of(case),
                **{name: getattr(case.config, name) for name in ("latency", "attention", "vocabulary")},
                "question": case.question.label,
                "question_metric": limit.metric if limit else "",
                "question_limit": limit.limit if limit else NAN,
                **{f"limit_{budget.metric}": budget.limit for budget in case.problem.budgets},
                "device_memory_gb": case.device.memory_gb,
                "bandwidth_gb_per_s": case.device.bandwidth / 1e9,
                "fp16_tflop_per_s": case.device.peaks.get("fp16", NAN) / 1e12,
                "flop_per_byte": case.device.flop_per_byte,
                "speed": speed_note(case),
                "frontier": len(answer.frontier),
                "state": "ok" if answer.pick is not None else "infeasible",
                "reason": "" if answer.pick is not None else shortage(answer),
            }
        )
    return _columns(rows)


def pick_rows(study: DeviceStudy) -> list[dict[str, Any]]:
    """A row per case with a pick: which distinct design, what binds, the architecture, metrics, the loss without each limit."""
    design, rows = study.design_of(), []
    for i, answer in enumerate(study.rows):
        if answer.pick is None:
            continue
        problem = answer.case.problem
        metrics = problem.evaluate(answer.pick.genotypes).metrics
        chosen = architecture(answer)
        columns = file_columns(chosen, {name: metrics[name] for name in problem.metric_names})
        values = {name: python_value(column[0]) for name, column in columns.items()}
        law = problem.scenario.law
        rows.append(
            {
                "case": answer.case.label,
                "design": design[i],
                "binds": " ".join(answer.binding),
                **values,
                **range_columns(
                    time_ranges(problem.pricing(chosen), chosen, {n: float(metrics[n][0]) for n in metrics})
                ),
                "extrapolates": bool(law.extrapolates(chosen)[0]),
                **{f"loss_without_{metric}": loss for metric, loss in answer.without.items()},
            }
        )
    return rows


def frontier_blocks(study: DeviceStudy) -> Iterator[str]:
    """Every member of every case's frontier: shape and the metrics that decided, a candidate file."""
    names = list(dict.fromkeys(name for answer in study.rows for name in answer.frontier.metrics))
    for i, answer in enumerate(study.rows):
        frontier, n = answer.frontier, len(answer.frontier)
        shape = answer.case.problem.space.architectures(frontier.genotypes)
        of_shape = (*SHAPE, *answer.case.problem.space.mixes.names)
        columns: dict[str, Any] = {"case": [answer.case.label] * n}
        columns |= {name: worded(name, getattr(shape, name)) for name in of_shape}
        columns |= {name: frontier.metrics.get(name, np.full(n, NAN)) for name in names}
        yield csv_text(columns, header=i == 0)


def transfer_blocks(study: DeviceStudy) -> Iterator[str]:
    """The design of every case in every case: loss, limits missed, and the frontiers at equal cost."""
    t, labels, design = study.transfer, [answer.case.label for answer in study.rows], study.design_of()
    limits = [answer.case.budgets for answer in study.rows]
    n = len(labels)
    for row in range(n):
        missed = [
            limits[column][int(t.missed[row, column])].metric if t.violation[row, column] > 0.0 else ""
            for column in range(n)
        ]
        columns = {
            "from": [labels[row]] * n,
            "to": labels,
            "same_design": [row in design and design[row] == design.get(column) for column in range(n)],
            "regret_nats": t.regret[row],
            "perplexity_percent": perplexity_percent(t.regret[row]),
            "missed": missed,
            "violation_percent": 100 * t.violation[row],
            f"regret_at_equal_{t.cost}": t.at_equal_cost[row],
            "frontier_shared": t.shared[row],
            f"frontier_mean_regret_at_equal_{t.cost}": t.mean[row],
            f"frontier_worst_regret_at_equal_{t.cost}": t.worst[row],
        }
        yield csv_text(columns, header=row == 0)


def range_columns(ranges: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """Where each time is expected, as columns `…_low` and `…_high`."""
    return {f"{name}_{end}": r[side] for name, r in ranges.items() for side, end in enumerate(("low", "high"))}


def model_columns(models: Models) -> dict[str, list[Any]]:
    """A row per device, format and model, in the order of the ranking."""
    return _columns([_model(rank, row) for rows in models for rank, row in enumerate(rows, 1)])


def _model(rank: int, row: ModelRow) -> dict[str, Any]:
    limit = memory_limit(row.case)
    return {
        **setting_of(row.case),
        "rank": rank,
        "model": row.id,
        "model_name": row.model,
        "vocabulary": row.vocabulary,
        "tokens_per_second": row.tokens_per_second,
        "ttft_ms": row.metrics["prefill_ms"],
        **{name: row.metrics[name] for name in ("tpot_ms", "total_ms", "memory_gb", "resident_gb")},
        "memory_limit": str(limit),
        "fits": row.fits,
        "missed": "; ".join(map(str, row.missed)),
        "params_total": int(row.metrics["params_total"]),
        "params_active": int(row.metrics["params_active"]),
        "loss": row.loss,
        "extrapolates": row.extrapolates,
        **range_columns(row.ranges),
        "speed": speed_note(row.case),
        "remarks": "; ".join(row.remarks),
    }


def summary(study: DeviceStudy) -> dict[str, Any]:
    """The study in numbers: how many optima, the design for all, how far designs carry, why they differ."""
    labels = [answer.case.label for answer in study.rows]
    best = study.universal
    return {
        "space": {"name": study.cases.base.problem.space.name, "architectures": study.cases.base.problem.space.size},
        "proof": study.answers.proof,
        "spread": spread(study),
        "optima": [
            {"design": number, "cases": [labels[i] for i in optimum.cases], "why": why}
            for number, (optimum, why) in enumerate(zip(study.optima, study.reasons, strict=True), 1)
        ],
        "one_for_all": None if best is None else _universal(study),
        "infeasible": {answer.case.label: shortage(answer) for answer in study.rows if answer.pick is None},
    }


def _universal(study: DeviceStudy) -> dict[str, Any]:
    best = study.universal
    assert best is not None
    problem = study.cases.base.problem
    shape = problem.space.architectures(problem.space.genotypes(np.array([best.key])))
    return {
        "architecture": {
            name: worded(name, getattr(shape, name)).tolist()[0] for name in (*SHAPE, *problem.space.mixes.names)
        },
        "fits": best.fits,
        "of": best.of,
        "of_the_whole_space": best.exact,
        "worst_regret_nats": best.worst,
        "regret_nats": {answer.case.label: float(r) for answer, r in zip(study.rows, best.regret, strict=True)},
        "violation": {answer.case.label: float(v) for answer, v in zip(study.rows, best.violation, strict=True)},
    }


def described(study: DeviceStudy | None, models: Models) -> dict[str, Any]:
    """The answer as JSON."""
    of_study = (
        {} if study is None else summary(study) | {"cases": _rows(case_columns(study)), "picks": pick_rows(study)}
    )
    return of_study | {"models": _rows(model_columns(models)) if models else []}


def _rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
