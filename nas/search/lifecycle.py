"""A study in its run folder: laid out, searched with what is recorded replayed first, ended like Ctrl-C by SIGTERM."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

import numpy as np

from nas.errors import AllFailedError, PlasError, UsageError
from nas.exact.checkpoint import SolverCheckpoint
from nas.files import yaml_source
from nas.files.tables import csv_text, write
from nas.problem.evaluations import Evaluations
from nas.problem.problem import UNCOVERED, Problem
from nas.record import folder as run_folder
from nas.record.folder import Manifest
from nas.record.identity import fingerprints
from nas.record.store import FILE, SOLVING, Recorded, RunStore, final
from nas.search.archive import one_of
from nas.search.assembly import Study
from nas.search.delegated import AsynchronousSearch, Delegated, ToldSearch
from nas.search.discovery import penalised
from nas.search.known_results import known_columns
from nas.search.loop import TELLING, Limits, Search
from nas.search.successive_halving import STOPPED
from nas.search.worker_pool import Pace, WorkerPool
from nas.study.configuration import KNOWN_FILE, StudyConfig
from nas.study.user_code import is_own
from nas.terminal.doors import command
from objectives import outside
from objectives.display_text import in_a_command
from search_spaces.arrays import AnyArray

OWN_LOOP = "study.optimizer"  # what evaluates a run that `plas run` does not go on with
MOST_OF_MODULE = 10 * outside.MB


def create_run(study: Study, folder: Path) -> tuple[RunStore, Manifest]:
    """A run folder with its configuration, an empty store and a manifest that says it is running."""
    if study.known is not None:
        write(folder / KNOWN_FILE, csv_text(known_columns(study.known.evaluations, study.problem)))
    write(folder / "config.yaml", yaml_source.dump(study.resolved()))
    store = store_of(study.problem, folder)
    lay_out(store, study)
    manifest = new_manifest(folder, study)
    manifest.update(state="running")
    return store, manifest


def lay_out(store: RunStore, study: Study) -> None:
    """Lay out a store with the study that it is of, and what was known before."""
    problem, known = study.problem, study.known
    scales = {o.name: o.log_scale for o in problem.objectives}
    described = {"resolved": study.resolved() | {"known": []}}  # its own first rows are what was known
    units = {function.name: function.unit for function in problem.functions}
    meta = {**described, "metrics": list(problem.metric_names), "log_scale": scales, "units": units}
    store.create(meta, store_columns(problem), None if known is None else with_columns(known.evaluations, problem))


def with_columns(found: Evaluations, problem: Problem) -> tuple[Evaluations, dict[str, AnyArray]]:
    """Evaluations with the columns of their architectures."""
    return found, problem.architectures(found.genotypes).columns(problem.space.further)


def store_of(problem: Problem, folder: Path | None) -> RunStore:
    """The store of a problem's run, to write to; in memory without a folder."""
    names = tuple(objective.name for objective in problem.objectives)
    place = Path(":memory:") if folder is None else folder / FILE
    return RunStore(place, problem.metric_names, names, problem.budgets, genes=problem.space.genes)


def new_manifest(folder: Path, study: Study) -> Manifest:
    """The manifest of a run that starts now."""
    content = {
        "fingerprints": fingerprints(study.resolved()),
        "versions": run_folder.versions(),
        "plugins": study.plug_ins,
        "modules": own_modules(study.problem),
        "seed": study.config.seed,
        "known": [] if study.known is None else list(study.known.sources),
        "started": run_folder.now(),
        "ended": None,
        "stop_reason": None,
    }
    return Manifest(folder, content)


def version_changes(manifest: Manifest, study: Study) -> str:
    """The packages and plug-ins whose version differs from the run's: `numpy 2.0 -> 2.1`; "" where none does."""
    now, plug_ins = run_folder.versions() | study.plug_ins, manifest.content.get("plugins")
    before = {**manifest.content["versions"], **(plug_ins if isinstance(plug_ins, dict) else {})}
    return ", ".join(f"{name} {was} -> {now[name]}" for name, was in before.items() if now.get(name, was) != was)


def own_modules(problem: Problem) -> dict[str, str]:
    """The files that a user's metrics stand in, by name, with the first digits of their SHA-256; none of a notebook's."""
    found = {}
    for metric in problem.functions:
        module = sys.modules.get(getattr(metric.function, "__module__", None) or "")
        path = Path(getattr(module, "__file__", None) or "")
        if metric.settings is None and path.suffix == ".py":
            with suppress(OSError):
                found[path.name] = sha256(outside.content(path, MOST_OF_MODULE)).hexdigest()[:8]
    return found


