"""Raw samples become the CSV that `calibrate` reads: a row per candidate and phase."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nas.files.tables import csv_text
from search_spaces.arrays import FloatArray

BUSY = 0.75  # CPU seconds per wall second and thread below which others had the processor
TIMES = ("candidate", "prefill_ms (quartiles)", "tpot_ms (quartiles)", "failed", "contended")
PHASES = {"prefill": ("prefill_ms", "prefill_ms"), "decode": ("tpot_ms", "decode_ms")}


def measured_csv(
    candidates: dict[str, dict[str, Any]], lines: Sequence[dict[str, Any]], settings: dict[str, Any]
) -> str:
    """One row per candidate and phase, in order; `value` is the median over all rounds' samples."""
    rows = measured_rows(candidates, lines, settings)
    names = list(dict.fromkeys(column for row in rows for column in row))
    return csv_text({name: [row.get(name, "") for row in rows] for name in names})


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
    found = []
    for name in dict.fromkeys(line["id"] for line in lines):
        own = [line for line in lines if line["id"] == name]
        good = [line["result"] for line in own if line["state"] == "ok"]
        cells = [_spread(quartiles(np.array([ms for r in good for ms in r[key]]))) for _, key in PHASES.values()]
        busy = "yes" if any(map(contended, good)) else "no"
        found.append([name, *cells, str(len(own) - len(good)), busy if good else "-"])
    return found


def _spread(found: dict[str, Any]) -> str:
    return f"{found['value']:.4g} ({found['q1']:.4g} to {found['q3']:.4g})" if found["value"] != "" else "-"


def _row(
    name: str, architecture: dict[str, Any], phase: str, lines: list[dict[str, Any]], settings: dict[str, Any]
) -> dict[str, Any]:
    metric, key = PHASES[phase]
    good = [line for line in lines if line["state"] == "ok"]
    samples = np.array([ms for line in good for ms in line["result"][key]])
    failed = [line["state"] for line in lines if line["state"] != "ok"]
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
