"""A calibrated group row by row: measured and predicted times, and the errors of unseen models by what the rows have in common."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from objectives.calibrating.group import PHASES, Calibrated
from objectives.calibrating.measurements import Measurement
from objectives.counts import active, total
from search_spaces.arrays import FloatArray

LENGTHS = (128, 512, 2048, 8192)  # prompts up to each, tokens


def row_by_row(group: Calibrated) -> dict[str, Any]:
    """Columns of equal length: the row, its workload, milliseconds measured, predicted in-sample, held out, by the datasheet."""
    rows = group.rows
    return {
        "line": [m.line for m in rows],
        "model": [m.model for m in rows],
        "phase": [m.phase for m in rows],
        "kind": [kind_of(m) for m in rows],
        "prompt_tokens": [m.prompt for m in rows],
        "generated_tokens": [m.generated if m.phase == "decode" else 0 for m in rows],
        "attended_tokens": [m.attended for m in rows],
        "contended": [m.contended for m in rows],
        "parameters": [float(total(m.architecture)[0]) for m in rows],
        "active_parameters": [float(active(m.architecture)[0]) for m in rows],
        "measured_ms": group.terms.ms.tolist(),
        "in_sample_ms": group.in_sample.tolist(),
        "held_out_ms": group.held_out.tolist(),
        "datasheet_ms": group.datasheet.tolist(),
    }


def kind_of(m: Measurement) -> str:
    """dense or MoE."""
    return "MoE" if float(np.asarray(m.architecture.n_experts).reshape(-1)[0]) > 1 else "dense"


def length_of(m: Measurement) -> str:
    """A class of prompt lengths."""
    least = 0
    for most in LENGTHS:
        if m.prompt <= most:
            return f"prompts of {least:,} to {most:,} tokens"
        least = most + 1
    return f"prompts of {least:,} tokens and more"


SHARED: dict[str, Callable[[Measurement], str]] = {"model": lambda m: m.model, "kind": kind_of, "length": length_of}


def unseen_by(group: Calibrated) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """Held-out errors of rows that share a model, a kind or a length, by phase; nothing where none was held out."""
    found: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for name, shared in SHARED.items():
        values = np.array([shared(m) for m in group.rows], dtype=object)
        found[name] = {each: _by_phase(group, values == each) for each in dict.fromkeys(values.tolist())}
    return found


def _by_phase(group: Calibrated, chosen: np.ndarray[Any, Any]) -> dict[str, dict[str, float]]:
    unseen: FloatArray = np.where(chosen, group.held_out, np.nan)
    errors = {phase: group.errors(phase, unseen) for phase in PHASES}
    shown = ("rows", "median", "p90")
    return {
        phase: {name: value for name, value in asdict(e).items() if name in shown}
        for phase, e in errors.items()
        if e.rows
    }
