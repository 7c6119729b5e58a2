"""A run as an Optuna study in a storage of the user's, trial by trial, so that optuna-dashboard shows it live."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import BaseStorage, get_storage
from optuna.storages.journal import JournalFileBackend, JournalStorage
from optuna.study import Study, StudyDirection
from optuna.trial import TrialState, create_trial

from nas.errors import UsageError
from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from nas.search.loop import Search
from nas.strategies._optuna import quiet, usable
from nas.study.value_parsers import without_password
from nas.terminal.console import notice
from objectives import outside
from search_spaces.arrays import IntArray
from search_spaces.space import SearchSpace

MOST_BYTES = 1_000 * outside.MB  # of a journal
IDENTITY = "fingerprints"
LISTED = "constraints"  # the system attribute in which optuna-dashboard looks for violations; it knows no named ones


class OptunaMirror:
    """One study per run; the run's log is the truth, the mirror holds its first rows.

    `identity` distinguishes this run's study from another's, `known` holds the keys already in the
    log: what the study has of them is not added again.

    Raises:
        UsageError: a storage that cannot be used, or a study of this name that is another run's.
    """

    def __init__(self, url: str, run: str, problem: Problem, identity: Mapping[str, str], known: IntArray) -> None:
        self.url, self.run, self.problem = url, run, problem
        self.distributions = gene_values(problem.space)
        self.lost = False
        with quiet():
            self.storage = opened(url)
            try:
                self.study = self._study()
                self.count = self._mirrored(identity, known)
            except Exception as error:
                self.close()
                if isinstance(error, UsageError):
                    raise
                raise unusable(url, error) from None

    def _study(self) -> Study:
        directions = [StudyDirection.MINIMIZE] * len(self.problem.objectives)
        return optuna.create_study(
            storage=self.storage, study_name=self.run, directions=directions, load_if_exists=True
        )

    def _mirrored(self, identity: Mapping[str, str], known: IntArray) -> int:
        """Rows of the log that the study holds; a study without any becomes this run's."""
        trials = self.study.get_trials(deepcopy=False)
        keys = [trial.user_attrs.get("key") for trial in trials]
        theirs = self.study.user_attrs.get(IDENTITY) or {}  # an earlier version's may lack a part
        same = not trials or (bool(theirs) and theirs.items() <= identity.items())
        alike = self.study.directions == [StudyDirection.MINIMIZE] * len(self.problem.objectives)
        if not (same and alike and keys == known[: len(keys)].tolist()):
            raise UsageError(
                f"optuna_storage: expected no study {self.run!r} or this run's in {without_password(self.url)}, got another run's "
                f"(trials: {len(trials)}, evaluations of this run: {len(known)}); name another storage or run folder, "
                "or delete that study"
            )
        if not trials:
            self.study.set_user_attr(IDENTITY, dict(identity))
            self.study.set_metric_names([objective.name for objective in self.problem.objectives])
        return len(trials)

    def follow(self, search: Search) -> None:
        """Add what the search has evaluated since; a storage that fails is left behind, the search goes on.

        All new rows must be of the search's current batch.
        """
        if self.lost or len(search.archive) <= self.count:
            return
        try:
            self.add(search.archive.rows(slice(self.count, len(search.archive))), search.progress.batch)
        except Exception as error:
            self.lost = True
            notice(
                f"Warning: optuna_storage: {without_password(self.url)} failed after {self.count} trials ({error_text(error)}); "
                "the run goes on without it, --resume adds what is missing"
            )

    def add(self, evaluations: Evaluations, batch: int) -> None:
        """Rows as finished trials, in order; failed ones as failed trials."""
        parameters, violations = self._parameters(evaluations), evaluations.violations.tolist()
        reasons = evaluations.reasons or ("",) * len(evaluations)
        limits = [str(budget) for budget in evaluations.budgets]
        for row, fit in enumerate(usable(evaluations).tolist()):
            metrics = {name: float(column[row]) for name, column in evaluations.metrics.items()}
            values = [metrics.pop(name) for name in evaluations.objectives]
            about = {"run": self.run, "index": self.count, "batch": batch, "key": int(evaluations.keys[row])}
            told = {name: value for name, value in metrics.items() if math.isfinite(value)}
            with quiet():
                trial = create_trial(
                    state=TrialState.COMPLETE if fit else TrialState.FAIL,
                    values=values if fit else None,
                    constraints=dict(zip(limits, violations[row], strict=True)) if fit else None,
                    system_attrs={LISTED: violations[row]} if fit and limits else None,
                    params={name: column[row] for name, column in parameters.items()},
                    distributions=self.distributions,
                    user_attrs={**about, **told, **({} if fit else {"reason": reasons[row] or "not finite"})},
                )
                self.study.add_trial(trial)
            self.count += 1

    def _parameters(self, found: Evaluations) -> dict[str, list[Any]]:
        """The genes' own values: layers, features, experts, ratio or features of an expert, heads."""
        space, columns = self.problem.space, self.problem.architectures(found.genotypes).columns()
        ratios = space.specification.axes.expert_ffn_ratio
        values = {name: columns[name].tolist() for name in self.distributions if name in columns}
        if "expert_ffn_ratio" in self.distributions and ratios is not None:
            values["expert_ffn_ratio"] = np.array(ratios, dtype=np.float64)[
                found.genotypes[:, space.place["ffn"]]
            ].tolist()
        if space.mixed:
            rules = [str(rule) for rule in space.specification.rules]
            values["layers"] = [rules[gene] for gene in found.genotypes[:, space.place["layers"]].tolist()]
        return {name: values[name] for name in self.distributions}

    def close(self) -> None:
        """Let go of the storage."""
        self.storage.remove_session()


