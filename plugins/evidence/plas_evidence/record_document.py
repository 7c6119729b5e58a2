"""What `evidence` shows: the record over all tables, one question table by table, laboratories left out."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np

from nas.document.document import Cell, Column, Document, Part, Section, Table, figures, table_of
from nas.study.study_laws import Record, strongest
from plas_evidence.judging import BINS, QUESTIONS, Doubt, Judgement, TableRecord, means
from plas_evidence.left_out import DESIGNS, EVIDENCE, width_alone
from plas_evidence.tables import RULES
from search_spaces.arrays import FloatArray

NEAR = 0.01  # of an order: one point
JUDGED = (
    Column("by", words=True),
    *figures({"order %": ".1f", "95 %": "", "regret, nats": ".4f", "nats per nat": ".2f", "off by, nats": ".4f"}),
    Column("priced %", format=".0f"),
)
DOUBT = figures(
    {"outside %": ".0f", "50/80/90 % hold": "", "90 % width": ".3f", "sure %": ".0f", "of these right %": ".1f"}
)
BINNED = figures({"probability %": "", "pairs": ",", "right %": ".1f", "right %, mean over laboratories": ".1f"})
INSIDE = "by laboratory, inside of the evidence"
CALIBRATION = "How often the design that it ranks better has the lower loss, equal tokens"
NAN = float("nan")
Means = Mapping[str, Mapping[str, Record]]


def content(records: Sequence[TableRecord]) -> dict[str, Any]:
    """Everything as plain content: by table and question what became of every law and rule, and the record over the tables."""
    return {
        "tables": [
            {
                "name": record.source.name,
                "laboratory": record.source.laboratory,
                "models": len(record.source.table),
                "questions": {question: _question_content(record, question) for question in record.by},
            }
            for record in records
        ],
        "record": {
            question: {name: asdict(own) for name, own in by.items()} for question, by in means(records).items()
        },
    }


def _question_content(record: TableRecord, question: str) -> dict[str, Any]:
    by, pairs = record.by[question], record.pairs[question]
    return {
        "pairs": len(pairs),
        "models": len(pairs.rows),
        "decides": question in record.decided,
        "by": {name: own and asdict(own) for name, own in by.items()},
        "fitted_to_it": sorted(record.fitted & by.keys()),
    }


def record_document(records: Sequence[TableRecord], stored: Mapping[str, Record] | None = None) -> Document:
    """By question the law evidence beside the strongest rule, then every law and rule; what decides nothing.

    stored: what the shipped record has of the law evidence on laboratories left out, where it is of the same tables.
    """
    by_question, models = means(records), sum(len(record.source.table) for record in records)
    title = f"Pairs in the right order, %, mean over tables: {models:,} models in {len(records)} tables"
    names = dict.fromkeys(name for by in by_question.values() for name in by)
    fitted = {name for record in records for name in record.fitted}
    rows = [[name + "*" * (name in fitted), *(by[name].in_full for by in by_question.values())] for name in names]
    every = table_of(["by", *by_question], rows, notes=_reading(by_question, fitted))
    return Document(title, (Section(title, (_leading(by_question, stored),)), Section("", (every,))), content(records))


def _leading(by_question: Means, stored: Mapping[str, Record] | None) -> Table:
    """By question: tables that decide it, the law evidence left out, the strongest rule."""
    rows: list[list[Cell]] = []
    for question, by in by_question.items():
        rule, tables = strongest({rule: by[rule] for rule in RULES}), next(iter(by.values())).tables
        own = [] if stored is None else [stored[question].in_short if question in stored else "-"]
        rows.append([question, tables, *own, f"{by[rule].in_full} {rule}" if rule is not None else "-"])
    left_out = [] if stored is None else ["evidence, left out"]
    return table_of(["question", "tables", *left_out, "strongest rule without a law"], rows)


def _reading(by_question: Means, fitted: Collection[str]) -> list[str]:
    """How the record is read."""
    silent = sorted(set(QUESTIONS) - set(by_question))
    return [
        *(["*: fitted to some of these tables, so no test of it; --left-out is one of evidence."] if fitted else []),
        "50: a coin. -: it says nothing of any.",
        "In brackets the share of the pairs that it prices, %, where not all; the others count 50.",
        *([f"No table decides {', '.join(silent)}: too few pairs, or none."] if silent else []),
        "One question table by table: --question shape; all of it: --json.",
    ]


def question_document(question: str, records: Sequence[TableRecord]) -> Document:
    """One question, table by table."""
    sections = [_question_section(question, record) for record in records if question in record.by]
    none = Section("", (f"No table has a pair for {question}.",))
    return Document(question, tuple(sections or [none]), content(records))


def _question_section(question: str, record: TableRecord) -> Section:
    source, pairs = record.source, record.pairs[question]
    whose = f", {source.laboratory}" if source.laboratory else ""
    few = "" if question in record.decided else "; too few to decide anything"
    own = {name: one for name, one in record.by[question].items() if one is not None and one.mute < 1.0}
    marked = {name: name + "*" * (name in record.fitted) for name in own}
    doubts = {marked[name]: one.doubt for name, one in own.items() if one.doubt is not None}
    parts: list[Part] = [Table(JUDGED, tuple((marked[name], *_cells(one)) for name, one in own.items()))]
    parts += ["", _doubts("by", doubts)] if doubts else []
    if rules := [name for name in RULES if name in own]:
        best = max(rules, key=lambda rule: own[rule].order)
        parts.append(f"Strongest rule without a law: {best}, {100 * own[best].order:.1f} %.")
    if fitted := record.fitted & own.keys():
        parts.append(f"*: fitted to this table: {', '.join(sorted(fitted))}.")
    if silent := record.by[question].keys() - own.keys():
        parts.append(f"Says nothing: {', '.join(sorted(silent))}.")
    title = f"{question}: {source.name}{whose}, {len(pairs):,} pairs of {len(pairs.rows):,} models{few}"
    return Section(title, tuple(parts))


def _cells(one: Judgement) -> tuple[Cell, ...]:
    interval = "{:.0f}-{:.0f}".format(*(100 * end for end in one.interval))
    return (100 * one.order, interval, one.regret, one.slope, one.error, 100 * one.pairs / one.of)


def left_out_document(records: Sequence[TableRecord]) -> Document:
    """The law of the other laboratories on each table beside the best law or rule, designs of equal tokens; what its intervals hold."""
    judged = [record for record in records if DESIGNS in record.by]
    title = "The law evidence of the other laboratories, pairs of equal tokens"
    doubts = {record.source.name: doubt for record in judged if (doubt := _judged(record).doubt) is not None}
    header = ("table", "pairs", "order %", "best other", "off by, nats", "best other law")
    tables = [Section(title, (table_of(header, list(map(_left_out, judged))),)), Section("", (_errors(judged),))]
    if doubts:
        tables += [
            Section("", (_doubts("its intervals", doubts),)),
            Section(f"Differences in its 90 % intervals, %, {INSIDE}", (_coverage(records),)),
            Section(CALIBRATION, (Table(BINNED, tuple(calibration(judged))),)),
        ]
    return Document(title, (*tables, Section("", tuple(verdicts(judged)))), content(records))


def _errors(records: Sequence[TableRecord]) -> Table:
    """Its error of differences beside each law's over the tables that decide, that the law prices whole, and that it was not fitted to."""
    decided = [record for record in records if DESIGNS in record.decided]
    of_laws = [_errors_of_laws(record) for record in decided]
    names = dict.fromkeys(name for errors in of_laws for name in errors)
    beside = {"each table's best law": [min(errors.values(), default=None) for errors in of_laws]}
    beside |= {name: [errors.get(name) for errors in of_laws] for name in names}
    rows = []
    for what, errors in beside.items():
        own = zip(decided, errors, strict=True)
        if ratios := [_judged(record).error / error for record, error in own if error is not None]:
            rows.append((what, f"{sum(r <= 1 for r in ratios)} of {len(ratios)}", f"{max(ratios):.2f}"))
    return table_of(("its error of differences beside", "no larger in tables", "times at worst"), rows)


