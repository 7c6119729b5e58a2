"""One run from what was typed to files: resolve, search or replay, conclude, write, say."""

import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from nas.answer.design_words import describe
from nas.answer.first_screen import show, show_head
from nas.answer.outcome import Outcome, conclude
from nas.answer.outcome_files import summary, write_files, write_steps
from nas.answer.progress import ProgressFile, this_machine
from nas.commands.report import draw
from nas.commands.requests import RunRequest
from nas.errors import AllFailedError, InfeasibleError, PlasError, UsageError
from nas.files import own_files, yaml_source
from nas.files.tables import write
from nas.problem.problem import is_mute
from nas.record import folder as run_folder
from nas.record.folder import Manifest, OpenRun
from nas.record.identity import at_start, difference
from nas.record.store import FILE, Recorded, RunStore, begun, final, known_in
from nas.search import lifecycle
from nas.search.archive import RunningFrontier
from nas.search.assembly import Study, assemble
from nas.search.cluster import ClusterPool, pool_of
from nas.search.discovery import ChosenStrategy
from nas.search.known_results import Known
from nas.search.loop import Limits, Search
from nas.search.reading import refuse_without_workers
from nas.search.worker_pool import WorkerPool
from nas.study.catalogue import changed
from nas.study.configuration import StudyConfig
from nas.study.entry_points import AUTO, refuse_contested
from nas.study.layers import layered, over, parsed_settings
from nas.study.user_code import ForeignError
from nas.terminal.console import Stages, Ticker, notice, say, say_json
from nas.terminal.doors import command
from nas.terminal.streams import LostOutputError
from objectives.display_text import in_a_command


def execute(request: RunRequest) -> Path:
    """Run or continue a study; its folder.

    Raises:
        UsageError: anything that cannot be done as asked, before anything is written; a metric that always fails.
        InfeasibleError: the search ended without a feasible architecture.
    """
    if request.resume is not None:
        outcome, folder = resumed(request, request.resume)
    else:
        study = assembled(*layered(request.flags, request.settings, request.config), request)
        outcome, folder = ran(study, request)
    try:
        answer(outcome, folder, request)
    except LostOutputError:
        notice(f"{folder}: holds the whole answer (summary.json, picks.csv, frontier.csv)")
        raise
    if len(outcome.evaluations) and not outcome.evaluations.ok.any():
        raise UsageError(_without_values(outcome, folder))
    if len(outcome.frontier) == 0:
        raise InfeasibleError(f"{folder}: no feasible architecture; the diagnosis says which budget to relax")
    return folder


def _without_values(outcome: Outcome, folder: Path) -> str:
    """Why no design has values, and what helps: a law that prices others does not change by asking again."""
    reasons = outcome.evaluations.reasons or ()
    reason, times = Counter(reasons).most_common(1)[0]
    count = f"{len(outcome.evaluations):,} failure{'s' * (len(outcome.evaluations) > 1)}"
    remedy = f"correct it, then go on with: {lifecycle.retrying(folder, outcome.study.config)}"
    if is_mute(outcome.study.problem, outcome.evaluations.genotypes[reasons.index(reason)]):
        covered = len(outcome.evaluations) == outcome.study.problem.space.size
        remedy = "choose another law or a space of such designs"
        remedy += "" if covered else ", or --algo exact, which finds them where they are few"
    return f"objectives: expected values, got {count}, {times:,} times {reason}; {remedy}"


def answer(outcome: Outcome, folder: Path, request: RunRequest) -> None:
    """Print the answer as table or JSON.

    Raises:
        LostOutputError: standard output does not take it.
    """
    if request.json:
        say_json({"run": str(folder), **summary(outcome)})
    elif not request.quiet:
        show(outcome, folder, verbose=request.verbose)
    sys.stdout.flush()


def concluded(search: Search, study: Study, store: RunStore, folder: Path, reason: str, request: RunRequest) -> Outcome:
    """Write all results into the run's folder; each step is named while it lasts."""
    stage = Stages(quiet=request.quiet)
    replayed = search.archive.all()
    evaluations = final(replayed, store.retried(replayed))
    outcome = conclude(study, search, evaluations, store.batches(), reason, stage)
    stage("Tables of the run folder")
    write_files(folder, outcome)
    write_steps(folder, store.steps.read(), outcome.evaluations.keys)
    if request.pictures:
        stage("Pictures and page")
        draw(outcome, folder)
    stage.close()
    return outcome


