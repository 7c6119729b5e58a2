"""The page of an answer from a library of blocks: picks, layers along the frontier."""

from collections.abc import Mapping, Sequence
from typing import Any

from nas.pages.page import configuration, element, footer, image, page, paragraphs, section, table, text
from nas.terminal.doors import command
from objectives.display_text import in_a_command
from plas_blocks.study import UNTESTED, Study

ALT = ("Layers by cost, coloured by block", "The frontier with picks and parent")


def blocks_page(name: str, study: Study, resolved: Mapping[str, Any], pictures: Sequence[bytes]) -> str:
    """An answer as one HTML file; nothing on it depends on the clock.

    Raises:
        PlasError: no BokehJS in this environment.
    """
    summary = study.summary()
    head = (
        f"{summary['layers']} layers, {summary['replacements']:,} replacements, {summary['kinds']:,} kinds of block. "
        f"{' over '.join(study.names)}: {len(study.frontier):,} mixtures, {study.certainty()}."
    )
    images = [image(content, alt) for content, alt in zip(pictures, ALT, strict=True)]
    main = element(
        "main",
        section("Best within", _rows(study.pick_rows(), without=("blocks",))),
        section("Layers along the frontier", images[0], _rows(study.layer_rows())),
        section("The frontier", images[1]),
        section("Do the scores add up?", paragraphs([UNTESTED])),
        section(
            "Repeat it", element("pre", text(f"{command('blocks')} {in_a_command(name)}")), configuration(resolved)
        ),
        id="main",
    )
    body = element("header", element("h1", text(name)), paragraphs([head], "quiet")) + main + footer()
    return page(name, body, {"metrics": []}, ())


def _rows(rows: Sequence[Mapping[str, Any]], without: Sequence[str] = ()) -> str:
    """Rows of values as a table; nothing of none."""
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in without]
    return table(names, [[_shown(row.get(name)) for name in names] for row in rows]) if rows else ""


def _shown(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
