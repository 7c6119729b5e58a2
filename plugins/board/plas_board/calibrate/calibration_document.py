"""A calibration: its report as plain content, and that report as a document for the terminal and the page."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from nas.document.document import Cell, Column, Document, Section, Table, figures, table_of
from plas_board.calibrating.energy import EnergyGroup
from plas_board.calibrating.group import PHASES, Calibrated, row_by_row, unseen_by
from plas_board.calibrating.served import ServedGroup
from search_spaces.arrays import FloatArray

DOUBTFUL = "doubtful=write"  # among the files: profiles that fail their own check are written too
MOST_LINES = 10  # lines of rows that are left out for one reason
PRIOR = "a prior: these rows hardly determine it"
ERRORS = (
    Column("error", words=True),
    Column("datasheet"),
    Column("in-sample", narrow="left out"),
    Column("held out"),
    *figures(dict.fromkeys(("Kendall's tau", "overshoot", "overlap"), ".2f")),
)
#: Coefficients that a group keeps where they lower held-out errors, by the profile's key: unit and meaning.
FURTHER = {
    "prefill_bandwidth_efficiency": (
        "of the datasheet's",
        "the same in the prefill; above 1 where fusion spares bytes",
    ),
    "prefill_overhead": ("µs per operator", "the same in the prefill"),
    "cache_efficiency": ("of the cache's bandwidth", "what decoding reaches of what the last-level cache holds"),
    "attention_compute": ("of the compute efficiency", "scores, softmax and values when compute-bound"),
    "attention_bandwidth": ("of the bandwidth efficiency", "scores, softmax and values when memory-bound"),
    "decode_attention_compute": ("of the compute efficiency", "the arithmetic of the same for one token at a time"),
    "scan_compute": ("of the compute efficiency", "the recurrence of linear attention in the prefill"),
    "expert_compute": ("of the compute efficiency", "products of routed experts when compute-bound"),
    "expert_bandwidth": ("of the bandwidth efficiency", "products of routed experts when memory-bound"),
    "routing_overlap": ("of further tokens", "choose experts that another token of the pass has chosen"),
    "request_overhead": ("ms per prefill", "what a server adds to each request"),
}
FITTED_AS = {
    "prefill_bandwidth_efficiency": "prefill_bandwidth",
    "prefill_overhead": "prefill_overhead_us",
    "request_overhead": "request_ms",
}
Content = Mapping[str, Any]


def calibration_document(content: Content) -> Document:
    """The device and its rows, every fit with its errors, and the rows that were not used."""
    parts = (*content.get("told", ()), *([summary(content)] if len(content["groups"]) > 1 else []), *left_out(content))
    fits = (group_section(content, group) for group in content["groups"])
    served = (served_section(content, group) for group in content.get("served", ()))
    return Document(
        head(content), (Section(head(content), parts), *fits, *served, *map(energy_section, content["energy"])), content
    )


def head(content: Content) -> str:
    """The device, and how many rows of the table were used."""
    used, elsewhere, mode = (content[name] for name in ("rows_used", "rows_of_other_devices", "mode"))
    others = f", {elsewhere} of other devices" if elsewhere else ""
    return f"{content['device']}{f'@{mode}' if mode else ''}: {used} rows of {content['table']}; {len(content['left_out'])} left out{others}"


def summary(content: Content) -> Table:
    """A row per profile: errors on models that the fit had not seen, and whether to use it."""
    columns = (Column("profile", words=True), *figures(dict.fromkeys(("models", "rows", *PHASES, "use"), ",")))
    rows = (
        (
            g["name"],
            g["models"],
            g["rows"],
            *(error(g["errors"][p]["held_out"]) for p in PHASES),
            "no" if g["doubts"] else "yes",
        )
        for g in content["groups"]
    )
    note = "Error: median (90th percentile) of models left out: each is predicted from the other models' rows."
    return Table(columns, tuple(rows), notes=(note,))


def left_out(content: Content) -> list[str]:
    """Each reason with the rows that it concerns."""
    by_reason: dict[str, list[str]] = {}
    for row in content["left_out"]:
        by_reason.setdefault(row["reason"], []).append(str(row["line"]))
    return [
        f"{len(lines)} row{'s' * (len(lines) > 1)}, line {', '.join(lines[:MOST_LINES])}{' …' * (len(lines) > MOST_LINES)}: {reason}"
        for reason, lines in sorted(by_reason.items())
    ]


def group_section(content: Content, group: Content) -> Section:
    """A profile: its coefficients, the errors of each phase that was measured, what looks wrong."""
    numbers = ", ".join(f"{name} {value:.4g} {unit}" for name, value, unit, *_ in coefficients(content, group))
    errors = {phase: group["errors"][phase] for phase in PHASES if group["errors"][phase]["in_sample"]["rows"]}
    misses = (
        f"Does not fit, {row['row']}: predicted {100 * abs(row['error']):.0f} % too {'slow' if row['error'] > 0 else 'fast'}"
        for row in group["misfits"]
    )
    table = Table(ERRORS, tuple(_phase_row(phase, by) for phase, by in errors.items()))
    return Section(_title(group), (numbers, table, *misses, *group["remarks"]))


def _title(group: Content, high: str = "p90") -> str:
    return f"{group['name']}: {group['rows']} rows, {group['models']} models; error: median ({high})"


def _phase_row(phase: str, errors: Content) -> tuple[Cell, ...]:
    orders = errors["held_out"] if errors["held_out"]["rows"] else errors["in_sample"]
    shares = (error(errors[name]) for name in ("datasheet", "in_sample", "held_out"))
    return (phase, *shares, *(orders[name] for name in ("kendall", "overshoot", "overlap")))


def error(errors: Content, high: str = "p90", none: str = "no held-out") -> str:
    """`1.2 % (3.4 %)`: the median and a high one; or that nothing was held out."""
    return f"{100 * errors['median']:.1f} % ({100 * errors[high]:.1f} %)" if errors["rows"] else none


def coefficients(content: Content, group: Content) -> Iterator[tuple[str, float, str, str, str, str]]:
    """Each number of a profile with its unit, the rate that it makes, whether the rows or a prior decided it, and its meaning."""
    profile, peaks, free = group["profile"], content["peaks"], group["fitted"]
    by = {phase: "rows" if phase in group["measurements"]["phase"] else PRIOR for phase in PHASES}
    for peak in ("fp16", "int8", "fp4"):
        if share := profile.get("compute_efficiency" if peak == "fp16" else f"compute_efficiency_{peak}"):
            unit = "TOP/s" if peak == "int8" else "TFLOP/s"
            rate = f"{share * peaks[peak] / 1e12:.4g} {unit}" if peak in peaks else ""
            meaning = "what matrix products reach when compute-bound: most of prefill"
            yield "compute efficiency", share, f"of the {peak.upper()} peak", rate, by["prefill"], meaning
    share = profile["bandwidth_efficiency"]
    rate, meaning = (
        f"{share * content['bandwidth'] / 1e9:.4g} GB/s",
        "what reading weights and KV cache reaches: most of decode",
    )
    yield "bandwidth efficiency", share, "of the datasheet's", rate, by["decode"], meaning
    decided, meaning = (
        "rows" if "overhead_us" in free else PRIOR,
        "launching one operator; counts most for small models",
    )
    yield "overhead", profile["overhead"] * 1e3, "µs per operator", "", decided, meaning
    for key, (unit, meaning) in FURTHER.items():
        if FITTED_AS.get(key, key) in free and key in profile:
            yield (
                key.replace("_", " "),
                profile[key] * (1e3 if unit.startswith("µs") else 1.0),
                unit,
                "",
                "rows",
                meaning,
            )
    if "memory_factor" in profile:
        unit = f"times the model's + {profile['engine_gb']:.3g} GB"
        yield "memory", profile["memory_factor"], unit, "", "rows", "what the engine holds while it runs"


def served_section(content: Content, group: Content) -> Section:
    """A coefficient of how models are served, with the errors of milliseconds."""
    value, rate = group["value"], content["slow_bandwidth"]
    words = f"slow bandwidth efficiency {value:.3f}" + (f", {value * rate / 1e9:.3g} GB/s" if rate else "")
    if group["coefficient"] == "position_cost":
        words = f"a further position of a step takes {value:.3g} of a plain step beside its operators (position_cost)"
    cells = ("decode", *(error(group["errors"][name]) for name in ("before", "in_sample", "held_out")))
    header = ("error", "before it was fitted", "in-sample", "held out")
    return Section(_title(group), (words, table_of(header, [cells]), *group["remarks"]))


def energy_section(metered: Content) -> Section:
    """Coefficients of energy, with the errors of joules."""
    terms = metered["coefficients"]
    rail, per_byte = terms.get("rail", ""), terms.get("per_byte", 0.0)
    byte = f" + {per_byte * 1e12:.3g} pJ a byte" if per_byte else ""
    words = f"{terms['base_power']:.3g} W x time + {terms['per_flop'] * 1e12:.3g} pJ a FLOP{byte}"
    cells = (
        "energy",
        *(error(metered["errors"][name], "worst", "-") for name in ("in_sample", "held_out", "times_predicted")),
    )
    table = table_of(("error", "in-sample", "held out", "its time predicted too"), [cells])
    return Section(_title(metered, "worst"), (f"{rail}: {words}" if rail else words, table, *metered["remarks"]))


def not_recommended(content: Content) -> list[str]:
    """Profiles and coefficients of energy that should not be used, with the reasons, and what writes them all the same."""
    how = "" if content.get("doubtful") else f"; not written, {DOUBTFUL} among the files writes it"
    return [
        f"Not recommended, {g['name']}: {'; '.join(g['doubts'])}{how if 'profile' in g else ''}"
        for g in _fits(content)
        if g["doubts"]
    ]


def _fits(content: Content) -> Sequence[Content]:
    return [*content["groups"], *content.get("served", ()), *content["energy"]]


def usage(content: Content, file: str) -> str:
    """How to use what may be used; nothing where nothing may."""
    fits = _fits(content)
    sound = [group["name"] for group in fits if not group["doubts"]]
    whose = "" if len(sound) == len(fits) else f" for {'; '.join(sound)}"
    mode = f"@{content['mode']}" if content["mode"] else ""
    return f"Use it{whose}: --device {file}{mode} --preset device" if sound else ""


def group_report(group: Calibrated) -> dict[str, Any]:
    """Profile, errors by phase and prediction, the rows that do not fit, and all rows as columns."""
    predictions = {"datasheet": group.datasheet, "in_sample": group.in_sample, "held_out": group.held_out}
    by_phase = {phase: {name: asdict(group.errors(phase, ms)) for name, ms in predictions.items()} for phase in PHASES}
    return _report(group, by_phase) | {
        "profile": group.profile.model_dump(mode="json", exclude_none=True),
        "misfits": [{"row": m.place, "error": error} for m, error in group.misfits()],
        "fitted": list(group.free.names),
        "largest_efficiency": group.free.largest,
        "unseen_by": unseen_by(group),
        "measurements": row_by_row(group),
    }


def served_report(group: ServedGroup) -> dict[str, Any]:
    """The coefficient, errors of milliseconds: median, 90th percentile and of how many rows, and the rows as columns."""
    predictions = {"before": group.before, "in_sample": group.in_sample, "held_out": group.held_out}
    names = ("line", "model", "slow_share", "drafted", "accepted")
    return _report(group, _by_prediction(("median", "p90", "rows"), predictions, group.errors)) | {
        "coefficient": group.coefficient,
        "value": group.value,
        "measurements": {
            **{name: [getattr(m, name) for m in group.rows] for name in names},
            "measured_ms": group.measured.tolist(),
            **{f"{name}_ms": ms.tolist() for name, ms in predictions.items()},
        },
    }


def energy_report(group: EnergyGroup) -> dict[str, Any]:
    """Coefficients, and errors of joules: median, worst and of how many rows."""
    predictions = {"in_sample": group.in_sample, "held_out": group.held_out, "times_predicted": group.from_times}
    errors = _by_prediction(("median", "worst", "rows"), predictions, group.errors)
    return _report(group, errors) | {"coefficients": group.energy.model_dump(mode="json", exclude_none=True)}


def _report(group: Calibrated | ServedGroup | EnergyGroup, errors: Mapping[Any, Any]) -> dict[str, Any]:
    """What every fit says of itself."""
    own = {"name": group.name, "rows": len(group.rows), "models": group.models, "errors": errors}
    return own | {"remarks": group.remarks(), "doubts": group.doubts()}


def _by_prediction(
    labels: tuple[str, ...],
    predictions: Mapping[str, FloatArray],
    errors: Callable[[FloatArray], tuple[float, float, int]],
) -> dict[str, dict[str, float]]:
    """The errors of each prediction, by their names."""
    return {name: dict(zip(labels, errors(predicted), strict=True)) for name, predicted in predictions.items()}