def _coverage(records: Sequence[TableRecord]) -> Table:
    """The share of differences that 90 % intervals hold, a laboratory a row, a question a column; their means."""
    held = {question: by for question in QUESTIONS if (by := held_by_laboratory(records, question))}
    laboratories = dict.fromkeys(name for by in held.values() for name in by)
    rows = [
        [name, *(f"{100 * by[name][0]:.0f} ({by[name][1]:,})" if name in by else "-" for by in held.values())]
        for name in laboratories
    ]
    middle = [f"{100 * np.mean([share for share, _ in by.values()]):.0f}" for by in held.values()]
    return table_of(
        ["laboratory", *held], [*rows, ["mean over laboratories", *middle]], notes=["In brackets the pairs."]
    )


def calibration(records: Sequence[TableRecord]) -> list[tuple[str, int, float, float]]:
    """Of each bin of probability: pairs, the share that is right, and its mean over laboratories with any, %; nan without a pair."""
    by: dict[str, list[FloatArray]] = {}
    for record in records:
        doubt = _judged(record).doubt
        if doubt is not None and doubt.bins:
            by.setdefault(record.source.laboratory, []).append(np.array(doubt.bins, dtype=np.float64))
    pairs, right = np.moveaxis(np.array([np.sum(bins, axis=0) for bins in by.values()]).reshape(len(by), -1, 2), 2, 0)
    with np.errstate(invalid="ignore"):
        shares = right / pairs
        of_all, mean = (
            right.sum(axis=0) / pairs.sum(axis=0),
            np.nansum(shares, axis=0) / np.isfinite(shares).sum(axis=0),
        )
    bins = (f"{100 * low:.0f} to {100 * high:.0f}" for low, high in pairwise(BINS))
    return list(zip(bins, map(int, pairs.sum(axis=0)), (100 * of_all).tolist(), (100 * mean).tolist(), strict=False))


