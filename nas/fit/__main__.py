"""Fit a loss law to trained models: intervals, diagnostics, rival forms, and what to train next."""

from pathlib import Path
from typing import Annotated

import typer

from nas.terminal import options as o

METHOD, NEXT = "How to fit", "What to train next"


def fit(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="CSVs, a row per trained model; without one, --next N alone.", show_default=False),
    ] = None,
    form: Annotated[
        str, typer.Option("--form", help="Form of the law: name ('plas list forms') or YAML file.")
    ] = "hw_codesign",
    out: Annotated[Path | None, typer.Option("--out", help="Law file to write, .yaml.")] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="New folder for report.html, report.md, report.json and plots.", metavar="FOLDER"
        ),
    ] = None,
    rename: Annotated[
        list[str] | None, typer.Option("--rename", help="Read a column under another name; repeats.", metavar="OLD=NEW")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", help="Keep rows such as router=S-BASE or tokens>1e9; repeats.", metavar="CONDITION"),
    ] = None,
    last: Annotated[
        str | None,
        typer.Option(
            "--last",
            help="Column by which the last row of each run is kept, or none to keep every checkpoint; default: step, epoch or the like.",
            metavar="COLUMN",
        ),
    ] = None,
    loss_unit: Annotated[
        str | None,
        typer.Option("--loss-unit", help="nats or bits per token; default what the column's name says, else nats."),
    ] = None,
    tokens: Annotated[
        float | None, typer.Option("--tokens", help="Training tokens the law predicts for, where its form has them.")
    ] = None,
    kv: Annotated[
        str,
        typer.Option(
            "--kv", help="KV term of hw_codesign: log, fixed (its exponent at 0.05) or free.", rich_help_panel=METHOD
        ),
    ] = "log",
    fix: Annotated[
        list[str] | None,
        typer.Option("--fix", help="Hold an exponent; repeats.", metavar="NAME=VALUE", rich_help_panel=METHOD),
    ] = None,
    delta: Annotated[
        str,
        typer.Option(
            "--delta",
            help="Huber's delta: auto (1.345 robust sds), a number, or none: least squares.",
            rich_help_panel=METHOD,
        ),
    ] = "auto",
    starts: Annotated[
        int, typer.Option("--starts", min=1, help="Starts of the exponents.", rich_help_panel=METHOD)
    ] = 16,
    bootstraps: Annotated[
        int, typer.Option("--bootstraps", min=0, help="Resamplings for intervals and draws.", rich_help_panel=METHOD)
    ] = 1000,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Seed of starts, resamplings, folds.", rich_help_panel=METHOD)
    ] = 0,
    law: Annotated[
        str,
        typer.Option(
            "--law",
            help="A law given beforehand: how it ranks the table's rows, and what first designs assume.",
        ),
    ] = "hw_codesign",
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            help="Study whose frontier is checked under the draws: YAML file, run folder or shipped name.",
        ),
    ] = None,
    space: Annotated[
        str | None,
        typer.Option("--space", help="Its space, and that of --next: name or YAML file; default the study's."),
    ] = None,
    next_: Annotated[
        int | None, typer.Option("--next", min=1, help="How many architectures to train next.", rich_help_panel=NEXT)
    ] = None,
    goal: Annotated[
        str,
        typer.Option(
            "--goal",
            help="coefficients (D-optimal), frontier (V-optimal at its picks) or cost (information per training FLOP).",
            rich_help_panel=NEXT,
        ),
    ] = "coefficients",
    candidates: Annotated[
        Path | None,
        typer.Option("--candidates", help="Candidate file for --next, .csv or .jsonl.", rich_help_panel=NEXT),
    ] = None,
    flops: Annotated[
        float | None,
        typer.Option("--flops", help="Training FLOP that --next may spend in all.", rich_help_panel=NEXT),
    ] = None,
    max_params: Annotated[
        str | None,
        typer.Option(
            "--max-params", help="Parameters of each of --next at most, without embeddings: 3B.", rich_help_panel=NEXT
        ),
    ] = None,
    stop_below: Annotated[
        float | None,
        typer.Option(
            "--stop-below",
            min=0.0,
            help="Stop where --next is expected to save fewer nats of the picks' regret per 1e18 training FLOP: no candidates are written.",
            metavar="NATS",
            rich_help_panel=NEXT,
        ),
    ] = None,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Fit a loss law to a table of trained models."""
    from nas.fit.command import execute
    from nas.fit.request import Request

    execute(
        Request(
            tuple(runs or ()), form, out, report, tuple(rename or ()), tuple(where or ()), tokens, kv, tuple(fix or ()), delta,
            starts, bootstraps, seed, law, config, space, next_, goal, candidates, quiet, json, last, loss_unit, flops, max_params,
            stop_below,
        )
    )  # fmt: skip


main = o.command(
    fit,
    "fit runs.csv --out law.yaml --report fitted",
    "fit --next 20 --candidates first.csv",
    "fit trained-*/trainings.csv --next 8 --stop-below 0.001 --candidates next.csv",
)
if __name__ == "__main__":
    main()
