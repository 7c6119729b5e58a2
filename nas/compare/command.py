"""Runs `compare`: plans or extends a comparison, runs what is missing, measures, writes, prints."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nas.compare import execution
from nas.compare.configuration import (
    FILE,
    ComparisonConfig,
    ComparisonStudies,
    Plan,
    RunSpec,
    StudyKeys,
    checked,
    comparison_studies,
    keys_of,
    planned,
    refuse_untyped,
)
from nas.compare.execution import ProcessPool, processors
from nas.compare.pictures import draw_all
from nas.compare.report import comparison_document, comparison_page, seeds_too_few
from nas.compare.request import CompareRequest
from nas.compare.result import StudyResult, rankings
from nas.compare.scoring import DIED, Bench, Label, label_of, scored
from nas.compare.tables import table_rows, write_tables
from nas.document.document import Document, Section, markdown
from nas.errors import InfeasibleError, PlasError, UsageError
from nas.files.own_files import drawing
from nas.files.tables import write
from nas.record import folder as run_folder
from nas.record.identity import difference
from nas.search.lifecycle import terminable
from nas.study.user_code import is_own
from nas.study.value_parsers import split_names
from nas.terminal.console import Stages, Ticker, notice
from nas.terminal.doors import command
from nas.terminal.tables import show
from objectives.display_text import in_a_command


def execute(request: CompareRequest) -> None:
    """Run or continue a comparison.

    Raises:
        UsageError: anything that cannot be done as asked, before anything is written.
        InfeasibleError: no run of any study found anything feasible.
        PlasError: every run of a strategy on a study failed; the results of the others are written and shown.
    """
    folder, plan = opened(request)
    with run_folder.locked(folder, new=request.resume is None):
        plan.write(folder)
        for text in [] if request.quiet else seeds_too_few(len(plan.strategies), plan.config.seeds):
            notice(f"Warning: {text}")
        stage = Stages(quiet=request.quiet)
        results = compared(plan, folder, request, stage)
        document = written(plan, folder, request, results, stage)
    if request.json or not request.quiet:
        show(on_screen(document, folder, results, plan.config), as_json=request.json)
    if all(result.reference is None for result in results):
        failed = next((reason for result in results for reason in result.failures.values()), "")
        if failed:
            raise PlasError(f"{folder}: every run failed; the first: {failed}")
        raise InfeasibleError(f"{folder}: no feasible architecture in any study; relax a budget")
    if lost := [text for result in results for text in result.lost()]:
        raise PlasError(
            f"{folder}: {'; '.join(lost)}; the other results are kept, {continuing(folder, plan.config)} tries these again"
        )


def opened(request: CompareRequest) -> tuple[Path, Plan]:
    """The folder and what is to be in it."""
    if request.resume is not None:
        wanted = extended(request, request.resume)
    else:
        wanted = comparison_studies(keys_of(request), request.flags, request.settings, request.config, request.names)
    if not wanted.studies:
        raise UsageError("studies: expected at least one, got none; name one with --studies")
    refuse_untyped(wanted.config, split_names(request.given.get("algos", "")))
    plan = planned(wanted)
    for key, flag in (("params", "--param"), ("caps", "--cap")):
        if idle := keys_of(request).get(key, {}).keys() - plan.strategies:
            compared = ", ".join(plan.strategies)
            raise UsageError(f"{flag} {min(idle)}: expected a strategy compared here ({compared}); add it with --algos")
    return request.resume or run_folder.create(f"compare-{wanted.config.name}", request.out), plan


def continuing(folder: Path, config: ComparisonConfig) -> str:
    """The flags that go on with a comparison; strategies of one's own are named again."""
    own = [name for name in dict.fromkeys([*config.algos, *config.variants.values()]) if is_own(name)]
    return f"--resume {in_a_command(folder)}{f' --algos {chr(44).join(own)}' if own else ''}"


