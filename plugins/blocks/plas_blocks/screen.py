"""The printed answer: how sure it is, the picks, the layers that change."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from nas.terminal.console import say
from nas.terminal.screen_text import TITLE, Styled
from nas.terminal.tables import table
from plas_blocks.answers import Pick, changes, cost_of, layer_answers, parent_totals
from plas_blocks.problem import Dimension
from plas_blocks.study import UNTESTED, Study
from search_spaces.arrays import IntArray

MOST_LAYERS = 12


def show(study: Study) -> None:
    """The answer on the screen."""
    show_head(study)
    show_picks(study, study.picks)
    _show_layers(study)
    say(UNTESTED)


def show_head(study: Study) -> None:
    """The library, and what was proved."""
    library, found = study.library, study.frontier
    kinds = len(set(library.kinds))
    say(f"{library.layers} layers, {len(library):,} replacements, {kinds:,} kinds of block")
    own = parent_totals(library)
    if own:
        lines = [f"{name} {own[name]:.6g}" for name in (*study.names, *(d.name for d in _limited(study)))]
        say(f"  the parent: {', '.join(dict.fromkeys(lines))}")
    say(f"{' over '.join(study.names)}: {len(found):,} mixtures, {study.certainty()}")
    for dimension in (d for d in found.problem.dimensions if d.limit != float("inf")):
        sign = ">=" if dimension.sign < 0 else "<="
        say(f"  within {dimension.name} {sign} {dimension.value(np.array(dimension.limit)):g}")


def _limited(study: Study) -> tuple[Dimension, ...]:
    problem = study.frontier.problem
    return problem.dimensions[problem.objectives :]


def show_picks(study: Study, picks: Iterable[Pick]) -> None:
    """A row per pick."""
    picks = list(picks)
    if not picks:
        return
    metrics = list(dict.fromkeys((*study.names, *(pick.limit.metric for pick in picks))))
    values = {name: study.frontier.metric(name) for name in metrics}
    changed, kinds = study.frontier.changed, study.frontier.kinds
    rows = [
        (
            _limit_text(pick),
            *("none" if pick.row is None else f"{values[name][pick.row]:.6g}" for name in metrics),
            *(["", "", "", ""] if pick.row is None else _about(study, pick.row, changed, kinds)),
        )
        for pick in picks
    ]
    say(Styled("\nBest within", TITLE))
    table(("limit", *metrics, "changed", "kinds", "tied", "a step more"), rows, below=("a step more",))


def _limit_text(pick: Pick) -> str:
    sign = ">=" if pick.limit.least else "<="
    share = "" if pick.share is None else f" ({100 * pick.share:.0f} %)"
    return f"{pick.limit.metric} {sign} {pick.limit.value:.6g}{share}"


def _about(study: Study, row: int, changed: IntArray, kinds: IntArray) -> list[str]:
    return [str(int(changed[row])), str(int(kinds[row])), study.tied(row) or "-", study.buys(row)]


def _show_layers(study: Study) -> None:
    """The layers that change most along the frontier, and what changes from pick to pick."""
    name = cost_of(study.frontier)
    ranked = sorted(layer_answers(study.frontier), key=lambda a: (a.parent_share, a.layer))
    rows = [
        (
            str(a.layer),
            f"{100 * a.parent_share:.0f} %",
            "never" if a.parent_from != a.parent_from else f"{a.parent_from:.6g}",
            str(a.blocks),
            a.usual,
        )
        for a in ranked[:MOST_LAYERS]
    ]
    say(Styled("\nLayers that leave the parent first along the frontier", TITLE))
    table(("layer", "parent's in", f"from {name or 'cost'}", "blocks", "usual block"), rows)
    if len(ranked) > MOST_LAYERS:
        say(f"  {MOST_LAYERS} of {len(ranked)} layers shown; layers.csv has all")
    rows_of = [pick.row for pick in study.picks if pick.row is not None]
    moved = [len(layers) for layers in changes(study.frontier, rows_of)][1:]
    if moved:
        say(f"From pick to pick {', '.join(map(str, moved))} layers change.")


def show_rows(study: Study, chosen: Sequence[tuple[str | None, int]], shown: int) -> None:
    """Some mixtures, evenly spaced where they are more than the screen is to show; the first text is a limit."""
    places = np.unique(np.linspace(0, len(chosen) - 1, min(shown, len(chosen))).astype(int)).tolist()
    names = list(dict.fromkeys((*study.names, *(d.name for d in _limited(study)))))
    values = {name: study.frontier.metric(name) for name in names}
    changed, kinds = study.frontier.changed, study.frontier.kinds
    limited = [] if chosen[0][0] is None else ["limit"]
    rows = []
    for limit, row in (chosen[place] for place in places):
        leading = [] if limit is None else [limit]
        rows.append(
            [str(row), *leading, *(f"{values[name][row]:.6g}" for name in names), *_about(study, row, changed, kinds)]
        )
    say(Styled("\nChosen", TITLE))
    table(("id", *limited, *names, "changed", "kinds", "tied", "a step more"), rows, below=("a step more",))
    if len(places) < len(chosen):
        say(f"  {len(places)} of {len(chosen):,} shown, evenly spaced; --rows shows more, --out writes all")


def layer_table(study: Study, row: int) -> list[dict[str, Any]]:
    """The replacements of one mixture: layers, block, and what each changes of the objectives against the parent's own."""
    library, found = study.library, list[dict[str, Any]]()
    own = library.parents
    for at in study.frontier.replacements(row):
        first, end = int(library.first[at]), int(library.first[at] + library.length[at])
        line: dict[str, Any] = {"layer": library.written_layers(at), "block": library.blocks[at]}
        line["parent"] = bool(library.parent[at])
        for name in study.names:
            base = library.baselines.get(name, 0.0)
            before = 0.0 if own is None else float((library.metrics[name][own[first:end]] - base).sum())
            line[name] = float(library.metrics[name][at]) - base - before
        found.append(line)
    return found
