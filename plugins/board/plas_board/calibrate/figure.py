"""One figure of a log, what every reader gives, and what every reader is."""

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Protocol

from nas.errors import UsageError
from objectives import outside
from objectives.display_text import escaped
from objectives.measured_formats import FORMATS
from objectives.published_models import models_named
from objectives.table import decoded, likely_encoding, sheet_of

MOST_BYTES = 32_000_000
PAGE = "see docs/calibrate.md"


@dataclass(frozen=True, eq=False)
class Document:
    """A file's name and text."""

    path: Path
    text: str

    @cached_property
    def json(self) -> Any:
        """The content as JSON, None where it is none."""
        return _json(self.text) if self.text.lstrip()[:1] in ("{", "[") else None

    @cached_property
    def objects(self) -> list[Mapping[str, Any]]:
        """Objects of JSON: of a list, one alone, or those that begin lines among others; empty where there are none."""
        found = self._scanned[0] if self.json is None else self.json if isinstance(self.json, list) else [self.json]
        return found if all(isinstance(each, dict) for each in found) else []

    @cached_property
    def cut(self) -> list[str]:
        """Why objects of a file that has others cannot be read, each with its line."""
        if self.json is not None or not self.objects:
            return []
        unclosed = self.text.lstrip().startswith("[") and not self.text.rstrip().endswith("]") and not self._scanned[1]
        ends = ["the file ends before its list does"] * unclosed
        return [f"the JSON object at line {line} of the file is cut" for line in self._scanned[1]] + ends

    @cached_property
    def _scanned(self) -> tuple[list[Any], list[int]]:
        return outside.objects_in(self.text)

    def segments(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Parts of the text with the headings that they stand under, the nearest first, the file's name last where it is a model's.

        A part ends at a Markdown heading outside code and at a command of llama.cpp's that names a model.
        """
        stem = (self.path.stem,) * bool(models_named(self.path.stem))
        stack: list[tuple[int, str]] = []
        lines: list[str] = []
        code = False
        for line in self.text.splitlines():
            code ^= line.lstrip().startswith("```")
            heading = None if code else HEADING.match(line)
            if heading or COMMAND.search(line):
                yield (*(name for _, name in reversed(stack)), *stem), "\n".join(lines)
                lines = []
            if heading:
                stack = [above for above in stack if above[0] < len(heading[1])]
                stack.append((len(heading[1]), MARKS.sub("", heading[2]).strip()))
            lines.append(line)
        yield (*(name for _, name in reversed(stack)), *stem), "\n".join(lines)

    def parts(self, place_in: Callable[..., str]) -> list[tuple[str, "Document"]]:
        """The document under each device that a heading, its first line or a line such as `GPU: …` names, with all headings and its own lines."""
        if self.objects:
            return [("", self)]
        stack: list[tuple[int, str]] = []
        lines: list[tuple[bool, str, str]] = []
        last = -NEAR
        for at, line in enumerate(self.text.splitlines()):
            heading, named_here = HEADING.match(line), HARDWARE.match(line)
            if heading:
                stack = [above for above in stack if above[0] < len(heading[1])]
            if heading or named_here or not any(text.strip() for _, _, text in lines):
                place = place_in(
                    heading[2] if heading else named_here[1] if named_here else line, backends=heading is not None
                )
                if place and heading:
                    stack.append((len(heading[1]), place))
                elif place:  # lines about the processor and the GPU of one machine stand together
                    near, level = at - last < NEAR and bool(stack), stack[-1][0] if stack else 0
                    stack = [*stack[:-1], (level, f"{stack[-1][1]}, {place}" if near else place)]
                last = at if place else last
            lines.append((heading is not None, stack[-1][1] if stack else "", line))
        places = dict.fromkeys(place for is_heading, place, line in lines if line.strip() and not is_heading)
        if len(places) < 2:
            return [(next(iter(places), ""), self)]
        return [
            (
                place,
                Document(
                    self.path, "\n".join(line if is_heading or own == place else "" for is_heading, own, line in lines)
                ),
            )
            for place in places
        ]

    @cached_property
    def _sheet(self) -> str:
        """The text from the first line on that is the header of a CSV file, all of it where none is."""
        lines = self.text.splitlines()
        starts = (at for at, line in enumerate(lines[:MOST_BEFORE]) if line.count(",") > 1 and NAMES.fullmatch(line))
        return "\n".join(lines[next(starts, 0) :])

    @cached_property
    def header(self) -> tuple[str, ...]:
        """The column names of a CSV file; any first line where it is none."""
        first = next((line for line in self._sheet.splitlines() if line.strip()), "")
        try:
            return tuple(name.strip() for name in next(csv.reader([first], strict=True), ()))
        except csv.Error:
            return ()

    @cached_property
    def table(self) -> list[dict[str, str]]:
        """Rows of a CSV file by column name.

        Raises:
            UsageError: no such table.
        """
        try:
            return sheet_of(self.path, self._sheet).rows
        except ValueError as error:
            raise UsageError(str(error)) from None


def _json(text: str) -> Any:
    try:
        return outside.parsed(text)
    except ValueError:
        return None


def document(path: Path) -> Document:
    """A file as text.

    Raises:
        UsageError: not readable, not text, or too large.
    """
    try:
        text = _log(outside.content(path, MOST_BYTES)).replace("\0", "")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "bytes that are no text"
        raise UsageError(f"{path}: expected a CSV file or a log, got {reason}; {PAGE}") from None
    return Document(path, text)


def _log(data: bytes) -> str:
    """The text of a log in whatever a shell wrote it; its figures do not depend on the guess."""
    likely = likely_encoding(data)
    if likely == "cp1252":
        with suppress(UnicodeDecodeError):
            return decoded(data)
    return data.decode(likely)


#: A line that says what hardware was used, or after a colon which.
HARDWARE = re.compile(
    r"\W{0,6}(?:gpu|device|hardware|test system|system|machine|board|soc|chip|cpu|platform)\b[^:|]{0,30}:\W{0,6}(\w.{0,200})",
    re.IGNORECASE,
)
NEAR = 8  # lines
MOST_BEFORE = 200  # lines before the header of a CSV file
#: A line of names of columns, without colons as lines about devices have them.
NAMES = re.compile(r'"?[A-Za-z][\w ./()%-]{0,60}"?(?:,"?[A-Za-z][\w ./()%-]{0,60}"?){2,200}')
HEADING = re.compile(r" {0,3}(#{1,6}) +(\S.{0,200})")
MARKS = re.compile(r"[*`\[]|\]\([^)]*\)|\]| +#+$")
COMMAND = re.compile(r"\bllama-[\w-]{1,30}(?:\.exe)?\b.{0,300}?\s(?:-m|--model|-hf|--hf-repo)[ =]\S")
LONGEST_NAME = 120
SCATTER = 0.2  # deviation of repetitions, as a share of their middle, from which a machine was not quiet


AMOUNT = re.compile(r"(\d{1,9})(\.\d{1,6})? *([KMGT]i?B|[KMBT])")
UNITS = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
EVERY_LAYER = 1_000_000  # more layers than any model has
#: Elements beside the weights that a file may count, such as factors of the rotary embedding.
UNCOUNTED = 4_096
#: What follows the type in `llama_model_ftype_name`: the mixture's size, or its bits; XL is unsloth's, whose bytes tell it.
MIXTURES = {"medium": "_m", "small": "_s", "large": "_l", "xl": "_m"}
WRITTEN = re.compile(
    r"(?<=[-_.: ])(i?q\d_\w+|q8|iq4|mxfp[48]|nvfp4|bf16|f16|fp16|f32|fp32|fp8|awq|gptq|w8a8|w4a16)(?=[-_.: ]|$)",
    re.IGNORECASE,
)
QUANTISED = {"awq": "int4_awq", "gptq": "int4_gptq", "w8a8": "int8", "fp16": "f16"}


Cells = dict[str, str | float]


class Stated(NamedTuple):
    """A number as a log prints it, and how far it may be off for having been rounded."""

    value: float
    slack: float = 0.0


@dataclass(frozen=True)
class Figure:
    """One figure: the columns of a measured CSV, and the model as the log names it.

    names: the most specific first. family: llama.cpp's name of the architecture ("" where the log has none).
    parameters, size: elements and bytes of the file, where stated. gpu_layers: how many were put on the GPU, None where
    it is not said or all. experts_on_cpu: the first layers, so many, whose experts lay in host memory; placed: patterns of tensors
    and where they were put by hand. gpu_bytes: memory of the GPU, where it is stated and a model may have been put there in part. fault: why it is not used.
    """

    names: tuple[str, ...]
    cells: Mapping[str, str | float] = field(default_factory=dict)
    family: str = ""
    parameters: Stated | None = None
    size: Stated | None = None
    device: str = ""
    gpu_layers: int | None = None
    experts_on_cpu: int = 0
    placed: str = ""
    gpu_bytes: float | None = None
    fault: str = ""


class Reader(Protocol):
    """A format."""

    @property
    def NAME(self) -> str:  # noqa: N802
        """How the format is called."""

    def recognises(self, document: Document) -> bool:
        """Whether a document is of this format, by its content."""

    def figures(self, documents: Sequence[Document]) -> Iterator[Figure]:
        """Every figure of documents of this format, used or not, in their order."""


class Unusable(Exception):
    """A figure that says why it cannot be used."""


def named(*names: object) -> tuple[str, ...]:
    """Names that can be shown, each once, none empty."""
    shown = (escaped(str(name)).strip()[:LONGEST_NAME] for name in names if isinstance(name, str))
    return tuple(dict.fromkeys(name for name in shown if name))


def amount(text: str) -> Stated | None:
    """`1.54 B` as 1.54e9 give or take half of the last digit; None where it is no such number."""
    match = AMOUNT.fullmatch(text.strip())
    if match is None or match[3] not in UNITS:
        return None
    unit = UNITS[match[3]]
    decimals = len(match[2] or ".") - 1
    return Stated(float(match[1] + (match[2] or "")) * unit, 0.5 * 10.0**-decimals * unit + UNCOUNTED)


def precision(file_type: str) -> str:
    """llama.cpp's name of a file type as that of a weight format: `Q4_K - Medium` is q4_k_m, `MXFP4 MoE` mxfp4, none is "".

    Raises:
        Unusable: a format that no profile is of.
    """
    stem, _, kind = file_type.lower().removeprefix("all ").removesuffix(" moe").replace("f32", "fp32").partition(" - ")
    stem = stem.removesuffix(" mix")
    found = next((name for name in (f"{stem}{MIXTURES.get(kind, '')}", stem) if not name or name in FORMATS), None)
    if found is None:
        raise Unusable(f"weights in {file_type!r}: no profile is of that format")
    return found


def format_in(name: str) -> str:
    """The weight format that the name of a file or a repository states, "" where it states none.

    Raises:
        Unusable: a format that no profile is of.
    """
    match = WRITTEN.search(name)
    stated = match[1].lower().replace("_xl", "_m") if match else ""
    return precision(QUANTISED.get(stated, stated))


def cells(line: str) -> list[str]:
    """Cells of a Markdown table's line, maybe quoted; none where it is no such line."""
    line = line.lstrip("> \t")
    if not line.startswith("|"):
        return []
    return [cell.strip().strip("`*") for cell in line.strip().strip("|").replace("\\|", " ").split("|")]


def rule(found: Sequence[str]) -> bool:
    """Whether cells are the line between a table's header and its rows."""
    return bool(found) and set("".join(found)) <= set("-: ")


def number(value: Any, what: str) -> float:
    """A finite number of at least 0.

    Raises:
        Unusable: it is none.
    """
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not (math.isfinite(found) and found >= 0):
        raise Unusable(f"{what}: expected a number, got none that can be used")
    return found


def stated(value: Any, what: str, slack: float = 0.0) -> Stated | None:
    """A number above 0 as a log states it, None where it does not.

    Raises:
        Unusable: it is none.
    """
    return Stated(positive(value, what), slack) if value else None


def whole(value: Any, what: str) -> int:
    """A whole number of at least 0.

    Raises:
        Unusable: it is none.
    """
    return round(number(value, what))


def positive(value: Any, what: str) -> float:
    """A finite number above 0.

    Raises:
        Unusable: it is none.
    """
    if not (found := number(value, what)) > 0:
        raise Unusable(f"{what}: expected more than 0, got 0")
    return found


def filled(base: Figure, measured: Callable[..., Cells], *source: Any, **options: Any) -> Figure:
    """A figure with the cells that a function reads from a source, beside its own; or why it is not used, its own fault first."""
    try:
        refuse((base.fault, base.fault))
        return replace(base, cells={**base.cells, **measured(*source, **options)})
    except Unusable as error:
        device = {name: cell for name, cell in base.cells.items() if name == "device"}
        return replace(base, cells=device, fault=str(error))


def cells_of(metric: str, value: float, prompt: int, output: int = 0, /, **more: str | float) -> Cells:
    """The cells of one speed or time: of one sequence where nothing else is said, a prefill where it has no output."""
    return {"metric": metric, "value": value, "batch": 1, "prompt_len": prompt, "gen_len": output, **more}


def part(entry: Any, *names: str) -> Mapping[str, Any]:
    """The first object that an entry holds under one of the names, empty where none is."""
    inner = [entry.get(name) for name in names] if isinstance(entry, Mapping) else []
    return next((each for each in inner if isinstance(each, Mapping)), {})


def refuse(*reasons: tuple[object, str]) -> None:
    """Stop at the first thing that makes a figure unusable.

    Raises:
        Unusable: with what is said of it.
    """
    for holds, reason in reasons:
        if holds:
            raise Unusable(reason)


def middle(samples: Sequence[float]) -> float:
    """The median of repetitions.

    Raises:
        Unusable: half of them lie too far from it; single ones may.
    """
    found = median(samples)
    refuse_scatter(median(abs(each - found) for each in samples), found)
    return found


def refuse_scatter(spread: float, mean: float) -> None:
    """Stop where repetitions lie too far apart to mean anything.

    Raises:
        Unusable: they do.
    """
    if mean > 0 and spread > SCATTER * mean:
        raise Unusable(
            f"repetitions scatter by more than {100 * SCATTER:.0f} %: others had the machine, or it throttled"
        )
