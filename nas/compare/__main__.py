"""Compare strategies over seeds and studies, with statistics; resumable."""

from pathlib import Path
from typing import Annotated

import typer

from nas.terminal import options as o

COMPARE = "What to compare"


def compare(
    algos: Annotated[
        str | None,
        typer.Option(
            "--algos", help="Strategies, or all: nsga2,package.module; default all (shipped).", rich_help_panel=COMPARE
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="Runs per strategy and study; default 15.", rich_help_panel=COMPARE)
    ] = None,
    evaluations: Annotated[
        int | None,
        typer.Option(
            "--evaluations",
            help="Distinct architectures per run, or a strategy's cap; default 1000.",
            rich_help_panel=COMPARE,
        ),
    ] = None,
    studies: Annotated[
        str | None,
        typer.Option(
            "--studies",
            help="Studies: of --config, shipped names, files; separated by commas.",
            rich_help_panel=COMPARE,
        ),
    ] = None,
    no_baselines: Annotated[
        bool, typer.Option("--no-baselines", help="Leave random and lhs out.", rich_help_panel=COMPARE)
    ] = False,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            help="A strategy's own, nsga2.population=50; repeats.",
            metavar="STRATEGY.NAME=VALUE",
            rich_help_panel=COMPARE,
        ),
    ] = None,
    cap: Annotated[
        list[str] | None,
        typer.Option(
            "--cap",
            help="A slow strategy stops there, optuna_gp=60; repeats.",
            metavar="STRATEGY=N",
            rich_help_panel=COMPARE,
        ),
    ] = None,
    traces: Annotated[
        list[Path] | None,
        typer.Option(
            "--traces", help="CSV of another tool: run, evaluation, objectives; repeats.", rich_help_panel=COMPARE
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            help="What a column of the traces is: run=seed, key=id, total_ms=latency, maximize:accuracy; repeats.",
            metavar="NAME=COLUMN",
            rich_help_panel=COMPARE,
        ),
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(
            "--reference",
            help="Hypervolume within this point too, total_ms=100; one per objective.",
            metavar="NAME=VALUE",
            rich_help_panel=COMPARE,
        ),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            "--bounds",
            help="Hypervolume on these bounds, accuracy=0.5:0.8; one per objective.",
            metavar="NAME=LOW:HIGH",
            rich_help_panel=COMPARE,
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume", help="Continue a comparison, or extend it by what else is given.", rich_help_panel=COMPARE
        ),
    ] = None,
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed", help="With --resume: evaluate failed architectures again.", rich_help_panel=COMPARE
        ),
    ] = False,
    interim: Annotated[
        bool,
        typer.Option(
            "--interim",
            help="With --resume: results of strategies whose runs are all there; runs nothing.",
            rich_help_panel=COMPARE,
        ),
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option("--workers", help="Processes, a run each; default one per processor.", rich_help_panel=COMPARE),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", help="Seconds of search per run.", rich_help_panel=COMPARE)
    ] = None,
    stop_when_stable: Annotated[
        int | None,
        typer.Option(
            "--stop-when-stable",
            help="Stop a run after N evaluations without a new frontier member.",
            metavar="N",
            rich_help_panel=COMPARE,
        ),
    ] = None,
    constraints: Annotated[
        str | None,
        typer.Option(
            "--constraints", help="native, penalty or reject: how budgets reach strategies.", rich_help_panel=COMPARE
        ),
    ] = None,
    seed_from: Annotated[
        str | None,
        typer.Option(
            "--seed-from",
            help="Candidate file whose designs every run starts from.",
            metavar="FILE",
            rich_help_panel=COMPARE,
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            help="A comparison or a study: YAML file, folder, or a shipped name.",
            rich_help_panel=COMPARE,
        ),
    ] = None,
    settings: o.Set = None,
    space: o.Space = None,
    law: o.Law = None,
    objectives: o.Objectives = None,
    budget: o.Budgets = None,
    preset: o.Preset = None,
    device: o.Device = None,
    precision: o.Precision = None,
    latency: o.Latency = None,
    attention: o.Attention = None,
    vocabulary: o.Vocabulary = None,
    batch: o.Batch = None,
    input_tokens: o.InputTokens = None,
    output_tokens: o.OutputTokens = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder to create; default runs/compare-<name>.", rich_help_panel=o.WORKLOAD),
    ] = None,
    no_plots: o.NoPlots = False,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Compare search strategies at equal numbers of distinct evaluations, over seeds and studies.

    With nothing else this is every strategy on the paper's study. --config compare_paper is the study
    behind our own claims; it takes hours.
    """
    from nas.compare.command import execute
    from nas.compare.request import Request

    flags = o.study_flags(
        time_limit=time_limit,
        stop_when_stable=stop_when_stable,
        constraints=constraints,
        seed_from=seed_from,
        space=space,
        law=law,
        objectives=objectives,
        budget=budget,
        preset=preset,
        device=device,
        precision=precision,
        latency=latency,
        attention=attention,
        vocabulary=vocabulary,
        batch=batch,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
    )
    given = o.study_flags(algos=algos, seeds=seeds, evaluations=evaluations, baselines=False if no_baselines else None)
    names = [name.strip() for name in (studies or "").split(",") if name.strip()]
    execute(
        Request(
            given,
            flags,
            settings or [],
            config,
            names,
            param or [],
            cap or [],
            traces or [],
            workers,
            resume,
            retry_failed,
            interim,
            out,
            quiet,
            json,
            column or [],
            reference or [],
            bounds or [],
            not no_plots,
        )
    )


main = o.command(
    compare,
    "compare --algos nsga2,lhs --seeds 5 --evaluations 500",
    "compare --algos all --studies paper --out compared",
)
if __name__ == "__main__":
    main()
