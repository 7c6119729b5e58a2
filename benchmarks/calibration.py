"""Calibration judged on public measurements of published models, each model left out in turn.

    PLAS_EXTERNAL_DATA=FOLDER python benchmarks/calibration.py            the table
    PLAS_EXTERNAL_DATA=FOLDER python benchmarks/calibration.py --profiles the profiles that ship, as YAML

FOLDER holds latency/measured_latency.csv, which is not part of the project.
"""

import argparse
import csv
import itertools
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from nas.errors import UsageError
from nas.files import yaml_source
from nas.study.catalogue import load_device, load_law
from objectives.device import Calibration, Device
from objectives.loss_law.law import Law
from plas_board.calibrate.command import LAW, resolve
from plas_board.calibrating.group import Calibrated, calibrate, groups, with_beside
from plas_board.calibrating.held_out import Group, choose
from plas_board.calibrating.measurements import LeftOut, Measurement, read
from plas_board.calibrating.terms import Terms, predict, terms
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray

BENCH = "trt-edge-llm-0.10.0-llm_bench"
RUNTIME = "trt-edge-llm-0.9.0-runtime"
#: The clocks that the figures of these boards fit; `maxn` is the catalogue's default mode.
DEVICES = {
    "jetson_orin_nano_8gb": "jetson_orin_nano_8gb_original",
    "jetson_orin_nx_16gb": "jetson_orin_nx_16gb@super",
    "jetson_orin_nano_super_8gb@MAXN": "jetson_orin_nano_super_8gb",
}
#: What the rows' short source names stand for.
SOURCES = {
    BENCH: "NVIDIA TensorRT-Edge-LLM 0.10.0 documentation, llm_bench, Apache-2.0",
    RUNTIME: "NVIDIA TensorRT-Edge-LLM 0.9.0 documentation, runtime with prompts of 51 to 55 tokens, Apache-2.0",
    "trt-edge-llm-0.4.0": "NVIDIA TensorRT-Edge-LLM 0.4.0 documentation, Apache-2.0",
    "smolperf-orin-nano": "YuvrajSingh-mist/smolperfbenchmark, CC-BY-4.0",
    "qualcomm-ai-hub-models": "Qualcomm AI Hub models, BSD-3",
}
Chosen = Callable[[Measurement, dict[str, str]], bool]


def public_rows(folder: Path) -> list[dict[str, str]]:
    """The public table with our device ids, engines without their variants and the static graphs' length."""
    with (folder / "latency" / "measured_latency.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["device"] = DEVICES.get(row["device"], row["device"])
        row["engine"] = row["engine"].partition("/")[0]
        context = re.search(r"graph compiled for ctx (\d+)", row["note"])
        row["attended_len"] = context[1] if context else ""
    return rows


def measurements(rows: Sequence[dict[str, str]], chosen: Chosen) -> dict[str, list[Measurement]]:
    """Chosen rows of devices in the catalogue, by device."""
    found: dict[str, list[Measurement]] = {}
    for m in read(_lines(rows), "", resolve)[0]:
        if chosen(m, rows[m.line - 2]):
            found.setdefault(m.device, []).append(m)
    return found


def unread(rows: Sequence[dict[str, str]]) -> list[LeftOut]:
    """Rows that are not used, with the reason."""
    return read(_lines(rows), "", resolve)[1]


def _lines(rows: Sequence[dict[str, str]]) -> list[str]:
    names = list(rows[0])
    return [",".join(names), *(_line([row[name] for name in names]) for row in rows)]


def _line(cells: Sequence[str]) -> str:
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)


@cache
def device(name: str) -> Device | None:
    """A device of the catalogue, or None."""
    try:
        return load_device(name)
    except UsageError:  # a device that the catalogue lacks is not calibrated
        return None


