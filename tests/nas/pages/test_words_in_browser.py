"""Words of the first screen explain themselves: by pointing, by a tap, by Tab; the sentence stays inside the window and ends with Esc."""

import json
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium", reason="selenium is not installed (extra browser)")
from selenium.webdriver import ActionChains, Keys

from tests.nas.pages.geometry import settled, shown_at

pytestmark = pytest.mark.slow

MEANINGS: dict[str, str] = json.loads(files("nas.pages").joinpath("assets", "glossary.json").read_text("utf-8"))
LETTERS = (
    r"\b(?:[ldEK](?= \d)|gqa|[a-z]+_[a-z_]+)\b(?!@)|IGD\+|hypervolume(?: gap)?|\bprefill\b|\bdecode\b|\bresident\b"
)
FIRST = "const first = [document.querySelector('header'), document.querySelector('main > section')];"


def told(page: Any) -> str:
    """What the tooltip says, "" without one."""
    return str(page.run("return document.getElementById('meaning')?.textContent ?? ''"))


@pytest.mark.parametrize("kind", ["run", "board", "nothing", "three"])
def test_every_abbreviation_of_the_first_screen_is_explained(
    kind: str, written: Callable[[str], Path], page: Any
) -> None:
    page.open(written(kind))
    text = page.run(FIRST + "return first.map(part => part.innerText).join(' ')")
    known = set(
        page.run(FIRST + "return first.flatMap(part => [...part.querySelectorAll('abbr')]).map(e => e.dataset.word)")
    )
    names = {"hw_codesign", "two_axes"}  # of laws
    assert {word for word in re.findall(LETTERS, text) if word not in names} <= known
    assert known <= set(MEANINGS)
    assert len(known) > 3


def test_pointing_tab_and_a_tap_explain_a_word_and_escape_ends_it(written: Callable[[str], Path], page: Any) -> None:
    page.open(written("run"))
    settled(page)
    word = page.driver.find_element("css selector", "main abbr[data-word=width]")
    ActionChains(page.driver, duration=0).move_to_element(word).perform()
    assert told(page) == f"width: {MEANINGS['width']}."
    ActionChains(page.driver, duration=0).move_to_element(page.driver.find_element("tag name", "h1")).perform()
    assert told(page) == ""
    for _ in range(30):
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        if page.run("return document.activeElement.dataset.word") == "KV":
            break
    assert told(page) == f"KV: {MEANINGS['KV']}."
    assert page.run("return document.activeElement.getAttribute('aria-describedby')") == "meaning"
    page.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert told(page) == ""


@pytest.mark.parametrize("width", [360, 768])
def test_a_tap_explains_the_whole_design_inside_the_window(
    width: int, written: Callable[[str], Path], page: Any
) -> None:
    shown_at(page, width)
    page.open(written("run"))
    settled(page)
    page.driver.find_element("css selector", "main abbr[data-word=KV]").click()
    for word in ("width", "experts", "FFN ratio", "KV"):
        assert f"{word}: {MEANINGS[word]}." in told(page)
    box = page.run("return document.getElementById('meaning').getBoundingClientRect().toJSON()")
    assert 0 <= box["left"] < box["right"] <= width
    assert 0 <= box["top"] < box["bottom"] <= 800


def test_a_strangers_name_explains_nothing_and_stays_text(
    tiny: dict[str, Any], run_of: Callable[..., Path], page: Any
) -> None:
    name = "<abbr data-word=constructor>l 3</abbr>"
    page.open(run_of(space=tiny, applications={name: {"total_ms": 100}}) / "report.html")
    assert page.run("return document.querySelectorAll('abbr[data-word=constructor]').length") == 0
    assert name in page.text("main")
