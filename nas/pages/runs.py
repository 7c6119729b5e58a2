"""Several runs side by side: their names, and what their configurations differ in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nas.answer.outcome import Outcome
from nas.problem.uncertainty import FROM_LOSS
from nas.record.identity import fingerprints

MEANING = ("space", "law", "device", "scenario", "objectives")  # alike, figures of two runs mean the same
SCENARIO = (
    "preset",
    "precision",
    "latency",
    "attention",
    "batch",
    "input_tokens",
    "output_tokens",
    "input_text",
    "output_text",
    "vocabulary",
)


@dataclass(frozen=True, eq=False)
class NamedRun:
    """A run with the name of its folder and its resolved configuration."""

    name: str
    outcome: Outcome
    resolved: Mapping[str, Any]


def distinct_names(names: Sequence[str]) -> list[str]:
    """Names of folders; those that several folders have are numbered."""
    return [f"{name} #{names[: i + 1].count(name)}" if names.count(name) > 1 else name for i, name in enumerate(names)]


def comparable(runs: Sequence[NamedRun], sections: Sequence[str] = MEANING) -> bool:
    """Whether the sections of all configurations are alike."""
    prints = [fingerprints(run.resolved) for run in runs]
    return all(len({each[name] for each in prints}) == 1 for name in sections)


def laws_apart(runs: Sequence[NamedRun]) -> list[str]:
    """The laws of runs that minimise a loss, where they are not one: their losses are not comparable."""
    laws = [run.outcome.study.problem.scenario.law for run in runs]
    if all((law.form, law.coefficients) == (laws[0].form, laws[0].coefficients) for law in laws):
        return []
    of_loss = any(FROM_LOSS.keys() & set(run.outcome.frontier.objectives) for run in runs)
    return list(dict.fromkeys(law.name for law in laws)) if of_loss else []


def differing(runs: Sequence[NamedRun]) -> list[str]:
    """A sentence a section of the configuration that is not the same in all runs: which runs have which."""
    prints = [fingerprints(run.resolved) for run in runs]
    lines = []
    for name in prints[0]:
        groups: dict[str, list[NamedRun]] = {}
        for run, each in zip(runs, prints, strict=True):
            groups.setdefault(each[name], []).append(run)
        if len(groups) > 1:
            parts = [f"{_described(name, same[0].resolved)} ({_names(same)})" for same in groups.values()]
            lines.append(f"{name.capitalize()}: {'; '.join(parts)}.")
    return lines or ["Nothing: the same study, the same strategy and the same seed."]


def _names(runs: Sequence[NamedRun]) -> str:
    shown = ", ".join(run.name for run in runs[:4])
    return shown if len(runs) <= 4 else f"{shown} and {len(runs) - 4} more"


def _described(section: str, resolved: Mapping[str, Any]) -> str:
    """A section of a configuration in a few words."""
    if section == "device" and resolved.get("chip"):
        return "chips of genes"
    if section == "device" and resolved.get("devices"):
        return ", ".join(resolved["devices"])
    if section == "device":
        mode = resolved["device"].get("mode")
        return f"{resolved['device']['name']}{f'@{mode}' if mode else ''}"
    if section in ("space", "law"):
        sd = resolved[section].get("residual_sd")
        return f"{resolved[section]['name']}{'' if sd is None else f' with residual sd {sd:g}'}"
    if section == "strategy":
        params = ", ".join(f"{name} {value}" for name, value in resolved["params"].items())
        return f"{resolved['algo']}, seed {resolved['seed']}{f', {params}' if params else ''}"
    if section == "scenario":
        return ", ".join(f"{name} {value}" for name in SCENARIO if (value := resolved.get(name, "none")) != "none")
    if section == "answer":
        return _answered(resolved)
    if section == "budgets":
        return ", ".join(f"{metric} <= {limit:g}" for metric, limit in resolved["budgets"].items()) or "none"
    return ", ".join(map(str, resolved[section]))


def _answered(resolved: Mapping[str, Any]) -> str:
    """The targets of an answer besides the frontier, in a few words."""
    listed = (resolved.get(key, []) for key in ("laws", "baselines", "applications"))
    names = [[str(each.get("name", each)) if isinstance(each, dict) else str(each) for each in some] for some in listed]
    laws, baselines, applications = (", ".join(some) or "none" for some in names)
    sd = resolved.get("residual_sd", "none")
    return f"other laws {laws}, baselines {baselines}, applications {applications}, residual sd {sd}"
