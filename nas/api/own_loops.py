"""A study for your own search loop: a strategy with ask and tell, a pymoo problem, or an Optuna objective, all with the same columns."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Self

import numpy as np
import pandas as pd
from optuna.exceptions import TrialPruned
from optuna.trial import FrozenTrial, Trial
from pymoo.core.problem import Problem as PymooBase

from nas.answer.progress import this_machine
from nas.api.data_frames import Given, designs_of, designs_table, evaluations_table
from nas.api.frontier import Frontier
from nas.commands.run import within_horizon
from nas.errors import UsageError
from nas.exact.solution import solve
from nas.files.faults import nearest
from nas.problem.evaluations import Evaluations, frontier_rows
from nas.problem.problem import Problem, call_user_metric, checked, reason_against
from nas.record import folder as run_folder
from nas.record.identity import difference
from nas.record.store import FILE, GENE, Recorded, begun
from nas.search.assembly import Study
from nas.search.delegated import ToldSearch
from nas.search.discovery import able_to
from nas.search.known_results import Known
from nas.search.lifecycle import OWN_LOOP, create_run, lay_out, read_manifest, store_of, told_search
from objectives.assessment import Assessment
from objectives.metrics.perplexity import of_losses
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray

Values = pd.DataFrame | Mapping[str, Any] | Sequence[Any] | FloatArray
BESIDE = ("feasible", "extrapolates", "reason")  # what a table of `Study.evaluate` has beside designs and metrics
FAILED = 1e9  # excess of the constraint that a failed design breaks


class Optimizer:
    """A strategy that your own loop drives with `ask` and `tell`; made by `Study.optimizer`.

    The order in which values arrive does not change its proposals, which are those of `plas run` with the same seed: a strategy
    gets its batches whole. With `asynchronous` it gets every value at once.
    """

    def __init__(self, study: Study, log: Path | None, *, resume: bool) -> None:
        self.study, self.log, self.content, self._turn = study, log, b"", RLock()
        self._opened = ExitStack()
        self._search = None if log is None else self._logged(log, resume=resume)

    def _logged(self, log: Path, *, resume: bool) -> ToldSearch:
        """Return the search of a new log, or of one that is continued."""
        resume = resume and begun(log / FILE)
        folder = log if resume else run_folder.create(self.study.config.name, log)
        with ExitStack() as opened:
            opened.enter_context(run_folder.locked(folder, new=not resume))
            recorded = self._recorded(folder) if resume else None
            if recorded is None:
                store, manifest = create_run(self.study, folder)
            else:
                store, manifest = store_of(self.study.problem, folder), read_manifest(folder, self.study)
            opened.callback(store.close)
            manifest.update(state="running", limit=self.study.limit, host=this_machine(), evaluated_by=OWN_LOOP)
            opened.callback(
                lambda: manifest.update(
                    state="finished" if self.finished else "interrupted", stop_reason=self.finished or None
                )
            )
            search = told_search(self.study, store, recorded)
            self._opened = opened.pop_all()
        return search

    def _recorded(self, folder: Path) -> Recorded:
        """Return the content of a log that this study may continue.

        Raises:
            UsageError: a log of another study, with the first difference; a log of `plas run`; more evaluations than this study has.
        """
        run = run_folder.open_run(folder)
        recorded, asks = run.store.read(), run.store.under_way.asks()
        run.store.close()
        self.study = self.study.as_begun(run.resolved)
        if other := difference(run.resolved, self.study.resolved()):
            raise UsageError(f"log: {other}; give another folder for another study")
        if len(recorded.evaluations) > len(recorded.known) and not asks:
            raise UsageError(
                f"log: expected a log of study.optimizer, got a run of plas run in {folder}; give another folder"
            )
        if self.study.limit is not None and self.study.limit < recorded.charged:
            raise UsageError(
                f"evaluations: expected at least {recorded.charged}, which {folder} holds, got {self.study.limit}; ask for more"
            )
        if len(recorded.known):
            self.study = replace(self.study, known=Known(recorded.known))
        self.study = within_horizon(self.study, run.resolved["evaluations"], quiet=False)
        return recorded

    @property
    def search(self) -> ToldSearch:
        """The search that the optimizer drives; after unpickling it is opened and replayed at first use."""
        if self._search is None and self.log is not None:
            self._search = self._logged(self.log, resume=True)
        if self._search is None:
            store = store_of(self.study.problem, None)
            if self.content:
                store.connection.deserialize(self.content)
            else:
                lay_out(store, self.study)
            self._search = told_search(self.study, store, store.read() if self.content else None)
        return self._search

    @property
    def finished(self) -> str:
        """The reason why `ask` returns nothing more; "" while the search goes on."""
        return self.search.ended

    def ask(self, n: int | None = None) -> pd.DataFrame:
        """Return at most n designs to evaluate, one row each; without n, all that the strategy proposes before it needs values.

        Designs that were proposed before a kill and got no values come again. If no row comes, `finished` says why.

        Args:
            n: designs.

        Raises:
            UsageError: the strategy waits for values of earlier proposals.
        """
        if n is not None and (isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1):
            raise UsageError(f"ask: expected a whole number from 1 on, got {n!r}; correct it")
        with self._turn:
            search, problem = self.search, self.study.problem
            genotypes = search.hand_out(int(n or (problem.space.size if search.waits else 1)))
        if not len(genotypes) and not search.ended:
            algo, able = self.study.config.algo, ", ".join(able_to("asynchronous"))
            more = f"give asynchronous=True, which {able} allow" if search.waits else "raise evaluations"
            raise UsageError(
                f"ask: expected values of {len(search.out):,} designs that are out before more, got none: {algo} waits for them; tell them, or {more}"
            )
        return designs_table(problem.architectures(genotypes))

    def tell(self, designs: Given, values: Values) -> None:
        """Pass values of proposed designs to the strategy, in any order, in any portions and from any thread.

        values: a table or columns by metric, or rows of the objectives' values. Missing metrics are computed by the study. NaN,
        an infinite value or a text in `reason` is a failure. The values are in the log when this returns. Designs that
        were proposed before a kill may be told at once.

        Raises:
            UsageError: designs that were not proposed, unknown metrics or another number of rows; nothing is passed on.
        """
        with self._turn:
            search, problem = self.search, self.study.problem
            keys = problem.space.find(problem.headed(designs_of(problem, designs)))
            for row, key in enumerate(keys.tolist()):
                if key not in search.pending or key in keys[:row]:
                    raise UsageError(
                        f"tell: expected designs from ask() that have no values yet, each once, got another in row {row + 1}; tell rows of ask()"
                    )
            told, reasons = told_values(problem, values, len(keys))
            search.answer(with_told(problem, np.stack([search.pending[key] for key in keys.tolist()]), told, reasons))

    @property
    def evaluated(self) -> pd.DataFrame:
        """A table of everything passed to `tell`, in order, with its metrics, `feasible` and `reason` ("" if nothing failed)."""
        with self._turn:
            found = self.search.archive.all()
        return evaluations_table(
            self.study.problem, found, feasible=found.feasible, reason=list(found.reasons or [""] * len(found))
        )

    def frontier(self) -> Frontier:
        """The frontier of everything passed to `tell`."""
        with self._turn:
            evaluations, config = self.search.archive.all(), self.study.config
        how = f"{config.algo}, seed {config.seed}, {len(evaluations):,} architectures evaluated"
        members = evaluations[frontier_rows(evaluations)]
        return Frontier(
            self.study.problem, members, False, how, evaluations, self.log, self.study.baselines, study=self.study
        )

    def close(self) -> None:
        """Close the log; the search can be resumed from it."""
        with self._turn:
            self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        with self._turn:
            content = self.content if self._search is None or self.log else self._search.store.connection.serialize()
        return {"study": self.study, "log": self.log, "content": content}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state, _search=None, _opened=ExitStack(), _turn=RLock())

    def __repr__(self) -> str:
        config, place = self.study.config, f", logged in {self.log}" if self.log else ""
        so_far = "" if self._search is None else f", {len(self._search.archive):,} designs evaluated"
        return f"Optimizer: {config.algo}, seed {config.seed}{so_far}{place}"


def told_values(problem: Problem, values: Values, n: int) -> tuple[dict[str, FloatArray], list[str]]:
    """Return metric values given by name, each (n,), and the reasons of failed rows.

    Raises:
        UsageError: unknown metrics or another number of rows.
    """
    if isinstance(values, pd.Series) and not isinstance(values.index, pd.RangeIndex):
        values = values.to_dict()
    if isinstance(values, Sequence) and len(values) and isinstance(values[0], Mapping):
        values = pd.DataFrame(values)
    if not isinstance(values, (pd.DataFrame, Mapping)):
        rows = (
            np.asarray(values, dtype=np.float64).reshape(n, -1)
            if np.size(values) == n * len(problem.objectives)
            else np.zeros((0, 0))
        )
        if rows.shape != (n, len(problem.objectives)):
            raise UsageError(
                f"values: expected {n} rows of {', '.join(o.name for o in problem.objectives)}, got shape {np.shape(values)}; give columns by name"
            )
        values = dict(zip((o.name for o in problem.objectives), rows.T, strict=True))
    short = {metric.name.rpartition(":")[2]: metric.name for metric in problem.functions}
    designs, told = designs_table(problem.architectures(problem.space.genotypes(np.zeros(1, np.int64)))).columns, {}
    for column in map(str, values):
        name = column if column in problem.metric_names else short.get(column, column)
        if name not in problem.metric_names:
            if column in BESIDE or column in designs:
                continue
            raise UsageError(
                f"values: expected metrics of this study, got {column}; {nearest(column, problem.metric_names)}"
            )
        try:
            told[name] = np.asarray(values[column], dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            raise UsageError(
                f"values: {name}: expected numbers, got something else; give NaN for what failed"
            ) from None
        if len(told[name]) != n:
            raise UsageError(f"values: {name}: expected {n} numbers, got {len(told[name])}; give one for each design")
    reasons = _reasons(values.get("reason", ""), n)
    if not told and not all(reasons):
        raise UsageError(f"values: expected columns of metrics ({', '.join(problem.asked)}), got none; name them")
    if "loss" in told:
        told.setdefault("perplexity", of_losses(told["loss"]))
    return told, reasons


def _reasons(given: Any, n: int) -> list[str]:
    """Why rows failed: one text for all, or one a row; "" where a cell is empty.

    Raises:
        UsageError: another number of rows.
    """
    texts = [given] * n if isinstance(given, str) or not np.iterable(given) else list(given)
    if len(texts) != n:
        raise UsageError(f"values: reason: expected {n} texts, got {len(texts)}; give one for each design")
    return ["" if text is None or text != text or not text else str(text) for text in texts]


def with_told(
    problem: Problem, genotypes: IntArray, told: dict[str, FloatArray], reasons: Sequence[str]
) -> Evaluations:
    """Return evaluations of canonical genotypes (n, g), with given metrics in place of the study's own."""
    assessment = Assessment(
        problem.architectures(genotypes), problem.scenario, {name: column.copy() for name, column in told.items()}
    )
    called = np.array([not reason for reason in problem.screened(assessment) or [""] * len(genotypes)])

    def call(metric: Any, chosen: Architectures, scenario: Any) -> tuple[FloatArray, list[str]]:
        return (
            checked(metric, chosen, told[metric.name][called])
            if metric.name in told
            else call_user_metric(metric, chosen, scenario)
        )

    found = problem.evaluate(genotypes, call=call, assessment=assessment)
    why = list(found.reasons or [""] * len(genotypes))
    for objective in (o for o in problem.objectives if o.name in told):
        why = [
            a or reason_against(objective, value) for a, value in zip(why, told[objective.name].tolist(), strict=True)
        ]
    for name, column in reversed(told.items()):  # the first counts
        why = [
            f"{name}: {value}, as told" if not np.isfinite(value) else a
            for a, value in zip(why, column.tolist(), strict=True)
        ]
    why = [a or b for a, b in zip(reasons, why, strict=True)]
    return replace(found, reasons=tuple(why)) if any(why) else found


