"""One comparison from what is asked to files: plan, run what is missing, measure, write, say."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nas import run_folder
from nas.comparison import cells
from nas.comparison.configuration import FILE, Asked, AskedStudy, ComparisonConfig, asked, parameters_by_strategy
from nas.comparison.crew import Crew, processors
from nas.comparison.foreign import objectives_of
from nas.comparison.plan import Cell, Plan, planned
from nas.comparison.ranking import Ranking, rankings
from nas.comparison.reading import report
from nas.comparison.result import StudyResult
from nas.comparison.scoring import DIED, Bench, Label, label_of, scored
from nas.comparison.tables import write_tables
from nas.console import Ticker, notice, say_json
from nas.errors import InfeasibleError, PlasError, UsageError
from nas.running import terminable
from nas.tables import write


@dataclass(frozen=True)
class Request:
    """What `compare` was asked for; `given` are keys of the comparison, `flags` those of a study."""

    given: Mapping[str, Any]
    flags: Mapping[str, Any]
    settings: list[str]
    config: str | None
    studies: list[str]
    params: list[str]
    traces: list[Path]
    workers: int | None
    resume: Path | None
    retry_failed: bool
    out: Path | None
    quiet: bool
    json: bool

    @property
    def own(self) -> dict[str, Any]:
        """Keys of the comparison with the parameters of its strategies."""
        return {**self.given, **({"params": parameters_by_strategy(self.params)} if self.params else {})}

    @property
    def traces_alone(self) -> bool:
        """Whether traces of other tools are all there is."""
        return bool(self.traces) and not (self.given.keys() & {"algos"} or self.config or self.studies or self.flags)


def execute(request: Request) -> None:
    """Run or continue a comparison.

    Raises:
        UsageError: anything that cannot be done as asked, before anything is written.
        InfeasibleError: no run of any study found anything feasible.
    """
    if request.workers is not None and request.workers < 1:
        raise UsageError(f"workers: expected 1 or more, got {request.workers}; leave it out for one per processor")
    folder, plan = opened(request)
    for path in request.traces:
        objectives_of(path)
    with run_folder.locked(folder):
        keep_traces(folder, request.traces)
        if not plan.studies and not (folder / "traces").is_dir():
            raise UsageError("studies: expected at least one, or --traces, got none; name one with --studies")
        plan.write(folder)
        results = compared(plan, folder, request)
    ranked = rankings(results)
    if request.json:
        say_json(described(folder, results, ranked))
    elif not request.quiet:
        from nas.comparison.answer import show

        show(folder, results, ranked)
    if all(result.reference is None for result in results):
        failed = next((reason for result in results for reason in result.failures.values()), "")
        if failed:
            raise PlasError(f"{folder}: every run failed; the first: {failed}")
        raise InfeasibleError(f"{folder}: no feasible architecture in any study; relax a budget")


def opened(request: Request) -> tuple[Path, Plan]:
    """The folder and what is to be in it."""
    if request.retry_failed and request.resume is None:
        raise UsageError("retry_failed: expected --resume with it, got a new comparison; name the one to continue")
    if request.resume is not None:
        return request.resume, planned(extended(request, request.resume))
    if request.traces_alone:
        config = ComparisonConfig(name=request.traces[0].stem[:60], algos=["all"], baselines=False)
        wanted = Asked(config, ())
    else:
        wanted = asked(request.own, request.flags, request.settings, request.config, request.studies)
    plan = planned(wanted)
    return run_folder.create(f"compare-{wanted.config.name}", request.out), plan


def extended(request: Request, folder: Path) -> Asked:
    """What a comparison's folder holds, with what is asked for in addition."""
    if request.out is not None:
        raise UsageError("resume: expected --resume without --out, got both; the comparison has its folder")
    if not (folder / FILE).is_file():
        raise UsageError(f"{folder}: expected a comparison, got no {FILE} in it; list them with 'ls runs'")
    old = asked({}, {}, [], str(folder), None)
    given = request.own
    for key in ("seeds", "evaluations"):
        if given.get(key, getattr(old.config, key)) < getattr(old.config, key):
            raise UsageError(f"{key}: expected at least {getattr(old.config, key)}, which {folder} has; ask for more")
    for strategy, values in given.get("params", {}).items():
        if strategy in old.config.algos and values != old.config.params.get(strategy):
            raise UsageError(
                f"params.{strategy}: expected those of the comparison, got {values}; start a new one instead"
            )
    merged = {
        **old.config.model_dump(),
        **given,
        "algos": [*old.config.algos, *ComparisonConfig(algos=given.get("algos", ["random"])).algos]
        if "algos" in given
        else old.config.algos,
        "params": {**old.config.params, **given.get("params", {})},
    }
    return Asked(ComparisonConfig.model_validate(merged), (*old.studies, *further(request, old)))


