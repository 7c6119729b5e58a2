"""Entry points of installed packages, each group of `docs/extend.md` but commands, which `nas/terminal/doors.py` reads.

Reading them imports nothing: an entry point is a name and a place, laws and devices are YAML files in a package's
folder. What is named is imported by `nas/study/user_code.py`.
"""

import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, EntryPoint, distributions
from pathlib import Path

from nas.errors import UsageError
from nas.terminal.doors import EXPENSIVE
from objectives.plugins import DISTRIBUTION, bundled, documents, first_line, importable, located, normalised
from search_spaces.columns import ALIASES, DEFAULTS, SHAPE
from search_spaces.formats import FORMATS

SHIPPED = {
    "strategies": "nas.strategies",
    "metrics": "objectives.metrics",
    "forms": "objectives.law_forms",
    "laws": "objectives.laws",
    "devices": "objectives.devices",
    "stacks": "nas.export.stacks",
}  # kind, as `plas list` says it, and where ours lie; the group of its entry points is `plas.KIND`
MODULES = ("answers", "logs")  # kinds of which a package gives modules and we ship no folder
KINDS = (*SHIPPED, "formats", *MODULES)
ONE = {kind: kind.removesuffix("s") for kind in KINDS}
ONE |= {"strategies": "strategy", "answers": "reader of folders", "logs": "log reader"}
AUTO = "auto"  # picks one of the strategies: `nas/search/reading.py`
FOLDERS = ("laws", "devices", "formats")  # here an entry point is a folder of YAML files
NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
COLUMNS = {*SHAPE, *ALIASES, *DEFAULTS, *("id", "index", "batch", "state", "reason", "key", "feasible", "extrapolates")}


@dataclass(frozen=True)
class PlugIn:
    """Something of an installed package: its name, its place (module, module:function or file), its distribution ("" of a user's own)."""

    kind: str
    name: str
    place: str
    distribution: str

    def __str__(self) -> str:
        return f"{self.label} of {self.distribution}"

    @property
    def label(self) -> str:
        """`metric energy`."""
        return f"{ONE[self.kind]} {self.name}"

    @property
    def origin(self) -> str:
        """`acme.metrics:energy of acme-plas 1.0`."""
        return f"{self.place} of {self.distribution}"

    @property
    def summary(self) -> str:
        """The first docstring line of its module or function; nothing is imported."""
        module, _, function = self.place.partition(":")
        path = located(module, file=True)
        return "" if path is None else first_line(path, function)


@dataclass(frozen=True)
class Read:
    """All that installed packages offer: plug-ins, and what cannot be used, by kind ("" of every kind)."""

    plug_ins: tuple[PlugIn, ...]
    faults: tuple[tuple[str, str], ...]


def shipped(kind: str) -> tuple[str, ...]:
    """Names of ours."""
    if kind in MODULES:
        return ()
    if kind == "formats":
        return FORMATS
    if kind in FOLDERS:
        return tuple(documents(SHIPPED[kind]))
    besides = {"metrics": tuple(EXPENSIVE), "strategies": (AUTO,), "stacks": tuple(bundled("stacks"))}
    return importable(SHIPPED[kind]) + besides.get(kind, ())


def offered(kind: str) -> dict[str, tuple[PlugIn, ...]]:
    """Entry points of installed packages under each name; a name that is shipped is ours and left out."""
    names: dict[str, tuple[PlugIn, ...]] = {}
    for plug_in in read().plug_ins:
        if plug_in.kind == kind and plug_in.name not in shipped(kind):
            names[plug_in.name] = (*names.get(plug_in.name, ()), plug_in)
    return {name: tuple(sorted(names[name], key=lambda plug_in: plug_in.place)) for name in sorted(names)}


def named(kind: str) -> list[str]:
    """Every name of a kind: shipped ones, then those of installed packages."""
    return [*shipped(kind), *offered(kind)]


def found(kind: str, name: str, *, typed: bool = False) -> PlugIn | None:
    """What an installed package offers under a name that is not shipped; None where none does.

    Raises:
        UsageError: several do, each with its origin, or one offers a shipped name that the user `typed`.
    """
    if typed:
        refuse_contested(kind, name)
    if name in shipped(kind):
        return None
    several = offered(kind).get(name, ())
    if len({plug_in.place for plug_in in several}) > 1:
        raise UsageError(
            f"expected one installed {ONE[kind]} {name}, got {' and '.join(p.origin for p in several)}; {_otherwise(kind)}"
        )
    return several[0] if several else None


