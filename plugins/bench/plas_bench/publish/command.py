"""The work of `publish`: a comparison read, everything written for a paper."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from nas.answer.palette import STYLE
from nas.compare import execution
from nas.compare.command import opened
from nas.compare.configuration import Plan
from nas.compare.execution import ProcessPool, processors
from nas.compare.pictures import draw_all, strokes
from nas.compare.report import comparison_document, comparison_page
from nas.compare.request import CompareRequest
from nas.compare.result import Ranking, StudyResult, named, rankings
from nas.compare.scoring import Bench, label_of, scored
from nas.compare.tables import PER_STUDY, courses, overhead_table, rank_table, table_rows, write_tables
from nas.document.document import Document, Figure, Section, Table, markdown
from nas.errors import InfeasibleError, UsageError
from nas.files.figures import save, styled
from nas.files.own_files import drawing
from nas.files.tables import write
from nas.record import folder as run_folder
from nas.terminal.console import Stages
from nas.terminal.tables import show
from plas_bench.publish.ranks import NO_DIAGRAM, can_draw, rank_figure
from plas_bench.publish.request import PublishRequest

#: What LaTeX would obey, as it is written to be seen.
LATEX = str.maketrans(
    {c: rf"\{c}" for c in "&%_#${}"} | {"\\": r"\textbackslash{}", "^": r"\^{}", "~": r"\textasciitilde{}"}
)


def answer(request: PublishRequest) -> None:
    """Measure, write, print.

    Raises:
        UsageError: no comparison, one without a finished run, or a strategy of somebody's own that is not named.
        InfeasibleError: nothing is feasible.
    """
    given = {"algos": request.algos} if request.algos else {}
    plan = opened(CompareRequest(given, resume=request.comparison, interim=True, quiet=True))[1]
    stage, name = Stages(quiet=request.quiet or request.json), plan.config.name
    results = finished_results(plan, request.comparison, stage)
    if all(result.reference is None for result in results):
        raise InfeasibleError(f"{name}: nothing feasible in any study")
    stage("writing tables and drawing pictures" if request.pictures else "writing tables")
    folder = run_folder.create(f"publish-{name}", request.out)
    document = written(folder, name, results, pictures=request.pictures)
    stage.close()
    if request.json or not request.quiet:
        shown = [section for section in document.sections if not section.folded]
        drawn = ", report.html, plots/" if request.pictures else ""
        files = Section("", (f"Files: {folder}/ (report.md, tables/, timing/{drawn})",))
        show(replace(document, sections=(*shown, files)), as_json=request.json)


def finished_results(plan: Plan, folder: Path, stage: Stages) -> list[StudyResult]:
    """Every study of a comparison; a run that is not finished counts as failed.

    Raises:
        UsageError: no run is finished.
    """
    pool, wanted = ProcessPool(processors()), list(plan.cells(folder))
    try:
        done = pool.run(execution.finished, wanted, lambda cell: False)
        if not any(done):
            raise UsageError(
                f"{folder}: expected a comparison with finished runs, got none; plas compare --resume {folder}"
            )
        missing = [cell for cell, there in zip(wanted, done, strict=True) if not there]
        failures = {label_of(cell): f"it is not finished in {folder}" for cell in missing}
        return scored(Bench(plan, folder, pool, failures, stage))
    finally:
        pool.close()


def written(folder: Path, name: str, results: Sequence[StudyResult], *, pictures: bool) -> Document:
    """Tables, pictures and the report in a new folder."""
    ranked = rankings(results)
    rows = table_rows(results, ranked)
    numbers = {"folder": str(folder), **{key: rows[key] for key in rows if key not in ("runs", "anytime", "reached")}}
    document = comparison_document(name, results, ranked, numbers, pictures=pictures)
    diagrams = tuple(
        Figure(named("ranks", ranking.group), "ranks") if can_draw() else NO_DIAGRAM
        for ranking in ranked
        if ranking.shown and pictures
    )
    if diagrams:
        document = replace(document, sections=(*document.sections, Section("Mean ranks", diagrams)))
    write_tables(folder, rows, results, ranked)
    for table, of_study in PER_STUDY.items():
        write(folder / "tables" / f"{table}.tex", latex_tables(map(of_study, results)))
    write(folder / "tables" / "ranks.tex", latex_tables(map(rank_table, courses(results, ranked))))
    write(folder / "timing" / "overhead.tex", latex_tables(map(overhead_table, results)))
    write(folder / "report.md", markdown(document))
    if pictures:
        draw(folder, document, results, ranked)
    return document


def draw(folder: Path, document: Document, results: Sequence[StudyResult], ranked: Sequence[Ranking]) -> None:
    """Every picture and the page."""
    styles = strokes(sorted({name for result in results for name in result.strategies}))
    with drawing(folder) as plots:
        draw_all(plots, results)
        with styled(STYLE):
            for ranking in ranked:
                if (figure := rank_figure(ranking, styles)) is not None:
                    save(figure, plots / named("ranks", ranking.group))
    write(folder / "report.html", comparison_page(document, results))


def latex_tables(tables: Iterable[Table]) -> str:
    """Tables in LaTeX, for the package booktabs, one below the other."""
    return "\n\n".join(map(latex_table, tables)) + "\n"


def latex_table(table: Table) -> str:
    """A table's title and its rows."""
    head, *body = [" & ".join(map(_latex, cells)) + r" \\" for cells in (table.header, *table.texts)]
    columns = "l" + "r" * (len(table.columns) - 1)
    begin = [r"\begin{table}", rf"\caption{{{_latex(table.title)}}}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    return "\n".join([*begin, head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def _latex(text: str) -> str:
    return text.translate(LATEX).replace("<=", r"$\le$")
