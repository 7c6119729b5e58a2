"""Sentences on a calibration, from its report as plain content: for the terminal and for its page."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from objectives.calibrating.energy import EnergyGroup
from objectives.calibrating.group import Calibrated, row_by_row, unseen_by
from objectives.calibrating.served import ServedGroup
from search_spaces.arrays import FloatArray

HEADER = ("error", "datasheet", "in-sample", "held out", "Kendall's tau", "overshoot", "overlap")
SUMMARY = ("profile, error held out", "prefill", "decode", "use")
ENERGY_HEADER = ("error, median (worst)", "in-sample", "held out", "its time predicted too")
SERVED_HEADER = ("error", "before it was fitted", "in-sample", "held out")
PHASES = ("prefill", "decode")
SHOWN = 10  # lines of rows that are left out for one reason


def head(content: Mapping[str, Any]) -> str:
    """The device, and how many rows of the table were used."""
    used, elsewhere, mode = (content[name] for name in ("rows_used", "rows_of_other_devices", "mode"))
    others = f", {elsewhere} of other devices" if elsewhere else ""
    return f"{content['device']}{f'@{mode}' if mode else ''}: {used} rows of {content['table']}; {len(content['left_out'])} left out{others}"


def left_out(content: Mapping[str, Any]) -> list[str]:
    """Each reason with the rows that it concerns."""
    rows = content["left_out"]
    found = []
    for reason in sorted({row["reason"] for row in rows}):
        lines = [row["line"] for row in rows if row["reason"] == reason]
        where = f"line {', '.join(map(str, lines[:SHOWN]))}{' …' if len(lines) > SHOWN else ''}"
        found.append(f"{len(lines)} row{'s' * (len(lines) > 1)}, {where}: {reason}")
    return found


def described(content: Mapping[str, Any]) -> list[str]:
    """Notes on the logs that the rows come from; empty for a measured CSV."""
    return [str(line) for line in content.get("told", ())]


def group_head(group: Mapping[str, Any]) -> str:
    """A profile's name, its source rows, and how its errors are measured."""
    return f"{group['name']}: {group['rows']} rows, {group['models']} models; error: median (p90)"


