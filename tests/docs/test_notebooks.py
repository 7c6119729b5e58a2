"""The notebooks: what they keep is what their cells show, in this process and in the kernel that Jupyter runs; and they are small."""

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
READERS = ["algorithm", "board", "trained_models"]


def notebooks() -> ModuleType:
    """tests/docs/notebooks.py, which stands beside this file."""
    sys.path.insert(0, str(Path(__file__).parent))
    try:
        return importlib.import_module("notebooks")
    finally:
        sys.path.pop(0)


def named(path: Path) -> str:
    return path.stem


def test_there_is_one_for_each_reader() -> None:
    assert [path.stem for path in NOTEBOOKS] == READERS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=named)
def test_a_notebook_is_small_and_begins_with_the_answer(path: Path) -> None:
    content = notebooks().read(path)
    assert path.stat().st_size < 60_000
    assert path.read_text(encoding="utf-8") == notebooks().written(content)
    first = notebooks().texts(content)[0][0].splitlines()
    assert len(first) == 3
    assert first[0].startswith("Train ")
    assert first[1].startswith("On ")
    assert "one change" in first[2]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=named)
def test_what_is_kept_says_nothing_of_the_machine_and_is_no_error(path: Path) -> None:
    content = notebooks().read(path)
    outputs = [each for cell in content["cells"] for each in cell.get("outputs", [])]
    assert {each["output_type"] for each in outputs} <= {"stream", "execute_result"}
    assert {each.get("name", "stdout") for each in outputs} == {"stdout"}
    assert "/tmp" not in json.dumps(outputs)
    assert set(content["metadata"]) == {"kernelspec", "language_info"}


@pytest.mark.samples
@pytest.mark.parametrize("path", NOTEBOOKS, ids=named)
def test_cells_show_what_is_kept(path: Path) -> None:
    content = notebooks().read(path)
    assert notebooks().texts(notebooks().run(content)) == notebooks().texts(content)


def test_a_changed_output_is_seen(tmp_path: Path) -> None:
    cell: dict[str, Any] = {"cell_type": "code", "source": ["print(1)\n", "2"], "outputs": []}
    ran = notebooks().run({"cells": [cell]})
    assert notebooks().texts(ran) == [["1\n", "2"]]
    path = tmp_path / "a.ipynb"
    path.write_text(notebooks().written({"cells": [cell]}))
    assert notebooks().main(["--check", str(path)]) == 1
    assert notebooks().main([str(path)]) == 0
    assert notebooks().main(["--check", str(path)]) == 0


def test_what_a_kernel_sends_in_pieces_is_one_text() -> None:
    pieces = [{"output_type": "stream", "name": "stdout", "text": text} for text in ("one\n", ["two\n", "three\n"])]
    assert notebooks().texts({"cells": [{"cell_type": "code", "outputs": pieces}]}) == [["one\ntwo\nthree\n"]]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=named)
def test_jupyter_shows_what_is_kept(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")  # pytest's workers have 80
    nbclient = pytest.importorskip("nbclient", reason="needs the extra notebooks; .ci/run has it beside the site's")
    nbformat = importlib.import_module("nbformat")
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert notebooks().texts(book) == notebooks().texts(notebooks().read(path))
