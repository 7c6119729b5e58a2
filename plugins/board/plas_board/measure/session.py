"""Rounds over candidates: every candidate once a round, so that a slow spell hits all alike."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from nas.answer.carried_study import recorded_study
from nas.errors import UsageError
from nas.export.stack_protocol import shown
from nas.files.tables import write
from nas.record.folder import locked
from nas.record.jsonl_log import SETTINGS, Record, own_folder
from nas.record.process import Answer, run_worker
from nas.study.study_laws import recorded_lengths
from plas_board.measure.machine import SCRIPTS, WORKERS, batched_bench, machine, refuse_missing
from plas_board.measure.power import Readings, metered
from plas_board.measure.results import measured_csv
from plas_stacks.engine import engines


@dataclass(frozen=True)
class Plan:
    """A measurement: candidates by id, settings, folder.

    settings: everything that a resumed measurement must repeat. interpreter: the Python that has the
    engine; for llama-bench the program itself, with llama-batched-bench beside it for batches, and its model files `<id>.gguf` lie in
    `models`, or as `export` writes them.
    """

    candidates: dict[str, dict[str, Any]]
    settings: dict[str, Any]
    folder: Path
    interpreter: str
    timeout: float
    memory_gb: float | None
    models: Path | None
    retry_failed: bool


def command(plan: Plan) -> list[str]:
    """The worker's command line."""
    backend = plan.settings["backend"]
    python = sys.executable if backend == "llama-bench" else plan.interpreter
    return [python, str(WORKERS / SCRIPTS[backend])]


def by_file(backend: str) -> bool:
    """Whether a backend measures files of an export, whatever their layers."""
    return backend == "llama-bench" or backend in engines()


def job(plan: Plan, name: str) -> dict[str, Any]:
    """A worker's job for one candidate."""
    extra: dict[str, Any] = {}
    backend = plan.settings["backend"]
    if plan.models is None and by_file(backend):
        files = "<id>.gguf files" if backend == "llama-bench" else "an export"
        raise UsageError(
            f"--models: expected the folder of {files} for {backend}, got nothing; "
            f"name it, or an export with --to {backend} --weights"
        )
    if plan.models is not None and backend in engines():
        engine = engines()[backend]
        if plan.settings["batch"] > 1:
            raise UsageError(f"--batch: expected 1 for {backend}, got {plan.settings['batch']}; correct it")
        extra = engine.job("measure", file=str(plan.models / name / shown(backend) / engine.file))
    if plan.models is not None and backend == "llama-bench":
        exported = plan.models / name / "llama-bench" / "model.gguf"
        extra = {
            "program": plan.interpreter,
            "batched_program": str(batched_bench(plan.interpreter)),
            "model_file": str(exported if exported.is_file() else plan.models / f"{name}.gguf"),
        }
    return plan.settings | {"architecture": plan.candidates[name]} | extra


def workload(source: Path | None, batch: int | None, read: int | None, written: int | None) -> dict[str, int]:
    """Batch and lengths: as given, else those of the run or of the file's study, else 1 × 1,024 in and 16 out.

    Raises:
        UsageError: less than one, or none for a run over vocabularies.
    """
    given = {"batch": batch, "input_tokens": read, "output_tokens": written}
    usual = {"batch": 1, "input_tokens": 1024, "output_tokens": 16}
    if (resolved := recorded_study(source)) is not None:
        if resolved["space"]["axes"].get("vocabulary") and None in (read, written):
            raise UsageError(
                f"{source}: expected --input-tokens and --output-tokens, since designs of several vocabularies read a text as tokens of their own, got none; give both"
            )
        usual = {"batch": int(resolved["batch"]), **recorded_lengths(resolved)}
    chosen = {name: usual[name] if (value := given[name]) is None else value for name in usual}
    for name, value in chosen.items():
        if value < 1:
            raise UsageError(f"{name}: expected at least 1, got {value}; correct it")
    return chosen


def measure(plan: Plan, report: Callable[[str, int, Answer], None]) -> Record:
    """Measure what the folder does not hold yet; the CSV is written after every round and at the end.

    Raises:
        UsageError: another's folder, other settings than its own, or something to measure without the engine.
    """
    settings = plan.settings | {"candidates": plan.candidates}
    jobs = {name: job(plan, name) for name in plan.candidates}
    own_folder(plan.folder)
    with locked(plan.folder):
        fresh = not (plan.folder / SETTINGS).is_file()
        if fresh:  # before the settings are kept, so that others can be chosen instead
            refuse_missing(plan.settings["backend"], plan.interpreter, plan.settings["batch"])
        record = Record(plan.folder, settings)
        if not fresh and any(_missing(plan, record)):
            refuse_missing(plan.settings["backend"], plan.interpreter, plan.settings["batch"])
        _rounds(plan, record, jobs, report)
    return record


def _missing(plan: Plan, record: Record) -> Iterator[tuple[int, str]]:
    """Rounds and candidates that the record does not hold yet, a round after the other."""
    for turn in range(1, plan.settings["rounds"] + 1):
        yield from ((turn, name) for name in plan.candidates if not record.has(name, turn, retry=plan.retry_failed))


def _rounds(
    plan: Plan, record: Record, jobs: dict[str, dict[str, Any]], report: Callable[[str, int, Answer], None]
) -> None:
    try:
        for _, members in groupby(_missing(plan, record), key=lambda round_and_name: round_and_name[0]):
            for turn, name in members:
                with metered(plan.settings.get("power", "")) as readings:
                    answer = run_worker(command(plan), jobs[name], plan.timeout, plan.memory_gb)
                answer = with_energy(answer, readings)
                record.add(
                    {
                        "id": name,
                        "round": turn,
                        "state": answer.state,
                        "reason": answer.reason,
                        "seconds": round(answer.seconds, 3),
                        "machine": machine(),
                        "result": answer.content,
                    }
                )
                report(name, turn, answer)
            write_csv(plan, record)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("Interrupted; everything measured is kept. The same command continues") from None
    finally:
        write_csv(plan, record)


def with_energy(answer: Answer, readings: Readings) -> Answer:
    """The answer with what a request took, J, where it was metered while the requests ran."""
    windows = answer.content.get("requests_s")
    try:
        joules = readings.mean_joules([(float(begin), float(end)) for begin, end in windows or ()])
    except (TypeError, ValueError):
        return answer
    if joules is None:
        return answer
    return replace(answer, content=answer.content | {"request_j": joules, "rail": readings.rail})


def write_csv(plan: Plan, record: Record) -> None:
    """`measured.csv`, from every line of the record."""
    write(plan.folder / "measured.csv", measured_csv(plan.candidates, record.lines, plan.settings))
