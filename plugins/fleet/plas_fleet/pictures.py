"""Pictures of a fleet, PNG and SVG: the value against the number of models, and who is served by what."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from nas.answer.palette import INK, OF_DEVICES, STYLE
from nas.document import document
from nas.document.document import Part
from nas.files.figures import png, save, styled
from nas.files.own_files import inner_folder
from plas_fleet.answers import FleetAnswer
from plas_range.pictures import cut

LONGEST_NAME = 30
PLAIN = {**STYLE, "text.parse_math": False}


def draw_all(answer: FleetAnswer, folder: Path) -> None:
    """Both pictures."""
    inner_folder(folder.parent, folder.name)
    with styled(PLAIN):
        save(value_figure(answer), folder / "value")
        save(served_figure(answer), folder / "served")


def figures(answer: FleetAnswer) -> tuple[Part, ...]:
    """Both pictures, for a page."""
    served = "The model that serves each case, in fleets of each number of models"
    with styled(PLAIN):
        return (
            document.Figure("value", "What was minimised against the number of models", png(value_figure(answer))),
            document.Figure("served", served, png(served_figure(answer))),
        )


def value_figure(answer: FleetAnswer) -> Figure:
    """What was minimised against the number of models."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    ax = figure.add_subplot()
    fleets = [each.fleet for each in answer.described]
    x, y = [fleet.most for fleet in fleets], [fleet.value for fleet in fleets]
    ax.plot(x, y, "o-", color=OF_DEVICES[0], linewidth=1.3, markersize=5)
    for fleet, gain in zip(fleets, answer.gains, strict=True):
        if gain is not None:
            ax.annotate(
                f"−{gain:.4f}", (fleet.most, fleet.value), (4, 6), textcoords="offset points", fontsize=8, color=INK
            )
    loss = answer.fleets.asked.minimise == "loss"
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.margins(x=0.12, y=0.15)
    ax.set_xlabel("Models")
    ax.set_ylabel("Weighted mean loss (nats)" if loss else "Worst loss over a case's own best (nats)")
    ax.set_title("What each further model buys; exact", loc="left")
    return figure


def served_figure(answer: FleetAnswer) -> Figure:
    """Rows: cases; columns: fleets; colour and letter: the design, number: nats over the case's own best."""
    cases, described = answer.fleets.cases, answer.described
    order = np.argsort(answer.fleets.best, kind="stable")
    colours = {name: OF_DEVICES[place % len(OF_DEVICES)] for place, name in enumerate(answer.names.values())}
    figure = Figure(figsize=(2.9 + 1.15 * max(len(described), 3), 0.9 + 0.29 * len(cases)), layout="constrained")
    ax = figure.add_subplot()
    for column, each in enumerate(described):
        for row, number in enumerate(order.tolist()):
            name = answer.name(each, number)
            ax.add_patch(_cell(column, row, colours[name]))
            regret = f"{each.regret[number]:.3f}".lstrip("0")
            ax.text(column, row, f"{name}  {regret}", ha="center", va="center", fontsize=8, color="white")
    ax.set_xlim(-0.5, max(len(described), 1) - 0.5)
    ax.set_ylim(len(cases) - 0.5, -0.5)
    ax.set_xticks(range(len(described)), [f"{each.fleet.most}" for each in described])
    ax.set_yticks(range(len(cases)), [cut(cases[number].label, LONGEST_NAME) for number in order.tolist()], fontsize=8)
    ax.tick_params(length=0)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_xlabel("Models in the fleet; letter: who serves, number: nats over the case's own best")
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.grid(visible=False)
    return figure


def _cell(column: int, row: int, colour: str) -> Rectangle:
    return Rectangle((column - 0.47, row - 0.44), 0.94, 0.88, facecolor=colour, edgecolor="none")
