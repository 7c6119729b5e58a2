"""Files and modules that docstrings and pages name are there: what is moved or deleted is renamed where it is spoken of."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.sources import FILES, PACKAGES, ROOT, parsed, walked

FILE = re.compile(
    r"(?<![\w/.])((?:nas|objectives|search_spaces|tests|benchmarks|studies|configs)/[\w/.-]*\.(?:py|ya?ml|md|csv|json))"
)
MODULE = re.compile(r"(?<![\w./])((?:nas|objectives|search_spaces|benchmarks|studies)(?:\.\w+)+)")
DIFF = re.compile(r"^```diff\n.*?^```", re.MULTILINE | re.DOTALL)
SCRIPTS = sorted([*(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "studies").rglob("*.py")])
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "studies").rglob("*.md"), ROOT / "README.md"])


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Every docstring of a module."""
    for node in walked(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node, clean=False) or ""


@cache
def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or a word of one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        place, rest = ROOT.joinpath(*parts[:count]), parts[count:]
        found = place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"
        if place.is_dir() and not rest:
            return True
        if found.is_file():
            return not rest or re.search(rf"\b{re.escape(rest[0])}\b", found.read_text(encoding="utf-8")) is not None
    return False


def gone(text: str) -> list[str]:
    """What a text names that is not there; COMMAND and the like stand for any, and a diff adds what it names."""
    text = DIFF.sub("", text)
    files = [name for name in FILE.findall(text) if not (ROOT / name).exists() and not re.search(r"/[A-Z]+[/.]", name)]
    modules = (name.rstrip(".") for name in MODULE.findall(text) if not name.endswith((".py", ".md", ".yaml", ".csv")))
    return files + [name for name in modules if not is_there(name) and not name.rpartition(".")[2].isupper()]


def test_what_is_gone_is_found() -> None:
    assert gone("see `nas/nowhere.py`, nas.problem.nothing_such and nas/problem/problem.py") == [
        "nas/nowhere.py",
        "nas.problem.nothing_such",
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_names_what_is_there(page: Path) -> None:
    assert gone(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_name_what_is_there(package: str) -> None:
    own = [path for path in FILES if path.parts[0] == package]
    found = {
        str(path): names
        for path in own
        if (names := [name for text in docstrings(parsed(path)) for name in gone(text)])
    }
    assert found == {}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_script_imports_what_is_there(script: Path) -> None:
    """Most scripts of benchmarks and studies have no test of their own, and need packages that are not always installed."""
    imports = [node for node in walked(parsed(script)) if isinstance(node, ast.ImportFrom) and node.module]
    names = [
        f"{node.module}.{alias.name}" for node in imports for alias in node.names if MODULE.match(f"{node.module}.x")
    ]
    assert [name for name in names if not is_there(name)] == []
