"""The flags of `train`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nas.terminal.flags import Flag, Json, Quiet, Selected, Word

DATA, HOW, PLACE = "Data", "How to train", "Where"


@dataclass(frozen=True)
class TrainRequest:
    """A request to train: candidates, texts, recipe, place; threads 0 are cores over workers."""

    source: Annotated[Path, Word("Candidate file (.csv, .jsonl) or run folder.")]
    data: Annotated[
        tuple[str, ...],
        Flag(
            "--data",
            "Text: file, folder, pattern, saved data set, or stdlib: Python's own sources; repeats.",
            DATA,
            show_default=False,
        ),
    ]
    tokens: Annotated[str, Flag("--tokens", "Training tokens: 200000, 1e6; several by comma.", show_default=False)]
    evaluation: Annotated[
        tuple[str, ...], Flag("--eval", "Validation text; left out: 5 % of the data, held out.", DATA)
    ] = ()
    evaluation_tokens: Annotated[int, Flag("--eval-tokens", "Most validation tokens.", DATA, least=1)] = 65_536
    texts: Annotated[
        tuple[str, ...], Flag("--text", "A further text to score at the end; repeats.", DATA, "NAME=PATH")
    ] = ()
    tokenizer: Annotated[str, Flag("--tokenizer", "bytes, a tokenizer.json, or a folder with one.", DATA)] = "bytes"
    vocabulary: Annotated[
        int | None,
        Flag(
            "--vocabulary",
            "Vocabulary size; default: the candidate's own, else the tokenizer's.",
            DATA,
            least=1,
            show_default=False,
        ),
    ] = None
    how: Annotated[str | None, Selected] = None
    seeds: Annotated[
        str | None, Flag("--seeds", "0,1,2; left out: the file's column seed, else 0.", show_default=False)
    ] = None
    recipe: Annotated[str, Flag("--recipe", "small, scaled, paper, or a YAML file.", HOW)] = "small"
    sequence_length: Annotated[
        int | None, Flag("--sequence-length", "Tokens of a sequence, instead of the recipe's.", HOW, least=2)
    ] = None
    batch: Annotated[int | None, Flag("--batch", "Sequences per step, instead of the recipe's.", HOW, least=1)] = None
    last_steps: Annotated[int, Flag("--last-steps", "Steps whose validation losses are averaged.", HOW, least=1)] = 3
    losses_after: Annotated[
        str | None, Flag("--losses-after", "Also record losses after these tokens, by comma.", HOW, show_default=False)
    ] = None
    device: Annotated[str, Flag("--device", "cpu, cuda or cuda:1.", PLACE)] = "cpu"
    precision: Annotated[
        str | None, Flag("--precision", "fp32 or bf16; left out: fp32 on a CPU, else bf16.", PLACE)
    ] = None
    workers: Annotated[int, Flag("--workers", "Trainings at once.", PLACE, least=1, most=1024)] = 1
    threads: Annotated[
        int, Flag("--threads", "Threads of each training; 0: cores divided by workers.", PLACE, least=0)
    ] = 0
    time_limit: Annotated[
        float | None,
        Flag("--time-limit", "Seconds until it saves checkpoints and stops; --resume continues.", PLACE, least=0.0),
    ] = None
    checkpoint_s: Annotated[float, Flag("--checkpoint-every", "Seconds.", PLACE, least=0.0)] = 60.0
    out: Annotated[Path | None, Flag("--out", "Folder; left out: runs/train-LIST.", show_default=False)] = None
    resume: Annotated[bool, Flag("--resume", "Continue in the folder, also with further candidates.")] = False
    retry_failed: Annotated[bool, Flag("--retry-failed", "With --resume: train failures again.", needs="--resume")] = (
        False
    )
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False
