"""The verdict before a fit's report: what it calls settled, what not, and that it says why."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nas.fit.text import terminal

from nas.fit.command import next_lines
from nas.fit.request import FitRequest
from nas.fit.verdict import better_form, verdict
from nas.search.assembly import assemble
from nas.study.catalogue import load_law
from objectives.loss_law.law import Law

SHAPE = ("depth", "width", "n_kv_heads", "n_experts", "top_k", "expert_size")
BETTER = {
    "baseline": "straight line", "rows": "10 random folds", "fit_rmse": 0.041, "rmse": 0.026, "excess": 0.015, "excess_error": 0.004,
}  # fmt: skip
Table = Callable[..., Path]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """`(n, sd)`: n random models of the paper's space with losses of the paper's law."""
    study = assemble({}, {})
    space, law = study.problem.space, study.problem.scenario.law

    def write(n: int, sd: float) -> Path:
        generator = np.random.default_rng(1)
        a = space.architectures(space.genotypes(generator.choice(space.size, n, replace=False)))
        loss = law.loss(a) + generator.normal(0, sd, n)
        path = tmp_path_factory.mktemp("runs") / "runs.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*SHAPE, "loss"])
            writer.writerows(zip(*(getattr(a, name).tolist() for name in SHAPE), loss.tolist(), strict=True))
        return path

    return write


def frontier(picks: list[dict[str, float]], **changes: Any) -> dict[str, Any]:
    """What a study's frontier is like under the draws."""
    return {"study": "paper space", "picks": picks, "outside": {}, "alike": False, "sees": ["width", "depth"]} | changes


def content(**changes: Any) -> dict[str, Any]:
    """What a verdict looks at, of a fit without doubts."""
    pick = {"same": 0.95, "regret_high": 0.001}
    given: dict[str, Any] = {
        "form": "a",
        "data": {"sweep": None, "mixture": None, "unit": None, "tokens": None, "designs": 80, "replicates": None},
        "determined": dict.fromkeys("xyz", True),
        "forms": {"a": {"weight": 0.97}, "b": {"weight": 0.03}, "c": "tokens: expected a column"},
        "baselines": {"predictors": {"a": {}, "straight line": {}}, "better": []},
        "lack_of_fit": {"rejected": False, "p_value": 0.4, "visible": 0.006},
        "frontier": frontier([pick, pick]),
        "quality": {"residual_sd": 0.01},
        "next_shrink": {"models": 12, "shrink": 0.8},
    }
    return given | changes


def test_another_form_is_what_to_type_next_where_bic_speaks_for_it() -> None:
    plain, other = content(), content(forms={"a": {"weight": 0.01}, "b": {"weight": 0.99}, "c": "not fitted"})
    assert (better_form(plain), better_form(other), better_form({"form": "prior"})) == (None, "b", None)
    request, law = FitRequest(out=Path("law.yaml")), load_law("hw_codesign")
    search = "plas run --algo exact --law law.yaml --preset device"
    assert next_lines(request, law, plain) == [f"Next: {search}"]
    assert next_lines(request, law, other) == [
        "Next: the same again with --form b, for which BIC speaks",
        f"      {search}",
    ]
    assert "fit with --form b" in "\n".join(verdict(other, "runs.csv"))


def test_no_doubt_is_said_as_such() -> None:
    said = verdict(content(), "runs.csv")
    assert said[0] == "Usable for picks inside the fitted range."
    assert "all 3 are determined" in said[1]
    assert "next: 12 models of --next 12 make standard errors 0.80 of what they are" in said[-1]


@pytest.mark.parametrize(
    ("changes", "doubt", "why"),
    [
        ({"data": {"tokens": None, "sweep": None, "mixture": None, "unit": "may be bits", "designs": 80, "replicates": None}}, "the unit of the losses", "may be bits"),
        ({"data": {"tokens": None, "sweep": None, "mixture": None, "unit": None, "designs": 5, "replicates": None}}, "few rows", "leave 2 to judge errors by"),
        ({"data": {"tokens": None, "sweep": "looks like a sweep", "mixture": None, "unit": None, "designs": 80, "replicates": None}}, "which runs of a sweep to fit", "looks like a sweep"),
        ({"data": {"tokens": None, "sweep": None, "mixture": "residuals differ by dataset", "unit": None, "designs": 80, "replicates": None}}, "rows of several kinds", "differ by dataset"),
        ({"determined": {"x": True, "y": False}}, "coefficients", "determined x; not determined y"),
        ({"forms": {"a": {"weight": 0.6}, "b": {"weight": 0.4}}}, "the form", "not distinguished by BIC (weights a 0.60, b 0.40)"),
        ({"forms": {"a": {"weight": 0.0}, "b": {"weight": 1.0}}}, "the form", "fit with --form b"),
        ({"baselines": {"predictors": {"a": {}}, "better": [BETTER]}}, "the form against simple baselines", "a loses to the straight line on 10 random folds by 0.015 ± 0.004 nats (RMSE 0.041 nats against 0.026 nats)"),
        ({"lack_of_fit": {"rejected": True, "p_value": 1e-4}}, "the shape of the residuals", "wrong somewhere"),
        ({"lack_of_fit": None}, "the shape of the residuals", "too few rows"),
        ({"frontier": frontier([{"same": 0.3, "regret_high": 0.05}])}, "the picks", "30% to 30%"),
        ({"frontier": frontier([{"same": 1.0, "regret_high": 0.0}], outside={"depth": 0.4})}, "the picks", "40% of the frontier lie outside"),
        ({"frontier": frontier([{"same": 1.0, "regret_high": 0.0}], outside={"depth": 0.99})}, "the picks", "99% of the frontier lie outside the fitted range, where all draws extrapolate"),
        ({"frontier": frontier([{"same": 1.0, "regret_high": 0.0}], alike=True)}, "the picks", "the draws cannot disagree: each orders all designs of paper space alike, since this form can give no other answer; their agreement is no evidence"),
    ],
)  # fmt: skip
def test_every_doubt_is_named_with_its_reason(changes: dict[str, Any], doubt: str, why: str) -> None:
    said = verdict(content(**changes), "runs.csv")
    assert said[0] == f"Not settled by these rows: {doubt}."
    assert any(why in line for line in said[1:])


