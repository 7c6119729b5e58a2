"""The page of the default run: its bytes, the processor time it takes to write, when it is interactive, and its picture.

python benchmarks/report.py [RUN]    writes docs/images/report.png; needs chromium, chromedriver and selenium (extra browser)
"""

import base64
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from selenium import webdriver

from nas.answer.past_run import recalled, recorded_run
from nas.commands.report import FILE, write_report

IMAGE = Path(__file__).resolve().parents[1] / "docs" / "images" / "report.png"
WIDTH, HEIGHT = 1280, 720
READY = "return document.getElementById('frontier').dataset.ready === 'yes'"


def browser() -> webdriver.Chrome:
    """A headless Chromium as wide as a laptop."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    service = webdriver.ChromeService(shutil.which("chromedriver"))  # found, so that selenium looks nowhere else
    return webdriver.Chrome(options=options, service=service)


def interactive_ms(driver: webdriver.Chrome, page: Path) -> float:
    """Milliseconds from the start of loading to the last script's end."""
    driver.get(page.resolve().as_uri())
    return float(driver.execute_script("return performance.getEntriesByName('interactive')[0].startTime"))


def photograph(driver: webdriver.Chrome, page: Path, image: Path) -> None:
    """The top of a page as a picture, once everything is drawn."""
    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(page.resolve().as_uri())
    while not driver.execute_script(READY):
        time.sleep(0.05)
    time.sleep(0.5)
    shown = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
    image.write_bytes(base64.b64decode(shown))


def main() -> None:
    """Print the figures and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder, "default-nsga2")
        if len(sys.argv) < 2:
            subprocess.run(
                [sys.executable, "-m", "nas.run", "--algo", "nsga2", "--quiet", "--out", str(run)], check=True
            )
        outcome = recalled(recorded_run(run))
        begun = time.process_time()
        write_report(outcome, run)
        print(
            f"written in {time.process_time() - begun:.2f} s of processor time, {(run / FILE).stat().st_size:,} bytes"
        )
        driver = browser()
        try:
            print("interactive after", ", ".join(f"{interactive_ms(driver, run / FILE):.0f}" for _ in range(5)), "ms")
            photograph(driver, run / FILE, IMAGE)
        finally:
            driver.quit()


if __name__ == "__main__":
    main()
