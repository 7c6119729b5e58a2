"""The flags of `compare`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from nas.terminal.flags import DESIGN, OUTPUT, SEARCH, Flag, Given, Json, Keys, NoPlots, Quiet, Settings

COMPARE = "What to compare"
RUN = "all but --resume --algos --workers --no-plots --quiet --json"
OWN = {  # keys of the comparison
    "algos": Flag("--algos", "Strategies, or all: nsga2,package.module; default all (shipped).", COMPARE, brief=True),
    "seeds": Flag("--seeds", "Runs per strategy and study; default 15.", COMPARE, kind=int, brief=True),
    "evaluations": Flag(
        "--evaluations",
        "Distinct architectures per run, or a strategy's cap; default 1000.",
        COMPARE,
        kind=int,
        brief=True,
    ),
    "baselines": Flag("--no-baselines", "Leave random and lhs out.", COMPARE, kind=bool),
}


@dataclass(frozen=True)
class CompareRequest:
    """A comparison to run or continue: `given` are keys of the comparison, `flags` those of its studies."""

    given: Annotated[Given, Keys(own=OWN)] = field(default_factory=dict)
    studies: Annotated[
        str | None,
        Flag("--studies", "Studies: of --config, shipped names, files; separated by commas.", COMPARE, brief=True),
    ] = None
    params: Annotated[
        tuple[str, ...],
        Flag("--param", "A strategy's parameter, nsga2.population=50; repeats.", COMPARE, "STRATEGY.NAME=VALUE"),
    ] = ()
    caps: Annotated[
        tuple[str, ...],
        Flag("--cap", "Fewer evaluations for a slow strategy, optuna_gp=60; repeats.", COMPARE, "STRATEGY=N"),
    ] = ()
    resume: Annotated[
        Path | None,
        Flag("--resume", "Continue a comparison, or extend it by flags.", COMPARE, brief=True, bars="--out"),
    ] = None
    retry_failed: Annotated[
        bool, Flag("--retry-failed", "With --resume: evaluate failed architectures again.", COMPARE, needs="--resume")
    ] = False
    interim: Annotated[
        bool, Flag("--interim", "Only print strategies whose runs are complete.", COMPARE, needs="--resume", bars=RUN)
    ] = False
    workers: Annotated[
        int | None,
        Flag("--workers", "Processes, one run each; default one per processor.", COMPARE, least=1, most=1024),
    ] = None
    flags: Annotated[Given, Keys((SEARCH, *DESIGN), "RUN SingleRun auto evaluations")] = field(default_factory=dict)
    config: Annotated[
        str | None,
        Flag("--config", "A comparison or a study: YAML file, folder, or a shipped name.", COMPARE, brief=True),
    ] = None
    settings: Annotated[tuple[str, ...], Settings] = ()
    out: Annotated[Path | None, Flag("--out", "Folder to create; default runs/compare-<name>.", OUTPUT, brief=True)] = (
        None
    )
    pictures: Annotated[bool, NoPlots] = True
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False

    @property
    def names(self) -> list[str]:
        """The studies that are named."""
        return [name.strip() for name in (self.studies or "").split(",") if name.strip()]
