"""Explain one architecture: where its time, bytes and loss come from, what binds, what a step buys."""

from pathlib import Path
from typing import Annotated

import typer

from nas.terminal import options as o

WHICH = "Which architecture"


def explain(
    run: Annotated[
        Path | None, typer.Argument(help="Run folder to choose from, with its study's settings.", show_default=False)
    ] = None,
    how: Annotated[
        str, typer.Option("--select", help="best, knee or budget:metric=limit, in a run.", rich_help_panel=WHICH)
    ] = "knee",
    index: Annotated[
        int | None, typer.Option("--index", min=0, help="Row of a run's evaluations.csv.", rich_help_panel=WHICH)
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="Published model ('plas list models') or a Hugging Face config.json, with its own vocabulary.",
            rich_help_panel=WHICH,
        ),
    ] = None,
    architecture: Annotated[
        str | None,
        typer.Option(
            "--architecture",
            help="depth=16,width=2048,n_experts=16,top_k=1,expert_size=1024,n_kv_heads=4",
            rich_help_panel=WHICH,
        ),
    ] = None,
    config: o.Config = None,
    settings: o.Set = None,
    space: o.Space = None,
    law: o.Law = None,
    laws: o.Laws = None,
    precisions: o.Precisions = None,
    precision_law: o.PrecisionLaw = None,
    deltas: o.Deltas = None,
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
    contexts: Annotated[
        bool, typer.Option("--contexts", help="Times and memory along prompts of 1k to 128k tokens, too.")
    ] = False,
    json: o.Json = False,
) -> None:
    """Explain one architecture of a run, a published model, or any other."""
    from nas.blocks.command import explain as of_blocks
    from nas.blocks.recording import is_answer
    from nas.commands.explain import Request
    from nas.commands.explain import explain as work

    flags = o.study_flags(
        space=space,
        law=law,
        laws=laws,
        precisions=precisions,
        precision_law=precision_law,
        deltas=deltas,
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
    if run is not None and is_answer(run):
        others = {"model": model, "architecture": architecture, "config": config, "contexts": contexts or None}
        within = flags.pop("budgets", [])
        given = [*flags, *(name for name, value in others.items() if value is not None), *(settings or [])]
        of_blocks(run, how, index, within, given, json=json)
        return
    work(Request(run, how, index, model, architecture, config, settings or [], flags, contexts, json))


main = o.command(
    explain,
    "explain runs/paper-nsga2-s0 --select knee",
    "explain --model qwen2.5_0.5b --device raspberry_pi_5 --preset device",
    "explain --model gemma_3_1b --preset device --contexts",
)
if __name__ == "__main__":
    main()
