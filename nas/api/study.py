"""A study in Python, with the keys, presets and defaults of the command line."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
import pandas as pd

from nas.answer.outcome import Outcome, conclude
from nas.answer.sentences import devices_in_words
from nas.answer.three_sentences import solved_answer, three_sentences
from nas.api.data_frames import (
    DesignExplanation,
    Given,
    architectures_of,
    designs_of,
    evaluations_table,
    metrics_table,
    notebook_html,
    units,
)
from nas.api.frontier import Frontier, within
from nas.api.study_keys import StudyKeys, with_keys
from nas.commands.requests import RunRequest
from nas.commands.run import ran, resumed
from nas.errors import UsageError
from nas.exact.solution import SMALL, solve
from nas.problem.breakdown import explained
from nas.problem.problem import Problem
from nas.record.store import FILE, RunStore, begun
from nas.search import assembly
from nas.search.cluster import refuse_waiting
from nas.search.loop import Search
from nas.search.reading import ReadStudy, read
from nas.study.entry_points import refuse_contested
from nas.study.layers import layered
from nas.study.user_code import script_module
from nas.terminal.flags import modules_for_files, study_keys

if TYPE_CHECKING:
    from nas.api.own_loops import Optimizer, OptunaObjective, PymooProblem


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """A study: space, device, objectives and budgets; made by `load_study`.

    `config` and `keys` are the arguments of `load_study`, `read` what they name, `posed` its problem.
    """

    read: ReadStudy
    posed: assembly.Posed
    config: str | Path | None
    keys: Mapping[str, Any]

    @cached_property
    def assembled(self) -> assembly.Study:
        """The study with its questions and its strategy, made when it is first used.

        Raises:
            UsageError: designs of the space that its models cannot price, or a strategy that cannot do what the study asks.
        """
        return assembly.study_of(self.read, posed=self.posed)

    @property
    def problem(self) -> Problem:
        """Space, scenario, objectives and budgets."""
        return self.assembled.problem

    @property
    def units(self) -> dict[str, str]:
        """The unit of every metric; "" for a pure number."""
        return units(self.problem)

    @property
    def notices(self) -> tuple[str, ...]:
        """The warnings that the command line would print."""
        return self.assembled.notices

    @with_keys
    def replace(self, **keys: Unpack[StudyKeys]) -> "Study":
        """Return the same study with other keys.

        Examples:
            >>> nas.load_study().replace(device="l4", budgets={"decode_ms": 20}).units["decode_ms"]
            'ms'

        Raises:
            UsageError: all faults at once.
        """
        return load_study(self.config, **cast(StudyKeys, {**self.keys, **keys}))

    def evaluate(self, architectures: Given) -> pd.DataFrame:
        """Return every metric of the given architectures, one row each, with `feasible`, `extrapolates` and `reason`.

        Architectures without a vocabulary get the study's. A metric that fails is NaN, and `reason` says why
        ("" if nothing failed). `extrapolates` marks losses outside the law's range.
        The table's `attrs["units"]` holds the units: nats for loss, ms for times, GB for memory.

        Args:
            architectures: a model's name, columns, rows, a table or a candidate file, (n,).

        Examples:
            >>> study = nas.load_study(preset="device")
            >>> table = study.evaluate({"depth": 24, "width": 896, "n_kv_heads": 2, "expert_size": 3584})
            >>> table.shape[0], table.attrs["units"]["decode_ms"], bool(table.feasible[0])
            (1, 'ms', True)
            >>> len(study.evaluate("qwen2.5_0.5b"))  # a published model; also a table, rows, or a candidate file
            1

        Raises:
            UsageError: rows that are not architectures, or that the latency model does not cover.
        """
        problem, chosen = self.problem, designs_of(self.problem, architectures)
        try:
            metrics, reasons = problem.metrics(chosen, assessment=(assessment := problem.assess(chosen)))
        except ValueError as error:
            raise UsageError(str(error)) from None
        own = {function.name for function in problem.functions}
        for name in metrics if reasons else ():  # what a formula says of a row stands where another metric failed
            if name not in own:
                metrics[name] = np.where(np.isfinite(assessment[name]), assessment[name], np.nan)
        reasons = reasons or [""] * len(chosen)
        met = [np.asarray(budget.violation(metrics[budget.metric]) <= 0) for budget in problem.budgets]
        feasible = np.logical_and.reduce([np.array([not reason for reason in reasons]), *met])
        extrapolates = problem.scenario.law.extrapolates(chosen)
        return metrics_table(problem, chosen, metrics, feasible=feasible, extrapolates=extrapolates, reason=reasons)

    def sample(self, n: int, *, seed: int = 0) -> pd.DataFrame:
        """Return n distinct random architectures of the space (all, if it has fewer), evaluated.

        Args:
            n: designs.
            seed: of the draw.

        Examples:
            >>> len(nas.load_study().sample(3, seed=1))
            3

        Raises:
            UsageError: n or seed is not a whole number of at least 0.
        """
        for name, value in (("n", n), ("seed", seed)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
                raise UsageError(f"sample: expected {name} to be a whole number from 0 on, got {value!r}; correct it")
        problem = self.problem
        return self.evaluate(problem.architectures(problem.space.sample(n, np.random.default_rng(seed))))

    def solve(self) -> Frontier:
        """Return the exact frontier of the whole space.

        Examples:
            >>> frontier = nas.load_study(budgets={"total_ms": 100}).solve()
            >>> frontier.exact, bool(frontier.frame.total_ms.max() <= 100)
            (True, True)

        Raises:
            UsageError: the space is too large to enumerate, and a metric declares no parts.
        """
        found = solve(self.problem)
        return Frontier(
            self.problem,
            found.frontier,
            exact=True,
            how=found.explanation,
            baselines=self.assembled.baselines,
            answering=partial(solved_answer, self.assembled, found.frontier),
            study=self.assembled,
        )

    @with_keys
    def search(
        self,
        algo: str | None = None,
        /,
        *,
        out: str | Path | None = None,
        resume: bool = False,
        callback: Callable[[pd.DataFrame], object] | None = None,
        progress: bool = False,
        **keys: Unpack[StudyKeys],
    ) -> Frontier:
        """Return the frontier that a strategy finds, as `plas run` does; `out` keeps the run folder, and `resume` continues it.

        Keys are the study's (`evaluations=2000`, `seed=1`, `params={"population": 50}`), and `algo` may come first.
        `algo` may be a module of your own, which is then imported. `callback` gets the latest evaluations as a table. `progress`
        shows the line and the warnings of `plas run`. If an exception ends the search, its evaluations are kept, and the message says where.

        Args:
            algo: the strategy.
            out: the run folder.
            resume: whether to continue it.
            callback: gets each table of new evaluations.
            progress: whether to show a line of progress.
            **keys: of the study.

        Examples:
            >>> found = nas.load_study().search("nsga2", evaluations=300, seed=1)
            >>> len(found.evaluated), found.exact
            (300, False)

        Raises:
            UsageError: arguments that cannot be used, before any evaluation; a metric that always fails.
        """
        if algo is not None:
            keys = cast(StudyKeys, {"algo": algo, **keys})
        study = self.replace(**keys) if keys else self
        study._refuse_unimportable()
        if resume and out is None:
            raise UsageError("resume: expected out, the run folder to go on with, got none; name it")
        request = _Request(quiet=not progress, json=True, pictures=out is not None, callback=callback)
        if out is not None:
            place = Path(out)
            going_on = resume and begun(place / FILE)
            return study._searched(replace(request, resume=place) if going_on else replace(request, out=place), place)
        folder = Path(mkdtemp(prefix="plas-"))
        try:
            found = study._searched(replace(request, out=folder / "run"), None)
        except BaseException:
            if not begun(folder / "run" / FILE):  # else it is kept, and the message says where
                rmtree(folder, ignore_errors=True)
            raise
        rmtree(folder, ignore_errors=True)
        return found

    @with_keys
    def optimizer(
        self, algo: str, /, *, log: str | Path | None = None, resume: bool = False, **keys: Unpack[StudyKeys]
    ) -> "Optimizer":
        """Return a strategy for your own loop: the loop asks it for designs, evaluates them and tells it their values.

        Keys are the study's, `seed` and `evaluations` among them. The proposals are those of `plas run` with the same keys. `log` is a run
        folder that keeps the values, and `resume` continues it. With `asynchronous`, a strategy that need not wait proposes designs
        while values are missing.

        Args:
            algo: the strategy.
            log: a run folder.
            resume: whether to continue it.
            **keys: of the study.

        Examples:
            >>> optimizer = nas.load_study().optimizer("nsga2", seed=1, evaluations=200)
            >>> designs = optimizer.ask(10)
            >>> optimizer.tell(designs, nas.load_study().evaluate(designs))

        Raises:
            UsageError: `asynchronous` with a strategy that must wait; `workers`, which your own loop does not have; a log of another study.
        """
        from nas.api.own_loops import Optimizer

        at_once = bool(keys.pop("asynchronous", False))
        asked = _read(self.config, {**self.keys, **keys, "algo": algo})
        for key in ("workers", "executor"):
            if (given := getattr(asked.config, key)) is not None:
                raise UsageError(f"optimizer: expected no {key}, got {given}; your loop evaluates: leave it out")
        assembled = assembly.study_of(asked, told=True)
        config, size = assembled.config, assembled.problem.space.size
        if not assembled.traits.takes_evaluations and size > SMALL:
            raise UsageError(
                f"optimizer: expected a strategy that your values guide, got {algo}, which solves {size:,} designs by the study's formulas; choose another"
            )
        if at_once:
            refuse_waiting(algo, assembled.traits)
        assembled = replace(assembled, config=config.model_copy(update={"asynchronous": at_once}))
        return Optimizer(assembled, None if log is None else Path(log), resume=resume)

    def _refuse_unimportable(self) -> None:
        """Worker processes import a user's function; one of a notebook has no module."""
        here = [metric.name for metric in self.problem.functions if metric.name.startswith("__main__:")]
        config = self.assembled.config
        if (config.workers or config.executor) and here:
            raise UsageError(
                f"{'executor' if config.executor else 'workers'}: expected functions of a module, got {here[0]}; write it into a file and import it"
            )

    def _searched(self, request: RunRequest, folder: Path | None) -> Frontier:
        if folder is None:
            outcome: Outcome = ran(self.assembled, request, _unwritten)[0]
        else:
            outcome = (
                ran(self.assembled, request) if request.resume is None else resumed(request, folder, self.assembled)
            )[0]
        config, problem, members = self.assembled.config, self.problem, outcome.evaluations
        solved, count = config.algo == "exact", len(members)
        how = f"{config.algo}, seed {config.seed}, {count:,} architectures evaluated, {outcome.ending.reason}"
        return Frontier(
            problem,
            outcome.frontier,
            solved or count == problem.space.size,
            outcome.ending.how if solved else how,
            None if solved else members,
            folder,
            self.assembled.baselines,
            partial(three_sentences, outcome),
            study=self.assembled,
        )

    def explain(self, architecture: Given) -> DesignExplanation:
        """Return the breakdown of one architecture: operators, bytes, terms of the loss, budgets, steps along each axis.

        Args:
            architecture: a model's name, columns, or a table of one row.

        Examples:
            >>> found = nas.load_study().explain("qwen2.5_0.5b")
            >>> found.metrics["total_ms"] > 0, len(found.frame) > 10  # printed, it shows both
            (True, True)

        Raises:
            UsageError: not exactly one architecture, or one that the latency model does not cover.
        """
        chosen = architectures_of(self.problem, architecture)
        if len(chosen) != 1:
            raise UsageError(f"explain: expected one architecture, got {len(chosen)}; choose a row")
        try:
            return DesignExplanation(**vars(explained(self.problem, chosen)))
        except ValueError as error:
            raise UsageError(str(error)) from None

    def as_pymoo(self) -> "PymooProblem":
        """Return the problem for pymoo's loops: `minimize(study.as_pymoo(), NSGA2(), ("n_gen", 40))`.

        Examples:
            >>> nas.load_study().as_pymoo().n_var
            6
        """
        from nas.api.own_loops import PymooProblem

        return PymooProblem(self.problem)

    def as_optuna_objective(self) -> "OptunaObjective":
        """Return the problem for Optuna's loop: `study.optimize(objective, n_trials=200)`, with its directions.

        Examples:
            >>> nas.load_study().as_optuna_objective().directions
            ['minimize', 'minimize']
        """
        from nas.api.own_loops import OptunaObjective

        return OptunaObjective(self.problem)

    def __repr__(self) -> str:
        scenario, space = self.problem.scenario, self.problem.space
        names = " and ".join(o.name for o in self.problem.objectives)
        return (
            f"Study of {space.size:,} architectures ({space.name} space) on {devices_in_words(self.problem)}, "
            f"{', '.join(scenario.by_format)}: {names} within {within(self.problem.budgets)}"
        )

    def _repr_html_(self) -> str:
        """A table of the keys that fit into a line, without groups that have their defaults."""
        config = self.assembled.config
        keys, left = config.model_dump(mode="json"), type(config)().model_dump(mode="json")
        keys = {key: value for key, value in keys.items() if not isinstance(value, dict) or value != left[key]}
        embedded = {"space": self.problem.space.name, "law": self.problem.scenario.law.name}
        keys |= {**embedded, "device": devices_in_words(self.problem), "budgets": within(self.problem.budgets)}
        shown = {
            key: value for key, value in keys.items() if value not in (None, "", [], {}) and key != "default_budget"
        }
        return notebook_html(
            repr(self), pd.DataFrame({"key": shown.keys(), "value": map(str, shown.values())}), len(shown)
        )


