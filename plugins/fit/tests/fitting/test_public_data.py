"""The figures of benchmarks/README.md on public data."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from objectives.loss_law.form import named_form
from objectives.loss_law.law import Law
from plas_fit.fitting.diagnostics import lack_of_fit, quality
from plas_fit.fitting.estimate import Fit, Method, fitted
from plas_fit.fitting.portability import predictions, stand_ins
from plas_fit.fitting.report import LINE, QUADRATIC, Predictor, baselines
from plas_fit.fitting.trained_models import Table, read_table
from plas_fit.fitting.validation import Errors, unseen, validated

NAMES = {
    "loss_validation": "loss", "num_experts": "n_experts", "k": "top_k", "d_model": "width", "num_blocks": "depth",
    "dense_parameter_count": "active_parameters", "total_parameter_count": "parameters",
}  # fmt: skip
ROWS = ["k=1", "router_type!=RL-R", "router_type!=Hash", "step=249000", "routing_frequency=0.5"]


def fit(table: Table, form: str, **fixed: float) -> Fit:
    """Least squares."""
    return fitted(form, named_form(form), table, Method(float("inf"), 8, 0, fixed))


@pytest.fixture
def routed(external_data: Path) -> Table:
    return read_table(external_data / "loss" / "deepmind_routing.csv", [f"{a}={b}" for a, b in NAMES.items()], ROWS)


def gemstones(folder: Path, tokens: int) -> Table:
    names = ["final_loss=loss", "params_active_precise=active_parameters"]
    table = read_table(folder / "loss" / "gemstones_hot.csv", names, [f"tokens>{tokens}e9", f"tokens<{tokens}.1e9"])
    count = table.numbers["active_parameters"] - 2 * 50_304 * table.feature("width")  # the table's includes embeddings
    return Table({**table.numbers, "active_parameters": count}, table.lines, table.notes, table.sources)


@pytest.mark.parametrize(
    ("tokens", "form", "r2", "width_out"),
    [
        (10, "parameters_power", 0.976, 0.0421), (10, "depth_width", 0.991, 0.0420), (10, "depth_width_product", 0.983, 0.0477),
        (100, "parameters_power", 0.992, 0.0330), (100, "depth_width", 0.997, 0.0274), (100, "depth_width_product", 0.994, 0.0428),
    ],
)  # fmt: skip
def test_gemstones(tokens: int, form: str, r2: float, width_out: float, external_data: Path) -> None:
    found = fit(gemstones(external_data, tokens), form)
    assert found.model.n == 22
    assert quality(found)["r2"] == pytest.approx(r2, abs=0.001)
    assert validated(found).levels["width"].rmse == pytest.approx(width_out, rel=0.01)


def test_gemstones_exponents_are_not_the_papers(external_data: Path) -> None:
    coefficients = fit(gemstones(external_data, 10), "depth_width").coefficients
    assert coefficients["alpha_l"] == pytest.approx(0.24, abs=0.01)
    assert coefficients["beta"] == pytest.approx(0.45, abs=0.01)
    assert coefficients["l_inf"] == pytest.approx(2.09, abs=0.01)


def test_routed_models_with_the_papers_form(routed: Table) -> None:
    found = fit(routed, "hw_codesign_no_kv", alpha_r=0.0)
    assert len(routed) == 60
    assert found.coefficients["alpha_rho"] == pytest.approx(0.105, abs=0.002)
    assert found.coefficients["beta_1"] == pytest.approx(0.48, abs=0.01)
    assert found.coefficients["kappa_d"] == pytest.approx(0.0, abs=1e-6)
    shape = lack_of_fit(found)
    assert shape is not None
    assert shape.f == pytest.approx(13.5, rel=0.02)
    few = routed.feature("n_experts") <= 16
    assert fit(routed[few], "hw_codesign_no_kv", alpha_r=0.0).coefficients["alpha_rho"] == pytest.approx(
        0.076, abs=0.003
    )


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ("10", (0.971, 0.302, 0.948, 0.449, 0.078)),
        ("100", (0.940, 0.403, 1.196, 0.397, 0.119)),
        ("routed", (0.936, 0.600, 1.224, 0.221, 0.122)),
    ],
)
def test_the_papers_law_carries_in_ranks_only(
    which: str, expected: tuple[float, ...], law: Law, routed: Table, external_data: Path
) -> None:
    table = routed if which == "routed" else gemstones(external_data, int(which))
    predicted = predictions(law, table, stand_ins(law, table) or {})
    line, error = np.polynomial.Polynomial.fit(predicted, table.loss, 1).convert(), predicted - table.loss
    rmses = [float(np.sqrt((off**2).mean())) for off in (error, error - error.mean(), line(predicted) - table.loss)]
    assert (spearmanr(predicted, table.loss).statistic, line.coef[1], *rmses) == pytest.approx(expected, abs=0.001)


@pytest.mark.parametrize(
    ("form", "fixed", "rmse"),
    [("active_power", {}, 0.0158), ("bilinear_moe", {}, 0.0327), ("hw_codesign_no_kv", {"alpha_r": 0.0}, 0.0307)],
)
def test_routed_models_of_an_unseen_size(form: str, fixed: dict[str, Any], rmse: float, routed: Table) -> None:
    found = fit(routed, form, **fixed)
    predicted = unseen(found, np.unique(routed.feature("active_parameters"), return_inverse=True)[1])
    error = predicted - routed.loss
    known = Errors(float(np.sqrt((error**2).mean())), float(error.mean()), len(error))
    assert known.rmse == pytest.approx(rmse, rel=0.02)


@pytest.mark.parametrize(
    ("name", "own", "line", "quadratic"),
    [
        ("gemstones", (0.0415, 0.0778), (0.0522, 0.0499), (0.0110, 0.0155)),
        ("farseer", (0.0052, 0.0138), (0.0122, 0.0090), (0.0013, 0.0033)),
        ("morph", (0.0262, 0.0431), (0.1032, 0.2239), (0.0117, 0.0384)),
    ],
)
def test_where_chinchilla_loses_to_simple_baselines(
    name: str, own: tuple[float, float], line: tuple[float, float], quadratic: tuple[float, float], external_data: Path
) -> None:
    found = fitted(
        "chinchilla", named_form("chinchilla"), read_table(external_data / "evidence" / f"{name}.csv"), Method()
    )
    known = baselines(found, validated(found), None)
    for predictor, expected in (("chinchilla", own), (LINE, line), (QUADRATIC, quadratic)):
        row = known.predictors[predictor]
        assert isinstance(row, Predictor)
        assert row.largest is not None
        assert (row.folds.rmse, row.largest.rmse) == pytest.approx(expected, abs=0.0002)
        lost = {each.rows[:2] for each in known.better if each.baseline == predictor}
        shown = {rows for rows, i in (("10", 0), ("th", 1)) if expected[i] < 0.9 * own[i]}
        assert lost == (shown if (name, predictor) != ("morph", QUADRATIC) else {"10"})
