"""The flags of `fit`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nas.terminal.flags import Flag, Json, Quiet, Word

METHOD, NEXT = "How to fit", "What to train next"


@dataclass(frozen=True)
class FitRequest:
    """Tables of trained models, a form, how to fit it, and how many to train next."""

    runs: Annotated[tuple[Path, ...], Word("CSVs, a row per trained model; without one, --next N alone.")] = ()
    form: Annotated[
        str | None,
        Flag(
            "--form",
            "Form of the law: name ('plas list forms') or YAML file; default hw_codesign, or what the rows allow and predict best.",
        ),
    ] = None
    prior: Annotated[
        str | None,
        Flag("--prior", "Law with draws that the rows update, however few: evidence, or one fitted with --prior."),
    ] = None
    scores: Annotated[
        str | None,
        Flag(
            "--scores",
            "CSV of models with bits per byte, or a loss, and scores: curves of scores for explain, select and report.",
            metavar="TABLE",
        ),
    ] = None
    out: Annotated[Path | None, Flag("--out", "Law file to write, .yaml; of --scores the file of curves.")] = None
    report: Annotated[
        Path | None, Flag("--report", "New folder for report.html, report.md, report.json and plots.", metavar="FOLDER")
    ] = None
    rename: Annotated[
        tuple[str, ...], Flag("--rename", "Read a column under another name; repeats.", metavar="OLD=NEW")
    ] = ()
    where: Annotated[
        tuple[str, ...], Flag("--where", "Keep rows such as router=S-BASE or tokens>1e9; repeats.", metavar="CONDITION")
    ] = ()
    last: Annotated[
        str | None,
        Flag(
            "--last",
            "Column by which the last row of each run is kept, or none to keep every checkpoint; default: step, epoch or the like.",
            metavar="COLUMN",
        ),
    ] = None
    best_of: Annotated[
        str | None,
        Flag(
            "--best-of",
            "Columns of a sweep, such as learning_rate,batch: keep the run of lowest loss of rows alike in all others that are read.",
            metavar="COLUMNS",
        ),
    ] = None
    loss_unit: Annotated[
        str | None, Flag("--loss-unit", "nats or bits per token; default what the column's name says, else nats.")
    ] = None
    tokens: Annotated[
        float | None, Flag("--tokens", "Training tokens the law predicts for, where its form has them.")
    ] = None
    kv: Annotated[str, Flag("--kv", "KV term of hw_codesign: log, fixed (its exponent at 0.05) or free.", METHOD)] = (
        "log"
    )
    fix: Annotated[tuple[str, ...], Flag("--fix", "Hold an exponent; repeats.", METHOD, "NAME=VALUE")] = ()
    delta: Annotated[
        str, Flag("--delta", "Huber's delta: auto (1.345 robust sds), a number, or none: least squares.", METHOD)
    ] = "auto"
    starts: Annotated[int, Flag("--starts", "Starts of the exponents.", METHOD, least=1)] = 16
    bootstraps: Annotated[int, Flag("--bootstraps", "Resamplings for intervals and draws.", METHOD, least=0)] = 1000
    seed: Annotated[int, Flag("--seed", "Seed of starts, resamplings, folds.", METHOD, least=0)] = 0
    law: Annotated[
        str, Flag("--law", "A law given beforehand: how it ranks the table's rows, and what first designs assume.")
    ] = "hw_codesign"
    config: Annotated[
        str | None,
        Flag("--config", "Study whose frontier is checked under the draws: YAML file, run folder or shipped name."),
    ] = None
    space: Annotated[
        str | None, Flag("--space", "Its space, and that of --next: name or YAML file; default the study's.")
    ] = None
    next: Annotated[int | None, Flag("--next", "How many architectures to train next.", NEXT, least=1)] = None
    goal: Annotated[
        str | None,
        Flag(
            "--goal",
            "coefficients (D-optimal; default), frontier (V-optimal at its picks) or cost (information per training FLOP); "
            "with --prior regret (of the study's picks; default) or cost (regret per training FLOP).",
            NEXT,
        ),
    ] = None
    candidates: Annotated[Path | None, Flag("--candidates", "Candidate file for --next, .csv or .jsonl.", NEXT)] = None
    flops: Annotated[float | None, Flag("--flops", "Training FLOP that --next may spend in all.", NEXT)] = None
    max_params: Annotated[
        str | None, Flag("--max-params", "Parameters of each of --next at most, without embeddings: 3B.", NEXT)
    ] = None
    stop_below: Annotated[
        float | None,
        Flag(
            "--stop-below",
            "Stop where --next is expected to save fewer nats of the picks' regret per 1e18 training FLOP: no candidates are written.",
            NEXT,
            "NATS",
            least=0.0,
        ),
    ] = None
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False
