"""The folder of a device study: a configuration that repeats it, a manifest."""

from typing import Any

from nas.devices.cases import Cases
from nas.devices.configuration import CaseList
from nas.files.faults import Faults
from nas.problem.rates import is_rate
from nas.record.identity import parts
from nas.study.baselines import baseline
from nas.study.configuration import StudyConfig
from nas.study.layers import preset_keys
from nas.study.metrics import MetricReader
from nas.study.request_length import without_made

OTHERWISE = ("space", "law", "deltas", "laws", "device", "precisions", "budgets", "applications", "baselines")


def kept() -> list[str]:
    """Keys of the study that all cases share, written as they are: all that decide but the strategy and what is embedded."""
    deciding = [key for name, keys in parts().items() if name != "strategy" for key in keys]
    return ["name", *(key for key in deciding if key not in OTHERWISE), "default_budget"]


def resolved(asked: CaseList, cases: Cases) -> dict[str, Any]:
    """Everything as plain content: space, law, devices and models embedded, one entry a case, no paths."""
    problem = cases.base.problem
    config = asked.shared.config.model_dump(mode="json")
    trainer = problem.scenario.training.device
    content = {key: config[key] for key in kept()} | without_made(asked.shared.config)
    if config["token_curve"] != StudyConfig.model_fields["token_curve"].default:
        content["token_curve"] = asked.shared.text.curve.model_dump(mode="json", exclude_none=True)
    content["training"] = {**config["training"], "device": None if trainer is None else trainer.mapping()}
    content |= {"space": problem.space.mapping(), "law": problem.scenario.law.mapping()}
    content |= {"budgets": _written(asked.shared.limits)}
    content |= {"applications": config["applications"]}
    content |= {"devices": {case.named: case.device.mapping() for case in cases.cases}, "cases": _cases(asked, cases)}
    if asked.referred:
        content["as_fast_as"] = None if cases.reference is None else cases.reference.mapping()
    content["models"] = [baseline(item).mapping() if isinstance(item, dict) else item for item in asked.config.models]
    under = asked.models.config.model_dump(mode="json")
    content["models_under"] = {key: under[key] for key in sorted(preset_keys())}
    return {key: _worded(value) for key, value in content.items() if key != "formats" or value}


def _cases(asked: CaseList, cases: Cases) -> list[dict[str, Any]]:
    found = []
    for row, case in zip(asked.rows, cases.cases, strict=True):
        own = MetricReader(Faults(), cases.objectives).budgets(row.budgets, ("budgets",))
        further: dict[str, Any] = {"application": row.application} if row.application else {}
        further |= {"budgets": _written(own)} if own else {}
        further |= {"weight": row.weight} if row.weight != 1.0 else {}
        found.append({"case": row.label, **row.values, "device": case.named, **further})
    return found


def _written(limits: dict[str, float | None]) -> dict[str, Any]:
    """Limits as a study's file has them: of a rate at least."""
    return {name: f">={limit!r}" if is_rate(name) and limit else _worded(limit) for name, limit in limits.items()}


def _worded(value: Any) -> Any:
    """None as the word that a study's file has for it, inside mappings too."""
    if isinstance(value, dict):
        return {key: _worded(inner) for key, inner in value.items()}
    return "none" if value is None else value
