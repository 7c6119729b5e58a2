"""What following PLAS's pick is worth in nats: every public table of trained models is a choice whose best is known.

    python -m studies.regret [--published NAME=FILE ...] [--choices choices.csv]

It needs plugins/evidence, whose tables it reads. What a choice is, the rules and what is counted: design.md. It prints the tables of results.md and writes regret.png.
"""

import argparse
import csv
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from plas_evidence.judging import ALIKE, EQUAL
from plas_evidence.tables import GroupedTable, base, published

from nas.files.figures import save, styled
from objectives.loss_law.law import Law
from plas_fit.fitting.trained_models import Table
from search_spaces.arrays import FloatArray, IntArray
from studies.evidence.left_out import EVIDENCE
from studies.regret.choices import Candidates, limits_of, read_as_new, sets_of, taken
from studies.regret.rules import (
    ACTIVE,
    ACTIVE_STORED,
    LEAST_REGRET,
    RANDOM,
    SEEN,
    Rule,
    laws_left_out,
    regrets,
    rules_of,
)

FEW_TOKENS = 2e6
BOOTSTRAPS, SEED = 4_000, 20_261_129
KINDS = ("tokens", "dense against experts", "E or K", "depth", "FFN ratio", "other")
SHOWN = {ACTIVE: "#d95f02", RANDOM: "#bbbbbb", LEAST_REGRET: "#7570b3", EVIDENCE: "#1b9e77"}


@dataclass(frozen=True, eq=False)
class Outcome:
    """One choice: whose it is, its limit, and each rule's regret, nats per token.

    between: in what the picks of evidence and of most active differ, "" where they are one or either ties.
    """

    table: str
    laboratory: str
    number: int
    candidates: Candidates
    family: str
    kind: str
    fits: int
    regret: dict[str, float]
    between: str


def outcomes_of(source: GroupedTable, left_out: Law) -> list[Outcome]:
    """Every choice of a table."""
    source = read_as_new(source)
    if source.unit == "as published" or not (sets := sets_of(source)):
        return []
    rules, quantities = rules_of(source, left_out), taken(source.table)
    return [
        outcome
        for number, candidates in enumerate(sets)
        for family, kinds in quantities.items()
        for kind, values in kinds.items()
        for outcome in _within(source, number, candidates, family, kind, values, rules)
    ]


def _within(
    source: GroupedTable,
    number: int,
    candidates: Candidates,
    family: str,
    kind: str,
    values: FloatArray,
    rules: dict[str, Rule],
) -> Iterable[Outcome]:
    """The choices of one set under the limits of one kind."""
    for fits in limits_of(values[candidates.rows]):
        lost, picks = regrets(rules, candidates.rows[fits], candidates.loss[fits])
        between = _between(source.table, picks[EVIDENCE], picks[ACTIVE])
        named = (source.name, source.laboratory, number, candidates, family, kind)
        yield Outcome(*named, int(fits.sum()), lost, between)


def _between(table: Table, one: IntArray, other: IntArray) -> str:
    """In what two picks differ; "" where they are the same or one of them ties."""
    if len(one) > 1 or len(other) > 1 or one[0] == other[0]:
        return ""

    def apart(name: str) -> float:
        values = table.feature(name) if table.has(name) else np.ones(len(table))
        return float(np.abs(np.log(values[one[0]] / values[other[0]])))

    def dense(row: int) -> bool:
        return bool(table.feature("n_experts")[row] == 1)

    differs = {
        "tokens": apart("tokens") > EQUAL,
        "dense against experts": dense(one[0]) != dense(other[0]),
        "E or K": max(apart("n_experts"), apart("top_k")) > 0,
        "depth": apart("depth") > ALIKE,
        "FFN ratio": apart("ffn_ratio") > ALIKE,
    }
    return next((name for name, holds in differs.items() if holds), "other")


LEVELS: tuple[Callable[[Outcome], object], ...] = (lambda o: o.family, lambda o: o.kind, lambda o: o.number)


def balanced(outcomes: Sequence[Outcome], rule: str, levels: Sequence[Callable[[Outcome], object]] = LEVELS) -> float:
    """A rule's mean regret over limits, then sets, kinds and families, nats."""
    if not levels:
        return float(np.mean([outcome.regret[rule] for outcome in outcomes]))
    parts: dict[object, list[Outcome]] = {}
    for outcome in outcomes:
        parts.setdefault(levels[0](outcome), []).append(outcome)
    return float(np.mean([balanced(part, rule, levels[1:]) for part in parts.values()]))


