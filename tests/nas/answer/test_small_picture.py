"""The small picture of a frontier: readable on light and on dark, said in words, of a few kilobytes."""

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

import nas
from nas.answer.pictures import BEHIND, BEST, FOUND, frontier_svg
from nas.api.data_frames import units

SVG = "{http://www.w3.org/2000/svg}"
KEYS: dict[str, Any] = {"default_budget": "none", "baselines": [], "applications": {}}


def drawn(frontier: nas.Frontier) -> str:
    problem = frontier.problem
    return frontier_svg(problem.objectives, frontier.members, frontier.evaluated, units(problem))


def light(colour: str) -> float:
    """Relative luminance. Source: WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("page", ["#ffffff", "#111827"])
def test_what_is_drawn_is_seen_on_light_and_dark_pages(page: str) -> None:
    assert contrast(FOUND, page) >= 3
    assert contrast(BEST, page) >= 3
    assert contrast(BEHIND, page) >= 2


def test_the_picture_says_in_words_what_it_shows_and_takes_the_colour_of_its_text() -> None:
    frontier = nas.load_study(algo="random", **KEYS).search(evaluations=3000)
    text = drawn(frontier)
    root = ElementTree.fromstring(text)
    loss, total = frontier.frame.loss, frontier.frame.total_ms
    assert root.get("role") == "img"
    assert root.get("aria-label") == (
        f"{len(frontier)} designs: total_ms {total.min():,.4g} to {total.max():,.4g} ms, loss {loss.min():.4g} to {loss.max():.4g} nats; "
        f"lowest loss {loss.min():.4g} nats at {total[loss.idxmin()]:,.4g} ms"
    )
    words = "".join(root.itertext())
    for word in ("Prefill + decode (ms)", "Predicted loss (nats per token)", "evaluated", "frontier", "lowest loss"):
        assert word in words
    assert not root.findall(f".//{SVG}style")  # it would be the whole page's
    assert "currentColor" in text
    assert "#222222" not in text
    assert len(text) < 30_000
    assert drawn(frontier) == text


def test_several_objectives_are_dots_and_one_or_nothing_is_no_picture(tiny: dict[str, Any]) -> None:
    three = nas.load_study(space=tiny, objectives=["loss", "total_ms", "resident_gb"], **KEYS).solve()
    assert "<svg" in drawn(three)
    assert drawn(nas.load_study(space=tiny, objectives=["loss"], **KEYS).solve()) == ""
    assert drawn(nas.load_study(space=tiny, budgets={"total_ms": 1e-9}, **KEYS).solve()) == ""
