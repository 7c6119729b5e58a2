"""Predict the best architecture for budgets: closed forms, regimes, a certified program, the rounded design."""

from pathlib import Path
from typing import Annotated

import typer

from nas.terminal import options as o

HARDWARE = "New hardware"


def theory(
    width: Annotated[float | None, typer.Option("--width", help="Fix the width; free unless given.")] = None,
    application: Annotated[
        str | None, typer.Option("--application", help="Budget of one of the study's applications.", show_default=False)
    ] = None,
    compute: Annotated[
        str | None, typer.Option("--compute", help="Dense FP16 peak, '10 TFLOP/s'.", rich_help_panel=HARDWARE)
    ] = None,
    bandwidth: Annotated[
        str | None, typer.Option("--bandwidth", help="Memory bandwidth, '50 GB/s'.", rich_help_panel=HARDWARE)
    ] = None,
    memory: Annotated[str | None, typer.Option("--memory", help="Memory, '4 GB'.", rich_help_panel=HARDWARE)] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Candidate file of the designs worth training, .csv or .jsonl.")
    ] = None,
    plots: Annotated[
        Path | None, typer.Option("--plots", help="Folder for the regime map and the budget curves.")
    ] = None,
    no_exact: Annotated[bool, typer.Option("--no-exact", help="Leave out the exact discrete optimum.")] = False,
    config: o.Config = None,
    settings: o.Set = None,
    space: o.Space = None,
    law: o.Law = None,
    laws: o.Laws = None,
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
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Predict the best architecture for budgets without searching, and check the prediction."""
    from nas.theory.command import Hardware, Request, answer

    flags = o.study_flags(
        space=space,
        law=law,
        laws=laws,
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
    hardware = Hardware(compute, bandwidth, memory)
    answer(Request(width, application, hardware, out, plots, not no_exact, config, settings or [], flags, quiet, json))


main = o.command(
    theory,
    "theory --budget decode_ms=20",
    "theory --compute '10 TFLOP/s' --bandwidth '50 GB/s' --memory '4 GB' --budget total_ms=500",
)
if __name__ == "__main__":
    main()
