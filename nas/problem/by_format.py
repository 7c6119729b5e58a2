"""Columns of designs in several formats, each priced in its own: what one format lacks of another's names is 0."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray

Named = TypeVar("Named")


def by_format(
    of: Callable[[Architectures, Scenario], dict[Named, FloatArray]], designs: Architectures, scenario: Scenario
) -> dict[Named, FloatArray]:
    """Values of a function for the designs of each format in its own scenario, put together, each (n,)."""
    if not scenario.formats:
        return of(designs, scenario)
    found: dict[Named, FloatArray] = {}
    for name, rows in designs.in_formats():
        for column, values in of(designs[rows], scenario.at(name)).items():
            found.setdefault(column, np.zeros(len(designs)))[rows] = values
    return found
