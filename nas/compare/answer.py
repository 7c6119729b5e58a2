"""The answer of a comparison on the screen: a table and a reading per study, files, what to type next."""

from collections.abc import Sequence
from pathlib import Path

from nas.compare.rank_diagram import can_draw
from nas.compare.ranking import Ranking, course
from nas.compare.reading import left_out, sentences
from nas.compare.result import StudyResult
from nas.compare.tables import Table, explained, rank_table, result_table
from nas.terminal.console import say
from nas.terminal.program import command
from nas.terminal.styles import TITLE, Styled
from nas.terminal.tables import table
from objectives.display_text import in_a_command

TABLES = 3  # studies up to which each has its table on the screen; every one is in report.md


def show(folder: Path, results: Sequence[StudyResult], rankings: Sequence[Ranking]) -> None:
    """Print everything a user needs from a finished comparison."""
    for result in results:
        if len(results) > TABLES:
            say(f"{result.name}: {sentences(result)[0].removeprefix(f'{result.name}: ')}")
            continue
        if result.reference is not None:
            _print(result_table(result))
            if result is results[0]:
                say(explained(result))
        for line in sentences(result):
            say(line)
        say()
    for ranking in rankings if len(results) > 1 else ():
        if ranking.shown:
            _print(rank_table(course(results, ranking.group)))
        say(ranking.sentence())
        if ranking.shown and not can_draw():
            say("The critical-difference diagram was left out: it needs pip install 'plas-codesign[stats]'.")
    for line in left_out(results):
        say(line)
    own = {run.seed for result in results for run in result.runs if run.seed is not None}
    drawn = "".join(f", {name}" for name in ("report.html", "plots/") if (folder / name).exists())
    say(f"Files: {folder}/ (report.md, tables/, timing/{drawn}{', a run folder per run in cells/' if own else ''})")
    if own:
        say(f"More seeds: {command('compare')} --resume {in_a_command(folder)} --seeds {2 * len(own)}")


def _print(shown: Table) -> None:
    say(Styled(shown.title, TITLE))
    table(shown.header, shown.rows)
