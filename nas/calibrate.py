"""Fit a device's achieved share of its datasheet to measured latencies, and say how wrong it is."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nas.terminal import options as o

if TYPE_CHECKING:
    from nas.work.calibrate import Outcome
    from objectives.calibrating.group import Calibrated
    from objectives.calibrating.held_out import Errors
    from objectives.device import Calibration

SHOWN = 10


def calibrate(
    measured: Annotated[
        Path, typer.Argument(help="CSV of measured latencies, or an export whose bench.sh ran.", show_default=False)
    ],
    device: Annotated[str, typer.Option("--device", help="Device id, id@mode, or YAML file.", show_default=False)],
    out: Annotated[Path | None, typer.Option("--out", help="Device file to write.", show_default=False)] = None,
    request: Annotated[
        bool, typer.Option("--request-overhead", help="Fit a constant per request too (times from a server).")
    ] = False,
    contended: Annotated[
        bool, typer.Option("--contended", help="Use rows too that were measured while others had the processor.")
    ] = False,
    json: o.Json = False,
) -> None:
    """Fit a device's achieved share of its datasheet to measured latencies."""
    from nas.study.catalogue import id_and_mode
    from nas.terminal.console import notice, say_json
    from nas.work.calibrate import calibrate_file

    base, mode = id_and_mode(device)
    target = out or Path(f"{Path(base).stem}_calibrated.yaml")
    outcome = calibrate_file(measured, device, target, request=request, contended=contended)
    if json:
        say_json(outcome.report())
    else:
        print_outcome(outcome, measured)
    doubts = {group.name: group.doubts() for group in outcome.groups}
    for name, why in doubts.items():
        if why:
            notice(f"Not recommended, {name}: {'; '.join(why)}")
    sound = [name for name, why in doubts.items() if not why]
    whose = "" if len(sound) == len(doubts) else f" for {'; '.join(sound)}"
    use = f" Use it{whose}: --device {target}{'@' * bool(mode)}{mode} --preset device" if sound else ""
    notice(f"Written: {target}.{use}")


def print_outcome(outcome: "Outcome", measured: Path) -> None:
    """Groups with their errors, and the rows that were not used."""
    from nas.terminal.console import say

    used = sum(len(group.rows) for group in outcome.groups)
    others = f", {outcome.elsewhere} of other devices" if outcome.elsewhere else ""
    mode = f"@{outcome.mode}" if outcome.mode else ""
    say(
        f"{outcome.device.name}{mode}: {used} rows of {measured.resolve().name}; {len(outcome.left_out)} left out{others}"
    )
    for reason in sorted({row.reason for row in outcome.left_out}):
        lines = [row.line for row in outcome.left_out if row.reason == reason]
        where = f"line {', '.join(map(str, lines[:SHOWN]))}{' …' if len(lines) > SHOWN else ''}"
        say(f"  {len(lines)} row{'s' * (len(lines) > 1)}, {where}: {reason}")
    for group in outcome.groups:
        print_group(group)


def print_group(group: "Calibrated") -> None:
    """One profile with its errors by phase."""
    from nas.terminal.console import say
    from nas.terminal.tables import table

    p = group.profile
    say()
    say(f"{group.name}: {len(group.rows)} rows, {group.models} models")
    low = {"int8": p.compute_efficiency_int8, "fp4": p.compute_efficiency_fp4}
    second = "".join(f" ({share:.3f} of the {peak.upper()} peak)" for peak, share in low.items() if share)
    constant = f", {p.request_overhead:.0f} ms per request" if p.request_overhead else ""
    say(
        f"  compute efficiency {p.compute_efficiency:.3f}{second}, bandwidth efficiency {p.bandwidth_efficiency:.3f}, "
        f"overhead {p.overhead * 1e3:.2f} us{constant}"
    )
    if apart := coefficients_apart(p):
        say(f"  {apart}")
    header = ("error, median (p90)", "datasheet", "in-sample", "held out", "Kendall's tau", "overshoot", "overlap")
    table(header, [row for phase in ("prefill", "decode") if (row := phase_row(group, phase))])
    for m, error in group.misfits():
        say(f"  does not fit, {m.place}: predicted {100 * abs(error):.0f} % too {'slow' if error > 0 else 'fast'}")
    for remark in group.remarks():
        say(f"  {remark}")


def coefficients_apart(p: "Calibration") -> str:
    """Coefficients of prefill, attention and experts that the rows told; empty where there are none."""
    told = []
    if p.prefill_bandwidth_efficiency is not None:
        told.append(f"prefill bandwidth efficiency {p.prefill_bandwidth_efficiency:.3f}")
    if p.prefill_overhead is not None:
        told.append(f"prefill overhead {p.prefill_overhead * 1e3:.2f} us")
    if (p.attention_compute, p.attention_bandwidth) != (1.0, 1.0):
        told.append(
            f"attention {p.attention_compute:.2f} of these in compute, {p.attention_bandwidth:.2f} in bandwidth"
        )
    if p.experts:
        told.append(f"experts {p.expert_compute:.2f} in compute, {p.expert_bandwidth:.2f} in bandwidth")
        told.append(f"routing overlap {p.routing_overlap:.2f}")
    return ", ".join(told)


def phase_row(group: "Calibrated", phase: str) -> tuple[str, ...]:
    """Cells of one phase; empty where none was measured."""
    datasheet, inside, unseen = (
        group.errors("prefill" if phase == "prefill" else "decode", ms)
        for ms in (group.datasheet, group.in_sample, group.held_out)
    )
    if not inside.rows:
        return ()
    judged = unseen if unseen.rows else inside
    cells = (judged.kendall, judged.overshoot, judged.overlap)
    return (phase, *map(shares, (datasheet, inside, unseen)), *("-" if math.isnan(c) else f"{c:.2f}" for c in cells))


def shares(e: "Errors") -> str:
    """`1.2 % (3.4 %)`, or a dash."""
    return f"{e.median:.1%} ({e.p90:.1%})".replace("%", " %") if e.rows else "no held-out"


main = o.command(calibrate, "calibrate measured/measured.csv --device raspberry_pi_5 --out my_pi.yaml")
if __name__ == "__main__":
    main()
