"""What a law's file says of the rows that it is fitted to."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from objectives.loss_law.form import named_form
from objectives.loss_law.law import Law
from plas_fit.fitting.estimate import Method, fitted
from plas_fit.fitting.intervals import intervals
from plas_fit.fitting.law_file import law_of
from plas_fit.fitting.trained_models import NO_EXPERTS, read_table
from search_spaces.architectures import Architectures

Csv = Callable[[str], Path]
DESIGNS = Architectures.from_columns(
    {"depth": [8, 8], "width": [512, 512], "n_heads": [8, 8], "head_dim": [64, 64], "n_kv_heads": [8, 8]}
    | {"n_experts": [1, 16], "top_k": [1, 1], "expert_ffn_ratio": [4.0, 0.25]}
)


def rows(columns: str, cells: Callable[[float], str]) -> str:
    """Ten models of the law 400 N^-0.34 + 1.7 with a little noise."""
    noise = np.random.default_rng(0).normal(0, 0.01, 10)
    sizes = np.geomspace(1e6, 1e9, 10)
    losses = 400 * sizes**-0.34 + 1.7 + noise
    return "\n".join([f"{columns},loss", *(f"{cells(n)},{loss}" for n, loss in zip(sizes, losses, strict=True)), ""])


def law_from(path: Path) -> tuple[Law, tuple[str, ...]]:
    table = read_table(path)
    fit = fitted("parameters_power", named_form("parameters_power"), table, Method(None, 4, 0, {}))
    known = intervals(fit, 20, np.random.default_rng(0))
    return law_of(fit, known, "mine", "parameters_power", None, {}, None), table.notes


@pytest.mark.parametrize(
    ("columns", "cells"),
    [
        ("parameters", lambda n: f"{n:.0f}"),
        ("parameters,n_experts", lambda n: f"{n:.0f},1"),
        ("parameters,active_parameters", lambda n: f"{n:.0f},{n:.0f}"),
    ],
)
def test_dense_rows_are_no_evidence_on_experts(columns: str, cells: Callable[[float], str], csv: Csv) -> None:
    """Whether the form sees experts or not: the same size with experts is outside, and the table's notes say so."""
    law, notes = law_from(csv(rows(columns, cells)))
    assert law.extrapolates(DESIGNS).tolist() == [False, True]
    assert list(law.outside(DESIGNS)) == ["n_experts"]
    assert NO_EXPERTS in notes


def test_rows_with_experts_are(csv: Csv) -> None:
    law, notes = law_from(csv(rows("parameters,active_parameters", lambda n: f"{n:.0f},{n / 4:.0f}")))
    assert "n_experts" not in law.outside(DESIGNS[[1]])
    assert "n_experts" in law.outside(DESIGNS[[0]])  # every row has experts
    assert NO_EXPERTS not in notes
