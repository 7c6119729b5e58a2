"""Resolves a request of `run` to a study: the one typed, or a recorded one with another limit."""

import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nas.answer.first_screen import show_head
from nas.commands.requests import RunRequest
from nas.errors import UsageError
from nas.record import folder as run_folder
from nas.record.folder import Manifest, OpenRun
from nas.record.identity import at_start, difference, fingerprints
from nas.record.store import Recorded
from nas.search.assembly import Study, assemble
from nas.search.cluster import ClusterPool, pool_of
from nas.search.discovery import ChosenStrategy
from nas.search.reading import refuse_without_workers
from nas.search.worker_pool import WorkerPool
from nas.study.catalogue import changed
from nas.study.entry_points import AUTO, refuse_contested
from nas.study.layers import over, parsed_settings
from nas.study.value_parsers import without_password
from nas.terminal.console import notice, say
from nas.terminal.doors import command
from nas.terminal.streams import LostOutputError
from objectives.display_text import in_a_command
from objectives.quantities import short


def assembled(raw: Mapping[str, Any], origins: Mapping[tuple[str | int, ...], str], request: RunRequest) -> Study:
    """A checked study; limits and parameters that its strategy cannot honour are refused."""
    if (typed := origins.get(("algo",), "")).startswith("--"):
        refuse_contested("strategies", raw["algo"], f"{typed}: ")
    study = assemble(typed_storage(raw, request), origins)
    if study.laws and study.config.algo != "exact" and not study.traits.informed:
        raise UsageError(
            f"laws: expected --algo exact with them, got {study.config.algo}; a regret needs the best there is under each law: "
            "add --algo exact"
        )
    flag = origins.get(("evaluations",), "")
    if (
        flag.startswith("--")
        and not study.config.auto
        and study.config.evaluations is not None
        and not study.traits.takes_evaluations
    ):
        raise UsageError(
            f"{flag}: expected no number of evaluations with {study.config.algo}, which covers the whole space; "
            "drop it, or choose random or nsga2"
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


def typed_storage(raw: Mapping[str, Any], request: RunRequest) -> Mapping[str, Any]:
    """The raw study with a storage only where the command line names it: a file's could be any place of anybody's."""
    left = raw.get("optuna_storage", "none")
    if left in (None, "none") or "optuna_storage" in {**request.flags, **parsed_settings(request.settings)}:
        return raw
    if not request.quiet:
        notice(
            f"Warning: optuna_storage: {short(without_password(str(left)))} of the study's file is not written to; "
            "name it with --set optuna_storage=URL to mirror this run there"
        )
    return {key: value for key, value in raw.items() if key != "optuna_storage"}


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


if TYPE_CHECKING:
    from nas.commands.optuna_mirror import OptunaMirror


@dataclass(frozen=True)
class Attached:
    """Connections of a run besides its folder: an Optuna storage, and workers."""

    mirror: "OptunaMirror | None"
    pool: WorkerPool | None

    def close(self) -> None:
        """Let go of both."""
        for held in (self.mirror, self.pool):
            if held is not None:
                held.close()


def attached(study: Study, folder: Path, recorded: Recorded | None) -> Attached:
    """Connect to whatever the study names.

    Raises:
        UsageError: the storage or the cluster cannot be used, or there are no workers where some are needed.
    """
    refuse_without_workers(study.config, study.problem)
    pool = pool_of(study.config)
    try:
        return Attached(mirrored(study, folder, recorded), pool)
    except UsageError:
        Attached(None, pool).close()
        raise


def mirrored(study: Study, folder: Path, recorded: Recorded | None) -> "OptunaMirror | None":
    """The run's copy in an Optuna storage, where one is wanted.

    Raises:
        UsageError: the storage cannot be used, or holds another run under this name.
    """
    if study.config.optuna_storage is None:
        return None
    from nas.commands.optuna_mirror import OptunaMirror

    keys = np.zeros(0, dtype=np.int64) if recorded is None else recorded.evaluations.keys
    identity = fingerprints(study.resolved())
    return OptunaMirror(study.config.optuna_storage, folder.resolve().name, study.problem, identity, keys)


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