def compared(plan: Plan, folder: Path, request: CompareRequest, stage: Stages) -> list[StudyResult]:
    """Run what is missing, and measure everything."""
    pool = ProcessPool(request.workers or processors())
    try:
        with terminable():
            if request.interim:
                plan, failures = complete(plan, folder, pool), dict[Label, str]()
            else:
                failures = searched(plan, folder, pool, quiet=request.quiet, retry=request.retry_failed)
            return scored(Bench(plan, folder, pool, failures, stage))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"Interrupted; everything evaluated is kept. Continue with: {command('compare')} {continuing(folder, plan.config)}"
        ) from None
    finally:
        pool.close()


def written(
    plan: Plan, folder: Path, request: CompareRequest, results: Sequence[StudyResult], stage: Stages
) -> Document:
    """The comparison as a document, with every table and picture in its folder."""
    stage("writing tables and drawing pictures" if request.pictures else "writing tables")
    ranked = rankings(results)
    rows = table_rows(results, ranked)
    numbers = {
        "comparison": str(folder),
        **{name: rows[name] for name in ("results", "targets", "pairs")},
        "ranks": [row for ranking in ranked for row in ranking.rows()],
    }
    document = comparison_document(plan.config.name, results, ranked, numbers, pictures=request.pictures)
    write_tables(folder, rows, results, ranked)
    if request.pictures:
        draw(folder, document, results)
    write(folder / "report.md", markdown(document))
    stage.close()
    return document


def complete(plan: Plan, folder: Path, pool: ProcessPool) -> Plan:
    """The plan without strategies of a study some of whose runs are missing or unfinished.

    Raises:
        UsageError: nothing is complete.
    """
    wanted = list(plan.cells(folder))
    there = pool.run(execution.finished, wanted, lambda cell: False)
    counts = Counter((cell.study, cell.strategy) for cell, done in zip(wanted, there, strict=True) if done)
    lacking = {
        (cell.study, cell.strategy): f"{counts[cell.study, cell.strategy]} of {plan.config.seeds} runs are there yet"
        for cell in wanted
        if counts[cell.study, cell.strategy] < plan.config.seeds
    }
    if len(lacking) == len({(cell.study, cell.strategy) for cell in wanted}):
        raise UsageError(f"interim: expected a strategy with all its runs in {folder}, got none; continue it first")
    return replace(plan, skipped={**plan.skipped, **lacking})


def searched(plan: Plan, folder: Path, pool: ProcessPool, *, quiet: bool, retry: bool) -> dict[Label, str]:
    """Every cell run to its end; reasons of those that failed."""
    wanted = [replace(cell, retry=retry) for cell in plan.cells(folder)]
    ticker, done = Ticker(sum(cell.limit for cell in wanted), quiet=quiet), [0, 0]

    def note(cell: RunSpec, reason: str) -> None:
        done[0], done[1] = done[0] + cell.limit, done[1] + 1
        ticker(done[0], lambda: f"{done[1]:,} of {len(wanted):,} runs")

    reasons = pool.run(execution.execute, wanted, lambda cell: DIED, note)
    ticker.close()
    return {label_of(cell): reason for cell, reason in zip(wanted, reasons, strict=True) if reason}


def draw(folder: Path, document: Document, results: Sequence[StudyResult]) -> None:
    """The comparison's pictures and its page."""
    with drawing(folder) as plots:
        draw_all(plots, results)
    write(folder / "report.html", comparison_page(document, results))


def on_screen(document: Document, folder: Path, results: Sequence[StudyResult], config: ComparisonConfig) -> Document:
    """What a terminal shows of a comparison: what is not folded, where its files are, how it gets more seeds."""
    own = {run.seed for result in results for run in result.runs if run.seed is not None}
    drawn = "".join(f", {name}" for name in ("report.html", "plots/") if (folder / name).exists())
    lines = [
        f"Files: {folder}/ (report.md, tables/, timing/{drawn}{', a run folder per run in cells/' if own else ''})"
    ]
    if own:
        lines.append(f"More seeds: {command('compare')} {continuing(folder, config)} --seeds {max(2 * len(own), 8)}")
    shown = [section for section in document.sections if not section.folded]
    return replace(document, sections=(*shown, Section("", tuple(lines))))