def calibrations(rows: Sequence[dict[str, str]], chosen: Chosen, *, request: bool = False) -> list[Calibrated]:
    """One calibration per device, mode, engine, format and batch of the chosen rows."""
    law, done = load_law(LAW), []
    for name, members in measurements(rows, chosen).items():
        known = device(name)
        for group, beside in with_beside(members) if known else ():
            assert known is not None
            source = rows[group[0].line - 2]["source"]
            source = SOURCES.get(source, source)
            done.append(calibrate(group, known, law, source, request=request, beside=beside, few=False))
    return done


def shares(
    done: Sequence[Calibrated], which: str, phase: str, among: Callable[[Measurement], bool] = lambda m: True
) -> FloatArray:
    """|predicted / measured − 1| of a phase over groups; rows without a prediction are left out."""
    parts = [np.zeros(0)]
    for group in done:
        here = np.array([m.phase == phase and among(m) for m in group.rows])
        error = np.abs(getattr(group, which)[here] / group.terms.ms[here] - 1.0)
        parts.append(error[np.isfinite(error)])
    return np.concatenate(parts)


def dense(m: Measurement) -> bool:
    """No experts."""
    return bool(m.architecture.n_experts[0] == 1)


@dataclass(frozen=True)
class Case:
    """Rows to judge, and the medians (prefill, decode) that held-out errors must stay within."""

    name: str
    chosen: Chosen
    most: tuple[float, float]
    request: bool = False


CASES = (
    Case("AGX Orin, TensorRT-Edge-LLM", lambda m, r: r["source"] == BENCH and "agx_orin" in m.device, (0.03, 0.03)),
    Case("NVIDIA edge, dense, batch 1", lambda m, r: r["source"] == BENCH and m.batch == 1 and dense(m), (0.08, 0.03)),
    Case("NVIDIA edge with MoE, batch 1", lambda m, r: r["source"] == BENCH and m.batch == 1, (0.10, 0.04)),
    Case("Orin Nano, llama.cpp, all modes", lambda m, r: r["source"] == "smolperf-orin-nano", (0.14, 0.19)),
    Case("the same, a constant per request", lambda m, r: r["source"] == "smolperf-orin-nano", (0.10, 0.18), True),
    Case("Qualcomm Genie, w4a16", lambda m, r: m.engine == "Genie" and r["precision"] == "w4a16", (0.20, 0.12)),
)


def unseen_device(rows: Sequence[dict[str, str]], known_models: int) -> tuple[FloatArray, FloatArray]:
    """Errors (prefill, decode) of a device calibrated from every choice of k of its models, on the others.

    Nothing of another device enters but the priors, which are the same for all.
    """
    law, prefill, decode = load_law(LAW), [np.zeros(0)], [np.zeros(0)]
    chosen = measurements(rows, CASES[1].chosen)
    for name, members in chosen.items():
        board = device(name)
        assert board is not None
        for group in groups(members).values():
            table, models = terms(group, board, law), np.array([m.model for m in group])
            for subset in itertools.combinations(sorted(set(models)), known_models):
                seen = np.isin(models, subset)
                if seen.all():
                    continue
                known, rest = Group(table.rows(seen), models[seen], board), table.rows(~seen)
                error = np.abs(predict(rest, known.fitted(choose(known).kept)) / rest.ms - 1.0)
                prefill.append(error[rest.requests > 0])
                decode.append(error[rest.requests == 0])
    return np.concatenate(prefill), np.concatenate(decode)


RULES: dict[str, Callable[[Architectures], Architectures]] = {
    "expected distinct experts": lambda x: x,
    "active experts alone": lambda x: _dense(x, int(x.top_k[0])),
    "all experts": lambda x: _dense(x, int(x.n_experts[0])),
}


def _dense(x: Architectures, experts: int) -> Architectures:
    """The architecture whose FFN reads so many experts for every token."""
    return replace(x, n_experts=x.n_experts * 0 + experts, top_k=x.top_k * 0 + experts)


