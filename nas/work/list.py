"""The work of `list`: names with one line each, plug-ins without importing them."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from nas.exporting.stack import PACKAGE, shown
from nas.files.yaml_source import read
from nas.search.discovery import EXTRAS, in_working_folder, installed
from nas.study.catalogue import load_device, load_space
from nas.terminal.console import say, say_json
from nas.terminal.styles import TITLE, Styled
from nas.terminal.tables import table
from objectives.plugins import documents, first_line, importable, imports, summary

Row = dict[str, Any]
SPARE = ("profiles", "int8 TOP/s")  # columns of devices that a narrow screen goes without


def show(kinds: Sequence[str], *, as_json: bool) -> None:
    """Print the asked kinds, or their JSON."""
    found = {kind: ROWS[kind]() for kind in kinds}
    if as_json:
        say_json(found if len(kinds) > 1 else found[kinds[0]])
        return
    for kind, rows in found.items():
        say(Styled(kind.capitalize(), TITLE))
        header = list(rows[0]) if rows else []
        table(header, [[_shown(row[name]) for name in header] for row in rows], spare=SPARE)
        say()


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def plugins(package: str) -> list[Row]:
    """Plug-in modules with their first docstring line."""
    return [{"name": name, "what": summary(package, name)} for name in importable(package)]


def strategies() -> list[Row]:
    """Strategies with their first docstring line: shipped (an extra that is missing is named), installed, in this folder."""
    rows = plugins("nas.strategies")
    for row in rows:
        extra = missing_extra("nas.strategies", row["name"])
        row["what"] += f" Unavailable: pip install 'plas-codesign[{extra}]'." if extra else ""
    rows += [{"name": name, "what": f"Installed: {', '.join(modules)}."} for name, modules in installed().items()]
    own = in_working_folder()
    return rows + [{"name": name, "what": f"{first_line(path)} Your own: {path.name}."} for name, path in own.items()]


def missing_extra(package: str, name: str) -> str | None:
    """The extra that a plug-in's own imports need and that is not installed, read without importing it."""
    for needed, extra in EXTRAS.items():
        if needed in imports(package, name) and find_spec(needed) is None:
            return extra
    return None


def documented(package: str) -> list[Row]:
    """YAML files with their description."""
    return [{"name": name, "what": _described(read(path)[0])} for name, path in documents(package).items()]


def _described(content: Any) -> str:
    return str(content.get("description") or content.get("name") or "") if isinstance(content, dict) else ""


def spaces() -> list[Row]:
    """Search spaces with their exact sizes."""
    found = [load_space(name) for name in documents("search_spaces.spaces")]
    return [{"name": s.name, "architectures": s.size, "what": s.specification.description} for s in found]


def devices() -> list[Row]:
    """Devices with dense peaks, bandwidth, memory, modes and how well they are known."""
    rows = []
    for name in documents("objectives.devices"):
        d = load_device(name)
        rows.append(
            {
                "name": name,
                "fp16 TFLOP/s": d.fp16 / 1e12,
                "int8 TOP/s": d.int8 / 1e12,
                "GB/s": d.bandwidth / 1e9,
                "GB": d.memory_gb,
                "known": d.confidence,
                "profiles": len(d.profiles),
                "modes": " ".join(f"@{mode}" for mode in d.modes) or "-",
                "what": d.name,
            }
        )
    return rows


def models() -> list[Row]:
    """Published models that can be baselines."""
    found = [(name, read(path)[0]) for name, path in documents("search_spaces.models").items()]
    return [
        {
            "name": name,
            "depth": c["depth"],
            "width": c["width"],
            "experts": c["n_experts"],
            "what": c["name"] + (", sliding window (costed as full attention)" if "window" in c else ""),
        }
        for name, c in found
    ]


def presets() -> list[Row]:
    """Conventions of latency and memory."""
    return [
        {"name": name, "what": path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")}
        for name, path in documents("nas.study.presets").items()
    ]


def studies() -> list[Row]:
    """Shipped studies for --config."""
    return [
        {"name": name, "what": path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")}
        for name, path in documents("configs").items()
    ]


def stacks() -> list[Row]:
    """Stacks that candidates are exported to, as --to takes them."""
    return [{**row, "name": shown(row["name"])} for row in plugins(PACKAGE)]


ROWS: dict[str, Callable[[], list[Row]]] = {
    "strategies": strategies,
    "spaces": spaces,
    "laws": lambda: documented("objectives.laws"),
    "forms": lambda: plugins("objectives.law_forms"),
    "devices": devices,
    "models": models,
    "metrics": lambda: plugins("objectives.metrics"),
    "presets": presets,
    "studies": studies,
    "stacks": stacks,
    "recipes": lambda: documented("nas.exporting.recipes"),
}
