"""The pictures of the documentation, drawn again: run the commands of docs/gallery.md and take what each section says it makes.

python tests/docs/pictures.py

Commands that are marked as not run keep their pictures; so does what a run did not draw, which is said.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path

from samples import ROOT, Page, blocks_of

GALLERY = ROOT / "docs" / "gallery.md"
SHOWN = re.compile(r"!\[[^\]]*\]\((images/[^)]+)\)")
MADE = re.compile(r"`([^`\s]+\.(?:png|svg))`")


def pictures(text: str) -> list[tuple[str, str]]:
    """Of every section: what a command makes, and where the page shows it, in order."""
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    return [pair for section in sections for pair in zip(MADE.findall(section), SHOWN.findall(section), strict=True)]


def main() -> int:
    """Draw what can be drawn; exit code 1 when a command fails or does not make what the page says."""
    text, failed = GALLERY.read_text(encoding="utf-8"), False
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as shared:
        page = Page(Path(work), Path(shared))
        for block in blocks_of(text):
            fault = page.script(block) if block.kind == "bash" else ""
            failed |= bool(fault)
            sys.stdout.write(f"{block.lines[0]}: {fault or block.kind}\n")
        for made, shown in pictures(text):
            if (drawn := page.folder / made).exists():
                shutil.copyfile(drawn, ROOT / "docs" / shown)
            sys.stdout.write(f"{shown}: {'drawn' if drawn.exists() else 'kept'}\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
