"""A fit row by row and as a formula: what is written down gives the fit's predictions again."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from objectives.loss_law.form import named_form
from plas_fit.fitting.estimate import Fit, Method, fitted
from plas_fit.fitting.report import formulas, row_by_row
from plas_fit.fitting.trained_models import read_table
from plas_fit.fitting.validation import validated

FORMS = {"hw_codesign_log_kv": {}, "depth_width": {"beta": 0.0}, "bilinear_moe": {}}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty models with names, whose parameters and experts vary too."""
    generator = np.random.default_rng(3)
    columns: dict[str, Any] = {
        "depth": generator.choice([4, 8, 16, 32], 60),
        "width": generator.choice([512, 1024, 2048], 60),
        "kv_dim": generator.choice([64, 128, 512], 60),
        "activation_rate": generator.choice([0.125, 0.25, 1.0], 60),
        "ffn_ratio": generator.choice([1.0, 2.0, 4.0], 60),
        "active_parameters": generator.uniform(1e7, 1e9, 60),
        "n_experts": generator.choice([1, 4, 8], 60),
    }
    columns["loss"] = 2.5 + 9 / columns["depth"] ** 1.2 + 300 / columns["width"] + generator.normal(0, 0.01, 60)
    written = tmp_path_factory.mktemp("table") / "runs.csv"
    rows = zip([f"m {i}" for i in range(60)], *columns.values(), strict=True)
    written.write_text("\n".join([f"name,{','.join(columns)}", *(",".join(map(str, row)) for row in rows)]))
    return written


@pytest.fixture(params=FORMS)
def fit(request: pytest.FixtureRequest, path: Path) -> Fit:
    name = request.param
    return fitted(name, named_form(name), read_table(path), Method(starts=1, fixed=FORMS[name]))


@pytest.mark.parametrize("which", ["raw", "reference"])
def test_a_written_formula_predicts_what_the_fit_predicts(which: str, fit: Fit) -> None:
    side, _, formula = formulas(fit)[which].partition(" = ")
    names = {name: fit.table.feature(name) for name in fit.model.form.features if fit.table.has(name)}
    written = formula.replace("·", "*").replace("−", "-").replace("^", "**").replace("ln(", "log(")
    found = eval(written, {"log": np.log}, names)
    expected = fit.model.predict(fit.vector[None])[0]
    assert side == ("ln loss" if fit.model.form.of == "log_loss" else "loss")
    np.testing.assert_allclose(np.log(found) if fit.model.logarithmic else found, expected, rtol=0.01)


def test_rows_add_up_and_are_left_out_in_their_turn(fit: Fit) -> None:
    checked = validated(fit)
    rows = row_by_row(fit, checked)
    total = np.sum(list(rows["terms"].values()), axis=0)
    loss = np.exp(total) if fit.model.form.of == "log_loss" else total
    np.testing.assert_allclose(rows["predicted"], loss, rtol=1e-9)
    assert rows["name"] == [f"m {i}" for i in range(60)]
    error = np.array(rows["unseen"]) - rows["observed"]
    assert np.sqrt((error**2).mean()) == pytest.approx(checked.folds.rmse)
    assert set(rows["factors"]) >= {"depth", "width"}


def test_names_follow_their_rows_through_conditions(path: Path) -> None:
    table = read_table(path, where=["depth>8"])
    every = read_table(path)
    assert table.names is not None
    assert every.names is not None
    assert table.names.tolist() == every.names[every.feature("depth") > 8].tolist()
    assert every[np.array([5, 3])].names.tolist() == ["m 5", "m 3"]  # type: ignore[union-attr]