def _unwritten(
    search: Search, study: assembly.Study, store: RunStore, folder: Path, reason: str, request: RunRequest
) -> Outcome:
    """A search without files."""
    return conclude(study, search, search.archive.all(), store.batches(), reason)


@dataclass(frozen=True, eq=False, repr=False)
class _Request(RunRequest):
    """A run from Python, whose callback gets the evaluations since its last call as a table."""

    callback: Callable[[pd.DataFrame], object] | None = None
    heard: list[int] = field(default_factory=lambda: [0])

    def hear(self, search: Search) -> None:
        """Call the callback."""
        start, self.heard[0] = self.heard[0], len(search.archive)
        if self.callback is not None and start < self.heard[0]:
            self.callback(evaluations_table(search.problem, search.archive.rows(np.arange(start, self.heard[0]))))

    def continuing(self, folder: Path) -> str:
        """The same call, with the folder."""
        return f"the same search(…, out={str(folder)!r}, resume=True)"


@with_keys
def load_study(config: str | Path | None = None, **keys: Unpack[StudyKeys]) -> Study:
    """Return a study from a file, a run folder or a shipped name (None: the paper's), with the given keys replaced.

    Keys are those of a study file (`help(nas.load_study)` lists them), which are the flags' names: `device="jetson_agx_orin_64gb"`,
    `preset="device"`, `budgets={"decode_ms": 20}`, `objectives=["loss", my_function]`. Keys override the file, and the file overrides a preset.
    Functions, laws and paths may be given as objects. Numbers are in the
    metric's unit (ms, GB); texts may have their own ("20 ms", "8 GB").

    Args:
        config: a study file, a run folder or a shipped name.
        **keys: of the study.

    Examples:
        >>> study = nas.load_study(device="jetson_orin_nano_super_8gb", preset="device", budgets={"decode_ms": 150})
        >>> study.units["resident_gb"]
        'GB'

    Raises:
        UsageError: all faults of the keys at once; what a model cannot price, or a strategy cannot do, is refused at first use.
    """
    if config is not None and not isinstance(config, (str, Path)):
        kind = type(config).__name__
        raise UsageError(
            f"config: expected a file, a run folder or a name, got {kind}; give keys as load_study(**keys)"
        )
    read_study = _read(config, keys)
    return Study(read_study, assembly.problem_of(read_study), config, keys)


