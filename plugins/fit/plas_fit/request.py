"""The flags of `fit`."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from nas.terminal.flags import Flag, Json, Quiet, Word

METHOD, NEXT = "How to fit", "What to train next"
FORM = "--form --kv --fix --delta --starts --bootstraps --law"  # how one is fitted without a prior
OfRows = partial(Flag, needs="CSV")
Text = str | None
Texts = tuple[str, ...]
Number = float | None
File = Path | None


@dataclass(frozen=True)
class FitRequest:
    """Tables of trained models, a form, how to fit it, and how many to train next."""

    runs: Annotated[tuple[Path, ...], Word("CSVs, a row per trained model; without one, --next N alone.", "CSV")] = ()
    form: Annotated[
        Text, OfRows("--form", "Form of the law ('plas list forms') or YAML file; default: the paper's, else the best.")
    ] = None
    prior: Annotated[
        Text, Flag("--prior", "Law to update with few rows: evidence, or one fitted with --prior.", bars=FORM)
    ] = None
    out: Annotated[File, OfRows("--out", "Law file to write, .yaml.")] = None
    report: Annotated[File, OfRows("--report", "New folder for the report.", metavar="FOLDER")] = None
    rename: Annotated[Texts, OfRows("--rename", "Read a column under another name; repeats.", metavar="OLD=NEW")] = ()
    where: Annotated[
        Texts, OfRows("--where", "Keep rows such as router=S-BASE or tokens>1e9; repeats.", metavar="CONDITION")
    ] = ()
    last: Annotated[
        Text,
        OfRows(
            "--last",
            "Keep the last row of each run by this column, or none; default: step and similar.",
            metavar="COLUMN",
        ),
    ] = None
    best_of: Annotated[
        Text,
        OfRows(
            "--best-of",
            "Columns such as the learning rate; of runs that differ only in these, keep the best.",
            metavar="COLUMNS",
        ),
    ] = None
    loss_unit: Annotated[
        Text, OfRows("--loss-unit", "nats or bits per token; default: the column's name, else nats.")
    ] = None
    tokens: Annotated[Number, Flag("--tokens", "Training tokens to predict for, where the form has them.")] = None
    kv: Annotated[str, Flag("--kv", "KV term of hw_codesign: log, fixed (at 0.05) or free.", METHOD)] = "log"
    fix: Annotated[Texts, Flag("--fix", "Fix an exponent at a value; repeats.", METHOD, "NAME=VALUE")] = ()
    delta: Annotated[
        str,
        OfRows(
            "--delta",
            "Residual beyond which rows count less: auto (1.345 robust sds), a number, or none (least squares).",
            METHOD,
        ),
    ] = "auto"
    starts: Annotated[int, OfRows("--starts", "Starts of the exponents.", METHOD, least=1)] = 16
    bootstraps: Annotated[
        int, OfRows("--bootstraps", "Bootstrap resamplings for intervals and posterior samples.", METHOD, least=0)
    ] = 1000
    seed: Annotated[int, Flag("--seed", "Seed of starts, resamplings, folds.", METHOD, least=0)] = 0
    law: Annotated[str, Flag("--law", "Law by which losses in bits are noticed; proposals without rows assume it.")] = (
        "hw_codesign"
    )
    config: Annotated[Text, Flag("--config", "Study whose picks are checked; default preset device in --space.")] = None
    space: Annotated[Text, Flag("--space", "Search space of that study and of --next: name or YAML file.")] = None
    next: Annotated[int | None, Flag("--next", "How many architectures to train next.", NEXT, least=1)] = None
    goal: Annotated[
        Text,
        Flag("--goal", "coefficients (default) or cost; with --prior regret (default) or cost.", NEXT, needs="--next"),
    ] = None
    candidates: Annotated[
        File, Flag("--candidates", "Candidate file for --next, .csv or .jsonl.", NEXT, needs="--next")
    ] = None
    flops: Annotated[Number, Flag("--flops", "Total training FLOP for --next.", NEXT, needs="--next")] = None
    max_params: Annotated[
        Text, Flag("--max-params", "Largest model to propose, without embeddings: 3B.", NEXT, needs="--next")
    ] = None
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False
