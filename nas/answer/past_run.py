"""A run folder as evaluations and architectures, read without executing anything in it."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nas.answer.outcome import Ending, Outcome
from nas.answer.outcome_files import file_columns
from nas.errors import PlasError, UsageError
from nas.exact.solution import solve
from nas.files import yaml_source
from nas.problem.evaluations import Evaluations, Scale, distinct, frontier_rows
from nas.problem.objective import Baseline, Budget, Objective, PickQuery, built_in
from nas.problem.picks import MARGIN, PickRule, least_of
from nas.problem.problem import Problem
from nas.problem.quantiles import knowing, named_in, ships, with_metrics
from nas.problem.uncertainty import tied
from nas.record.folder import OpenRun, open_run, workload_of
from nas.record.store import KNOWN, final, holds
from nas.search.assembly import Study, assemble
from nas.search.discovery import completed
from nas.search.strategy import ReportSection
from nas.study.baselines import baseline
from nas.study.layers import over, parsed_settings, preset_keys
from nas.study.scenarios import extrapolated
from nas.study.study_laws import recorded_lengths
from objectives import outside
from objectives.device import Calibration, Device, Sustained
from objectives.display_text import LONGEST, escaped
from objectives.engines import beside_attention
from objectives.loss_law.law import Law
from objectives.measured_bounds import MEASURED
from objectives.plugins import importable
from objectives.profile_choice import OF_DEVICE, calibration_for, doubts
from objectives.scenario import Requests
from objectives.transfers import Conditions
from objectives.typical.sustained import about_load
from objectives.weight_formats.table import WeightFormat
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, IntArray, brief
from search_spaces.columns import worded
from search_spaces.space import SearchSpace


@brief
@dataclass(frozen=True, eq=False)
class RecordedRun:
    """Evaluations of a run, with its space and the scale of its objectives.

    `solved` says that the evaluations are exact answers found afterwards, not rows of the run's log; `requeried` that they are of
    another study, so that the folder's scale is none of theirs; so many of the first ones were `known` before the run.
    """

    run: OpenRun
    space: SearchSpace
    evaluations: Evaluations
    objectives: tuple[Objective, ...]
    solved: bool = False
    known: int = 0
    requeried: bool = False

    @property
    def workload(self) -> Requests:
        """The workload that the metrics are of."""
        return self.run.workload

    @property
    def law(self) -> Law:
        """The loss law of the run."""
        return Law.model_validate(self.run.resolved["law"])

    @property
    def baselines(self) -> tuple[Baseline, ...]:
        """The published models that it was compared with."""
        return tuple(baseline(item) for item in self.run.resolved.get("baselines", []))

    def groups(self, rows: IntArray) -> IntArray:
        """Of chosen rows the group that each is not told apart in by the law, (n,).

        Raises:
            UsageError: the law does not say how sure it is, or of none of them.
        """
        if (found := tied(self.law, self.architectures(rows))) is None:
            raise UsageError(
                f"distinguishable: expected a law with draws or a residual sd, got {self.law.name} with neither; "
                "fit one with 'plas fit', or start a run with --law evidence"
            )
        if (found < 0).all():
            raise UsageError(
                f"distinguishable: expected designs within the evidence of law {self.law.name}, got none; drop it"
            )
        return found

    @property
    def whole_space(self) -> bool:
        """Whether every architecture of the space was evaluated."""
        return len(self.evaluations) == self.space.size

    def architectures(self, rows: IntArray) -> Architectures:
        """Architectures of chosen rows, with the head that the study prices them with."""
        chosen = self.space.architectures(self.evaluations.genotypes[rows])
        return self.space.headed(chosen, self.run.resolved["vocabulary"], tied=self.run.resolved["tied"])

    def extrapolated(self, rows: IntArray) -> list[str]:
        """A sentence for each way in which times of chosen rows lie outside of what the run's profile was measured with."""
        resolved, texts = self.run.resolved, list[str]()
        if not (several := resolved.get("devices")):
            return self._extrapolated_on(resolved["device"], rows)
        on = worded("device", self.architectures(rows).device)
        for name in dict.fromkeys(on.tolist()):
            texts += [f"{name}: {text}" for text in self._extrapolated_on(several[name], rows[on == name])]
        return texts

    def _extrapolated_on(self, content: Any, rows: IntArray) -> list[str]:
        """The same of rows on one device."""
        resolved: Any = self.run.resolved
        device, load, word = Device.model_validate(content), resolved.get("sustained"), resolved["calibration"]
        of_load = about_load(device, Sustained.model_validate(load) if load else None)
        if word == "none":
            return [*doubts(device, None), *of_load]
        lengths, chosen = recorded_lengths(resolved), self.architectures(rows)
        asked = Conditions(
            *(resolved["precision"], resolved["batch"], lengths["input_tokens"], sum(lengths.values())),
            bool((chosen.n_experts > 1).any()),
            "" if resolved.get("engine") in (None, "none") else resolved["engine"],
            beside_attention(chosen),
            own={name: WeightFormat.model_validate(keys) for name, keys in resolved.get("formats", {}).items()},
        )
        profiles: dict[str, Calibration | None] = {}
        for name in (name or resolved["precision"] for name, _ in chosen.in_formats()):
            if word in OF_DEVICE:  # of formats of the designs' own it is the device's that prices them
                profiles[name] = calibration_for(device, replace(asked, precision=name), typical=word == "typical")[0]
            else:
                profiles[name] = Calibration.model_validate(word)
        return [*doubts(device, next(iter(profiles.values()))), *of_load, *extrapolated(profiles, asked)]

    def columns(self, rows: IntArray) -> dict[str, AnyArray]:
        """A candidate file's columns: id, architecture, metrics."""
        metrics = {name: column[rows] for name, column in self.evaluations.metrics.items()}
        marks = [f"key{key}" for key in self.evaluations.keys[rows].tolist()] if self.solved else rows.tolist()
        name = escaped(self.run.path.resolve().name)[: LONGEST - 30]
        identity = np.array([f"{name}-{mark}" for mark in marks], dtype=object)
        return {"id": identity, **file_columns(self.architectures(rows), metrics)}

    def scale(self) -> Scale:
        """The scale of the run's summary (the exact frontier's where known), else that of its own frontier."""
        stored = None if self.requeried else _stored_scale(self.run.path, self.objectives)
        if stored is not None:
            return stored
        return Scale.from_frontier(self.objectives, self.evaluations.values[frontier_rows(self.evaluations)])