def summary(content: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """A row per profile under `SUMMARY`: errors on models that the fit had not seen."""
    return [
        (g["name"], *(shares(g["errors"][phase]["held_out"]) for phase in PHASES), "no" if g["doubts"] else "yes")
        for g in content["groups"]
    ]


def rates(profile: Mapping[str, Any]) -> str:
    """The fitted numbers in a line."""
    low = {"int8": profile.get("compute_efficiency_int8"), "fp4": profile.get("compute_efficiency_fp4")}
    second = "".join(f" ({share:.3f} of the {peak.upper()} peak)" for peak, share in low.items() if share)
    request = profile["request_overhead"]
    return (
        f"compute efficiency {profile['compute_efficiency']:.3f}{second}, bandwidth efficiency {profile['bandwidth_efficiency']:.3f}, "
        f"overhead {profile['overhead'] * 1e3:.2f} us{f', {request:.0f} ms per request' if request else ''}"
    )


def apart(profile: Mapping[str, Any]) -> str:
    """Coefficients of prefill, attention and experts that the rows determine; empty where there are none."""
    told = []
    if "prefill_bandwidth_efficiency" in profile:
        told.append(f"prefill bandwidth efficiency {profile['prefill_bandwidth_efficiency']:.3f}")
    if "prefill_overhead" in profile:
        told.append(f"prefill overhead {profile['prefill_overhead'] * 1e3:.2f} us")
    compute, bandwidth = (profile.get(f"attention_{side}", 1.0) for side in ("compute", "bandwidth"))
    if (compute, bandwidth) != (1.0, 1.0):
        told.append(f"attention {compute:.2f} of these in compute, {bandwidth:.2f} in bandwidth")
    if "decode_attention_compute" in profile:
        told.append(f"in decoding {profile['decode_attention_compute']:.2f} in compute")
    if "cache_efficiency" in profile:
        told.append(f"cache efficiency {profile['cache_efficiency']:.3f}")
    if profile.get("experts"):
        told.append(
            f"experts {profile['expert_compute']:.2f} in compute, {profile['expert_bandwidth']:.2f} in bandwidth"
        )
        told.append(f"routing overlap {profile['routing_overlap']:.2f}")
    return ", ".join(told)


def phase_rows(group: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Errors of each phase that was measured, under `HEADER`."""
    return [
        _phase_row(phase, group["errors"][phase]) for phase in PHASES if group["errors"][phase]["in_sample"]["rows"]
    ]


def _phase_row(phase: str, errors: Mapping[str, Mapping[str, float]]) -> tuple[str, ...]:
    judged = errors["held_out"] if errors["held_out"]["rows"] else errors["in_sample"]
    cells = (judged["kendall"], judged["overshoot"], judged["overlap"])
    lines = (shares(errors[name]) for name in ("datasheet", "in_sample", "held_out"))
    return (phase, *lines, *("-" if math.isnan(cell) else f"{cell:.2f}" for cell in cells))


def shares(errors: Mapping[str, float]) -> str:
    """`1.2 % (3.4 %)`, or that nothing was held out."""
    return f"{100 * errors['median']:.1f} % ({100 * errors['p90']:.1f} %)" if errors["rows"] else "no held-out"


def remarks(group: Mapping[str, Any]) -> list[str]:
    """Rows that the fit misses, and what looks wrong."""
    misses = [(row["row"], row["error"]) for row in group["misfits"]]
    return [
        *(
            f"does not fit, {row}: predicted {100 * abs(e):.0f} % too {'slow' if e > 0 else 'fast'}"
            for row, e in misses
        ),
        *group["remarks"],
    ]


def served_head(group: Mapping[str, Any]) -> str:
    """Rows that a coefficient of serving was fitted to."""
    return f"{group['name']}: {group['rows']} rows, {group['models']} models; error: median (p90)"


def served_value(group: Mapping[str, Any], rate: float | None = None) -> str:
    """The coefficient in words; `rate` is the stated one of slow memory, bytes/s."""
    value = group["value"]
    if group["coefficient"] == "position_cost":
        return f"a further position of a step takes {value:.3g} of a plain step beside its operators (position_cost)"
    achieved = f", {value * rate / 1e9:.3g} GB/s" if rate else ""
    return f"slow bandwidth efficiency {value:.3f}{achieved}"


def served_row(group: Mapping[str, Any]) -> tuple[str, ...]:
    """Errors of milliseconds under `SERVED_HEADER`."""
    return ("decode", *(shares(group["errors"][name]) for name in ("before", "in_sample", "held_out")))


def energy_head(metered: Mapping[str, Any]) -> str:
    """Rows that coefficients of energy were fitted to."""
    rail = metered["coefficients"].get("rail", "")
    return f"{metered['name']}: {metered['rows']} rows, {metered['models']} models{f'; {rail}' if rail else ''}"


def joules(coefficients: Mapping[str, Any]) -> str:
    """The terms of energy."""
    per_byte = coefficients.get("per_byte", 0.0)
    byte = f" + {per_byte * 1e12:.3g} pJ a byte" if per_byte else ""
    return f"{coefficients['base_power']:.3g} W x time + {coefficients['per_flop'] * 1e12:.3g} pJ a FLOP{byte}"


def energy_row(metered: Mapping[str, Any]) -> tuple[str, ...]:
    """Errors of joules under `ENERGY_HEADER`."""
    found = (metered["errors"][name] for name in ("in_sample", "held_out", "times_predicted"))
    cells = (f"{100 * e['median']:.1f} % ({100 * e['worst']:.1f} %)" if e["rows"] else "-" for e in found)
    return ("energy", *cells)


def not_recommended(content: Mapping[str, Any]) -> list[str]:
    """Profiles and coefficients of energy that should not be used, with the reasons."""
    return [f"Not recommended, {g['name']}: {'; '.join(g['doubts'])}" for g in _everything(content) if g["doubts"]]


def _everything(content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*content["groups"], *content.get("served", ()), *content["energy"]]


def usage(content: Mapping[str, Any], file: str) -> str:
    """How to use what may be used; nothing where nothing may."""
    groups: Sequence[Mapping[str, Any]] = _everything(content)
    sound = [group["name"] for group in groups if not group["doubts"]]
    whose = "" if len(sound) == len(groups) else f" for {'; '.join(sound)}"
    mode = f"@{content['mode']}" if content["mode"] else ""
    return f"Use it{whose}: --device {file}{mode} --preset device" if sound else ""


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
