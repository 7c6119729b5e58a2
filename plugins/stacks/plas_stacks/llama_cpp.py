"""llama.cpp in llama-cpp-python, on a GGUF file with random weights (--weights); inference."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from nas.errors import UsageError
from nas.export.families import family_of, refuse_stack
from nas.export.model import Model
from plas_stacks.engine import RECORD, Engine
from plas_stacks.gguf import holds, write_gguf


@dataclass(frozen=True)
class Written(Engine):
    """An engine whose files PLAS writes itself."""

    def refuse(self, model: Model) -> None:
        """Refuse what llama.cpp or the writer does not take.

        Raises:
            UsageError: with what it is.
        """
        refuse_stack(model.architecture, "llama_bench")
        if not holds(model):
            name = family_of(model.architecture).class_name
            raise UsageError(
                f"llama-cpp: expected a class whose GGUF PLAS writes, got {name}; --to llama-bench converts it once trained"
            )
        super().refuse(model)

    def emit(self, model: Model, folder: Path) -> None:
        """Write the file."""
        kind = self.format_of(model)
        write_gguf(folder / self.file, replace(model, gguf={"fp16": "f16"}.get(kind, kind)))
        (folder / RECORD).write_text(json.dumps({"precision": kind}) + "\n", encoding="utf-8")


ENGINE = Written(
    name="llama_cpp",
    label="llama.cpp",
    packages=("llama-cpp-python",),
    module="llama_cpp",
    file="model.gguf",
    tolerance={"fp16": 0.02, "q8_0": 0.1, "q4_0": 0.5, "q4_k_m": 0.5},
)
