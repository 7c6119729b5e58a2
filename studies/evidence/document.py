"""What laboratories left out say of the law `evidence`: order and error beside the best law of each table, what its intervals hold."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from plas_evidence.judging import BINS, QUESTIONS, Judgement, TableRecord
from plas_evidence.record_document import content, doubts_table
from plas_evidence.tables import RULES

from nas.document.document import Cell, Document, Section, Table, figures, table_of
from search_spaces.arrays import FloatArray
from studies.evidence.left_out import DESIGNS, EVIDENCE, width_alone

NEAR = 0.01  # of an order: one point
BINNED = figures({"probability %": "", "pairs": ",", "right %": ".1f", "right %, mean over laboratories": ".1f"})
INSIDE = "by laboratory, inside of the evidence"
CALIBRATION = "How often the design that it ranks better has the lower loss, equal tokens"


def left_out_document(records: Sequence[TableRecord]) -> Document:
    """The law of the other laboratories on each table beside the best law or rule, designs of equal tokens; what its intervals hold."""
    judged = [record for record in records if DESIGNS in record.by]
    title = "The law evidence of the other laboratories, pairs of equal tokens"
    doubts = {record.source.name: doubt for record in judged if (doubt := _judged(record).doubt) is not None}
    header = ("table", "pairs", "order %", "best other", "off by, nats", "best other law")
    tables = [Section(title, (table_of(header, list(map(_left_out, judged))),)), Section("", (_errors(judged),))]
    if doubts:
        tables += [
            Section("", (doubts_table("its intervals", doubts),)),
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
