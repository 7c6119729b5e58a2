"""The work of `reproduce`: claims recomputed, their page in Markdown, or as JSON."""

from dataclasses import asdict

from nas.files.tables import write
from nas.terminal.console import notice, say, say_json
from plas_paper.reproduce import reproduction_page as page
from plas_paper.reproduce.request import ReproduceRequest


def reproduce(request: ReproduceRequest) -> None:
    """Recompute and write.

    Raises:
        PlasError: the folder cannot be written.
    """
    sections = page.reproduction()
    verdicts = page.verdicts(sections)
    if request.json:
        claims = [{"section": name, **asdict(claim)} for name, claims in sections.items() for claim in claims]
        say_json({"verdicts": verdicts, "claims": claims})
        return
    write(request.out, page.page(sections))
    for verdict, count in verdicts.items():
        say(f"{count:3d}  {verdict}")
    if not request.quiet:
        notice(f"{request.out} written")
