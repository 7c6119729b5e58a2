"""Latency measured on the worker's device with random weights, ms; the key measure says how. Takes seconds to minutes."""

import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nas.errors import NotRunError, PlasError, UsageError
from nas.export.candidates import columns
from nas.export.model import Model, Workload
from nas.export.recipe import load_recipe
from nas.export.tokenizer import byte_level
from nas.files.faults import unknown
from nas.record.process import run_worker
from nas.search.reading import refuse_layers, refuse_settings
from nas.study.configuration import StudyConfig
from nas.study.expensive_settings import MeasureSettings
from nas.study.user_code import in_run_folder
from objectives.scenario import Scenario
from plas_board.measure.machine import PRECISIONS, refuse_missing
from plas_board.measure.results import request_times
from plas_board.measure.session import Plan, command, job
from plas_stacks.gguf import write_gguf
from search_spaces.architectures import Architectures
from search_spaces.space import SearchSpace

UNIT, LOG_SCALE, PRIOR = "ms", True, "total_ms"
COST_S = 10.0  # of a small design; formulas come first whatever it is
NAME = "design"


def resolved_settings(config: StudyConfig, space: SearchSpace) -> tuple[MeasureSettings, str, list[str]]:
    """The study's settings with the precision; the shipped metric that approximates it; notices.

    Raises:
        UsageError: what cannot be measured.
    """
    chosen = config.measure or MeasureSettings()
    refuse_settings("measure", space)
    refuse_layers("measure", space)
    if config.sustained:
        raise UsageError(
            "sustained: expected times that are predicted, got measured ones, which last as long as their load did; drop it, or "
            "measure after minutes of load"
        )
    precisions = PRECISIONS[chosen.backend]
    if chosen.precision is not None and chosen.precision not in precisions:
        raise UsageError(
            f"measure.precision: {unknown(f'a precision of {chosen.backend}', chosen.precision, precisions)}"
        )
    if chosen.backend == "llama-bench" and chosen.interpreter is None:
        raise UsageError("measure.interpreter: expected the llama-bench program, got nothing; name it")
    if chosen.backend == "llama-bench" and not config.head[0]:
        raise UsageError("measure: expected a vocabulary for llama-bench, got none; add --vocabulary 32000")
    if chosen.interpreter is not None and in_run_folder(Path(chosen.interpreter).absolute()):
        raise UsageError(
            f"measure.interpreter: expected a program outside run folders, got {chosen.interpreter}; name another"
        )
    if config.workers is not None and config.workers > 1 and config.executor is None:
        raise UsageError(
            f"workers: expected 1 with measure, got {config.workers}, which would slow each other; drop the others, or name "
            "--set executor=URL with a worker on each device"
        )
    return chosen.model_copy(update={"precision": chosen.precision or precisions[0]}), chosen.metric, []


def refuse_here(settings: Mapping[str, Any]) -> None:
    """Refuse to begin without the engine.

    Raises:
        UsageError: naming what to install or where to point.
    """
    try:
        refuse_missing(settings["backend"], settings["interpreter"] or sys.executable)
    except UsageError as error:
        raise UsageError(str(error).replace("--interpreter:", "measure.interpreter:")) from None


def measure(architectures: Architectures, scenario: Scenario, *, settings: Mapping[str, Any]) -> list[float]:
    """Measured time of each architecture in the study's workload, of its own tokens of a text, ms, (n,), one after another.

    prefill: the median of all samples; a token: likewise; decoding: output_tokens of them; total: the sum.

    Raises:
        NotRunError: this machine lacks the engine.
        PlasError: no process answered, with the state and reason of the last.
    """
    chosen = MeasureSettings.model_validate(dict(settings))
    try:
        refuse_missing(chosen.backend, chosen.interpreter or sys.executable, scenario.batch)
    except UsageError as error:
        raise NotRunError(str(error)) from None
    designs = (architectures[i : i + 1] for i in range(len(architectures)))
    return [_ms(chosen, scenario.of_design(design), design) for design in designs]


def _ms(chosen: MeasureSettings, scenario: Scenario, architecture: Architectures) -> float:
    with TemporaryDirectory(prefix="plas-measure-") as scratch:
        plan = _plan(chosen, scenario, architecture, Path(scratch))
        if chosen.backend == "llama-bench":
            _write_file(plan, scenario, architecture)
        task, line = job(plan, NAME), command(plan)
        answers = [run_worker(line, task, chosen.timeout, None) for _ in range(chosen.rounds)]
    good = [answer.content for answer in answers if answer.state == "ok"]
    if not good:
        raise PlasError(f"{answers[-1].state}, {answers[-1].reason}")
    return request_times(good, scenario.output_tokens)[chosen.metric]


def _plan(chosen: MeasureSettings, scenario: Scenario, architecture: Architectures, folder: Path) -> Plan:
    workload = {name: getattr(scenario, name) for name in ("batch", "input_tokens", "output_tokens")}
    given = chosen.model_dump(
        include={"backend", "precision", "warmup", "repetitions", "threads", "seed", "torch_device"}
    )
    program = chosen.interpreter or sys.executable
    return Plan({NAME: columns(architecture)}, given | workload, folder, program, chosen.timeout, None, folder, False)


def _write_file(plan: Plan, scenario: Scenario, architecture: Architectures) -> None:
    """The GGUF file that llama-bench reads, with random weights."""
    workload = Workload(scenario.batch, scenario.input_tokens, scenario.output_tokens)
    precision, seed = plan.settings["precision"], plan.settings["seed"]
    model = Model(NAME, NAME, architecture, byte_level(), load_recipe("small"), workload, True, seed, precision)
    try:
        write_gguf(plan.folder / f"{NAME}.gguf", model)
    except OSError as error:
        raise NotRunError(f"{plan.folder}: cannot be written ({error.strerror})") from None
