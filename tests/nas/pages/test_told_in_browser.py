"""Pages of a fit and of a calibration in a headless Chromium: linked pictures, clicks and keys, light, dark, narrow, in print."""

import base64
from itertools import product
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium", reason="selenium is not installed (extra browser)")
from selenium.webdriver import ActionChains, Keys

from tests.nas.pages.test_calibration_page import calibrated, folder
from tests.nas.pages.test_fit_page import fitted

pytestmark = pytest.mark.slow
__all__ = ["calibrated", "fitted", "folder"]


def ready(page: Any, *names: str) -> None:
    """Wait until pictures are drawn."""
    for name in names:
        page.until("return document.getElementById(arguments[0]).dataset.ready === 'yes'", name)


def clicked(page: Any, name: str, rows: int) -> set[str]:
    """Which rows clicks all over a picture select, until so many were."""
    chart = page.driver.find_element("id", name)
    page.run("arguments[0].scrollIntoView()", chart)
    width, height = page.run("return [arguments[0].offsetWidth, arguments[0].offsetHeight]", chart)
    found = set[str]()
    for x, y in product(range(90, width - 20, 15), range(60, height - 60, 15)):
        ActionChains(page.driver, duration=0).move_to_element_with_offset(
            chart, x - width / 2, y - height / 2
        ).click().perform()
        found |= {page.data("#panel", "index")} - {""}
        if len(found) >= rows:
            break
    return found


def marked_in(page: Any) -> list[int]:
    """How many rows each picture marks as selected."""
    found = page.run(
        "return Bokeh.documents.flatMap(d => d.roots()).flatMap(plot => plot.renderers ?? [])"
        ".filter(r => r.glyph?.marker?.value === 'circle_cross').map(r => r.data_source.data.x.length)"
    )
    assert isinstance(found, list)
    return found


def emulate(page: Any, scheme: str, width: int) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def fits_and_prints(page: Any, path: Path, first: str) -> None:
    """In light and dark, wide and narrow nothing is wider than the window; it prints; no picture of a stranger's is there."""
    for scheme, width in (("dark", 1400), ("dark", 400), ("light", 400)):
        emulate(page, scheme, width)
        page.open(path)
        ready(page, first)
        assert page.run("return document.documentElement.scrollWidth") <= width
        assert page.data(f"#{first}", "drawn") == scheme
    printed = base64.b64decode(page.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})["data"])
    assert printed.startswith(b"%PDF")
    assert len(printed) > 20_000
    assert page.run("return document.querySelectorAll('img, main b').length") == 0
    assert page.driver.title != "taken"


def test_a_fits_rows_are_linked_read_and_walked(fitted: Path, page: Any) -> None:
    page.open(fitted / "report.html")
    ready(page, "predicted", "intervals")
    assert page.run("return document.querySelectorAll('#residuals canvas, #residuals .chart').length") >= 3
    page.driver.find_element("id", "predicted").send_keys(Keys.HOME)
    first = page.data("#panel", "index")
    assert marked_in(page) == [1] * 4  # predicted and observed; residuals over tokens, parameters and the prediction
    page.driver.find_element("id", "predicted").send_keys(Keys.ARROW_RIGHT)
    assert page.data("#panel", "index") != first
    page.driver.find_element("id", "predicted").send_keys(Keys.ESCAPE)
    assert page.text("#said") == "Nothing selected"
    assert marked_in(page) == [0] * 4
    assert len(clicked(page, "predicted", rows=3)) == 3
    for part in ("observed", "left out", "Design", "Share of each term", "parameters", "irreducible"):
        assert part in page.text("#panel"), part
    page.run("document.getElementById('predicted').dataset.ready = 'no'")
    page.enter("#predicted-by", 1)
    ready(page, "predicted")
    for index in page.run("return [...document.querySelectorAll('tr[data-index]')].map(row => row.dataset.index)"):
        page.run('document.querySelector(`tr[data-index="${arguments[0]}"]`).click()', index)
        assert page.data("#panel", "index") == index
    fits_and_prints(page, fitted / "report.html", "predicted")


def test_a_calibrations_rows_are_linked_read_and_walked(calibrated: Path, page: Any) -> None:
    page.open(calibrated / "report.html")
    ready(page, "prefill", "decode", "errors")
    worst = page.run("return document.querySelector('tr[data-index]').dataset.index")
    assert page.data("#panel", "index") == worst
    page.driver.find_element("id", "prefill").send_keys(Keys.END)
    assert page.data("#panel", "index") != ""
    assert sorted(marked_in(page)) == [0, 1, 1]  # its own phase, and the errors of both
    assert len(clicked(page, "decode", rows=2)) == 2
    for part in ("measured ms", "held out", "in-sample", "datasheet", "generated tokens", "engine A, int4, batch 1"):
        assert part in page.text("#panel"), part
    for menu, options in (("predicted-by", 3), ("marked-by", 4), ("errors-across", 4)):
        for option in range(options):
            page.run("document.getElementById('errors').dataset.ready = 'no'")
            page.enter(f"#{menu}", option)
            ready(page, "errors")
    fits_and_prints(page, calibrated / "report.html", "prefill")
