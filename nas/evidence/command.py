"""The work of `evidence`: tables read, laws and rules chosen, the record and its questions printed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.evidence import tables
from nas.evidence.judging import BINS, QUESTIONS, Doubt, Judgement, TableRecord, means, table_record
from nas.evidence.left_out import DESIGNS, EVIDENCE, laws_left_out, left_out, pooled_law, width_alone
from nas.evidence.request import EvidenceRequest
from nas.evidence.tables import RULES, laws_by_name
from nas.files.faults import unknown
from nas.files.tables import write
from nas.files.yaml_source import dump
from nas.study.study_laws import Record, records_of, strongest
from nas.terminal.console import Stages, say, say_json
from nas.terminal.screen_text import TITLE, Styled
from nas.terminal.tables import table
from search_spaces.arrays import FloatArray


def execute(request: EvidenceRequest) -> None:
    """Judge laws and rules on tables and print it.

    Raises:
        UsageError: a table, a law or a question that cannot be read.
    """
    if request.question is not None and request.question not in QUESTIONS:
        raise UsageError(f"question: {unknown('a question', request.question, QUESTIONS)}")
    if request.left_out and request.tables:
        raise UsageError("left_out: expected no table of yours, which no law has seen, got some; drop --left-out")
    laws, stage = laws_by_name(request.laws), Stages(quiet=request.quiet or request.json)
    pooled = request.left_out or request.write_law is not None
    chosen = [*tables.own(request.tables), *tables.published(request.published)]
    chosen = [*tables.base(), *chosen] if pooled or not chosen else chosen
    chosen_is_base = not (request.tables or request.published)
    each_out = left_out(chosen, stage) if pooled else []
    if request.write_law is not None:
        write(request.write_law, "# Pooled by plas evidence.\n" + dump(pooled_law(chosen, each_out).mapping()))
    own = laws_left_out(each_out) if request.left_out else {}
    questions = [request.question] if request.question else list(QUESTIONS)
    records = []
    for each in chosen:
        stage(f"{each.name}: {len(each.table)} models")
        of_others = {EVIDENCE: own[each.laboratory]} if request.left_out else {}
        records.append(table_record(each, laws | of_others, questions))
    stage.close()
    if request.json:
        say_json(content(records))
    elif request.question:
        say_question(request.question, records)
    elif request.left_out:
        say_left_out(records)
    else:
        say_record(records, records_of(EVIDENCE) if chosen_is_base else None)


def content(records: Sequence[TableRecord]) -> dict[str, Any]:
    """Everything as plain content: by table and question what became of every law and rule, and the record over the tables."""
    return {
        "tables": [
            {
                "name": record.source.name,
                "laboratory": record.source.laboratory,
                "models": len(record.source.table),
                "questions": {
                    question: {
                        "pairs": len(record.pairs[question]),
                        "models": len(record.pairs[question].rows),
                        "decides": question in record.decided,
                        "by": {name: each and asdict(each) for name, each in by.items()},
                        "fitted_to_it": sorted(record.fitted & by.keys()),
                    }
                    for question, by in record.by.items()
                },
            }
            for record in records
        ],
        "record": {
            question: {name: asdict(each) for name, each in by.items()} for question, by in means(records).items()
        },
    }


HEADER = ["by", "order %", "95 %", "regret, nats", "nats per nat", "off by, nats", "priced %"]
DOUBT = ["outside %", "50/80/90 % hold", "90 % width", "sure %", "of these right %"]
LEFT_OUT = ["table", "pairs", "order %", "best other", "off by, nats", "best other law"]
NEAR = 0.01  # of an order: one point


def say_record(records: Sequence[TableRecord], stored: Mapping[str, Record] | None = None) -> None:
    """The record over all tables: by question the law evidence beside the strongest rule, then every law and rule; what decides nothing.

    stored: what the shipped record has of the law evidence on laboratories left out, where it is of the same tables.
    """
    found = means(records)
    models = sum(len(record.source.table) for record in records)
    say(Styled(f"Pairs in the right order, %, mean over tables: {models:,} models in {len(records)} tables", TITLE))
    _say_leading(found, stored)
    say()
    names = [*dict.fromkeys(name for by in found.values() for name in by)]
    fitted = {name for record in records for name in record.fitted}
    rows = [[name + "*" * (name in fitted), *(by[name].in_full for by in found.values())] for name in names]
    table(["by", *found], rows)
    say()
    for line in _reading(found, fitted):
        say(line)


def _say_leading(found: Mapping[str, Mapping[str, Record]], stored: Mapping[str, Record] | None) -> None:
    """By question: tables that decide it, the law evidence left out, the strongest rule."""
    header = [
        "question",
        "tables",
        *(["evidence, left out"] if stored is not None else []),
        "strongest rule without a law",
    ]
    rows = []
    for question, by in found.items():
        rule, tables = strongest({rule: by[rule] for rule in RULES}), next(iter(by.values())).tables
        own = [] if stored is None else [stored[question].in_short if question in stored else "-"]
        rows.append([question, str(tables), *own, f"{by[rule].in_full} {rule}" if rule is not None else "-"])
    table(header, rows)


def _reading(found: Mapping[str, Mapping[str, Record]], fitted: Collection[str]) -> list[str]:
    """How the record is read."""
    lines = []
    if fitted:
        lines.append("*: fitted to some of these tables, so no test of it; --left-out is one of evidence.")
    lines += [
        "50: a coin. -: it says nothing of any.",
        "In brackets the share of the pairs that it prices, %, where not all; the others count 50.",
    ]
    if silent := sorted(set(QUESTIONS) - set(found)):
        lines.append(f"No table decides {', '.join(silent)}: too few pairs, or none.")
    return [*lines, "One question table by table: --question shape; all of it: --json."]


def say_question(question: str, records: Sequence[TableRecord]) -> None:
    """One question, table by table."""
    there = [record for record in records if question in record.by]
    if not there:
        say(f"No table has a pair for {question}.")
    for record in there:
        pairs = record.pairs[question]
        whose = f", {record.source.laboratory}" if record.source.laboratory else ""
        few = "" if question in record.decided else "; too few to decide anything"
        text = f"{question}: {record.source.name}{whose}, {len(pairs):,} pairs of {len(pairs.rows):,} models{few}"
        say(Styled(text, TITLE))
        heard = {name: each for name, each in record.by[question].items() if each is not None and each.mute < 1.0}
        marked = {name: name + "*" * (name in record.fitted) for name in heard}
        table(HEADER, [[marked[name], *_cells(each, name in RULES)] for name, each in heard.items()])
        if doubts := {marked[name]: each.doubt for name, each in heard.items() if each.doubt is not None}:
            say()
            table(["by", *DOUBT], [[name, *_doubt(each)] for name, each in doubts.items()])
        if rules := [name for name in RULES if name in heard]:
            best = max(rules, key=lambda rule: heard[rule].order)
            say(f"Strongest rule without a law: {best}, {100 * heard[best].order:.1f} %.")
        if fitted := record.fitted & heard.keys():
            say(f"*: fitted to this table: {', '.join(sorted(fitted))}.")
        if silent := record.by[question].keys() - heard.keys():
            say(f"Says nothing: {', '.join(sorted(silent))}.")
        say()


def _cells(each: Judgement, rule: bool) -> list[str]:
    low, high = each.interval
    nats = ["-", "-"] if rule else [f"{each.slope:.2f}", f"{each.error:.4f}"]
    order = [f"{100 * each.order:.1f}", f"{100 * low:.0f}-{100 * high:.0f}", f"{each.regret:.4f}"]
    return [*order, *nats, f"{100 * each.pairs / each.of:.0f}"]


def say_left_out(records: Sequence[TableRecord]) -> None:
    """The law of the other laboratories on each table beside the best law or rule, designs of equal tokens; what its intervals hold."""
    shown = [record for record in records if DESIGNS in record.by]
    say(Styled("The law evidence of the other laboratories, pairs of equal tokens", TITLE))
    table(LEFT_OUT, [[record.source.name, *_left_out(record)] for record in shown])
    say()
    _say_errors(shown)
    inside = {record.source.name: doubt for record in shown if (doubt := _judged(record).doubt) is not None}
    if inside:
        table(["its intervals", *DOUBT], [[name, *_doubt(doubt)] for name, doubt in inside.items()])
        say()
        _say_coverage(records)
        _say_calibration(shown)
    for line in verdicts(shown):
        say(line)


def _say_errors(records: Sequence[TableRecord]) -> None:
    """Its error of differences beside each law's over the tables that decide, that the law prices whole, and that it was not fitted to."""
    decided = [record for record in records if DESIGNS in record.decided]
    of_laws = [_errors_of_laws(record) for record in decided]
    beside = {"each table's best law": [min(errors.values(), default=None) for errors in of_laws]}
    names = [name for name in decided[0].by[DESIGNS] if name not in (*RULES, EVIDENCE)] if decided else []
    beside |= {name: [errors.get(name) for errors in of_laws] for name in names}
    rows = []
    for what, errors in beside.items():
        own = zip(decided, errors, strict=True)
        if ratios := [_judged(record).error / error for record, error in own if error is not None]:
            rows.append([what, f"{sum(r <= 1 for r in ratios)} of {len(ratios)}", f"{max(ratios):.2f}"])
    if rows:
        table(["its error of differences beside", "no larger in tables", "times at worst"], rows)
        say()


