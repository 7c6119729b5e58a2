"""Pictures are there, can be read and show something, from no frontier point to many."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import image
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from nas.answer import plot_data as drawn_numbers
from nas.answer.outcome import Outcome
from nas.answer.palette import PICK, STYLE
from nas.answer.pictures import draw_all, frontier_figure, headed
from nas.answer.plot_data import running_median, thinned, volume_over_time
from nas.files.figures import plain_decades, styled

Concluded = Callable[..., Outcome]
SVG = "{http://www.w3.org/2000/svg}"


def drawn(folder: Path) -> set[str]:
    """Names of the pictures, each of which can be read and is not of one colour."""
    for path in folder.glob("*.png"):
        pixels = image.imread(path)
        assert pixels.shape[0] > 300
        assert pixels.shape[1] > 600
        assert len(np.unique(pixels.reshape(-1, pixels.shape[2])[::7], axis=0)) > 3, path
    for path in folder.glob("*.svg"):
        root = ElementTree.parse(path).getroot()
        assert root.tag == f"{SVG}svg"
        assert sum(1 for _ in root.iter(f"{SVG}path")) > 5
        assert not any("nan" in node.get("d", "").lower() for node in root.iter(f"{SVG}path"))
    return {path.name for path in folder.iterdir()}


def named(*stems: str) -> set[str]:
    """PNG and SVG of each."""
    return {f"{stem}.{ending}" for stem in stems for ending in ("png", "svg")}


def texts(path: Path) -> str:
    """Every text of an SVG."""
    return "\n".join("".join(node.itertext()) for node in ElementTree.parse(path).getroot().iter(f"{SVG}text"))


CASES: dict[str, tuple[tuple[Any, ...], dict[str, Any], set[str]]] = {
    "three objectives": (
        (60,),
        {"objectives": ["loss", "total_ms", "memory_gb"]},
        named("frontier"),
    ),
    "one point": (
        (1,),
        {"objectives": ["total_ms", "memory_gb"], "baselines": []},
        named("frontier"),
    ),
    "one objective": ((30,), {"objectives": ["loss"]}, set()),
    "nothing feasible": ((30,), {"budgets": {"total_ms": 1e-6}}, set()),
    "exact": ((None,), {"algo": "exact", "applications": {}}, named("frontier")),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_run_has_its_pictures(case: str, concluded: Concluded, tmp_path: Path) -> None:
    arguments, raw, expected = CASES[case]
    draw_all(concluded(*arguments, **raw), tmp_path / "plots")
    assert drawn(tmp_path / "plots") == expected


@pytest.mark.slow
def test_the_frontier_picture_marks_baselines_and_picks_and_says_its_units(
    concluded: Concluded, tmp_path: Path
) -> None:
    draw_all(concluded(120), tmp_path)
    assert drawn(tmp_path) == named("frontier")
    said = texts(tmp_path / "frontier.svg")
    for part in (
        "Qwen2.5-0.5B*",
        "embodied AI",
        "exact frontier",
        "random frontier",
        "Prefill + decode (ms)",
        "Predicted loss (nats per token)",
        "Jetson AGX Orin",
    ):
        assert part in said, part


@pytest.mark.parametrize("asked", [4, 16])
def test_names_of_picks_lie_on_no_other_and_in_the_frame(asked: int, concluded: Concluded) -> None:
    limits = {f"application {i}": {"total_ms": 8.0 * 1.2**i} for i in range(asked)}
    with styled(STYLE):
        figure = frontier_figure(concluded(300, applications=limits))
        FigureCanvasAgg(figure)
        figure.draw_without_rendering()
        (ax,) = figure.axes
        boxes = [text.get_window_extent() for text in ax.texts if text.get_color() == PICK]
    assert len(boxes) > 3
    assert all(box.y0 >= ax.bbox.y0 for box in boxes)
    assert not any(box.overlaps(other) for i, box in enumerate(boxes) for other in boxes[i + 1 :])


def test_boards_have_their_figures_with_units_and_a_legend_of_what_is_drawn(
    concluded: Concluded, tmp_path: Path
) -> None:
    prices = {"jetson_orin_nano_super_8gb": {"price": "249 USD"}, "jetson_agx_orin_64gb": {"price": "1999 USD"}}
    keys: dict[str, Any] = {"algo": "exact", "applications": {}, "devices": ",".join(prices), "device_columns": prices}
    draw_all(concluded(None, objectives=["price", "loss"], **keys), tmp_path / "two")
    draw_all(concluded(None, objectives=["loss", "total_ms", "price"], **keys), tmp_path / "three")
    two, three = (texts(tmp_path / name / "frontier.svg") for name in ("two", "three"))
    assert "price (USD)" in two
    assert "exact frontier" in two
    assert "exact frontier" not in three
    assert all(f"on {name}" in three for name in prices)


def test_an_axis_within_a_decade_has_more_numbers_than_one_over_several() -> None:
    shown = []
    for high in (900.0, 90_000.0):
        axes = Figure().add_subplot()
        axes.set_xscale("log")
        axes.set_xlim(150.0, high)
        plain_decades(axes.xaxis)
        within = [at for at in axes.xaxis.get_minorticklocs() if 150.0 <= at <= high]
        texts_of_ticks = [axes.xaxis.get_minor_formatter()(at) for at in within]
        shown.append([text for text in texts_of_ticks if text])
    assert shown == [["200", "500"], []]


def test_the_same_outcome_draws_the_same_svg(concluded: Concluded, tmp_path: Path) -> None:
    for name in ("a", "b"):
        draw_all(concluded(25), tmp_path / name)
    svg = "frontier.svg"
    assert (tmp_path / "a" / svg).read_bytes() == (tmp_path / "b" / svg).read_bytes()


@pytest.mark.slow
def test_a_users_metric_with_negative_values_is_drawn(
    concluded: Concluded, user_module: Callable[[str], str], tmp_path: Path
) -> None:
    name = user_module("def fn(a):\n    return -a.depth / 3\n") + ":fn"
    draw_all(concluded(40, objectives=["loss", name]), tmp_path / "plots")
    assert drawn(tmp_path / "plots") == named("frontier")


def test_huge_runs_are_thinned_to_what_can_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn_numbers, "THINNED", 100)
    assert thinned(100) == slice(None)
    rows = thinned(12_345)
    assert (len(rows), rows[0], rows[-1]) == (100, 0, 12_344)
    assert (np.diff(rows) > 0).all()


@pytest.mark.parametrize("n", [1, 2, 14, 15, 40, 2000])
def test_the_running_median_is_a_median_of_neighbours(n: int) -> None:
    values = np.random.default_rng(0).normal(size=n)
    smooth = running_median(values)
    half = min(max(15, n // 50), n) // 2
    assert smooth.tolist() == [float(np.median(values[max(0, i - half) : i + half + 1])) for i in range(n)]


@pytest.mark.parametrize("count", [1, 2, 9, 162])
def test_convergence_never_falls_and_ends_with_everything(count: int, concluded: Concluded) -> None:
    outcome = concluded(count)
    counts, volumes = volume_over_time(outcome)
    assert counts[-1] == count
    assert (np.diff(counts) > 0).all()
    assert (np.diff(volumes) >= 0).all()
    assert outcome.scale is not None
    assert volumes[-1] == outcome.scale.hypervolume(outcome.frontier.values)


def test_the_line_above_a_picture_is_not_cut() -> None:
    text = "Snapdragon 8 Elite Gen 5, Hexagon NPU, 16 GB LPDDR5X, q4_k_m, 1,024 tokens in, 128 out, edge2026 space; line: running median"
    figure = Figure(figsize=(6.4, 3.4))
    ax = figure.add_subplot()
    headed(figure, ax, text)
    drawn = figure.texts[0].get_window_extent(FigureCanvasAgg(figure).get_renderer())
    assert drawn.x1 <= figure.bbox.x1
