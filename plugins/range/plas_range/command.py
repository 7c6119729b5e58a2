"""The work of `devices`: cases solved and compared, models ranked, printed and kept in a folder that repeats it."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nas.errors import InfeasibleError
from nas.files import yaml_source
from nas.files.faults import Faults
from nas.files.tables import write
from nas.problem.objective import is_rate
from nas.record import folder as run_folder
from nas.record.folder import Manifest
from nas.record.identity import parts
from nas.study.baselines import baseline
from nas.study.configuration import IN_TEXT, StudyConfig, given_length
from nas.study.layers import parsed_settings, preset_keys
from nas.study.metrics import MetricReader
from nas.terminal.console import Stages, Ticker, notice, say
from nas.terminal.screen_text import linked
from nas.terminal.tables import show
from plas_range.case_list import case_list
from plas_range.cases import Case, Cases, priced_cases
from plas_range.configuration import CaseList
from plas_range.device_document import device_document, warnings
from plas_range.models import Priced, ranked
from plas_range.page import devices_page
from plas_range.request import DevicesRequest
from plas_range.result import DeviceStudy, Models, studied
from plas_range.tables import write_tables


def answer(request: DevicesRequest) -> None:
    """Solve, compare, rank, write, print.

    Raises:
        UsageError: what was asked for cannot be done.
        InfeasibleError: nothing fits in any case.
        PlasError: the folder cannot be written.
    """
    begin, stage = time.monotonic(), Stages(quiet=request.quiet)
    wanted = case_list(request)
    cases, of_models = priced_cases(wanted), priced_cases(wanted.for_models())
    if not request.quiet:
        shown = of_models if request.models_only else cases
        on_cases = warnings(shown.cases, designs=not request.models_only)
        for text in [*(f"Warning: {told}" for told in wanted.notices), *on_cases]:
            notice(text)
    models = _models(request, wanted, of_models.cases)
    unkept = request.models_only and request.out is None  # a question about models alone leaves no folder
    folder = None if unkept else run_folder.create(f"devices-{cases.base.config.name}", request.out)
    try:
        study = None
        if not request.models_only:
            ticker = Ticker(len(cases.cases) * cases.base.problem.space.size, quiet=request.quiet)
            study = studied(cases, ticker.settled)
            ticker.close()
    except BaseException:
        if folder is not None:
            run_folder.discard(folder)
        raise
    if folder is not None:
        _keep(folder, request, wanted, cases, study, models, stage, begin)
    stage.close()
    _say(request, study, models, folder)
    _refuse_nothing(study, models)


def _models(request: DevicesRequest, wanted: CaseList, cases: Sequence[Case]) -> Models:
    """Published models under their own conventions, each with its own vocabulary unless one was given."""
    given = {*request.flags, *parsed_settings(request.settings)}
    models, left_out = Priced.from_items(wanted.config.models).covered(cases)
    if left_out and not request.quiet:
        notice(
            f"Warning: the closed form does not cover {', '.join(left_out)}: left out, --set latency=operator prices them"
        )
    own = "vocabulary" not in given
    models, left_out = models.counted(cases) if own else (models, [])
    if left_out and not request.quiet:
        notice(f"Warning: token_curve does not count the vocabularies of {', '.join(left_out)}: left out")
    return ranked(models, cases, own_vocabulary=own)


def _keep(
    folder: Path,
    request: DevicesRequest,
    wanted: CaseList,
    cases: Cases,
    study: DeviceStudy | None,
    models: Models,
    stage: Stages,
    begin: float,
) -> None:
    """Configuration, tables, page, manifest."""
    manifest = Manifest(folder, {"command": "devices", "state": "running", "started": run_folder.now()})
    manifest.update(versions=run_folder.versions(), cases=len(cases.cases))
    content = resolved(wanted, cases)
    write(folder / "config.yaml", yaml_source.dump(content))
    stage("writing tables")
    write_tables(folder, study, models)
    if request.plots:
        stage("writing the page")
        write(folder / "report.html", devices_page(folder.resolve().name, study, models, content))
    manifest.update(state="finished", ended=run_folder.now(), seconds=round(time.monotonic() - begin, 3))


def _say(request: DevicesRequest, study: DeviceStudy | None, models: Models, folder: Path | None) -> None:
    if request.json or not request.quiet:
        show(device_document(study, models, folder), as_json=request.json)
    if request.json or request.quiet:
        return
    if study is not None:
        say(f"{len(models[0])} published models are ranked in models.csv; --models-only shows them.")
    if folder is not None:
        say(f"Tables, {'report.html, ' if request.plots else ''}and config.yaml that repeats it: ", linked(folder))


def _refuse_nothing(study: DeviceStudy | None, models: Models) -> None:
    """Exit code 3 where nothing at all fits.

    Raises:
        InfeasibleError: with the first reason.
    """
    if study is not None and not study.optima:
        raise InfeasibleError("devices: nothing fits in any case; cases.csv says which limit is short and by how much")
    if study is None and not any(row.fits for rows in models for row in rows):
        raise InfeasibleError("devices: no published model fits any of the devices")


OTHERWISE = ("space", "law", "deltas", "laws", "device", "precisions", "budgets", "applications", "baselines")


def kept() -> list[str]:
    """Keys of the study that all cases share, written as they are: all that decide but the strategy and what is embedded."""
    deciding = [key for name, keys in parts().items() if name != "strategy" for key in keys]
    return ["name", *(key for key in deciding if key not in OTHERWISE), "default_budget"]


def resolved(wanted: CaseList, cases: Cases) -> dict[str, Any]:
    """Everything as plain content: space, law, devices and models embedded, one entry a case, no paths."""
    problem = cases.base.problem
    config = wanted.shared.config.model_dump(mode="json")
    trainer = problem.scenario.training.device
    content = {key: config[key] for key in kept()} | {
        tokens: given_length(wanted.shared.config, tokens) for tokens in IN_TEXT
    }
    if config["token_curve"] != StudyConfig.model_fields["token_curve"].default:
        content["token_curve"] = wanted.shared.text.curve.model_dump(mode="json", exclude_none=True)
    content["training"] = {**config["training"], "device": None if trainer is None else trainer.mapping()}
    content |= {"space": problem.space.mapping(), "law": problem.scenario.law.mapping()}
    content |= {"budgets": _written(wanted.shared.limits)}
    content |= {"applications": config["applications"]}
    content |= {"devices": {case.named: case.device.mapping() for case in cases.cases}, "cases": _cases(wanted, cases)}
    if wanted.referred:
        content["as_fast_as"] = None if cases.reference is None else cases.reference.mapping()
    content["models"] = [baseline(item).mapping() if isinstance(item, dict) else item for item in wanted.config.models]
    under = wanted.models.config.model_dump(mode="json")
    content["models_under"] = {key: under[key] for key in sorted(preset_keys())}
    return {key: _worded(value) for key, value in content.items() if key != "formats" or value}


def _cases(wanted: CaseList, cases: Cases) -> list[dict[str, Any]]:
    entries = []
    for row, case in zip(wanted.rows, cases.cases, strict=True):
        own = MetricReader(Faults(), cases.objectives).budgets(row.budgets, ("budgets",))
        further: dict[str, Any] = {"application": row.application} if row.application else {}
        further |= {"budgets": _written(own)} if own else {}
        further |= {"weight": row.weight} if row.weight != 1.0 else {}
        entries.append({"case": row.label, **row.values, "device": case.named, **further})
    return entries


def _written(limits: dict[str, float | None]) -> dict[str, Any]:
    """Limits as a study's file has them: of a rate at least."""
    return {name: f">={limit!r}" if is_rate(name) and limit else _worded(limit) for name, limit in limits.items()}


def _worded(value: Any) -> Any:
    """None as the word that a study's file has for it, inside mappings too."""
    if isinstance(value, dict):
        return {key: _worded(inner) for key, inner in value.items()}
    return "none" if value is None else value
