"""Speculation and experts in slow memory as the model of times has them, against published rows.

    python -m studies.serving [FOLDER]

Rows with an open licence lie in `rows`; FOLDER holds speculation.csv and offload.csv of the same columns with further ones.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from nas.search.assembly import assemble
from nas.study.baselines import model_named
from nas.study.layers import layered
from objectives.assessment import Assessment
from objectives.device import Device, SlowMemory
from objectives.profile_choice import calibration_for
from objectives.scenario import Scenario
from objectives.serving import Acceptance, Serving, typical_serving

OWN = Path(__file__).parent / "rows"
COMPUTE = {"gpu": 0.12, "soc": 0.06}  # TFLOP/s per GB/s, of boards of which a row states the bandwidth alone
UNSTATED = 900.0  # GB/s
RATES = np.geomspace(8.0, 150.0, 60)  # GB/s of slow memory that are tried


@cache
def scenario_of(precision: str, bandwidth: float, chip: str) -> Scenario:
    """A request of 200 tokens in and 192 out on a board of a bandwidth, GB/s, with what is typical of its class."""
    flags = {"preset": "device", "algo": "random", "precision": precision, "vocabulary": 1000}
    raw, _ = layered({**flags, "input_tokens": 200, "output_tokens": 192}, [], None)
    plain = assemble({**raw, "params": {}}, {}).problem.scenario
    figures = {"fp16": f"{COMPUTE[chip] * bandwidth} TFLOP/s", "int8": f"{2 * COMPUTE[chip] * bandwidth} TOP/s"}
    board = Device.model_validate(
        {"name": "board", **figures, "bandwidth": f"{bandwidth} GB/s", "memory": "512 GB", "chip": chip}
    )
    return replace(plain, device=board, calibration=calibration_for(board, plain.conditions(experts=False))[0])


def step_ms(model: str, scenario: Scenario, serving: Serving) -> float:
    """Milliseconds a token of a published model that is served so."""
    return float(Assessment(model_named(model).architecture, scenario.served(serving))["tpot_ms"][0])


def speedup(row: "pd.Series[float]", *, further: bool = True) -> float:
    """Predicted speed-up of a row with its own acceptance; without `further` at the bytes of a step alone."""
    rate = row["bandwidth_gbs"] if row["bandwidth_gbs"] > 0 else UNSTATED
    scenario = scenario_of(row["format"], float(rate), row["chip"])
    known, n = typical_serving(), int(row["drafted"])
    drafting = replace(
        known, speculation=f"mtp:{n}", acceptance={"mtp": Acceptance(shares={n: float(row["acceptance"])})}
    )
    drafting = drafting if further else replace(drafting, position_bits=0.0)
    return step_ms(row["model"], scenario, known) / step_ms(row["model"], scenario, drafting)


def rows_of(name: str, folder: Path | None) -> pd.DataFrame:
    """The rows that ship and those of a folder."""
    paths = [OWN / name, *([folder / name] if folder else [])]
    return pd.concat([pd.read_csv(path) for path in paths], ignore_index=True)


def errors(of: Iterable[float]) -> str:
    """`10.4 % (35.7 %)`: median and 90th percentile of |predicted / measured - 1|."""
    found = np.abs(np.array(list(of)) - 1.0)
    return f"{100 * np.median(found):.1f} % ({100 * np.quantile(found, 0.9):.1f} %), n {len(found)}"


def deciles(of: Iterable[float]) -> str:
    """Deciles of measured / predicted decode times, as `objectives/transfers.py` has them, from the least to the largest."""
    return ", ".join(f"{each:.2f}" for each in np.quantile(np.array(list(of)), np.linspace(0.0, 1.0, 11)))


def acceptance(folder: Path | None) -> Iterator[str]:
    """The line of what a stated acceptance is worth: published first positions in place of the one that ships, at two tokens."""
    first = rows_of("acceptance.csv", folder)["first"]
    ours = 1.0 + typical_serving().acceptance["mtp"].accepted(2)
    times = [ours / (1.0 + Acceptance(each).accepted(2)) for each in first]
    ends = np.quantile(first, [0.1, 0.5, 0.9])
    yield f"first position accepted, {len(first)} published: {ends[1]:.2f}, 80 % {ends[0]:.2f} to {ends[2]:.2f}; deciles of time {deciles(times)}"


def speculation(folder: Path | None) -> Iterator[str]:
    """Lines of the speed-ups, dense designs and those with experts apart."""
    rows = rows_of("speculation.csv", folder)
    rows["predicted"] = [speedup(row) for _, row in rows.iterrows()]
    rows["by bytes"] = [speedup(row, further=False) for _, row in rows.iterrows()]
    rows["design"] = ["experts" if model_named(m).architecture.n_experts[0] > 1 else "dense" for m in rows["model"]]
    rows["metal"] = rows["backend"] == "metal"
    for (design, metal), group in rows.groupby(["design", "metal"]):
        for kind in ("predicted", "by bytes"):
            ratio = group[kind] / group["speedup"]
            ends = np.quantile(1.0 / ratio, [0.1, 0.9])
            where = " on Metal" if metal else ""
            yield f"speed-up, {design}{where}, {kind}: {errors(ratio)}; measured / predicted 80 %: {ends[0]:.2f} to {ends[1]:.2f}"
        yield f"  deciles of time {deciles(group['predicted'] / group['speedup'])}"
    judged = rows[(rows["role"] == "judge") & ~rows["metal"]]
    for design, group in judged.groupby("design"):
        yield f"speed-up, {design}, kept for judging: {errors(group['predicted'] / group['speedup'])}"


@dataclass(frozen=True)
class Offloaded:
    """A row of a model with the experts of some layers in slow memory."""

    machine: str
    model: str
    scenario: Scenario
    share: int
    ms: float

    def predicted(self, rate: float) -> float:
        """Milliseconds a token with slow memory of a rate, GB/s."""
        memory = SlowMemory.model_validate({"bandwidth": f"{rate} GB/s", "capacity": "1 TB"})
        board = self.scenario.device.model_copy(update={"slow_memory": memory})
        return step_ms(self.model, replace(self.scenario, device=board), Serving(experts_in=f"slow:{self.share}%"))


def fitted(rows: list[Offloaded]) -> float:
    """The rate of slow memory by which rows are least off in the median, then in squares, GB/s."""
    off = [np.log([row.predicted(rate) / row.ms for row in rows]) for rate in RATES]
    return float(RATES[int(np.argmin([np.median(np.abs(each)) + 1e-3 * np.mean(each**2) for each in off]))])


def offload(folder: Path | None) -> Iterator[str]:
    """Lines of decode with slow experts: each row from the others of its machine, and from its other models."""
    machines: dict[str, list[Offloaded]] = {}
    for _, row in rows_of("offload.csv", folder).iterrows():
        rate = row["bandwidth_gbs"] if row["bandwidth_gbs"] > 0 else UNSTATED
        share = min(100, max(1, round(100 * row["slow_layers"] / row["layers"])))
        scenario = scenario_of(row["format"], float(rate), "gpu")
        one = Offloaded(row["machine"], row["model"], scenario, share, 1e3 / row["tokens_per_second"])
        machines.setdefault(one.machine, []).append(one)
    left: list[float] = []
    others: list[float] = []
    for rows in machines.values():
        for i, row in enumerate(rows):
            rest = rows[:i] + rows[i + 1 :]
            left += [row.predicted(fitted(rest)) / row.ms] if rest else []
            unlike = [other for other in rows if other.model != row.model]
            others += [row.predicted(fitted(unlike)) / row.ms] if unlike else []
    rates = [fitted(rows) for rows in machines.values()]
    typical = float(np.median(rates))
    every = [row.predicted(typical) / row.ms for rows in machines.values() for row in rows]
    times = deciles(1.0 / np.array(left)) if left else "none"
    yield f"slow experts, from other rows of the machine: {errors(left) if left else 'none'}; deciles of time {times}"
    yield f"slow experts, from other models of the machine: {errors(others) if others else 'none'}"
    ends = np.quantile(rates, [0.1, 0.9])
    yield f"slow memory of {len(rates)} machines: {typical:.0f} GB/s, 80 % {ends[0]:.0f} to {ends[1]:.0f}; at it {errors(every)}"
    yield f"  deciles of time {deciles(1.0 / np.array(every))}"


def main() -> None:
    """Print every line."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    for line in (*acceptance(folder), *speculation(folder), *offload(folder)):
        print(line)


if __name__ == "__main__":
    main()
