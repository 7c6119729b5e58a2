"""The work of `list`: names with one line each, plug-ins without importing them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from nas.document.document import Column, Document, Section, Table
from nas.errors import UsageError
from nas.export.stack_protocol import shown
from nas.files.faults import squashed
from nas.files.yaml_source import read
from nas.search.discovery import EXTRAS, in_working_folder
from nas.study import entry_points
from nas.study.baselines import baseline
from nas.study.catalogue import installed_format, load_device, load_law, load_space
from nas.study.entry_points import AUTO, PlugIn
from nas.study.study_laws import LEFT_OUT, RIGHT, records, records_of, rules, strongest_rules
from nas.terminal import doors
from nas.terminal.console import notice
from nas.terminal.tables import show as show_document
from objectives import outside
from objectives.device import Calibration
from objectives.loss_law.precision_cost import CAVEATS, SOURCES, priced
from objectives.plugins import bundled, documents, first_line, importable, imports, normalised, summary
from objectives.precision import PRECISIONS, Precision, of_format
from objectives.profile_choice import measured_elsewhere
from objectives.published_models import model_ids
from objectives.token_curve import TokenCurve
from objectives.weight_formats.table import WEIGHT_FORMATS, WeightFormat
from search_spaces.formats import FORMATS, base_of

Row = dict[str, Any]
#: Columns that a narrow screen goes without.
SPARE = ("profiles", "cooling", "int8 TOP/s", "models", "experts", "prompts")


def show(kinds: Sequence[str], words: Sequence[str] = (), *, as_json: bool) -> None:
    """Print the chosen kinds, or their JSON, only rows with all words; what packages offer and cannot be used goes to standard error.

    Raises:
        UsageError: no row has the words.
    """
    wanted = [squashed(word) for word in words]
    rows = {
        kind: [row for row in ROWS[kind]() if all(word in squashed(str([*row.values()])) for word in wanted)]
        for kind in kinds
    }
    if words and not any(rows.values()):
        raise UsageError(f"list: expected words of {kinds[0]}, got {' '.join(words)}, which none of them has; drop one")
    faults = (entry_points.faults(kind) for kind in kinds if kind in entry_points.KINDS)
    for text in dict.fromkeys(chain.from_iterable(faults)):
        notice(f"Not used: {text}")
    few = len(kinds) == 1 or bool(words)
    sections = chain.from_iterable(_sections(*each) for each in rows.items() if each[1]) if few else _kinds(rows)
    show_document(Document("", tuple(sections), rows if len(kinds) > 1 else rows[kinds[0]]), as_json=as_json)


def _kinds(rows: dict[str, list[Row]]) -> Iterator[Section]:
    """How many rows each kind has, and the names of the first."""
    names = {kind: [str(row["name"]) for row in of_kind] for kind, of_kind in rows.items()}
    cells = [(kind, f"{len(own):,}", ", ".join(own[:3]) + ", …" * (len(own) > 3)) for kind, own in names.items()]
    columns = (Column("kind", words=True), Column("names"), Column("the first", words=True))
    yield Section("plas list KIND lists one, plas list KIND WORD its rows with a word", (Table(columns, tuple(cells)),))


def _sections(kind: str, rows: list[Row]) -> Iterator[Section]:
    """The rows of a kind; what is nested in them has a table of its own."""
    yield _section(kind.replace("-", " ").capitalize(), rows)
    if calibrated := _nested(rows, "calibrated"):
        priced = "Devices that the table below lacks are priced by preset device with what is typical of their chip, and by --set calibration=datasheet at the peaks"
        yield Section("", (f"{priced}: {measured_elsewhere()}.",))
        yield _section("Calibrated: median error on models held out", calibrated)
    if columns := _nested(rows, "columns"):
        yield _section("Figures that are metrics by their names", columns)
    if kind == "laws":
        brackets = (
            f"{LEFT_OUT}: on each laboratory the law of the others. In brackets the share of the pairs that a law prices, %; the others "
            f"count 50. The strongest rule without a law: {_strongest()}."
        )
        yield _section(f"Elsewhere: {RIGHT} (docs/evidence.md)", records_in_columns(), brackets, spare=())


def _nested(rows: list[Row], name: str) -> list[Row]:
    return [{"device": row["name"], **own} for row in rows for own in row.get(name, ())]


def _section(title: str, rows: list[Row], *notes: str, spare: Sequence[str] = SPARE) -> Section:
    header = [name for name, value in rows[0].items() if not isinstance(value, list)] if rows else []
    columns = (Column(name, narrow="left out" if name in spare else "") for name in header)
    cells = (tuple(_cell(row[name]) for name in header) for row in rows)
    return Section(title, (Table(tuple(columns), tuple(cells), notes=notes),))


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def _installed(kind: str, words: str, row: Callable[[str, PlugIn], Row], empty: Row) -> Iterator[Row]:
    """What packages offer, its origin in the column `words`; of what is broken the name and why, and `empty` columns."""
    for name, offers in entry_points.offered(kind).items():
        try:
            own = row(name, offers[0])
        except UsageError as error:
            own = {**empty, "name": name, words: f"Broken: {str(error).partition(chr(10))[0]}."}
        yield {**own, words: f"{own[words]} {installed(offers)}".strip()}


def plugins(kind: str) -> list[Row]:
    """Plug-in modules with their first docstring line, ours and those of installed packages; nothing is imported."""
    package = entry_points.SHIPPED[kind]
    rows = [{"name": name, "what": summary(package, name)} for name in importable(package)]
    rows += [{"name": name, "what": doors.summary(point.module)} for name, point in bundled(kind).items()]
    rows.sort(key=lambda row: row["name"])
    several = entry_points.offered(kind).items()
    return rows + [
        {"name": name, "what": f"{offers[0].summary} {installed(offers)}".strip()} for name, offers in several
    ]


def expensive() -> list[Row]:
    """Metrics that ship and cost: evaluated by workers."""
    return [{"name": name, "what": doors.summary(module)} for name, module in doors.EXPENSIVE.items()]


def installed(offers: Sequence[PlugIn]) -> str:
    """Where something is from that is not ours; of a name that several packages give, from all of them."""
    return f"Installed: {' and '.join(dict.fromkeys(offer.origin for offer in offers))}."


def strategies() -> list[Row]:
    """Strategies with their first docstring line: shipped (an extra that is missing is named), `auto`, installed, in this folder."""
    rows = plugins("strategies")
    ours = importable(entry_points.SHIPPED["strategies"])
    for name, row in zip(ours, rows, strict=False):
        extra = missing_extra("nas.strategies", name)
        row["what"] += f" Unavailable: pip install 'plas-codesign[{extra}]'." if extra else ""
    rows.insert(len(ours), {"name": AUTO, "what": summary(entry_points.SHIPPED["strategies"], f"_{AUTO}")})
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


def laws() -> list[Row]:
    """Laws with their description and their record on other people's models, ours and those of installed packages."""
    rows = documented(entry_points.SHIPPED["laws"])
    for row in rows:
        row["elsewhere"] = [{"question": question, **asdict(own)} for question, own in records_of(row["name"]).items()]
    return [
        *rows,
        *_installed("laws", "what", lambda name, offer: {"name": name, "what": _described_law(offer.place)}, {}),
    ]


