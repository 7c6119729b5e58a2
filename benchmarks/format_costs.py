"""Fit what formats of weights cost in loss to `objectives/weight_formats/costs.csv`, and judge it on models left out.

python benchmarks/format_costs.py            # fit, write objectives/weight_formats/costs.yaml
python benchmarks/format_costs.py --judge    # also leave out each model, and each family (some minutes)

Published perplexities of models before and after rounding give

    ln cost_mf = ln a_f − b ln(N_m / 1e9) + u_m + e_mf,    published nats = cost + measurement error

where a_f is nats at 1 B parameters, N parameters without embeddings, u of a model (sd σ_u), e of a format in it (sd σ_f).
Measurement errors are the published ones and those of rounded digits, at least 5 % of a figure. And a model is not at its least
loss on just this text, a chat model less so, so that rounding also moves the loss to first order, up or down: an error more, of sd
τ √cost, with a τ of chat models and one of others. A Gibbs sampler gives draws of everything at once.

Source: `costs.csv`, whose rows name theirs.
"""

import csv
import io
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from objectives import outside
from objectives.plugins import folder
from objectives.weight_formats.table import BILLION, ENDS
from search_spaces.arrays import FloatArray, IntArray
from search_spaces.formats import FORMATS

ROOT = Path(__file__).parent.parent
WRITTEN = ROOT / "objectives" / "weight_formats" / "costs.yaml"
DRAWS, FINAL_SWEEPS = 256, 6000
HEADER = """\
# Cost of a format in a model of N parameters without embeddings: nats * (N / 1e9)^-exponent, written by benchmarks/format_costs.py
# from costs.csv. draws: exponent, then nats of each format in this order, of a model that nothing was measured of. models: how
# many were measured, of the sizes in fitted_on. int8: inputs and weights, outliers treated (SmoothQuant, LLM.int8()); w4a16: AWQ,
# GPTQ, AutoRound in groups of 128; int4: rounding in groups of 128; the others as llama.cpp writes them.
"""

PIVOT = 7e9  # parameters about which the exponent turns in the sampler
SUREST = 0.05  # of a figure: texts and context lengths differ
LOGS = np.linspace(math.log(1e-6), 0.0, 300)  # ln nats
TAUS = np.geomspace(0.002, 0.5, 50)  # √nats
BURN_IN, SWEEPS = 300, 1500
PRIOR_ROWS, PRIOR_VARIANCE = 4.0, 0.25  # of every spread
EXPONENT_PRIOR = (0.2, 0.2)  # mean and sd, cut off below 0


@dataclass(frozen=True)
class PublishedCost:
    """A published perplexity of one model in one format beside that in 16 bits, as nats per token with the error of its digits."""

    model: str
    parameters: float
    chat: bool
    format: str
    nats: float
    error: float
    source: str

    @property
    def family(self) -> str:
        """The letters that its name begins with: `llama`, `qwen`."""
        return "".join(self.model[: next((i for i, c in enumerate(self.model) if not c.isalpha()), None)]).lower()


def published_costs() -> list[PublishedCost]:
    """The rows of `costs.csv`."""
    text = outside.text(folder("objectives.weight_formats") / "costs.csv", outside.MB)
    return [_published(row) for row in csv.DictReader(io.StringIO(text))]


def _published(row: dict[str, str]) -> PublishedCost:
    full, rounded, unit = float(row["full"]), float(row["quantised"]), float(row["unit"])
    digits = min(len(value.partition(".")[2]) for value in (row["full"], row["quantised"]))
    of_digits = 10.0**-digits / math.sqrt(6.0) / full / unit  # two rounded figures
    error = math.hypot(of_digits, float(row["error"] or 0.0))
    chat, nats = row["tuned"] == "chat", math.log(rounded / full) / unit
    return PublishedCost(row["model"], float(row["parameters"]), chat, row["format"], nats, error, row["source"])


