"""What is reported of each thing that was fitted, as plain content."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from objectives.calibrating.energy import EnergyGroup
from objectives.calibrating.group import Calibrated, row_by_row, unseen_by
from objectives.calibrating.served import ServedGroup
from search_spaces.arrays import FloatArray


def group_report(group: Calibrated) -> dict[str, Any]:
    """Profile, errors by phase and prediction, the rows that do not fit, and all rows as columns."""
    predictions = {"datasheet": group.datasheet, "in_sample": group.in_sample, "held_out": group.held_out}
    return {
        "name": group.name,
        "profile": group.profile.model_dump(mode="json", exclude_none=True),
        "rows": len(group.rows),
        "models": group.models,
        "errors": {
            phase: {name: asdict(group.errors(phase, ms)) for name, ms in predictions.items()}
            for phase in ("prefill", "decode")
        },
        "misfits": [{"row": m.place, "error": error} for m, error in group.misfits()],
        "remarks": group.remarks(),
        "doubts": group.doubts(),
        "fitted": list(group.free.names),
        "largest_efficiency": group.free.largest,
        "unseen_by": unseen_by(group),
        "measurements": row_by_row(group),
    }


def served_report(group: ServedGroup) -> dict[str, Any]:
    """The coefficient, errors of milliseconds: median, 90th percentile and of how many rows, and the rows as columns."""
    predictions = {"before": group.before, "in_sample": group.in_sample, "held_out": group.held_out}
    own = {
        name: [getattr(m, name) for m in group.rows] for name in ("line", "model", "slow_share", "drafted", "accepted")
    }
    return {
        "name": group.name,
        "coefficient": group.coefficient,
        "value": group.value,
        "rows": len(group.rows),
        "models": group.models,
        "errors": _by_prediction(("median", "p90", "rows"), predictions, group.errors),
        "remarks": group.remarks(),
        "doubts": group.doubts(),
        "measurements": {
            **own,
            "measured_ms": group.measured.tolist(),
            **{f"{name}_ms": ms.tolist() for name, ms in predictions.items()},
        },
    }


def energy_report(group: EnergyGroup) -> dict[str, Any]:
    """Coefficients, and errors of joules: median, worst and of how many rows."""
    predictions = {"in_sample": group.in_sample, "held_out": group.held_out, "times_predicted": group.from_times}
    return {
        "name": group.name,
        "coefficients": group.energy.model_dump(mode="json", exclude_none=True),
        "rows": len(group.rows),
        "models": group.models,
        "errors": _by_prediction(("median", "worst", "rows"), predictions, group.errors),
        "remarks": group.remarks(),
        "doubts": group.doubts(),
    }


def _by_prediction(
    labels: tuple[str, ...],
    predictions: Mapping[str, FloatArray],
    errors: Callable[[FloatArray], tuple[float, float, int]],
) -> dict[str, dict[str, float]]:
    """The errors of each prediction, by their names."""
    return {name: dict(zip(labels, errors(predicted), strict=True)) for name, predicted in predictions.items()}
