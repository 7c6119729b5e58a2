"""A reproduction as one file, `reproduction.json`: everything that its page shows, so that the page can be made again from it."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config

from nas.errors import UsageError
from nas.files.tables import write_json
from objectives import outside
from plas_paper.reproduce import FILE
from plas_paper.reproduce.claim import VERDICTS, Claim, Number
from plas_paper.reproduce.corrections import Correction
from plas_paper.reproduce.reproduction_page import Reproduction
from plas_paper.reproduce.sensitivity import HEADER
from plas_paper.reproduce.series import Pictures

FORMAT, VERSION = "plas-reproduction", 1
MOST_BYTES = 20_000_000
_Count = Annotated[int, Field(ge=0)]


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class ClaimRow:
    """A claim with its statement, section and finding, as the file has it."""

    section: str
    key: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")]
    text: str
    label: str
    printed: str
    how: str
    formula: str
    corrected: str
    corrections: tuple[_Count, ...]
    verdict: Annotated[str, Field(pattern="^(" + "|".join(VERDICTS) + ")$")]
    found: str
    command: str
    numbers: tuple[Number, ...]
    designs: _Count
    settings: _Count


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class Record:
    """The content of the file beside its format and version."""

    verdicts: dict[str, _Count]
    claims: tuple[ClaimRow, ...]
    sensitivity: tuple[dict[str, str], ...]
    corrections: tuple[Correction, ...]
    pictures: Pictures


_ADAPTER = TypeAdapter(Record)


def recorded(found: Reproduction, pictures: Pictures) -> Record:
    """A reproduction as its file has it."""
    claims = tuple(_row(title, claim) for title, claims in found.sections.items() for claim in claims)
    sensitivity = tuple(dict(zip(HEADER, row, strict=True)) for row in found.sensitivity)
    made = Record(found.verdicts, claims, sensitivity, tuple(found.corrections), pictures)
    return _ADAPTER.validate_python(asdict(made))  # as it will be read: 1942 is 1942.0


def _row(section: str, claim: Claim) -> ClaimRow:
    found = {name: getattr(claim, name) for name in ("verdict", "found", "command", "numbers", "designs", "settings")}
    return ClaimRow(section=section, **asdict(claim.statement), **found)


def as_json(record: Record) -> dict[str, Any]:
    """The record as plain content."""
    return {"format": FORMAT, "version": VERSION, **asdict(record)}


def write(record: Record, folder: Path) -> None:
    """Write the file.

    Raises:
        PlasError: the folder cannot be written.
    """
    write_json(folder / FILE, as_json(record))


def read(folder: Path) -> Record:
    """The record of a folder; nothing in it is trusted.

    Raises:
        UsageError: no such file, or not one that this version writes.
    """
    path = folder / FILE
    try:
        content = outside.json_of(path, MOST_BYTES, own=True)
        kind = (content.pop("format", None), content.pop("version", None)) if isinstance(content, dict) else None
        if kind != (FORMAT, VERSION):
            raise ValueError(f"not {FORMAT} {VERSION}")
        return _ADAPTER.validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except OSError as error:
        reason = error.strerror or "nothing"
    except ValueError as error:
        reason = str(error) or "nothing"
    raise UsageError(f"{path}: expected what 'plas reproduce' writes, got {reason[:200]}; write it again") from None
