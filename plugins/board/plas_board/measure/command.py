"""Runs `measure`, prints its results, and of a run says how far its predictions agree with them."""

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nas.answer.carried_study import list_of, recorded_study, study_of_file
from nas.answer.design_words import windowed
from nas.document.document import Document, Part, Section, table_of
from nas.errors import PlasError, UsageError
from nas.export.candidates import rows_of_run
from nas.files.faults import unknown
from nas.record.candidates import read_candidates
from nas.record.process import Answer
from nas.study.baselines import baseline
from nas.terminal.console import notice
from nas.terminal.doors import command
from nas.terminal.tables import show
from objectives.display_text import in_a_command
from plas_board.measure import power
from plas_board.measure.designs import designs_to_measure
from plas_board.measure.machine import PRECISIONS, busy_cores, measure_hardware
from plas_board.measure.request import MeasureRequest
from plas_board.measure.results import TIMES, refuse_share, request_times, share, times
from plas_board.measure.session import Plan, by_file, measure, workload
from search_spaces.arrays import FloatArray

REASONS = 3  # of failures, shown
IDLE = 0.3  # processors that other programs may have
TIME_METRICS = ("prefill_ms", "decode_ms", "total_ms")


def rates(request: MeasureRequest) -> None:
    """Measure the machine itself.

    Raises:
        UsageError: what cannot be done as asked.
    """
    refuse_unknown(request)
    interpreter, threads = request.interpreter or sys.executable, request.threads or os.cpu_count() or 1
    line = measure_hardware(request.out, interpreter, request.torch_device, threads, request.timeout)
    show(Document("", (Section("", (line,)),)))


def carry_out(request: MeasureRequest) -> None:
    """Measure, and of a run say how its predictions agree.

    Raises:
        UsageError: what cannot be done as asked, before anything is measured.
        PlasError: every measurement failed.
    """
    refuse_share(request)
    refuse_unknown(request)
    plan = plan_of(request)

    def report(name: str, turn: int, answer: Answer) -> None:
        if not request.quiet:
            why = f", {answer.reason}" if answer.reason else ""
            notice(f"round {turn}, {name}: {answer.state}{why}, {answer.seconds:.1f} s")

    if not request.quiet:
        say_if_busy()
    record = measure(plan, report)
    failed = sum(line["state"] != "ok" for line in record.lines)
    if failed == len(record.lines):
        raise PlasError(f"{request.out}: expected times, got {failed} failed measurements: {states(record.lines)}")
    title = (
        f"{len(record.lines)} measurements in {request.out}, {failed} failed; "
        f"next: {command('calibrate')} {in_a_command(request.out / 'measured.csv')}"
    )
    parts: list[Part] = []
    if request.share is not None:
        parts += share(request.share, plan.candidates, record.lines, plan.settings)
    for model in map(baseline, () if by_file(request.backend) else request.models):
        if window := windowed(model.architecture):
            parts.append(f"{model.label}. {window}; it was built and measured with full attention in every layer")
    resolved = recorded_study(request.source)
    if request.source is not None and resolved is not None:
        parts += agreement_parts(request.source, request.how, record.lines, plan.settings, resolved)
    else:
        parts.append(table_of(TIMES, times(record.lines)))
    show(Document(title, (Section(title, tuple(parts)),)))


def say_if_busy() -> None:
    """A line where other programs have processors that the measurement should have."""
    busy = busy_cores()
    if busy is not None and busy > IDLE:
        notice(
            f"the machine is not idle: other programs have {busy:.1f} of {os.cpu_count()} processors; "
            "times will be too long, and rows that suffer are marked as contended"
        )


def states(lines: Sequence[dict[str, Any]]) -> str:
    """How measurements ended, each reason once with its number, the most frequent first."""
    counts = Counter(f"{line['state']}, {line['reason']}" if line["reason"] else line["state"] for line in lines)
    return "; ".join(f"{n} {how}" for how, n in counts.most_common(REASONS))


def refuse_unknown(request: MeasureRequest) -> None:
    """Refuse a backend, place or precision that does not exist, and llama-bench without its program.

    Raises:
        UsageError: with the choices.
    """
    choices = [
        ("--backend", "a backend", request.backend, tuple(PRECISIONS)),
        ("--torch-device", "a place", request.torch_device, ("cpu", "cuda")),
    ]
    if request.precision is not None and request.backend in PRECISIONS:
        known = PRECISIONS[request.backend]
        choices.append(("--precision", f"a precision of {request.backend}", request.precision, known))
    for flag, what, given, names in choices:
        if given not in names:
            raise UsageError(f"{flag}: {unknown(what, given, names)}")
    if request.graphs and (request.backend, request.torch_device) != ("torch", "cuda"):
        raise UsageError(
            f"--cuda-graphs: expected --backend torch with --torch-device cuda, got {request.backend} on "
            f"{request.torch_device}; leave it out"
        )
    if request.backend == "llama-bench" and request.interpreter is None:
        raise UsageError("--interpreter: expected the llama-bench program, got nothing; name it")


