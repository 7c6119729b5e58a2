"""Files as people have them: encodings, separators, decimal commas, trackers' columns; what is unclear is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest

from objectives.fitting.trained_models import read_table

Csv = Callable[[str], Path]
TEXT = "depth,width,n_kv_heads,expert_size,loss\n8,1024,4,2048,3.21\n16,1536,4,3072,3.05\n"
EUROPEAN = TEXT.replace(",", ";").replace(".", ",")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT, ""),
        (TEXT.replace(",", ";"), "cells are separated by semicolons"),
        (TEXT.replace(",", "\t"), "cells are separated by tabs"),
        (EUROPEAN, "decimal commas are read, such as '3,21'"),
        (EUROPEAN.replace(";", "\t"), "cells are separated by tabs"),
        (TEXT.replace("3.21", '"3,21"').replace("3.05", '"3,05"'), "decimal commas are read"),
        (TEXT.replace("1024", '"1,024"').replace("1536", '"1,536"'), "commas between thousands are left out"),
        (TEXT.replace("1024", "1 024").replace("1536", "1'536"), "width: 1 024 is read as 1024"),
        (EUROPEAN.replace("1024", "1.024"), "decimal commas are read, such as '3,21'"),
        ("# Table 3, all runs\n" + TEXT, "line 1 is a title: # Table 3, all runs"),
        (TEXT.replace("depth", "#layers"), "column #layers is read as depth"),
    ],
)
def test_the_same_numbers_in_any_dress(text: str, said: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes(text.encode(encoding))
    table = read_table(path)
    assert table.loss.tolist() == [3.21, 3.05]
    assert table.feature("width").tolist() == [1024, 1536]
    assert said in " ".join(table.notes)
    assert ("the file is UTF-16" in table.notes) == encoding.startswith("utf-16")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT.replace("3.21", "3,21"), "runs.csv:2: expected 5 cells, got 6; correct the row (numbers with decimal"),
        (TEXT + "8,1024,4\n8,1024,4,1024,3,\n", "runs.csv:4: expected 5 cells, got 3, wrong in 2 rows (lines 4, 5); correct the row (numbers"),
        (TEXT.replace(",", ";").replace("3.21", "3,21"), "runs.csv:2: loss: expected decimal points or decimal commas in one file, got '3,21' beside '3.05' (column loss, line 3)"),
        ("parameters;loss\n1.024;3,21\n2.048;3,1\n", "runs.csv:2: parameters: expected numbers that can be read in one way, got '1.024' beside '3,21', 1024 or 1.024"),
        ("tokens;loss\n10.000M;3,21\n", "tokens: expected numbers that can be read in one way, got '10.000M' beside '3,21'"),
        ("parameters;loss\n1,024;3,210\n2,048;3,100\n", "expected numbers that can be read in one way, got '1,024', 1024 or 1.024"),
        ("depth;x,loss\n1;2,3\n1;2,4\n", "expected one separator, got rows that commas and semicolons split equally"),
        ("parameters,eval/loss,val_loss\n1e8,3,3\n2e8,2,2\n", "expected one column of held-out losses, got eval/loss, val_loss"),
        ("parameters,metrics.loss,metrics.eval_loss\n1e8,3,3\n2e8,2,2\n", "choose with --rename metrics.loss=loss"),
        ("params.width,config.width,loss\n1,1,3\n2,2,2\n", "expected each column once, got width twice (params.width, config.width)"),
        ("parameters,train/loss\n1e8,3\n2e8,2\n", "expected a column loss, got parameters, train/loss"),
    ],
)  # fmt: skip
def test_what_can_be_read_in_two_ways_is_refused(text: str, said: str, csv: Csv) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        read_table(csv(text))
    assert said in str(caught.value)


def test_an_encoding_with_the_digits_of_ascii_is_read_and_said(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes(
        TEXT.replace("depth", "Größe €,depth").replace("\n8", "\nä,8").replace("\n16", "\né,16").encode("cp1252")
    )
    table = read_table(path)
    assert table.loss.tolist() == [3.21, 3.05]
    assert "the file is not UTF-8, and read as Windows-1252, in which digits are the same" in table.notes


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes(b"PK\x03\x04\xff" + TEXT.encode())
    with pytest.raises(ValueError, match="expected a table as text, got bytes of something else"):
        read_table(path)


def test_mlflow_columns(csv: Csv) -> None:
    text = "Run ID,status,params.depth,params.model.hidden_size,params.num_key_value_heads,params.intermediate_size,metrics.eval_loss\n"
    table = read_table(
        csv(text + "a1,FINISHED,8,1024,4,2048,3.2\nb2,FAILED,8,512,4,2048,\nc3,FINISHED,16,1024,4,2048,3.1\n")
    )
    assert table.loss.tolist() == [3.2, 3.1]
    assert table.feature("depth").tolist() == [8, 16]
    assert table.lines.tolist() == [2, 4]
