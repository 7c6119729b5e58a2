"""The flags of `bench`."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from nas.terminal.flags import OUTPUT, Flag, Json, Quiet, Word

SCORING, RUNNING = "Which traces", "Which runs"


class What(StrEnum):
    """Things that the command does."""

    list = "list"
    show = "show"
    score = "score"
    run = "run"


@dataclass(frozen=True)
class BenchRequest:
    """What to do, with what: a problem to show or to run on, traces to score."""

    what: Annotated[What, Word("list the problems, show one, score traces, run a strategy.")] = What.list
    names: Annotated[tuple[str, ...], Word("A problem to show or to run on; traces or run folders to score.")] = ()
    problem: Annotated[
        str | None,
        Flag("--problem", "The problem of traces that do not say it themselves, in a JSON file beside them.", SCORING),
    ] = None
    algo: Annotated[str, Flag("--algo", "Strategy: 'plas list strategies' names them.", RUNNING)] = "nsga2"
    params: Annotated[
        tuple[str, ...],
        Flag("--param", "The strategy's own: 'plas list --schema nsga2'; repeats.", RUNNING, "NAME=VALUE"),
    ] = ()
    seeds: Annotated[int, Flag("--seeds", "Runs, of seeds 0, 1, 2 …", RUNNING, least=1, most=1000)] = 10
    evaluations: Annotated[
        int | None,
        Flag(
            "--evaluations",
            "Distinct designs of each run; default the problem's budget, of traces all.",
            RUNNING,
            least=10,
        ),
    ] = None
    reference: Annotated[
        bool, Flag("--reference", "Beside it what our strategies reach there, from the runs that ship.", OUTPUT)
    ] = False
    out: Annotated[
        Path | None,
        Flag(
            "--out",
            "New folder: traces of runs (default runs/bench-PROBLEM-ALGO), tables and pictures of scores.",
            OUTPUT,
        ),
    ] = None
    plots: Annotated[bool, Flag("--no-plots", "Draw no pictures.", OUTPUT)] = True
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False
