"""Pictures of scores: gap and share over evaluations, runs and targets reached over all problems."""

from collections.abc import Sequence
from pathlib import Path

from nas.answer.palette import STYLE
from nas.compare.pictures import anytime_figure, strokes, targets_figure
from nas.compare.result import StudyResult
from nas.files.figures import save, styled
from nas.files.own_files import inner_folder


def draw_all(folder: Path, results: Sequence[StudyResult]) -> None:
    """Every picture that the results allow, PNG and SVG, in `plots/`."""
    styles = strokes(sorted({name for result in results for name in result.strategies}))
    plots = inner_folder(folder, "plots")
    with styled({**STYLE, "text.parse_math": False}):  # names from other tools may hold a $
        for result in results:
            save(anytime_figure(result, styles), plots / f"{result.name}-anytime")
        save(targets_figure(results, styles), plots / "targets")