Concluding = Callable[[Search, Study, RunStore, Path, str, RunRequest], Any]  # what a search that has ended makes


def ran(study: Study, request: RunRequest, ending: Concluding = concluded) -> tuple[Any, Path]:
    """A study searched in a new folder, and its outcome."""
    pool = workers_of(study)
    folder = run_folder.create(f"{study.config.name}-{study.config.algo}-s{study.config.seed}", request.out)
    with run_folder.locked(folder, new=True):
        return begin(study, folder, request, pool, ending), folder


def begin(
    study: Study, folder: Path, request: RunRequest, pool: WorkerPool | None, ending: Concluding = concluded
) -> Any:
    """Lay out a run folder and search."""
    announce(study, request)
    store, manifest = lifecycle.create_run(study, folder)
    return searched(study, store, None, manifest, request, pool, ending)


def resumed(request: RunRequest, folder: Path, given: Study | None = None) -> tuple[Outcome, Path]:
    """A recorded run replayed and continued, as the study that is `given` where one is."""
    run_folder.refuse_other(folder)
    with run_folder.locked(folder):
        if (folder / "plots").is_symlink():
            own_files.inner_folder(folder, "plots")  # refused now, not after the search
        if not begun(folder / FILE):
            return restarted(request, folder, given), folder
        probe = run_folder.open_run(folder)
        study = continued(request, probe, given)
        probe.store.check()
        recorded = probe.store.read()
        probe.store.close()
        if len(recorded.known):
            study = replace(study, known=Known(recorded.known))
        if study.limit is not None and study.limit < recorded.charged:
            raise UsageError(
                f"evaluations: expected at least {recorded.charged}, which {folder} holds, got {study.limit}; ask for more"
            )
        manifest = lifecycle.read_manifest(folder, study)
        if manifest.content.get("evaluated_by") == lifecycle.OWN_LOOP:
            raise UsageError(
                f"resume: expected a run of plas run, got {folder}, whose values {lifecycle.OWN_LOOP} was told; go on with it there"
            )
        refuse_moving(manifest, request)
        pool = workers_of(study)
        announce(study, request)
        store = lifecycle.store_of(study.problem, folder)
        if (changed := lifecycle.version_changes(manifest, study)) and not request.quiet:
            notice(f"Warning: versions differ from the run's ({changed}); replay will stop where a proposal differs")
        if (changed := lifecycle.changed_modules(manifest, study.problem)) and not request.quiet:
            notice(
                f"Warning: {changed} has changed since the run began; what was evaluated before stays as it was: "
                f"{command('run')} --config {in_a_command(folder)} evaluates all anew"
            )
        manifest.update(state="running", ended=None, stop_reason=None)
        write(folder / "config.yaml", yaml_source.dump(study.resolved()))
        return searched(study, store, recorded, manifest, request, pool), folder


def restarted(request: RunRequest, folder: Path, given: Study | None = None) -> Outcome:
    """A run that was killed before its store was laid out starts from its configuration."""
    run_folder.refuse_other(folder, (FILE,) if (folder / "manifest.json").exists() else ("config.yaml",))
    if (folder / "manifest.json").exists():
        raise PlasError(
            f"{folder}: expected a store with the run's evaluations, got an empty one; start a new run with --config {folder}"
        )
    study = given or assembled(*layered(request.flags, request.settings, str(folder / "config.yaml")), request)
    pool = workers_of(study)
    for leftover in folder.glob(f"{FILE}*"):
        leftover.unlink()
    outcome: Outcome = begin(study, folder, request, pool)
    return outcome


