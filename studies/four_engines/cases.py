"""Which design in which engine and format: exported, measured in a process of its own, kept as a row, and deleted again."""

import csv
import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from plas_stacks.engine import engines

HERE = Path(__file__).parent
READ, WRITTEN = 128, 16  # tokens
FORMATS = {
    "llama_cpp": ("q8_0", "q4_0", "fp16"),
    "onnx_genai": ("int8", "int4", "fp32"),
    "openvino": ("int8", "int4", "fp32"),
    "litert_lm": ("int8", "int4", "fp32"),
    "executorch": ("int8", "int4", "fp32"),
}
REAL_TIME = '#!/bin/sh\nexec flock "{}" chrt -f 10 "{}" "$@"\n'  # ahead of everything else, one at a time


@dataclass(frozen=True)
class Case:
    """One design in one format in one engine."""

    design: Mapping[str, str]
    engine: str
    format: str

    @property
    def name(self) -> str:
        """Its folder."""
        return f"{self.engine}-{self.format}-{self.design['id']}"


def designs() -> list[dict[str, str]]:
    """The twelve."""
    with (HERE / "designs.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def cases(names: Iterator[str] | list[str]) -> Iterator[Case]:
    """Every design and engine in the first format before the next format, so that a run that ends early can be calibrated by."""
    chosen = list(names)
    for kinds in zip(*(FORMATS[name] for name in chosen), strict=True):
        yield from (Case(design, *pair) for design in designs() for pair in zip(chosen, kinds, strict=True))


def run(case: Case, root: Path, python: str) -> dict[str, object]:
    """Export and measure: the row, or why there is none."""
    folder = root / "cases" / case.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    listed = folder / "design.csv"
    with listed.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, case.design)
        writer.writeheader()
        writer.writerow(case.design)
    lengths = ["--input-tokens", str(READ), "--output-tokens", str(WRITTEN)]
    given = ["--to", case.engine, "--weights", "--precision", case.format, "--preset", "device", *lengths]
    begin = time.monotonic()
    export = [python, "-m", "nas", "export", str(listed), *given, "--out", str(folder / "files")]
    done = subprocess.run(export, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"state": "not exported", "why": done.stderr.strip().splitlines()[-1][:300]}
    seconds = time.monotonic() - begin
    place = folder / "files" / case.design["id"] / case.engine.replace("_", "-")
    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    quick = folder / "python"
    quick.write_text(REAL_TIME.format(root.resolve() / "lock", python), encoding="utf-8")
    quick.chmod(0o755)
    measure = [python, "-m", "nas", "measure", str(folder / "files" / "candidates.csv"), "--backend", case.engine]
    measure += ["--models", str(folder / "files"), "--precision", case.format, "--interpreter", str(quick), *lengths]
    measure += ["--rounds", "1", "--repetitions", "5", "--warmup", "2", "--power", "none", "--threads", "2"]
    done = subprocess.run(
        [*measure, "--device", "cpu", "--out", str(folder / "measured"), "--quiet"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return {"state": "not measured", "why": done.stderr.strip().splitlines()[-1][:300]}
    (line,) = [json.loads(text) for text in (folder / "measured" / "samples.jsonl").read_text().splitlines()]
    shutil.rmtree(folder / "files")
    result = line["result"]
    grown = result["peak_bytes"] - result["base_bytes"]
    return {
        "state": "ok",
        "memory_gb": grown / 1e9,
        "file_gb": size / 1e9,
        "export_s": round(seconds, 1),
        "engine": result["engine"],
    }


def installed(python: str, name: str) -> bool:
    """Whether a Python has an engine."""
    probe = f"import importlib.util as i, sys; sys.exit(i.find_spec('{engines()[name].module}') is None)"
    return subprocess.run([python, "-c", probe], capture_output=True, check=False).returncode == 0
