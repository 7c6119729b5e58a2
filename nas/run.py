"""Search for the architectures with the best trade-offs; results go into a run folder."""

from pathlib import Path
from typing import Annotated

import typer

from nas.terminal import options as o

SEARCH = "How to search"


def run(
    algo: Annotated[
        str | None,
        typer.Option(
            "--algo",
            help="Strategy: 'plas list strategies' names them, package.module is your own; default nsga2.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    evaluations: Annotated[
        int | None,
        typer.Option(
            "--evaluations",
            help="Distinct architectures to evaluate; default 5000, or the strategy's own.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", help="Seconds of search.", rich_help_panel=SEARCH)
    ] = None,
    stop_when_stable: Annotated[
        int | None,
        typer.Option(
            "--stop-when-stable",
            help="Stop after N evaluations without a new frontier member.",
            metavar="N",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    constraints: Annotated[
        str | None,
        typer.Option(
            "--constraints", help="native, penalty or reject: how budgets reach the strategy.", rich_help_panel=SEARCH
        ),
    ] = None,
    seed_from: Annotated[
        str | None,
        typer.Option(
            "--seed-from",
            help="Candidate file whose designs the search starts from.",
            metavar="FILE",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    known: Annotated[
        list[str] | None,
        typer.Option(
            "--known",
            help="Results that are known: a table, a run, a folder of trainings, an Optuna storage; charged to nobody; repeats.",
            metavar="SOURCE",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    known_as: Annotated[
        list[str] | None,
        typer.Option(
            "--known-as",
            help="Which column of known results is a metric of your own, where it is not called so; repeats.",
            metavar="METRIC=COLUMN",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            help="Processes that evaluate your own objectives, one architecture each.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(
            "--executor",
            help="Cluster that evaluates them instead: dask:tcp://host:8786, or dask:scheduler.json; none: here.",
            metavar="URL",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    asynchronous: Annotated[
        bool,
        typer.Option(
            "--asynchronous",
            help="Ask whenever a worker is idle, in the order of arrival; of strategies that need not wait.",
            rich_help_panel=SEARCH,
        ),
    ] = False,
    optuna_storage: Annotated[
        str | None,
        typer.Option(
            "--optuna-storage",
            help="Mirror the run into an Optuna storage (sqlite:///study.db, study.log) for optuna-dashboard.",
            metavar="URL",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Seed of the strategy; default 0.", rich_help_panel=SEARCH)
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            help="The strategy's own: 'plas schema nsga2'; repeats.",
            metavar="NAME=VALUE",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", help="Continue or extend a run folder.", rich_help_panel=SEARCH)
    ] = None,
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed", help="With --resume: evaluate failed architectures again.", rich_help_panel=SEARCH
        ),
    ] = False,
    config: o.Config = None,
    settings: o.Set = None,
    space: o.Space = None,
    law: o.Law = None,
    laws: o.Laws = None,
    tokens: o.Tokens = None,
    unique_tokens: o.UniqueTokens = None,
    precisions: o.Precisions = None,
    precision_law: o.PrecisionLaw = None,
    deltas: o.Deltas = None,
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
    train_device: o.TrainDevice = None,
    utilisation: o.Utilisation = None,
    served_tokens: o.ServedTokens = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Run folder to create; default runs/<study>-<algo>-s<seed>.", rich_help_panel=o.WORKLOAD
        ),
    ] = None,
    measure_top: Annotated[
        int | None,
        typer.Option(
            "--measure-top",
            min=1,
            help="Then measure so many diverse members of the frontier here, with PyTorch.",
            rich_help_panel=o.WORKLOAD,
        ),
    ] = None,
    no_plots: o.NoPlots = False,
    verbose: o.Verbose = False,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Search for the architectures with the best trade-offs.

    With nothing else than --algo this is the paper's study: its space, its loss law, Jetson AGX Orin 64 GB.
    """
    from nas.commands.run import execute
    from nas.commands.run_request import Request

    flags = o.study_flags(
        algo=algo,
        evaluations=evaluations,
        time_limit=time_limit,
        stop_when_stable=stop_when_stable,
        constraints=constraints,
        seed_from=seed_from,
        known=known,
        known_as=known_as,
        workers=workers,
        executor=executor,
        asynchronous=asynchronous or None,
        optuna_storage=optuna_storage,
        seed=seed,
        param=param,
        space=space,
        law=law,
        laws=laws,
        tokens=tokens,
        unique_tokens=unique_tokens,
        precisions=precisions,
        precision_law=precision_law,
        deltas=deltas,
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
        train_device=train_device,
        utilisation=utilisation,
        served_tokens=served_tokens,
    )
    if measure_top is not None:
        refuse_unmeasurable(json)
    asked = Request(flags, settings or [], config, resume, retry_failed, out, quiet, json, verbose, not no_plots)
    folder = execute(asked)
    if measure_top is not None:
        from nas.measure.command import Request as Measurement
        from nas.measure.command import carry_out

        carry_out(
            Measurement(folder, folder.with_name(f"{folder.name}-measured"), how=f"diverse:{measure_top}", quiet=quiet)
        )


def refuse_unmeasurable(json: bool) -> None:
    """Refuse before the search what could not be measured after it.

    Raises:
        UsageError: PyTorch is missing, or JSON was asked for.
    """
    from importlib.util import find_spec

    from nas.errors import UsageError

    if json:
        raise UsageError(
            "measure_top: expected no --json with it, got both; use 'plas measure RUN' for the second step"
        )
    if find_spec("torch") is None:
        raise UsageError(
            "measure_top: expected PyTorch in this environment, got none; install it, or use 'plas measure RUN --interpreter PYTHON'"
        )


main = o.command(
    run,
    "run --device jetson_orin_nano_super_8gb --preset device --precision int8",
    "run --algo exact --budget total_ms=100 --budget memory_gb=4",
    "run --algo exact --laws joint_moe,routed,chinchilla_epoch",
    "run --resume runs/paper-nsga2-s0 --evaluations 10000",
)
if __name__ == "__main__":
    main()
