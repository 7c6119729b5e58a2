"""The cells of a comparison, studies × strategies × seeds, each a run folder of its own."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from nas.compare.configuration import FILE, ComparisonConfig, ComparisonStudies, StudyKeys, names_of
from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import Faults, Path
from nas.files.tables import write
from nas.search.assembly import Study, assemble, study_of
from nas.search.discovery import SHIPPED, strategy_module
from nas.search.reading import read
from nas.search.strategy import Traits
from objectives.plugins import importable

BASELINES = ("random", "lhs")
TYPED: dict[Path, str] = {
    ("algo",): "--algos"
}  # a user's own strategy that no flag named is refused before anything is planned


@dataclass(frozen=True)
class RunSpec:
    """One run of the comparison: its study with strategy, seed and limit, and its folder.

    To another process the study goes as its plain content, from which it is assembled there: code of the user's own
    is found by name. retry: whether its failed evaluations are to be tried again.
    """

    study: str
    strategy: str
    seed: int
    setup: Study = field(compare=False)
    cap: int | None
    folder: FilePath
    retry: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """All fields, the study as plain content."""
        return {**vars(self), "setup": self.setup.resolved()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """All fields, the study assembled from its content."""
        vars(self).update(state, setup=assemble(state["setup"], TYPED))

    @property
    def limit(self) -> int:
        """Distinct evaluations that the run asks for."""
        return self.setup.limit or 0


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that is to be there when the comparison is done.

    studies: assembled with some strategy, by name; setups: with each strategy, by study and strategy; skipped:
    study and strategy with the reason why they do not meet.
    """

    config: ComparisonConfig
    strategies: tuple[str, ...]
    studies: dict[str, Study]
    setups: dict[tuple[str, str], Study]
    groups: dict[str, str]
    skipped: dict[tuple[str, str], str]

    def cells(self, folder: FilePath) -> Iterator[RunSpec]:
        """Every run, studies and seeds in turn, so that an unfinished comparison is a balanced one."""
        for study in self.studies:
            for seed in range(self.config.seeds):
                for strategy in self.strategies:
                    if (study, strategy) not in self.skipped:
                        yield self._cell(folder, study, strategy, seed)

    def _cell(self, folder: FilePath, study: str, strategy: str, seed: int) -> RunSpec:
        cap, asked = cap_of(self.config, strategy), self.config.evaluations
        limit = asked if cap is None else min(asked, cap)
        setup = self.setups[study, strategy].asking(limit, seed)
        place = f"s{seed}-of-{limit}" if traits_of(self.config, strategy).horizon else f"s{seed}"
        return RunSpec(study, strategy, seed, setup, cap, folder / "cells" / study / strategy / place)

    def content(self) -> dict[str, Any]:
        """The comparison as YAML content, everything embedded, in the form it is configured in."""
        shown = self.config.model_dump(mode="json") | {"study": {}}
        shown["algos"] = list(self.strategies) if self.studies else self.config.algos
        shown["studies"] = {
            name: {"group": self.groups[name], **embedded(study)} for name, study in self.studies.items()
        }
        return shown

    def write(self, folder: FilePath) -> None:
        """Keep the plan in its folder."""
        write(folder / FILE, yaml_source.dump(self.content()))


def planned(wanted: ComparisonStudies) -> Plan:
    """The plan of a comparison.

    Raises:
        UsageError: a study that cannot be assembled, wrong parameters, or nothing that can be run.
    """
    config = wanted.config
    strategies = tuple(names_of(config, BASELINES, competing()))
    unavailable = {name: reason for name in strategies if (reason := refusal(config, name))}
    studies: dict[str, Study] = {}
    setups: dict[tuple[str, str], Study] = {}
    skipped: dict[tuple[str, str], str] = {}
    for study in wanted.studies:
        met, refused = meetings(config, study, [name for name in strategies if name not in unavailable])
        if not met:
            raise UsageError(next(iter({**refused, **unavailable}.values())))
        studies[study.name] = list(met.values())[-1]
        setups |= {(study.name, name): setup for name, setup in met.items()}
        skipped |= {(study.name, name): reason for name, reason in {**unavailable, **refused}.items()}
    return Plan(config, strategies, studies, setups, {study.name: study.group for study in wanted.studies}, skipped)


def meetings(
    config: ComparisonConfig, study: StudyKeys, strategies: list[str]
) -> tuple[dict[str, Study], dict[str, str]]:
    """The study assembled with each strategy that can work on it, and why the others cannot."""
    met: dict[str, Study] = {}
    refused: dict[str, str] = {}
    keys, origins = read(study.raw, study.origins), {**study.origins, **TYPED}
    for name in strategies:
        algo, params = config.variants.get(name, name), config.params.get(name, {})
        try:
            met[name] = study_of(keys.searched_by(algo, params, origins), config.evaluations)
        except UsageError as error:
            refused[name] = str(error)
    return met, refused


def refusal(config: ComparisonConfig, strategy: str) -> str:
    """Why a strategy cannot take part at all, "" when it can: its extra is not installed.

    Raises:
        UsageError: it does not search, or its parameters are wrong.
    """
    try:
        module = strategy_module(config.variants.get(strategy, strategy))
    except UsageError as error:
        return str(error)
    if not module.TRAITS.takes_evaluations:
        raise UsageError(
            f"algos: expected strategies that search, got {strategy}, which the others are measured against; leave it out"
        )
    faults = Faults()
    try:
        module.Parameters.model_validate(config.params.get(strategy, {}))
    except ValidationError as error:
        faults.add_validation(error, ("params", strategy), module.Parameters)
    faults.raise_if_any()
    return ""


def traits_of(config: ComparisonConfig, strategy: str) -> Traits:
    """The traits of a strategy of the comparison."""
    traits: Traits = strategy_module(config.variants.get(strategy, strategy)).TRAITS
    return traits


def cap_of(config: ComparisonConfig, strategy: str) -> int | None:
    """Evaluations beyond which a strategy is not run: its own cap or a lower one of the comparison; None: no cap."""
    return min(filter(None, (traits_of(config, strategy).cap, config.caps.get(strategy))), default=None)


def competing() -> list[str]:
    """Shipped strategies that search: all that take a number of evaluations and do not know formulas beforehand.

    Those whose extra is missing are in, to be named.
    """
    names = []
    for name in importable(SHIPPED):
        try:
            traits: Traits = strategy_module(name).TRAITS
            if traits.takes_evaluations and not traits.informed:
                names.append(name)
        except UsageError:
            names.append(name)
    return names


def embedded(study: Study) -> dict[str, Any]:
    """A study as plain content without strategy, seed and limit: spaces, laws and devices embedded."""
    content = study.resolved()
    content["constraints"] = study.config.constraints or "none"
    return {
        key: value for key, value in content.items() if key not in ("algo", "params", "auto", "seed", "evaluations")
    }
