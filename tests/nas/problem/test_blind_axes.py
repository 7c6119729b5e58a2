"""Which axes a law does not see, and that every answer says so."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.answer.first_screen import show
from nas.answer.outcome import Outcome
from nas.answer.outcome_files import summary
from nas.files.yaml_source import dump
from nas.problem.law_caveats import blind_axes
from nas.problem.problem import Problem

ALL = ("depth", "width", "n_experts", "top_k", "ffn", "n_kv_heads")
DEPTH_WIDTH: dict[str, Any] = {
    "name": "seen from afar",
    "form": "depth_width",
    "coefficients": {"kappa_l": 9.96, "alpha_l": 1.63, "kappa_d": 500, "beta": 0.97, "l_inf": 2.53},
}


def law(shipped: Callable[..., dict[str, Any]], **changed: float) -> dict[str, Any]:
    """The paper's law with other coefficients."""
    content = shipped("objectives.laws", "hw_codesign")
    return {**content, "coefficients": {**content["coefficients"], **changed}}


def powers(**terms: dict[str, str]) -> dict[str, Any]:
    """A law of terms with coefficients of one, each a power of some quantities."""
    form = {name: {"scale": f"k_{name}", "powers": powers} for name, powers in terms.items()}
    needed = {f"k_{name}": 1.0 for name in terms} | {
        exponent.removeprefix("-"): 0.5 for powers in terms.values() for exponent in powers.values()
    }
    return {"name": "own", "form": {"terms": form}, "coefficients": needed}


@pytest.mark.parametrize(
    ("given", "blind"),
    [
        (DEPTH_WIDTH, ALL[2:]),
        (powers(p={"active_parameters": "-a"}), ()),
        (powers(d={"depth": "-a"}, e={"activation_rate": "b"}), ("width", "ffn", "n_kv_heads")),
        (powers(d={"depth": "-a"}, r={"ffn_ratio": "-b"}), ("width", "n_experts", "n_kv_heads")),
    ],
    ids=["depth and width", "active parameters", "rate", "ratio"],
)
def test_axes_that_a_form_leaves_out_are_named(
    given: dict[str, Any], blind: tuple[str, ...], problem_of: Callable[..., Problem]
) -> None:
    problem = problem_of(law=given, baselines=[])
    assert blind_axes(problem.space, problem.scenario.law) == blind


def test_a_coefficient_of_zero_blinds_as_well(
    shipped: Callable[..., dict[str, Any]], problem_of: Callable[..., Problem]
) -> None:
    seeing = problem_of(baselines=[])
    assert blind_axes(seeing.space, seeing.scenario.law) == ()
    problem = problem_of(law=law(shipped, kappa_m=0.0, kappa_rho=0.0), baselines=[])
    assert blind_axes(problem.space, problem.scenario.law) == ("n_experts", "n_kv_heads")


def test_an_axis_of_one_value_is_not_searched(tiny: dict[str, Any], problem_of: Callable[..., Problem]) -> None:
    tiny["axes"] |= {"n_experts": [1], "top_k": [1], "n_kv_heads": [2]}
    problem = problem_of(space=tiny, law=DEPTH_WIDTH, baselines=[])
    assert blind_axes(problem.space, problem.scenario.law) == ("ffn",)


def test_the_answer_says_it_and_reads_nothing_into_those_axes(
    concluded: Callable[..., Outcome], capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = concluded(None, algo="exact", law=DEPTH_WIDTH)
    show(outcome, Path("run"), verbose=True)
    said = capsys.readouterr().out
    line = "Law seen from afar does not see n_experts, top_k, ffn, n_kv_heads: the cheapest was taken."
    assert line in said
    show(outcome, Path("run"))
    assert line in " ".join(capsys.readouterr().out.split())
    reading = next(row for row in said.splitlines() if row.lstrip().startswith("Reading"))
    assert "sparse" not in reading
    assert "expert" not in reading
    assert "FFN" not in reading
    assert summary(outcome)["law_does_not_see"] == list(ALL[2:])


def test_a_dense_frontier_is_called_dense(
    tiny: dict[str, Any], concluded: Callable[..., Outcome], capsys: pytest.CaptureFixture[str]
) -> None:
    tiny["axes"] |= {"n_experts": [1], "top_k": [1]}
    show(concluded(None, algo="exact", space=tiny), Path("run"), verbose=True)
    said = capsys.readouterr().out
    assert "Reading: all of the frontier is dense; layers" in said
    assert "one expert" not in said


def test_select_and_explain_say_it_of_a_run(inside: Callable[..., Any], tiny: dict[str, Any]) -> None:

    Path("study.yaml").write_text(dump({"space": tiny, "law": DEPTH_WIDTH}))
    assert inside("run", "--algo", "exact", "--config", "study.yaml", "--out", "run", "--quiet").code == 0
    for line in (["select", "run"], ["select", "run", "--sweep", "total_ms=5:20:5"], ["explain", "run"]):
        assert "does not see n_experts, top_k, ffn, n_kv_heads" in inside(*line).out, line