@dataclass(frozen=True)
class CostDraws:
    """Draws of what formats cost a model that no row is of: nats at 1 B parameters, (draws, formats), and the exponent, (draws,).

    centre: the same without the spread of models, ln nats at 1 B, (formats,), and the exponent. taus: τ of models that are no chat models, and of those.
    """

    formats: tuple[str, ...]
    at_billion: FloatArray
    exponent: FloatArray
    centre: tuple[FloatArray, float]
    taus: tuple[float, float]

    def of(self, row: PublishedCost) -> FloatArray:
        """Draws of what a format costs a model of a size, nats, (draws,)."""
        sizes = (row.parameters / BILLION) ** -self.exponent
        return np.asarray(self.at_billion[:, self.formats.index(row.format)] * sizes)

    def interval(self, row: PublishedCost, rng: np.random.Generator) -> tuple[float, float]:
        """Where 90 % of such figures lie, nats, the error of the figure included."""
        costs = self.of(row)
        sd = np.sqrt(row.error**2 + self.taus[row.chat] ** 2 * costs)
        low, high = np.quantile(costs + sd * rng.standard_normal(len(costs)), ENDS)
        return float(low), float(high)


@dataclass(frozen=True)
class _Rows:
    """Rows as columns, with the places of their formats and models."""

    nats: FloatArray
    error: FloatArray
    chat: IntArray
    size: FloatArray
    format: IntArray
    model: IntArray

    @classmethod
    def of(cls, rows: Sequence[PublishedCost], formats: Sequence[str]) -> "_Rows":
        models = list(dict.fromkeys(row.model for row in rows))
        nats = np.array([row.nats for row in rows])
        error = np.array([max(row.error, SUREST * abs(row.nats)) for row in rows])
        size = np.log(np.array([row.parameters for row in rows]) / PIVOT)
        places = (
            np.array([formats.index(row.format) for row in rows]),
            np.array([models.index(row.model) for row in rows]),
        )
        return cls(nats, error, np.array([int(row.chat) for row in rows]), size, *places)


def cost_draws(rows: Sequence[PublishedCost], seed: int = 0, sweeps: int = SWEEPS) -> CostDraws:
    """Sample what formats cost given some rows."""
    formats = tuple(dict.fromkeys(row.format for row in published_costs()))
    data, rng = _Rows.of(rows, formats), np.random.default_rng(seed)
    state = _State(data, rng, len(formats))
    kept: list[tuple[FloatArray, float, FloatArray, FloatArray]] = []
    for sweep in range(BURN_IN + sweeps):
        state.sweep()
        if sweep >= BURN_IN:
            kept.append((state.level.copy(), state.exponent, state.of_new_model(), state.taus.copy()))
    levels, exponents, news, taus = (np.array(column) for column in zip(*kept, strict=True))
    turn = math.log(BILLION / PIVOT)
    centre = (levels.mean(axis=0) - exponents.mean() * turn, float(exponents.mean()))
    base, chat = taus.mean(axis=0).tolist()
    return CostDraws(formats, np.exp(news - exponents[:, None] * turn), exponents, centre, (base, chat))


