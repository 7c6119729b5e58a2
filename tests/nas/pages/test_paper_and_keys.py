"""Pages on paper and by keyboard: nothing is cut, no control is printed, Tab reaches everything in order, names and contrasts are there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium", reason="selenium is not installed (extra browser)")
from selenium.webdriver import Keys

pytestmark = pytest.mark.slow

CHARTS = {"run": "frontier", "comparison": "fronts", "devices": "frontiers"}


def opened(page: Any, kind: str, path: Path, scheme: str = "light") -> None:
    page.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    page.open(path)
    page.until("return document.getElementById(arguments[0]).dataset.ready === 'yes'", CHARTS[kind])


@pytest.mark.parametrize("kind", CHARTS)
def test_paper_is_light_and_cuts_nothing(kind: str, written: Callable[[str], Path], page: Any) -> None:
    opened(page, kind, written(kind), "dark")
    pages, cut = page.printed()
    assert pages > 1
    assert cut == []
    assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for control in ("input[type=range]", "select", ".series.all", ".keys", ".answer button"):
        assert (
            page.run(
                "return [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility()).length", control
            )
            == 0
        ), control
    drawn = page.run(
        "return [...document.querySelectorAll('canvas.printed')].map(e => [e.width > 0, e.checkVisibility()])"
    )
    assert drawn
    assert all(all(one) for one in drawn)
    page.run("dispatchEvent(new Event('afterprint'))")
    assert page.run("return document.querySelectorAll('canvas.printed').length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", CHARTS)
def test_words_are_legible_and_everything_has_a_name(
    kind: str, scheme: str, written: Callable[[str], Path], page: Any
) -> None:
    opened(page, kind, written(kind), scheme)
    page.run("for (const folded of document.querySelectorAll('details')) folded.open = true")
    assert page.faint() == []
    assert page.unnamed() == []


@pytest.mark.parametrize("kind", ["comparison", "devices"])
def test_tab_reaches_every_series_in_order_and_shows_where_it_is(
    kind: str, written: Callable[[str], Path], page: Any
) -> None:
    opened(page, kind, written(kind))
    names = page.run("return [...document.querySelectorAll('[data-series]')].map(e => e.dataset.series)")
    assert len(names) > 2
    stops = page.stops(30)
    words = [word for word, _ in stops]
    first = words.index(names[0])
    assert words[first : first + len(names) + 2] == [*names, "all", "none"]
    assert all(seen for _, seen in stops[: first + len(names) + 2])
    assert words[0] == "Skip to the answer"


def visible(page: Any, chart: str) -> int:
    found: int = page.run(
        "const [view] = [...Bokeh.index.roots].filter(v => v.el.closest('#' + arguments[0]) && v.el.offsetWidth);"
        "return view.model.renderers.filter(r => r.visible).length",
        chart,
    )
    return found


@pytest.mark.parametrize("kind", ["comparison", "devices"])
def test_a_name_hides_its_series_in_every_chart_and_escape_brings_all_back(
    kind: str, written: Callable[[str], Path], page: Any
) -> None:
    opened(page, kind, written(kind))
    charts = ("gap", "share", "fronts") if kind == "comparison" else ("frontiers",)
    for chart in charts:
        page.until("return document.getElementById(arguments[0]).dataset.ready === 'yes'", chart)
    before = [visible(page, chart) for chart in charts]
    button = page.driver.find_element("css selector", "[data-series]")
    button.send_keys(Keys.SPACE)
    assert button.get_attribute("aria-pressed") == "false"
    hidden = [visible(page, chart) for chart in charts]
    assert all(now < then for now, then in zip(hidden, before, strict=True))
    button.send_keys(Keys.ESCAPE)
    assert [visible(page, chart) for chart in charts] == before
    page.driver.find_element("xpath", "//button[text()='none']").click()
    assert page.run("return document.querySelectorAll('[data-series][aria-pressed=true]').length") == 0


def test_what_is_hidden_stays_hidden_when_the_study_or_an_axis_changes(
    written: Callable[[str], Path], page: Any
) -> None:
    opened(page, "comparison", written("comparison"))
    page.driver.find_element("css selector", "[data-series=sobol]").click()
    for menu, choice in (("#which", 1), ("#axis-0", 2)):
        page.run("document.getElementById('fronts').dataset.ready = 'no'")
        page.enter(menu, choice)
        page.until("return document.getElementById('fronts').dataset.ready === 'yes'")
        assert page.run("return document.querySelector('[data-series=sobol]').ariaPressed") == "false"
        page.run("document.querySelector('[data-series=sobol]').click()")
        shown = visible(page, "fronts")
        page.run("document.querySelector('[data-series=sobol]').click()")
        assert visible(page, "fronts") == shown - 1
