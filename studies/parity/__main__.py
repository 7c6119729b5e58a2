"""Do predicted tokens to parity hold what laboratories measured? Published losses of families of models, each text apart.

    python -m studies.parity

It prints the tables of results.md. Rules and data are there.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

from nas.problem.parity import LossCurve
from nas.problem.settings import trained_on
from nas.problem.uncertainty import Difference, paired, possible_losses
from nas.study.baselines import baseline
from nas.study.catalogue import load_law
from objectives.loss_law.law import Law
from objectives.published_models import models_named
from search_spaces.architectures import Architectures, one

HERE = Path(__file__).parent
BYTES = 4.0  # of English per token: what the law's nats are per
TEXTS = ("WikiText-2", "mean of 7 texts", "wikipedia english")
MADE_FROM_OTHERS = (
    "Llama-3.2-1B",
    "Llama-3.2-3B",
    "gemma-2-2b",
    "gemma-3-12b-pt",
    "gemma-3-1b-pt",
)  # pruned, distilled
SDS = np.arange(0.0, 0.155, 0.005)  # nats, of a laboratory's data


@dataclass(frozen=True)
class Row:
    """A model's published loss on a text, nats per token; `table` is what may be compared with each other."""

    family: str
    model: str
    text: str
    table: str
    design: Architectures
    tokens: float
    nats: float


@dataclass(frozen=True)
class Pair:
    """Two models of a table: the measured difference of their losses on a text and the law's."""

    a: Row
    b: Row
    measured: float
    predicted: Difference


def rows() -> Iterator[Row]:
    """Read the published losses of models whose shape is known and that were trained from scratch."""
    shapes = {row.pop("model"): row for row in _table("shapes.csv")}
    bytes_per_token = {row["model"]: float(row["bytes_per_token"]) for row in _table("tokenizers.csv")}
    for row in _table("pairs.csv"):
        name, ids = row["model"], models_named(row["model"])
        if name in MADE_FROM_OTHERS or not (name in shapes or len(ids) == 1):
            continue
        if name in shapes:
            design = one({column: int(value) for column, value in shapes[name].items() if column != "source"})
        else:
            design = baseline(ids[0]).architecture
        text = next(text for text in TEXTS if text in row["text"])
        loss, tokens = float(row["loss_or_bpb"]), float(row["tokens"])
        if "nats per token" in row["text"]:  # of one tokenizer each
            yield Row(row["family"], name, text, f"{text}, {row['family']}", design, tokens, loss)
        else:
            seen = tokens * bytes_per_token.get(ids[0] if ids else "", BYTES) / BYTES
            yield Row(row["family"], name, text, row["text"], design, seen, loss * np.log(2.0) * BYTES)


def _table(name: str) -> list[dict[str, str]]:
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def pairs(law: Law, found: Sequence[Row]) -> list[Pair]:
    """Compare the models of each table; the pairs in which the law claims something."""
    every = [(a, b) for a, b in combinations(found, 2) if a.table == b.table and a.model != b.model]
    compared = [
        Pair(a, b, a.nats - b.nats, paired(trained_on(law, a.tokens), a.design, b.design, trained_on(law, b.tokens))[0])
        for a, b in every
    ]
    return [pair for pair in compared if pair.predicted.known]


def steepness(some: Sequence[Pair]) -> float:
    """How many nats on this text go with one of the law: by least squares, each family with one weight."""
    families = [pair.a.family for pair in some]
    weight = np.array([1.0 / families.count(family) for family in families])
    predicted = np.array([pair.predicted.nats for pair in some])
    return float((weight * predicted) @ [pair.measured for pair in some] / ((weight * predicted) @ predicted))


def turned(pair: Pair) -> Pair:
    """The same pair with its models exchanged."""
    of = pair.predicted
    return Pair(pair.b, pair.a, -pair.measured, Difference(-of.nats, -of.high, -of.low, 1.0 - of.better))


