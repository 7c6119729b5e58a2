"""What `evidence` prints: the record over tables, one question table by table, the law evidence on laboratories left out."""

from collections.abc import Mapping, Sequence

import numpy as np

from nas.evidence.judging import Doubt, Judgement
from nas.evidence.left_out import DESIGNS, EVIDENCE, width_alone
from nas.evidence.predictors import RULES
from nas.evidence.questions import QUESTIONS
from nas.evidence.record import Mean, TableRecord, means
from nas.terminal.console import say
from nas.terminal.styles import TITLE, Styled
from nas.terminal.tables import table

HEADER = ["by", "order %", "95 %", "regret, nats", "nats per nat", "off by, nats", "of the pairs %"]
DOUBT = ["outside %", "50/80/90 % hold", "90 % width", "sure %", "of these right %"]
LEFT_OUT = ["table", "pairs", "order %", "best other", "off by, nats", "best other law"]
NEAR = 0.01  # of an order: one point


def say_record(records: Sequence[TableRecord]) -> None:
    """The record over all tables on one screen, then which tables decide nothing."""
    found = means(records)
    names = [*dict.fromkeys(name for by in found.values() for name in by)]
    models, shown = sum(len(record.source.table) for record in records), f"{len(records)} tables"
    say(Styled(f"Pairs in the right order, %, mean over tables: {models:,} models in {shown}", TITLE))
    header = ["by", *(f"{question} ({_tables(by)})" for question, by in found.items())]
    fitted = {name for record in records for name in record.fitted}
    table(header, [[name + "*" * (name in fitted), *(_order(by[name]) for by in found.values())] for name in names])
    say()
    if fitted:
        say(
            "*: fitted to some of these tables themselves. --left-out judges the law evidence on laboratories that it has not seen."
        )
    say(
        "In brackets the tables that decide a question. 50: a coin. A table of which a law says nothing counts 50; -: it says nothing of any."
    )
    if silent := sorted(set(QUESTIONS) - set(found)):
        say(f"No table decides {', '.join(silent)}: too few pairs, or none.")
    say("One question table by table, with intervals, regret and slope: --question shape; all of it: --json.")


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


def _order(each: Mean) -> str:
    return "-" if each.mute == each.tables else f"{100 * each.order:.1f}"


def _tables(by: Mapping[str, Mean]) -> int:
    return next(iter(by.values())).tables


def say_left_out(records: Sequence[TableRecord]) -> None:
    """The law of the other laboratories on each table beside the best law or rule, designs of equal tokens; what its intervals hold."""
    shown = [record for record in records if DESIGNS in record.by]
    say(Styled("The law evidence of the other laboratories, pairs of equal tokens", TITLE))
    table(LEFT_OUT, [[record.source.name, *_left_out(record)] for record in shown])
    say()
    inside = {record.source.name: doubt for record in shown if (doubt := _judged(record).doubt) is not None}
    if inside:
        table(["its intervals", *DOUBT], [[name, *_doubt(doubt)] for name, doubt in inside.items()])
        say()
    for line in verdicts(shown):
        say(line)


def verdicts(records: Sequence[TableRecord]) -> list[str]:
    """Over the tables that decide: how often its order and its errors are those of the best, what its intervals hold."""
    decided = [record for record in records if DESIGNS in record.decided]
    near = [_judged(each).order >= _best_order(each)[0] - NEAR for each in decided]
    lines = [
        f"Order at most a point behind the best of {len(records[0].by[DESIGNS]) - 1} laws and rules in {sum(near)} of {len(near)} tables that decide."
    ]
    beside = {"the best law of each table that was not fitted to it": [_best_error(each) for each in decided]}
    names = [name for name in decided[0].by[DESIGNS] if name not in (*RULES, EVIDENCE)] if decided else []
    beside |= {name: [_error_of(each, name) for each in decided] for name in names}
    for what, errors in beside.items():
        own = zip(decided, errors, strict=True)
        ratios = [_judged(each).error / error[0] for each, error in own if error is not None]
        if ratios:
            lines.append(
                f"Error of differences beside {what}: at most as large in {sum(r <= 1 for r in ratios)} of {len(ratios)} tables, {max(ratios):.2f} times at worst."
            )
    by_laboratory = _held_by_laboratory(records)
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
    error = _best_error(record)
    few = "" if DESIGNS in record.decided else " (few)"
    return [
        f"{own.pairs:,}{few}",
        f"{100 * own.order:.1f}",
        f"{100 * order:.1f} {best}",
        f"{own.error:.4f}",
        "-" if error is None else f"{error[0]:.4f} {error[1]}",
    ]


def _judged(record: TableRecord) -> Judgement:
    own = record.by[DESIGNS][EVIDENCE]
    assert own is not None
    return own


def _others(record: TableRecord) -> dict[str, Judgement]:
    by = record.by[DESIGNS].items()
    return {name: each for name, each in by if each is not None and name != EVIDENCE and each.mute < 1.0}


def _best_order(record: TableRecord) -> tuple[float, str]:
    """The best order of another law or rule over all pairs of the table, those that it does not price counted half."""
    orders = {
        name: (each.order * each.pairs + 0.5 * (each.of - each.pairs)) / each.of
        for name, each in _others(record).items()
    }
    best = max(orders, key=lambda name: orders[name])
    return orders[best], best


def _best_error(record: TableRecord) -> tuple[float, str] | None:
    """The least error of another law that prices all pairs and was not fitted to the table; None without one."""
    found = {
        name: each.error
        for name, each in _others(record).items()
        if name not in RULES and name not in record.fitted and each.pairs == each.of
    }
    return min((error, name) for name, error in found.items()) if found else None


def _error_of(record: TableRecord, law: str) -> tuple[float, str] | None:
    each = _others(record).get(law)
    return None if each is None or law in record.fitted or each.pairs < each.of else (each.error, law)


def _held_by_laboratory(records: Sequence[TableRecord]) -> dict[str, float]:
    """The share of differences in 90 % intervals by laboratory, its tables by their pairs inside."""
    found: dict[str, list[tuple[float, float]]] = {}
    for record in records:
        own = _judged(record)
        if own.doubt is not None and own.doubt.coverage is not None:
            inside = own.pairs * (1.0 - own.doubt.outside)
            found.setdefault(record.source.laboratory, []).append((own.doubt.coverage[90], inside))
    return {name: float(np.average([h for h, _ in each], weights=[w for _, w in each])) for name, each in found.items()}


def _doubt(each: Doubt) -> list[str]:
    outside = f"{100 * each.outside:.0f}"
    if each.coverage is None or each.width is None or each.sure is None:
        return [outside, "-", "-", "-", "-"]
    held = "/".join(f"{100 * share:.0f}" for share in each.coverage.values())
    right = "-" if each.sure_right is None else f"{100 * each.sure_right:.1f}"
    return [outside, held, f"{each.width:.3f}", f"{100 * each.sure:.0f}", right]
