"""Published laws and the rules that need none on other people's models: order, what the pick loses, slope and level.

    PLAS_EXTERNAL_DATA=FOLDER python benchmarks/laws_elsewhere.py           print the figures
    PLAS_EXTERNAL_DATA=FOLDER python benchmarks/laws_elsewhere.py --write   and write them to docs/laws-elsewhere.md and objectives/records.yaml

FOLDER holds loss/morph.csv, gemstones_hot.csv, deepmind_routing.csv, chinchilla_epoch.csv, fineweb_13b.csv and bian_shapes.csv, which
are not part of the project (docs/laws-elsewhere.md says whose they are); docs/data/trained.csv is. A quantity that a table lacks is that of a dense model, or the
middle of the law's range.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import yaml
from laws_elsewhere_tables import Measured, tables

from nas.files.tables import write
from nas.study.catalogue import load_law
from objectives.fitting.portability import predictions, stand_ins
from objectives.fitting.trained_models import Table
from objectives.loss_law.law import Law
from objectives.plugins import documents
from search_spaces.arrays import FloatArray

ROOT = Path(__file__).parent.parent
PAGE, RECORDS = ROOT / "docs" / "laws-elsewhere.md", ROOT / "objectives" / "records.yaml"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
RULES = {
    "more parameters": "parameters",
    "more active parameters": "active_parameters",
    "deeper": "depth",
    "wider": "width",
}  # what loses less, by the quantity that is larger
ALIKE = 1e-9  # nats: predictions closer than this are a tie
RECORDED = 15  # pairs of equal tokens that a table has at least, to be in the records
ACROSS_TOKENS = "Chinchilla points"  # whose pairs say above all whether a law sees tokens
RECORDS_HEAD = """# How laws and rules that need none order other people's models; written by benchmarks/laws_elsewhere.py --write.
# ordered: %, of the pairs that it prices of all of the table; regret: of its pick, nats.
"""


@dataclass(frozen=True)
class Score:
    """How one law or rule does on one table.

    pairs: those of one group that differ in loss and that it prices, of `of`; ordered: the share in the right order, a tie
    half; regrets: measured loss of what it likes best above the least of the group, nats, a tie its mean; slope, level, line:
    nats measured per nat predicted, mean predicted less measured, rms around the line; nan of a rule.
    """

    pairs: int
    of: int
    ordered: float
    regrets: tuple[float, ...]
    slope: float = np.nan
    level: float = np.nan
    line: float = np.nan


def by_law(law: Law, table: Table) -> FloatArray | None:
    """A law's loss of every row, nan where it says nothing, (n,); None where it cannot be asked."""
    assumed = stand_ins(law, table)
    if assumed is None:
        return None
    predicted, priced = predictions(law, table, assumed), np.ones(len(table), dtype=bool)
    for name, (low, high) in law.prices.items():
        if table.has(name):
            priced &= (table.feature(name) >= low) & (table.feature(name) <= high)
    if law.prices_sparse and table.has("n_experts"):  # what experts must be is not told by these tables
        priced &= table.feature("n_experts") == 1
    return np.where(priced & np.isfinite(predicted), predicted, np.nan)


def by_rule(quantity: str, table: Table) -> FloatArray | None:
    """The rule that more of a quantity loses less, as a loss without a unit, (n,); None where the table does not hold it."""
    return -table.feature(quantity) if table.has(quantity) else None


def scored(predicted: FloatArray | None, measured: Measured, *, in_nats: bool) -> Score | None:
    """How predictions do on a table; None where fewer than three rows or no difference is predicted."""
    if predicted is None or (rows := np.flatnonzero(np.isfinite(predicted))).size < 3:
        return None
    loss, pairs = measured.table.loss, _pairs(measured)
    own = [(a, b) for a, b in pairs if np.isfinite(predicted[a]) and np.isfinite(predicted[b])]
    gaps = [(predicted[a] - predicted[b], loss[a] - loss[b]) for a, b in own]
    if not any(abs(gap) > ALIKE for gap, _ in gaps):
        return None
    right = sum(0.5 if abs(gap) <= ALIKE else float(gap * true > 0) for gap, true in gaps)
    score = Score(len(own), len(pairs), right / len(own), _regrets(predicted, measured, rows))
    if not in_nats:
        return score
    slope, offset = np.polyfit(predicted[rows], loss[rows], 1)
    line = slope * predicted[rows] + offset - loss[rows]
    level = float(np.mean(predicted[rows] - loss[rows]))
    return Score(score.pairs, score.of, score.ordered, score.regrets, slope, level, float(np.sqrt((line**2).mean())))