def extended(request: CompareRequest, folder: Path) -> ComparisonStudies:
    """The content of a comparison's folder, with the additions."""
    if not (folder / FILE).is_file():
        raise UsageError(f"{folder}: expected a comparison, got no {FILE} in it; list them with 'ls runs'")
    old = comparison_studies({}, {}, [], str(folder), None)
    given = keys_of(request)
    if request.interim and (
        more := [name for name in split_names(given.get("algos", "")) if name not in old.config.algos]
    ):
        raise UsageError(f"interim: expected strategies of {folder}, got {', '.join(more)}; it runs and adds nothing")
    if "baselines" in given:
        raise UsageError("resume: expected --no-baselines only when a comparison begins, got it later; leave it out")
    for key in ("seeds", "evaluations") if old.studies else ():
        if given.get(key, getattr(old.config, key)) < getattr(old.config, key):
            raise UsageError(f"{key}: expected at least {getattr(old.config, key)}, which {folder} has; ask for more")
    for strategy, values in given.get("params", {}).items():
        if strategy in old.config.algos and values != old.config.params.get(strategy):
            raise UsageError(
                f"params.{strategy}: expected those of the comparison, got {values}; start a new one instead"
            )
    for strategy, cap in given.get("caps", {}).items():
        before = old.config.caps.get(strategy, old.config.evaluations)
        if strategy in old.config.algos and isinstance(cap, int) and cap < before:
            raise UsageError(
                f"caps.{strategy}: expected at least {before}, which {folder} has, got {cap}; ask for more"
            )
    merged = {
        **old.config.model_dump(),
        **given,
        "algos": [*old.config.algos, *split_names(given.get("algos", ""))],
        "params": {**old.config.params, **given.get("params", {})},
        "caps": {**old.config.caps, **given.get("caps", {})},
    }
    return ComparisonStudies(checked(merged, {}), (*old.studies, *further(request, old)))


def further(request: CompareRequest, old: ComparisonStudies) -> list[StudyKeys]:
    """Studies that are added; one whose name is there already must be the same."""
    if request.config is None and not request.names:
        if request.flags or request.settings:
            raise UsageError(
                "resume: expected flags of a study only with --studies or --config, which add studies; "
                f"{', '.join([*request.flags, *request.settings])} of the recorded ones stay as they are"
            )
        return []
    new = comparison_studies({}, request.flags, request.settings, request.config, request.names)
    recorded = {study.name: study for study in old.studies}
    for study in new.studies:
        if study.name in recorded:
            refuse_another(recorded[study.name], study)
    if not request.quiet and (unused := not_taken(new.config, old.config)):
        notice(f"{request.config}: only its studies are added; {', '.join(unused)} stay as recorded, flags change them")
    return [study for study in new.studies if study.name not in recorded]


def not_taken(new: ComparisonConfig, old: ComparisonConfig) -> list[str]:
    """Keys that a comparison's file has otherwise than the recorded comparison."""
    keys = [key for key in ("seeds", "evaluations", "variants", "params") if key in new.model_fields_set]
    more = set(new.algos) - set(old.algos) - {"all"}
    return [*(key for key in keys if getattr(new, key) != getattr(old, key)), *(["algos"] if more else [])]


def refuse_another(recorded: StudyKeys, given: StudyKeys) -> None:
    """Say so when a study of the same name is another.

    Raises:
        UsageError: with the first difference.
    """
    config = ComparisonConfig(algos=["random"], baselines=False)
    one, two = (planned(ComparisonStudies(config, (study,))).studies[study.name] for study in (recorded, given))
    if found := difference(one.resolved(), two.resolved()):
        raise UsageError(f"studies: {recorded.name} is there as another study: {found}; give the new one another name")
