"""Pages measured in a headless Chromium, from a phone's width to a desk's, light and dark: nothing overprints, is cut, scrolls or is too small."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium", reason="selenium is not installed (extra browser)")
from tests.nas.pages.geometry import CHECKS, PHONE, faults, settled, shown_at

pytestmark = pytest.mark.slow

KINDS = ("run", "many", "nothing", "three", "board", "comparison", "devices")
WINDOWS = ((360, "light"), (390, "dark"), (768, "light"), (1440, "dark"))


def found(page: Any, path: Path, width: int, scheme: str) -> list[str]:
    """Every fault of a page in a window; what a finger needs is asked of handhelds alone."""
    page.driver.get("about:blank")  # the page before would be laid out anew for this window
    shown_at(page, width, scheme)
    page.open(path)
    page.run("for (const fold of document.querySelectorAll('.fold')) fold.open = true")
    settled(page)
    asked = [check for check in CHECKS if check != "small" or width < PHONE]
    return [f"{width}, {check}: {fault}" for check in asked for fault in faults(page, check)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_whole_at_every_width(kind: str, written: Callable[[str], Path], page: Any) -> None:
    path = written(kind)
    assert [fault for width, scheme in WINDOWS for fault in found(page, path, width, scheme)] == []


FIGURE = "const plot = [...Bokeh.index.roots].find(view => view.el.closest('#frontier')).model;"
#: What makes each check fail, done to a page that has no fault.
SABOTAGE = {
    "overprinted": "document.querySelector('h1').nextElementSibling.style.marginTop = '-20px'",
    "cut off": "Object.assign(document.querySelector('#pick p').style, {width: '9em', overflow: 'hidden', whiteSpace: 'nowrap'})",
    "scrolling": "document.querySelector('#pick p').style.width = '800px'",
    "small": "document.querySelector('#budgets button').style.minHeight = '20px'",
    "legends": "document.querySelector('.legend').style.marginTop = '-150px'",
    "names": f"{FIGURE} const text = plot.renderers.find(r => r.glyph.type === 'Text' && r.data_source.data.name.length > 1).data_source;"
    "text.data = {...text.data, to_x: text.data.to_x.map(() => text.data.to_x[0]), to_y: text.data.to_y.map(() => text.data.to_y[0])}",
    "ticks": f"{FIGURE} const low = plot.x_range.start, high = plot.x_range.end;"
    "for (const a of plot.below) a.ticker = new Bokeh.FixedTicker({ticks: [0.50, 0.51, 0.52].map(t => low + t * (high - low))})",
}


@pytest.mark.parametrize("check", CHECKS)
def test_a_fault_is_found(check: str, written: Callable[[str], Path], page: Any) -> None:
    assert found(page, written("many"), 360, "light") == []
    page.run(SABOTAGE[check])
    assert faults(page, check) != []


SHEET = 1047  # CSS pixels of A4's height between margins of 1 cm
APART = "document.querySelectorAll('section, .panel, .wide').forEach(part => { part.style.breakBefore = 'page'; })"


def overhang(page: Any) -> float:
    """Sheets of paper beyond what the content fills; nothing is cut at their right."""
    sheets, cut = page.printed()
    assert cut == []
    filled: float = page.run("return document.body.scrollHeight") / SHEET
    return float(sheets - filled)


@pytest.mark.parametrize("kind", KINDS)
def test_paper_has_no_sheet_more_than_its_content_fills(kind: str, written: Callable[[str], Path], page: Any) -> None:
    page.open(written(kind))
    settled(page)
    assert overhang(page) <= 1.5


def test_half_empty_sheets_are_found(written: Callable[[str], Path], page: Any) -> None:
    page.open(written("run"))
    settled(page)
    page.run(APART)
    assert overhang(page) > 1.5


@pytest.mark.parametrize("width", [360, 411, 533, 768, 1113])
def test_no_line_breaks_a_flag_or_a_number_of_experts(width: int, written: Callable[[str], Path], page: Any) -> None:
    shown_at(page, width)
    page.open(written("run"))
    settled(page)
    broken = """const range = document.createRange(), found = [], walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) for (const {0: word, index} of walker.currentNode.data.matchAll(/--[a-z]+|top-\\d+/g)) {
        if (walker.currentNode.parentElement.closest('pre, .chart, #said, #pick, #panel')) continue;
        range.setStart(walker.currentNode, index); range.setEnd(walker.currentNode, index + word.length);
        found.push([word, new Set([...range.getClientRects()].map(r => r.top)).size]);
      }
      return found;"""
    found = page.run(broken)
    assert {"--preset", "top-2"} <= {word for word, _ in found}
    assert [word for word, lines in found if lines > 1] == []