def genes_table(problem: Problem, genotypes: Any) -> pd.DataFrame:
    """Return the architectures that integers or floats (n, g) stand for after rounding and repair, as a table of columns."""
    genes = np.rint(np.atleast_2d(np.asarray(genotypes, dtype=np.float64))).astype(np.int64)
    return designs_table(problem.architectures(problem.space.repair(genes)))


class PymooProblem(PymooBase):  # type: ignore[misc]
    """A pymoo problem: integer genes, objectives to minimise, and one constraint per budget, `value/limit − 1`, feasible at ≤ 0.

    A proposal is rounded and repaired to an architecture. A failed one is infinite in every objective and, if designs can
    fail, violates a last constraint. `architectures(result.X)` returns designs, `pareto_front()` the exact front.
    """

    def __init__(self, problem: Problem, vtype: type = float, *, can_fail: bool | None = None) -> None:
        self.problem = problem
        able = not problem.analytic or problem.scenario.law.partial
        self.can_fail = able if can_fail is None else can_fail
        super().__init__(
            vtype=vtype,
            n_var=len(problem.space.genes),
            n_obj=len(problem.objectives),
            n_ieq_constr=len(problem.budgets) + self.can_fail,
            xl=np.zeros(len(problem.space.genes)),
            xu=(problem.space.gene_sizes - 1).astype(np.float64),
        )

    def _evaluate(self, x: FloatArray, out: dict[str, Any], *_: Any, **__: Any) -> None:
        found = self.evaluated(self.problem.space.repair(np.rint(np.asarray(x, dtype=np.float64)).astype(np.int64)))
        failed = ~found.ok[:, None]
        out["F"] = np.where(failed, np.inf, found.values)
        limits = np.where(failed, FAILED, found.violations)
        out["G"] = np.hstack([limits, np.where(failed, FAILED, -1.0)]) if self.can_fail else limits

    def evaluated(self, genotypes: IntArray) -> Evaluations:
        """Return evaluations of canonical genotypes (n, g)."""
        return self.problem.evaluate(genotypes)

    def architectures(self, x: Any) -> pd.DataFrame:
        """Return the designs that individuals (n, g), or one, stand for, as a table of columns."""
        return genes_table(self.problem, x)

    def exact(self) -> tuple[IntArray, FloatArray] | None:
        """Return genotypes and values of the exact front, or None if it cannot be computed."""
        try:
            members = solve(self.problem).frontier
        except UsageError:
            return None
        return members.genotypes, members.values

    def _calc_pareto_front(self, *_: Any, **__: Any) -> FloatArray | None:
        return None if (front := self.exact()) is None else front[1]

    def _calc_pareto_set(self, *_: Any, **__: Any) -> IntArray | None:
        return None if (front := self.exact()) is None else front[0]

    def __repr__(self) -> str:
        return f"PymooProblem of {self.problem.space.size:,} architectures: {self.n_obj} objectives, {self.n_constr} constraints"


