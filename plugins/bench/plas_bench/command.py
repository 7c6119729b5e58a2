"""The work of `bench`: problems listed and shown, traces scored, strategies run and logged."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nas.compare.result import StudyResult
from nas.compare.tables import as_csv, pair_rows, reached_rows, run_rows, target_table, under_headings
from nas.document.document import Column, Document, Section, Table
from nas.errors import UsageError
from nas.files.own_files import drawing, made_folder
from nas.files.tables import refuse_used, write
from nas.study.layers import parsed_settings
from nas.terminal.console import Stages
from nas.terminal.tables import show as show_document
from plas_bench.definition import definition, names
from plas_bench.instance import Values, bench_problem, described
from plas_bench.logger import Logger
from plas_bench.reference import reference_table
from plas_bench.request import BenchRequest, What
from plas_bench.running import searched, strategy_of
from plas_bench.scoring import gap_table, scored
from plas_bench.traces import GivenTrace, info_of, read_traces

SHOWN = 9  # values of an axis


def answer(request: BenchRequest) -> None:
    """Do what is asked for.

    Raises:
        UsageError: it cannot be done.
        PlasError: this release computes other values than those that were frozen.
    """
    {What.list: list_, What.show: show, What.score: score, What.run: run}[request.what](request)


def list_(request: BenchRequest) -> None:
    """Every problem with its size, objectives, constraints and the size of its exact front; nothing is evaluated.

    Raises:
        UsageError: names, which list does not take.
    """
    if request.names:
        raise UsageError(
            f"bench list: expected nothing after it, got {request.names[0]}; plas bench show {request.names[0]}"
        )
    rows = [_summary(name) for name in names()]
    columns = tuple(Column(name, format=",", narrow="below" if name == "what" else "") for name in rows[0])
    table = Table(columns, tuple(tuple(row.values()) for row in rows))
    more = "plas bench show NAME says more; plas bench run NAME --algo nsga2 searches one."
    show_document(Document("", (Section("", (table, more)),), rows), as_json=request.json)


def _summary(name: str) -> dict[str, Any]:
    known = definition(name)
    return {
        "problem": name,
        "designs": known.designs,
        "objectives": ", ".join(known.study["objectives"]),
        "constraints": len(known.study["budgets"]),
        "budget": known.evaluations,
        "exact front": known.front.members,
        "what": known.title,
    }


def show(request: BenchRequest) -> None:
    """One problem: its genes, objectives, constraints, exact front."""
    found = described(bench_problem(_one(request)))
    lines = []
    ends = {end: dict(zip(found["objectives"], found[end], strict=True)) for end in ("ideal", "nadir")}
    for name, value in {**found, **ends}.items():
        text = ", ".join(f"{k} {_in_short(v)}" for k, v in value.items()) if isinstance(value, dict) else value
        text = ", ".join(map(str, text)) if isinstance(text, list) else f"{text:,}" if isinstance(text, int) else text
        lines.append(f"{name.replace('_', ' '):<13}{text or 'none'}")
    show_document(Document("", (Section("", tuple(lines)),), found), as_json=request.json)


def _in_short(value: float | list[Any]) -> str:
    """A number, or the values of an axis between braces, of many the first and the last."""
    if not isinstance(value, list):
        return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
    return f"{{{', '.join(map(str, value if len(value) <= SHOWN else [*value[: SHOWN - 1], '…', value[-1]]))}}}"


def _one(request: BenchRequest) -> str:
    """The one problem that is named.

    Raises:
        UsageError: none or several.
    """
    given = [*request.names, *([request.problem] if request.problem else [])]
    if len(given) != 1:
        raise UsageError(
            f"bench {request.what.value}: expected one problem, got {len(given)}; plas bench list names them"
        )
    return given[0]


def run(request: BenchRequest) -> None:
    """Search a problem with seeds 0, 1, 2 …, log every run, score them.

    Raises:
        UsageError: an unknown problem or strategy, a folder that holds files.
    """
    bench = bench_problem(_one(request))
    chosen = strategy_of(request.algo, parsed_settings(request.params, "--param"))
    folder = request.out or Path("runs") / f"bench-{bench.name}-{request.algo}"
    refuse_used("--out", folder)
    evaluations, stage = request.evaluations or bench.evaluations, Stages(quiet=request.quiet or request.json)
    parameters, given = chosen.fitted(evaluations, bench.problem.space), []
    for seed in range(request.seeds):
        stage(f"{request.algo}, seed {seed} of {request.seeds}")
        genotypes = searched(bench, chosen, seed, evaluations)
        with Logger(bench, folder / "traces", request.algo, seed, parameters=parameters.model_dump(mode="json")) as log:
            found = bench.evaluated(genotypes)
            log.log(genotypes, Values(found.values, found.violations))
        given.append(GivenTrace(request.algo, str(seed), seed, genotypes))
    stage(f"solving {bench.name} exactly")
    result = scored(bench, given, evaluations)
    stage.close()
    _finish(request, [result], folder)


def score(request: BenchRequest) -> None:
    """Score traces, by problem.

    Raises:
        UsageError: none given, a trace that names no problem, or cannot be read.
    """
    if not request.names:
        raise UsageError(
            "bench score: expected traces or run folders, got none; plas bench score mine.csv --problem NAME"
        )
    if request.out is not None:
        refuse_used("--out", request.out)
    stage = Stages(quiet=request.quiet or request.json)
    by_problem: dict[str, list[GivenTrace]] = {}
    for path in traces_named(request.names):
        name = problem_of_trace(path, request.problem)
        by_problem.setdefault(name, []).extend(read_traces(path, bench_problem(name)))
    results = []
    for name, given in by_problem.items():
        stage(f"scoring {len(given)} runs on {name}")
        results.append(scored(bench_problem(name), given, request.evaluations))
    stage.close()
    _finish(request, results, request.out)


def traces_named(names_: Sequence[str]) -> list[Path]:
    """Files and run folders; of another folder every CSV in it.

    Raises:
        UsageError: a path that is not there, or a folder without traces.
    """
    found = []
    for path in map(Path, names_):
        if not path.exists():
            raise UsageError(
                f"{path}: expected a trace (.csv), a folder of traces or a run folder, got nothing; check the path"
            )
        if path.is_dir() and not (path / "evaluations.sqlite").exists():
            inside = sorted(path.glob("*.csv"))
            if not inside:
                raise UsageError(
                    f"{path}: expected a folder with traces (.csv) or a run folder, got neither; name a trace"
                )
            found += inside
        else:
            found.append(path)
    return found


def problem_of_trace(path: Path, given: str | None) -> str:
    """The problem that a trace is of: the JSON file beside it, else `--problem`.

    Raises:
        UsageError: neither says it, they differ, or it was logged under another version of the problem.
    """
    info = info_of(path)
    said = str(info["problem"]) if info.get("problem") else given
    if said is None:
        raise UsageError(f"{path}: expected its problem, got none; add --problem NAME (plas bench list names them)")
    if given is not None and said != given:
        raise UsageError(
            f"{path}: expected a trace of {given}, got one of {said}, as {path.with_suffix('.json').name} says; drop one"
        )
    frozen = definition(said).front.sha256
    if info.get("sha256", frozen) != frozen:
        raise UsageError(
            f"{path}: expected a trace of the {said} with the exact front {frozen[:12]}, got one of {str(info['sha256'])[:12]}; "
            "search it again"
        )
    return said


def _finish(request: BenchRequest, results: Sequence[StudyResult], folder: Path | None) -> None:
    """Tables on the screen, and files where a folder is named."""
    if folder is not None:
        keep(made_folder(folder), results, request)
    if request.quiet and not request.json:
        return
    sections = [Section("", tuple(tables_of(result, reference=request.reference))) for result in results]
    if folder is not None:
        drawn = ", plots/" if request.plots else ""
        sections.append(Section("", (f"Files: {folder}/ (scores.md, scores.csv, targets.csv, pairs.csv{drawn})",)))
    data = {"folder": folder and str(folder), "runs": run_rows(results), "reached": reached_rows(results)}
    show_document(Document("", tuple(sections), data), as_json=request.json)


def tables_of(result: StudyResult, *, reference: bool) -> list[Table]:
    """Gaps on the way, evaluations to targets, and the reference results where they are asked for."""
    return [gap_table(result), target_table(result), *([reference_table(result.name)] if reference else [])]


def keep(folder: Path, results: Sequence[StudyResult], request: BenchRequest) -> None:
    """Every measure of every run, evaluations to targets, tests between pairs, tables as read, pictures."""
    for name, rows in (("scores", run_rows), ("targets", reached_rows), ("pairs", pair_rows)):
        write(folder / f"{name}.csv", as_csv(rows(results)))
    tables = [shown for result in results for shown in tables_of(result, reference=request.reference)]
    write(folder / "scores.md", under_headings(tables))
    if request.plots:
        from plas_bench.pictures import draw_all

        with drawing(folder, "scores"):
            draw_all(folder, results)
