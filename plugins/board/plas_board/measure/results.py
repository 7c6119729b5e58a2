"""What a measurement found: the CSV that `calibrate` reads, a row per candidate and phase, and a file without names to give to others."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.files.tables import refuse_existing, write_json
from nas.study.baselines import baseline
from nas.study.catalogue import id_and_mode
from objectives.plugins import DISTRIBUTION, documents, normalised, version_of
from objectives.published_models import model_ids
from plas_board.calibrating.measurements import rows_text
from plas_board.calibrating.shared import KIND, VERSION, SharedDevice, SharedMeasurements, SharedRow
from plas_board.measure.request import MeasureRequest
from search_spaces.arrays import FloatArray

FIELDS = ("engine", "precision", "batch", "prompt_len", "gen_len", "metric", "value", "min", "q1", "q3", "samples")
FURTHER = ("energy_j", "rail", "memory_gb")
NOT_IN_IT = "no name of a host, user, candidate or folder, no path, no serial number, no time of day"
BUSY = 0.75  # CPU seconds per wall second and thread below which others had the processor
TIMES = ("candidate", "prefill_ms (quartiles)", "tpot_ms (quartiles)", "failed", "contended")
PHASES = {"prefill": ("prefill_ms", "prefill_ms"), "decode": ("tpot_ms", "decode_ms")}


def refuse_share(request: MeasureRequest) -> None:
    """Say before the work that the file to share could not be written after it.

    Raises:
        UsageError: not a new .json file in a folder that exists.
    """
    if request.share is None:
        return
    if request.share.suffix != ".json" or not request.share.parent.is_dir():
        raise UsageError(f"--share: expected a .json file in a folder that exists, got {request.share}; name another")
    refuse_existing("--share", request.share)


def share(
    path: Path, candidates: dict[str, dict[str, Any]], lines: list[dict[str, Any]], settings: dict[str, Any]
) -> list[str]:
    """Write the file; what is in it and what is not, in lines to show."""
    content = shared(candidates, lines, settings)
    write_json(path, content.model_dump(exclude_defaults=True))
    engines = dict.fromkeys(row.engine for row in content.rows)
    return [
        f"{path}, to give to others: {len(content.rows)} rows of {len({row.model for row in content.rows})} models, {content.month}",
        f"  in it: {content.device}; {', '.join(engines)}; medians, quartiles and the designs' columns",
        f"  not in it: {NOT_IN_IT}; read it before you give it on",
    ]


def shared(
    candidates: dict[str, dict[str, Any]], lines: list[dict[str, Any]], settings: dict[str, Any]
) -> SharedMeasurements:
    """The rows that were measured, models without a public name as design-1, design-2 …"""
    names = public_names(candidates)
    rows = [row for row in measured_rows(candidates, lines, settings) if row["state"] == "ok"]
    return SharedMeasurements(
        kind=KIND,
        version=VERSION,
        tool=f"{DISTRIBUTION} {version_of(DISTRIBUTION)}".removesuffix(" not installed"),
        month=datetime.now(UTC).strftime("%Y-%m"),
        device=_shared_device(settings["device"], lines[-1]["machine"]),
        rows=[_shared_row(row, names[row["model"]], candidates[row["model"]]) for row in rows],
    )


def public_names(candidates: dict[str, dict[str, Any]]) -> dict[str, str]:
    """What each candidate is called in a file for others: published models by their names, others by their number."""
    published = {baseline(name).label for name in model_ids()}
    own = [name for name in candidates if name not in published]
    return {name: name for name in candidates} | {name: f"design-{i}" for i, name in enumerate(own, 1)}


def _shared_device(name: str, machine: dict[str, Any]) -> SharedDevice:
    """The device as the system reports it; a name that is no key of the catalogue is somebody's own and left out."""
    key = normalised(id_and_mode(name)[0])
    return SharedDevice(
        id=key if key in documents("objectives.devices") else "",
        processor=str(machine.get("processor", ""))[:200],
        cores=int(machine.get("cores") or 0),
        system=str(machine.get("system", "")).partition("-")[0],
        power_mode=str(machine.get("power_mode", ""))[:200],
        governor=str(machine.get("governor", ""))[:200],
    )


def _shared_row(row: dict[str, Any], model: str, architecture: dict[str, Any]) -> SharedRow:
    values = {name: row[name] for name in (*FIELDS, *FURTHER) if name in row}
    columns = {name: value for name, value in architecture.items() if name != "device"}
    return SharedRow(model=model, architecture=columns, contended=row["contended"] == "yes", **values)


def measured_csv(
    candidates: dict[str, dict[str, Any]], lines: Sequence[dict[str, Any]], settings: dict[str, Any]
) -> str:
    """One row per candidate and phase, in order; `value` is the median over all rounds' samples."""
    return rows_text(measured_rows(candidates, lines, settings))


