"""Twelve designs in engines of PCs and phones: predicted, measured, calibrated.

python -m studies.four_engines run --out FOLDER --device cpu.yaml --python openvino=PYTHON --python onnx_genai=PYTHON [--minutes 60]
python -m studies.four_engines judge --out FOLDER --device cpu.yaml
"""

import argparse
import json
import time
from pathlib import Path

from studies.four_engines.cases import cases, installed, run
from studies.four_engines.judging import judged, predictions, table

BEFORE = "predicted.json"


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=("run", "judge"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", type=Path, required=True)
    parser.add_argument("--python", action="append", default=[], metavar="ENGINE=PYTHON")
    parser.add_argument("--minutes", type=float, default=60.0)
    return parser.parse_args()


def measured(options: argparse.Namespace) -> None:
    """Predict what was not predicted yet, then measure what was not measured yet."""
    options.out.mkdir(parents=True, exist_ok=True)
    pythons = dict(each.split("=", 1) for each in options.python)
    pythons = {name: python for name, python in pythons.items() if installed(python, name)}
    before = options.out / BEFORE
    if not before.is_file():
        before.write_text(json.dumps(predictions(options.device), indent=1), encoding="utf-8")
    end = time.monotonic() + 60.0 * options.minutes
    for case in cases(list(pythons)):
        result = options.out / "results" / f"{case.name}.json"
        if result.is_file() or time.monotonic() > end:
            continue
        row = run(case, options.out, pythons[case.engine])
        result.parent.mkdir(exist_ok=True)
        result.write_text(json.dumps(row), encoding="utf-8")
        print(case.name, row["state"], row.get("why", ""), flush=True)


if __name__ == "__main__":
    chosen = parsed()
    if chosen.stage == "run":
        measured(chosen)
    else:
        table(chosen.out)
        print(judged(chosen.out, chosen.device))
