"""One run from configuration to files: assemble, search or replay, conclude, write, say."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nas.answer.design_words import describe
from nas.answer.first_screen import show
from nas.answer.outcome import Outcome, conclude
from nas.answer.outcome_files import summary, write_files, write_steps
from nas.answer.progress import ProgressFile, this_machine
from nas.commands.report import draw
from nas.commands.requests import RunRequest
from nas.commands.run_request import Attached, announce, assembled, attached, continued, place, refuse_moving
from nas.errors import AllFailedError, InfeasibleError, PlasError, UsageError
from nas.files import own_files, yaml_source
from nas.files.tables import write
from nas.problem.problem import is_mute
from nas.record import folder as run_folder
from nas.record.folder import Manifest
from nas.record.store import FILE, Recorded, RunStore, begun, final, known_in
from nas.search.archive import RunningFrontier
from nas.search.assembly import Study
from nas.search.known_results import Known
from nas.search.lifecycle import (
    OWN_LOOP,
    changed_modules,
    continuing,
    create_run,
    read_manifest,
    retry_failed,
    retrying,
    search_of,
    store_of,
    terminable,
    try_update,
    version_changes,
)
from nas.search.loop import Limits, Search
from nas.study.configuration import StudyConfig
from nas.study.layers import layered
from nas.study.user_code import ForeignError
from nas.terminal.console import Stages, Ticker, notice, say_json
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
        outcome, folder = started(request)
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
    remedy = f"correct it, then go on with: {retrying(folder, outcome.study.config)}"
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
    told = search.archive.all()
    found, batches = final(told, store.retried(told)), store.batches()
    outcome = conclude(study, search, found, batches, reason, stage)
    stage("Tables of the run folder")
    write_files(folder, outcome)
    write_steps(folder, store.steps.read(), outcome.evaluations.keys)
    if request.pictures:
        stage("Pictures and page")
        draw(outcome, folder)
    stage.close()
    return outcome


Concluding = Callable[[Search, Study, RunStore, Path, str, RunRequest], Any]  # what a search that has ended makes


def started(request: RunRequest) -> tuple[Outcome, Path]:
    """A new run in a new folder."""
    return ran(assembled(*layered(request.flags, request.settings, request.config), request), request)


def ran(study: Study, request: RunRequest, ending: Concluding = concluded) -> tuple[Any, Path]:
    """A study searched in a new folder, and its outcome."""
    folder = run_folder.create(f"{study.config.name}-{study.config.algo}-s{study.config.seed}", request.out)
    with run_folder.locked(folder, new=True):
        try:
            besides = attached(study, folder, None)
        except UsageError:
            run_folder.discard(folder)
            raise
        return begin(study, folder, request, besides, ending), folder


def begin(study: Study, folder: Path, request: RunRequest, besides: Attached, ending: Concluding = concluded) -> Any:
    """Lay out a run folder and search."""
    announce(study, request)
    store, manifest = create_run(study, folder)
    return searched(study, store, None, manifest, request, besides, ending)


def resumed(request: RunRequest, folder: Path, given: Study | None = None) -> tuple[Outcome, Path]:
    """A recorded run replayed and continued, as the study that is `given` where one is."""
    if request.config is not None or request.out is not None:
        raise UsageError(
            "resume: expected --resume without --config and --out, got both; the run folder holds its own configuration"
        )
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
        manifest = read_manifest(folder, study)
        if manifest.content.get("evaluated_by") == OWN_LOOP:
            raise UsageError(
                f"resume: expected a run of plas run, got {folder}, whose values {OWN_LOOP} was told; go on with it there"
            )
        refuse_moving(manifest, request)
        besides = attached(study, folder, recorded)
        announce(study, request)
        store = store_of(study.problem, folder)
        if (changed := version_changes(manifest, study)) and not request.quiet:
            notice(f"Warning: versions differ from the run's ({changed}); replay will stop where a proposal differs")
        if (changed := changed_modules(manifest, study.problem)) and not request.quiet:
            notice(
                f"Warning: {changed} has changed since the run began; what was evaluated before stays as it was: "
                f"{command('run')} --config {in_a_command(folder)} evaluates all anew"
            )
        manifest.update(state="running", ended=None, stop_reason=None)
        write(folder / "config.yaml", yaml_source.dump(study.resolved()))
        return searched(study, store, recorded, manifest, request, besides), folder


def restarted(request: RunRequest, folder: Path, given: Study | None = None) -> Outcome:
    """A run that was killed before its store was laid out starts from its configuration."""
    run_folder.refuse_other(folder, (FILE,) if (folder / "manifest.json").exists() else ("config.yaml",))
    if (folder / "manifest.json").exists():
        raise PlasError(
            f"{folder}: expected a store with the run's evaluations, got an empty one; start a new run with --config {folder}"
        )
    study = given or assembled(*layered(request.flags, request.settings, str(folder / "config.yaml")), request)
    besides = attached(study, folder, None)
    for leftover in folder.glob(f"{FILE}*"):
        leftover.unlink()
    outcome: Outcome = begin(study, folder, request, besides)
    return outcome


def searched(
    study: Study,
    store: RunStore,
    recorded: Recorded | None,
    manifest: Manifest,
    request: RunRequest,
    besides: Attached,
    ending: Concluding = concluded,
) -> Any:
    """Search, and leave a run that can be continued whatever happens."""
    config, mirror = study.config, besides.mirror
    limits = Limits(study.limit, config.time_limit, config.stop_when_stable)
    manifest.update(limit=study.limit, host=this_machine())
    ticker, solving = (Ticker(most, quiet=request.quiet) for most in (limits.evaluations, study.problem.space.size))
    front = RunningFrontier()  # its own: what a search stops by is not touched
    noted = ProgressFile(manifest.path)

    def report(search: Search) -> None:
        ticker(search.charged, lambda: best_so_far(search, front))
        if mirror is not None:
            mirror.follow(search)
        noted()
        request.hear(search)

    with ExitStack() as opened:
        opened.callback(besides.close)
        opened.callback(noted.close)
        opened.callback(store.close)
        with left_to_continue(manifest, store, ticker, config):
            place(manifest, study, besides.pool, request)
            if request.retry_failed:
                store.under_way.forget_failures()
            search = search_of(study, store, recorded, besides.pool, solving.settled)
            with terminable():
                if request.retry_failed and recorded is not None:
                    retry_failed(search, store, recorded)
                reason = search.run(limits, report)
            outcome = ending(search, study, store, manifest.path, reason, request)
    manifest.update(state="finished", ended=run_folder.now(), stop_reason=reason)
    return outcome


@contextmanager
def left_to_continue(manifest: Manifest, store: RunStore, ticker: Ticker, config: StudyConfig) -> Iterator[None]:
    """Whatever ends the search, the manifest says how it ended and the message how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        ticker.close()
        manifest.update(state="interrupted", ended=run_folder.now())
        raise KeyboardInterrupt(
            f"Interrupted after {len(batches := store.batches()) - known_in(batches):,} evaluations, all kept. "
            f"Continue with: {continuing(manifest.path, config)}"
        ) from None
    except AllFailedError as error:
        ticker.close()
        try_update(manifest, state="failed", ended=run_folder.now(), stop_reason=str(error))
        raise UsageError(f"{error}; correct it, then go on with: {retrying(manifest.path, config)}") from None
    except ForeignError as error:
        ticker.close()
        try_update(manifest, state="failed", ended=run_folder.now(), stop_reason=str(error))
        raise ForeignError(f"{error}, then go on with: {continuing(manifest.path, config)}") from error
    except BaseException:
        ticker.close()
        try_update(manifest, state="failed", ended=run_folder.now())
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