def gene_values(space: SearchSpace) -> dict[str, BaseDistribution]:
    """Every gene as a parameter over the range of its axis."""
    axes = space.specification.axes
    ranges = {
        "depth": space.depths,
        "width": space.widths,
        **({"head_dim": space.head_dims} if axes.head_dim else {}),
        **({"n_heads": space.heads} if axes.n_heads else {}),
        "n_experts": space.experts,
        "top_k": space.top_ks,
        **({"expert_size": space.expert_sizes} if axes.expert_ffn_ratio is None else {}),
        "n_kv_heads": space.kv_values,
    }
    found: dict[str, BaseDistribution] = {
        name: IntDistribution(int(values.min()), int(values.max())) for name, values in ranges.items()
    }
    if space.mixed:
        found["layers"] = CategoricalDistribution([str(rule) for rule in space.specification.rules])
    if "precision" in space.place:
        found["precision"] = CategoricalDistribution(space.formats)
    if axes.device is not None:
        found["device"] = CategoricalDistribution(axes.device)
    if axes.expert_ffn_ratio is not None:
        found["expert_ffn_ratio"] = FloatDistribution(min(axes.expert_ffn_ratio), max(axes.expert_ffn_ratio))
    return found


def opened(url: str) -> BaseStorage:
    """The storage of a database URL, or of a journal file's path.

    Raises:
        UsageError: it cannot be opened.
    """
    try:
        if "://" in url:
            return get_storage(url)
        refuse_other_file(Path(url))
        return JournalStorage(JournalFileBackend(url))
    except Exception as error:
        raise unusable(url, error) from None


def refuse_other_file(path: Path) -> None:
    """A journal grows line by line at its end: an existing file must be one, or empty.

    Raises:
        ValueError: a file of something else.
        OSError: it cannot be read.
    """
    if not path.exists():
        return
    outside.checked(path, MOST_BYTES)
    first = outside.beginning(path, 100_000).partition(b"\n")[0]
    try:
        entry = outside.parsed(first.decode() or "{}")
    except ValueError:
        entry = None
    if first and not (isinstance(entry, dict) and {"op_code", "worker_id"} <= entry.keys()):
        raise ValueError("a file that is no Optuna journal")


def unusable(url: str, error: Exception) -> UsageError:
    """A storage that cannot be used, as one line."""
    return UsageError(
        f"optuna_storage: expected a database URL (sqlite:///study.db) or a journal file (study.log), "
        f"got {without_password(url)} ({error_text(error)}); correct it"
    )


def error_text(error: Exception) -> str:
    """An error of a storage, on one line."""
    cause = error.__cause__ or error
    return " ".join(re.split(r"\n\[SQL|\n\(Background", str(cause))[0].split())[:200] or type(cause).__name__
