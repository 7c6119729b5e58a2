"""Many devices, precisions, workloads and budgets side by side: exact optima, what transfers, published models ranked."""

from pathlib import Path
from typing import Annotated

import typer

from nas.terminal import options as o

CASES, MODELS = "Which cases", "Published models"


def devices(
    devices: Annotated[
        str | None,
        typer.Option(
            "--devices",
            help="Ids, id@mode, id@all (every power mode), YAML files, or all; separated by commas.",
            rich_help_panel=CASES,
        ),
    ] = None,
    precisions: Annotated[
        str | None,
        typer.Option(
            "--precisions", help="fp16,int8,int4,nvfp4,fp32 or int4_kv8; default fp16.", rich_help_panel=CASES
        ),
    ] = None,
    workloads: Annotated[
        str | None,
        typer.Option(
            "--workloads",
            help="INPUT/OUTPUT or BATCH/INPUT/OUTPUT tokens: 1024/16,8/1024/16.",
            rich_help_panel=CASES,
        ),
    ] = None,
    applications: Annotated[
        str | None,
        typer.Option(
            "--applications",
            help="Limits by name, the study's or the paper's four: 'smart home,embodied AI', or all.",
            rich_help_panel=CASES,
        ),
    ] = None,
    as_fast_as: Annotated[
        str | None,
        typer.Option(
            "--as-fast-as",
            help="Limit total_ms to this published model's on each device; default qwen2.5_0.5b where a case has no limit of its own; none.",
            rich_help_panel=CASES,
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            "--table",
            help="CSV, a row per case: case, device, precision, batch, input_tokens, output_tokens, application, budget, …",
            rich_help_panel=CASES,
        ),
    ] = None,
    models_only: Annotated[
        bool,
        typer.Option(
            "--models-only", help="Rank published models alone: speed, memory, what fits.", rich_help_panel=MODELS
        ),
    ] = False,
    models: Annotated[
        str | None, typer.Option("--models", help="Published models, or all; default all.", rich_help_panel=MODELS)
    ] = None,
    config: o.Config = None,
    settings: o.Set = None,
    space: o.Space = None,
    law: o.Law = None,
    objectives: o.Objectives = None,
    budget: o.Budgets = None,
    preset: o.Preset = None,
    latency: o.Latency = None,
    attention: o.Attention = None,
    vocabulary: o.Vocabulary = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="New folder; default runs/devices-NAME, never overwritten.")
    ] = None,
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Leave pictures and report.html out.")] = False,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Compare exact optima across devices, precisions, workloads and budgets, and rank published models on each.

    Which of these models suits my board?

      plas devices --models-only --devices raspberry_pi_5 --precisions int4

    Does one architecture suit these devices?

      plas devices --devices jetson_agx_orin_64gb@all,rtx_4090 --precisions fp16,int8

    Twelve devices with the paper's study; hundreds of cases from a table:

      plas devices

      plas devices --table cases.csv
    """
    from nas.devices.command import answer
    from nas.devices.request import Request

    own = {"devices": devices, "precisions": precisions, "workloads": workloads}
    own |= {"as_fast_as": as_fast_as, "models": models}
    flags = o.study_flags(
        space=space,
        law=law,
        objectives=objectives,
        budget=budget,
        preset=preset,
        latency=latency,
        attention=attention,
        vocabulary=vocabulary,
    )
    given = {name: value for name, value in own.items() if value is not None}
    answer(
        Request(given, applications, table, models_only, config, settings or [], flags, out, not no_plots, quiet, json)
    )


main = o.command(devices)
if __name__ == "__main__":
    main()
