"""Reads a comparison: strategies, seeds, evaluations, studies; from a file, a folder or flags."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from nas.compare.request import CompareRequest
from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import Faults, Path, unknown
from nas.files.tables import write
from nas.search.assembly import Study, assemble, study_of
from nas.search.discovery import SHIPPED, named, strategy_module, untyped
from nas.search.reading import read
from nas.search.strategy import Traits
from nas.study.configuration import NAME, Count, marked
from nas.study.entry_points import refuse_contested
from nas.study.layers import beside, exists, from_file, located, over, parsed_settings
from nas.study.user_code import is_own
from nas.study.value_parsers import PerRun, SingleRun, split_names
from objectives.plugins import documents, importable

FILE = "comparison.yaml"
OWN_KEYS = tuple(marked(PerRun))
TRACE_KEYS = ("columns", "reference", "bounds")  # of other tools' traces; comparisons of earlier releases have them


class ComparisonConfig(BaseModel):
    """The keys of a comparison's YAML."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(pattern=NAME)] = "comparison"
    algos: Annotated[list[str], BeforeValidator(split_names), Field(min_length=1)] = ["all"]
    baselines: Annotated[bool, Field(strict=True)] = True
    variants: dict[Annotated[str, Field(pattern=NAME)], str] = {}
    params: dict[str, dict[str, Any]] = {}
    seeds: Annotated[int, Field(strict=True, ge=1, le=10_000)] = 15
    evaluations: Count = 1000
    caps: dict[str, Count] = {}
    study: str | dict[str, Any] = {}
    studies: dict[Annotated[str, Field(pattern=NAME)], dict[str, Any] | None] = {}


@dataclass(frozen=True, eq=False)
class Source:
    """A comparison's file: content, `file:line` per key, and where it lies."""

    content: dict[str, Any]
    origins: dict[Path, str]
    path: FilePath

    @classmethod
    def read(cls, config: str) -> "Source":
        """The file by path, by the folder of a comparison or a run, or by the name of a shipped one."""
        path = located(config, FILE)
        path_read = located(config) if path.is_dir() else path
        recorded = path_read.parent == FilePath(config)
        content, origins = yaml_source.read(path_read, own=recorded)
        keys = content.items() if isinstance(content, dict) else ()
        kept = {key: value for key, value in keys if key not in TRACE_KEYS or not recorded}
        return cls(kept, origins, path)


@dataclass(frozen=True, eq=False)
class StudyKeys:
    """A study before it is assembled: raw keys, where each came from, and the group it is reported in."""

    name: str
    group: str
    raw: dict[str, Any]
    origins: dict[Path, str]


@dataclass(frozen=True, eq=False)
class ComparisonStudies:
    """A comparison as given by file and flags."""

    config: ComparisonConfig
    studies: tuple[StudyKeys, ...]


def keys_of(request: CompareRequest) -> dict[str, Any]:
    """Keys of the comparison that the flags give, with the parameters and caps of its strategies."""
    given = {"params": parameters_by_strategy(request.params), "caps": parsed_settings(request.caps, "--cap")}
    return {**request.given, **{key: value for key, value in given.items() if value}}


def comparison_studies(
    given: Mapping[str, Any],
    flags: Mapping[str, Any],
    settings: Sequence[str],
    config: str | None,
    names: Sequence[str] | None,
) -> ComparisonStudies:
    """A comparison from its flags.

    `given`: the comparison's own keys; `flags`, `settings`: a study's, which apply to every study;
    `config`: a comparison or a study, file or shipped name; `names`: studies of the comparison, or
    shipped studies, or files.

    Raises:
        UsageError: every fault of the file at once.
    """
    source = Source({}, {}, FilePath()) if config is None else Source.read(config)
    if config is not None and "studies" not in source.content:
        source, names = Source({}, {}, FilePath()), [config, *(names or ())]
    comparison = checked({**source.content, **given}, source.origins)
    studies = [_within(comparison, name, source) for name in comparison.studies if not names or name in names]
    for name in names or ():
        if name not in comparison.studies and name not in documents("configs") and not exists(FilePath(name)):
            choices = [*comparison.studies, *documents("configs")]
            raise UsageError(f"studies: {unknown('a study of the comparison, a shipped one or a file', name, choices)}")
    studies += [_from_file(name) for name in names or () if name not in comparison.studies]
    if not studies and "studies" not in source.content:
        studies = [StudyKeys("paper", "", {}, {})]
    if "name" not in comparison.model_fields_set and len(studies) == 1:
        comparison = comparison.model_copy(update={"name": studies[0].name})
    return ComparisonStudies(comparison, tuple(_flagged(study, flags, settings) for study in _distinct(studies)))