def _described_law(place: str) -> str:
    """The description of a law's file; a form of an installed package, which would have to be imported, is not checked.

    Raises:
        UsageError: the file holds no law.
    """
    content = read(Path(place))[0]
    form = content.get("form") if isinstance(content, dict) else None
    if not (isinstance(form, str) and normalised(form) in entry_points.offered("forms")):
        load_law(place)
    return _described(content)


def records_in_columns() -> list[Row]:
    """Of each law and each rule that needs none, how it orders other people's models by question."""
    names = [*documents(entry_points.SHIPPED["laws"]), *rules()]
    by_name = {name: records_of(name) for name in names}
    return [
        {"by": name, **{question: own[question].in_full if question in own else "-" for question in records()}}
        for name, own in by_name.items()
    ]


def _strongest() -> str:
    """`deeper (compute); ...`: the strongest rules and their questions."""
    of: dict[str, list[str]] = {}
    for question, rule in strongest_rules().items():
        of.setdefault(rule, []).append(question)
    return "; ".join(f"{rule} ({', '.join(questions)})" for rule, questions in of.items())


def precision_laws() -> list[Row]:
    """Laws of what few bits cost, with the formats and caches that each has constants for."""
    return [{"name": n, "prices": ", ".join(priced(n)), "what": f"{SOURCES[n]}: {CAVEATS[n]}"} for n in CAVEATS]