load_study.__doc__ = f"{load_study.__doc__}\nKeys:\n" + "".join(
    f"    {name}: {entry.help}\n" for name, entry in study_keys().items()
)


def _read(config: str | Path | None, keys: Mapping[str, Any]) -> ReadStudy:
    """What the keys of a file and those given name."""
    plain = {key: plain_value(key, value) for key, value in keys.items()}
    raw, origins = layered(plain, [], None if config is None else str(config))
    if "algo" in keys:
        refuse_contested("strategies", str(keys["algo"]), "algo: ")
    placed = {path: origin for path, origin in origins.items() if not origin.startswith("--")}
    return read(raw, placed, frozenset(keys))


def plain_value(key: str, value: Any) -> Any:
    """Return a key's value as a study file would hold it.

    Raises:
        UsageError: a function that cannot be imported by name.
    """
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {plain_value(key, name): plain_value(key, item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(key, item) for item in value]
    if hasattr(value, "mapping"):
        return value.mapping()
    if isinstance(value, str):
        return modules_for_files(value)
    return _name_of(key, value) if callable(value) else value


def _name_of(key: str, function: Any) -> str:
    name = str(getattr(function, "__qualname__", type(function).__name__))
    if not name.isidentifier() or getattr(sys.modules.get(function.__module__), name, None) is not function:
        raise UsageError(
            f"{key}: expected a function that its module holds under its name, got {name}; write it with def, outside other functions"
        )
    module = function.__module__
    return f"{script_module() or module}:{name}" if module == "__main__" else f"{module}:{name}"
