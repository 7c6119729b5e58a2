"""Train candidates on the same data in the same order, for validation runs; writes the table that fit reads."""

from pathlib import Path
from typing import Annotated

import typer

from nas.terminal import options as o

DATA, HOW, PLACE = "Data", "How to train", "Where"


def train(
    source: Annotated[Path, typer.Argument(help="Candidate file (.csv, .jsonl) or run folder.", show_default=False)],
    data: Annotated[
        list[str],
        typer.Option(
            "--data",
            help="Text: file, folder, pattern, saved data set, or stdlib: Python's own sources; repeats.",
            rich_help_panel=DATA,
            show_default=False,
        ),
    ],
    tokens: Annotated[
        str,
        typer.Option("--tokens", help="Training tokens: 200000, 1e6; several by comma.", show_default=False),
    ],
    evaluation: Annotated[
        list[str] | None,
        typer.Option("--eval", help="Validation text; left out: 5 % of the data, held out.", rich_help_panel=DATA),
    ] = None,
    evaluation_tokens: Annotated[
        int, typer.Option("--eval-tokens", min=1, help="Tokens validated on, at most.", rich_help_panel=DATA)
    ] = 65_536,
    text: Annotated[
        list[str] | None,
        typer.Option(
            "--text", help="A further text to score at the end; repeats.", metavar="NAME=PATH", rich_help_panel=DATA
        ),
    ] = None,
    tokenizer: Annotated[
        str,
        typer.Option("--tokenizer", help="bytes, a tokenizer.json, or a folder with one.", rich_help_panel=DATA),
    ] = "bytes",
    vocabulary: Annotated[
        int | None,
        typer.Option(
            "--vocabulary",
            min=1,
            help="Of embedding and head; left out: the candidate's own, else the tokenizer's.",
            show_default=False,
            rich_help_panel=DATA,
        ),
    ] = None,
    how: o.Chosen = None,
    seeds: Annotated[
        str | None,
        typer.Option("--seeds", help="0,1,2; left out: the file's column seed, else 0.", show_default=False),
    ] = None,
    recipe: Annotated[
        str, typer.Option("--recipe", help="small, scaled, paper, or a YAML file.", rich_help_panel=HOW)
    ] = "small",
    sequence_length: Annotated[
        int | None, typer.Option("--sequence-length", min=2, help="Instead of the recipe's.", rich_help_panel=HOW)
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option("--batch", min=1, help="Sequences per step, instead of the recipe's.", rich_help_panel=HOW),
    ] = None,
    last_steps: Annotated[
        int,
        typer.Option("--last-steps", min=1, help="Steps whose validation losses are averaged.", rich_help_panel=HOW),
    ] = 3,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda or cuda:1.", rich_help_panel=PLACE)] = "cpu",
    precision: Annotated[
        str | None,
        typer.Option("--precision", help="fp32 or bf16; left out: fp32 on a CPU, else bf16.", rich_help_panel=PLACE),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Trainings at once.", rich_help_panel=PLACE)] = 1,
    threads: Annotated[
        int, typer.Option("--threads", min=0, help="Of each; 0: cores over workers.", rich_help_panel=PLACE)
    ] = 0,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit", min=0.0, help="Seconds, then checkpoints; --resume goes on.", rich_help_panel=PLACE
        ),
    ] = None,
    checkpoint: Annotated[
        float, typer.Option("--checkpoint-every", min=0.0, help="Seconds.", rich_help_panel=PLACE)
    ] = 60.0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder; left out: runs/train-LIST.", show_default=False)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on in the folder; a list may have grown.")] = False,
    retry: Annotated[bool, typer.Option("--retry-failed", help="With --resume: train failures again.")] = False,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Train candidates on the same data in the same order, each in a process of its own."""
    from nas.train.command import carry_out
    from nas.train.request import Request

    carry_out(
        Request(
            source=source,
            data=tuple(data),
            tokens=tokens,
            evaluation=tuple(evaluation or ()),
            evaluation_tokens=evaluation_tokens,
            texts=tuple(text or ()),
            tokenizer=tokenizer,
            vocabulary=vocabulary,
            how=how,
            seeds=seeds,
            recipe=recipe,
            sequence_length=sequence_length,
            batch=batch,
            last_steps=last_steps,
            device=device,
            precision=precision,
            workers=workers,
            threads=threads,
            time_limit=time_limit,
            checkpoint_s=checkpoint,
            out=out,
            resume=resume,
            retry_failed=retry,
            quiet=quiet,
            json=json,
        )
    )


main = o.command(
    train,
    "train first.csv --data stdlib --tokens 1e6 --workers 2 --out trained",
    "train first.csv --data stdlib --tokens 1e6 --workers 2 --out trained --resume",
)
if __name__ == "__main__":
    main()
