"""The work of `devices`: cases solved and compared, models ranked, printed, drawn and kept in a folder that repeats it."""

import time
from collections.abc import Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np

from nas.answer.design_words import count
from nas.devices import screen
from nas.devices.case_list import case_list
from nas.devices.cases import Case, Cases, priced_cases
from nas.devices.configuration import CaseList
from nas.devices.models import ModelRow, Priced, memory_limit, ranked
from nas.devices.page import devices_page
from nas.devices.request import DevicesRequest
from nas.devices.result import DeviceStudy, Models, studied
from nas.devices.screen import MOST_ROWS, columns, cut, formats, speed_lines, workload, wrapped
from nas.devices.tables import described, write_tables
from nas.errors import InfeasibleError
from nas.files import yaml_source
from nas.files.faults import Faults
from nas.files.own_files import drawing
from nas.files.tables import write
from nas.problem.objective import is_rate
from nas.record import folder as run_folder
from nas.record.folder import Manifest
from nas.record.identity import parts
from nas.study.baselines import baseline
from nas.study.configuration import StudyConfig
from nas.study.layers import parsed_settings, preset_keys
from nas.study.metrics import MetricReader
from nas.study.study_laws import without_made
from nas.terminal.console import Stages, Ticker, notice, say, say_json
from objectives.quantities import bytes_in_words


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
        on_cases = screen.warnings(shown.cases, designs=not request.models_only)
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
    """Configuration, tables, pictures, manifest."""
    manifest = Manifest(folder, {"command": "devices", "state": "running", "started": run_folder.now()})
    manifest.update(versions=run_folder.versions(), cases=len(cases.cases))
    content = resolved(wanted, cases)
    write(folder / "config.yaml", yaml_source.dump(content))
    stage("writing tables")
    write_tables(folder, study, models)
    if request.plots:
        stage("drawing pictures and page")
        if study is not None:
            from nas.devices.pictures import draw_all

            with drawing(folder, "tables") as plots:
                draw_all(study, plots)
        write(folder / "report.html", devices_page(folder.resolve().name, study, models, content))
    manifest.update(state="finished", ended=run_folder.now(), seconds=round(time.monotonic() - begin, 3))


def _say(request: DevicesRequest, study: DeviceStudy | None, models: Models, folder: Path | None) -> None:
    if request.json:
        say_json(({} if folder is None else {"folder": str(folder)}) | described(study, models))
        return
    if request.quiet:
        return
    further = (
        [f"{len(models[0])} published models are ranked in models.csv; --models-only shows them."] if study else []
    )
    if folder is not None:
        further += wrapped(
            f"Tables, {'report.html, ' if request.plots else ''}and config.yaml that repeats it: {folder}"
        )
    for line in [*(lines_of(models) if study is None else screen.lines_of(study, len(further))), *further]:
        say(line)


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
    content = {key: config[key] for key in kept()} | without_made(wanted.shared.config)
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


NAME_WIDTH = 18


def lines_of(models: Models) -> list[str]:
    """The ranking on one device in full, or tokens per second on several."""
    return _one_device(models[0]) if len(models) == 1 else _several(models)


def _one_device(rows: Sequence[ModelRow]) -> list[str]:
    case = rows[0].case
    limit = memory_limit(case)
    mode = f"@{case.device.mode}" if case.device.mode else ""
    several = len({row.vocabulary for row in rows}) > 1
    own = "each with its own vocabulary" if several else f"vocabulary {rows[0].vocabulary:,}"
    text = case.config.input_text
    prompt = f"{case.config.input_tokens:,} tokens" if text is None else bytes_in_words(text)
    limits = any(row.missed for row in rows)
    header = ("model", "tokens/s", "TTFT ms", limit.metric.replace("_gb", " GB"), "fits", "parameters", "loss")
    return [
        *wrapped(f"{case.device.name}{mode}, {formats([case])}"),
        *wrapped(f"Fits: {limit} GB; {own}. TTFT is the prefill of {prompt}. Losses in nats."),
        "",
        *columns(header, [_cells(row, limit.metric) for row in rows], left=1, last=True, gap=2),
        "",
        *(line for text in (*largest(rows, limits), losses_note(case)) for line in wrapped(text)),
    ]


