"""The study of tokens to parity: its page shows what its command prints, and the answer uses what it found."""

import csv
from pathlib import Path

import pytest

from nas.answer.take import OTHER_DATA
from objectives.published_models import trained_models
from studies.parity.__main__ import HERE, SDS, main, rows

PAGE = (Path(__file__).resolve().parents[2] / "studies/parity/results.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_shows_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    tables = capsys.readouterr().out.split("\n\n")
    assert len(tables) == 2
    for table in tables:
        assert table.strip() in PAGE


def test_the_answer_takes_an_sd_between_those_of_the_two_texts() -> None:
    of_texts = [float(line.split("|")[4]) for line in PAGE.splitlines() if line.startswith(("| mean", "| wiki"))][-2:]
    assert min(of_texts) <= OTHER_DATA <= max(of_texts) < SDS[-1]


def test_losses_of_one_table_are_of_one_text_and_of_models_trained_from_scratch() -> None:
    found = list(rows())
    assert len({row.family for row in found}) >= 9
    for row in found:
        assert row.text in row.table
        assert 0.5 < row.nats < 4.0
        assert 1e11 < row.tokens < 1e14


def test_bytes_per_token_are_those_that_ship() -> None:
    with (HERE / "tokenizers.csv").open(encoding="utf-8", newline="") as file:
        counted = {row["model"]: float(row["bytes_per_token"]) for row in csv.DictReader(file)}
    shipped = {each.name: each.bytes_per_token for each in trained_models() if each.bytes_per_token is not None}
    assert shipped
    assert shipped == {name: counted[name] for name in shipped}
