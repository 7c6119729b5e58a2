"""Budgets that hold with a probability: `total_ms@q90` takes the calibration's held-out errors into account."""

import re
from collections.abc import Mapping
from typing import Literal

import numpy as np

from nas.errors import UsageError
from objectives.device import Calibration

_FORM = re.compile(r"^([\w.:]+)@q(\d{1,2}(?:\.\d+)?)$")
PHASES: dict[str, tuple[Literal["prefill", "decode"], ...]] = {
    "prefill_ms": ("prefill",),
    "decode_ms": ("decode",),
    "tpot_ms": ("decode",),
    "total_ms": ("prefill", "decode"),
}


def metric_of(name: str) -> str:
    """The metric that a budget's name is about; the name itself when it has no quantile.

    Raises:
        ValueError: something else after the @, or a metric without measured errors.
    """
    if "@" not in name or name.startswith("loss@"):  # a loss at a quantile is a metric of its own
        return name
    form = _FORM.match(name)
    if form is None or form[1] not in PHASES:
        raise ValueError(f"expected METRIC@qNN with one of {', '.join(PHASES)}, got {name!r}; write total_ms@q90")
    return form[1]


def plain_limits(
    budgets: Mapping[str, float | None], calibration: Calibration | None, note: str
) -> tuple[dict[str, float | None], list[str]]:
    """The same budgets on predictions alone, and what to say of each that was at a quantile.

    measured ≤ limit in a share q of held-out rows where predicted ≤ limit / Q_q(measured / predicted); of
    few rows the next higher one is taken. Total time pools the rows of both phases.

    Raises:
        UsageError: no held-out errors to take a quantile of.
    """
    limits, said = {name: limit for name, limit in budgets.items() if metric_of(name) == name}, []
    for name, limit in budgets.items():
        metric = metric_of(name)
        if metric == name or limit is None:
            continue
        percent = float(name.partition("@q")[2])
        ratios = [r for phase in PHASES[metric] for r in (calibration.held_out.get(phase, []) if calibration else [])]
        if not ratios:
            raise UsageError(
                f"budgets.{name}: expected a calibrated profile with held-out errors, got {note}; "
                "use --preset device with a device that has one (plas list devices), or plas calibrate"
            )
        factor = float(np.quantile(ratios, percent / 100, method="higher"))
        limits[metric] = min(limit / factor, limits.get(metric) or np.inf)
        said.append(
            f"{name} <= {limit:g} is {metric} <= {limit / factor:.4g}: measured / predicted is at most {factor:.3g} "
            f"in {percent:g} % of {len(ratios)} held-out rows; {note}"
        )
    return limits, said
