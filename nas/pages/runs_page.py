"""The page of several runs: their frontiers over one another, what each found on one scale, and what they differ in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nas.answer.answer_document import OWN_HEADER, own_pick
from nas.answer.outcome import Outcome
from nas.answer.plot_data import thinned
from nas.answer.sentences import certainty
from nas.document.document import Section, table_of
from nas.pages.page import column, element, folded, footer, page, paragraphs, section_html, text
from nas.pages.run_data import WORDS, axes_of, metric_of
from nas.problem.evaluations import Evaluations, Scale, non_dominated, too_many
from nas.problem.problem import Problem
from nas.problem.uncertainty import FROM_LOSS
from nas.record.identity import fingerprints
from search_spaces.columns import SHAPE

MEANING = ("space", "law", "device", "scenario", "objectives")  # alike, figures of two runs mean the same
SCENARIO = (
    *("preset", "precision", "latency", "attention", "batch", "input_tokens", "output_tokens", "input_text"),
    *("output_text", "vocabulary"),
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
    if section == "device":
        device, mode = resolved["device"], resolved["device"].get("mode")
        one = f"{device['name']}{f'@{mode}' if mode else ''}"
        return "chips of genes" if resolved.get("chip") else ", ".join(resolved.get("devices") or [one])
    if section in ("space", "law"):
        sd = resolved[section].get("residual_sd")
        return f"{resolved[section]['name']}{'' if sd is None else f' with residual sd {sd:g}'}"
    if section == "strategy":
        params = "".join(f", {name} {value}" for name, value in resolved["params"].items())
        return f"{resolved['algo']}, seed {resolved['seed']}{params}"
    if section == "scenario":
        return ", ".join(f"{name} {value}" for name in SCENARIO if (value := resolved.get(name, "none")) != "none")
    if section == "answer":  # the targets of an answer besides the frontier
        listed = {"other laws": "laws", "baselines": "baselines", "applications": "applications"}
        named = [
            f"{words} {', '.join(str(e.get('name', e)) if isinstance(e, dict) else str(e) for e in resolved.get(key, [])) or 'none'}"
            for words, key in listed.items()
        ]
        return ", ".join([*named, f"residual sd {resolved.get('residual_sd', 'none')}"])
    if section == "budgets":
        return ", ".join(f"{metric} <= {limit:g}" for metric, limit in resolved["budgets"].items()) or "none"
    return ", ".join(map(str, resolved[section]))


SCRIPTS = ("runs.js",)
FEW = 12  # runs that are spoken of one by one
HEADER = ("run", "strategy", "seed", "evaluations", "frontier", "hypervolume", "on the joint frontier", "lowest loss")


def runs_page(runs: Sequence[NamedRun]) -> str:
    """Several runs as one HTML file.

    Raises:
        PlasError: no BokehJS in this environment.
    """
    title = f"{len(runs)} runs: {', '.join(run.name for run in runs[:3])}{', …' if len(runs) > 3 else ''}"
    label = "Frontiers of the runs over one another; the table below holds their figures."
    chart = element("div", id="overlay", class_="chart", role="img", aria_label=label)
    menus = element("div", id="axes", class_="controls") + paragraphs([_HINT], "quiet keys")
    picks = table_of(("run", *OWN_HEADER), [(run.name, *own_pick(run.outcome)) for run in runs])
    main = element(
        "main",
        element("section", chart, menus, class_="opening", aria_label="Frontiers"),
        section_html(Section("What each found", (table_of(HEADER, _found(runs), notes=_meaning(runs)),))),
        section_html(Section("What they differ in", tuple(differing(runs)), folded=True)),
        section_html(Section("Lowest predicted loss within each run's budgets", (picks,), folded=True)),
        folded("How sure", _sure(runs)),
        id="main",
    )
    return page(title, element("header", element("h1", text(title))) + main + footer(), runs_data(runs), SCRIPTS)


_HINT = "Names in the legend hide their frontier; drag to zoom, point to read."


def _found(runs: Sequence[NamedRun]) -> list[tuple[str, ...]]:
    """A line a run: what it searched with, and its frontier on the scale that all frontiers span."""
    rows = list[tuple[str, ...]]()
    for run, volume, share in zip(runs, *_judged(runs), strict=True):
        config, front = run.outcome.study.config, run.outcome.frontier
        least = f"{front.metrics['loss'].min():.4f}" if len(front) else "none fits"
        sizes = (f"{len(run.outcome.evaluations):,}", f"{len(front):,}")
        rows.append((run.name, config.algo, str(config.seed), *sizes, volume, share, least))
    return rows


def _judged(runs: Sequence[NamedRun]) -> tuple[list[str], list[str]]:
    """Hypervolume, and members that no run's frontier dominates, of each run; nothing where objectives or laws differ."""
    values = [run.outcome.frontier.values for run in runs]
    if _of_other_objectives(runs) or not any(map(len, values)) or laws_apart(runs):
        return [""] * len(runs), [""] * len(runs)
    every = np.concatenate(values)
    joint = np.zeros(len(every), dtype=bool)
    joint[non_dominated(every)] = True
    scale = Scale.from_frontier(runs[0].outcome.study.problem.objectives, every)
    ends = np.cumsum([len(part) for part in values])[:-1]
    volumes = [f"{scale.hypervolume(part, approximate=too_many(part)):.6f}" for part in values]
    return volumes, [f"{int(part.sum()):,} of {len(part):,}" for part in np.split(joint, ends)]


