"""Draws a finished run's pictures and its page."""

from pathlib import Path

from nas.answer.outcome import Outcome
from nas.answer.pictures import draw_all
from nas.commands.report import write_report
from nas.files import own_files


def draw_run(outcome: Outcome, folder: Path) -> None:
    """The run's pictures and its page, in its folder."""
    with own_files.drawing(folder) as plots:
        draw_all(outcome, plots)
    write_report(outcome, folder)
