"""The best run of each design in a sweep over learning rates, batches and the like."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from objectives.fitting.columns import ALIAS, bare
from search_spaces.arrays import BoolArray, FloatArray


def swept_columns(written: str, header: Sequence[str], names: Sequence[str], path: Path) -> tuple[str, ...]:
    """Columns of a list such as "lr,batch" by the names they have here (`names`, of the columns of `header`).

    Raises:
        ValueError: no column of the file.
    """
    found, here = [], dict(zip(header, names, strict=True))
    for each in (part.strip() for part in written.split(",")):
        plain = bare(each)
        name = here.get(each, ALIAS.get(plain, plain))
        if name not in names:
            raise ValueError(f"best_of: expected columns of {path} ({', '.join(header)}), got {each!r}; correct it")
        found.append(name)
    return tuple(found)


def lowest(numbers: Mapping[str, FloatArray], swept: Sequence[str]) -> BoolArray:
    """The row of lowest loss among those that are alike in every column that is read but the swept ones; of ties the first, (n,)."""
    loss = numbers["loss"]
    alike = [column for name, column in numbers.items() if name not in ("loss", *swept)]
    stacked = np.stack(alike) if alike else np.zeros((1, len(loss)))
    group = np.unique(stacked, axis=1, return_inverse=True)[1].reshape(-1)
    order = np.lexsort((loss, group))
    keep = np.zeros(len(loss), dtype=bool)
    keep[order[np.unique(group[order], return_index=True)[1]]] = True
    return keep