def _say_coverage(records: Sequence[TableRecord]) -> None:
    """The share of differences that 90 % intervals hold, a laboratory a row, a question a column; their means."""
    held = {question: each for question in QUESTIONS if (each := held_by_laboratory(records, question))}
    say(Styled("Differences in its 90 % intervals, %, by laboratory, inside of the evidence", TITLE))
    laboratories = list(dict.fromkeys(name for each in held.values() for name in each))
    rows = [[name, *(_held(each.get(name)) for each in held.values())] for name in laboratories]
    middle = (100 * np.mean([share for share, _ in each.values()]) for each in held.values())
    table(["laboratory", *held], [*rows, ["mean over laboratories", *(f"{each:.0f}" for each in middle)]])
    say("In brackets the pairs.")
    say()


def _held(each: tuple[float, int] | None) -> str:
    return "-" if each is None else f"{100 * each[0]:.0f} ({each[1]:,})"


def _say_calibration(records: Sequence[TableRecord]) -> None:
    """How often statements of a probability are right, by probability, over all pairs and as the mean over laboratories."""
    say(Styled("How often it is right when it says which of two has the lower loss, equal tokens", TITLE))
    rows = [
        [f"{100 * low:.0f} to {100 * high:.0f}", f"{pairs:,}", *shown]
        for low, high, (pairs, shown) in zip(BINS, BINS[1:], calibration(records), strict=False)
    ]
    table(["said with %", "pairs", "right %", "right %, mean over laboratories"], rows)
    say()


