"""`evidence`: the base, a table of the user's, a published file, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.evidence.tables import base, sources
from objectives.plugins import documents

Inside = Callable[..., Any]
MORPH = documents("objectives.evidence.sources")["morph"].with_suffix(".csv")


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


def test_sources_are_listed_with_their_licences(inside: Inside) -> None:
    rows = json.loads(inside("list", "evidence", "--json").out)
    by_name = {row["name"]: row for row in rows}
    assert by_name["morph"]["licence"] == "MIT"
    assert by_name["morph"]["models"] == 76
    assert by_name["chinchilla"]["models"] == 0
    assert all(row["source"][0]["bibtex"].startswith("@") for row in rows)


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