def recorded_run(path: Path) -> RecordedRun:
    """Read a run folder.

    Raises:
        UsageError: not a run folder.
        PlasError: a damaged one.
    """
    run = open_run(path)
    recorded = run.store.read()
    found = final(recorded.evaluations, recorded.retried)
    run.store.close()
    log_scale = run.meta["log_scale"]
    objectives = tuple(Objective(name, "", bool(log_scale[name])) for name in run.resolved["objectives"])
    space = SearchSpace.from_mapping(run.resolved["space"])
    if not holds(space, found):
        raise PlasError(f"{path}: expected architectures of its space, got others; it was altered, start a new run")
    return RecordedRun(run, space, found, objectives, known=len(recorded.known))


def _stored_scale(path: Path, objectives: tuple[Objective, ...]) -> Scale | None:
    try:
        content: Any = outside.json_of(path / "summary.json", 10 * outside.MB, own=True)["scale"]
        bounds = np.array([[content[o.name]["best"], content[o.name]["worst"]] for o in objectives], dtype=np.float64)
    except Exception:
        return None
    return Scale.from_frontier(objectives, bounds.T) if np.isfinite(bounds).all() and (bounds > 0).all() else None


OF_FORMATS = ("precision_law", "precision", "group_size", "precision_tokens")


def study_of(run: RecordedRun, flags: Mapping[str, Any], settings: Sequence[str]) -> Study:
    """The run's study with shipped metrics alone.

    Raises:
        UsageError: flags that do not fit it.
    """
    return study_recorded(run.run.resolved, flags, settings)


def study_recorded(resolved: Mapping[str, Any], flags: Mapping[str, Any], settings: Sequence[str]) -> Study:
    """A recorded study with shipped metrics alone, flags over it.

    Raises:
        UsageError: flags that do not fit it.
    """
    figures, typed = workload_of(resolved).figures, {**flags, **parsed_settings(settings)}
    base: dict[str, Any] = {
        **resolved,
        "objectives": [name for name in resolved["objectives"] if ships(name, figures)] or ["loss"],
        "budgets": {metric: limit for metric, limit in resolved["budgets"].items() if ships(metric, figures)},
        "algo": "random",
        "params": {},
        "applications": {},
        "train": None,
        "measure": None,
    }
    if "precision_law" in typed:
        base |= _without_precision_laws(base)
    if "preset" in typed:
        base = {key: value for key, value in base.items() if key not in preset_keys()}
    return assemble(*over(base, {}, flags, settings))


