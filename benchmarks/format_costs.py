"""Fit what formats of weights cost in loss to `objectives/weight_formats/costs.csv`, and judge it on models left out.

python benchmarks/format_costs.py            # fit, write objectives/weight_formats/costs.yaml
python benchmarks/format_costs.py --judge    # also leave out each model, and each family (some minutes)
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import yaml

from objectives.weight_formats.cost_estimate import (
    CostDraws,
    PublishedCost,
    cost_draws,
    left_out,
    published_costs,
)
from search_spaces.formats import FORMATS

ROOT = Path(__file__).parent.parent
WRITTEN = ROOT / "objectives" / "weight_formats" / "costs.yaml"
DRAWS, SWEEPS = 256, 6000
HEADER = """\
# Cost of a format in a model of N parameters without embeddings: nats * (N / 1e9)^-exponent, written by benchmarks/format_costs.py
# from costs.csv. draws: exponent, then nats of each format in this order, of a model that nothing was measured of. models: how
# many were measured, of the sizes in fitted_on. int8: inputs and weights, outliers treated (SmoothQuant, LLM.int8()); w4a16: AWQ,
# GPTQ, AutoRound in groups of 128; int4: rounding in groups of 128; the others as llama.cpp writes them.
"""


def content(rows: list[PublishedCost], found: CostDraws) -> dict[str, object]:
    """What the file holds."""
    order = [name for name in FORMATS if name in found.formats]
    places = [found.formats.index(name) for name in order]
    levels, exponent = found.centre
    of_each = {name: [row for row in rows if row.format == name] for name in order}
    kept = np.linspace(0, len(found.exponent) - 1, DRAWS).astype(int)
    drawn = np.column_stack([found.exponent, found.at_billion[:, places]])[kept]
    return {
        "nats": {name: float(f"{np.exp(levels[at]):.4g}") for name, at in zip(order, places, strict=True)},
        "exponent": float(f"{exponent:.4g}"),
        "fitted_on": {
            name: [min(row.parameters for row in own), max(row.parameters for row in own)]
            for name, own in of_each.items()
        },
        "models": {name: len({row.model for row in own}) for name, own in of_each.items()},
        "draws": [" ".join(f"{number:.4g}" for number in row) for row in drawn],
    }


def judged(rows: list[PublishedCost], group: Callable[[PublishedCost], str], name: str) -> None:
    """Print the share of figures inside the 90 % intervals of rows of other groups."""
    found = left_out(rows, group)
    inside: dict[str, list[bool]] = {}
    for row, low, high in found:
        inside.setdefault(row.format, []).append(low <= row.nats <= high)
    every = [each for own in inside.values() for each in own]
    print(f"{name} left out: {100 * np.mean(every):.1f} % of {len(every)} figures inside 90 % intervals")
    print("  " + ", ".join(f"{format_} {100 * np.mean(own):.0f} %" for format_, own in inside.items()))


def main() -> None:
    """Fit and write; judge where asked."""
    rows = published_costs()
    text = HEADER + yaml.safe_dump(content(rows, cost_draws(rows, sweeps=SWEEPS)), sort_keys=False, width=1000)
    WRITTEN.write_text(text, encoding="utf-8")
    if "--judge" in sys.argv[1:]:
        judged(rows, lambda row: row.model, "models")
        judged(rows, lambda row: row.family, "families")


if __name__ == "__main__":
    main()
