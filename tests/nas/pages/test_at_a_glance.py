"""The page "an answer at a glance": any state of its sliders is the answer of the command that it shows, to the digit; quick, small, for everybody."""

import gzip
import json
import os
import random
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plas_range.atlas import WORKLOADS, Case, blocks_of, boards, made, model_losses, page_of, without_memory

PAGE = Path(__file__).resolve().parents[3] / "docs" / "at-a-glance.html"
STATES = int(os.environ.get("PLAS_STATES", "6"))  # states that are compared; 200 by hand
MEGABYTE = 2**20
AGAIN = "make the page again: python -m plas_range.atlas docs/at-a-glance.html"
THROTTLE, SECONDS = 4, 3.0


@pytest.fixture(scope="module")
def blocks() -> dict[str, Any]:
    return blocks_of(PAGE.read_text(encoding="utf-8"))


@pytest.fixture
def shown(page: Any) -> Any:
    """The shipped page in the browser."""
    pytest.importorskip("selenium", reason="selenium is not installed (extra browser)")
    return page.open(PAGE)


def test_every_board_is_on_a_small_page_that_says_what_the_package_says(blocks: dict[str, Any]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(gzip.compress(text.encode())) <= 3 * MEGABYTE
    assert list(blocks["shared"]["boards"]) == boards()
    assert text == page_of(blocks), AGAIN
    losses, chosen = model_losses(), random.Random(11)
    for board in chosen.sample(list(blocks["shared"]["boards"]), 3):
        precision, cases = chosen.choice(list(blocks[board]["formats"].items()))
        workload = chosen.randrange(len(WORKLOADS))
        case, memory = Case(board, precision, WORKLOADS[workload][1:], losses).content(), blocks["shared"]["memory"]
        case = without_memory(case, dict(memory[f"{precision} {workload}"]))
        assert json.loads(json.dumps(case)) == cases[workload], AGAIN


def test_making_a_page_goes_on_where_it_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def board(name: str, *_: Any) -> dict[str, Any]:
        asked.append(name)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return {"name": name, "class": "soc", "formats": {}}

    monkeypatch.setattr("plas_range.atlas.boards", lambda: ["m1_7c", "l4", "a18"])
    monkeypatch.setattr("plas_range.atlas.of_board", board)
    with pytest.raises(KeyboardInterrupt):
        made(tmp_path / "page.html", [])
    made(tmp_path / "page.html", [])
    assert asked == ["m1_7c", "l4", "l4", "a18"]
    made(tmp_path / "page.html", ["l4"])
    assert asked[4:] == ["l4"]
    assert list(blocks_of((tmp_path / "page.html").read_text())["shared"]["boards"]) == ["m1_7c", "l4", "a18"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(STATES))
def test_a_state_of_the_sliders_is_the_answer_of_its_command(
    shown: Any, blocks: dict[str, Any], inside: Callable[..., Any], tmp_path: Path, seed: int
) -> None:
    chosen = random.Random(seed)
    board = chosen.choice(list(blocks["shared"]["boards"]))
    shown.enter("#board", board)
    shown.enter("#format", chosen.choice(list(blocks[board]["formats"])))
    shown.enter("#workload", chosen.randrange(len(WORKLOADS)))
    for name in ("time", "memory"):
        shown.enter(f"#{name}", chosen.randint(0, int(shown.run(f"return document.getElementById('{name}').max"))))
    lines = shown.run("return [...document.querySelectorAll('#answer p')].map(p => p.textContent)")
    program, command, *words = shlex.split(shown.text("#command"))
    assert (program, command) == ("plas", "run")
    answer = inside("run", *words, "--no-plots", "--out", tmp_path / "run")
    if lines[0].startswith("Nothing fits"):
        assert answer.code == 3
        return
    printed = " ".join(answer.out.split())
    assert [line for line in lines if line not in printed] == []


def test_the_first_answer_is_quick_on_a_slow_phone(page: Any) -> None:
    page.driver.execute_cdp_cmd("Emulation.setCPUThrottlingRate", {"rate": THROTTLE})
    try:
        page.open(PAGE)
        took = page.run("return performance.getEntriesByName('answered')[0].startTime") / 1000
    finally:
        page.driver.execute_cdp_cmd("Emulation.setCPUThrottlingRate", {"rate": 1})
    assert page.run("return document.querySelectorAll('#answer p').length") > 4
    assert took <= SECONDS


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_a_screen_reader_and_paper(shown: Any, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    shown.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": 360, "height": 700, "deviceScaleFactor": 2, "mobile": True}
    shown.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert shown.run("return document.documentElement.scrollWidth") <= 360
    assert shown.faint() == []
    assert shown.unnamed() == []
    stops = shown.stops(12)
    at = [word for word, _ in stops].index("board")
    assert [word for word, _ in stops[at : at + 5]] == ["board", "format", "workload", "time", "memory"]
    assert all(seen for _, seen in stops)
    assert shown.printed()[1] == []


def test_keys_move_a_slider_and_a_link_keeps_the_state(shown: Any) -> None:
    before = shown.text("#command")
    shown.driver.find_element("id", "time").send_keys("\ue014")
    assert shown.text("#command") != before
    kept, link = shown.text("#command"), shown.run("return location.href")
    shown.driver.get("about:blank")
    shown.driver.get(link)
    assert shown.text("#command") == kept


def test_boards_that_nobody_measured_say_so(shown: Any, blocks: dict[str, Any]) -> None:
    measured = {row["device"] for row in blocks["accuracy"]["classes"]}
    for board, about in blocks["shared"]["boards"].items():
        shown.enter("#board", board)
        assert ("This board: not measured" in shown.text("#errors")) == (about["label"] not in measured)
    shown.enter("#board", "m1_max_32c")
    rows = [row for row in blocks["accuracy"]["rows"] if row["device"] == "m1_max_32c"]
    assert len(rows) > 1
    assert all(row["model"] in shown.text("#errors") for row in rows)


def test_a_board_s_answer_does_not_depend_on_the_boards_before_it(shown: Any, blocks: dict[str, Any]) -> None:
    """Until the user moves a slider or types a loss, both are of the board alone; afterwards they stay."""
    direct, *detour = [*blocks["shared"]["boards"]][:3]
    shown.enter("#board", direct)
    shown.enter("#format", "q4_k_m")
    wanted = (shown.text("#command"), shown.text("#answer"), shown.text("#least"))
    without = next(board for board, about in blocks["shared"]["boards"].items() if "q4_k_m" not in about["formats"])
    for board in (*detour, without, direct):
        shown.enter("#board", board)
    assert (shown.text("#command"), shown.text("#answer"), shown.text("#least")) == wanted
    for typed, start in (("2.", "To train"), ("2,9", "To train"), ("", "Enter a loss"), ("29", "Enter a loss")):
        shown.enter("#loss", typed)
        assert shown.run("return document.getElementById('loss').value") == typed
        assert shown.text("#least").startswith(start)


def test_links_within_the_page_keep_the_state_and_show_their_heading(shown: Any) -> None:
    before = shown.run("return location.href")
    for link in shown.driver.find_elements("css selector", "nav a"):
        link.click()
        section = shown.run("return document.activeElement.getBoundingClientRect().top")
        assert section >= -1
    assert shown.run("return location.href") == before
