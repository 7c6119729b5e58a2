"""The tables of a run's picks on the screen: what fits stands in columns, what does not below its row or in picks.csv."""

from collections.abc import Sequence
from dataclasses import dataclass

from nas.answer.outcome import Outcome
from nas.answer.pick_tables import CONVENTION, EXACT, WITNESS, PickTable, beside_baselines, on_devices, own_picks
from nas.terminal.console import Line, sentence
from nas.terminal.screen_text import TITLE, Styled
from nas.terminal.tables import fitted

BELOW = ("architecture", WITNESS, "active", "params", "memory", EXACT)  # in this order, where all is shown


@dataclass(frozen=True)
class Shown:
    """Lines, what they leave out, and whether they hold the exact pick's loss where the search missed it."""

    lines: list[Line]
    dropped: list[str]
    exact: bool


def pick_lines(outcome: Outcome, *, verbose: bool, designs: bool = True) -> Shown:
    """Lowest loss within your budgets, then within each application's; the title is the first column's.

    designs: whether a design without a column is shown below its row.
    """
    table = own_picks(outcome, brief=not verbose)
    missed_unsaid = EXACT in table.header and outcome.changes is None
    if not verbose and len(table.rows) == 1 and not missed_unsaid and not table.below:
        return Shown([], [], exact=False)  # the three sentences say it
    below = BELOW[:2] if designs else (WITNESS,)
    spare = () if verbose else (CONVENTION, "params", "active", "memory", EXACT, *BELOW[: 0 if designs else 1])
    under = below if not verbose else (*BELOW[:2], CONVENTION) if {CONVENTION, WITNESS} & {*table.header} else ()
    return _laid_out(table, (table.title, *table.header[1:]), under, spare)


def baseline_lines(outcome: Outcome, *, verbose: bool) -> Shown:
    """The picks that are as fast as each published model, under its own figures."""
    found = Shown([], [], exact=False)
    for table in beside_baselines(outcome, brief=not verbose):
        title = sentence(Styled(table.title, TITLE), table.caption.removeprefix(table.title))
        part = _laid_out(
            table, table.header, BELOW if verbose else (WITNESS,), () if verbose else ("architecture", EXACT, "memory")
        )
        more = [] if verbose else [*part.dropped, f"{table.more} more picks"]
        found = Shown([*found.lines, [], *title, *part.lines], [*found.dropped, *more], found.exact or part.exact)
    return found


def device_lines(outcome: Outcome, *, verbose: bool) -> list[Line]:
    """The lowest loss within your budgets on each device of several; designs in devices.csv alone but for `verbose`."""
    if (found := on_devices(outcome)) is None:
        return []
    spare = () if verbose else ("architecture", "memory", "range")
    return [[], *_laid_out(found, found.header, BELOW[:1] if verbose else (), spare).lines]


def _laid_out(table: PickTable, header: Sequence[str], below: Sequence[str], spare: Sequence[str]) -> Shown:
    lines, dropped = fitted(header, table.rows, below=below, spare=spare)
    sentences = [line for text in table.below for line in sentence(f"  {text}")]
    return Shown([*lines, *sentences], dropped, EXACT in header and EXACT not in dropped)