@dataclass(frozen=True, eq=False)
class Means:
    """Mean regret of tables (tables,) by rule, nats, and each table's weight in bootstraps over laboratories, (bootstraps, tables)."""

    tables: Sequence[str]
    by_rule: dict[str, FloatArray]
    weights: FloatArray

    def drawn(self, rule: str) -> FloatArray:
        """A rule's bootstrapped means, nats, (bootstraps,)."""
        means: FloatArray = self.weights @ self.by_rule[rule] / self.weights.sum(axis=1)
        return means


def interval(drawn: FloatArray) -> tuple[float, float]:
    """The middle 95 % of bootstrapped values, (bootstraps,)."""
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def means_of(outcomes: Sequence[Outcome]) -> Means:
    """The tables' means of some choices."""
    tables = list(dict.fromkeys((outcome.table, outcome.laboratory) for outcome in outcomes))
    own = {name: [outcome for outcome in outcomes if outcome.table == name] for name, _ in tables}
    by_rule = {rule: np.array([balanced(own[name], rule) for name, _ in tables]) for rule in outcomes[0].regret}
    laboratories = list(dict.fromkeys(laboratory for _, laboratory in tables))
    share = np.full(len(laboratories), 1.0 / len(laboratories))
    times = np.random.default_rng(SEED).multinomial(len(laboratories), share, size=BOOTSTRAPS)
    weights = times[:, [laboratories.index(laboratory) for _, laboratory in tables]].astype(np.float64)
    return Means([name for name, _ in tables], by_rule, weights)


def report(outcomes: Sequence[Outcome]) -> None:
    """The tables in Markdown."""
    tokens = [outcome for outcome in outcomes if not outcome.candidates.equal_compute]
    compute = [outcome for outcome in outcomes if outcome.candidates.equal_compute]
    inside = [outcome for outcome in tokens if outcome.candidates.inside]
    many = [outcome for outcome in tokens if outcome.candidates.most_tokens > FEW_TOKENS]
    by_rules("Equal tokens: the headline", tokens)
    by_rules("Equal tokens, sets of rows that the law is fitted on", inside)
    by_rules("Equal compute", compute)
    by_rules("Equal tokens, without sets of 2 M tokens or fewer (added after the first run)", many)
    by_families(tokens)
    by_tables(tokens)
    by_kinds("equal tokens", tokens)
    by_kinds("equal tokens, rows that the law is fitted on (added after the first run)", inside)
    by_kinds("equal compute", compute)


def _counted(outcomes: Sequence[Outcome]) -> str:
    sets = {(outcome.table, outcome.number) for outcome in outcomes}
    tables, laboratories = {outcome.table for outcome in outcomes}, {outcome.laboratory for outcome in outcomes}
    return f"{len(outcomes):,} choices in {len(sets)} sets of {len(tables)} tables of {len(laboratories)} laboratories"


def by_rules(title: str, outcomes: Sequence[Outcome]) -> None:
    """Each rule's mean regret, and beside most active."""
    means = means_of(outcomes)
    print(f"\n## {title}\n\n{_counted(outcomes)}.\n")
    print(
        "| rule | mean regret, nats | 95 % | of most active | 95 % | less most active | 95 % |\n|---|---|---|---|---|---|---|"
    )
    other, others = float(means.by_rule[ACTIVE].mean()), means.drawn(ACTIVE)
    for rule, values in means.by_rule.items():
        own, drawn = float(values.mean()), means.drawn(rule)
        (low, high), (less, more), (under, over) = map(interval, (drawn, drawn / others, drawn - others))
        ratio = f"{own / other:.2f} | {less:.2f} to {more:.2f} | {own - other:+.4f} | {under:+.4f} to {over:+.4f}"
        print(f"| {rule} | {own:.4f} | {low:.4f} to {high:.4f} | {ratio} |")
    less, more = interval(means.drawn(EVIDENCE) / means.drawn(ACTIVE_STORED))
    ratio = f"{means.by_rule[EVIDENCE].mean() / means.by_rule[ACTIVE_STORED].mean():.2f} ({less:.2f} to {more:.2f})"
    print(f"\n{EVIDENCE} : {ACTIVE_STORED}, {ratio}")


def by_families(outcomes: Sequence[Outcome]) -> None:
    """Mean regret over tables, by family of limits."""
    rules = [*outcomes[0].regret]
    print(f"\n## By family of limits\n\n| limits of | tables | {' | '.join(rules)} |\n|---|---|{'---|' * len(rules)}")
    for family in dict.fromkeys(outcome.family for outcome in outcomes):
        means = means_of([outcome for outcome in outcomes if outcome.family == family])
        cells = " | ".join(f"{means.by_rule[rule].mean():.4f}" for rule in rules)
        print(f"| {family} | {len(means.tables)} | {cells} |")


