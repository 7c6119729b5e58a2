"""A headless Chromium for the pages, and runs to make pages of."""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nas.files import yaml_source
from nas.work import report as reporting
from nas.work import run as running
from nas.work.run_request import Request

PATIENCE = 60.0  # seconds for what takes one on an idle machine
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--window-size=1280,900",
    "--force-device-scale-factor=1",
)


class Page:
    """A page open in a browser, driven and read as a reader would."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, path: Path) -> "Page":
        """Load a page from disk and wait until it is interactive."""
        self.driver.get_log("browser")
        self.driver.get(path.resolve().as_uri())
        self.until("return document.documentElement.dataset.loaded === 'yes'")
        return self

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns in the page."""
        return self.driver.execute_script(script, *arguments)

    def until(self, script: str, *arguments: Any) -> Any:
        """The first true result of a script."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if found := self.run(script, *arguments):
                return found
            time.sleep(0.05)
        raise AssertionError(f"never true: {script}; {self.complaints()}")

    def text(self, selector: str) -> str:
        """The text of the first element of a selector."""
        return str(self.run("return document.querySelector(arguments[0]).textContent", selector))

    def data(self, selector: str, name: str) -> str:
        """A data attribute of an element."""
        return str(self.run("return document.querySelector(arguments[0]).dataset[arguments[1]]", selector, name))

    def enter(self, selector: str, value: object) -> None:
        """Give an input a value as a user's hand does."""
        self.run(
            "const e = document.querySelector(arguments[0]); e.value = arguments[1]; "
            "e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change', {bubbles: true}))",
            selector,
            str(value),
        )

    def complaints(self) -> list[str]:
        """What the console said beside BokehJS's greeting: errors, warnings, refusals of the page's policy."""
        said = [f"{entry['level']}: {entry['message']}" for entry in self.driver.get_log("browser")]
        return [line for line in said if "setting log level" not in line]


@pytest.fixture(scope="session")
def driver() -> Iterator[Any]:
    """A headless Chromium; what needs one is skipped by name where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (extra browser)")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    chromedriver = shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.skip(f"needs chromium and chromedriver on the PATH, got {chromium} and {chromedriver}")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    yield made
    made.quit()


@pytest.fixture
def page(driver: Any) -> Iterator[Page]:
    """The browser's page, in light colours and as wide as a laptop; the console stays silent whatever a test does."""
    shown = Page(driver)
    yield shown
    assert shown.complaints() == []
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A finished run with its page, without pictures, from the keys of a study."""

    def made(folder: str = "run", flags: dict[str, Any] | None = None, **study: Any) -> Path:
        where = tmp_path_factory.mktemp("page")
        (where / "study.yaml").write_text(yaml_source.dump(study), encoding="utf-8")
        request = Request(
            flags or {"algo": "random", "evaluations": 100},
            [],
            str(where / "study.yaml"),
            out=where / folder,
            quiet=True,
        )
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(running, "draw", reporting.write_report)
            try:
                running.execute(request)
            except running.InfeasibleError:
                assert study.get("budgets")
        return where / folder

    return made
