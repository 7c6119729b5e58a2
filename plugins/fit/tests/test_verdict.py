"""The verdict before a fit's report: what it calls settled, what not, and that it says why."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.search.assembly import assemble
from nas.study.catalogue import load_law
from objectives.loss_law.law import Law
from plas_fit.command import next_lines
from plas_fit.fit_document import fit_document
from plas_fit.request import FitRequest
from plas_fit.verdict import better_form, prior_verdict, verdict

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


def data(**changes: Any) -> dict[str, Any]:
    """What is said of a table without doubts."""
    return dict.fromkeys(("sweep", "mixture", "unit", "tokens", "replicates")) | {"rows": 80, "designs": 80} | changes


def content(**changes: Any) -> dict[str, Any]:
    """What a verdict looks at, of a fit without doubts."""
    pick = {"same": 0.95, "regret_high": 0.001}
    given: dict[str, Any] = {
        "form": "a",
        "data": data(),
        "determined": dict.fromkeys("xyz", True),
        "forms": {"a": {"weight": 0.97}, "b": {"weight": 0.03}, "c": "tokens: expected a column"},
        "baselines": {"predictors": {"a": {}, "straight line": {}}, "better": []},
        "lack_of_fit": {"rejected": False, "p_value": 0.4, "visible": 0.006},
        "frontier": frontier([pick, pick]),
        "quality": {"residual_sd": 0.01},
        "validation": {"folds": {"rmse": 0.012}},
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
    assert "fit again with --form b" in "\n".join(verdict(other))


def test_without_a_doubt_the_picks_can_be_relied_on() -> None:
    summary, action, first, *_ = verdict(content())
    assert summary == (
        "a fits 80 rows and is off by 0.012 nats (RMSE) on rows that it has not seen. Its picks can be relied on in the fitted range."
    )
    assert action.startswith("Next: train the models that --next 12 proposes, which makes standard errors 0.80 of what")
    assert "all 3 are determined" in first


@pytest.mark.parametrize(
    ("changes", "doubt", "why"),
    [
        ({"data": data(unit="may be bits")}, "the losses may be in another unit", "may be bits"),
        ({"data": data(designs=5)}, "too few rows", "leave 2 to judge errors by"),
        ({"data": data(sweep="looks like a sweep")}, "the rows are a sweep", "looks like a sweep"),
        ({"data": data(mixture="residuals differ by dataset")}, "the rows are of several kinds", "differ by dataset"),
        ({"data": data(tokens="tokens vary")}, "the rows differ in tokens", "tokens vary"),
        ({"determined": {"x": True, "y": False}}, "1 of 2 coefficients are not determined", "determined x; not determined y"),
        ({"forms": {"a": {"weight": 0.6}, "b": {"weight": 0.4}}}, "several forms fit as well", "BIC does not decide (weights a 0.60, b 0.40)"),
        ({"forms": {"a": {"weight": 0.0}, "b": {"weight": 1.0}}}, "another form fits better", "Next: fit again with --form b."),
        ({"baselines": {"predictors": {"a": {}}, "better": [BETTER]}}, "a simple rule is better", "a loses to the straight line on 10 random folds by 0.015 ± 0.004 nats (RMSE 0.041 nats against 0.026 nats)"),
        ({"lack_of_fit": {"rejected": True, "p_value": 1e-4}}, "the errors are systematic", "wrong somewhere"),
        ({"lack_of_fit": None}, "too few rows to test the form", "too few rows"),
        ({"frontier": frontier([{"same": 0.3, "regret_high": 0.05}])}, "too few rows to say which design is best", "30% to 30%"),
        ({"frontier": frontier([{"same": 1.0, "regret_high": 0.0}], outside={"depth": 0.4})}, "40% of the frontier lie outside the fitted range", "40% of the frontier lie outside"),
        ({"frontier": frontier([{"same": 1.0, "regret_high": 0.0}], outside={"depth": 0.99})}, "99% of the frontier lie outside the fitted range", "99% of the frontier lie outside the fitted range. All samples extrapolate there"),
        ({"frontier": frontier([{"same": 1.0, "regret_high": 0.0}], alike=True)}, "this form can give one answer only", "the law's samples cannot disagree: each orders all designs of paper space alike, since this form can give no other answer; their agreement is no evidence"),
    ],
)  # fmt: skip
def test_every_doubt_is_named_with_its_reason(changes: dict[str, Any], doubt: str, why: str) -> None:
    said = verdict(content(**changes))
    assert said[0].endswith(f"on rows that it has not seen. Do not rely on its picks yet: {doubt}.")
    assert any(why in line for line in said[1:])


def on_prior(**changes: Any) -> dict[str, Any]:
    """What the verdict on own rows looks at."""
    given: dict[str, Any] = {
        "prior": "evidence",
        "data": {"rows": 5, "unit": None},
        "rows": {"line": [2, 3, 4, 5, 6], "surprise": [0.1] * 5, "observed": [3.3, 3.1, 2.9, 3.0, 2.7], "prior": [3.0] * 5},
        "residual_sd": {"prior": 0.009, "posterior": 0.008},
        "differences": {"prior": 0.3, "posterior": 0.1, "further": {"4": 0.08}},
        "expected_regret": {"prior": 0.008, "posterior": 0.006},
        "frontier": frontier([{"same": 0.95, "regret_high": 0.001}]),
    }  # fmt: skip
    return given | changes


def test_own_rows_that_narrow_the_prior_make_picks_that_can_be_relied_on() -> None:
    said = prior_verdict(on_prior())
    assert said[0].endswith("Its picks can be relied on in the fitted range.")
    assert "Differences: your rows narrow the intervals to 33% of what published data give." in said[2]
    assert "A pick is on average 0.006 nats worse than the best design (0.008 without your rows)." in said[2]


def test_own_rows_that_widen_the_prior_are_a_doubt() -> None:
    said = prior_verdict(on_prior(differences={"prior": 0.3, "posterior": 0.9, "further": {"4": 0.8}}))
    assert "Do not rely on its picks yet: with your rows the law is less certain than without." in said[0]


@pytest.mark.parametrize(
    ("loss", "surprise", "action"),
    [(7.93, 58.0, "Next: leave out what has diverged: --where 'loss<6'."), (3.4, 5.0, "Next: train 4 more"), (1.0, -90.0, "Next: train 4 more")],
)  # fmt: skip
def test_a_row_that_probably_diverged_comes_with_the_flag_that_leaves_it_out(
    loss: float, surprise: float, action: str
) -> None:
    rows = {"line": [2, 3, 4, 5, 6], "surprise": [0.1, surprise, 0, 0, 0], "observed": [3.3, loss, 2.9, 3.0, 2.7], "prior": [3.0] * 5}  # fmt: skip
    said = prior_verdict(on_prior(rows=rows))
    assert said[1].startswith(action)
    assert f"Surprise: line 3 (loss {loss:.4g}) by {surprise:+.3g} standard deviations off" in said[2]


@pytest.mark.slow
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
    assert "the law's samples cannot disagree" in said
    assert "since this form, which sees active_parameters alone, can give no other answer" in said
    for certain in ("of the law's samples agree", "samples that agree", "mean regret", "Jaccard", "0 nats now"):
        assert certain not in said, certain
    answer = inside(
        "run", "--law", law, "--algo", "random", "--evaluations", 40, "--verbose", "--out", tmp_path / "run"
    )
    assert answer.code == 0, answer.err
    assert "No probability of being optimal: each of the law's" in " ".join(answer.out.split())


@pytest.mark.slow
def test_twelve_rows_for_ten_coefficients_deserve_a_warning(table: Table, inside: Callable[..., Any]) -> None:
    answer = inside("fit", table(12, 0.01), "--bootstraps", 40, "--starts", 4, "--quiet")
    assert answer.code == 0, answer.err
    said = " ".join(answer.out.split())
    assert "Do not rely on its picks yet: too few rows;" in said.partition("Next: ")[0]
    assert "Next: train 8 more designs at least" in said
    assert "Rows: 12 designs for 10 coefficients leave 2 to judge errors by" in said
    assert "--next 10 proposes, which makes standard errors 0." in said


@pytest.mark.slow
def test_the_verdict_leads_the_json_and_the_draws_hold_the_forms(
    table: Table, inside: Callable[..., Any], tmp_path: Path
) -> None:
    law = tmp_path / "law.yaml"
    rows = table(40, 0.03)  # of 24 some draws are left out, which no training supports
    answer = inside("fit", rows, "--bootstraps", 100, "--starts", 4, "--quiet", "--json", "--out", law)
    found = json.loads(answer.out)
    assert list(found)[:3] == ["kind", "version", "verdict"]
    assert fit_document(found).sections[0].title == "Verdict"
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
