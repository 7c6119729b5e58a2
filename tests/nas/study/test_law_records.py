"""Records of the shipped laws on other people's models, where they are said."""

import json

import pytest

from nas.answer.sentences import fit_lines
from nas.answer.under_laws import caveats
from nas.commands.list import show
from nas.study.catalogue import load_law
from nas.study.study_laws import (
    Record,
    record_line,
    records,
    records_line,
    records_of,
    rules,
    strongest,
    strongest_rules,
)


def test_list_laws_says_which_law_has_the_better_record(capsys: pytest.CaptureFixture[str]) -> None:
    show(["laws"], as_json=False)
    shown = capsys.readouterr().out.partition("Elsewhere")[2]
    lines = {line.split("  ")[1]: line.split() for line in shown.splitlines()[1:] if line.startswith("  ")}
    assert lines["hw_codesign"][1] == f"{records()['size']['hw_codesign'].in_short}"
    assert {"by", "sparsity_iso", *rules()} <= set(lines)
    assert f"{strongest_rules()['size']} (size" in shown
    assert "evidence: on each laboratory the law of the others" in shown


def test_a_record_says_the_share_of_pairs_that_a_law_prices() -> None:
    assert Record(0.61, 12, 3, 0.44).in_full == "61.0 (44)"
    assert Record(0.61, 12, 0, 1.0).in_full == "61.0"
    assert Record(0.5, 12, 12, 0.0).in_full == "-"


def test_the_strongest_rule_is_the_best_that_says_anything() -> None:
    by = {"mute": Record(0.5, 2, 2, 0.0), "worse": Record(0.4, 2, 0, 1.0), "best": Record(0.45, 2, 1, 0.5)}
    assert strongest(by) == "best"
    assert strongest({"mute": by["mute"]}) is None
    assert set(strongest_rules().values()) <= set(rules())


def test_the_record_is_in_the_json(capsys: pytest.CaptureFixture[str]) -> None:
    show(["laws"], as_json=True)
    row = next(row for row in json.loads(capsys.readouterr().out) if row["name"] == "sparsity_iso")
    own = records_of("sparsity_iso")
    assert [each["question"] for each in row["elsewhere"]] == list(own)
    assert [each["order"] for each in row["elsewhere"]] == [record.order for record in own.values()]


def test_a_law_of_ones_own_constants_has_no_record() -> None:
    law = load_law("hw_codesign")
    assert f"size {records()['size']['hw_codesign'].in_short}" in record_line(law)
    assert record_line(law.model_copy(update={"coefficients": {**law.coefficients, "l_inf": 1.0}})) == ""
    assert record_line(law.model_copy(update={"name": "mine"})) == ""
    assert records_line([law.model_copy(update={"name": "mine"})]) == []


def test_an_answer_under_rival_laws_says_their_records_and_a_rules() -> None:
    (said,) = records_line([load_law("hw_codesign"), load_law("sparsity_iso")])
    figures = {name: records()["active"][name].in_short for name in ("hw_codesign", "sparsity_iso")}
    assert all(f"{name} {records()['size'][name].in_short}, " in said for name in figures)
    best = ", ".join(
        records()[question][rule].in_short
        for question, rule in ((q, strongest_rules().get(q)) for q in ("size", "shape"))
        if rule is not None
    )
    assert f"the strongest rule without a law {best}, " in said
    assert said in caveats([load_law("hw_codesign"), load_law("sparsity_iso")])


def test_the_caveat_of_sparsity_iso_has_its_record_beside_it() -> None:
    (said,) = fit_lines(load_law("sparsity_iso"))
    assert "R² 0.68" in said
    assert f"active {records()['active']['sparsity_iso'].in_short}" in said


def test_every_record_is_a_share_over_tables_that_decide() -> None:
    assert rules() == ["more parameters", "more active parameters", "deeper", "wider"]
    for by in records().values():
        assert set(by) >= {"evidence", "hw_codesign", *rules()}
        assert all(0 <= record.mute <= record.tables and 0 <= record.order <= 1 for record in by.values())
        assert len({record.tables for record in by.values()}) == 1


def test_published_tables_are_listed_with_their_licences(capsys: pytest.CaptureFixture[str]) -> None:
    show(["evidence"], as_json=True)
    by_name = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert by_name["morph"]["licence"] == "MIT"
    assert by_name["morph"]["models"] == 76
    assert by_name["chinchilla"]["models"] == 0
    assert all(row["source"][0]["bibtex"].startswith("@") for row in by_name.values())
