"""The one table reader: what is read, and what is refused with its line, its column and the line of pandas that mends it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from objectives.table import mended, numbers_or_empty, read_sheet, unfolded
from plas_fit.fitting.trained_models import read_table

TEXT = "depth,width,loss\n8,1024,3.21\n16,1536,3.05\n"


def written(folder: Path, text: str, name: str = "runs.csv") -> Path:
    """A table of the test's own."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_text_with_named_columns_is_read(encoding: str, ending: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes("\n name ,depth\né, 8\n\n,\nb,16\n".replace("\n", ending).encode(encoding))
    sheet = read_sheet(path)
    assert sheet.columns == {"name": ["é", "b"], "depth": ["8", "16"]}
    assert sheet.lines.tolist() == [3, 6]


def test_json_lines_are_rows(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '{"id": "a", "depth": 8, "config": {"lr": 1e-3, "model": {"tied": true}}}\n\n{"id": "b", "loss": null}\n',
        "x.jsonl",
    )
    sheet = read_sheet(path)
    assert sheet.rows == [
        {"id": "a", "depth": "8", "config.lr": "0.001", "config.model.tied": "True", "loss": ""},
        {"id": "b", "depth": "", "config.lr": "", "config.model.tied": "", "loss": ""},
    ]
    assert sheet.lines.tolist() == [1, 3]


@pytest.mark.parametrize("cell", ["3", "-3", "+3", "3.", ".5", "3.25", "1e9", "2.5E-3", "1e+09", repr(np.pi)])
def test_numbers_are_as_python_writes_them(cell: str) -> None:
    assert numbers_or_empty("x", [cell, ""], np.arange(2), Path("x.csv"))[0] == float(cell)


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["3,21", "3,05"], [3.21, 3.05]),
        (["1,024", "12,000"], [1024, 12000]),
        (["1,024,000.5"], [1024000.5]),
        (["1.024.000", "2.048.000,5"], [1024000, 2048000.5]),
        (["1 024", "12\u202f000", "1'024", "1_024"], [1024, 12000, 1024, 1024]),
        (["12M", "3.5M"], [12e6, 3.5e6]),
        (["1e3B"], [1e12]),
        (["3 billion", "1.5 billion"], [3e9, 1.5e9]),
        (["12.5%"], [0.125]),
        (["NaN", "3"], [np.nan, 3]),
        (["nan"], [np.nan]),
        (["n/a", "-", "inf", "wide"], [np.nan, np.nan, np.inf, np.nan]),
        (["0x10", "１２"], [np.nan, np.nan]),
    ],
)
def test_what_is_written_otherwise_is_refused_with_the_line_that_mends_it(
    cells: list[str], numbers: list[float], tmp_path: Path
) -> None:
    """The line is run, on all cells of the column, and gives the numbers that were meant."""
    df = pd.DataFrame({"x": cells, "y": 1})
    path = tmp_path / "runs.csv"
    df.to_csv(path, index=False)
    sheet = read_sheet(path)
    with pytest.raises(ValueError, match=r"runs.csv:2: x: expected a number or an empty cell, got ") as caught:
        numbers_or_empty("x", sheet.columns["x"], sheet.lines, path)
    line = str(caught.value).partition("; ")[2]
    assert line == mended("x", cells[0])
    code = line.partition(" (of decimals")[0].removeprefix("correct it, or ").partition(" empties")[0]
    exec(code, {"df": df, "pd": pd})
    assert df["x"].tolist() == pytest.approx(numbers, nan_ok=True)