def refuse_contested(kind: str, name: str, where: str = "") -> None:
    """Refuse a name that a user typed where a package offers the same as we ship: which is meant is not known.

    Raises:
        UsageError: with both origins.
    """
    theirs = [p for p in read().plug_ins if p.kind == kind and p.name == name and name in shipped(kind)]
    if theirs:
        raise UsageError(f"{where}{_contest(theirs[0])}")


def _contest(theirs: PlugIn) -> str:
    ours = f"{theirs.name} shipped with {DISTRIBUTION}"
    return f"expected one {ONE[theirs.kind]} {theirs.name}, got {ours} and {theirs.origin}; {_otherwise(theirs.kind)}"


def _otherwise(kind: str) -> str:
    """How to say which of two is meant."""
    if kind in ("laws", "devices"):
        return "give the path of the file that is meant"
    if kind in ("strategies", "metrics"):
        return "name one by its module" + (" and function" if kind == "metrics" else "")
    return "uninstall one of the packages"


def faults(kind: str) -> list[str]:
    """Why something that a package offers cannot be used, each with its distribution."""
    contested = [_contest(p) for p in read().plug_ins if p.kind == kind and p.name in shipped(kind)]
    return [*(text for of, text in read().faults if of in ("", kind)), *contested]


def read() -> Read:
    """Every entry point of ours on the import path as it is now."""
    return _read(tuple(sys.path))


@cache
def _read(path: tuple[str, ...]) -> Read:
    plug_ins: list[PlugIn] = []
    wrong: list[tuple[str, str]] = []
    seen: set[str] = set()
    for distribution in distributions(path=list(path)):
        try:
            points = [point for point in distribution.entry_points if point.group.removeprefix("plas.") in KINDS]
            points = [point for point in points if point.group.startswith("plas.")]
            named_so = distribution.metadata["Name"] or _file_of(distribution) if points else ""
            label = f"{named_so} {distribution.version or 'of no version'}" if points else ""
        except Exception as error:  # whatever a damaged description raises
            wrong.append(("", f"{_file_of(distribution)}: its entry points cannot be read ({type(error).__name__})"))
            continue
        name = label.partition(" ")[0]
        if name in seen:
            continue  # the first on the path is the one that would be imported
        seen.update([name] if name else [])
        for point in points:
            if name == DISTRIBUTION and point.group.removeprefix("plas.") in SHIPPED:
                continue  # ours, see `shipped`
            made, fault = _plug_ins(point, label)
            plug_ins += made
            wrong += [(point.group.removeprefix("plas."), f"{label}: {fault}")] if fault else []
    return Read(tuple(plug_ins), tuple(wrong))


def _file_of(distribution: Distribution) -> str:
    return Path(str(getattr(distribution, "_path", "a distribution"))).name


def _plug_ins(point: EntryPoint, label: str) -> tuple[list[PlugIn], str]:
    """The plug-ins of an entry point, or why there are none."""
    kind, place = point.group.removeprefix("plas."), "".join(point.value.split())
    if kind in FOLDERS:
        return _documents(kind, place, label)
    name = normalised(point.name)
    if not NAME.fullmatch(name) or (kind == "metrics" and name in COLUMNS):
        why = "the name of a column" if name in COLUMNS else "none"
        return [], f"{kind}: expected a name of letters, digits and _, got {point.name!r}, {why}; it needs another"
    wanted = r"[\w.]+:\w+" if kind == "metrics" else r"[\w.]+"
    if not re.fullmatch(wanted, place):
        form = "package.module:function" if kind == "metrics" else "package.module"
        return [], f"{kind}: expected {form} for {name}, got {point.value!r}; its entry point needs another"
    return [PlugIn(kind, name, place, label)], ""


def _documents(kind: str, place: str, label: str) -> tuple[list[PlugIn], str]:
    folder = located(place)
    if folder is None:
        return [], f"{kind}: expected a folder of YAML files, got {place}, which is not there; install it again"
    paths = sorted(folder.glob("*.yaml"))
    if not paths:
        return [], f"{kind}: expected a folder of YAML files, got none in {place}; install it again"
    return [PlugIn(kind, normalised(path.stem), str(path), label) for path in paths], ""
