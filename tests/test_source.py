"""What the source keeps to: functions of a readable length, imports at the top, one version."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml

from tests.sources import FILES, PACKAGES, ROOT, called, parsed, text, walked

LONGEST_FUNCTION = 60
LATE = {  # what a function may import, itself or through a module of ours; everything else stands at the top of its file
    "matplotlib": "0.4 s; a run that is refused, printed only or read from Python draws nothing",
    "optuna": "0.4 s; needed for its samplers, a mirrored run and its own loops alone",
    "pymoo": "0.3 s; needed for its algorithms and its own loops alone",
    "scipy": "0.15 s; only a law that says how sure it is needs its normal distribution",
    "pydantic": "0.1 s; --help is to be there at once",
    "rich": "0.1 s; only a stream that has colours needs it",
    "distributed": "extra dask",
    "pyarrow": "a package of the user's, for saved data sets",
    "tokenizers": "extra tokenize",
    "torch": "extra hf",
    "transformers": "extra hf",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef
Import = ast.Import | ast.ImportFrom


def door(path: Path) -> bool:
    """Whether a file holds a command's flags: those directly in `nas/`, and `__main__.py` of a command's room."""
    return path.parent == Path("nas") or path.name == "__main__.py"


@cache
def functions(tree: ast.AST) -> list[Function]:
    return [node for node in walked(tree) if isinstance(node, Function)]


def spanned(node: ast.AST) -> set[int]:
    """Lines of a node."""
    return set(range(node.lineno, node.end_lineno + 1))  # type: ignore[attr-defined]


def flag_list(function: Function) -> set[int]:
    """Lines that declare parameters, or hand one on as it is, `name`, `name=name` or `name or []`."""
    declared = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
    names = {argument.arg for argument in declared}
    lines = set(range(function.lineno, function.body[0].lineno))
    for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
        for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
            first = argument.values[0] if isinstance(argument, ast.BoolOp) else argument
            if isinstance(first, ast.Name) and first.id in names:
                lines |= spanned(argument)
    return lines


def too_long(path: Path, tree: ast.Module) -> list[str]:
    """Functions that are longer than anybody reads at once; in a door its list of flags is not counted."""
    lengths = {
        function.name: len(spanned(function) - (flag_list(function) if door(path) else set()))
        for function in functions(tree)
    }
    return [f"{path}: {name}: {length} lines" for name, length in lengths.items() if length > LONGEST_FUNCTION]


def modules(statement: Import) -> list[str]:
    """What a statement imports, as far as the name alone says it: `from a.b import c` may be `a.b` or `a.b.c`."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    return [statement.module or "", *(f"{statement.module}.{alias.name}" for alias in statement.names)]


@cache
def file_of(module: str) -> Path | None:
    """The file of a module of ours."""
    path = Path(*module.split("."))
    found = [file for file in (path.with_suffix(".py"), path / "__init__.py") if (ROOT / file).is_file()]
    return found[0] if found else None


def at_top(tree: ast.Module) -> list[Import]:
    """Imports that run when a module is loaded; those for a type checker alone do not."""
    return [node for node in tree.body if isinstance(node, Import)]


@cache
def loaded(path: Path) -> tuple[set[Path], set[str]]:
    """Files of ours and packages of others that the top of a file names."""
    names = {name for node in at_top(parsed(path)) for name in modules(node)}
    packages = {name.partition(".")[0] for name in names} - set(PACKAGES)
    return {file for name in names if (file := file_of(name))}, packages


@cache
def brought_in(path: Path) -> frozenset[str]:
    """Packages of others that loading a file loads, directly or through files of ours."""
    seen, left = {path}, [path]
    while left:
        left += (further := loaded(left.pop())[0] - seen)
        seen |= further
    return frozenset(package for file in seen for package in loaded(file)[1])


def late(statement: Import) -> set[str]:
    """What of `LATE` a statement brings in."""
    files = [file for module in modules(statement) if (file := file_of(module))]
    named = {module.partition(".")[0] for module in modules(statement)}
    return (named | {package for file in files for package in brought_in(file)}) & LATE.keys()


@cache
def inside(tree: ast.Module) -> tuple[Import, ...]:
    """Imports inside functions, also those written as a call with a name that is known beforehand."""
    return tuple(_inside(tree))


def _inside(tree: ast.Module) -> Iterator[Import]:
    for function in functions(tree):
        for node in ast.walk(function):
            if isinstance(node, Import):
                yield node
            elif isinstance(node, ast.Call) and called(node) == "import_module":
                yield from (ast.Import([ast.alias(str(n.value))]) for n in node.args[:1] if isinstance(n, ast.Constant))


def needless(path: Path, tree: ast.Module) -> list[str]:
    """Imports inside functions that could stand at the top: they bring in nothing of `LATE` that is not there anyway."""
    there = brought_in(path)
    return [f"{path}: {ast.unparse(node)}" for node in inside(tree) if not late(node) - there]


def test_no_function_is_long_but_for_a_doors_list_of_flags() -> None:
    assert [fault for path in FILES for fault in too_long(path, parsed(path))] == []


def test_imports_stand_at_the_top_but_in_doors_and_for_what_is_late() -> None:
    assert [fault for path in FILES if not door(path) for fault in needless(path, parsed(path))] == []


def test_everything_that_may_be_imported_late_is() -> None:
    imported = {package for path in FILES if not door(path) for node in inside(parsed(path)) for package in late(node)}
    assert imported == LATE.keys()


def test_the_limits_find_what_they_should() -> None:
    body = "\n".join(["    pass"] * LONGEST_FUNCTION)
    flags = ",\n".join(f"    flag_{i}=None" for i in range(50))
    handed = ",\n".join(f"    flag_{i}=flag_{i}" for i in range(50))
    signature = ast.parse(f"def f(\n{flags}\n):\n    g(\n{handed}\n)\n")
    assert too_long(Path("nas/f.py"), signature) == []
    assert too_long(Path("nas/commands/f.py"), signature) != []
    assert too_long(Path("nas/f.py"), ast.parse(f"def f():\n{body}\n    pass")) != []
    assert too_long(Path("nas/commands/f.py"), ast.parse(f"def f():\n{body}")) != []
    here = Path("nas/commands/run.py")
    for line in (
        "import json",
        "from nas.problem.problem import Problem",
        "import_module('numpy.linalg')",
        "import numpy",
    ):
        assert needless(here, ast.parse(f"def f():\n    {line}")) != [], line
    for line in (
        "import matplotlib.pyplot",
        "from nas.answer.pictures import draw_all",
        "import_module('nas.api.own_loops')",
    ):
        assert needless(here, ast.parse(f"def f():\n    {line}")) == [], line
    assert needless(Path("nas/answer/pictures.py"), ast.parse("def f():\n    import matplotlib")) != []


def test_the_version_is_the_same_everywhere() -> None:
    version = tomllib.loads(text("pyproject.toml"))["project"]["version"]
    assert yaml.safe_load(text("CITATION.cff"))["version"] == version
    releases = re.findall(r"^## \[(.+?)\](?: - (\S+))?$", text("CHANGELOG.md"), re.MULTILINE)
    assert releases[0] == ("Unreleased", "")
    assert releases[1][0] == version
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", date) for _, date in releases[1:])
