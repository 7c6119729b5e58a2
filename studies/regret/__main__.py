"""What following PLAS's pick is worth in nats: every public table of trained models is a choice whose best is known.

    python -m studies.regret [--published NAME=FILE ...] [--choices choices.csv]

It needs plugins/evidence, whose tables it reads. What a choice is, the rules and what is counted: README.md. It prints the tables of results.md and writes regret.png.
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
from plas_evidence.tables import GroupedTable, base, published

from nas.files.figures import save, styled
from objectives.fitting.trained_models import Table
from search_spaces.arrays import FloatArray, IntArray
from studies.regret.choices import Candidates, limits_of, read_as_new, sets_of, taken
from studies.regret.rules import ACTIVE, EVIDENCE, LEAST_REGRET, RANDOM, SEEN, LawsLeftOut, Rule, regrets, rules_of

BOOTSTRAPS, SEED = 4_000, 20_261_129
ALIKE = np.log(1.05)
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


def outcomes_of(source: GroupedTable, laws: LawsLeftOut) -> list[Outcome]:
    """Every choice of a table."""
    source = read_as_new(source)
    if source.unit == "as published" or not (sets := sets_of(source)):
        return []
    rules, quantities = rules_of(source, laws.without(source.laboratory)), taken(source.table)
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
        "tokens": apart("tokens") > np.log(1.01),
        "dense against experts": dense(one[0]) != dense(other[0]),
        "E or K": max(apart("n_experts"), apart("top_k")) > 0,
        "depth": apart("depth") > ALIKE,
        "FFN ratio": apart("ffn_ratio") > ALIKE,
    }
    return next((name for name, holds in differs.items() if holds), "other")


def balanced(outcomes: Sequence[Outcome], value: Callable[[Outcome], float]) -> float:
    """The mean over limits, then sets, kinds and families."""
    levels: list[Callable[[Outcome], object]] = [lambda o: o.family, lambda o: o.kind, lambda o: o.number]
    return _nested(outcomes, levels, value)


def _nested(
    outcomes: Sequence[Outcome], levels: Sequence[Callable[[Outcome], object]], value: Callable[[Outcome], float]
) -> float:
    if not levels:
        return float(np.mean([value(outcome) for outcome in outcomes]))
    parts: dict[object, list[Outcome]] = {}
    for outcome in outcomes:
        parts.setdefault(levels[0](outcome), []).append(outcome)
    return float(np.mean([_nested(part, levels[1:], value) for part in parts.values()]))


@dataclass(frozen=True, eq=False)
class Means:
    """Mean regret of tables (tables,) by rule, nats, and each table's weight in bootstraps over laboratories, (bootstraps, tables)."""

    tables: Sequence[str]
    by_rule: dict[str, FloatArray]
    weights: FloatArray

    def interval(self, value: Callable[[Callable[[str], FloatArray]], FloatArray]) -> tuple[float, float]:
        """95 % of what a function makes of each rule's bootstrapped means (bootstraps,)."""
        total = self.weights.sum(axis=1)
        drawn = value(lambda rule: self.weights @ self.by_rule[rule] / total)
        low, high = np.nanquantile(drawn, [0.025, 0.975])
        return float(low), float(high)


def means_of(outcomes: Sequence[Outcome]) -> Means:
    """The tables' means of some choices."""
    tables = list(dict.fromkeys((outcome.table, outcome.laboratory) for outcome in outcomes))
    own = {name: [outcome for outcome in outcomes if outcome.table == name] for name, _ in tables}
    by_rule = {
        rule: np.array([balanced(own[name], lambda o, rule=rule: o.regret[rule]) for name, _ in tables])
        for rule in outcomes[0].regret
    }
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
    by_rules("Equal tokens: the headline", tokens)
    by_rules("Equal tokens, sets of rows that the law is fitted on", inside)
    by_rules("Equal compute", compute)
    by_families(tokens)
    by_tables(tokens)
    by_kinds("equal tokens", tokens)
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
    other = float(means.by_rule[ACTIVE].mean())
    for rule, values in means.by_rule.items():
        own = float(values.mean())
        low, high = means.interval(lambda of, rule=rule: of(rule))
        less, more = means.interval(lambda of, rule=rule: of(rule) / of(ACTIVE))
        under, over = means.interval(lambda of, rule=rule: of(rule) - of(ACTIVE))
        ratio = f"{own / other:.2f} | {less:.2f} to {more:.2f} | {own - other:+.4f} | {under:+.4f} to {over:+.4f}"
        print(f"| {rule} | {own:.4f} | {low:.4f} to {high:.4f} | {ratio} |")


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
    """Mean regret of each rule with its interval, and of four rules by table."""
    means = means_of(outcomes)
    rules = [rule for rule in means.by_rule if rule != SEEN][::-1]
    with styled({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(10.0, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.2))
        for place, rule in enumerate(rules):
            low, high = means.interval(lambda of, rule=rule: of(rule))
            left.plot([low, high], [place, place], color=SHOWN.get(rule, "#555555"), lw=2)
            left.plot(means.by_rule[rule].mean(), place, "o", color=SHOWN.get(rule, "#555555"))
        left.set(yticks=range(len(rules)), yticklabels=rules, xlabel="mean regret, nats (95 % over laboratories)")
        left.set_xlim(left=0.0)
        order = np.argsort(means.by_rule[RANDOM])
        for rule, colour in SHOWN.items():
            right.plot(means.by_rule[rule][order], range(len(order)), "o", color=colour, label=rule, alpha=0.9)
        right.set(yticks=range(len(order)), yticklabels=[means.tables[i] for i in order])
        right.set_xscale("symlog", linthresh=0.005)
        right.set_xticks([0, 0.005, 0.02, 0.1, 0.5], ["0", "0.005", "0.02", "0.1", "0.5"])
        right.set(xlabel="mean regret, nats (linear to 0.005, then logarithmic)")
        right.grid(axis="y", color="#eeeeee")
        right.legend(frameon=False, loc="lower right")
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
    laws = LawsLeftOut(tables)
    outcomes = [outcome for table in tables for outcome in outcomes_of(table, laws)]
    report(outcomes)
    picture([o for o in outcomes if not o.candidates.equal_compute], Path(__file__).with_name("regret"))
    if given.choices:
        write_choices(outcomes, given.choices)
    print(f"\n{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
