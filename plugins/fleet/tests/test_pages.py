"""The pages of this package: links that lead somewhere, pictures that are there, samples that are what is printed."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).resolve().parents[1]
ROOT = HERE.parents[1]
PAGES = [HERE / "README.md", *sorted((HERE / "docs").glob("*.md"))]


def prose(page: Path) -> str:
    """A page without its code."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`]*`", "`", text)


def anchors(page: Path) -> set[str]:
    """What its headings are linked by."""
    titles = re.findall(r"^#{1,6} +(.*?) *$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_and_picture_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"(?<!\\)\]\(([^)\s]+)\)", prose(page)):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not link.startswith("https://"):
            assert target.is_file(), link
            assert not anchor or anchor in anchors(target), link


@pytest.fixture(scope="module")
def samples() -> ModuleType:
    """tests/docs/samples.py of the checkout, which runs pages."""
    spec = importlib.util.spec_from_file_location("samples_of_pages", ROOT / "tests" / "docs" / "samples.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["samples_of_pages"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.samples
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_what_is_printed(page: Path, samples: ModuleType) -> None:
    wrong = samples.checked(page.relative_to(ROOT).as_posix())
    assert not wrong, "\n".join(wrong)