def verdicts(records: Sequence[TableRecord]) -> list[str]:
    """Over the tables that decide: how often its order and its errors are those of the best, what its intervals hold."""
    decided = [record for record in records if DESIGNS in record.decided]
    near = [_judged(one).order >= _best_order(one)[0] - NEAR for one in decided]
    lines = [
        f"Order at most a point behind the best of {len(records[0].by[DESIGNS]) - 1} laws and rules in {sum(near)} of {len(near)} tables that decide."
    ]
    if behind := [f"{one.source.name} ({100 * by:.1f})" for one in decided if (by := _behind_rule(one)) > 0]:
        lines.append(f"Points behind the best rule without a law of the table: {', '.join(behind)}.")
    by_laboratory = {name: share for name, (share, _) in held_by_laboratory(records, DESIGNS).items()}
    if by_laboratory:
        least = min(by_laboratory, key=lambda name: by_laboratory[name])
        lines.append(
            f"90 % intervals hold {100 * np.mean([*by_laboratory.values()]):.0f} % of the differences inside of the evidence, the mean over {len(by_laboratory)} laboratories, {100 * by_laboratory[least]:.0f} % in {least}."
        )
        widths = [
            one.doubt.width / width_alone(record.source)
            for record in records
            if (one := _judged(record)).doubt is not None and one.doubt.width
        ]
        lines.append(
            f"They are {np.median(widths):.1f} times as wide as those of the form fitted to the table alone (median over tables)."
        )
    return lines


def _left_out(record: TableRecord) -> tuple[Cell, ...]:
    own, (order, best) = _judged(record), _best_order(record)
    errors = [(error, law) for law, error in _errors_of_laws(record).items()]
    few = "" if DESIGNS in record.decided else " (few)"
    return (
        record.source.name,
        f"{own.pairs:,}{few}",
        f"{100 * own.order:.1f}",
        f"{100 * order:.1f} {best}",
        f"{own.error:.4f}",
        "{:.4f} {}".format(*min(errors)) if errors else "-",
    )


def _judged(record: TableRecord) -> Judgement:
    own = record.by[DESIGNS][EVIDENCE]
    assert own is not None
    return own


def _others(record: TableRecord) -> dict[str, Judgement]:
    by = record.by[DESIGNS].items()
    return {name: own for name, own in by if own is not None and name != EVIDENCE and own.mute < 1.0}


def _best_order(record: TableRecord) -> tuple[float, str]:
    """The best order of another law or rule."""
    orders = {name: own.order for name, own in _others(record).items()}
    best = max(orders, key=lambda name: orders[name])
    return orders[best], best


def _behind_rule(record: TableRecord) -> float:
    """How far its order is behind that of the table's best rule."""
    orders = (own.order for name, own in _others(record).items() if name in RULES)
    return max(orders, default=0.5) - _judged(record).order


def _errors_of_laws(record: TableRecord) -> dict[str, float]:
    """The error of each other law that prices all pairs and was not fitted to the table."""
    return {
        name: own.error
        for name, own in _others(record).items()
        if name not in RULES and name not in record.fitted and own.pairs == own.of
    }


def held_by_laboratory(records: Sequence[TableRecord], question: str) -> dict[str, tuple[float, int]]:
    """The share of a question's differences in 90 % intervals by laboratory, its tables by their pairs inside, and how many these are."""
    by_laboratory: dict[str, list[tuple[float, float]]] = {}
    for record in records:
        own = record.by.get(question, {}).get(EVIDENCE)
        if own is not None and own.doubt is not None and own.doubt.coverage is not None:
            inside = own.pairs * (1.0 - own.doubt.outside)
            by_laboratory.setdefault(record.source.laboratory, []).append((own.doubt.coverage[90], inside))
    return {
        name: (
            float(np.average([h for h, _ in tables], weights=[w for _, w in tables])),
            round(sum(w for _, w in tables)),
        )
        for name, tables in by_laboratory.items()
    }


def _doubts(head: str, doubts: Mapping[str, Doubt]) -> Table:
    """What the draws of laws, or of one law on several tables, claim and what holds."""
    return Table((Column(head, words=True), *DOUBT), tuple((name, *_doubt(doubt)) for name, doubt in doubts.items()))


def _doubt(doubt: Doubt) -> tuple[Cell, ...]:
    held = "/".join(f"{100 * share:.0f}" for share in (doubt.coverage or {}).values())
    sure, right = (NAN if share is None else 100 * share for share in (doubt.sure, doubt.sure_right))
    return (100 * doubt.outside, held or "-", doubt.width or NAN, sure, right)