def _pairs(measured: Measured) -> list[tuple[int, int]]:
    loss, group = measured.table.loss, measured.group
    return [(a, b) for a, b in combinations(range(len(loss)), 2) if group[a] == group[b] and loss[a] != loss[b]]


def _regrets(predicted: FloatArray, measured: Measured, rows: np.ndarray) -> tuple[float, ...]:
    loss, found = measured.table.loss, []
    for number in np.unique(measured.group[rows]):
        group = rows[measured.group[rows] == number]
        best = group[predicted[group] <= predicted[group].min() + ALIKE]
        if len(group) > 1:
            found.append(float(loss[best].mean() - loss[group].min()))
    return tuple(found)


def scores(measured: Measured) -> dict[str, Score]:
    """Of each shipped law and each rule that says something of a table, by name; laws first."""
    table = measured.table
    laws = {f"`{name}`": load_law(name) for name in documents("objectives.laws")}
    found = {name: scored(by_law(law, table), measured, in_nats=True) for name, law in laws.items()}
    found |= {name: scored(by_rule(quantity, table), measured, in_nats=False) for name, quantity in RULES.items()}
    return {name: score for name, score in found.items() if score is not None}


def figures(found: Mapping[str, Mapping[str, Score]], measured: Sequence[Measured]) -> str:
    """The page's tables in Markdown: counts, order, regret, slope."""
    names = [f"`{name}`" for name in documents("objectives.laws")] + list(RULES)
    counts = [
        f"| {own.name} | {len(own.table)} | {own.counted} | {'–' if own.off is None else f'{100 * own.off:.2f} %'} |"
        for own in measured
    ]
    parts = [
        "## How each table counts\n\n"
        "| table | models | its count of parameters | differs from that of its shapes by at most |\n|---|---|---|---|\n"
        + "\n".join(counts)
    ]
    for title, cell, asked in (
        ("Pairs in the right order", _ordered, names),
        ("What its pick loses", _regret, names),
        ("Slope and level", _line, names[: -len(RULES)]),
    ):
        lines = [
            f"| {name} | {' | '.join(cell(by[name]) if name in by else '–' for by in found.values())} |"
            for name in asked
        ]
        head = f"| by | {' | '.join(found)} |\n|{'---|' * (len(found) + 1)}"
        parts.append(f"## {title}\n\n{head}\n" + "\n".join(lines))
    return "\n\n".join(parts)


def _ordered(score: Score) -> str:
    return f"{100 * score.ordered:.1f} %" + (f" of {score.pairs}" if score.pairs < score.of else "")


def _regret(score: Score) -> str:
    mean, worst = np.mean(score.regrets), max(score.regrets)
    return f"{mean:.4f}" + (f" ({worst:.4f})" if len(score.regrets) > 1 else "")


def _line(score: Score) -> str:
    return f"{score.slope:.2f}, {score.level:+.2f}"


def records(found: Mapping[str, Mapping[str, Score]]) -> str:
    """Order and regret in YAML, by table and law or rule: of tables whose pairs are of equal tokens and enough to say something."""
    kept = {table: by for table, by in found.items() if table != ACROSS_TOKENS and _most_pairs(by) >= RECORDED}
    content = {
        table: {
            name.strip("`"): {
                "pairs": score.pairs,
                "of": score.of,
                "ordered": round(100 * score.ordered, 1),
                "regret": round(float(np.mean(score.regrets)), 4),
            }
            for name, score in by.items()
        }
        for table, by in kept.items()
    }
    return RECORDS_HEAD + yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120)


def _most_pairs(by: Mapping[str, Score]) -> int:
    return max(score.of for score in by.values())


def main() -> None:
    """Print the figures in Markdown, or write page and records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write docs/laws-elsewhere.md and objectives/records.yaml")
    given = parser.parse_args()
    measured = list(tables(Path(os.environ["PLAS_EXTERNAL_DATA"]) / "loss"))
    found = {own.name: scores(own) for own in measured}
    print(figures(found, measured))
    if given.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        write(PAGE, f"{before}{BEGIN}\n\n{figures(found, measured)}\n\n{END}{rest.partition(END)[2]}")
        write(RECORDS, records(found))


if __name__ == "__main__":
    main()
