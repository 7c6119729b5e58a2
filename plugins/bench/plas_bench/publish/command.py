"""The work of `publish`: a comparison read, traces of other tools beside it, everything written for a paper."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nas.answer.palette import STYLE
from nas.compare.pictures import draw_all, strokes
from nas.compare.report import comparison_document, comparison_page
from nas.compare.result import Ranking, StudyResult, named, rankings
from nas.compare.tables import PER_STUDY, courses, overhead_table, rank_table, table_rows, write_tables
from nas.document.document import Document, Figure, Section, markdown
from nas.errors import InfeasibleError, UsageError
from nas.files.figures import save, styled
from nas.files.own_files import drawing
from nas.files.tables import write
from nas.record import folder as run_folder
from nas.terminal.console import Stages, notice
from nas.terminal.tables import show
from plas_bench.publish.beside import Foreign, comparison_results, recorded_plan, trace_results
from plas_bench.publish.external_results import bounds_by_name, columns_of, reference_by_name
from plas_bench.publish.latex import latex_tables
from plas_bench.publish.power import power_rows, strength
from plas_bench.publish.ranks import NO_DIAGRAM, can_draw, rank_figure
from plas_bench.publish.request import PublishRequest
from plas_bench.publish.volume import Volume, volume_line, volume_of, volume_rows


def answer(request: PublishRequest) -> None:
    """Measure, write, print.

    Raises:
        UsageError: it cannot be done, before anything is written.
        InfeasibleError: nothing is feasible.
    """
    if request.comparison is None and not request.traces:
        raise UsageError("publish: expected a comparison's folder or --traces, got neither; name one")
    if request.columns and not request.traces:
        raise UsageError("--column: expected --traces with it, got none; name the files whose columns it says")
    point, bounds = reference_by_name(request.reference), bounds_by_name(request.bounds)
    stage = Stages(quiet=request.quiet or request.json)
    name, results = measured_results(request, stage)
    if all(result.reference is None for result in results):
        raise InfeasibleError(f"{name}: nothing feasible in any study")
    volumes = {
        r.name: volume
        for r in results
        if r.reference is not None and (volume := volume_of(r.objectives, point, bounds)) is not None
    }
    stage("writing tables and drawing pictures" if request.pictures else "writing tables")
    folder = run_folder.create(f"publish-{name}", request.out)
    document = written(folder, name, results, volumes, pictures=request.pictures)
    stage.close()
    if request.json or not request.quiet:
        shown = [section for section in document.sections if not section.folded]
        drawn = ", report.html, plots/" if request.pictures else ""
        files = Section("", (f"Files: {folder}/ (report.md, tables/, timing/{drawn})",))
        show(replace(document, sections=(*shown, files)), as_json=request.json)


def measured_results(request: PublishRequest, stage: Stages) -> tuple[str, list[StudyResult]]:
    """The name of what is measured, and every study's result.

    Raises:
        UsageError: a comparison or a trace that cannot be read.
    """
    columns = columns_of(request.columns)
    if request.comparison is None:
        return re.sub(r"[^A-Za-z0-9_.-]", "-", request.traces[0].stem)[:60], trace_results(request.traces, columns)
    plan = recorded_plan(request, request.comparison)
    foreign = Foreign(plan, request.traces, columns)
    for path in request.traces:
        foreign.check(path)
        if not request.quiet and (others := foreign.others(path)):
            notice(f"{path.name}: rows of other studies than the comparison's are left out: {', '.join(others)}")
    results = comparison_results(plan, request.comparison, request.traces, columns, request.workers, stage)
    return plan.config.name, results


def written(
    folder: Path, name: str, results: Sequence[StudyResult], volumes: Mapping[str, Volume], *, pictures: bool
) -> Document:
    """Tables, pictures and the report in a new folder."""
    ranked = rankings(results)
    rows = {**table_rows(results, ranked), "power": power_rows(results)}
    if volumes:
        rows["hypervolume"] = volume_rows(results, volumes)
    numbers = {"folder": str(folder), **{key: rows[key] for key in rows if key not in ("runs", "anytime", "reached")}}
    document = comparison_document(name, results, ranked, numbers, pictures=pictures)
    given = tuple(volume_line(r, rows["hypervolume"]) for r in results if r.name in volumes)
    document = replace(document, sections=(*document.sections, *further(results, ranked, given, pictures=pictures)))
    write_tables(folder, rows, results, ranked)
    for table, of_study in PER_STUDY.items():
        write(folder / "tables" / f"{table}.tex", latex_tables(map(of_study, results)))
    write(folder / "tables" / "ranks.tex", latex_tables(map(rank_table, courses(results, ranked))))
    write(folder / "timing" / "overhead.tex", latex_tables(map(overhead_table, results)))
    write(folder / "report.md", markdown(document))
    if pictures:
        draw(folder, document, results, ranked)
    return document


def further(
    results: Sequence[StudyResult], ranked: Sequence[Ranking], given: tuple[str, ...], *, pictures: bool
) -> list[Section]:
    """What a comparison's own report has not: power, hypervolumes as `given`, the diagrams of ranks."""
    power = tuple(f"{r.name}: {line}" for r in results for line in strength(r))
    diagrams = tuple(
        Figure(named("ranks", ranking.group), "ranks") if can_draw() else NO_DIAGRAM
        for ranking in ranked
        if ranking.shown and pictures
    )
    sections = (Section("Power", power), Section("Hypervolume", given), Section("Mean ranks", diagrams))
    return [section for section in sections if section.parts]


def draw(folder: Path, document: Document, results: Sequence[StudyResult], ranked: Sequence[Ranking]) -> None:
    """Every picture and the page."""
    styles = strokes(sorted({name for result in results for name in result.strategies}))
    with drawing(folder) as plots:
        draw_all(plots, results)
        with styled({**STYLE, "text.parse_math": False}):  # names from other tools may hold a $
            for ranking in ranked:
                if (figure := rank_figure(ranking, styles)) is not None:
                    save(figure, plots / named("ranks", ranking.group))
    write(folder / "report.html", comparison_page(document, results))
