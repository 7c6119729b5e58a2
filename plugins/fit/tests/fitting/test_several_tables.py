"""Several tables of trained models as one, rows that ended in no loss, and tokens that no form explains."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from objectives.loss_law.form import named_form
from plas_fit.fitting.report import unseen_tokens
from plas_fit.fitting.several_tables import read_tables
from plas_fit.fitting.trained_models import Table, read_table

HEAD = "depth,width,n_kv_heads,n_experts,top_k,expert_size,tokens,seed,status,reason,loss\n"
ONE = (
    HEAD + "4,768,1,1,1,384,1e6,0,ok,,4.5\n8,768,1,1,1,384,1e6,0,diverged,not finite,\n8,1024,1,1,1,384,1e6,0,ok,,4.2\n"
)
TWO = HEAD + "4,768,1,1,1,384,4e6,0,ok,,4.1\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Path]]:
    """Files of given texts in folders a, b …, named as relative paths."""
    monkeypatch.chdir(tmp_path)

    def write(*texts: str) -> list[Path]:
        paths = [Path(name) / "trainings.csv" for name in "abcdef"[: len(texts)]]
        for path, text in zip(paths, texts, strict=True):
            path.parent.mkdir()
            path.write_text(text, encoding="utf-8")
        return paths

    return write


def test_rows_of_all_tables_are_fitted_and_each_tells_its_file(files: Callable[..., list[Path]]) -> None:
    table = read_tables(files(ONE, TWO))
    assert table.loss.tolist() == [4.5, 4.2, 4.1]
    assert table.lines.tolist() == ["a/trainings.csv:2", "a/trainings.csv:4", "b/trainings.csv:2"]
    assert [(source.name, source.rows) for source in table.sources] == [("a/trainings.csv", 2), ("b/trainings.csv", 1)]
    assert len({source.sha256 for source in table.sources}) == 2
    assert "a/trainings.csv: 1 rows left out by status diverged (lines 3)" in table.notes
    assert "tokens is not constant: 1e+06 to 4e+06" in table.notes
    assert len(np.unique(table.design)) == 3


def test_one_table_is_read_as_before(files: Callable[..., list[Path]]) -> None:
    paths = files(ONE)
    assert read_tables(paths).notes == read_table(paths[0]).notes
    assert read_tables(paths).lines.tolist() == [2, 4]


def test_a_quantity_under_two_names_is_one_and_what_a_table_lacks_is_said(files: Callable[..., list[Path]]) -> None:
    other = "depth,width,n_kv_heads,n_experts,top_k,expert_ffn_ratio,loss\n4,768,1,1,1,0.5,4.0\n"
    table = read_tables(files(ONE, other))
    assert table.feature("expert_ffn_ratio").tolist() == [0.5, 0.375, 0.5]
    assert "tokens is not used: b/trainings.csv has no such column" in table.notes
    assert not table.has("tokens")


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ((ONE, ONE), "b/trainings.csv: expected tables that differ, got the rows of a/trainings.csv again"),
        (
            (ONE, TWO.replace("seed", "weight").replace(",0,ok", ",1,ok")),
            "weight: expected it in every table or in none",
        ),
        ((TWO,), "a/trainings.csv: expected a row per trained model, got one"),
        ((TWO, TWO.replace("768", "1024")), "loss: expected values that vary, got 4.1 in every row"),
        ((ONE, HEAD + "4,768,1,1,1,384,1e6,0,ok,,x\n"), "b/trainings.csv:2: loss: expected a number, got 'x'"),
    ],
)
def test_tables_that_do_not_go_together_are_a_clear_line(
    texts: tuple[str, ...], said: str, files: Callable[..., list[Path]]
) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        read_tables(files(*texts))


def test_one_candidate_on_two_counts_of_tokens_is_two_trainings(csv: Callable[[str], Path]) -> None:
    """A table of ours names candidates by id: equal ids are no checkpoints of one run, as a tracker's would be."""
    rows = "next-0,4,768,1,1,1,384,{tokens},0,ok,,{loss}\n"
    text = "id," + HEAD + rows.format(tokens="1e6", loss=4.5) + rows.format(tokens="4e6", loss=4.1)
    assert len(read_table(csv(text))) == 2
    with pytest.raises(ValueError, match="expected a row per trained model, got one"):
        read_table(csv(text.replace(",ok,", ",finished,")))


def test_every_row_that_is_not_ok_is_left_out(csv: Callable[[str], Path]) -> None:
    table = read_table(csv(ONE.replace("diverged", "out of memory")))
    assert len(table) == 2
    assert table.notes[0] == "1 rows left out by status out of memory (lines 3)"


def test_tokens_that_vary_under_a_form_without_them_are_a_doubt(simulated: Callable[..., Table]) -> None:
    table, form = simulated(12, 0.01, 0), named_form("hw_codesign_log_kv")

    def said(tokens: list[float], name: str = "") -> str | None:
        with_tokens = Table({**table.numbers, "tokens": np.array(tokens)}, table.lines)
        return unseen_tokens(with_tokens, named_form(name) if name else form)

    assert unseen_tokens(table, form) is None
    assert said([1e6] * 12) is None
    assert said([1e6] * 11 + [1.05e6]) is None
    two = said([1e6] * 5 + [4e6] * 7)
    assert two is not None
    assert two.startswith("tokens vary, 1e+06 to 4e+06, and this form has no term for them")
    assert "--where tokens=4000000 keeps 7 of 12 rows" in two
    assert "chinchilla" in two
    assert "--where" not in (said(np.geomspace(1e6, 1e7, 12).tolist()) or "--where")
    assert said([1e6] * 5 + [4e6] * 7, "chinchilla") is None