def checked(content: Mapping[str, Any], origins: Mapping[Path, str]) -> ComparisonConfig:
    """The comparison's keys.

    Raises:
        UsageError: every fault at once.
    """
    faults = Faults(origins)
    try:
        return ComparisonConfig.model_validate(dict(content))
    except ValidationError as error:
        faults.add_validation(error, model=ComparisonConfig)
    faults.raise_if_any()
    raise AssertionError


def _within(config: ComparisonConfig, name: str, source: Source) -> StudyKeys:
    """A study of the comparison's file: what all share, and its own keys over that."""
    shared, origins = (
        from_file(config.study)
        if isinstance(config.study, str)
        else (deepcopy(config.study), {path[1:]: at for path, at in source.origins.items() if path[:1] == ("study",)})
    )
    own = deepcopy(config.studies[name] or {})
    group = own.pop("group", "")
    if not isinstance(group, str):
        raise UsageError(f"studies.{name}.group: expected a word, got {group!r}; name the group it is reported in")
    origins |= {path[2:]: at for path, at in source.origins.items() if path[:2] == ("studies", name)}
    return StudyKeys(name, group, beside(source.path, {**shared, **own}), origins)


def _from_file(config: str) -> StudyKeys:
    """A study of its own file, or a shipped one."""
    raw, origins = from_file(config)
    return StudyKeys(str(raw.get("name", located(config).stem)), "", raw, origins)


def _distinct(studies: list[StudyKeys]) -> list[StudyKeys]:
    names = [study.name for study in studies]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"studies: expected a name each, got {name} twice; change 'name' in one of them")
    return studies


def _flagged(study: StudyKeys, flags: Mapping[str, Any], settings: Sequence[str]) -> StudyKeys:
    """The study under the command's flags; the strategy, its parameters and the seed are the comparison's."""
    raw = {key: value for key, value in study.raw.items() if key not in (*OWN_KEYS, "evaluations", "name")}
    raw, origins = over(raw, dict(study.origins), flags, settings)
    for key, mark in marked(SingleRun).items():
        if raw.get(key) not in (None, "", "none", []):
            raise UsageError(f"{key}: expected none in a comparison, got it in {study.name}; {mark.instead}")
    return StudyKeys(study.name, study.group, {**raw, "name": study.name}, origins)


def parameters_by_strategy(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """`nsga2.population=50` texts as parameters of each strategy."""
    parameters: dict[str, dict[str, Any]] = {}
    for name, value in parsed_settings(list(texts), "--param").items():
        strategy, dot, parameter = name.rpartition(".")  # a module's name has dots, a parameter's none
        if not dot:
            raise UsageError(
                f"--param: expected strategy.name=value in a comparison, got {name!r}; write for example nsga2.{name}"
            )
        parameters.setdefault(strategy, {})[parameter] = value
    return parameters


def names_of(config: ComparisonConfig, baselines: Sequence[str], competing: Sequence[str]) -> list[str]:
    """Strategies in the order of the tables: those named (`all` is every one), then the baselines.

    Raises:
        UsageError: an unknown name, with the nearest.
    """
    known = {*named(), *config.variants}
    names: list[str] = []
    for name in config.algos:
        if name == "all":
            names += [*competing, *config.variants]
        elif name in known or is_own(name):
            names.append(name)
        else:
            raise UsageError(f"algos: {unknown('all, or a strategy', name, [*known, 'all'], 'package.module')}")
    for key, labels in (("params", config.params), ("caps", config.caps)):
        for label in labels:
            if label not in known and not is_own(label):
                raise UsageError(f"{key}: {unknown('a strategy', label, known)}")
    for label, strategy in config.variants.items():
        if strategy not in named() and not is_own(strategy):
            raise UsageError(f"variants.{label}: {unknown('a strategy', strategy, named())}")
    return list(dict.fromkeys([*names, *(baselines if config.baselines else ())]))


def refuse_untyped(config: ComparisonConfig, typed: Sequence[str]) -> None:
    """Refuse a user's own strategies that a file alone names, which could be anybody's, and typed names that are not unique.

    Raises:
        UsageError: with what to type.
    """
    for name in typed:
        refuse_contested("strategies", name, "algos: ")
    for name in (*config.algos, *config.variants.values()):
        if name not in (*typed, *config.variants) and is_own(name):
            raise UsageError(f"algos: {untyped(name, '--algos')}")


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
        follows = traits_of(self.config, strategy).horizon or setup.parameters != setup.chosen.parameters
        place = f"s{seed}-of-{limit}" if follows else f"s{seed}"
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