def with_quantiles(run: RecordedRun, limits: Iterable[str]) -> RecordedRun:
    """The run with the metrics at a quantile that limits as they are typed name and that it did not keep, by its own profiles.

    Raises:
        UsageError: a quantile that what was held out cannot claim.
    """
    wanted = [name if "@" in name else name + MARGIN for name in named_in(limits) if name.partition("@")[0] in MEASURED]
    if run.run.resolved["calibration"] == "none":  # which claims nothing
        wanted = [name for name in wanted if name in named_in(limits)]
    if all(name in run.evaluations.metrics for name in wanted):
        return run
    problem = knowing(replace(study_of(run, {}, []).problem, columns=()), limits)
    lacking = tuple(name for name in problem.columns if name not in run.evaluations.metrics)
    return replace(run, evaluations=with_metrics(problem, run.evaluations, lacking))


def _without_precision_laws(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """A run's laws as they were before its study named what few bits cost, which another answer takes the place of."""
    first, further = resolved["precision_law"][:1], tuple(f"+{other}" for other in resolved["precision_law"][1:])

    def plain(law: Mapping[str, Any]) -> dict[str, Any]:  # a precision law of its own file stays
        given = OF_FORMATS if law.get("precision_law") in first else ()
        return {name: value for name, value in law.items() if name not in given}

    own = [plain(law) for law in resolved["laws"] if not str(law.get("name")).endswith(further)]
    return {"law": plain(resolved["law"]), "laws": own}


def solvable(run: RecordedRun) -> Problem | None:
    """The run's problem, where the run is exact, covers more than it holds and uses shipped metrics alone."""
    content: Mapping[str, Any] = run.run.resolved
    named = {*content["objectives"], *content["budgets"]}
    if content["algo"] != "exact" or run.whole_space or not all(ships(name, run.workload.figures) for name in named):
        return None
    return study_of(run, {}, []).problem


def solved_within(run: RecordedRun, problem: Problem, budgets: tuple[Budget, ...], pick: Budget | None) -> RecordedRun:
    """The run as if it had these budgets; `pick` is one more, for a single answer."""
    problem = replace(problem, budgets=budgets)
    least = least_of(run.evaluations.objectives)
    solution = solve(problem, (PickRule(None, least=least), *([PickRule(pick, least=least)] if pick else [])))
    return _holding(run, [solution.frontier, *(p for p in solution.picks if p is not None)])


def solved_along(run: RecordedRun, problem: Problem, budgets: tuple[Budget, ...], metric: str) -> RecordedRun:
    """The run holding every pick that some limit on a metric can have, with the metrics that the run minimised."""
    objectives: tuple[Objective, ...] = tuple(built_in(name) for name in dict.fromkeys(["loss", metric]))
    columns = (*problem.columns, *(objective.name for objective in problem.objectives))
    solution = solve(replace(problem, objectives=objectives, budgets=budgets, columns=columns))
    return _holding(run, [replace(solution.frontier, objectives=run.evaluations.objectives)])


def _holding(run: RecordedRun, parts: list[Evaluations]) -> RecordedRun:
    return replace(run, evaluations=distinct(parts), solved=True)


LONGEST_SENTENCE = 200  # characters of a sentence that a file of the folder may bring along
MOST, LONGEST_LESSON = 100, 2_000  # sentences of a strategy, and characters of one
LEARNED = "What was learned"


def recalled(run: RecordedRun) -> Outcome:
    """The result of a run; of one that has not ended, what it holds so far."""
    study = restored(run)
    batches = np.where(np.arange(len(run.evaluations)) < run.known, KNOWN, 0)
    return Outcome(study, run.evaluations, batches, _ending(run, study.problem))


def restored(run: RecordedRun) -> Study:
    """The run's study with its own objectives, budgets, applications and strategy name; own metrics without their functions."""
    study, resolved = study_of(run, {}, []), run.run.resolved
    config = study.config.model_copy(update={"algo": resolved["algo"], "objectives": resolved["objectives"]})
    return replace(study, config=config, problem=_problem(run, study.problem))


def _problem(run: RecordedRun, shipped: Problem) -> Problem:
    known, meta = (*importable("objectives.metrics"), *run.workload.figures), run.run.meta
    scales, units = (
        {o.name: o.log_scale for o in run.objectives},
        meta.get("units", {}),
    )  # which earlier runs do not hold
    names = [name for name in meta["metrics"] if name not in known and "@" not in name]
    own = tuple(Objective(name, units.get(name, ""), scales.get(name, False)) for name in names)
    asked = [
        PickQuery(str(label), Budget(metric, limit), least=least_of(run.evaluations.objectives))
        for label, limits in run.run.resolved["applications"].items()
        for metric, limit in limits.items()
        if metric in run.evaluations.metrics
    ]
    queries, budgets = (shipped.queries[0], *asked, *shipped.queries[1:]), run.evaluations.budgets
    return replace(shipped, objectives=run.objectives, budgets=budgets, functions=own, queries=queries)


def _ending(run: RecordedRun, problem: Problem) -> Ending:
    """Counts of summary.json for exactly these evaluations; for others those of the manifest."""
    summary, n = _content(run.run.path / "summary.json"), len(run.evaluations) - run.known
    counted = summary.get("evaluations")
    if not isinstance(counted, Mapping) or counted.get("distinct") != n:
        return Ending(_unended(run.run.path), n, {})
    space, asked = summary["space"] if isinstance(summary.get("space"), Mapping) else {}, counted.get("asked")
    whole = run.run.resolved["algo"] == "exact" and space.get("covered") == run.space.size
    reason, how = (
        str(text)[:LONGEST_SENTENCE] for text in (summary.get("stop_reason"), space.get("exact_frontier") or "")
    )
    asked = asked if isinstance(asked, int) and asked >= n else n
    return Ending(reason, asked, {}, how, whole, _sections(run, problem, summary))


def _sections(run: RecordedRun, problem: Problem, summary: Mapping[str, Any]) -> tuple[ReportSection, ...]:
    """What the strategy said, where the summary has sentences; a strategy that does not ship is not imported."""
    lines, figures = summary.get("lessons"), summary.get("learned")
    if not isinstance(lines, list):
        return ()
    sentences = tuple(str(line)[:LONGEST_LESSON] for line in lines[:MOST])
    said = ReportSection(LEARNED, sentences, figures if isinstance(figures, Mapping) else {})
    return (completed(said, run.run.resolved["algo"], run.run.path, problem),)


def _unended(folder: Path) -> str:
    """Why a run stopped whose summary is missing or of other evaluations."""
    state = str(_content(folder / "manifest.json").get("state"))
    known = state in ("running", "interrupted", "failed")
    return f"not at its end, the run is {state}" if known else "unknown, summary.json is not of these evaluations"


def _content(path: Path) -> Mapping[str, Any]:
    with suppress(Exception):
        content = yaml_source.read(path, own=True)[0]
        if isinstance(content, Mapping):
            return content
    return {}


CHANGED = ("space", "law", "laws", "precision_law", "precisions", "calibration")  # of a resolved study


def requeried(run: RecordedRun, flags: Mapping[str, Any]) -> tuple[RecordedRun, Study]:
    """The run's study with these keys, and the run as one of it that has evaluated nothing yet.

    Raises:
        UsageError: flags that do not fit the study, or a run that minimises or limits a metric of its own.
    """
    resolved, shipped = run.run.resolved, (*importable("objectives.metrics"), *run.workload.figures)
    own = [name for name in (*resolved["objectives"], *resolved["budgets"]) if name.partition("@")[0] not in shipped]
    if own:
        raise UsageError(
            f"{' and '.join(flags)}: expected a run of shipped metrics alone, which are solved again, got one of {own[0]}; "
            "start a run with them"
        )
    study = study_of(run, flags, [])
    now = study.resolved()
    nothing = study.problem.evaluate(np.zeros((0, len(study.problem.space.genes)), dtype=np.int64))
    empty = replace(nothing, objectives=run.evaluations.objectives, budgets=run.evaluations.budgets)
    opened = replace(run.run, resolved={**resolved, **{key: now[key] for key in CHANGED}})
    return replace(run, run=opened, space=study.problem.space, evaluations=empty, requeried=True), study