def test_agreement_of_draws_that_cannot_disagree_is_no_certainty(tmp_path: Path, inside: Callable[..., Any]) -> None:
    generator = np.random.default_rng(3)
    parameters = np.geomspace(1e7, 1e10, 30)
    path = tmp_path / "runs.csv"
    losses = 1.8 + 480 / parameters**0.35 + generator.normal(0, 0.01, 30)
    path.write_text(
        "parameters,loss\n"
        + "".join(f"{n!r},{loss!r}\n" for n, loss in zip(parameters.tolist(), losses.tolist(), strict=True))
    )
    quick = ("fit", path, "--form", "parameters_power", "--bootstraps", 40, "--starts", 4, "--next", 6, "--quiet")
    law = tmp_path / "law.yaml"
    answer = inside(*quick, "--tokens", "10e9", "--out", law)
    assert answer.code == 0, answer.err
    said = " ".join(answer.out.split())
    assert "the draws cannot disagree" in said
    assert "since this form, which sees active_parameters alone, can give no other answer" in said
    assert "expected regret not said, as this form can give no other answer" in said
    for certain in ("of the draws agree", "same in draws", "mean regret", "Jaccard", "0 nats now"):
        assert certain not in said, certain
    answer = inside(*quick, "--tokens", "10e9", "--stop-below", "1e-4")
    assert answer.code == 2
    assert "stop_below: expected an expected drop of regret per FLOP, got none" in answer.err
    answer = inside("run", "--law", law, "--algo", "random", "--evaluations", 40, "--out", tmp_path / "run")
    assert answer.code == 0, answer.err
    assert "No probability of being optimal: each of the law's" in " ".join(answer.out.split())
    assert "Regret of the picks" not in answer.out


@pytest.mark.slow
def test_twelve_rows_for_ten_coefficients_deserve_a_warning(table: Table, inside: Callable[..., Any]) -> None:
    answer = inside("fit", table(12, 0.01), "--bootstraps", 40, "--starts", 4, "--quiet")
    assert answer.code == 0, answer.err
    assert answer.out.startswith("Verdict\n  Not settled by these rows: few rows, ")
    assert "rows: 12 designs for 10 coefficients leave 2 to judge errors by" in answer.out
    assert "--next 10 make standard errors 0." in answer.out


@pytest.mark.slow
def test_the_verdict_leads_the_json_and_the_draws_hold_the_forms(
    table: Table, inside: Callable[..., Any], tmp_path: Path
) -> None:
    law = tmp_path / "law.yaml"
    answer = inside("fit", table(24, 0.03), "--bootstraps", 100, "--starts", 4, "--quiet", "--json", "--out", law)
    found = json.loads(answer.out)
    assert list(found)[:3] == ["kind", "version", "verdict"]
    assert terminal(found)[0] == "Verdict"
    weights = {name: row["weight"] for name, row in found["forms"].items() if not isinstance(row, str)}
    assert sum(weights.values()) == pytest.approx(1.0)
    assert (
        min(found["forms"][name]["bic"] for name in weights)
        == found["forms"][max(weights, key=weights.__getitem__)]["bic"]
    )
    read = assemble({"law": str(law)}, {}).problem.scenario.law
    assert isinstance(read, Law)
    assert read.rivals
    for rival in read.rivals:
        assert len(rival.draws) == round(100 * weights[str(rival.form)])
    assert len(read.drawn) == 100
    for command in (
        ("run", "--algo", "random", "--evaluations", 50, "--out", tmp_path / "run"),
        ("explain", "--model", "qwen2.5-0.5b"),
    ):
        answer = inside(*command, "--law", law, "--quiet") if command[0] == "run" else inside(*command, "--law", law)
        assert answer.code == 0, answer.err
    assert "probability_optimal" in (tmp_path / "run" / "frontier.csv").read_text().splitlines()[0]
    answer = inside("select", tmp_path / "run", "--select", "best")
    assert answer.code == 0, answer.err
