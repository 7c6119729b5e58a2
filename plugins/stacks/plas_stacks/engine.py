"""An inference engine as a stack: its own converter writes the file and its own runtime loads it, in a process of the Python that has both."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from nas.errors import PlasError, UsageError
from nas.export.families import family_of
from nas.export.launch_list import FILE
from nas.export.model import Model
from nas.export.stack_files import PIVOT_PATH
from nas.export.stack_protocol import shown
from nas.record.process import answer_of, run_worker
from objectives import counts, outside
from objectives.engines import RUNS
from objectives.plugins import bundled, version_of

WORKER = Path(__file__).parent / "workers" / "engine_worker.py"
RECORD = "engine.json"
HOUR = 3600.0
MISSING = "not installed"
GENERATED = 16
AS_HF = "as transformers computes them"


@dataclass(frozen=True)
class Engine:
    """An engine that converts Hugging Face folders; the extra of its name installs it beside PLAS.

    packages: distributions, the converter's first, the runtime's last. module: what the runtime is imported as. file: what is written.
    label: its name in `objectives/engine_tries.csv`, which says what it was seen to convert and run right. tolerance: formats of weights, the first
    where the study's is none of them, and how far first logits may be from transformers', as a share of their spread.
    """

    name: str
    label: str
    packages: tuple[str, ...]
    module: str
    file: str
    tolerance: Mapping[str, float] = field(default_factory=lambda: {"fp32": 1e-3, "int8": 0.1, "int4": 0.5})

    @property
    def formats(self) -> tuple[str, ...]:
        """Formats of weights."""
        return tuple(self.tolerance)

    @property
    def install(self) -> str:
        """What installs it."""
        return f"pip install 'plas-codesign[{shown(self.name)}]' in an environment of its own"

    def job(self, task: str, **further: Any) -> dict[str, Any]:
        """A job of the worker."""
        own = {"engine": self.name, "label": self.label, "packages": self.packages, "module": self.module}
        return {"task": task, **own, **further}

    def run(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """The worker's answer.

        Raises:
            PlasError: it failed, with its reason.
        """
        answer = run_worker([sys.executable, str(WORKER)], job, HOUR, None, answer_of)
        if answer.state != "ok":
            raise PlasError(
                f"{shown(self.name)}: expected {self.label} to {job['task']} {job['file']}, got {answer.state} ({answer.reason})"
            )
        return answer.content

    def refuse(self, model: Model) -> None:
        """Refuse what the converter does not take, before it starts.

        Raises:
            UsageError: the engine is not here, a class that it does not take, or no weights.
        """
        converter, version = self.packages[0], version_of(self.packages[0])
        if version == MISSING:
            raise UsageError(f"{shown(self.name)}: expected {converter} beside PLAS, got none; {self.install}")
        if lack := RUNS[self.label].lacks(model.architecture, self.format_of(model)):
            raise UsageError(
                f"{shown(self.name)}: expected a design that {converter} {version} was seen to convert and {self.label} to run as trained, got "
                f"{family_of(model.architecture).class_name} with {lack}; leave out the stack or the candidate"
            )
        if not model.weights:
            raise UsageError(f"{shown(self.name)}: expected --weights, which {converter} converts, got none; add it")

    def emit(self, model: Model, folder: Path) -> None:
        """Convert the pivot's folder."""
        where = {"hf": str(folder.parent / PIVOT_PATH), "file": str(folder / self.file)}
        tokens = model.workload.input_tokens + model.workload.output_tokens
        answer = self.run(self.job("convert", precision=self.format_of(model), tokens=tokens, **where))
        record = {"precision": self.format_of(model), "bytes": answer["bytes"], **answer["versions"]}
        (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")

    def format_of(self, model: Model) -> str:
        """The format of the weights: that in which times are predicted, if it is one of the engine's."""
        return model.precision if model.precision in self.formats else self.formats[0]

    def launch(self, model: Model) -> str:
        """A measurement of the file."""
        return f"plas measure ../{FILE} --backend {self.name} --models .. --precision {self.format_of(model)}"

    def size(self, model: Model) -> int:
        """Bytes of the file, at most: what converters write besides is as large again."""
        return 8 * int(counts.total(model.architecture)[0])

    def cautions(self, model: Model) -> list[str]:
        """Weights in another format than times are predicted in."""
        if model.precision in self.formats:
            return []
        return [
            f"weights are {self.format_of(model)}, not {model.precision}, in which times are predicted; --precision names another"
        ]

    def fields(self, model: Model) -> dict[str, Any]:
        """Everything that `loaded` must return."""
        return {"parameters": int(counts.total(model.architecture)[0]), "generated": GENERATED, "first_logits": AS_HF}

    def conversion(self, folder: Path) -> dict[str, Any]:
        """Its format and versions; what the file holds is `loaded`'s."""
        record: dict[str, Any] = outside.json_of(folder / RECORD, outside.MB)
        return record

    read = conversion

    def loaded(self, model: Model, folder: Path) -> dict[str, Any]:
        """Parameters, tokens generated and first logits of the file in the engine.

        Raises:
            PlasError: it cannot be loaded.
        """
        written = self.conversion(folder)["precision"]
        where = {"hf": str(folder.parent / PIVOT_PATH), "file": str(folder / self.file)}
        answer = self.run(self.job("check", precision=written, vocabulary=model.tokenizer.size, **where))
        close = answer["difference"] <= self.tolerance[written]
        far = f"{100 * answer['difference']:.3g} % of their spread away"
        return {**{name: answer[name] for name in ("parameters", "generated")}, "first_logits": AS_HF if close else far}


@cache
def engines() -> dict[str, Engine]:
    """Engines that ship, by name: what an entry point of stacks names ENGINE."""
    return {name: point.load() for name, point in bundled("stacks").items() if point.attr == "ENGINE"}