def formats() -> list[Row]:
    """Formats of designs, ours and those of installed packages: types and bits of weights, of inputs of linear operators and of the KV cache."""
    rows = [_format_row(PRECISIONS[name], types_in_words(WEIGHT_FORMATS[base_of(name)])) for name in FORMATS]
    return [*rows, *_installed("formats", "types", _installed_format_row, dict.fromkeys(rows[0], ""))]


def _installed_format_row(name: str, offer: PlugIn) -> Row:
    written = installed_format(offer)
    return _format_row(of_format(name, written), types_in_words(written))


def _format_row(precision: Precision, types: str) -> Row:
    return {
        "name": precision.name,
        "types": types,
        "weight bits": 8 * precision.weight_bytes,
        "head bits": 8 * precision.head_bytes,
        "input bits": 8 * precision.input_bytes,
        "down input bits": 8 * precision.of_down.input_bytes,
        "KV bits": 8 * precision.kv_bytes,
        "peak": precision.linear_peak,
        "down peak": precision.of_down.linear_peak,
    }


def types_in_words(written: WeightFormat) -> str:
    """`Q4_K, values Q4_K/Q6_K`: the types of a layer's matrices, of those that have their own."""
    own = {kind: getattr(written, kind) for kind in ("values", "down", "experts", "expert_down")}
    return ", ".join(
        ["/".join(written.weights), *(f"{kind} {'/'.join(names)}" for kind, names in own.items() if names)]
    )


def _described(content: Any) -> str:
    return str(content.get("description") or content.get("name") or "") if isinstance(content, dict) else ""


def spaces() -> list[Row]:
    """Search spaces with their exact sizes."""
    loaded = [load_space(name) for name in documents("search_spaces.spaces")]
    return [{"name": s.name, "architectures": s.size, "what": s.specification.description} for s in loaded]


def devices() -> list[Row]:
    """Devices with dense peaks, bandwidth, memory, modes and how well they are known."""
    rows = [_device_row(name, str(path)) for name, path in documents(entry_points.SHIPPED["devices"]).items()]
    empty = {**dict.fromkeys(rows[0], "-"), "calibrated": [], "columns": []}
    return [*rows, *_installed("devices", "what", lambda name, offer: _device_row(name, offer.place), empty)]


def _device_row(name: str, path: str) -> Row:
    d = load_device(path)
    return {
        "name": name,
        "fp16 TFLOP/s": d.fp16 / 1e12 if d.fp16 else "-",
        "int8 TOP/s": d.int8 / 1e12 if d.int8 else "-",
        "GB/s": d.bandwidth / 1e9,
        "GB": d.memory_gb,
        "known": d.confidence,
        "chip": "-" if d.chip == "any" else d.chip,
        "cooling": d.cooling or "-",
        "profiles": len(d.profiles),
        "modes": " ".join(f"@{mode}" for mode in d.modes) or "-",
        "what": d.name,
        "calibrated": [_profile_row(profile) for profile in d.profiles],
        "columns": [{"name": name, **figure.in_words()} for name, figure in d.columns.items()],
    }


