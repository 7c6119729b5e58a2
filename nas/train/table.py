"""`trainings.csv`: a row per training, as `fit` reads it."""

import re
from collections.abc import Sequence
from typing import Any

from nas.files.tables import csv_text

FILE = "trainings.csv"
LOG = "trainings.jsonl"


def trainings_csv(lines: Sequence[dict[str, Any]]) -> str:
    """The last line of each training, by name with numbers in their order; what a row does not have is empty."""
    last = {line["run"]: line for line in lines}
    rows = sorted(last.values(), key=lambda row: _natural(row["run"]))
    names = list(dict.fromkeys(name for row in rows for name in row))
    return csv_text({name: [_cell(row.get(name)) for row in rows] for name in names})


def _cell(value: Any) -> Any:
    return "" if value is None else value


def _natural(name: str) -> list[tuple[bool, int, str]]:
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"([0-9]+)", name) if part]
