"""The source of the three packages, read and parsed once for all tests that look at it."""

import ast
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("search_spaces", "objectives", "nas")
#: Packages around the core that its wheel carries.
BUNDLED = (
    "plugins/board/plas_board",
    "plugins/fit/plas_fit",
    "plugins/paper/plas_paper",
    "plugins/range/plas_range",
    "plugins/stacks/plas_stacks",
    "plugins/train/plas_train",
)


def files_of(*packages: str) -> list[Path]:
    """Their modules, relative to the checkout, in order."""
    return sorted(path.relative_to(ROOT) for package in packages for path in (ROOT / package).rglob("*.py"))


FILES = files_of(*PACKAGES)
#: Commands of the bundled packages, with their modules.
BUNDLED_COMMANDS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "entry-points"
]["plas.commands"]


def text(path: str | Path) -> str:
    """A file of the checkout."""
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def parsed(path: Path) -> ast.Module:
    """One of FILES as a tree; nobody changes it."""
    return ast.parse(text(path))


@cache
def walked(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Every node of a tree."""
    return tuple(ast.walk(tree))


def called(call: ast.Call) -> str:
    """The last name of what is called, whatever it is called on; "" where it has none."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else str(getattr(function, "id", ""))
