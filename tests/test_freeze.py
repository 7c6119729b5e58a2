"""What only falls: commands, flags, files, lines, words, and names that say nothing.

A feature of size belongs into a package of its own (plugins/): CONTRIBUTING.md says why. Where a number has fallen, write the new one here.
"""

import ast
import importlib
import io
import tokenize
from inspect import signature
from pathlib import Path
from typing import get_args

from nas.terminal.doors import COMMANDS, door
from tests.sources import FILES, ROOT, parsed, text, walked

MOST_COMMANDS = 13
MOST_FLAGS_OF_RUN = 28
MOST_FLAGS = 118
MOST_WORDS = 52_905
MOST_FILES = 425
MOST_LINES = 49_299
MOST_LINES_WITH_PACKAGES = 67_632
MOST_EMPTY_NAMES = 1_217
MOST_READS = 17
#: Names of variables that do not say what they hold.
EMPTY_NAMES = {"found", "known", "each", "told", "asked", "said"}
LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def flags(command: str) -> set[str]:
    """The flags of a command that its help shows."""
    function = importlib.import_module(door(command)).main.function
    infos = [get_args(parameter.annotation)[1] for parameter in signature(function).parameters.values()]
    return {info.default for info in infos if isinstance(info.default, str)}


def code_lines(path: Path) -> int:
    """Lines of code: without docstrings, comments and blank lines."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        line
        for node in walked(parsed(path))
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text(path)).readline) if token.type not in LAYOUT]
    return len({line for token in tokens for line in range(token.start[0], token.end[0] + 1)} - docstrings)


def assigned(tree: ast.AST) -> list[str]:
    """Names of variables and parameters, once for each place that gives them a value."""
    nodes = list(ast.walk(tree))
    names = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return names + [node.arg for node in nodes if isinstance(node, ast.arg)]


def test_commands_and_flags_only_fall() -> None:
    by_command = {command: flags(command) for command in COMMANDS}
    assert len(COMMANDS) <= MOST_COMMANDS
    assert len(by_command["run"]) <= MOST_FLAGS_OF_RUN
    assert len(set().union(*by_command.values())) <= MOST_FLAGS


def test_the_documentation_only_shrinks() -> None:
    assert sum(len(text(str(page)).split()) for page in (ROOT / "docs").glob("*.md")) <= MOST_WORDS


def test_the_code_only_shrinks() -> None:
    assert len(FILES) <= MOST_FILES
    core = sum(map(code_lines, FILES))
    around = sum(code_lines(path.relative_to(ROOT)) for path in (ROOT / "plugins").glob("*/plas_*/**/*.py"))
    assert core <= MOST_LINES
    assert core + around <= MOST_LINES_WITH_PACKAGES


def test_names_that_say_nothing_only_fall() -> None:
    trees = [parsed(path) for path in FILES]
    assert sum(name in EMPTY_NAMES for tree in trees for name in assigned(tree)) <= MOST_EMPTY_NAMES
    assert (
        sum(isinstance(n, ast.FunctionDef) and n.name == "read" for tree in trees for n in walked(tree)) <= MOST_READS
    )