class _State:
    """What the sampler holds: ln cost of each row, level of each format, exponent, effect of each model, and the spreads."""

    def __init__(self, data: _Rows, rng: np.random.Generator, formats: int) -> None:
        self.data, self.rng = data, rng
        self.log_cost = np.log(np.maximum(data.nats, 1e-4))
        seen = np.bincount(data.format, minlength=formats)
        self.level = np.bincount(data.format, self.log_cost, minlength=formats) / np.maximum(seen, 1)
        self.exponent, self.effect = EXPONENT_PRIOR[0], np.zeros(int(data.model.max()) + 1)
        self.of_models, self.of_formats = PRIOR_VARIANCE, np.full(formats, PRIOR_VARIANCE)
        self.taus = np.full(2, TAUS[len(TAUS) // 2])

    def sweep(self) -> None:
        """One round of all conditional draws."""
        self._draw_costs()
        self._draw_levels()
        self._draw_exponent()
        self._draw_effects()
        left, of = self.log_cost - self._mean(), self.data.format
        self.of_formats = np.array([self._variance(left[of == place]) for place in range(len(self.level))])
        self.of_models = self._variance(self.effect)
        self._draw_taus()

    def of_new_model(self) -> FloatArray:
        """ln cost of each format in a model of the pivot's size that is not among the rows."""
        own = self.rng.normal(0.0, math.sqrt(self.of_models))
        return np.asarray(self.level + own + self.rng.normal(0.0, np.sqrt(self.of_formats)))

    def _mean(self) -> FloatArray:
        data = self.data
        return np.asarray(self.level[data.format] - self.exponent * data.size + self.effect[data.model])

    def _of_rows(self) -> FloatArray:
        return np.asarray(self.of_formats[self.data.format])

    def _misfit(self, costs: FloatArray, taus: FloatArray) -> FloatArray:
        """Log density of the figures at such costs and τ, both (rows, n) or broadcast to it."""
        variance = self.data.error[:, None] ** 2 + costs * taus**2
        return np.asarray(-0.5 * ((self.data.nats[:, None] - costs) ** 2 / variance + np.log(variance)))

    def _draw_costs(self) -> None:
        apart = (LOGS - self._mean()[:, None]) ** 2 / self._of_rows()[:, None]
        log_density = self._misfit(np.exp(LOGS), self.taus[self.data.chat][:, None]) - 0.5 * apart
        whole = np.cumsum(np.exp(log_density - log_density.max(axis=1, keepdims=True)), axis=1)
        places = (whole < self.rng.random(len(whole))[:, None] * whole[:, -1:]).sum(axis=1)
        self.log_cost = LOGS[places] + (self.rng.random(len(whole)) - 0.5) * (LOGS[1] - LOGS[0])

    def _draw_levels(self) -> None:
        left, count = self.log_cost - self._mean() + self.level[self.data.format], len(self.level)
        seen = np.maximum(np.bincount(self.data.format, minlength=count), 1)
        mean = np.bincount(self.data.format, left, minlength=count) / seen
        self.level = mean + self.rng.standard_normal(count) * np.sqrt(self.of_formats / seen)

    def _draw_exponent(self) -> None:
        size, (mean, sd) = self.data.size, EXPONENT_PRIOR
        left = self.log_cost - self._mean() - self.exponent * size
        weight = (size**2 / self._of_rows()).sum() + sd**-2
        centre = ((-left * size / self._of_rows()).sum() + mean * sd**-2) / weight
        found = -1.0
        while found < 0.0:
            found = float(self.rng.normal(centre, weight**-0.5))
        self.exponent = found

    def _draw_effects(self) -> None:
        left, count = self.log_cost - self._mean() + self.effect[self.data.model], len(self.effect)
        weight = np.bincount(self.data.model, 1.0 / self._of_rows(), minlength=count) + 1.0 / self.of_models
        mean = np.bincount(self.data.model, left / self._of_rows(), minlength=count) / weight
        self.effect = mean + self.rng.standard_normal(count) / np.sqrt(weight)

    def _variance(self, left: FloatArray) -> float:
        of_prior = PRIOR_ROWS * PRIOR_VARIANCE
        return float((of_prior + (left**2).sum()) / self.rng.chisquare(PRIOR_ROWS + len(left)))

    def _draw_taus(self) -> None:
        of_each = self._misfit(np.exp(self.log_cost)[:, None], TAUS)
        for chat in range(2):
            log_density = of_each[self.data.chat == chat].sum(axis=0)
            weights = np.exp(log_density - log_density.max())
            self.taus[chat] = self.rng.choice(TAUS, p=weights / weights.sum())


def left_out(
    rows: Sequence[PublishedCost], group: Callable[[PublishedCost], str], sweeps: int = SWEEPS
) -> list[tuple[PublishedCost, float, float]]:
    """Each row with the 90 % interval that rows of other groups alone give it."""
    found, rng = [], np.random.default_rng(1)
    for name in dict.fromkeys(group(row) for row in rows):
        known = cost_draws([row for row in rows if group(row) != name], sweeps=sweeps)
        found += [(row, *known.interval(row, rng)) for row in rows if group(row) == name]
    return found


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
    text = HEADER + yaml.safe_dump(content(rows, cost_draws(rows, sweeps=FINAL_SWEEPS)), sort_keys=False, width=1000)
    WRITTEN.write_text(text, encoding="utf-8")
    if "--judge" in sys.argv[1:]:
        judged(rows, lambda row: row.model, "models")
        judged(rows, lambda row: row.family, "families")


if __name__ == "__main__":
    main()
