"""Colours of a page stay apart for people who see fewer of them, and from their ground, in light and in dark."""

import re
from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

Colour = NDArray[np.float64]
MARKS = ("evaluated", "frontier", "exact", "baseline", "pick")
LEAST = 20.0  # ΔE of CIE 1976 between two marks, where 2.3 is just noticed; shape and dash tell them apart besides
#: Severity 1.0, linear RGB. Source: Machado, Oliveira and Fernandes 2009, table 1.
SIGHT = {
    "full": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
#: Linear sRGB to XYZ under D65. Source: IEC 61966-2-1.
XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
WHITE = np.array([0.95047, 1.0, 1.08883])


def linear(text: str) -> Colour:
    """Linear RGB of `#rrggbb`."""
    coded = np.array([int(text[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)


def lab(rgb: Colour) -> Colour:
    """CIE L*a*b* of linear RGB."""
    t = np.array(XYZ) @ rgb / WHITE
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def palettes() -> dict[str, dict[str, str]]:
    """The style sheet's colours of each scheme."""
    css = files("nas.pages").joinpath("assets", "page.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root[^{]*\{([^}]*)\}", css)
    return {
        name: dict(re.findall(r"--(\w+): (#\w{6})", block))
        for name, block in zip(("light", "dark"), blocks, strict=True)
    }


def seen(colour: str, sight: str) -> Colour:
    """L*a*b* of a colour as it is seen."""
    return lab(np.clip(np.array(SIGHT[sight]) @ linear(colour), 0, 1))


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_differ_for_everybody(scheme: str, sight: str) -> None:
    colours = palettes()[scheme]
    for a, b in combinations((*MARKS, "ground"), 2):
        apart = float(np.linalg.norm(seen(colours[a], sight) - seen(colours[b], sight)))
        assert apart >= LEAST, (a, b, apart)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_have_the_contrast_of_wcag_aa(scheme: str) -> None:
    colours = palettes()[scheme]

    def luminance(name: str) -> float:
        return float(np.dot(XYZ[1], linear(colours[name])))

    for ground in ("ground", "raised"):
        for name in ("ink", "quiet", "link", "pick", "baseline", "bad"):
            high, low = sorted((luminance(name), luminance(ground)), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 4.5, (name, ground)


def test_the_simulation_is_the_published_one() -> None:
    red, green = (np.array(SIGHT["deuteranopia"]) @ linear(c) for c in ("#ff0000", "#00ff00"))
    assert red == pytest.approx([0.367322, 0.280085, -0.011820])
    assert green == pytest.approx([0.860646, 0.672501, 0.042940])
    assert lab(linear("#ffffff")) == pytest.approx([100, 0, 0], abs=0.02)
