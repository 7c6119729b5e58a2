"""The flags of `blocks`."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, get_type_hints

from nas.errors import UsageError
from nas.terminal.flags import Flag, Json, Quiet, Word

WHAT, ANSWERS, MEASURE = "What to search", "Answers", "A library of one's own"


@dataclass(frozen=True)
class BlocksRequest:
    """A library of blocks to search, or, with --measure, a model to make one of."""

    library: Annotated[
        Path,
        Word(
            "replacement_metrics_and_stats.json, a CSV (layer, block, score, costs), a folder with one; with --measure a Hugging Face model's folder.",
            "LIBRARY",
        ),
    ]
    objective: Annotated[
        str | None, Flag("--objective", "Metrics, the score first; default score,memory_mib.", WHAT)
    ] = None
    budgets: Annotated[
        tuple[str, ...],
        Flag("--budget", "metric=limit, at most; 'has_attention>=20', at least; repeats.", WHAT, "METRIC=LIMIT"),
    ] = ()
    scores: Annotated[
        tuple[str, ...],
        Flag("--score", "Columns that are qualities; default score, Puzzletron's metrics; repeats.", WHAT),
    ] = ()
    larger: Annotated[
        tuple[str, ...], Flag("--bigger-is-better", "A score of which more is better; repeats.", WHAT)
    ] = ()
    rest: Annotated[
        tuple[str, ...],
        Flag(
            "--rest",
            "metric=value: what the model costs besides its layers (embedding, head); repeats.",
            WHAT,
            "METRIC=VALUE",
        ),
    ] = ()
    fixed: Annotated[
        tuple[str, ...], Flag("--fix", "LAYERS=BLOCK: 0,30-31=parent; repeats.", WHAT, "LAYERS=BLOCK")
    ] = ()
    max_kinds: Annotated[int | None, Flag("--max-kinds", "At most so many distinct kinds of block.", WHAT)] = None
    picks: Annotated[
        tuple[str, ...],
        Flag(
            "--pick",
            "Limit on an objective: the best within it; repeats; default 100 to 50 % of the parent's cost.",
            ANSWERS,
            "METRIC=LIMIT",
        ),
    ] = ()
    compare: Annotated[
        Path | None,
        Flag("--compare", "Answers of others: Puzzletron's solutions.json, or a CSV of answer, layer, block.", ANSWERS),
    ] = None
    measure: Annotated[bool, Flag("--measure", "Score blocks of a model on a text; needs the extra hf.", MEASURE)] = (
        False
    )
    text: Annotated[Path | None, Flag("--text", "Text to score on.", MEASURE, show_default=False)] = None
    tokens: Annotated[int, Flag("--tokens", "Tokens scored, at most.", MEASURE, least=2)] = 8192
    length: Annotated[int, Flag("--sequence-length", "Tokens of a sequence.", MEASURE, least=2)] = 256
    batch: Annotated[int, Flag("--batch", "Sequences at once.", MEASURE, least=1)] = 8
    mixtures: Annotated[
        int, Flag("--mixtures", "Assembled mixtures that test whether scores add up.", MEASURE, least=0)
    ] = 32
    real: Annotated[
        Path | None,
        Flag(
            "--real",
            "The model's folder: assemble the picks and score them; needs --text and the extra hf.",
            ANSWERS,
        ),
    ] = None
    resume: Annotated[bool, Flag("--resume", "With --measure: go on in the folder --out.", MEASURE)] = False
    seed: Annotated[int, Flag("--seed", "Of the mixtures.", MEASURE, least=0)] = 0
    out: Annotated[Path | None, Flag("--out", "New folder; default runs/blocks-NAME.")] = None
    plots: Annotated[bool, Flag("--no-plots", "Leave pictures and report.html out.")] = True
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False


def refuse_mixed(request: BlocksRequest) -> None:
    """Refuse flags that would be passed over: of an answer with --measure, of a measurement without it.

    Raises:
        UsageError: such flags.
    """
    of_answers = given(request, WHAT, ANSWERS)
    of_measuring = [flag for flag in given(request, MEASURE) if flag != "--measure"]
    if request.measure and of_answers:
        raise UsageError(
            f"--measure: expected no {', '.join(of_answers)}, got them too; ask the library that it writes"
        )
    stray = [] if request.measure else [flag for flag in of_measuring if flag != "--text" or request.real is None]
    if stray:
        raise UsageError(f"blocks: expected {', '.join(stray)} with --measure (--text also with --real); add it")


def given(request: BlocksRequest, *groups: str) -> list[str]:
    """Flags of some groups of the help that were given another value than their default."""
    hints = get_type_hints(BlocksRequest, include_extras=True)
    flags = {field: hints[field.name].__metadata__[0] for field in fields(BlocksRequest)}
    return [
        flag.name
        for field, flag in flags.items()
        if isinstance(flag, Flag) and flag.group in groups and getattr(request, field.name) != field.default
    ]
