"""The flags of the small commands, each request a dataclass of them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from nas.terminal.flags import (
    DESIGN,
    OUTPUT,
    SEARCH,
    Config,
    Flag,
    Given,
    Json,
    Keys,
    NoPlots,
    Quiet,
    Settings,
    Verbose,
    Word,
    flag_of,
)

WHICH = "Which architecture"


@dataclass(frozen=True, eq=False, repr=False)
class RunRequest:
    """A study to search, or a run folder to continue; `flags` are keys of the study."""

    flags: Annotated[Given, Keys((SEARCH, *DESIGN, OUTPUT), "auto")] = field(default_factory=dict)
    settings: Annotated[tuple[str, ...], Settings] = ()
    config: Annotated[str | None, Config] = None
    resume: Annotated[
        Path | None, Flag("--resume", "Continue or extend a run folder.", SEARCH, bars="--config --out")
    ] = None
    retry_failed: Annotated[
        bool, Flag("--retry-failed", "With --resume: evaluate failed architectures again.", SEARCH, needs="--resume")
    ] = False
    out: Annotated[
        Path | None, Flag("--out", "Run folder to create; default runs/<study>-<algo>-s<seed>.", OUTPUT, brief=True)
    ] = None
    pictures: Annotated[bool, NoPlots] = True
    verbose: Annotated[bool, Verbose] = False
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False

    def hear(self, search: Any) -> None:
        """Hear of a search (nas.search.loop.Search) that has just evaluated something; a command has nobody to tell."""

    def continuing(self, folder: Path) -> str:
        """What goes on with the run in a folder where the command does not: ""."""
        return ""


@dataclass(frozen=True, eq=False, repr=False)
class SelectRequest:
    """A run and how to choose of it; `formats` are keys of the study that change what its designs are, or lose."""

    run: Annotated[Path, Word("Run folder.")]
    how: Annotated[str, Flag("--select", "frontier, best, knee, diverse:K or budget:metric=limit.", brief=True)] = (
        "frontier"
    )
    budgets: Annotated[
        tuple[str, ...],
        Flag(
            "--budget",
            "A further limit besides the run's own, metric=LIMIT; repeats.",
            metavar="METRIC=LIMIT",
            brief=True,
        ),
    ] = ()
    sweep: Annotated[
        str | None,
        Flag(
            "--sweep",
            "The pick at each of several limits, total_ms=20:500:20.",
            metavar="METRIC=FIRST:LAST:STEP",
            show_default=False,
            bars="--select --distinguishable --expected-regret",
        ),
    ] = None
    distinguishable: Annotated[
        bool, Flag("--distinguishable", "Keep only the cheapest of frontier designs that the law cannot distinguish.")
    ] = False
    expected_regret: Annotated[
        bool, Flag("--expected-regret", "Average loss of the pick if the law is wrong, and the design with the least.")
    ] = False
    laws: Annotated[str | None, flag_of("laws")] = None
    formats: Annotated[Given, Keys(own={name: flag_of(name) for name in ("precisions", "precision_law")})] = field(
        default_factory=dict
    )
    out: Annotated[Path | None, Flag("--out", "Candidate file to write, .csv or .jsonl.", brief=True)] = None
    shown: Annotated[int, Flag("--rows", "Rows shown on the screen; files hold all.", least=1, brief=True)] = 20
    verbose: Annotated[bool, Verbose] = False
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False


@dataclass(frozen=True, eq=False, repr=False)
class ExplainRequest:
    """One architecture: of a run, published, or written out; `flags` are keys of the study that prices it."""

    run: Annotated[Path | None, Word("Run folder to choose from, with its study's settings.", "RUN")] = None
    how: Annotated[
        str, Flag("--select", "best, knee or budget:metric=limit, in a run.", WHICH, brief=True, needs="RUN")
    ] = "best"
    index: Annotated[
        int | None,
        Flag("--index", "Row of a run's evaluations.csv.", WHICH, least=0, brief=True, needs="RUN", bars="--select"),
    ] = None
    model: Annotated[
        str | None,
        Flag(
            "--model",
            "Published model ('plas list models') or a Hugging Face config.json, with its own vocabulary.",
            WHICH,
            brief=True,
        ),
    ] = None
    architecture: Annotated[
        str | None,
        Flag(
            "--architecture",
            "depth=16,width=2048,n_experts=16,top_k=1,expert_size=1024,n_kv_heads=4",
            WHICH,
            brief=True,
        ),
    ] = None
    flags: Annotated[Given, Keys((*DESIGN, OUTPUT), "name applications")] = field(default_factory=dict)
    config: Annotated[str | None, Config] = None
    settings: Annotated[tuple[str, ...], Settings] = ()
    contexts: Annotated[bool, Flag("--contexts", "Add times and memory for prompts of 1k to 128k tokens.")] = False
    verbose: Annotated[bool, Verbose] = False
    json: Annotated[bool, Json] = False


@dataclass(frozen=True, eq=False, repr=False)
class ReportRequest:
    """A run, or the folder of a fit or a calibration, and the page to write."""

    run: Annotated[Path, Word("Run folder, or the folder of a fit's or a calibration's --report.", "RUN")]
    out: Annotated[
        Path | None, Flag("--out", "File to write; default: report.html in the run's folder.", show_default=False)
    ] = None
    show: Annotated[
        bool,
        Flag("--open", "Open the page in the browser (written first if missing); without a browser print its path."),
    ] = False
    quiet: Annotated[bool, Quiet] = False


@dataclass(frozen=True, eq=False, repr=False)
class WatchRequest:
    """A folder to watch; times in seconds."""

    run: Annotated[Path, Word("Folder of a run; it may not exist yet.", show_default=True)]
    every: Annotated[float, Flag("--every", "Seconds between updates.", least=0.1, most=86_400)] = 2.0
    wait: Annotated[
        float, Flag("--wait", "Seconds to wait for a folder that is missing or empty.", least=0, most=86_400)
    ] = 5.0
    once: Annotated[bool, Flag("--once", "Print once and stop.", bars="--every --wait")] = False
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False


@dataclass(frozen=True, eq=False, repr=False)
class InitRequest:
    """A file to write, and what it starts from."""

    path: Annotated[
        Path, Word("File to create: a study, or a search strategy where it ends in .py.", show_default=True)
    ] = Path("study.yaml")
    study: Annotated[
        str | None, Flag("--from", "Shipped study to start from, default paper; 'plas list studies' names them.")
    ] = None
    application: Annotated[
        str | None,
        Flag(
            "--application", "Start from an application's study: 'smart home' …; a wrong name lists all.", bars="--from"
        ),
    ] = None
    vocabulary: Annotated[
        str | None,
        Flag(
            "--vocabulary",
            "Vocabulary of the study, 32k; with several, 8k,16k,32k, the search decides.",
            metavar="N[,N…]",
            show_default=False,
        ),
    ] = None
    quiet: Annotated[bool, Quiet] = False
