"""The work of `reproduce`: claims recomputed, their page in Markdown with pictures, their record, their page to explore."""

from pathlib import Path

from nas.errors import UsageError
from nas.files.own_files import made_folder
from nas.files.tables import write
from nas.pages.page import FILE as REPORT
from nas.terminal.console import notice, say, say_json
from plas_paper.reproduce import FILE, record
from plas_paper.reproduce import reproduction_page as page
from plas_paper.reproduce.answers import recognises
from plas_paper.reproduce.page import reproduction_page
from plas_paper.reproduce.request import ReproduceRequest
from plas_paper.reproduce.series import pictures


def reproduce(request: ReproduceRequest) -> None:
    """Recompute and write.

    Raises:
        UsageError: another's report has its place.
        PlasError: the folder cannot be written.
    """
    folder = request.out.parent
    if not request.json:
        refuse_others(folder)
    from plas_paper.reproduce.drawing import draw

    found = page.reproduction()
    kept = record.recorded(found, pictures())
    if request.json:
        say_json(record.as_json(kept))
        return
    write(request.out, page.page(found, draw(folder / "images"), "images"))
    record.write(kept, folder)
    write(folder / REPORT, reproduction_page(kept))
    for verdict, count in found.verdicts.items():
        say(f"{count:3d}  {verdict}")
    if not request.quiet:
        notice(f"{request.out}, its pictures in {folder / 'images'}, {folder / FILE} and {folder / REPORT} written")


def refuse_others(folder: Path) -> None:
    """See that a report that stands where ours goes is ours.

    Raises:
        UsageError: it belongs to a run, a comparison or a study.
    """
    made_folder(folder)
    if (folder / REPORT).exists() and not recognises(folder):
        raise UsageError(
            f"--out: expected a folder without another's {REPORT}, got {folder}; name a page in a folder of its own, "
            "as in --out claims/reproduction.md"
        )