def searched(
    study: Study,
    store: RunStore,
    recorded: Recorded | None,
    manifest: Manifest,
    request: RunRequest,
    pool: WorkerPool | None,
    ending: Concluding = concluded,
) -> Any:
    """Search, and leave a run that can be continued whatever happens."""
    config = study.config
    limits = Limits(study.limit, config.time_limit, config.stop_when_stable)
    manifest.update(limit=study.limit, host=this_machine())
    ticker, solving = (Ticker(most, quiet=request.quiet) for most in (limits.evaluations, study.problem.space.size))
    front = RunningFrontier()  # its own: what a search stops by is not touched
    noted = ProgressFile(manifest.path)

    def report(search: Search) -> None:
        ticker(search.charged, lambda: best_so_far(search, front))
        noted()
        request.hear(search)

    with ExitStack() as opened:
        if pool is not None:
            opened.callback(pool.close)
        opened.callback(noted.close)
        opened.callback(store.close)
        again = request.continuing(manifest.path) or lifecycle.continuing(manifest.path, config)
        with left_to_continue(manifest, store, ticker, config, again):
            place(manifest, study, pool, request)
            if request.retry_failed:
                store.under_way.forget_failures()
            search = lifecycle.search_of(study, store, recorded, pool, solving.settled)
            with lifecycle.terminable():
                if request.retry_failed and recorded is not None:
                    lifecycle.retry_failed(search, store, recorded)
                reason = search.run(limits, report)
            outcome = ending(search, study, store, manifest.path, reason, request)
    manifest.update(state="finished", ended=run_folder.now(), stop_reason=reason)
    return outcome


@contextmanager
def left_to_continue(
    manifest: Manifest, store: RunStore, ticker: Ticker, config: StudyConfig, go_on: str
) -> Iterator[None]:
    """Whatever ends the search, the manifest says how it ended and the message how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        ticker.close()
        manifest.update(state="interrupted", ended=run_folder.now())
        raise KeyboardInterrupt(
            f"Interrupted after {len(batches := store.batches()) - known_in(batches):,} evaluations, all kept. "
            f"Continue with: {go_on}"
        ) from None
    except AllFailedError as error:
        ticker.close()
        lifecycle.try_update(manifest, state="failed", ended=run_folder.now(), stop_reason=str(error))
        raise UsageError(f"{error}; correct it, then go on with: {lifecycle.retrying(manifest.path, config)}") from None
    except ForeignError as error:
        ticker.close()
        lifecycle.try_update(manifest, state="failed", ended=run_folder.now(), stop_reason=str(error))
        raise ForeignError(f"{error}, then go on with: {go_on}") from error
    except BaseException:
        ticker.close()
        lifecycle.try_update(manifest, state="failed", ended=run_folder.now())
        raise


def best_so_far(search: Search, front: RunningFrontier) -> str:
    """The frontier's size and the lowest feasible loss evaluated so far, with its design."""
    front.update(search.archive)
    if not len(front.rows):
        return "nothing feasible yet"
    found = search.archive.all()
    feasible = np.flatnonzero(found.feasible)
    row = feasible[[int(np.argmin(found.metrics["loss"][feasible]))]]
    design = describe(search.problem.architectures(search.archive.rows(row).genotypes), search.problem.space.settings)
    return f"frontier {len(front.rows):,}, best loss {found.metrics['loss'][row[0]]:.4f}: {design}"


def assembled(raw: Mapping[str, Any], origins: Mapping[tuple[str | int, ...], str], request: RunRequest) -> Study:
    """A checked study; limits and parameters that its strategy cannot honour are refused."""
    if (typed := origins.get(("algo",), "")).startswith("--"):
        refuse_contested("strategies", raw["algo"], f"{typed}: ")
    study = assemble(raw, origins)
    if study.laws and study.config.algo != "exact" and not study.traits.informed:
        raise UsageError(
            f"laws: expected --algo exact with them, got {study.config.algo}; a regret needs the best there is under each law: "
            "add --algo exact"
        )
    study.strategy()
    return study


def announce(study: Study, request: RunRequest) -> None:
    """Say what is searched and what of it is doubtful, as soon as nothing can be refused any more."""
    with suppress(LostOutputError):  # it is said when the answer cannot be written either: the run keeps its files
        if not (request.quiet or request.json):
            for line in () if study.known is None else study.known.lines():
                say(line)
            show_head(study.problem, study.config, study.calibration_note, verbose=request.verbose)
            sys.stdout.flush()
    for text in study.notices if not request.quiet else ():
        notice(f"Warning: {text}")


