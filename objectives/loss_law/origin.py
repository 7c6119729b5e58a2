"""Where a fitted law comes from, as its file and the runs that use it say."""

from pydantic import BaseModel, ValidationError

from objectives.loss_law.law import Law

SHOWN_DIGITS = 8  # of a hash in a sentence


class NamedText(BaseModel):
    """A file by its name and the SHA-256 of its content."""

    name: str = ""
    sha256: str = ""

    def __str__(self) -> str:
        return f"{self.name or '(no name)'} ({self.sha256[:SHOWN_DIGITS] or 'no hash'})"


class Origin(BaseModel):
    """What a law's provenance says of its fit: the tables, their rows and tokens, its verdict, the law's own file.

    seen: hashes of the tables that the laws before it were fitted on, where it was fitted on top of one; pooled: of a law
    of published trainings how many of each table.
    """

    form: str = ""
    rows: int | None = None
    tables: tuple[NamedText, ...] = ()
    tokens: tuple[float, float] | None = None
    seen: tuple[str, ...] = ()
    pooled: dict[str, int] = {}
    verdict: str = ""
    file: NamedText | None = None


def origin_of(law: Law) -> Origin | None:
    """Where a law comes from; None for one that says nothing of it, or nothing that can be read."""
    try:
        return Origin.model_validate(law.provenance) if law.provenance else None
    except ValidationError:
        return None


def tables_seen(law: Law) -> list[str]:
    """Hashes of every table that a law, or one that it was fitted on top of, was fitted on."""
    found = origin_of(law)
    return [] if found is None else [*found.seen, *(each.sha256 for each in found.tables)]


def origin_line(law: Law) -> str:
    """Form, tables, rows, tokens, standard deviation and file of a law in one line; "" where it says nothing of them."""
    found = origin_of(law)
    if found is None:
        return ""
    form = found.form or _trainings(found) or (law.form if isinstance(law.form, str) else "a form of its own")
    tables = " and ".join(str(each) for each in found.tables[:2])
    tables += f" and {len(found.tables) - 2} more tables" if len(found.tables) > 2 else ""
    parts = [
        f"Law {law.name}: {form}",
        "" if found.rows is None else f"{found.rows} rows" + (f" of {tables}" if tables else ""),
        "" if found.tokens is None else _tokens(*found.tokens),
        "" if law.residual_sd is None else f"residual standard deviation {law.residual_sd:.3g} nats",
        "" if found.file is None else f"file {found.file}",
    ]
    return ", ".join(part for part in parts if part)


def verdict_line(law: Law) -> str:
    """What its own fit says that a law is good for; "" where it does not."""
    found = origin_of(law)
    return f"Verdict of the law's fit: {found.verdict}" if found is not None and found.verdict else ""


def _trainings(found: Origin) -> str:
    """`pooled from 1,838 published trainings in 19 tables`; "" of a law that is not pooled."""
    used = [rows for rows in found.pooled.values() if rows]
    return f"pooled from {sum(used):,} published trainings in {len(used)} tables" if used else ""


def _tokens(least: float, most: float) -> str:
    return f"{most:.3g} tokens" if least == most else f"{least:.3g} to {most:.3g} tokens"
