"""Resources of a run besides its folder: an Optuna storage that mirrors it, and the workers that evaluate for it."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nas.commands.requests import RunRequest
from nas.errors import UsageError
from nas.record.folder import Manifest
from nas.record.identity import fingerprints
from nas.record.store import Recorded
from nas.search.assembly import Study
from nas.search.cluster import ClusterPool
from nas.search.resolved_objectives import refuse_without_workers
from nas.search.worker_pool import WorkerPool
from nas.search.worker_settings import pool_of
from nas.study.layers import parsed_settings
from nas.terminal.console import notice
from objectives.display_text import in_a_command

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
            f"executor: expected where to go on, got nothing; add --executor {in_a_command(before[:200])}, where the run was, "
            "another, or --executor none to evaluate here"
        )


def place(manifest: Manifest, study: Study, pool: WorkerPool | None, request: RunRequest) -> None:
    """Note on which cluster a run is, and say where to watch it."""
    if isinstance(pool, ClusterPool):
        manifest.update(executor=study.config.executor, dashboard=pool.cluster.dashboard or None)
        if not request.quiet:
            notice(pool.cluster.description())
    elif "executor" in manifest.content:
        manifest.update(executor=None, dashboard=None)