def further(request: Request, old: Asked) -> list[AskedStudy]:
    """Studies that are added; one whose name is there already must be the same."""
    if request.config is None and not request.studies:
        if request.flags or request.settings:
            raise UsageError(
                "resume: expected flags of a study only with --studies or --config, which add studies; "
                f"{', '.join([*request.flags, *request.settings])} of the recorded ones stay as they are"
            )
        return []
    new = asked({}, request.flags, request.settings, request.config, request.studies).studies
    known = {study.name: study for study in old.studies}
    for study in new:
        if study.name in known:
            refuse_another(known[study.name], study)
    return [study for study in new if study.name not in known]


def refuse_another(recorded: AskedStudy, given: AskedStudy) -> None:
    """Say so when a study of the same name is another.

    Raises:
        UsageError: with the first difference.
    """
    one, two = (
        next(iter(planned(Asked(ComparisonConfig(algos=["random"], baselines=False), (study,))).studies.values()))
        for study in (recorded, given)
    )
    if found := run_folder.difference(one.resolved(), two.resolved()):
        raise UsageError(f"studies: {recorded.name} is there as another study: {found}; give the new one another name")


def keep_traces(folder: Path, paths: Sequence[Path]) -> None:
    """Copies of the traces in the comparison's folder, so that it can be continued without them."""
    for path in paths:
        (folder / "traces").mkdir(exist_ok=True)
        copy = folder / "traces" / path.name
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            shutil.copyfile(path, copy)


def compared(plan: Plan, folder: Path, request: Request) -> list[StudyResult]:
    """Run what is missing, measure everything, write every table and picture."""
    crew = Crew(request.workers or processors())
    try:
        with terminable():
            failures = searched(plan, folder, crew, quiet=request.quiet, retry=request.retry_failed)
            results = scored(Bench(plan, folder, crew, failures, tuple(sorted((folder / "traces").glob("*.csv")))))
    except KeyboardInterrupt:
        notice(f"Interrupted; everything evaluated is kept. Continue with: python -m nas.compare --resume {folder}")
        raise
    finally:
        crew.close()
    ranked = rankings(results)
    write_tables(folder, results, ranked)
    draw(folder, results, ranked)
    write(folder / "report.md", report(plan.config.name, results, ranked))
    return results


def searched(plan: Plan, folder: Path, crew: Crew, *, quiet: bool, retry: bool) -> dict[Label, str]:
    """Every cell run to its end; reasons of those that failed."""
    wanted = [replace(cell, retry=retry) for cell in plan.cells(folder)]
    ticker, done = Ticker(sum(cell.raw["evaluations"] for cell in wanted), quiet=quiet), [0, 0]

    def note(cell: Cell, reason: str) -> None:
        done[0], done[1] = done[0] + cell.raw["evaluations"], done[1] + 1
        ticker(done[0], lambda: f"{done[1]:,} of {len(wanted):,} runs")

    reasons = crew.run(cells.perform, wanted, lambda cell: DIED, note)
    ticker.close()
    return {label_of(cell): reason for cell, reason in zip(wanted, reasons, strict=True) if reason}


def draw(folder: Path, results: Sequence[StudyResult], ranked: Sequence[Ranking]) -> None:
    """The comparison's pictures."""
    from nas.comparison.pictures import draw_all

    try:
        draw_all(folder / "plots", results, ranked)
    except OSError as error:
        raise PlasError(
            f"{folder}/plots: pictures cannot be written ({error.strerror}); all results are kept"
        ) from None


def described(folder: Path, results: Sequence[StudyResult], ranked: Sequence[Ranking]) -> dict[str, Any]:
    """The comparison as JSON."""
    from nas.comparison.reading import left_out, sentences
    from nas.comparison.tables import pair_rows, result_rows, target_rows

    return {
        "comparison": str(folder),
        "results": result_rows(results),
        "targets": target_rows(results),
        "pairs": pair_rows(results),
        "ranks": [row for ranking in ranked for row in ranking.rows()],
        "reading": {result.name: sentences(result) for result in results},
        "left_out": left_out(results),
    }