def continued(request: RunRequest, run: OpenRun, given: Study | None = None) -> Study:
    """The run's own study with another limit, or the one that is `given`; anything else that differs is refused by name."""
    if request.flags.get("algo") == AUTO and run.resolved.get("auto"):
        request = replace(request, flags={key: value for key, value in request.flags.items() if key != "algo"})
    algo = request.flags.get("algo", run.resolved["algo"])
    if algo != run.resolved["algo"]:
        raise UsageError(
            f"resume: strategy.algo: {run.resolved['algo']} in the run, {algo} now; start a new run instead"
        )
    _refuse_taken_in(request, run)
    study = given or assembled(*over(run_folder.current(run), {}, request.flags, request.settings), request)
    study = study.as_begun(run.resolved)
    found = difference(run.resolved, study.resolved())
    if found:
        raise UsageError(f"resume: {found}; start a new run instead")
    if (other := changed(study.problem.scenario.law)) and not request.quiet:
        notice(
            f"Warning: law: {other}; this run goes on with the law that it holds. For the file as it is now, start a new run: "
            f"{command('run')} --config {shlex.quote(str(request.resume))} --law FILE"
        )
    return within_horizon(study, run.resolved["evaluations"], request.quiet)


def _refuse_taken_in(request: RunRequest, run: OpenRun) -> None:
    """Say so when a key is named that other keys have taken in when the run began.

    Raises:
        UsageError: with what to do.
    """
    typed = [name.partition(".")[0] for name in {**request.flags, **parsed_settings(request.settings)}]
    if "known" in typed:
        raise UsageError(
            "known: expected known results where a run begins, got them with --resume; start a new run with them, "
            f"and this one's too: --set known={in_a_command(run.path)}"
        )
    if taken_in := [name for name in typed if name in at_start()]:
        raise UsageError(
            f"resume: {taken_in[0]}: expected it where a run begins, got it with --resume; start a new run instead"
        )


def within_horizon(study: Study, first: int | Literal["none"], quiet: bool) -> Study:
    """A continued study whose schedule and parameters stay as for its first number of evaluations; a notice if that matters."""
    horizon, chosen, limit = study.traits.evaluations if first == "none" else first, study.chosen, study.limit
    if limit == horizon:
        return study
    usual = [
        ChosenStrategy(chosen.module, chosen.module.Parameters()).fitted(n, study.problem.space)
        for n in (horizon, limit)
    ]
    others = [
        name for name, was in usual[0] if was != getattr(usual[1], name) and was == getattr(chosen.parameters, name)
    ]
    if not quiet and (study.traits.horizon or others):
        kept = ", ".join([*(["its schedule"] if study.traits.horizon else []), *others])
        notice(
            f"Warning: {study.config.algo} was laid out for {horizon:,} evaluations and stays so ({kept}); "
            f"a new run of {limit:,} would ask for others"
        )
    return replace(study, horizon=horizon) if study.traits.horizon else study


def workers_of(study: Study) -> WorkerPool | None:
    """The workers that the study names; none where formulas are all that is computed.

    Raises:
        UsageError: the cluster cannot be used, or there are no workers where some are needed.
    """
    refuse_without_workers(study.config, study.problem)
    return pool_of(study.config, study.problem)


def refuse_moving(manifest: Manifest, request: RunRequest) -> None:
    """Refuse to continue a run of a cluster here by mistake, or where its folder names a place; the command line decides.

    Raises:
        UsageError: it does not say.
    """
    before = manifest.content.get("executor")
    if isinstance(before, str) and "executor" not in {**request.flags, **parsed_settings(request.settings)}:
        raise UsageError(
            f"executor: expected where to go on, got nothing; add --set executor={in_a_command(before[:200])}, where the run was, "
            "another, or --set executor=none to evaluate here"
        )


def place(manifest: Manifest, study: Study, pool: WorkerPool | None, request: RunRequest) -> None:
    """Note on which cluster a run is, and say where to watch it."""
    if isinstance(pool, ClusterPool):
        manifest.update(executor=study.config.executor, dashboard=pool.cluster.dashboard or None)
        if not request.quiet:
            notice(pool.cluster.description())
    elif "executor" in manifest.content:
        manifest.update(executor=None, dashboard=None)