def test_one_comma_before_three_digits_is_asked_about() -> None:
    assert mended("loss", "3,210") == (
        'df["loss"] = df["loss"].str.replace(",", "").astype(float) (of decimals df["loss"].str.replace(",", "."))'
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT.replace(",", ";"), 'runs.csv:1: expected cells separated by commas, got depth;width;loss; pd.read_csv("runs.csv", sep=";")'),
        (TEXT.replace(",", ";").replace(".", ","), 'pd.read_csv("runs.csv", sep=";", decimal=",").to_csv("mended.csv", index=False)'),
        (TEXT.replace(",", "\t"), r'pd.read_csv("runs.csv", sep="\t").to_csv("mended.csv", index=False)'),
        ("# Table 3\n" + TEXT, 'runs.csv:2: expected 1 cells, got 3, wrong in 3 rows (lines 2, 3, 4); line 1 is no header: pd.read_csv("runs.csv", skiprows=1)'),
        (TEXT.replace("3.21", "3,21"), "runs.csv:2: expected 3 cells, got 4; correct the row, with decimals written with points"),
        (TEXT + "8,1024\n8,1,1,\n", "runs.csv:4: expected 3 cells, got 2, wrong in 2 rows (lines 4, 5); correct the row"),
        ("a,b,a\n1,2,3\n", 'runs.csv:1: expected each column once, got a twice; df = df.drop(columns="a.1"), or rename one'),
        ("a,,b\n1,2,3\n", 'runs.csv:1: expected a name for column 2, got none; df = df.drop(columns="Unnamed: 1"), or name it'),
        (",a\nx,2\n", "runs.csv:1: expected a name for column 1, got none"),
        (",a\n0,2\n0,2\n", "runs.csv:1: expected a name for column 1, got none"),
        ('a,b\n"1,2\n', "expected CSV, got a quote that is never closed"),
        ('[{"a": 1}]', 'runs.csv: expected CSV, got JSON; pd.read_json("runs.csv").to_csv("mended.csv", index=False)'),
        ('{"a": 1}\n{"a": 2}\n', 'pd.read_json("runs.csv", lines=True).to_csv('),
        ("", "expected a header and a row per trained model, got 0 lines"),
    ],
)  # fmt: skip
def test_another_form_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        read_sheet(written(tmp_path, text), "trained model")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"a": 1, "a": 2}', "x.jsonl:2: expected a JSON object, got the key a twice; write one row per line"),
        ('{"a": {"b": 1}, "a.b": 2}', "got a.b twice"),
        ("[1]", "got [1]"),
        ('{"a": 1', "x.jsonl:2: expected a JSON object, got "),
        ('{"": 1}', "expected a name for column 2, got none"),
    ],
)
def test_other_json_lines_are_refused(line: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        read_sheet(written(tmp_path, f'{{"a": 1}}\n{line}\n', "x.jsonl"))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"PK\x03\x04\xff\0", 'pd.read_excel("runs.csv").to_csv("mended.csv", index=False)'),
        ("depth,größe\n1,2\n".encode("cp1252"), 'pd.read_csv("runs.csv", encoding="cp1252").to_csv('),
        ("city,depth\nłódź,2\n".encode("iso8859-2"), "with the encoding that it was saved in"),
        ("depth,größe\n1,2\n".encode("utf-16-le"), 'encoding="utf-16-le"'),
        ("depth,loss\n1,2\n".encode("utf-16-be"), 'encoding="utf-16-be"'),
        (b"\x81\x8d\x90", 'encoding="cp1252"'),
    ],
)
def test_no_encoding_is_guessed(data: bytes, line: str, tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_bytes(data)
    with pytest.raises(ValueError, match="expected UTF-8, got other bytes") as caught:
        read_sheet(tmp_path / "runs.csv")
    assert line in str(caught.value)


def test_the_row_numbers_that_pandas_saves_are_no_column(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    pd.DataFrame({"depth": [8, 16, 24], "loss": [3.2, 3.1, 3.0]}).iloc[::2].to_csv(path)
    assert read_sheet(path).columns == {"depth": ["8", "24"], "loss": ["3.2", "3.0"]}


CONFIG = [{"n_layer": 8, "n_embd": 512, "train": {"lr": 1e-3}}, {"n_layer": 16, "n_embd": 512, "train": {"lr": 1e-3}}]


def test_the_recipe_for_runs_of_weights_and_biases_is_read(tmp_path: Path) -> None:
    """Dicts in cells, beside the numbers of rows: the export that its documentation shows."""
    summary = [{"val_loss": 3.2, "_step": 9}, {"val_loss": 3.1, "_step": 9, "train_loss": float("nan")}]
    path = tmp_path / "project.csv"
    pd.DataFrame({"summary": summary, "config": CONFIG, "name": ["a", "b"]}).to_csv(path)
    sheet = unfolded(read_sheet(path))
    assert sheet.header == [
        *("run_name", "config.n_layer", "config.n_embd", "config.train.lr"),
        *("summary.val_loss", "summary._step", "summary.train_loss"),
    ]
    assert sheet.columns["summary.train_loss"] == ["", "nan"]
    table = read_table(path)
    assert table.loss.tolist() == [3.2, 3.1]
    assert table.feature("depth").tolist() == [8, 16]
    path.write_text("config,loss\n\"{'a': [}\",3.2\n")
    with pytest.raises(ValueError, match=r"project.csv:2: config: expected a dict of Python, got .*json_normalize"):
        read_table(path)


def test_the_page_of_weights_and_biases_is_read(tmp_path: Path) -> None:
    columns = '"Name","State","Notes","User","Tags","Created","Runtime","Sweep","n_layer","n_embd","seed","_step","eval/loss","train/loss"\n'
    rows = [
        '"a","finished","-","me","","2026-11-01T10:00:00.000Z","3600","","8","512","0","900","3.4","3.3"\n',
        '"b","crashed","-","me","","2026-11-01T11:00:00.000Z","20","","12","512","0","3","","9.1"\n',
        '"c","finished","-","me","","2026-11-01T12:00:00.000Z","3700","","16","512","0","900","3.2","3.1"\n',
        '"d","finished","-","me","","2026-11-01T13:00:00.000Z","3700","","20","512","0","900","NaN","NaN"\n',
    ]
    table = read_table(written(tmp_path, columns + "".join(rows), "wandb_export.csv"))
    assert table.loss.tolist() == [3.4, 3.2]
    assert table.names is not None
    assert table.names.tolist() == ["a", "c"]
    assert "1 rows left out by State crashed (lines 3)" in table.notes
    assert "1 rows of diverged runs (loss inf or nan) left out (lines 5)" in table.notes


def test_the_frame_of_mlflow_is_read(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "run_id": ["a1", "b2", "c3"],
            "experiment_id": "0",
            "status": ["FINISHED", "FAILED", "FINISHED"],
            "artifact_uri": "mlflow-artifacts:/0/a1/artifacts",
            "start_time": pd.to_datetime(["2026-11-01"] * 3, utc=True),
            "metrics.eval_loss": [3.2, np.nan, 3.1],
            "params.depth": ["8", "8", "16"],
            "params.model.hidden_size": ["512", "512", "512"],
            "tags.mlflow.runName": ["calm-fox", "odd-cat", "shy-owl"],
        }
    )
    path = tmp_path / "runs.csv"
    for index in (True, False):
        frame.to_csv(path, index=index)
        table = read_table(path)
        assert table.loss.tolist() == [3.2, 3.1]
        assert table.feature("depth").tolist() == [8, 16]
        assert table.lines.tolist() == [2, 4]
