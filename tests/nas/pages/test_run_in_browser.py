"""A run's page in a headless Chromium: it picks what `select` picks, is usable by hand, by keys and in print, and runs nothing of a stranger's."""

import base64
import itertools
import json
import re
import shlex
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import image

from nas.answer.past_run import recorded_run
from nas.problem.evaluations import frontier_rows

pytest.importorskip("selenium", reason="selenium is not installed (extra browser)")
from selenium.webdriver import ActionChains, Keys

pytestmark = pytest.mark.slow

RunOf = Callable[..., Path]
TIES = {
    "name": "two_axes",
    "form": "depth_width",
    "coefficients": {"kappa_l": 5, "alpha_l": 0.8, "kappa_d": 90, "beta": 0.6, "l_inf": 2},
}
STUDIES: dict[str, dict[str, Any]] = {
    "two budgets": {"budgets": {"total_ms": 40, "decode_ms": 25}, "preset": "paper"},
    "ties": {"law": TIES, "flags": {"algo": "exact"}},
    "three objectives": {"objectives": ["loss", "prefill_ms", "resident_gb"]},
    "no budget": {"budgets": {"memory_gb": "none"}},
    "a board": {"preset": "device", "budgets": {"total_ms": 300, "decode_ms": 200}},
}
MOVES = [
    ("total_ms", 0),
    ("total_ms", 137),
    ("total_ms", 500),
    ("params_total", 611),
    ("memory_gb", 402),
    ("total_ms", 1000),
]


