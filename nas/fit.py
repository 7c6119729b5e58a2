"""Fit a loss law to trained models: intervals, diagnostics, rival forms, and what to train next."""

from pathlib import Path
from typing import Annotated

import typer

from nas import options as o

METHOD, NEXT = "How to fit", "What to train next"


def fit(
    runs: Annotated[Path, typer.Argument(help="CSV, a row per trained model.", show_default=False)],
    form: Annotated[
        str, typer.Option("--form", help="Form of the law: name ('plas list forms') or YAML file.")
    ] = "hw_codesign",
    out: Annotated[Path | None, typer.Option("--out", help="Law file to write, .yaml.")] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Folder for report.json, report.md and plots.", metavar="FOLDER")
    ] = None,
    rename: Annotated[
        list[str] | None, typer.Option("--rename", help="Read a column under another name; repeats.", metavar="OLD=NEW")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", help="Keep rows such as router=S-BASE or tokens>1e9; repeats.", metavar="CONDITION"),
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
    next_: Annotated[
        int | None, typer.Option("--next", min=1, help="How many architectures to train next.", rich_help_panel=NEXT)
    ] = None,
    space: Annotated[
        str, typer.Option("--space", help="Space they come from: name or YAML file.", rich_help_panel=NEXT)
    ] = "paper",
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
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Fit a loss law to a table of trained models."""
    from nas.fitting import Request, execute

    execute(
        Request(
            runs, form, out, report, tuple(rename or ()), tuple(where or ()), tokens, kv, tuple(fix or ()), delta,
            starts, bootstraps, seed, next_, space, goal, candidates, quiet, json,
        )
    )  # fmt: skip


main = o.command(fit)
if __name__ == "__main__":
    main()
