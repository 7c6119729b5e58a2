"""The page of a fleet in a headless Chromium, measured as the core's tests measure theirs: whole at every width, and on paper."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from core_tests import loaded

pytest.importorskip("selenium", reason="selenium is not installed (extra browser)")
pytestmark = pytest.mark.slow

WINDOWS = ((360, "light"), (390, "dark"), (768, "light"), (1440, "dark"))
SHEET = 1047  # CSS pixels of A4's height between margins of 1 cm
DEVICES = "jetson_agx_orin_64gb,raspberry_pi_5,rtx_4090"


geometry, browser = loaded("nas/pages/geometry.py"), loaded("nas/pages/conftest.py")
driver, page = browser.driver, browser.page  # fixtures


@pytest.fixture
def written(inside: Callable[..., Any]) -> Path:
    """The page of a small fleet."""
    assert inside("fleet", "--devices", DEVICES, "--quiet", "--out", "fleet").code == 0
    return Path("fleet/report.html")


def test_the_page_is_whole_at_every_width(written: Path, page: Any) -> None:
    for width, scheme in WINDOWS:
        geometry.shown_at(page, width, scheme)
        page.open(written)
        geometry.settled(page)
        asked = [check for check in geometry.CHECKS if check != "small" or width < geometry.PHONE]
        assert [(check, fault) for check in asked for fault in geometry.faults(page, check)] == [], width


def test_paper_has_no_sheet_more_than_its_content_fills(written: Path, page: Any) -> None:
    page.open(written)
    geometry.settled(page)
    sheets, cut = page.printed()
    assert cut == []
    assert sheets - page.run("return document.body.scrollHeight") / SHEET <= 1.5
