"""Contents of packages: modules and YAML files by name, first docstring lines, installed versions."""

import ast
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from objectives import outside

ROOT = Path(__file__).resolve().parents[1]


def folder(package: str) -> Path:
    """Return the folder of one of our packages, also if the Python path has another package of that name."""
    return ROOT.joinpath(*package.split("."))


@cache
def importable(package: str) -> tuple[str, ...]:
    """Return the names of a package's plug-ins, which are plain modules, without importing them."""
    return tuple(sorted(path.stem for path in folder(package).glob("*.py") if not path.stem.startswith("_")))


@cache
def documents(package: str) -> dict[str, Path]:
    """Return the YAML files of a package, or of a folder inside one (`objectives.devices`), by name."""
    return {path.stem: path for path in sorted(folder(package).glob("*.yaml"))}


def packaged(package: str, name: str) -> Any:
    """Return the content of a document of a package."""
    return yaml.load(outside.text(documents(package)[name], outside.MB), getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def summary(package: str, name: str) -> str:
    """Return the first docstring line of a plug-in, without importing it."""
    return first_line(folder(package) / f"{name}.py")


def first_line(path: Path, function: str = "") -> str:
    """Return the first docstring line of a module's file, or of a function in it, without importing; "" if there is none."""
    try:
        tree = ast.parse(outside.text(path, outside.MB))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function)
    found = next(functions, None) if function else tree
    return "" if found is None else (ast.get_docstring(found) or "").partition("\n")[0]


def normalised(name: str) -> str:
    """Return names in our spelling: lower case, underscores for hyphens."""
    return name.lower().replace("-", "_")


def imports(package: str, name: str) -> set[str]:
    """Return the top-level packages that a plug-in imports, without importing it."""
    tree = ast.parse(outside.text(folder(package) / f"{name}.py", outside.MB))
    found = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    found |= {node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)}
    return {module.partition(".")[0] for module in found}


def located(module: str, *, file: bool = False) -> Path | None:
    """Return the folder of a dotted name, or the file of a module, without importing."""
    for path in _places(module, file=file):
        if path.is_file() if file else path.is_dir():
            return path
    return None


def _places(module: str, *, file: bool) -> Iterator[Path]:
    top, *inner = module.split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return
    if spec is None:
        return
    for root in spec.submodule_search_locations or ():
        inside = Path(root, *inner)
        yield from (inside / "__init__.py", inside.with_suffix(".py")) if file else (inside,)
    if file and not inner and spec.origin:
        yield Path(spec.origin)


DISTRIBUTION = "plas-codesign"


@cache
def bundled(kind: str) -> dict[str, EntryPoint]:
    """Return the entry points `plas.KIND` of the packages that come with the core, by name."""
    with suppress(PackageNotFoundError):  # a checkout on the path
        return {point.name: point for point in distribution(DISTRIBUTION).entry_points.select(group=f"plas.{kind}")}
    return {}


@cache
def version_of(package: str) -> str:
    """Return the version of a distribution, or `not installed`."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
