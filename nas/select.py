"""Choose candidates of a run: within budgets, knees, a diverse few, a sweep; or the reason why none fits."""

from pathlib import Path
from typing import Annotated

import typer

from nas.terminal import options as o


def select(
    run: Annotated[Path, typer.Argument(help="Run folder.", show_default=False)],
    how: Annotated[
        str, typer.Option("--select", help="frontier, best, knee, diverse:K or budget:metric=limit.")
    ] = "frontier",
    budget: Annotated[
        list[str] | None,
        typer.Option("--budget", help="metric=limit besides the run's own budgets; repeats.", metavar="METRIC=LIMIT"),
    ] = None,
    sweep: Annotated[
        str | None,
        typer.Option(
            "--sweep",
            help="The pick at each limit of metric=first:last:step, total_ms=20:500:20.",
            metavar="METRIC=FIRST:LAST:STEP",
            show_default=False,
        ),
    ] = None,
    laws: o.Laws = None,
    precisions: o.Precisions = None,
    precision_law: o.PrecisionLaw = None,
    out: Annotated[Path | None, typer.Option("--out", help="Candidate file to write, .csv or .jsonl.")] = None,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Rows shown on the screen; files hold all.")] = 20,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Choose candidates of a run; nothing in the run folder is executed."""
    from nas.blocks.command import select as of_blocks
    from nas.blocks.recording import is_answer
    from nas.commands.select import Request, choose

    work = of_blocks if is_answer(run) else choose
    named = {"precisions": precisions, "precision_law": precision_law}
    formats = {name: value for name, value in named.items() if value is not None}
    work(Request(run, how, budget or [], sweep, laws, formats, out, rows, quiet, json))


main = o.command(
    select,
    "select runs/paper-nsga2-s0 --budget total_ms=100",
    "select runs/paper-nsga2-s0 --select diverse:5 --out five.csv",
    "select runs/paper-nsga2-s0 --sweep total_ms=20:500:20",
    "select runs/paper-nsga2-s0 --select budget:total_ms=100 --laws joint_moe,routed",
    "select runs/paper-nsga2-s0 --select best --precisions fp16,int8,int4 --precision-law qat,kumar",
)
if __name__ == "__main__":
    main()