def measured_rows(
    candidates: dict[str, dict[str, Any]], lines: Sequence[dict[str, Any]], settings: dict[str, Any]
) -> list[dict[str, Any]]:
    """The rows of the CSV, those of whole requests last."""
    rows = [
        _row(name, architecture, phase, [line for line in lines if line["id"] == name], settings)
        for name, architecture in candidates.items()
        for phase in PHASES
    ]
    return rows + [row for name in candidates for row in _requests(name, candidates[name], lines, settings)]


def times(lines: Sequence[dict[str, Any]]) -> list[list[str]]:
    """A row per candidate under `TIMES`: medians over all rounds' samples with their quartiles, ms; how many rounds failed."""
    rows = []
    for name in dict.fromkeys(line["id"] for line in lines):
        own = [line for line in lines if line["id"] == name]
        good = [line["result"] for line in own if line["state"] == "ok"]
        row = [name]
        for _, key in PHASES.values():
            spread = quartiles(np.array([ms for r in good for ms in r[key]]))
            row.append(
                f"{spread['value']:.4g} ({spread['q1']:.4g} to {spread['q3']:.4g})" if spread["value"] != "" else "-"
            )
        busy = "yes" if any(map(contended, good)) else "no"
        rows.append([*row, str(len(own) - len(good)), busy if good else "-"])
    return rows


def request_times(results: Sequence[dict[str, Any]], output_tokens: int) -> dict[str, float]:
    """Times of a request by metric, ms, from the medians of all samples of workers' results."""
    prefill, step = (float(np.median([ms for r in results for ms in r[key]])) for key in ("prefill_ms", "decode_ms"))
    decode = step * output_tokens
    return {"prefill_ms": prefill, "tpot_ms": step, "decode_ms": decode, "total_ms": prefill + decode}


def _row(
    name: str, architecture: dict[str, Any], phase: str, lines: list[dict[str, Any]], settings: dict[str, Any]
) -> dict[str, Any]:
    metric, key = PHASES[phase]
    good = [line for line in lines if line["state"] == "ok"]
    samples = np.array([ms for line in good for ms in line["result"][key]])
    failed = [line["state"] for line in lines if line["state"] != "ok"]
    grown = max((line["result"].get("peak_bytes", 0) - line["result"].get("base_bytes", 0) for line in good), default=0)
    return {
        "model": name,
        "device": settings["device"],
        "engine": good[0]["result"].get("engine", settings["backend"]) if good else settings["backend"],
        "precision": settings["precision"],
        "batch": settings["batch"],
        "prompt_len": settings["input_tokens"],
        "gen_len": settings["output_tokens"] if phase == "decode" else 0,
        "metric": metric,
        **quartiles(samples),
        "samples": len(samples),
        "rounds": len(good),
        "contended": "yes" if any(contended(line["result"]) for line in good) else "no",
        "state": "ok" if good else (failed[-1] if failed else "not measured"),
        "failures": len(failed),
        **({"memory_gb": grown / 1e9} if grown > 0 and phase == "decode" else {}),
        **architecture,
    }


def _requests(
    name: str, architecture: dict[str, Any], lines: Sequence[dict[str, Any]], settings: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """A row of whole requests where their energy was metered: the medians of time and joules."""
    good = [line["result"] for line in lines if line["id"] == name and "request_j" in line["result"]]
    if good:
        own = [line for line in lines if line["id"] == name]
        samples = np.array([1e3 * (end - begin) for result in good for begin, end in result["requests_s"]])
        yield {
            **_row(name, architecture, "decode", own, settings),
            "metric": "total_ms",
            **quartiles(samples),
            "samples": len(samples),
            "rounds": len(good),
            "energy_j": float(np.median([result["request_j"] for result in good])),
            "rail": good[0]["rail"],
        }


def quartiles(samples: FloatArray) -> dict[str, Any]:
    """Median as `value`, with minimum and quartiles; empty without samples."""
    if not len(samples):
        return {"value": "", "min": "", "q1": "", "q3": ""}
    low, middle, high = np.quantile(samples, (0.25, 0.5, 0.75)).tolist()
    return {"value": middle, "min": float(samples.min()), "q1": low, "q3": high}


def contended(result: dict[str, Any]) -> bool:
    """Whether the worker's threads had less than `BUSY` of the processor; never where it is not reported.

    A worker that spends time on loading says instead how many processors others took that its threads needed.
    """
    threads, cpu, wall = (float(result.get(name) or 0) for name in ("threads", "cpu_s", "wall_s"))
    if "taken_cores" in result:
        return bool(float(result["taken_cores"] or 0) > (1.0 - BUSY) * threads)
    return bool(threads and cpu and wall and cpu < BUSY * wall * threads)
