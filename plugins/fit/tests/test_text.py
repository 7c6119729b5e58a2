"""The report of a fit: every figure has a unit, every column and coefficient is said in words."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.search.assembly import assemble
from objectives.loss_law.form import named_form
from objectives.plugins import importable
from plas_fit.fitting.report import meanings
from plas_fit.on_prior import COORDINATES
from plas_fit.page import fit_page

SHAPE = ("depth", "width", "n_kv_heads", "n_experts", "top_k", "expert_size")
RAW = re.compile(r"\b(n_kv_heads|n_experts|top_k|expert_ffn_ratio|folds_rmse|worst_level_rmse|predicted_loss|kv_dim)\b")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Sixty models of the paper's space with its law's losses and noise."""
    study = assemble({}, {})
    space, generator = study.problem.space, np.random.default_rng(1)
    a = space.architectures(space.genotypes(generator.choice(space.size, 60, replace=False)))
    loss = study.problem.scenario.law.loss(a) + generator.normal(0, 0.01, 60)
    rows = zip(*(getattr(a, name).tolist() for name in SHAPE), loss.tolist(), strict=True)
    lines = [",".join([*SHAPE, "loss"]), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "runs.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "runs.csv"


@pytest.mark.slow
def test_a_fit_says_its_quantities_columns_and_coefficients_in_words(inside: Callable[..., Any], runs: Path) -> None:
    flags = ("--starts", 4, "--bootstraps", 40, "--next", 2, "--quiet", "--report", "report")
    said = inside("fit", runs, *flags).out
    formula = next(line for line in said.splitlines() if line.lstrip().startswith("loss = "))
    assert not RAW.search(said.replace(formula, "").partition("chinchilla not fitted")[0])
    for header in (
        r"quantity +from +to +different values",
        r"coefficient +value +standard error +linear theory +bootstrap +what it is",
        r"R² +BIC +weight +RMSE, folds +above this fit's +RMSE, worst level",
        r"budget +samples that agree +mean regret \(nats\) +95 % below \(nats\) +architecture",
        r"line of the table +residual \(nats\)",
        r"id +seed +loss \(nats\) +purpose +architecture\n",
        r"\d+ layers, width [\d,]+, .* FFN ratio .* KV\)",
        r"Terms \(nats\)",
        r"Forms under the same validation \(errors in nats\)",
    ):
        assert re.search(header, said), header
    assert re.search(r"alpha_rho .*exponent of active share of experts$", said, flags=re.MULTILINE)
    assert re.search(r"kappa_rho .*size of the term sparsity \(nats\)$", said, flags=re.MULTILINE)
    content = json.loads(Path("report/report.json").read_text())
    assert {"folds_rmse", "worst_level_rmse"} <= set(content["forms"][content["form"]])  # names that programs read
    for each in content["coefficients"].values():
        del each["means"]  # as a report from before has it
    assert "what it is" in fit_page("a", content)


def test_every_coefficient_of_every_form_has_a_meaning() -> None:
    for name in importable("objectives.law_forms"):
        form = named_form(name)
        if form.fitted:
            assert set(meanings(form)) == set(form.coefficients), name


def test_every_coordinate_of_the_prior_says_its_unit() -> None:
    assert all(what.endswith((", nats", ", exponent", ", of 1", ", no unit")) for what, _ in COORDINATES.values())
