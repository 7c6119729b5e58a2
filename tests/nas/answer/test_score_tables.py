"""Scores of tasks beside losses: explain, select and the page show them, a study without them is as before."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.answer.outcome import Outcome
from nas.answer.score_tables import NOT_TOLD, design_table, in_numbers, score_columns, scored, step_table
from nas.answer.sureness import OUTSIDE
from nas.files import yaml_source
from nas.pages.run_page import run_page
from nas.search.assembly import Study
from nas.strategies.conformance.laws import AXES
from objectives.scores import FamilyCurve, Scores

TINY = {"name": "tiny", "axes": AXES}


def scores_of(sd: float = 0.01, **changed: Any) -> dict[str, Any]:
    """Two families: one that falls steeply about 1.6 bits per byte, one that hardly changes."""
    steep = [(level, 4.0, sd) for level in np.linspace(-0.3, 0.3, 16).tolist()]
    flat = [(level, 0.05, sd) for level in np.linspace(-0.3, 0.3, 16).tolist()]
    made = Scores(
        name="made", centre=1.6, fitted_on=(1.0, 1.62), models=12, laboratories=["a", "b"], new_laboratory=True,
        families={
            "steep": FamilyCurve(tasks=["t"], chance=0.25, models=12, draws=steep),
            "flat": FamilyCurve(tasks=["u"], models=12, draws=flat),
        },
    )  # fmt: skip
    return {**made.mapping(), **changed}


def named(folder: Path, **changed: Any) -> str:
    (folder / "scores.yaml").write_text(yaml_source.dump(scores_of(**changed)))
    return "scores.yaml"


def test_a_study_without_scores_has_none_and_records_none(studied: Callable[..., Study]) -> None:
    study = studied(algo="random")
    assert study.scores is None
    assert "scores" not in study.resolved()
    assert scored(study, study.problem.architectures(study.problem.space.genotypes(np.arange(2))), ()) is None


def test_a_study_embeds_its_scores_and_reads_them_again(studied: Callable[..., Study]) -> None:
    study = studied(algo="random", scores=scores_of())
    again = studied(algo="random", scores=study.resolved()["scores"])
    assert study.scores == again.scores != None  # noqa: E711


def test_designs_are_compared_where_a_score_tells_them_apart(studied: Callable[..., Study]) -> None:
    study = studied(algo="random", scores=scores_of())
    designs = study.problem.architectures(study.problem.space.genotypes(np.arange(study.problem.space.size)))
    found = scored(study, designs, study.baselines)
    assert found is not None
    bits, losses = found.found.bits[: len(designs)], study.problem.assess(designs)["loss"]
    assert bits == pytest.approx(losses / losses[0] * bits[0])
    shown = design_table(found, [""] * len(designs))
    cells = [row[3] for row in shown.rows]
    assert all(cell == NOT_TOLD for cell in cells[1::2])  # the flat family
    assert any(cell.startswith("-") for cell in cells[::2])
    best = int(np.argmin(bits))
    columns = score_columns(found)
    assert columns["score_steep"][best] == columns["score_steep"].max()
    assert columns["score_steep_step"][best] == 0
    assert columns["score_steep_step"].max() >= 1
    assert columns["score_flat_step"].max() == 0
    assert (columns["score_steep_low"] < columns["score_steep"]).all()
    written = in_numbers(found, best)
    assert written["families"]["flat"]["from"] == {study.baselines[0].label: None}
    assert written["extrapolated"] == bool(found.found.outside[best])


def test_steps_and_sentences_say_what_they_rest_on(studied: Callable[..., Study]) -> None:
    study = studied(algo="random", scores=scores_of())
    designs = study.problem.architectures(study.problem.space.genotypes(np.arange(study.problem.space.size)))
    found = scored(study, designs, ())
    assert found is not None
    shown = step_table(found)
    assert [row for row in shown.rows if row[0] == "flat"] == [("flat", "0", str(len(designs)), *shown.rows[-1][3:])]
    said = " ".join(shown.notes)
    for sentence in (
        NOT_TOLD,
        "outside of the table's 1.000 to 1.620: extrapolated",
        "2 laboratories hardly tell how much laboratories differ",
        "of a text that it does not name",
        "does not state its tokenizer",
        "does not say how sure its losses are",
    ):
        assert sentence in said


def test_noise_that_is_larger_than_any_difference_mutes_all(studied: Callable[..., Study]) -> None:
    for study in (studied(scores=scores_of(sd=0.5)), studied(scores=scores_of(), residual_sd=1.5)):
        designs = study.problem.architectures(study.problem.space.genotypes(np.arange(study.problem.space.size)))
        found = scored(study, designs, study.baselines)
        assert found is not None
        assert {row[3] for row in design_table(found, [""] * len(designs)).rows} <= {NOT_TOLD, OUTSIDE}
        assert score_columns(found)["score_steep_step"].max() == 0


def test_of_designs_outside_of_a_laws_evidence_no_difference_is_claimed(studied: Callable[..., Study]) -> None:
    study = studied(law="evidence", scores=scores_of())
    designs = study.problem.architectures(study.problem.space.genotypes(np.arange(study.problem.space.size)))
    found = scored(study, designs, study.baselines)
    assert found is not None
    outside = study.problem.scenario.law.extrapolates(designs)
    assert outside.any()
    rows = design_table(found, [""] * len(designs)).rows[::2]
    assert all(row[3] == OUTSIDE for row, out in zip(rows, outside.tolist(), strict=True) if out)
    assert (score_columns(found)["score_steep_step"][outside] == -1).all()


def test_the_page_of_a_run_shows_picks_and_steps(concluded: Callable[..., Outcome]) -> None:
    page, before = (
        run_page(outcome, "run", outcome.study.resolved(), {})
        for outcome in (concluded(40, scores=scores_of()), concluded(40))
    )
    for text in ("Predicted scores, by 12 models of 2 laboratories (made)", "Steps of the frontier", NOT_TOLD):
        assert text in page
        assert text not in before


def test_explain_and_select_take_scores_for_any_run(copied: Path, inside: Callable[..., Any], tmp_path: Path) -> None:
    file = named(tmp_path)
    explained = inside("explain", copied, "--set", f"scores={file}")
    assert "Predicted scores, by 12 models of 2 laboratories (made)" in explained.out
    assert json.loads(inside("explain", copied, "--set", f"scores={file}", "--json").out)["scores"]["table"] == "made"
    chosen = inside("select", copied, "--scores", file, "--out", "chosen.csv")
    assert "within a step" in chosen.out
    rows = list(csv.DictReader((tmp_path / "chosen.csv").open()))
    assert {"bits_per_byte", "score_steep", "score_steep_low", "score_steep_high", "score_steep_step"} <= rows[0].keys()
    one = inside("select", copied, "--select", "best", "--scores", file)
    assert "from Qwen2.5-0.5B" in one.out
    assert inside("report", copied, "--scores", file, "--out", "page.html").code == 0
    assert "Steps of the frontier" in (tmp_path / "page.html").read_text()
    plain = inside("select", copied)
    assert "Predicted scores" not in plain.out
    assert inside("select", copied, "--scores", file).out.startswith(plain.out)


@pytest.mark.parametrize("given", ["missing.yaml", "broken.yaml"])
def test_scores_that_cannot_be_read_are_refused(
    given: str, copied: Path, inside: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "broken.yaml").write_text("name: x\n")
    for command in ("explain", "select", "report"):
        found = inside(command, copied, "--scores", given)
        assert found.code == 2
        assert "expected" in found.err


def test_a_continuation_keeps_the_scores_of_its_run(inside: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(yaml_source.dump({"space": TINY, "algo": "random", "scores": scores_of()}))
    assert inside("run", "--config", "study.yaml", "--evaluations", "8", "--out", "run", "--quiet").code == 0
    assert inside("run", "--resume", "run", "--evaluations", "12", "--quiet").code == 0
    assert "Predicted scores" in inside("select", "run").out
    other = inside("run", "--resume", "run", "--set", f"scores={named(tmp_path, name='other')}", "--quiet")
    assert (other.code, "answer.scores.name" in other.err) == (2, True)
