"""Laboratories left out: whose law judges whom, how draws are widened, what the command prints, and what the shipped law covers."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("plas_evidence", reason="its tables are those of plugins/evidence, which is not installed")

from plas_evidence.judging import Doubt, Judgement, Pairs, TableRecord
from plas_evidence.tables import base

from nas.study.catalogue import load_law
from nas.terminal.tables import show
from objectives.loss_law.coverage import Region
from plas_fit.fitting.law_file import covered
from studies.evidence.__main__ import main
from studies.evidence.document import calibration, held_by_laboratory, left_out_document
from studies.evidence.left_out import FACTORS, HELD, LeftOut, calibrated, held, left_out
from studies.evidence.population import USUAL, with_usual

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def each_out() -> list[LeftOut]:
    """Three small tables, two of one laboratory, each laboratory left out."""
    return left_out([each for each in base() if each.name in ("Step Law", "OLMo ladder", "Farseer")], silent)


def silent(stage: str) -> None:
    """No progress."""


def test_a_laboratory_is_judged_by_the_law_of_the_others(each_out: list[LeftOut]) -> None:
    assert {one.laboratory for one in each_out} == {"StepFun", "Ai2"}
    for one in each_out:
        law = one.others.law(1.0)
        assert set(law.provenance["pooled"]) == (
            {"OLMo ladder"} if one.laboratory == "StepFun" else {"Step Law", "Farseer"}
        )
        assert law.runs == sum(int(each.trainings.fitted.sum()) for each in one.others.tables)
        assert all(of.laboratory == one.laboratory for found in one.pairs.values() for of, _ in found)


def test_draws_are_as_wide_as_the_laboratories_left_out_need(each_out: list[LeftOut]) -> None:
    widening = calibrated(each_out)
    enough, less = (
        [share for one in each_out if (share := held(one, factor)) is not None]
        for factor in (widening, widening - 0.05)
    )
    assert np.mean(enough) >= HELD or widening == FACTORS[-1]
    assert np.mean(less) < HELD or widening == FACTORS[0]


def record_of(laboratory: str, bins: tuple[tuple[int, int], ...], held: float, outside: float = 0.0) -> TableRecord:
    """A table of a laboratory on which `evidence` says something of 100 pairs, beside a rule that orders all."""
    doubt = Doubt(outside, {50: held, 80: held, 90: held}, 0.1, 0.0, None, bins)
    own = Judgement(100, 100, 0.9, (0.8, 1.0), 0.0, 1.0, 0.01, 0.0, True, doubt)
    rule = replace(own, order=1.0, slope=float("nan"), error=float("nan"), doubt=None)
    pairs = {"equal tokens": Pairs(np.zeros(100, dtype=np.int64), np.ones(100, dtype=np.int64))}
    source = replace(base()[0], name=f"of {laboratory}", laboratory=laboratory)
    return TableRecord(source, pairs, {"equal tokens": {"evidence": own, "more parameters": rule}})


def test_statements_are_right_as_often_as_they_say_over_pairs_and_over_laboratories() -> None:
    one, other = ((0, 0),) * 5 + ((90, 90),), ((4, 1),) + ((0, 0),) * 4 + ((10, 5),)
    records = [record_of("a", one, 0.9), record_of("a", one, 0.9), record_of("b", other, 0.9)]
    (first, *none, last) = calibration(records)
    assert first == ("50 to 60", 4, 25.0, 25.0)
    assert [(pairs, np.isnan(of_all), np.isnan(mean)) for _, pairs, of_all, mean in none] == [(0, True, True)] * 4
    assert last == ("95 to 100", 190, pytest.approx(100 * 185 / 190), 75.0)


def test_coverage_is_shown_by_laboratory_with_its_pairs_and_mean(capsys: pytest.CaptureFixture[str]) -> None:
    none = ((0, 0),) * 6
    records = [record_of("a", none, 1.0), record_of("a", none, 0.7, outside=0.5), record_of("b", none, 0.5)]
    assert held_by_laboratory(records, "equal tokens") == {"a": (pytest.approx(0.9), 150), "b": (0.5, 100)}
    show(left_out_document(records))
    shown = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert {"a 90 (150)", "b 50 (100)", "mean over laboratories 70"} <= set(lines)
    assert "probability % pairs right % right %, mean over laboratories" in lines
    assert "Order at most a point behind the best" in " ".join(lines)
    assert "its error of differences beside" in " ".join(lines)
    assert "behind the best rule without a law of the table: of a (10.0), of a (10.0), of b (10.0)" in " ".join(lines)


@pytest.mark.slow
def test_the_base_left_out_by_laboratory(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["evidence", "--json"])
    main()
    tables = {table["name"]: table for table in json.loads(capsys.readouterr().out)["tables"]}
    gemstones = tables["Gemstones"]["questions"]["equal tokens"]
    assert "evidence" not in gemstones["fitted_to_it"]
    assert gemstones["by"]["evidence"]["order"] > 0.94
    assert gemstones["by"]["evidence"]["doubt"]["sure_right"] >= 0.95
    routing = tables["Routing"]["questions"]
    assert routing["active"]["by"]["evidence"]["order"] == 1.0
    assert routing["experts"]["by"]["evidence"]["order"] > 0.95


def test_what_the_shipped_law_covers_is_computed_from_the_packaged_rows() -> None:
    law, tables = load_law("evidence"), [each.trainings for each in base()]
    rows = [each.table[np.flatnonzero(each.fitted)] for each in tables if each.fitted.any()]
    found = {kind: with_usual(region, kind) for kind, region in covered(rows).items()}
    assert {kind: region.model_dump() for kind, region in law.covers.items()} == {
        kind: Region.model_validate(region.model_dump()).model_dump() for kind, region in found.items()
    }
    assert all(set(region.usual) == set(USUAL) and len(region.rows) > 100 for region in found.values())
    assert f"{law.runs:,} published trainings pooled" in (ROOT / "README.md").read_text(encoding="utf-8")