def moe_batch(rows: Sequence[dict[str, str]], source: str) -> list[tuple[str, dict[str, float]]]:
    """MoE decode at batch 8 from the batch-1 calibration: predicted / measured under each rule of traffic."""
    law, found = load_law(LAW), []
    for name, members in measurements(rows, lambda m, r: r["source"] == source).items():
        board = device(name)
        assert board is not None
        for family in {m.format.family for m in members}:
            same = [m for m in members if m.format.family == family]
            single = [m for m in same if m.batch == 1]
            fitted = fitted_to(single, board, law)
            for m in same:
                if m.batch == 8 and m.phase == "decode" and not dense(m):
                    ratios = {
                        rule: _ratio(terms([replace(m, architecture=change(m.architecture))], board, law), fitted)
                        for rule, change in RULES.items()
                    }
                    found.append((f"{name}, {family}", ratios))
    return found


def fitted_to(rows: Sequence[Measurement], board: Device, law: Law) -> Calibration:
    """A calibration to rows, with the coefficients that earn their place among them."""
    group = Group(terms(rows, board, law), np.array([m.model for m in rows]), board)
    return group.fitted(choose(group).kept)


def _ratio(table: Terms, fitted: Calibration) -> float:
    return float(predict(table, fitted)[0] / table.ms[0])


def shipped(rows: Sequence[dict[str, str]]) -> dict[str, list[Calibration]]:
    """Profiles fit to ship: two models and both phases at least, a format that a study's precision stands for.

    Of short prompts, or with doubts, only where nothing else has its device, mode, precision and batch.
    """
    found: dict[str, list[Calibration]] = {}
    done = [
        group
        for group in calibrations(rows, lambda m, r: bool(m.format.study))
        if group.models > 1 and set(group.profile.held_out) == {"prefill", "decode"}
    ]
    sound = [group for group in done if not group.doubts() and SOURCES[RUNTIME] not in group.profile.source]
    covered = {_place(group) for group in sound}
    for group in done:
        if group in sound or _place(group) not in covered:
            found.setdefault(group.rows[0].device.partition("@")[0], []).append(group.profile)
    return found


def _place(group: Calibrated) -> tuple[str, str, int]:
    return group.rows[0].device, group.profile.precision, group.profile.batch


def main() -> None:
    """Print the table, or the profiles."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profiles", action="store_true", help="print the profiles that ship")
    rows = public_rows(Path(os.environ["PLAS_EXTERNAL_DATA"]))
    if parser.parse_args().profiles:
        content = {
            name: [p.model_dump(mode="json", exclude_defaults=True) for p in profiles]
            for name, profiles in shipped(rows).items()
        }
        print(yaml_source.dump(content))
        return
    print_cases(rows)
    print("\nA device unseen, calibrated from k of its models (NVIDIA edge, dense, batch 1)")
    for k in (1, 2, 3):
        prefill, decode = unseen_device(rows, k)
        print(f"  k = {k}: prefill {summary(prefill)}, decode {summary(decode)}")
    print("\nMoE decode at batch 8 from the batch-1 calibration, predicted / measured")
    for source in (BENCH, RUNTIME):
        for place, ratios in moe_batch(rows, source):
            print(f"  {source}, {place}: " + ", ".join(f"{rule} {ratio:.2f}" for rule, ratio in ratios.items()))


def print_cases(rows: Sequence[dict[str, str]]) -> None:
    """Median (90th percentile) per case: uncalibrated, in-sample and held out by model."""
    for case in CASES:
        done = calibrations(rows, case.chosen, request=case.request)
        print(f"{case.name} (medians at most {case.most[0]:.0%} and {case.most[1]:.0%})")
        for phase in ("prefill", "decode"):
            cells = (
                f"{which} {summary(shares(done, which, phase))}" for which in ("datasheet", "in_sample", "held_out")
            )
            print(f"  {phase:<8}{', '.join(cells)}")
            sparse = shares(done, "held_out", phase, lambda m: not dense(m))
            if len(sparse):
                print(f"  {phase:<8}MoE rows alone: held_out {summary(sparse)}")


def summary(error: FloatArray) -> str:
    """`4.1 % (p90 23.0 %, n 24)`."""
    return f"{100 * np.median(error):.1f} % (p90 {100 * np.quantile(error, 0.9):.1f} %, n {len(error)})"


if __name__ == "__main__":
    main()
