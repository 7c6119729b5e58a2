"""The flags of `evidence`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nas.terminal.flags import Flag, Json, Quiet, Word


@dataclass(frozen=True)
class EvidenceRequest:
    """Tables to ask; none: the evidence base."""

    tables: Annotated[
        tuple[Path, ...], Word("Tables of trained models, as `plas fit` reads them; without any the evidence base.")
    ] = ()
    laws: Annotated[tuple[str, ...], Flag("--law", "A further law by name or file; may be repeated.")] = ()
    published: Annotated[
        tuple[str, ...],
        Flag("--published", "NAME=FILE: a published file of a source of `plas list evidence`; may be repeated."),
    ] = ()
    question: Annotated[str | None, Flag("--question", "Show this question alone, table by table.")] = None
    json: Annotated[bool, Json] = False
    quiet: Annotated[bool, Quiet] = False
