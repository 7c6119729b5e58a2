"""The work of `reproduce`: claims recomputed, their page in Markdown, or as JSON."""

from dataclasses import asdict

from nas.files.tables import write
from nas.terminal.console import notice, say, say_json
from plas_paper.reproduce import reproduction_page as page
from plas_paper.reproduce.request import ReproduceRequest
from plas_paper.reproduce.sensitivity import HEADER


def reproduce(request: ReproduceRequest) -> None:
    """Recompute and write.

    Raises:
        PlasError: the folder cannot be written.
    """
    found = page.reproduction()
    if request.json:
        say_json(in_numbers(found))
        return
    write(request.out, page.page(found))
    for verdict, count in found.verdicts.items():
        say(f"{count:3d}  {verdict}")
    if not request.quiet:
        notice(f"{request.out} written")


def in_numbers(found: page.Reproduction) -> dict[str, object]:
    """Verdicts, claims by section, the table of what the paper leaves open, and corrections, as JSON."""
    return {
        "verdicts": found.verdicts,
        "claims": [{"section": name, **asdict(claim)} for name, claims in found.sections.items() for claim in claims],
        "sensitivity": [dict(zip(HEADER, row, strict=True)) for row in found.sensitivity],
        "corrections": [asdict(correction) for correction in found.corrections],
    }