def parity_holds(law: Law, pair: Pair, steep: float) -> tuple[bool, bool, float]:
    """Whether the 90 % interval of tokens at which `b` has the loss of `a` holds what was measured, whether its middle is on the right side of b's own
    tokens, and by which factor its ends are apart.

    What was measured is known at one number of tokens: from there the law's own curve is followed to the other loss.
    """
    a, b = pair.a, pair.b
    interval = LossCurve.of(law, b.design).level_with(possible_losses(trained_on(law, a.tokens), a.design))
    level = float(trained_on(law, b.tokens).loss(b.design)[0]) + pair.measured / steep
    needed = np.inf
    if level > float(trained_on(law, 1e15).loss(b.design)[0]):

        def over(log: float) -> float:
            return float(trained_on(law, np.exp(log)).loss(b.design)[0]) - level

        ends = np.log(1e8), np.log(1e15)
        needed = float(np.exp(brentq(over, *ends))) if over(ends[0]) > 0.0 else 1e8
    inside, side = interval.low <= needed <= interval.high, (interval.middle > b.tokens) == (pair.measured < 0)
    return inside, side, interval.high / interval.low


def of_families(law: Law, found: Sequence[Pair]) -> Iterator[list[str]]:
    """Each family on each text: the text's steepness by the other families, how often the intervals hold."""
    for text in TEXTS:
        there = [pair for pair in found if pair.a.text == text and pair.a.family == pair.b.family]
        for family in sorted({pair.a.family for pair in there}):
            steep = steepness([pair for pair in there if pair.a.family != family])
            mine = [pair for pair in there if pair.a.family == family]
            nats = [pair.predicted.low <= pair.measured / steep <= pair.predicted.high for pair in mine]
            tokens = [parity_holds(law, each, steep) for pair in mine for each in (pair, turned(pair))]
            finite = [width for *_, width in tokens if np.isfinite(width)]
            yield [
                text,
                family,
                f"{steep:.2f}",
                str(len(mine)),
                str(sum(nats)),
                str(sum(inside for inside, _, _ in tokens)),
                str(sum(side for _, side, _ in tokens)),
                str(len(finite)),
                f"{np.median(finite):,.0f}",
            ]


def of_laboratories(found: Sequence[Pair]) -> Iterator[list[str]]:
    """The sd of a laboratory's data that lets 90 % of differences between families lie in their intervals, by families left out."""
    for text in TEXTS[1:]:
        steep = steepness([pair for pair in found if pair.a.text == text and pair.a.family == pair.b.family])
        there = [pair for pair in found if pair.a.text == text and pair.a.family != pair.b.family]
        families = sorted({row.family for pair in there for row in (pair.a, pair.b)})
        held = []
        for family in families:
            rest = [pair for pair in there if family not in (pair.a.family, pair.b.family)]
            sd = next(sd for sd in SDS if _share(rest, steep, sd) >= 0.9)
            held.append(_share([pair for pair in there if pair not in rest], steep, sd))
        own = next(sd for sd in SDS if _share(there, steep, sd) >= 0.9)
        shares = [100 * _share(there, steep, 0.0), 100 * float(np.mean(held)), 100 * min(held)]
        yield [text, str(len(families)), str(len(there)), f"{own:.3f}", *(f"{share:.0f} %" for share in shares)]


def _share(some: Sequence[Pair], steep: float, sd: float) -> float:
    """The share of differences in the 90 % intervals, which an sd in nats makes wider."""
    ends = np.array([(pair.predicted.low, pair.predicted.high) for pair in some])
    half = np.hypot((ends[:, 1] - ends[:, 0]) / 2, 1.645 * sd)
    return float(np.mean(np.abs(np.array([pair.measured for pair in some]) / steep - ends.mean(axis=1)) <= half))


def _print(header: Sequence[str], lines: Iterator[list[str]]) -> None:
    print(f"| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for line in lines:
        print(f"| {' | '.join(line)} |")


def main() -> None:
    """Print both tables."""
    law = load_law("evidence")
    found = pairs(law, list(rows()))
    _print(
        [
            "text",
            "family",
            "nats of the text per nat",
            "pairs",
            "difference held",
            "tokens held, both ways",
            "right side",
            "with an upper end",
            "ends apart, times",
        ],
        of_families(law, found),
    )
    print()
    _print(
        ["text", "families", "pairs of two families", "sd, nats", "held without it", "held, left out", "least"],
        of_laboratories(found),
    )


if __name__ == "__main__":
    main()