def changed_modules(manifest: Manifest, problem: Problem) -> str:
    """The files of a user's metrics that are not as they were when the run began; "" where none is known to be."""
    before = manifest.content.get("modules")
    known = before if isinstance(before, dict) else {}
    return ", ".join(name for name, now in own_modules(problem).items() if known.get(name, now) != now)


def continuing(folder: Path, config: StudyConfig) -> str:
    """The command that goes on with a run; a strategy of one's own and a cluster are named again."""
    own = f" --algo {config.algo}" if is_own(config.algo) else ""
    where = f" --set executor={in_a_command(config.executor)}" if config.executor else ""
    return f"{command('run')} --resume {in_a_command(folder)}{own}{where}"


def retrying(folder: Path, config: StudyConfig) -> str:
    """The command that evaluates failed architectures of a run again."""
    return f"{continuing(folder, config)} --retry-failed"


def store_columns(problem: Problem) -> dict[str, str]:
    """Architecture columns of the store with their SQL types."""
    first = problem.architectures(problem.space.genotypes(np.zeros(1, dtype=np.int64)))
    columns = first.columns(problem.space.further)
    kinds = {"f": "REAL", "i": "INTEGER", "b": "INTEGER"}
    return {name: kinds.get(column.dtype.kind, "TEXT") for name, column in columns.items()}


def read_manifest(folder: Path, study: Study) -> Manifest:
    """The run's manifest, made again if it was lost."""
    path = folder / "manifest.json"
    with suppress(UsageError):
        content = yaml_source.read(path, own=True)[0]
        if isinstance(content, dict) and isinstance(content.get("versions"), dict):
            return Manifest(folder, content)
    return new_manifest(folder, study)


def search_of(
    study: Study,
    store: RunStore,
    recorded: Recorded | None,
    pool: WorkerPool | None,
    settled: Callable[[int], None] = lambda count: None,
) -> Search:
    """The search of a study, which replays what is recorded first; `settled` hears how far a solution is."""
    config, problem = study.config, study.problem
    strategy = study.strategy(SolverCheckpoint(store.kept(SOLVING), partial(store.keep, SOLVING)), settled)
    shown = partial(penalised, handling=study.handling, weight=config.penalty_weight)
    known = None if study.known is None else study.known.evaluations
    if pool is None or problem.analytic:
        pace = None if problem.analytic else Pace(1)
        return Search(problem, strategy, store, recorded, pace=pace, shown=shown, known=known)
    delegated = Delegated(problem, pool, store, set(recorded.evaluations.keys.tolist()) if recorded else ())
    if config.asynchronous:
        return AsynchronousSearch(problem, strategy, store, recorded, delegated, shown, known)
    expect, pace = delegated.expect, None if delegated.halving else Pace(4 * pool.at_once)
    return Search(
        problem, strategy, store, recorded, evaluate=delegated, expect=expect, pace=pace, shown=shown, known=known
    )


def told_search(study: Study, store: RunStore, recorded: Recorded | None) -> ToldSearch:
    """The search of a study whose designs somebody else evaluates, which replays what is recorded first."""
    config = study.config
    strategy = study.strategy(SolverCheckpoint(store.kept(SOLVING), partial(store.keep, SOLVING)))
    shown = partial(penalised, handling=study.handling, weight=config.penalty_weight)
    known = None if study.known is None else study.known.evaluations
    limits = Limits(study.limit, config.time_limit, config.stop_when_stable)
    return ToldSearch(study.problem, strategy, store, recorded, shown, known, limits, waits=not config.asynchronous)


def retry_failed(search: Search, store: RunStore, recorded: Recorded) -> None:
    """Evaluate failed architectures again, not those that a fidelity step stopped or the law does not cover; the strategy keeps its earlier values.

    Raises:
        AllFailedError: nothing was ever evaluated, and the first of them fail for one reason again.
    """
    now = final(recorded.evaluations, recorded.retried)
    rows = np.array(
        [i for i, reason in enumerate(now.reasons or ()) if reason and not reason.startswith((STOPPED, UNCOVERED))],
        np.int64,
    )
    at_once = search.pace.size if search.pace else len(rows)
    reasons: list[str] = [""] * bool(now.ok.any())
    while len(rows):
        block, rows = rows[:at_once], rows[at_once:]
        found = search.evaluate(now.genotypes[block])
        store.retry(block, found)
        reasons += found.reasons or [""]
        if len(reasons) >= TELLING and (reason := one_of(reasons)):
            raise AllFailedError(reason, len(reasons))


def try_update(manifest: Manifest, **changes: Any) -> None:
    """Note a failure where the folder can still be written; the failure itself is what gets reported."""
    with suppress(PlasError):
        manifest.update(**changes)


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM ends a search as Ctrl-C does, where it has no handler yet: commands have one, and a program around us may."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    if current_thread() is not main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