def by_tables(outcomes: Sequence[Outcome]) -> None:
    """Each table's mean regret."""
    means, rules = means_of(outcomes), [*outcomes[0].regret]
    print(f"\n## By table\n\n| table | sets | choices | {' | '.join(rules)} |\n|---|---|---|{'---|' * len(rules)}")
    choices = Counter(outcome.table for outcome in outcomes)
    sets = Counter(table for table, _ in {(outcome.table, outcome.number) for outcome in outcomes})
    for place, table in enumerate(means.tables):
        cells = " | ".join(f"{means.by_rule[rule][place]:.4f}" for rule in rules)
        print(f"| {table} | {sets[table]} | {choices[table]} | {cells} |")


def by_kinds(title: str, outcomes: Sequence[Outcome]) -> None:
    """How often the pick of evidence lost less than that of most active, by what differs between them."""
    print(f"\n## Evidence against most active, by what differs between their picks: {title}\n")
    print("| differs | choices | tables | won | lost | nats won, mean over tables |\n|---|---|---|---|---|---|")
    for kind in KINDS:
        own = [outcome for outcome in outcomes if outcome.between == kind]
        if not own:
            continue
        won = np.array([outcome.regret[ACTIVE] - outcome.regret[EVIDENCE] for outcome in own])
        tables = {outcome.table for outcome in own}
        gain = np.mean([won[[o.table == table for o in own]].mean() for table in tables])
        print(f"| {kind} | {len(own)} | {len(tables)} | {(won > 0).sum()} | {(won < 0).sum()} | {gain:+.4f} |")


def picture(outcomes: Sequence[Outcome], stem: Path) -> None:
    """Mean regret of each rule with its interval, over all tables and over rows that the law is fitted on; four rules by table."""
    means = means_of(outcomes)
    inside = means_of([outcome for outcome in outcomes if outcome.candidates.inside])
    rules = [rule for rule in means.by_rule if rule != SEEN][::-1]
    with styled({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(10.0, 4.4), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.2))
        for of, up, face, label in (
            (means, 0.13, None, "all tables"),
            (inside, -0.13, "white", "rows the law is fitted on"),
        ):
            for place, rule in enumerate(rules):
                colour, height = SHOWN.get(rule, "#555555"), place + up
                left.plot(interval(of.drawn(rule)), [height, height], color=colour, lw=1.5)
                left.plot(of.by_rule[rule].mean(), height, "o", color=colour, mfc=face or colour)
            left.plot([], [], "o", color="#555555", mfc=face or "#555555", label=label)
        left.set(yticks=range(len(rules)), yticklabels=rules, xscale="log", xlim=(2e-4, 0.6))
        left.set(xlabel="mean regret, nats (95 % over laboratories)")
        order = np.argsort(means.by_rule[RANDOM])
        for rule, colour in SHOWN.items():
            right.plot(means.by_rule[rule][order], range(len(order)), "o", color=colour, label=rule, alpha=0.9)
        right.set(yticks=range(len(order)), yticklabels=[means.tables[i] for i in order])
        right.set_xscale("symlog", linthresh=0.002)
        right.set(xlim=(-0.0003, 1.6), xlabel="mean regret, nats (linear to 0.002, then logarithmic)")
        right.set_xticks([0, 0.002, 0.01, 0.1, 1.0], ["0", "0.002", "0.01", "0.1", "1"], minor=False)
        right.set_xticks([], minor=True)
        right.grid(axis="y", color="#eeeeee")
        for axes, columns in ((left, 2), (right, 4)):
            axes.legend(frameon=False, ncols=columns, loc="lower center", bbox_to_anchor=(0.4, 1.0), columnspacing=1.0)
        save(figure, stem, dpi=110, svg=False)


def write_choices(outcomes: Sequence[Outcome], path: Path) -> None:
    """Every choice with each rule's regret as CSV."""
    rules = [*outcomes[0].regret]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["table", "set", "equal", "family", "limit", "fit", *rules])
        for o in outcomes:
            equal = "compute" if o.candidates.equal_compute else "tokens"
            writer.writerow(
                [o.table, o.number, equal, o.family, o.kind, o.fits, *(f"{o.regret[r]:.6f}" for r in rules)]
            )


def main() -> None:
    """Print the tables and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--published", action="append", default=[])
    parser.add_argument("--choices", type=Path, help="write every choice with its regrets as CSV")
    given = parser.parse_args()
    started = time.monotonic()
    tables = [*base(), *published(given.published)]
    laws = laws_left_out(tables)
    outcomes = [outcome for table in tables for outcome in outcomes_of(table, laws[table.laboratory])]
    report(outcomes)
    picture([o for o in outcomes if not o.candidates.equal_compute], Path(__file__).with_name("regret"))
    if given.choices:
        write_choices(outcomes, given.choices)
    print(f"\n{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
