"""A recorded comparison with more strategies, seeds, evaluations or studies; what is there stays as it is."""

from pathlib import Path

from nas.compare.configuration import (
    FILE,
    ComparisonConfig,
    ComparisonStudies,
    StudyKeys,
    checked,
    comparison_studies,
    keys_of,
)
from nas.compare.plan import planned
from nas.compare.request import CompareRequest
from nas.errors import UsageError
from nas.record.identity import difference
from nas.study.value_parsers import split_names
from nas.terminal.console import notice


def extended(request: CompareRequest, folder: Path) -> ComparisonStudies:
    """The content of a comparison's folder, with the additions."""
    if request.out is not None:
        raise UsageError("resume: expected --resume without --out, got both; the comparison has its folder")
    if not (folder / FILE).is_file():
        raise UsageError(f"{folder}: expected a comparison, got no {FILE} in it; list them with 'ls runs'")
    old = comparison_studies({}, {}, [], str(folder), None)
    given = keys_of(request)
    if request.interim and (
        more := [name for name in split_names(given.get("algos", "")) if name not in old.config.algos]
    ):
        raise UsageError(f"interim: expected strategies of {folder}, got {', '.join(more)}; it runs and adds nothing")
    if "baselines" in given:
        raise UsageError("resume: expected --no-baselines only when a comparison begins, got it later; leave it out")
    for key in ("seeds", "evaluations") if old.studies else ():
        if given.get(key, getattr(old.config, key)) < getattr(old.config, key):
            raise UsageError(f"{key}: expected at least {getattr(old.config, key)}, which {folder} has; ask for more")
    for strategy, values in given.get("params", {}).items():
        if strategy in old.config.algos and values != old.config.params.get(strategy):
            raise UsageError(
                f"params.{strategy}: expected those of the comparison, got {values}; start a new one instead"
            )
    for strategy, cap in given.get("caps", {}).items():
        before = old.config.caps.get(strategy, old.config.evaluations)
        if strategy in old.config.algos and isinstance(cap, int) and cap < before:
            raise UsageError(
                f"caps.{strategy}: expected at least {before}, which {folder} has, got {cap}; ask for more"
            )
    merged = {
        **old.config.model_dump(),
        **given,
        "algos": [*old.config.algos, *split_names(given.get("algos", ""))],
        "params": {**old.config.params, **given.get("params", {})},
        "caps": {**old.config.caps, **given.get("caps", {})},
    }
    return ComparisonStudies(checked(merged, {}), (*old.studies, *further(request, old)))


def further(request: CompareRequest, old: ComparisonStudies) -> list[StudyKeys]:
    """Studies that are added; one whose name is there already must be the same."""
    if request.config is None and not request.names:
        if request.flags or request.settings:
            raise UsageError(
                "resume: expected flags of a study only with --studies or --config, which add studies; "
                f"{', '.join([*request.flags, *request.settings])} of the recorded ones stay as they are"
            )
        return []
    new = comparison_studies({}, request.flags, request.settings, request.config, request.names)
    known = {study.name: study for study in old.studies}
    for study in new.studies:
        if study.name in known:
            refuse_another(known[study.name], study)
    if not request.quiet and (unused := not_taken(new.config, old.config)):
        notice(f"{request.config}: only its studies are added; {', '.join(unused)} stay as recorded, flags change them")
    return [study for study in new.studies if study.name not in known]


def not_taken(new: ComparisonConfig, old: ComparisonConfig) -> list[str]:
    """Keys that a comparison's file has otherwise than the recorded comparison."""
    found = [key for key in ("seeds", "evaluations", "variants", "params") if getattr(new, key) != getattr(old, key)]
    further = set(new.algos) - set(old.algos) - {"all"}
    return [*(key for key in found if key in new.model_fields_set), *(["algos"] if further else [])]


def refuse_another(recorded: StudyKeys, given: StudyKeys) -> None:
    """Say so when a study of the same name is another.

    Raises:
        UsageError: with the first difference.
    """
    one, two = (
        next(
            iter(
                planned(
                    ComparisonStudies(ComparisonConfig(algos=["random"], baselines=False), (study,))
                ).studies.values()
            )
        )
        for study in (recorded, given)
    )
    if found := difference(one.resolved(), two.resolved()):
        raise UsageError(f"studies: {recorded.name} is there as another study: {found}; give the new one another name")