def _cells(row: ModelRow, memory: str) -> list[str]:
    """A model's row."""
    first = row.metrics["prefill_ms"]
    return [
        row.model,
        f"{row.tokens_per_second:.4g}",
        f"{first:,.{0 if first >= 100 else 1}f}",
        f"{row.metrics[memory]:.2f}",
        "no" if not row.fits else f"over {row.missed[0].metric}" if row.missed else "yes",
        count(row.metrics["params_total"]),
        "-" if not np.isfinite(row.loss) else f"{row.loss:.3f}{'*' if row.extrapolates else ' '}",
    ]


def largest(rows: Sequence[ModelRow], limits: bool) -> list[str]:
    """The model of most parameters that fits, and that is within all limits."""
    fitting = [row for row in rows if row.fits]
    if not fitting:
        least = min(rows, key=lambda row: row.metrics["resident_gb"])
        return [f"None fits; {least.model} needs least, {least.metrics['resident_gb']:.3g} GB resident."]
    largest_model = max(fitting, key=lambda row: row.metrics["params_total"])
    lines = [f"Largest that fits: {largest_model.model}, {largest_model.tokens_per_second:.3g} tokens/s."]
    able = [row for row in fitting if not row.missed]
    if limits and able:
        best = max(able, key=lambda row: row.metrics["params_total"])
        lines.append(f"Largest within all limits: {best.model}, {best.tokens_per_second:.3g} tokens/s.")
    elif limits:
        lines.append("None is within all limits.")
    return lines


def losses_note(case: Case) -> str:
    """Note on the losses, and on which are extrapolations or missing."""
    law = case.problem.scenario.law
    tokens = f" after {law.tokens / 1e9:g} B training tokens" if law.tokens else ""
    return (
        f"loss: what law {law.name} predicts of the shape{tokens}, not the published model's own; * extrapolates; "
        "- no value (queries wider or narrower than the width, layers of several kinds)."
    )


def _several(models: Models) -> list[str]:
    cases = [rows[0].case for rows in models]
    shown = cases[:MOST_ROWS]
    names = "; ".join(f"{letter} {_named(case, cases)}" for letter, case in zip(ascii_lowercase, shown, strict=False))
    more = len(cases) - len(shown)
    by_id = [{row.id: row for row in rows} for rows in models[:MOST_ROWS]]
    order = sorted(models[0], key=lambda row: row.metrics["params_total"])
    body = [[cut(row.model, NAME_WIDTH), *(_speed(column[row.id]) for column in by_id)] for row in order]
    return [
        *(line for text in (formats(cases), names) for line in wrapped(text)),
        *([f"and {more:,} more, see models.csv (--out)"] if more > 0 else []),
        *(line for text in speed_lines(cases) for line in wrapped(text)),
        "",
        "Tokens per second, the smallest model first; - does not fit, ! misses a limit",
        *columns(("model", *ascii_lowercase[: len(shown)]), body, left=1, last=False, gap=1),
    ]


def _named(case: Case, cases: Sequence[Case]) -> str:
    """A case of models: the device, and its format where these differ."""
    further: list[str] = [case.config.precision] if len({c.config.precision for c in cases}) > 1 else []
    further += [workload(case)] if len({workload(c) for c in cases}) > 1 else []
    return " ".join([case.named, *further])


def _speed(row: ModelRow) -> str:
    if not row.fits:
        return "-"
    n = row.tokens_per_second
    text = f"{n:.1f}" if n < 10 else f"{n:.0f}" if n < 10_000 else f"{n / 1000:.0f}k"
    return text + ("!" if row.missed else "")
