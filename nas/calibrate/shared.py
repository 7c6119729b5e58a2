"""Files of `plas measure --share`, anybody's, as rows of a measured CSV."""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ValidationError

from nas.calibrate.document import Document
from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import Faults
from nas.files.tables import csv_text
from objectives.calibrating.shared import KIND, VERSION, SharedMeasurements


def recognises(document: Document) -> bool:
    """An object that says so."""
    return isinstance(document.json, dict) and document.json.get("kind") == KIND


def shared_rows(documents: Sequence[Document]) -> tuple[list[str], list[str]]:
    """Lines of a measured CSV with the rows of all files, and what each is of.

    Raises:
        UsageError: a file of another version or with other fields, every fault with its line.
    """
    found = [_read(document) for document in documents]
    rows = [row for each in found for row in _rows(each)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = csv_text({name: [row.get(name, "") for row in rows] for name in names}).splitlines()
    return lines, list(dict.fromkeys(f"Shared measurements of {each.device}, {each.month}" for each in found))


def _read(document: Document) -> SharedMeasurements:
    if document.json.get("version") != VERSION:
        raise UsageError(
            f"{document.path}: expected version {VERSION} of shared measurements, got {document.json.get('version')!r}; "
            "read it with the version of PLAS that wrote it"
        )
    try:
        return SharedMeasurements.model_validate(document.json)
    except ValidationError as error:
        faults = Faults(yaml_source.read(document.path)[1])
        faults.add_validation(error, model=SharedMeasurements)
        faults.raise_if_any()
        raise


def _rows(found: SharedMeasurements) -> Iterator[dict[str, Any]]:
    for row in found.rows:
        told = row.model_dump(exclude={"architecture", "contended"}, exclude_none=True)
        yield {**row.architecture, **told, "contended": "yes" if row.contended else "no"}