def calibration(records: Sequence[TableRecord]) -> list[tuple[int, list[str]]]:
    """Of each bin of probability: pairs, the share that is right, and its mean over laboratories with any, %; `-` without a pair."""
    by: dict[str, list[FloatArray]] = {}
    for record in records:
        doubt = _judged(record).doubt
        if doubt is not None and doubt.bins:
            by.setdefault(record.source.laboratory, []).append(np.array(doubt.bins, dtype=np.float64))
    each = np.array([np.sum(bins, axis=0) for bins in by.values()]).reshape(len(by), -1, 2)
    found = []
    for pairs, right in zip(each[:, :, 0].T, each[:, :, 1].T, strict=True):
        some = pairs > 0
        shares = [right.sum() / pairs.sum(), (right[some] / pairs[some]).mean()] if some.any() else []
        found.append((int(pairs.sum()), [f"{100 * share:.1f}" for share in shares] or ["-", "-"]))
    return found


def verdicts(records: Sequence[TableRecord]) -> list[str]:
    """Over the tables that decide: how often its order and its errors are those of the best, what its intervals hold."""
    decided = [record for record in records if DESIGNS in record.decided]
    near = [_judged(each).order >= _best_order(each)[0] - NEAR for each in decided]
    lines = [
        f"Order at most a point behind the best of {len(records[0].by[DESIGNS]) - 1} laws and rules in {sum(near)} of {len(near)} tables that decide."
    ]
    if behind := [f"{each.source.name} ({100 * by:.1f})" for each in decided if (by := _behind_rule(each)) > 0]:
        lines.append(f"Points behind the best rule without a law of the table: {', '.join(behind)}.")
    by_laboratory = {name: share for name, (share, _) in held_by_laboratory(records, DESIGNS).items()}
    if by_laboratory:
        least = min(by_laboratory, key=lambda name: by_laboratory[name])
        lines.append(
            f"90 % intervals hold {100 * np.mean([*by_laboratory.values()]):.0f} % of the differences inside of the evidence, the mean over {len(by_laboratory)} laboratories, {100 * by_laboratory[least]:.0f} % in {least}."
        )
        widths = [
            each.doubt.width / width_alone(record.source)
            for record in records
            if (each := _judged(record)).doubt is not None and each.doubt.width
        ]
        lines.append(
            f"They are {np.median(widths):.1f} times as wide as those of the form fitted to the table alone (median over tables)."
        )
    return lines