def picked_by_select(page: Any, inside: Any, run: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The index that the command shown on the page chooses; "" where nothing fits."""
    words = shlex.split(page.text("#command"))
    assert words[:4] == ["python", "-m", "nas.select", "RUN"]
    monkeypatch.chdir(run.parent)
    answer = inside("select", str(run), *words[4:], "--json")
    if answer.code == 3:
        return ""
    assert answer.code == 0, answer.err
    return str(json.loads(answer.out)[0]["id"]).rpartition("-")[2]


@pytest.mark.parametrize("name", STUDIES)
def test_moved_budgets_pick_what_select_picks(
    name: str, tiny: dict[str, Any], run_of: RunOf, page: Any, inside: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(space=tiny, **STUDIES[name])
    page.open(run / "report.html")
    picks = {page.data("#pick", "index")}
    assert picks == {picked_by_select(page, inside, run, monkeypatch)}
    for metric, step in MOVES:
        slider = f'#budgets input[type=range][data-metric="{metric}"]'
        if page.run("return !document.querySelector(arguments[0])", slider):
            page.enter("#add", metric)
        page.enter(slider, step)
        picks.add(page.data("#pick", "index"))
        assert page.data("#pick", "index") == picked_by_select(page, inside, run, monkeypatch), (metric, step)
    assert len(picks) > 2


def test_the_title_has_the_budgets_as_they_are_moved(tiny: dict[str, Any], run_of: RunOf, page: Any) -> None:
    page.open(run_of(space=tiny, budgets={"total_ms": 40}, preset="paper") / "report.html")
    title = page.text("h1")
    page.enter('#budgets input[type=text][data-metric="total_ms"]', 12)
    assert page.text("h1") == title.replace("40 ms", "12 ms") != title
    page.enter('#budgets input[type=text][data-metric="total_ms"]', 40)
    assert page.text("h1") == title


def test_a_typed_limit_counts_to_its_last_digit_and_a_wrong_one_not_at_all(
    tiny: dict[str, Any], run_of: RunOf, page: Any
) -> None:
    run = run_of(space=tiny)
    found = recorded_run(run).evaluations
    best = int(np.lexsort((found.metrics["total_ms"], found.metrics["loss"]))[0])
    limit = float(found.metrics["total_ms"][best])
    page.open(run / "report.html").enter("#add", "total_ms")
    box = '#budgets input[type=text][data-metric="total_ms"]'
    page.enter(box, repr(limit))
    assert page.data("#pick", "index") == str(best)
    page.enter(box, repr(float(np.nextafter(limit, 0))))
    within = np.flatnonzero(found.metrics["total_ms"] / np.nextafter(limit, 0) - 1 <= 0)
    assert page.data("#pick", "index") in {str(row) for row in within}
    before = page.data("#pick", "index")
    for wrong in ("-3", "fast", "0", "1e999"):
        page.enter(box, wrong)
        assert page.run("return document.querySelector(arguments[0]).getAttribute('aria-invalid')", box) == "true"
        assert page.data("#pick", "index") == before


def test_a_budget_that_is_taken_away_is_none_in_the_command(
    tiny: dict[str, Any], run_of: RunOf, page: Any, inside: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(space=tiny, budgets={"total_ms": 20})
    page.open(run / "report.html")
    page.run("document.querySelector('[aria-label=\"remove the budget on total_ms\"]').click()")
    assert "--budget total_ms=none" in page.text("#command")
    assert page.data("#pick", "index") == picked_by_select(page, inside, run, monkeypatch)


def test_keys_walk_along_the_frontier(tiny: dict[str, Any], run_of: RunOf, page: Any) -> None:
    run = recorded_run(path := run_of(space=tiny))
    page.open(path / "report.html")
    frontier = page.driver.find_element("id", "frontier")
    frontier.send_keys(Keys.HOME)
    first = int(page.data("#panel", "index"))
    seen = [first]
    frontier.send_keys(Keys.ARROW_RIGHT)
    seen.append(int(page.data("#panel", "index")))
    frontier.send_keys(Keys.END)
    seen.append(int(page.data("#panel", "index")))
    times = run.evaluations.metrics["total_ms"]
    assert times[seen[0]] < times[seen[1]] <= times[seen[2]]
    assert " layers, width " in page.text("#said")
    frontier.send_keys(Keys.ESCAPE)
    assert page.data("#panel", "index") == ""
    assert page.text("#said") == "Nothing selected"


def click(page: Any, x: int, y: int) -> None:
    """A click so many pixels right of and below the corner of the chart."""
    frontier = page.driver.find_element("id", "frontier")
    page.run("arguments[0].scrollIntoView()", frontier)
    seen = "return [arguments[0].offsetWidth, Math.min(arguments[0].offsetHeight, innerHeight)]"  # offsets are from the middle of what is in view
    width, height = page.run(seen, frontier)
    at = ActionChains(page.driver).move_to_element_with_offset(frontier, x - width / 2, y - height / 2)
    at.click().perform()


def test_a_click_selects_the_nearest_and_the_panel_takes_it_apart(
    tiny: dict[str, Any], run_of: RunOf, page: Any
) -> None:
    path = run_of(space=tiny)
    page.open(path / "report.html")
    page.until("return document.getElementById('frontier').dataset.ready === 'yes'")
    page.driver.find_element("id", "frontier").send_keys(Keys.ESCAPE)
    for x, y in itertools.product(range(100, 700, 50), range(140, 560, 40)):
        if not page.data("#panel", "index"):
            click(page, x, y)
    chosen = int(page.data("#panel", "index"))
    assert chosen in frontier_rows(recorded_run(path).evaluations)
    words = page.text("#panel")
    for part in (
        "Prefill",
        "Decode",
        "Resident memory",
        "experts",
        "kv cache",
        "What one step along an axis changes",
        "Loss by term",
        "-bound",
    ):
        assert part in words, part


def test_a_row_of_the_answer_shows_its_architecture(tiny: dict[str, Any], run_of: RunOf, page: Any) -> None:
    page.open(run_of(space=tiny) / "report.html")
    rows = page.run("return [...document.querySelectorAll('tr[data-index]')].map(row => row.dataset.index)")
    assert len(rows) > 1
    for index in rows:
        page.run('document.querySelector(`tr[data-index="${arguments[0]}"]`).click()', index)
        assert page.data("#panel", "index") == index


HOSTILE = "</script><img src=x onerror=\"document.title='taken'\"><b>&amp;'\"`${1}"


def test_hostile_names_are_shown_and_not_run(tiny: dict[str, Any], run_of: RunOf, page: Any) -> None:
    law = {**TIES, "name": HOSTILE}
    device = {"name": HOSTILE, "fp16": "2 TFLOP/s", "int8": "4 TOP/s", "bandwidth": "17 GB/s", "memory": "4 GB"}
    model = {
        "name": HOSTILE,
        "depth": 8,
        "width": 1024,
        "n_experts": 1,
        "top_k": 1,
        "expert_size": 2048,
        "n_kv_heads": 4,
        "head_dim": 64,
        "n_heads": 16,
    }
    run = run_of(
        "<b>run $(id)",
        space=tiny,
        law=law,
        device=device,
        applications={HOSTILE: {"total_ms": 100}},
        baselines=[model],
    )
    page.open(run / "report.html")
    assert page.driver.title.startswith("<b>run $(id): Lowest loss within ")
    assert page.run("return document.querySelectorAll('img, main b, header b').length") == 0
    assert HOSTILE in page.text("main")
    assert "folder of this run, <b>run $(id):" in page.text(".typed")


def test_the_policy_lets_no_script_of_a_strangers_run(
    tiny: dict[str, Any], run_of: RunOf, driver: Any, tmp_path: Path
) -> None:
    text = (run_of(space=tiny) / "report.html").read_text(encoding="utf-8")
    altered = tmp_path / "altered.html"
    altered.write_text(
        text.replace("<footer>", "<footer><script>document.title = 'taken'</script><img src='http://127.0.0.1:9/x'>"),
        encoding="utf-8",
    )
    driver.get(altered.as_uri())
    assert driver.title.startswith("run: ")
    refused = " ".join(entry["message"] for entry in driver.get_log("browser"))
    assert refused.count("Content Security Policy") >= 2


@pytest.mark.parametrize(
    "study",
    [{"budgets": {"total_ms": 1e-3}}, {"objectives": ["loss"]}, {"flags": {"algo": "random", "evaluations": 1}}],
    ids=str,
)
def test_pages_of_meagre_runs_stand(study: dict[str, Any], tiny: dict[str, Any], run_of: RunOf, page: Any) -> None:
    page.open(run_of(space=tiny, **study) / "report.html")
    assert page.text("#pick")


def test_an_infeasible_run_finds_a_pick_when_its_budget_is_raised(
    tiny: dict[str, Any], run_of: RunOf, page: Any
) -> None:
    page.open(run_of(space=tiny, budgets={"total_ms": 1e-3}) / "report.html")
    assert "Nothing fits: " in page.text("main")
    assert page.data("#pick", "index") == ""
    page.enter('#budgets input[type=range][data-metric="total_ms"]', 1000)
    assert page.data("#pick", "index") != ""


def test_axes_can_be_any_metrics(tiny: dict[str, Any], run_of: RunOf, page: Any) -> None:
    page.open(run_of(space=tiny) / "report.html")
    for metric in ("resident_gb", "params_active", "prefill_ms"):
        page.run("document.getElementById('frontier').dataset.ready = 'no'")
        page.enter("#axis-0", metric)
        page.until("return document.getElementById('frontier').dataset.ready === 'yes'")


def pixels(page: Any) -> Any:
    return image.imread(BytesIO(base64.b64decode(page.driver.get_screenshot_as_base64())))


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 800)])
def test_it_fits_the_window_in_light_and_dark(
    scheme: str, width: int, tiny: dict[str, Any], run_of: RunOf, page: Any
) -> None:
    page.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    page.open(run_of(space=tiny) / "report.html")
    page.until("return document.getElementById('frontier').dataset.ready === 'yes'")
    assert page.run("return document.documentElement.scrollWidth") <= width
    shown = pixels(page)[..., :3]
    assert (shown[5, 5].mean() > 0.5) == (scheme == "light")
    assert len(np.unique((shown[::3, ::3] * 255).astype(int).reshape(-1, 3), axis=0)) > 50


def test_it_prints(tiny: dict[str, Any], run_of: RunOf, page: Any) -> None:
    page.open(run_of(space=tiny) / "report.html")
    page.until("return document.getElementById('frontier').dataset.ready === 'yes'")
    printed = base64.b64decode(page.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})["data"])
    assert printed.startswith(b"%PDF")
    assert len(printed) > 20_000


def test_the_default_page_is_small_and_its_picks_are_selects(
    run_of: RunOf, page: Any, inside: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of("default", flags={"algo": "nsga2"})
    assert (run / "report.html").stat().st_size < 3_000_000
    page.open(run / "report.html").enter("#add", "total_ms")
    for step in (0, 333, 612, 901):
        page.enter('#budgets input[type=range][data-metric="total_ms"]', step)
        assert page.data("#pick", "index") == picked_by_select(page, inside, run, monkeypatch)


def test_a_run_solved_over_a_larger_space_chooses_from_its_frontier(
    run_of: RunOf, page: Any, inside: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(flags={"algo": "exact"}, space="fine", budgets={"total_ms": 60, "memory_gb": 2})
    page.open(run / "report.html")
    assert "solved" in page.text(".side")
    found = recorded_run(run).evaluations.metrics
    for step in (1000, 800, 300):
        page.enter('#budgets input[type=range][data-metric="total_ms"]', step)
        limit = float(page.run("return document.querySelector('#budgets input[type=text]').value"))
        row = int(page.data("#pick", "index"))
        assert found["total_ms@q80"][row] <= limit
        answer = inside("select", str(run), *shlex.split(page.text("#command"))[4:], "--json")
        (chosen,) = json.loads(answer.out)
        assert chosen["loss"] <= found["loss"][row] <= chosen["loss"] + 0.02
        assert step < 1000 or f"{chosen['depth']} layers, width {chosen['width']:,}, " in page.text("#pick")


def test_the_sentence_states_tokens_and_where_measured_times_lie(
    tiny: dict[str, Any], run_of: RunOf, page: Any
) -> None:
    run = run_of(space=tiny, preset="device", device="raspberry_pi_5", budgets={"total_ms": 4000})
    opened(page, run, 360)
    assert re.search(r"nats after [\d.]+ [BT] tokens; it takes", page.text("#pick"))
    assert re.search(r"\d+ % of .*: total [\d,]+ to [\d,]+ ms", page.text("#pick"))
    page.enter('#budgets input[type=range][data-metric="total_ms"]', 0)
    assert "undefined" not in page.run("return document.body.innerText")


def test_a_page_names_how_a_design_is_served(
    tiny: dict[str, Any], run_of: RunOf, page: Any, inside: Callable[..., Any]
) -> None:
    run = run_of("served", space=tiny, serving={"speculation": ["mtp:1", "mtp:2"]})
    assert inside("report", run, "--quiet").code == 0
    opened(page, run, 1280)
    assert re.search(r"\(\d+ KV\), mtp:[12]", page.text("main"))


#: The frontier's figure and the axis below it.
PLOT = "const plot = [...Bokeh.index.roots].find(v => v.el.closest('#frontier')).model, axis = plot.below[0];"


def opened(page: Any, run: Path, width: int) -> None:
    size = {"width": width, "height": 780, "deviceScaleFactor": 1, "mobile": width < 600}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    page.open(run / "report.html")
    page.until("return document.getElementById('frontier').dataset.ready === 'yes'")


def unfolded(page: Any) -> None:
    """Open every fold and wait until what is in it is drawn."""
    page.run("for (const fold of document.querySelectorAll('.fold')) fold.open = true")
    page.driver.execute_async_script("setTimeout(arguments[0], 100)")
    page.until("return [...document.querySelectorAll('.chart')].every(e => e.dataset.ready === 'yes')")


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize(("low", "high"), [(86, 483), (80, 5000), (0.2, 3e6), (410, 430)])
def test_a_logarithmic_axis_has_values_all_along_it_that_do_not_touch(
    low: float, high: float, width: int, tiny: dict[str, Any], run_of: RunOf, page: Any
) -> None:
    opened(page, run_of(space=tiny), width)
    script = (
        f"{PLOT} return [axis.ticker.get_ticks(arguments[0], arguments[1], plot.x_range, 0).major, plot.inner_width]"
    )
    ticks, room = page.run(script, low, high)
    places = (np.log([low, *ticks, high]) - np.log(low)) / np.log(high / low)
    assert len(ticks) >= 3
    assert places[1] < 0.5 < places[-2]
    assert np.diff(places[1:-1]).min() * room > 25


def test_a_phone_shows_the_design_in_the_answer_and_a_slider_to_move(
    tiny: dict[str, Any], run_of: RunOf, page: Any
) -> None:
    opened(page, run_of(space=tiny, budgets={"total_ms": 40}), 360)
    unfolded(page)
    names = page.run("return [...document.querySelectorAll('.fold .name')].map(e => e.textContent)")
    assert "architecture" in names
    slider, box = (
        page.run("return document.querySelector(arguments[0]).getBoundingClientRect().toJSON()", f".budget {part}")
        for part in ("input[type=range]", "input[type=text]")
    )
    assert slider["width"] > 360 / 2
    assert slider["top"] >= box["bottom"] or slider["right"] <= box["left"]


def test_strips_are_named_in_full(tiny: dict[str, Any], run_of: RunOf, page: Any) -> None:
    opened(page, run_of(space=tiny), 1280)
    unfolded(page)
    strips = page.run(
        "return [...Bokeh.index.roots].filter(v => v.model.title && v.el.closest('#strips')).map(v => [v.model.title.text, v.model.left[0].axis_label])"
    )
    assert len(strips) > 3
    assert all(title and not along for title, along in strips)


def test_the_first_sheet_of_paper_holds_the_frontier(tiny: dict[str, Any], run_of: RunOf, page: Any) -> None:
    opened(page, run_of(space=tiny), 1280)
    page.printed()
    for part in ("#frontier canvas.printed", "#pick", "#command"):
        bottom = page.run("return document.querySelector(arguments[0]).getBoundingClientRect().bottom + scrollY", part)
        assert bottom < 1047, part  # CSS pixels of A4's height between margins of 1 cm
    folds = page.run("return [...document.querySelectorAll('.fold')].map(e => [e.open, e.offsetHeight, e.innerHTML])")
    assert not any(opened for opened, _, _ in folds)
    assert all((height == 0) == ("strips" in inside) for _, height, inside in folds)
    assert min(height for _, height, _ in folds if height) > 70  # printed with what is in them


PLACES = """
return ['#frontier', '#pick', '#budgets', '.fold'].map(part => document.querySelector(part).getBoundingClientRect()).map(
  ({left, top, right, bottom}) => [left, top, right, bottom])
"""


def test_the_first_screen_is_the_picture_the_sentence_and_the_budgets(
    tiny: dict[str, Any], run_of: RunOf, page: Any
) -> None:
    run = run_of(space=tiny, budgets={"total_ms": 40})
    opened(page, run, 1280)
    frontier, sentence, budgets, fold = page.run(PLACES)
    assert frontier[2] - frontier[0] > 0.58 * 1280
    assert frontier[1] < 110
    assert max(frontier[3], sentence[3], budgets[3]) < 720
    assert frontier[2] <= sentence[0]
    assert sentence[3] <= budgets[1]
    assert fold[1] > budgets[3]
    opened(page, run, 390)
    frontier, sentence, budgets, fold = page.run(PLACES)
    assert frontier[3] <= sentence[1] < sentence[3] <= budgets[1] < fold[1]


def test_the_sentence_says_what_the_moved_budgets_pick(tiny: dict[str, Any], run_of: RunOf, page: Any) -> None:
    path = run_of(space=tiny, budgets={"total_ms": 40}, preset="paper")
    metrics = recorded_run(path).evaluations.metrics
    page.open(path / "report.html")
    for limit in (40, 20, 8):
        page.enter('#budgets input[type=text][data-metric="total_ms"]', limit)
        row, sentence = int(page.data("#pick", "index")), page.text("#pick p")
        figures = [float(figure) for figure in re.findall(r"([\d.]+) of ([\d.]+) ms", sentence)[0]]
        assert figures == pytest.approx([metrics["total_ms"][row], limit], rel=5e-3)
        assert f"{metrics['loss'][row]:.2f} nats" in sentence
        millions = metrics["params_total"][row] / 1e6
        size = f"{millions:.3g} million" if millions < 999.5 else f"{millions / 1e3:.3g} billion"
        assert f"A model of {size} parameters" in sentence
        assert f"--budget total_ms={limit}" in page.text("#command") or limit == 40
    page.enter('#budgets input[type=text][data-metric="total_ms"]', 1e-3)
    said = page.text("#pick")
    assert said.startswith("Nothing that this page holds meets these budgets.")
    assert re.search(r"The nearest takes [\d.]+ of [\d.]+ \w+ \(.*\): \d+ layers", said)
