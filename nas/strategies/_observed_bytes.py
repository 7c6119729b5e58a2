"""The evaluations that a strategy received, as bytes."""

import numpy as np

from nas.problem.evaluations import Evaluations


def content(evaluations: Evaluations) -> bytes:
    """The bytes of what a strategy receives, row by row: genotype, values, violations."""
    columns = np.column_stack([evaluations.genotypes, evaluations.values, evaluations.violations])
    return np.where(np.isnan(columns), np.nan, columns).astype("<f8").tobytes()
