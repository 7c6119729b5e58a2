"""Sentences on how a fit's form stands beside simple baselines on unseen rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nas.fit.numbers_in_words import number, off_by
from nas.problem.quantity_words import in_words

Drawn = Callable[[Sequence[str], Sequence[Sequence[str]]], list[str]]
HEADER = ("RMSE (nats)", "below this form's (nats)", "pairs in order")


def baseline_lines(known: Mapping[str, Any], form: str, drawn: Drawn) -> list[str]:
    """A line per predictor for the folds and one for the largest fifth, then who is better by how much."""
    rows = {name: row for name, row in known["predictors"].items() if not isinstance(row, str)}
    lines = drawn(("10 random folds", *HEADER), [[name, *_cells(row["folds"])] for name, row in rows.items()])
    beyond = [[name, *_cells(row["largest"])] for name, row in rows.items() if row["largest"] is not None]
    if beyond:
        size = rows[form]["largest"]["rows"]
        lines += drawn((f"largest fifth by {known['largest_by']} ({size:,} rows)", *HEADER), beyond)
    lines += [f"{name}: {row}" for name, row in known["predictors"].items() if isinstance(row, str)]
    if known["logarithms"]:
        lines.append(f"the logarithms are those of {', '.join(map(in_words, known['logarithms']))}")
    lines += [f"{form} loses to the {_loss(each)}" for each in known["better"]]
    return lines if known["better"] else [*lines, f"{form} is shown to lose to none of them"]


def _cells(row: Mapping[str, Any]) -> list[str]:
    order = "-" if row["order"] is None else f"{row['order']['right']:.1%} of {row['order']['pairs']:,}"
    below = "-" if row["excess"] is None else off_by(row["excess"], row["excess_error"])
    return [number(row["rmse"]), below, order]


def _loss(each: Mapping[str, Any]) -> str:
    return (
        f"{each['baseline']} on {each['rows']} by {each['excess']:.2g} ± {each['excess_error']:.1g} nats "
        f"(RMSE {number(each['fit_rmse'])} nats against {number(each['rmse'])} nats)"
    )


def lost(known: Mapping[str, Any], form: str) -> str:
    """To which baseline the form loses most on the folds and on the largest rows, by how much."""
    most: dict[str, Mapping[str, Any]] = {}
    for each in known["better"]:
        if each["rows"] not in most or each["rmse"] < most[each["rows"]]["rmse"]:
            most[each["rows"]] = each
    return f"on unseen rows {form} loses to the {', and to the '.join(_loss(most[rows]) for rows in sorted(most))}"
