"""Evaluations as columns: what counts as feasible."""

from collections.abc import Callable

import numpy as np

from nas.problem.evaluations import Evaluations


def test_a_failed_row_is_never_feasible_budgets_or_not(rows_of: Callable[..., Evaluations]) -> None:
    metrics = {"loss": [3.0, 3.0, np.nan], "total_ms": [5.0, 5.0, np.nan]}
    reasons = ["", "user:fn: nan", "user:fn: nan"]
    for budgets in (None, {"total_ms": 10}):
        assert rows_of(metrics, budgets=budgets, reasons=reasons).feasible.tolist() == [True, False, False]