def plan_of(request: MeasureRequest) -> Plan:
    """Candidates by id, and the settings that a continued measurement must repeat."""
    lengths = workload(request.source, request.batch, request.input_tokens, request.output_tokens)
    settings = {
        "backend": request.backend,
        "device": request.device,
        "precision": request.precision or PRECISIONS[request.backend][0],
        **lengths,
        "warmup": request.warmup,
        "repetitions": request.repetitions,
        "rounds": request.rounds,
        "threads": request.threads or os.cpu_count() or 1,
        "seed": request.seed,
        "torch_device": request.torch_device,
    }
    if request.graphs:
        settings["graphs"] = True
    if meter := _power(request):
        settings["power"] = meter
    return Plan(
        designs_to_measure(
            request.source, request.how, request.models, request.vocabulary, files=by_file(request.backend)
        ),
        settings,
        request.out,
        request.interpreter or sys.executable,
        request.timeout,
        request.memory_gb,
        request.files,
        request.retry_failed,
    )


def _power(request: MeasureRequest) -> str:
    """The meter of the energy: the given one, else what is here; "" without any.

    Raises:
        UsageError: what was asked for is not here.
    """
    if request.power in ("auto", "none"):
        return power.source(request.torch_device) if request.power == "auto" else ""
    if request.power not in power.SOURCES:
        raise UsageError(f"--power: {unknown('a source', request.power, ('auto', 'none', *power.SOURCES))}")
    if not power.present(request.power):
        raise UsageError(
            f"--power: expected {request.power} on this machine, got none that can be read; choose auto or none"
        )
    return request.power


def agreement_parts(
    source: Path, how: str, lines: list[dict[str, Any]], settings: dict[str, Any], resolved: Mapping[str, Any]
) -> list[Part]:
    """Predicted against measured of the candidates of a run or of a file with its study, and the picks that change."""
    names, metrics = predicted(source, how)
    measured = agreement(names, metrics, lines, settings["output_tokens"])
    if measured is None:
        return []
    pairs = zip(measured.names, measured.predicted.tolist(), measured.measured.tolist(), strict=True)
    body = [[name, *(f"{p:.4g} / {m:.4g}" for p, m in zip(ours, clock, strict=True))] for name, ours, clock in pairs]
    title = f"Predicted by the {'run' if list_of(source).is_dir() else 'study of the file'}, and measured (ms)"
    changes = measured.changes(questions(resolved))
    said = "Picks among these that measurement changes: " + ("; ".join(changes) or "none")
    return [table_of(("candidate", *TIME_METRICS), body, title), said]


@dataclass(frozen=True, eq=False)
class Agreement:
    """Candidates that were measured: names, loss, and milliseconds of `TIME_METRICS`, (n, 3) each."""

    names: list[str]
    loss: FloatArray
    predicted: FloatArray
    measured: FloatArray

    def changes(self, questions: Mapping[str, tuple[str, float]]) -> list[str]:
        """Per question (metric ≤ limit) whose pick among these differs, what measurement says instead."""
        lines = []
        for label, (metric, limit) in questions.items():
            column = TIME_METRICS.index(metric)
            by_model, by_clock = (self._pick(times[:, column], limit) for times in (self.predicted, self.measured))
            if by_model != by_clock:
                took = "" if by_model is None else f", which takes {self.measured[by_model, column]:.4g} ms measured"
                lines.append(
                    f"{label} ({metric} <= {limit:g}): {self._name(by_clock)} instead of {self._name(by_model)}{took}"
                )
        return lines

    def _pick(self, ms: FloatArray, limit: float) -> int | None:
        within = ms <= limit
        return int(np.argmin(np.where(within, self.loss, np.inf))) if within.any() else None

    def _name(self, row: int | None) -> str:
        return "none" if row is None else self.names[row]


def predicted(source: Path, how: str) -> tuple[list[str], dict[str, FloatArray]]:
    """Ids and metrics of the candidates of a run, or of a file under the study that made it."""
    if (file := list_of(source)).is_file():
        study, doubt = study_of_file(file, None, (), {})
        if doubt:
            notice(f"Warning: {doubt}")
        designs, names = read_candidates(file)
        assessment = study.problem.assess(study.problem.headed(designs))
        return names, {name: assessment[name] for name in ("loss", *TIME_METRICS)}
    run, rows = rows_of_run(source, how)
    return [str(name) for name in run.columns(rows)["id"]], {n: c[rows] for n, c in run.evaluations.metrics.items()}


def agreement(
    names: Sequence[str], metrics: Mapping[str, FloatArray], lines: Sequence[dict[str, Any]], output_tokens: int
) -> Agreement | None:
    """Predictions of candidates beside the medians of the record; None where nothing was measured."""
    places, measured = [], []
    for i, name in enumerate(names):
        good = [line["result"] for line in lines if line["id"] == name and line["state"] == "ok"]
        if good:
            ms = request_times(good, output_tokens)
            places.append(i)
            measured.append([ms[metric] for metric in TIME_METRICS])
    if not places:
        return None
    times_of = np.column_stack([metrics[name][places] for name in TIME_METRICS])
    return Agreement([names[i] for i in places], metrics["loss"][places], times_of, np.array(measured))


def questions(resolved: Mapping[str, Any]) -> dict[str, tuple[str, float]]:
    """A study's applications and budgets that are about time."""
    limits = {label: next(iter(limit.items())) for label, limit in resolved["applications"].items()}
    limits |= {f"budget {metric}": (metric, limit) for metric, limit in resolved["budgets"].items()}
    return {label: (metric, float(limit)) for label, (metric, limit) in limits.items() if metric in TIME_METRICS}