def _left_out(record: TableRecord) -> list[str]:
    own, (order, best) = _judged(record), _best_order(record)
    errors = [(error, law) for law, error in _errors_of_laws(record).items()]
    few = "" if DESIGNS in record.decided else " (few)"
    return [
        f"{own.pairs:,}{few}",
        f"{100 * own.order:.1f}",
        f"{100 * order:.1f} {best}",
        f"{own.error:.4f}",
        "{:.4f} {}".format(*min(errors)) if errors else "-",
    ]


def _judged(record: TableRecord) -> Judgement:
    own = record.by[DESIGNS][EVIDENCE]
    assert own is not None
    return own


def _others(record: TableRecord) -> dict[str, Judgement]:
    by = record.by[DESIGNS].items()
    return {name: each for name, each in by if each is not None and name != EVIDENCE and each.mute < 1.0}


def _best_order(record: TableRecord) -> tuple[float, str]:
    """The best order of another law or rule."""
    orders = {name: each.order for name, each in _others(record).items()}
    best = max(orders, key=lambda name: orders[name])
    return orders[best], best


def _behind_rule(record: TableRecord) -> float:
    """How far its order is behind that of the table's best rule."""
    return (
        max((each.order for name, each in _others(record).items() if name in RULES), default=0.5)
        - _judged(record).order
    )


def _errors_of_laws(record: TableRecord) -> dict[str, float]:
    """The error of each other law that prices all pairs and was not fitted to the table."""
    return {
        name: each.error
        for name, each in _others(record).items()
        if name not in RULES and name not in record.fitted and each.pairs == each.of
    }


def held_by_laboratory(records: Sequence[TableRecord], question: str) -> dict[str, tuple[float, int]]:
    """The share of a question's differences in 90 % intervals by laboratory, its tables by their pairs inside, and how many these are."""
    found: dict[str, list[tuple[float, float]]] = {}
    for record in records:
        own = record.by.get(question, {}).get(EVIDENCE)
        if own is not None and own.doubt is not None and own.doubt.coverage is not None:
            inside = own.pairs * (1.0 - own.doubt.outside)
            found.setdefault(record.source.laboratory, []).append((own.doubt.coverage[90], inside))
    return {
        name: (float(np.average([h for h, _ in each], weights=[w for _, w in each])), round(sum(w for _, w in each)))
        for name, each in found.items()
    }


def _doubt(each: Doubt) -> list[str]:
    outside = f"{100 * each.outside:.0f}"
    if each.coverage is None or each.width is None or each.sure is None:
        return [outside, "-", "-", "-", "-"]
    held = "/".join(f"{100 * share:.0f}" for share in each.coverage.values())
    right = "-" if each.sure_right is None else f"{100 * each.sure_right:.1f}"
    return [outside, held, f"{each.width:.3f}", f"{100 * each.sure:.0f}", right]
