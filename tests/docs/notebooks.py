"""The notebooks of docs/notebooks: run every cell, compare what is shown with what is kept, or write it again.

python tests/docs/notebooks.py [--check] [NOTEBOOK ...]

Cells run in this process and in one namespace; what the last line of a cell gives is shown as a notebook shows it, text and HTML.
"""

import argparse
import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def read(path: Path) -> dict[str, Any]:
    """A notebook's content."""
    return dict(json.loads(path.read_text(encoding="utf-8")))


def written(content: dict[str, Any]) -> str:
    """The same as the text of its file."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def run(content: dict[str, Any]) -> dict[str, Any]:
    """The notebook with what its cells show now, in an empty folder."""
    cells, namespace, count = list[dict[str, Any]](), dict[str, Any](), 0
    screen = patch.dict(os.environ, COLUMNS="120")  # pytest's workers have 80
    with screen, tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in content["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                outputs = list(shown("".join(cell["source"]), namespace, count))
                cell = {**cell, "execution_count": count, "outputs": outputs}
            cells.append(cell)
    return {**content, "cells": cells}


def shown(source: str, namespace: dict[str, Any], count: int) -> Iterator[dict[str, Any]]:
    """What a cell prints, and what its last line gives."""
    tree, last = ast.parse(source), None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), namespace)
        value = None if last is None else eval(compile(last, "cell", "eval"), namespace)
    if printed.getvalue():
        yield {"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(keepends=True)}
    if value is not None:
        forms = {"text/html": getattr(value, "_repr_html_", lambda: None)(), "text/plain": repr(value)}
        data = {kind: text.splitlines(keepends=True) for kind, text in forms.items() if text is not None}
        yield {"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"}


def texts(content: dict[str, Any]) -> list[list[str]]:
    """Of each code cell what is read: what was printed, and the HTML or the text of its last line.

    Jupyter's kernel sends what a cell prints in as many pieces as its clock makes of it; a reader sees one text.
    """
    found = []
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            data = [each["data"] for each in cell["outputs"] if "data" in each]
            printed = "".join("".join(each["text"]) for each in cell["outputs"] if each["output_type"] == "stream")
            given = ["".join(each.get("text/html", each["text/plain"])) for each in data]
            found.append([printed, *given] if printed else given)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run notebooks and compare, or write, what they show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("notebooks", nargs="*", type=Path, default=NOTEBOOKS)
    given = parser.parse_args(arguments)
    wrong = 0
    for path in given.notebooks:
        now = run(content := read(path))
        same = texts(now) == texts(content)
        wrong += not same
        if not given.check:
            path.write_text(written(now), encoding="utf-8")
        sys.stdout.write(f"{path}: {'as shown' if same else 'wrong' if given.check else 'written'}\n")
    return int(given.check and wrong > 0)


if __name__ == "__main__":
    sys.path.insert(0, os.fspath(ROOT))
    sys.exit(main())
