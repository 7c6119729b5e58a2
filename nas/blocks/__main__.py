"""The exact frontier of all mixtures of a library of blocks (Puzzletron's format or a table), or a library measured."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from nas.terminal import options as o

TOKENS, LENGTH, BATCH, MIXTURES = 8192, 256, 8, 32
WHAT, ANSWERS, MEASURE = "What to search", "Answers", "A library of one's own"


def blocks(
    library: Annotated[
        Path,
        typer.Argument(
            metavar="LIBRARY",
            help="replacement_metrics_and_stats.json, a CSV (layer, block, score, costs), a folder with one; with --measure a Hugging Face model's folder.",
            show_default=False,
        ),
    ],
    objective: Annotated[
        str | None,
        typer.Option("--objective", help="Metrics, the score first; default score,memory_mib.", rich_help_panel=WHAT),
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            "--budget",
            help="metric=limit, at most; 'has_attention>=20', at least; repeats.",
            metavar="METRIC=LIMIT",
            rich_help_panel=WHAT,
        ),
    ] = None,
    score: Annotated[
        list[str] | None,
        typer.Option(
            "--score",
            help="Columns that are qualities; default score, Puzzletron's metrics; repeats.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    larger: Annotated[
        list[str] | None,
        typer.Option("--bigger-is-better", help="A score of which more is better; repeats.", rich_help_panel=WHAT),
    ] = None,
    rest: Annotated[
        list[str] | None,
        typer.Option(
            "--rest",
            help="metric=value: what the model costs besides its layers (embedding, head); repeats.",
            metavar="METRIC=VALUE",
            rich_help_panel=WHAT,
        ),
    ] = None,
    fix: Annotated[
        list[str] | None,
        typer.Option(
            "--fix", help="LAYERS=BLOCK: 0,30-31=parent; repeats.", metavar="LAYERS=BLOCK", rich_help_panel=WHAT
        ),
    ] = None,
    max_kinds: Annotated[
        int | None,
        typer.Option("--max-kinds", help="At most so many distinct kinds of block.", rich_help_panel=WHAT),
    ] = None,
    pick: Annotated[
        list[str] | None,
        typer.Option(
            "--pick",
            help="Limit on an objective: the best within it; repeats; default 100 to 50 % of the parent's cost.",
            metavar="METRIC=LIMIT",
            rich_help_panel=ANSWERS,
        ),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option(
            "--compare",
            help="Answers of others: Puzzletron's solutions.json, or a CSV of answer, layer, block.",
            rich_help_panel=ANSWERS,
        ),
    ] = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure", help="Score blocks of a model on a text; needs the extra hf.", rich_help_panel=MEASURE
        ),
    ] = False,
    text: Annotated[
        Path | None, typer.Option("--text", help="Text to score on.", rich_help_panel=MEASURE, show_default=False)
    ] = None,
    tokens: Annotated[
        int, typer.Option("--tokens", min=2, help="Tokens scored, at most.", rich_help_panel=MEASURE)
    ] = TOKENS,
    length: Annotated[
        int, typer.Option("--sequence-length", min=2, help="Tokens of a sequence.", rich_help_panel=MEASURE)
    ] = LENGTH,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Sequences at once.", rich_help_panel=MEASURE)] = BATCH,
    mixtures: Annotated[
        int,
        typer.Option(
            "--mixtures", min=0, help="Assembled mixtures that test whether scores add up.", rich_help_panel=MEASURE
        ),
    ] = MIXTURES,
    real: Annotated[
        Path | None,
        typer.Option(
            "--real",
            help="The model's folder: assemble the picks and score them; needs --text and the extra hf.",
            rich_help_panel=ANSWERS,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="With --measure: go on in the folder --out.", rich_help_panel=MEASURE)
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the mixtures.", rich_help_panel=MEASURE)] = 0,
    out: Annotated[Path | None, typer.Option("--out", help="New folder; default runs/blocks-NAME.")] = None,
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Leave pictures and report.html out.")] = False,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Find every best mixture of a library's blocks at once: no program per memory or latency budget.

    Scores and costs are added over layers; how far that holds is printed with every answer, where the library knows it.
    """
    _refuse_mixed(
        measure,
        {"--objective": objective, "--budget": budget, "--score": score, "--bigger-is-better": larger, "--rest": rest}
        | {"--fix": fix, "--max-kinds": max_kinds, "--pick": pick, "--compare": compare, "--real": real},
        {"--text": text if real is None else None, "--tokens": tokens != TOKENS, "--sequence-length": length != LENGTH}
        | {"--batch": batch != BATCH, "--mixtures": mixtures != MIXTURES, "--resume": resume, "--seed": seed},
    )
    if measure:
        from nas.blocks import measuring as blocks_measure

        how = blocks_measure.How(text, tokens, length, batch, mixtures, seed)
        blocks_measure.measure(blocks_measure.Request(library, how, out, resume, quiet, json))
        return
    from nas.blocks.asking import Asked
    from nas.blocks.checking import Meaning
    from nas.blocks.command import Request, answer

    asked = Asked.typed(objective, budget or [], fix or [], max_kinds, pick or [], score or [])
    meaning = Meaning.typed(score or [], larger or [], rest or [])
    answer(Request(library, asked, meaning, compare, real, text, out, not no_plots, quiet, json))


def _refuse_mixed(measure: bool, asked: Mapping[str, Any], measured: Mapping[str, Any]) -> None:
    """Refuse flags that would be passed over: of an answer with --measure, of a measurement without it."""
    from nas.errors import UsageError

    stray = [flag for flag, value in (asked if measure else measured).items() if value]
    if stray and measure:
        raise UsageError(f"--measure: expected no {', '.join(stray)}, got them too; ask the library that it writes")
    if stray:
        raise UsageError(f"blocks: expected {', '.join(stray)} with --measure (--text also with --real); add it")


main = o.command(
    blocks,
    "blocks replacement_metrics_and_stats.json --objective lm_loss,memory_mib --budget runtime_ms=40",
    "blocks library.csv --budget 'has_attention>=20' --max-kinds 3 --fix 0=parent",
    "blocks model --measure --text text.txt --out library",
    "blocks library --objective score,memory_mib --out answer",
)
if __name__ == "__main__":
    main()
