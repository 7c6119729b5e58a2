"""What the numbers of a table of trained models can be: counts, shares, losses in nats, rows that are architectures."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from objectives.fitting.cells import DENSE, fault
from objectives.fitting.columns import BESIDE
from objectives.fitting.layer_columns import own_columns
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, BoolArray, FloatArray
from search_spaces.layer_kinds import KIND_DEFAULTS

LEAST_LOSS, MOST_LOSS = 0.01, 20.0
LEAST_COUNTS = {
    "parameters": 1e4,
    "active_parameters": 1e4,
    "tokens": 1e5,
}  # where no row has so many, their unit was left out


def out_of_range(numbers: Mapping[str, FloatArray], lines: AnyArray, path: Path) -> list[str]:
    """Counts that are not positive, losses that are no nats, more active experts than there are; columns and lines (n,)."""
    faults = []

    def add(wrong: BoolArray, name: str, expected: str, remedy: str) -> None:
        if wrong.any():
            got = [f"{value:g}" for value in numbers[name].tolist()]
            faults.append(fault(path, lines, wrong, name, expected, got, remedy))

    for name, values in numbers.items():
        if name not in ("loss", "checkpoint", *BESIDE, *KIND_DEFAULTS):
            add(values <= 0, name, "a positive number", f"correct the row{DENSE.get(name, '')}")
    rates = numbers.get("activation_rate", np.ones(1))
    add(rates > 1, "activation_rate", "a share of at most 1", "write a percentage with its sign, 6.25%")
    for name, least in LEAST_COUNTS.items():
        if name in numbers and (values := numbers[name]).size:
            wrong = _too_few(numbers, values) if name == "tokens" else np.full(len(lines), values.max() < least)
            unit, first = "B" if name == "tokens" else "M", values[int(np.argmax(wrong))]
            header = f"in the header as {name} ({unit}) or " if wrong.all() else ""
            remedy = f"say its unit, {header}in the cells as {first:g}{unit}"
            add(wrong & (values > 0), name, "a count", remedy)
    if "tokens" not in numbers and {"training_flops", "parameters"} <= numbers.keys():
        flops = numbers["training_flops"]
        few = _too_few(numbers, flops / (6.0 * numbers["parameters"]))
        add((flops > 0) & few, "training_flops", "FLOP of a training", "write FLOP, 6e18 where 6 EFLOP are meant")
    if (loss := numbers.get("loss")) is not None:
        expected = f"nats per token between {LEAST_LOSS} and {MOST_LOSS:g}"
        add((loss < LEAST_LOSS) | (loss > MOST_LOSS), "loss", expected, "a perplexity is exp(loss), bits are loss/ln 2")
    experts = numbers.get("n_experts", np.full(len(lines), np.inf))
    if (more := numbers.get("top_k", np.ones(1)) > experts).any():
        add(more, "top_k", f"at most n_experts {experts[int(np.argmax(more))]:g}", "correct the row")
    return faults


def _too_few(numbers: Mapping[str, FloatArray], tokens: FloatArray) -> BoolArray:
    """Rows (n,) of so few training tokens that their unit was left out: below 100,000 and a token for each thousand parameters.

    Where the parameters are unknown, or lack their unit too, all rows or none.
    """
    few, shaped = tokens < LEAST_COUNTS["tokens"], {"depth", "width"} <= numbers.keys()
    models = numbers["depth"] * numbers["width"] ** 2 if shaped else numbers.get("parameters")
    if models is None or ("depth" not in numbers and models.max() < LEAST_COUNTS["parameters"]):
        return np.asarray(few & few.all())
    return np.asarray(few & (tokens < models / 1000))


def not_architectures(numbers: Mapping[str, FloatArray], lines: AnyArray, path: Path) -> list[str]:
    """Rows that are no architecture, where the columns say a whole one."""
    own = own_columns(numbers)
    try:
        Architectures.from_columns(own)
    except ValueError as error:
        if any("got nothing" in line for line in str(error).splitlines()):
            return []
        for row, line in enumerate(lines.tolist()):
            try:
                Architectures.from_columns({name: column[row : row + 1] for name, column in own.items()})
            except ValueError as fault:
                return [f"{path}:{line}: {text}" for text in str(fault).splitlines()]
        return [f"{path}: {error}"]
    return []