class OptunaObjective:
    """An objective for `study.optimize`: suggests integer genes, returns the objectives, and sets the constraint of each budget.

    Make the study with `optuna.create_study(directions=objective.directions)`; a trial is feasible where every
    constraint, `value/limit − 1` under the name of its metric, is at most 0. Its parameters are `gene_NAME`, indices into axes; its
    attributes are the columns of its architecture and every metric, so that `--known` reads it.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.directions = ["minimize"] * len(problem.objectives)

    def __call__(self, trial: Trial) -> tuple[float, ...]:
        """Objective values of one trial.

        Raises:
            optuna.TrialPruned: a metric failed.
        """
        space = self.problem.space
        sizes = zip(space.genes, space.gene_sizes.tolist(), strict=True)
        genes = [trial.suggest_int(f"{GENE}{name}", 0, size - 1) for name, size in sizes]
        found = self.problem.evaluate(space.repair(np.array([genes])))
        for name, column in designs_table(self.problem.architectures(found.genotypes)).items():
            trial.set_user_attr(str(name), column.tolist()[0])
        if not found.ok[0]:
            raise TrialPruned((found.reasons or ("failed",))[0])
        for name, value in found.first.items():
            trial.set_user_attr(name, value)
        for budget, violation in zip(self.problem.budgets, found.violations[0].tolist(), strict=True):
            trial.set_constraint(budget.metric, violation)
        return tuple(found.values[0].tolist())

    def architectures(self, trials: FrozenTrial | Iterable[FrozenTrial]) -> pd.DataFrame:
        """Return the designs of trials as a table of columns, one row each.

        Raises:
            UsageError: a trial of another objective.
        """
        chosen = [trials] if isinstance(trials, FrozenTrial) else list(trials)
        names = [f"{GENE}{name}" for name in self.problem.space.genes]
        for trial in chosen:
            if lacking := [name for name in names if name not in trial.params]:
                raise UsageError(
                    f"architectures: expected trials of this objective, got trial {trial.number} without {lacking[0]}; give its own"
                )
        return genes_table(
            self.problem, [[trial.params[name] for name in names] for trial in chosen] or np.zeros((0, len(names)))
        )

    def __repr__(self) -> str:
        return f"OptunaObjective of {self.problem.space.size:,} architectures: {len(self.directions)} objectives, all minimised"
