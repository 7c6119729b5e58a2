"""A headless Chromium for the pages, and runs to make pages of."""

import base64
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nas.commands import report as reporting
from nas.commands import run as running
from nas.commands.requests import RunRequest
from nas.files import yaml_source

#: Text whose contrast with what lies behind it is under 4.5 (WCAG 2.1, 1.4.3): painted on a canvas, so that mixed colours count as shown.
FAINT = """
const pixel = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d', {willReadFrequently: true});
const seen = colours => { pixel.clearRect(0, 0, 1, 1); for (const c of colours) { pixel.fillStyle = c; pixel.fillRect(0, 0, 1, 1); } return pixel.getImageData(0, 0, 1, 1).data; };
const light = data => { const [r, g, b] = [...data].slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const grounds = e => e ? [...grounds(e.parentElement), getComputedStyle(e).backgroundColor] : ['white'];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
while (walker.nextNode()) {
  const e = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || !e.checkVisibility() || ['SCRIPT', 'STYLE', 'OPTION', 'NOSCRIPT'].includes(e.tagName)) continue;
  const behind = grounds(e), pair = [light(seen(behind)), light(seen([...behind, getComputedStyle(e).color]))].sort();
  if ((pair[1] + 0.05) / (pair[0] + 0.05) < 4.5) found.push(e.tagName + ' ' + e.className + ': ' + e.textContent.slice(0, 40));
}
return found;
"""
#: What a reader of the page's outline misses: controls and pictures without a name, headings that skip a level.
UNNAMED = """
const name = e => e.getAttribute('aria-label') || e.textContent.trim() || e.closest('label')?.textContent.trim() || e.labels?.[0]?.textContent.trim();
const bare = [...document.querySelectorAll('a, button, input, select, summary, [role]')].filter(e => !name(e)).map(e => e.outerHTML.slice(0, 80));
const levels = [...document.querySelectorAll('h1, h2, h3, h4')].map(e => Number(e.tagName[1]));
const skipped = levels.filter((level, i) => level > (levels[i - 1] ?? 0) + 1).map(level => `h${level} skips`);
return [...bare, ...skipped];
"""
#: Elements that end right of the paper, charts' own canvases aside.
CUT = """
const width = document.documentElement.clientWidth;
return [...document.querySelectorAll('body *')].filter(e => e.checkVisibility() && e.getBoundingClientRect().right > width + 1)
  .map(e => e.tagName + ' ' + e.className + ' ' + e.textContent.slice(0, 40));
"""
PAPER = 718  # CSS pixels of A4 between margins of 1 cm
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

    def faint(self) -> list[str]:
        """Text that is hard to read."""
        found: list[str] = self.run(FAINT)
        return found

    def unnamed(self) -> list[str]:
        """What has no name, and headings that skip a level."""
        found: list[str] = self.run(UNNAMED)
        return found

    def printed(self) -> tuple[int, list[str]]:
        """Pages of A4, and what is cut at their right."""
        content = self.driver.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})["data"]
        pages = len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(content)))
        self.run("dispatchEvent(new Event('beforeprint'))")
        scheme = self.run("return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'")
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
        size = {"width": PAPER, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        cut: list[str] = self.run(CUT)
        return pages, cut

    def stops(self, most: int) -> list[tuple[str, bool]]:
        """Where Tab stops, in turn from the top: the element in a word, and whether its focus is seen."""
        self.run("document.activeElement.blur(); window.scrollTo(0, 0)")
        found: list[tuple[str, bool]] = []
        for _ in range(most):
            self.driver.switch_to.active_element.send_keys("\ue004")
            word, seen = self.run(
                "const e = document.activeElement, s = getComputedStyle(e);"
                "return [e.id || e.dataset.series || e.textContent.trim().slice(0, 30) || e.value || e.tagName, "
                "s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2]"
            )
            found.append((word, seen))
        return found

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
    made.command_executor.client_config.timeout = 300  # seconds for one command, on a busy machine
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
    driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


MANY = {f"application {i}": {"total_ms": 10 + 5 * i} for i in range(12)} | {
    "one with a name as long as a line": {"total_ms": 17}
}
STUDIES: dict[str, dict[str, Any]] = {
    "run": {},
    "many": {"applications": MANY},
    "nothing": {"budgets": {"total_ms": 1e-3}},
    "three": {"objectives": ["loss", "total_ms", "memory_gb"]},
    "board": {"preset": "device", "budgets": {"total_ms": 400, "resident_gb": 8}},
}
DEVICES = ("--devices", "jetson_agx_orin_64gb,raspberry_pi_5,rtx_4090", "--quiet")


@pytest.fixture
def written(
    tmp_path: Path,
    tiny: dict[str, Any],
    inside: Callable[..., Any],
    run_of: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[str], Path]:
    """The report of a small run (see STUDIES), of a comparison or a device study."""
    monkeypatch.setattr("nas.compare.pictures.draw_all", lambda *_: None)

    def of(kind: str) -> Path:
        if kind in STUDIES:
            return run_of(space=tiny, **STUDIES[kind]) / "report.html"
        if kind == "devices":
            assert inside(kind, *DEVICES, "--out", tmp_path / kind).code == 0
        else:
            file, shared = tmp_path / "few.yaml", {"space": tiny, "baselines": []}
            studies = {"one": {}, "three": {"objectives": ["loss", "total_ms", "memory_gb"]}}
            content = {"algos": ["nsga2", "sobol"], "seeds": 2, "evaluations": 30, "study": shared, "studies": studies}
            file.write_text(yaml_source.dump(content))
            assert inside("compare", "--config", file, "--out", tmp_path / kind, "--quiet").code == 0
        return tmp_path / kind / "report.html"

    return of


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A finished run with its page, without pictures, from the keys of a study."""

    def made(folder: str = "run", flags: dict[str, Any] | None = None, **study: Any) -> Path:
        where = tmp_path_factory.mktemp("page")
        (where / "study.yaml").write_text(yaml_source.dump(study), encoding="utf-8")
        request = RunRequest(
            flags or {"algo": "random", "evaluations": 100},
            config=str(where / "study.yaml") if study else None,
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
