"""The flags of `blocks`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nas.terminal.flags import Flag, Json, Quiet, Word

WHAT, ANSWERS = "What to search", "Answers"


@dataclass(frozen=True)
class BlocksRequest:
    """A library of blocks to search."""

    library: Annotated[
        Path,
        Word(
            "replacement_metrics_and_stats.json, a CSV (layer, block, score, costs), or a folder with one.",
            "LIBRARY",
        ),
    ]
    objective: Annotated[
        str | None, Flag("--objective", "Metrics, the score first; default score,memory_mib.", WHAT)
    ] = None
    budgets: Annotated[
        tuple[str, ...],
        Flag("--budget", "metric=limit, at most; 'has_attention>=20', at least; repeats.", WHAT, "METRIC=LIMIT"),
    ] = ()
    scores: Annotated[
        tuple[str, ...],
        Flag("--score", "Columns that are qualities; default score, Puzzletron's metrics; repeats.", WHAT),
    ] = ()
    larger: Annotated[
        tuple[str, ...], Flag("--bigger-is-better", "A score of which more is better; repeats.", WHAT)
    ] = ()
    rest: Annotated[
        tuple[str, ...],
        Flag(
            "--rest",
            "metric=value: what the model costs besides its layers (embedding, head); repeats.",
            WHAT,
            "METRIC=VALUE",
        ),
    ] = ()
    fixed: Annotated[
        tuple[str, ...], Flag("--fix", "LAYERS=BLOCK: 0,30-31=parent; repeats.", WHAT, "LAYERS=BLOCK")
    ] = ()
    max_kinds: Annotated[int | None, Flag("--max-kinds", "At most so many distinct kinds of block.", WHAT)] = None
    picks: Annotated[
        tuple[str, ...],
        Flag(
            "--pick",
            "Limit on an objective: the best within it; repeats; default 100 to 50 % of the parent's cost.",
            ANSWERS,
            "METRIC=LIMIT",
        ),
    ] = ()
    out: Annotated[Path | None, Flag("--out", "New folder; default runs/blocks-NAME.")] = None
    plots: Annotated[bool, Flag("--no-plots", "Leave pictures and report.html out.")] = True
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False
