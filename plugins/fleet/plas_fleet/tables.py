"""A fleet as plain tables: who is served by what, the models, candidates for export; and as JSON."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nas.answer.outcome_files import file_columns
from nas.errors import UsageError
from nas.files.tables import csv_text, write, write_json
from nas.record.candidates import write_candidates
from plas_fleet.answers import Described, FleetAnswer, fullest, held_by
from plas_range.tables import setting_of

NAN = float("nan")


def write_tables(folder: Path, answer: FleetAnswer) -> None:
    """fleet.csv, models.csv, summary.json, and candidates.csv of the largest fleet.

    Raises:
        PlasError: the folder cannot be written.
    """
    write(folder / "fleet.csv", csv_text(columns(served_rows(answer))))
    write(folder / "models.csv", csv_text(columns(model_rows(answer))))
    write_json(folder / "summary.json", summary(answer))
    if answer.chosen is not None:
        write_candidates(folder / "candidates.csv", candidates(answer))


def candidates(answer: FleetAnswer) -> dict[str, list[Any]]:
    """The models of the largest fleet as columns of a candidate file.

    Raises:
        UsageError: no fleet serves all cases.
    """
    if answer.chosen is None:
        raise UsageError("fleet: expected one that serves all cases, got none; ask for more models")
    return columns(_models(answer, answer.chosen))


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns, in the order in which names first come; what a row does not have is empty."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name, NAN) for row in rows] for name in names}


def served_rows(answer: FleetAnswer) -> list[dict[str, Any]]:
    """A row per fleet and case: which model serves it, its loss and regret, how full each limit is."""
    return [row for each in answer.described for row in _served(answer, each)]


def _served(answer: FleetAnswer, each: Described) -> list[dict[str, Any]]:
    fleets, rows = answer.fleets, []
    for number, case in enumerate(fleets.cases):
        place = int(each.fleet.serves[number])
        model = each.models[place]
        metric, share = fullest(model, number)
        used = {f"used_{name}": value for name, value in model.used[model.cases.index(number)].items()}
        rows.append(
            {
                "models": each.fleet.most,
                "case": case.label,
                **setting_of(case),
                "weight": case.weight,
                "model": answer.name(each, number),
                "loss": float(each.fleet.loss[number]),
                "own_best": float(fleets.best[number]),
                "regret": float(each.regret[number]),
                "fullest_limit": metric,
                "used": share,
                **used,
            }
        )
    return rows


def model_rows(answer: FleetAnswer) -> list[dict[str, Any]]:
    """A row per fleet and model: its design, loss, how many cases it serves, what holds it back, what training costs."""
    return [{"models": each.fleet.most, **row} for each in answer.described for row in _models(answer, each)]


def _models(answer: FleetAnswer, each: Described) -> list[dict[str, Any]]:
    designs = answer.architectures([model.key for model in each.models])
    shape = {
        name: column.tolist() for name, column in file_columns(designs, {}, answer.fleets.problem.space.further).items()
    }
    extrapolates = answer.fleets.problem.scenario.law.extrapolates(designs).tolist()
    labels = [case.label for case in answer.fleets.cases]
    return [
        {
            "id": answer.names[model.key],
            **{name: column[place] for name, column in shape.items()},
            "loss": model.loss,
            "extrapolates": extrapolates[place],
            **model.training,
            "serves": len(model.cases),
            "weight_served": float(answer.fleets.weights[list(model.cases)].sum()),
            "cases": "; ".join(labels[case] for case in model.cases),
            "held_by": held_by(answer.fleets, model),
        }
        for place, model in enumerate(each.models)
    ]


def summary(answer: FleetAnswer) -> dict[str, Any]:
    """The answer in numbers: what each number of models has, what a further one buys."""
    fleets = answer.fleets
    return {
        "space": {"name": fleets.problem.space.name, "architectures": fleets.problem.space.size},
        "minimise": fleets.asked.minimise,
        "how": fleets.designs.how,
        "unserved": answer.lost,
        "fleets": [
            *({"models": fleet.most, "state": "serves not all cases"} for fleet in fleets.fleets if not fleet.found),
            *(_in_numbers(each, gain) for each, gain in zip(answer.described, answer.gains, strict=True)),
        ],
    }


def _in_numbers(each: Described, gain: float | None) -> dict[str, Any]:
    return {
        "models": each.fleet.most,
        "value": each.fleet.value,
        "buys": gain,
        "worst_regret": each.worst,
        **each.training,
    }


def described(answer: FleetAnswer) -> dict[str, Any]:
    """The answer as JSON."""
    return summary(answer) | {"served": served_rows(answer), "members": model_rows(answer)}
