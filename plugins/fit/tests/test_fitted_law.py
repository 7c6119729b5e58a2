"""A law fitted from Python is the law that the command fits."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import nas
from nas.files import yaml_source
from nas.study.catalogue import load_law
from search_spaces.space import SearchSpace


@pytest.fixture
def runs(tmp_path: Path) -> pd.DataFrame:
    """Forty models of the paper's law with noise."""
    study = nas.load_study()
    space: SearchSpace = study.problem.space
    shapes = space.architectures(space.sample(40, np.random.default_rng(0)))
    loss = load_law("hw_codesign").loss(shapes) + np.random.default_rng(1).normal(0, 0.01, 40)
    return pd.DataFrame({**shapes.columns(), "loss": loss})


@pytest.mark.slow
def test_a_table_and_a_file_give_one_law(runs: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    runs.to_csv(path, index=False)
    ours, theirs = (nas.fit_law(given, bootstraps=20, tokens=10e9) for given in (runs, path))
    assert ours.law.coefficients == theirs.law.coefficients
    assert set(ours.coefficients.index) == set(ours.law.coefficients)
    ours.save(tmp_path / "law.yaml")
    assert yaml_source.read(tmp_path / "law.yaml")[0]["coefficients"] == ours.law.coefficients
    study = nas.load_study(law=ours)
    assert study.problem.scenario.law.coefficients == ours.law.coefficients
    assert str(ours).splitlines()[0] == "Verdict"
    assert "<table" in ours._repr_html_()
    with pytest.raises(nas.UsageError, match="expected a new file"):
        ours.save(tmp_path / "law.yaml")


@pytest.mark.slow
def test_a_law_predicts_designs_and_columns_of_its_quantities(runs: pd.DataFrame) -> None:
    fitted = nas.fit_law(runs, tokens=10e9, bootstraps=0)
    assert fitted.predict(runs) == pytest.approx(runs.loss, abs=0.05)
    assert fitted.predict("qwen2.5_0.5b") == nas.load_study(law=fitted).evaluate("qwen2.5_0.5b").loss.to_numpy()
    sizes = pd.DataFrame({"parameters": np.geomspace(1e8, 3e9, 18), "tokens": [1e9, 4e9, 2e10] * 6})
    sizes["loss"] = 1.7 + 400 / sizes.parameters**0.34 + 410 / sizes.tokens**0.28
    assert nas.fit_law(sizes, "chinchilla", bootstraps=0).predict(sizes) == pytest.approx(sizes.loss)
    with pytest.raises(nas.UsageError, match="'vocab_size'; did you mean vocabulary"):
        fitted.predict(runs.assign(vocab_size=1))


@pytest.mark.slow
def test_a_fit_says_what_to_train_next_and_shows_its_formula_with_a_unit(runs: pd.DataFrame) -> None:
    fitted = nas.fit_law(runs, tokens=10e9, bootstraps=20, next=3, flops=1e22)
    assert fitted.next.id.tolist() == ["next-0", "next-1", "next-2"]
    assert fitted.next.training_flops.sum() <= 1e22
    assert nas.load_study(law=fitted).evaluate(fitted.next).loss.notna().all()
    shown = fitted._repr_html_()
    assert shown.startswith("<p>loss = kappa_l")
    assert "in nats per token" in shown
    assert " … " in shown
    with pytest.raises(nas.UsageError, match=r"next: expected a fit with proposals, got none; give fit_law"):
        nas.fit_law(runs, tokens=10e9, bootstraps=0).next  # noqa: B018
    for wrong in ({"next": 0}, {"next": 2.5}, {"next": 2, "flops": "much"}, {"candidates": "next.csv"}):
        with pytest.raises(nas.UsageError, match="expected"):
            nas.fit_law(runs, **wrong)  # type: ignore[arg-type]


@pytest.mark.slow
def test_options_are_those_of_the_command(runs: pd.DataFrame) -> None:
    held = nas.fit_law(
        runs.rename(columns={"loss": "final"}), rename={"final": "loss"}, fix={"alpha_l": 1.63}, bootstraps=0
    )
    assert held.law.coefficients["alpha_l"] == 1.63
    with pytest.raises(nas.UsageError, match="form: expected a form"):
        nas.fit_law(runs, "hw_codesing")


def test_an_option_without_effect_is_refused_by_its_name(runs: pd.DataFrame) -> None:
    for option, value in {"goal": "nonsense", "max_params": "abc", "flops": 1e20}.items():
        with pytest.raises(nas.UsageError, match=f"^{option}: expected next with it, got none"):
            nas.fit_law(runs, **{option: value})
