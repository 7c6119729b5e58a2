"""Export candidates to training and inference stacks; check what was exported."""

from pathlib import Path
from typing import Annotated

import typer

from nas.terminal import options as o

HOW = "How to train"


def export(
    source: Annotated[
        Path | None, typer.Argument(help="Run folder or candidate file (.csv, .jsonl).", show_default=False)
    ] = None,
    how: o.Chosen = None,
    to: Annotated[
        str | None,
        typer.Option("--to", help="Stacks, by comma; 'plas list stacks'. hf is always there.", show_default=False),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="New folder to write.", show_default=False)] = None,
    recipe: Annotated[
        str, typer.Option("--recipe", help="paper, scaled, or a YAML file.", rich_help_panel=HOW)
    ] = "paper",
    weights: Annotated[
        bool,
        typer.Option("--weights", help="Write random weights, initialised as the recipe says.", rich_help_panel=HOW),
    ] = False,
    gguf: Annotated[
        str | None,
        typer.Option(
            "--gguf",
            help="Weight format of llama-bench's files: f16, q8_0, q4_0 or q4_k_m; default f16.",
            rich_help_panel=HOW,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the weights.", rich_help_panel=HOW)] = 0,
    tokenizer: Annotated[
        str, typer.Option("--tokenizer", help="bytes, or a folder with a tokenizer.json.", rich_help_panel=HOW)
    ] = "bytes",
    multiple: Annotated[
        int, typer.Option("--expert-multiple", min=1, help="Round expert sizes to a multiple.", rich_help_panel=HOW)
    ] = 1,
    verify: Annotated[
        Path | None, typer.Option("--verify", help="Read an export back and compare every field.", show_default=False)
    ] = None,
    config: o.Config = None,
    settings: o.Set = None,
    law: o.Law = None,
    budget: o.Budgets = None,
    preset: o.Preset = None,
    device: o.Device = None,
    precision: o.Precision = None,
    vocabulary: o.Vocabulary = None,
    batch: o.Batch = None,
    input_tokens: o.InputTokens = None,
    output_tokens: o.OutputTokens = None,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Export candidates to training and inference stacks, or check an export."""
    from nas.errors import UsageError

    if verify is not None:
        from nas.export.verification import verify as check

        if source is not None or out is not None:
            raise UsageError("--verify: expected nothing else to export, got a source or --out; give one of them")
        check(verify, to or "", as_json=json)
        return
    if source is None or out is None:
        raise UsageError(
            "export: expected a run or candidate file and --out FOLDER, got less; give both, or --verify FOLDER"
        )
    from nas.export.command import Request
    from nas.export.command import export as work

    flags = o.study_flags(
        law=law,
        budget=budget,
        preset=preset,
        device=device,
        precision=precision,
        vocabulary=vocabulary,
        batch=batch,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
    )
    work(
        Request(
            source,
            how,
            to or "hf",
            out,
            recipe,
            tokenizer,
            weights,
            gguf,
            multiple,
            config,
            settings or [],
            flags,
            seed,
            quiet,
            json,
        )
    )


main = o.command(export, "export runs/paper-nsga2-s0 --select diverse:3 --out exported", "export --verify exported")
if __name__ == "__main__":
    main()
