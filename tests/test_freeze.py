"""What only falls: commands, flags, files, lines, words, and names that say nothing.

A feature of size belongs into a package of its own (plugins/): CONTRIBUTING.md says why. Where a number has fallen, write the new one here.
"""

import ast
import importlib
from collections.abc import Iterable
from inspect import signature
from pathlib import Path
from typing import get_args

from nas.terminal.doors import COMMANDS, door
from tests.sources import BUNDLED_COMMANDS, FILES, ROOT, parsed, text, walked

MOST_COMMANDS = 16
MOST_FLAGS_OF_RUN = 28
MOST_FLAGS = 113
MOST_WORDS = 72_720
MOST_FILES = 328
MOST_LINES = 36_306
MOST_LINES_WITH_PACKAGES = 61_687
MOST_EMPTY_NAMES = 1_395
MOST_READS = 17
#: Names of variables that do not say what they hold.
EMPTY_NAMES = {"found", "known", "each", "told", "asked", "said"}
#: Modules of the packages around the core.
AROUND = sorted(path.relative_to(ROOT) for path in (ROOT / "plugins").glob("*/plas_*/**/*.py"))


def flags(command: str) -> set[str]:
    """The flags of a command that its help shows."""
    function = importlib.import_module(BUNDLED_COMMANDS.get(command) or door(command)).main.function
    infos = [get_args(parameter.annotation)[1] for parameter in signature(function).parameters.values()]
    return {info.default for info in infos if isinstance(info.default, str)}


def code_lines(path: Path) -> int:
    """Lines of code: without docstrings, comments and blank lines."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = walked(parsed(path))
    docstrings = [
        node.body[0]
        for node in nodes
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None
    ]
    texts = [node for node in nodes if isinstance(node, ast.Constant | ast.JoinedStr)]
    lines = enumerate(text(path).splitlines(), start=1)
    filled = {at for at, line in lines if line.strip() and not line.lstrip().startswith("#")}
    return len((filled | lines_of(texts)) - lines_of(docstrings))


def lines_of(nodes: Iterable[ast.expr | ast.stmt]) -> set[int]:
    """The numbers of the lines that they stand on."""
    return {line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def assigned(tree: ast.AST) -> list[str]:
    """Names of variables and parameters, once for each place that gives them a value."""
    nodes = list(ast.walk(tree))
    names = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return names + [node.arg for node in nodes if isinstance(node, ast.arg)]


def test_commands_and_flags_only_fall() -> None:
    by_command = {command: flags(command) for command in (*COMMANDS, *BUNDLED_COMMANDS)}
    assert len(by_command) <= MOST_COMMANDS
    assert len(by_command["run"]) <= MOST_FLAGS_OF_RUN
    assert len(set().union(*by_command.values())) <= MOST_FLAGS


def test_the_documentation_only_shrinks() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "plugins").glob("*/docs/*.md")]
    assert sum(len(text(page).split()) for page in pages) <= MOST_WORDS


def test_the_code_only_shrinks() -> None:
    assert len(FILES) <= MOST_FILES
    core = sum(map(code_lines, FILES))
    assert core <= MOST_LINES
    assert core + sum(map(code_lines, AROUND)) <= MOST_LINES_WITH_PACKAGES


def test_names_that_say_nothing_only_fall() -> None:
    trees = [parsed(path) for path in (*FILES, *AROUND)]
    assert sum(name in EMPTY_NAMES for tree in trees for name in assigned(tree)) <= MOST_EMPTY_NAMES
    assert (
        sum(isinstance(n, ast.FunctionDef) and n.name == "read" for tree in trees for n in walked(tree)) <= MOST_READS
    )