def _of_other_objectives(runs: Sequence[NamedRun]) -> bool:
    return len({tuple(run.outcome.frontier.objectives) for run in runs}) > 1


def _meaning(runs: Sequence[NamedRun]) -> list[str]:
    sentence = (
        "Hypervolume is on the scale that all these frontiers span together (1.1 in every objective is the reference)."
    )
    if _of_other_objectives(runs):
        sentence = "No hypervolume: these runs minimise different objectives."
    elif laws := laws_apart(runs):
        sentence = (
            f"No hypervolume: losses of the laws {', '.join(laws)} are of different tokenizers and data and are not compared; "
            "what each would pick, and the regret of these picks, says run --algo exact --set laws=a,b."
        )
    differ = "These runs differ in what their figures mean, as listed below: read loss and time of each under its own conditions."
    return [sentence, *([] if comparable(runs) else [differ])]


def _sure(runs: Sequence[NamedRun]) -> str:
    shown = [element("h3", text(run.name)) + paragraphs(certainty(run.outcome)) for run in runs[:FEW]]
    left = len(runs) - FEW
    return "".join(shown) + (
        paragraphs([f"{left:,} more runs: each run's own report.html says it."]) if left > 0 else ""
    )


MOST = 60_000  # designs of all frontiers together
FEWEST = 50  # designs of one frontier, where it has so many


def runs_data(runs: Sequence[NamedRun]) -> dict[str, Any]:
    """Everything that the scripts of a page of several runs need."""
    names = [
        name for name in runs[0].outcome.evaluations.metrics if all(name in r.outcome.evaluations.metrics for r in runs)
    ]
    most = max(FEWEST, MOST // len(runs))
    axes = [
        name if name in names else fallback for name, fallback in zip(axes_of(runs[0].outcome), _USUAL, strict=True)
    ]
    curves = {len(run.outcome.evaluations.objectives) for run in runs} == {2}
    return {
        "metrics": [metric_of(runs[0].outcome, name) for name in names],
        "axes": axes,
        "words": WORDS,
        "curve": axes if curves and all(set(run.outcome.evaluations.objectives) == set(axes) for run in runs) else None,
        "runs": [{"name": r.name, **_members(r.outcome.study.problem, r.outcome.frontier, names, most)} for r in runs],
        "exact": _exact(runs, names, most),
    }


_USUAL = ("total_ms", "loss")


def _members(problem: Problem, frontier: Evaluations, names: Sequence[str], most: int) -> dict[str, Any]:
    kept = frontier[thinned(len(frontier), most)]
    architectures = problem.architectures(kept.genotypes)
    return {
        "n": len(kept),
        "of": len(frontier),
        "metrics": {name: column(kept.metrics[name]) for name in names},
        "shape": {name: column(getattr(architectures, name)) for name in (*SHAPE, *problem.space.further)},
    }


def _exact(runs: Sequence[NamedRun], names: Sequence[str], most: int) -> dict[str, Any] | None:
    """The exact frontier, where one of the runs knows it and all of them have the same."""
    known = next((run.outcome for run in runs if run.outcome.exact is not None), None)
    if known is None or known.exact is None or not comparable(runs, (*MEANING, "budgets")):
        return None
    problem = known.study.problem
    genotypes = known.exact.frontier.genotypes
    return _members(problem, problem.evaluate(genotypes[thinned(len(genotypes), most)]), names, most)
