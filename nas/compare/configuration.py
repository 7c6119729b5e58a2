"""Reads a comparison: strategies, seeds, evaluations, studies; from a file, a folder or flags."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from nas.compare.external_results import bounds_by_name, columns_of, reference_by_name
from nas.compare.request import CompareRequest
from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import Faults, Path, unknown
from nas.search.discovery import named, untyped
from nas.study.configuration import NAME, Count, marked
from nas.study.entry_points import refuse_contested
from nas.study.layers import beside, exists, from_file, located, over, parsed_settings
from nas.study.user_code import is_own
from nas.study.value_parsers import PerRun, SingleRun, split_names
from objectives.plugins import documents

FILE = "comparison.yaml"
OWN_KEYS = tuple(marked(PerRun))


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
    columns: list[str] = []
    reference: dict[str, Annotated[float, Field(allow_inf_nan=False)]] = {}
    bounds: dict[str, Annotated[list[float], Field(min_length=2, max_length=2)]] = {}
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
        content, origins = yaml_source.read(path_read, own=path_read.parent == FilePath(config))
        return cls(content if isinstance(content, dict) else {}, origins, path)


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
    """Keys of the comparison that the flags give, with the parameters and caps of its strategies.

    Raises:
        UsageError: a column, a reference or bounds that are none.
    """
    columns_of(request.columns)
    given = {
        "params": parameters_by_strategy(request.params),
        "caps": parsed_settings(request.caps, "--cap"),
        "columns": list(request.columns),
        "reference": reference_by_name(request.reference),
        "bounds": bounds_by_name(request.bounds),
    }
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
    for key in OWN_KEYS:
        if key in parsed_settings(settings):
            raise UsageError(f"--set {key}: expected --algos, --seeds or --param in a comparison, got it in a study")
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
            raise UsageError(f"algos: {unknown('a strategy, or all', name, [*known, 'all'], 'package.module')}")
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
