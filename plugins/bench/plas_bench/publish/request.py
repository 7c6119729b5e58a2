"""The flags of `publish`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nas.terminal.flags import OUTPUT, Flag, Json, NoPlots, Quiet, Word

RUNS = "Which runs"


@dataclass(frozen=True)
class PublishRequest:
    """A comparison, traces of other tools, or both."""

    comparison: Annotated[Path | None, Word("A comparison's folder; without it --traces alone.", "FOLDER")] = None
    traces: Annotated[
        tuple[Path, ...], Flag("--traces", "CSV of another tool: run, evaluation, objectives; repeats.", RUNS)
    ] = ()
    columns: Annotated[
        tuple[str, ...],
        Flag(
            "--column",
            "Column of the traces for a name: run=seed, key=id, total_ms=latency, maximize:accuracy; repeats.",
            RUNS,
            "NAME=COLUMN",
        ),
    ] = ()
    algos: Annotated[
        str | None, Flag("--algos", "Strategies of your own in the comparison, named again: package.module.", RUNS)
    ] = None
    reference: Annotated[
        tuple[str, ...],
        Flag(
            "--reference",
            "Reference point of a further hypervolume, total_ms=100; one per objective.",
            OUTPUT,
            "NAME=VALUE",
        ),
    ] = ()
    bounds: Annotated[
        tuple[str, ...],
        Flag(
            "--bounds",
            "Bounds of a further hypervolume, accuracy=0.5:0.8; one per objective.",
            OUTPUT,
            "NAME=LOW:HIGH",
        ),
    ] = ()
    workers: Annotated[int | None, Flag("--workers", "Processes; default one per processor.", RUNS, least=1)] = None
    out: Annotated[Path | None, Flag("--out", "Folder to create; default runs/publish-<name>.", OUTPUT)] = None
    pictures: Annotated[bool, NoPlots] = True
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False
