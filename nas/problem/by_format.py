"""Columns of designs of several formats or vocabularies, each priced in its own: what one lacks of another's names is 0."""

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
    """Values of a function for the designs of each format and vocabulary in its own scenario, put together, each (n,)."""
    groups = scenario.by_design(designs)
    if not groups:
        return of(designs, scenario)
    found: dict[Named, FloatArray] = {}
    for rows, its_own in groups:
        for column, values in of(designs[rows], its_own).items():
            found.setdefault(column, np.zeros(len(designs)))[rows] = values
    return found
