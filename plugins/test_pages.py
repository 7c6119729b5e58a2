"""The packages' pages: links that lead somewhere, and samples that are what is printed."""

import re
from pathlib import Path

import pytest
from core_tests import ROOT, loaded

PAGES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "plugins").glob("*/docs/*.md"))
READMES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "plugins").glob("[!.]*/README.md"))


def test_every_package_has_a_page() -> None:
    packages = {path.parent.name for path in (ROOT / "plugins").glob("*/pyproject.toml")}
    assert {Path(page).parts[1] for page in READMES} == packages <= {Path(page).parts[1] for page in PAGES}


def prose(page: Path) -> str:
    """A page without its code."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`]*`", "`", text)


def anchors(page: Path) -> set[str]:
    """What its headings are linked by."""
    titles = re.findall(r"^#{1,6} +(.*?) *$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", [*PAGES, *READMES])
def test_every_link_leads_somewhere(name: str) -> None:
    page = ROOT / name
    for link in re.findall(r"(?<!\\)\]\(([^)\s]+)\)", prose(page)):
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if not link.startswith("https://"):
            assert target.exists(), link
            assert not anchor or target.suffix != ".md" or anchor in anchors(target), link


@pytest.mark.samples
@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_is_printed(page: str) -> None:
    wrong = loaded("docs/samples.py").checked(page)
    assert not wrong, "\n".join(["run: python tests/docs/samples.py " + page, *wrong])
