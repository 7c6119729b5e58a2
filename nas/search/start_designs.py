"""The designs that a search starts from."""

from pathlib import Path as FilePath
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.problem.problem import Problem
from nas.record.candidates import read_candidates
from nas.search.discovery import able_to
from nas.search.strategy import Traits
from search_spaces.architectures import Architectures, architectures_of
from search_spaces.arrays import IntArray


def start_of(given: Architectures | None, algo: str, traits: Traits, problem: Problem) -> IntArray:
    """Genotypes of the designs that a strategy is given to start from, distinct, in their order.

    Raises:
        UsageError: a strategy that cannot, or designs outside the space.
    """
    if given is None:
        return np.zeros((0, len(problem.space.gene_sizes)), dtype=np.int64)
    if not traits.seedable:
        raise UsageError(
            f"seed_from: expected a strategy that starts from given designs ({', '.join(able_to('seedable'))}), got {algo}; choose one"
        )
    keys = problem.space.find(given)
    if (keys < 0).any():
        outside = int((keys < 0).argmax())
        raise UsageError(
            f"seed_from: expected designs of the {problem.space.name} space, got row {outside + 1} outside it "
            f"({int((keys < 0).sum())} of {len(keys)} are); remove them"
        )
    return problem.space.genotypes(keys[np.sort(np.unique(keys, return_index=True)[1])])


def given_designs(source: str | list[dict[str, Any]] | None) -> Architectures | None:
    """The designs of a candidate file, or written out in the study; None of neither.

    Raises:
        UsageError: rows that are no architectures.
    """
    if not source:
        return None
    if isinstance(source, str):
        return read_candidates(FilePath(source))[0]
    try:
        return architectures_of(source)
    except ValueError as error:
        raise UsageError(f"seed_from: {error}") from None
