"""The page of several runs: their frontiers over one another, what each found on one scale, and what they differ in."""

from collections.abc import Sequence

import numpy as np

from nas.answer.pick_tables import OWN_HEADER, own_pick
from nas.answer.sentences import certainty
from nas.pages.markup import element, footer, paragraphs, section, table, text
from nas.pages.page import page
from nas.pages.runs import NamedRun, comparable, differing, laws_apart
from nas.pages.runs_data import runs_data
from nas.problem.evaluations import non_dominated
from nas.problem.indicators import Scale, too_many
from search_spaces.arrays import FloatArray

SCRIPTS = ("runs.js",)
FEW = 12  # runs that are spoken of one by one
HEADER = ("run", "strategy", "seed", "evaluations", "frontier", "hypervolume", "on the joint frontier", "lowest loss")


def runs_page(runs: Sequence[NamedRun]) -> str:
    """Several runs as one HTML file.

    Raises:
        PlasError: no BokehJS in this environment.
    """
    title = f"{len(runs)} runs: {', '.join(run.name for run in runs[:3])}{', …' if len(runs) > 3 else ''}"
    label = "Frontiers of the runs over one another; the table below holds their figures."
    chart = element("div", id="overlay", class_="chart", role="img", aria_label=label)
    main = element(
        "main",
        section("Frontiers", element("div", id="axes", class_="controls"), chart, paragraphs([_HINT], "quiet keys")),
        section("What each found", table(HEADER, _found(runs)), paragraphs(_meaning(runs), "quiet")),
        section("What they differ in", paragraphs(differing(runs))),
        section("Lowest predicted loss within each run's budgets", table(("run", *OWN_HEADER), _picks(runs))),
        section("How sure", _sure(runs)),
        id="main",
    )
    return page(title, element("header", element("h1", text(title))) + main + footer(), runs_data(runs), SCRIPTS)


_HINT = "Names in the legend hide their frontier; drag to zoom, point to read."


def _found(runs: Sequence[NamedRun]) -> list[tuple[str, ...]]:
    """A line a run: what it searched with, and its frontier on the scale that all frontiers span."""
    volumes, shares = _judged(runs)
    return [
        (
            run.name,
            run.outcome.study.config.algo,
            str(run.outcome.study.config.seed),
            f"{len(run.outcome.evaluations):,}",
            f"{len(run.outcome.frontier):,}",
            volume,
            share,
            f"{run.outcome.frontier.metrics['loss'].min():.4f}" if len(run.outcome.frontier) else "none fits",
        )
        for run, volume, share in zip(runs, volumes, shares, strict=True)
    ]


def _judged(runs: Sequence[NamedRun]) -> tuple[list[str], list[str]]:
    """Hypervolume, and members that no run's frontier dominates, of each run; nothing where objectives or laws differ."""
    values = [run.outcome.frontier.values for run in runs]
    names = {tuple(run.outcome.frontier.objectives) for run in runs}
    if len(names) > 1 or not any(map(len, values)) or laws_apart(runs):
        return [""] * len(runs), [""] * len(runs)
    every = np.concatenate(values)
    joint = np.zeros(len(every), dtype=bool)
    joint[non_dominated(every)] = True
    scale = Scale.from_frontier(runs[0].outcome.study.problem.objectives, every)
    ends = np.cumsum([len(part) for part in values])[:-1]
    volumes = [_volume(scale, part) for part in values]
    return volumes, [f"{int(part.sum()):,} of {len(part):,}" for part in np.split(joint, ends)]


def _volume(scale: Scale, values: FloatArray) -> str:
    return f"{scale.hypervolume(values, approximate=too_many(values)):.6f}"


def _meaning(runs: Sequence[NamedRun]) -> list[str]:
    sentence = (
        "Hypervolume is on the scale that all these frontiers span together (1.1 in every objective is the reference)."
    )
    if len({tuple(run.outcome.frontier.objectives) for run in runs}) > 1:
        sentence = "No hypervolume: these runs minimise different objectives."
    elif laws := laws_apart(runs):
        sentence = (
            f"No hypervolume: losses of the laws {', '.join(laws)} are of different tokenizers and data and are not compared; "
            "what each would pick, and the regret of these picks, says run --algo exact --laws."
        )
    if comparable(runs):
        return [sentence]
    return [
        sentence,
        "These runs differ in what their figures mean, as listed below: read loss and time of each under its own conditions.",
    ]


def _picks(runs: Sequence[NamedRun]) -> list[tuple[str, ...]]:
    return [(run.name, *own_pick(run.outcome)) for run in runs]


def _sure(runs: Sequence[NamedRun]) -> str:
    shown = [element("h3", text(run.name)) + paragraphs(certainty(run.outcome)) for run in runs[:FEW]]
    left = len(runs) - FEW
    return "".join(shown) + (
        paragraphs([f"{left:,} more runs: each run's own report.html says it."]) if left > 0 else ""
    )
