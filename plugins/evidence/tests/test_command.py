"""`evidence`: the base, a table of the user's, a published file, and what is refused."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core_tests import loaded
from plas_evidence.tables import base, sources

from nas.files.yaml_source import dump
from nas.study.study_laws import records
from objectives.plugins import documents

Inside = Callable[..., Any]
MORPH = documents("objectives.evidence.sources")["morph"].with_suffix(".csv")
BROKEN = loaded("nas/commands/test_broken_laws.py").BROKEN


def test_the_base_is_asked_without_a_table(inside: Inside) -> None:
    answer = inside("evidence", "--question", "active", "--json")
    assert answer.code == 0
    found = json.loads(answer.out)
    assert {table["name"] for table in found["tables"]} == {s.name for s in sources().values() if s.packaged}
    said = found["record"]["active"]
    assert said["sparsity_iso"]["order"] > said["deeper"]["order"]
    routing = next(table for table in found["tables"] if table["name"] == "Routing")["questions"]["active"]
    assert routing["pairs"] == 18
    assert routing["by"]["sparsity_iso"]["order"] == 1


def test_memory_compares_equal_stored_parameters_with_other_experts(inside: Inside) -> None:
    """Tables of the base decide it; hw_codesign and evidence are among those judged, and the rule to beat is named."""
    tables = json.loads(inside("evidence", "--question", "memory", "--json").out)["tables"]
    asked = {table["name"]: table["questions"]["memory"] for table in tables if "memory" in table["questions"]}
    decided = {name for name, each in asked.items() if each["decides"]}
    assert decided >= {"Routing", "nanoMoE", "In miniature"}
    assert all(asked[name]["by"][law]["pairs"] > 0 for name in decided for law in ("hw_codesign", "evidence"))
    shown = inside("evidence", "--question", "memory").out
    assert "Strongest rule without a law: more active parameters, 100.0 %." in shown


def test_the_base_leads_with_laboratories_left_out_beside_the_strongest_rule(inside: Inside) -> None:
    answer = inside("evidence")
    assert answer.code == 0, answer.err
    header, size = answer.out.splitlines()[1:3]
    assert "evidence, left out" in header
    assert "strongest rule" in header
    assert size.split()[2] == records()["size"]["evidence"].in_short
    assert "more active parameters" in size
    assert "*: fitted to some of these tables, so no test of it" in answer.out


def test_the_shipped_records_are_those_of_the_command_but_for_evidence_which_is_left_out(inside: Inside) -> None:
    """One set of tables and one convention in `list laws`, records.yaml and `plas evidence`."""
    found = json.loads(inside("evidence", "--json").out)["record"]
    assert list(found) == list(records())
    for question, by in found.items():
        for name, mean in by.items():
            stored = records()[question][name]
            assert (mean["tables"], mean["mute"]) == (stored.tables, stored.mute)
            assert name == "evidence" or (mean["order"], mean["priced"]) == pytest.approx(
                (stored.order, stored.priced), abs=1e-4
            )


def test_a_table_of_ones_own_and_a_law_of_ones_own(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_bytes(MORPH.read_bytes())
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nform: {terms: {deep: {scale: a, powers: {depth: -b}}}}\ncoefficients: {a: 10.0, b: 0.2}\ntokens: 1.0e+9\n"
    )
    answer = inside("evidence", "own.csv", "--law", "mine.yaml")
    assert answer.code == 0, answer.err
    assert "76 models in 1 tables" in answer.out
    assert "  mine " in answer.out
    assert "No table decides active" in answer.out
    assert "left out" not in answer.out.splitlines()[1]


def test_a_law_fitted_on_a_prior_judges_rows_that_it_has_not_seen(
    inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tests.made_up_prior", loaded("made_up_prior.py"))
    fit = loaded("../plugins/fit/tests/test_on_prior.py")
    (tmp_path / "others.yaml").write_text(dump(fit.LAW.mapping()))
    rows = fit.rows_of(30)
    fit.written(tmp_path / "own.csv", rows[:8])
    others = [{**row, "tokens": 2e10} for row in rows[8:]]
    fit.written(tmp_path / "more.csv", fit.with_losses(others, fit.truth_of(0), np.random.default_rng(1)))
    answer = inside("fit", "own.csv", "--prior", "others.yaml", "--out", "mine.yaml", "--quiet")
    assert answer.code == 0, answer.err
    answer = inside("evidence", "more.csv", "--law", "mine.yaml", "--json")
    assert answer.code == 0, answer.err
    of_size = json.loads(answer.out)["record"]["size"]["mine"]
    assert of_size["priced"] == 1.0
    assert of_size["order"] > 0.9


def test_a_published_file_in_its_convention(inside: Inside, tmp_path: Path) -> None:
    rows = [f"{n},{1e9 * t:.0f},{3 + 1 / n + 1 / t:.4f}" for n in (100, 200, 400) for t in (1, 2, 4)]
    (tmp_path / "runs.csv").write_text("params,tokens,loss\n" + "\n".join(rows) + "\n")
    answer = inside("evidence", "--published", "misfitting=runs.csv", "--json")
    assert answer.code == 0, answer.err
    (table,) = json.loads(answer.out)["tables"]
    assert (table["name"], table["models"]) == ("Misfitting", 9)
    assert table["questions"]["size"]["pairs"] == 9
    assert table["questions"]["tokens"]["by"]["chinchilla"]["order"] == 1


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("--question", "shapes"), "question: expected a question"),
        (("--published", "nowhere=runs.csv"), "published: expected NAME=FILE of a source"),
        (("--published", "morph=none.csv"), "none.csv"),
        (("none.csv",), "none.csv"),
        (("--law", "no_such_law"), "law"),
    ],
)
def test_what_cannot_be_read_is_one_line(inside: Inside, typed: tuple[str, ...], said: str) -> None:
    answer = inside("evidence", *typed)
    assert answer.code == 2
    assert said in answer.err
    assert "Traceback" not in answer.err


def test_losses_of_an_unknown_unit_and_tables_outside_are_fitted_by_nothing() -> None:
    for each in base():
        no_evidence = bool(each.outside) or each.unit == "as published"
        assert not (no_evidence and each.trainings.fitted.any()), each.name
    assert {each.name for each in base() if each.no_evidence} >= {"Upcycled", "Sparse query attention"}


def test_an_empty_cell_of_any_column_is_refused(inside: Inside, tmp_path: Path) -> None:
    table = tmp_path / "own.csv"
    table.write_text("parameters,tokens,loss\n1e8,1e10,3.2\n2e8,,3.1\n3e8,1e10,3.0\n")
    answer = inside("evidence", table)
    assert answer.code == 2
    assert "own.csv:3: tokens: expected a number, got ''" in answer.err


@pytest.mark.parametrize("content", BROKEN)
def test_a_broken_law_is_one_line(content: str, inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(content)
    (tmp_path / "own.csv").write_bytes(MORPH.read_bytes())
    answer = inside("evidence", "own.csv", "--law", "own.yaml")
    assert answer.code == 2
    (said,) = answer.err.splitlines()
    assert BROKEN[content] in said


def test_the_shipped_law_marks_the_tables_that_it_is_of(inside: Inside) -> None:
    tables = json.loads(inside("evidence", "--question", "shape", "--json").out)["tables"]
    assert all(
        "evidence" in table["questions"]["shape"]["fitted_to_it"] for table in tables if table["name"] == "Morph"
    )
    shown = inside("evidence", "--question", "shape").out
    assert "*: fitted to this table" in shown
    assert "50/80/90 % hold" in shown