def _profile_row(profile: Calibration) -> Row:
    """The engine, source and error of a profile."""
    prompts = profile.prompts or ()
    errors = {phase: profile.missed(phase) for phase in ("prefill", "decode")}
    return {
        "mode": f"@{profile.mode}" if profile.mode else "-",
        "precision": profile.format or profile.precision,
        "batch": profile.batch,
        "prompts": " to ".join(f"{tokens:,}" for tokens in dict.fromkeys(prompts)) or "-",
        "experts": {True: "yes", False: "no", None: "-"}[profile.experts],
        **{phase: "-" if off is None else f"{100 * off:.1f} %" for phase, off in errors.items()},
        "models": profile.held_out_models or "-",
        "measured by": f"between {profile.between}" if profile.between else profile.source.partition(": ")[0] or "-",
    }


def models() -> list[Row]:
    """Published models that can be baselines."""
    return [
        {
            "name": name,
            **{column: int(getattr(a, column)[0]) for column in ("depth", "width")},
            "experts": int(a.n_experts[0]),
            "what": model.label + (", sliding window" if a.n_local[0] else ""),
        }
        for name, model in ((name, baseline(name)) for name in model_ids())
        for a in (model.architecture,)
    ]


def presets() -> list[Row]:
    """Conventions of latency and memory."""
    return [{"name": name, "what": headline(path)} for name, path in documents("nas.study.presets").items()]


def studies() -> list[Row]:
    """Shipped studies for --config."""
    return [{"name": name, "what": headline(path)} for name, path in documents("configs").items()]


def application_studies() -> list[str]:
    """Names of the shipped studies that `init --application` takes: their first line says that they are one."""
    return [name for name, path in documents("configs").items() if headline(path).startswith("Application: ")]


def headline(path: Path) -> str:
    """The comment in a file's first line."""
    return outside.text(path, 8 * outside.MB).partition("\n")[0].lstrip("# ").rstrip()


def stacks() -> list[Row]:
    """Stacks that candidates are exported to, as --to takes them."""
    return [{**row, "name": shown(row["name"])} for row in plugins("stacks")]


def evidence() -> list[Row]:
    """Published tables of trained models: whose, under which licence, how many rows are part of this package (0: point to the file)."""
    return [
        {
            "name": name,
            "models": _rows_beside(place),
            "laboratory": source["laboratory"],
            "licence": source["licence"],
            "varies": ", ".join(source["varies"]),
            "what": source["description"],
            "source": [{key: source.get(key, "") for key in ("url", "file", "commit", "bibtex")}],
        }
        for name, place in documents("objectives.evidence.sources").items()
        for source in [read(place)[0]]
    ]


def token_curves() -> list[Row]:
    """Bytes per token over the vocabulary of known texts, at the ends of what was counted; a recipe in docs/vocabulary.md counts others."""
    rows: list[Row] = []
    for name, place in documents("objectives.token_curves").items():
        curve = TokenCurve.model_validate(read(place)[0])
        low, high = curve.sizes[0], curve.sizes[-1]
        sizes = {"vocabulary from": low.vocabulary, "to": high.vocabulary}
        counted = {"bytes/token from": low.bytes_per_token, "bytes/token to": high.bytes_per_token}
        rows.append({"name": name, **sizes, **counted, "what": curve.description})
    return rows


def _rows_beside(document: Path) -> int:
    path = document.with_suffix(".csv")
    return len(outside.text(path, outside.MB).splitlines()) - 1 if path.is_file() else 0


ROWS: dict[str, Callable[[], list[Row]]] = {
    "strategies": strategies,
    "spaces": spaces,
    "laws": laws,
    "forms": lambda: plugins("forms"),
    "precision-laws": precision_laws,
    "formats": formats,
    "devices": devices,
    "models": models,
    "metrics": lambda: [*plugins("metrics"), *expensive()],
    "presets": presets,
    "studies": studies,
    "stacks": stacks,
    "evidence": evidence,
    "token-curves": token_curves,
    "recipes": lambda: documented("nas.export.recipes"),
}
