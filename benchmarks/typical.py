"""Typical efficiencies of classes of chips: how they are estimated from the public measurements, and judged by devices left out whole.

    PLAS_EXTERNAL_DATA=FOLDER python -m benchmarks.typical          errors of devices that were left out
    PLAS_EXTERNAL_DATA=FOLDER python -m benchmarks.typical --write  objectives/typical/efficiencies.yaml as well

FOLDER holds latency/measured_latency.csv and latency/devices3/m_*.csv, which are not part of the project. Rows are those of
devices of the catalogue at batch 1 in their default power mode, a group for each device, engine and format.

The form, chosen on the same rows among some thirty variants of its effects and of `SHAPE`: a phase takes exp(y) times what
`SHAPE` predicts, with y = level + class of chip + family of formats + engine of that class + device + rest, each but the level
normal about 0. A group's y is the median over its rows. The standard deviations are of the largest restricted likelihood, with
log(sd) normal about `USUAL`, as classes and engines are few.
Of a class the left-out devices' residuals are divided by a scale of its own and phase, exp(n/(n + `SHRUNK`) ln(r)) with r the median |residual|
of its n devices over that of all: a partially pooled spread. A class of which no device was seen has the residuals as they are. The scale is shipped where `print_coverage` says that upper ends hold
nearer to their rate with it.
A device of which nothing is known has no term of its own: its variance is in the spread. Without an engine it has one of those that
devices of its class were seen with.
"""

import argparse
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import numpy as np
from scipy.optimize import minimize

from benchmarks.calibration import device, measurements, public_rows
from nas.calibrate.command import LAW, resolve
from nas.files import yaml_source
from nas.search.assembly import assemble
from nas.study.catalogue import load_law
from objectives.calibrating.efficiencies import class_priors
from objectives.calibrating.group import PHASES, calibrate, groups
from objectives.calibrating.held_out import Group, choose, leave_one_out
from objectives.calibrating.measurements import Measurement, read
from objectives.calibrating.terms import Terms, predict, terms
from objectives.counts import total
from objectives.device import Calibration, Chip, Phase
from objectives.engines import engine_of
from objectives.measured_bounds import beyond, conformal_factor
from objectives.typical.efficiencies import FAMILIES, Cell, Level, Typical, family_of, profile_of
from search_spaces.arrays import AnyArray, FloatArray

#: What phases are of before classes differ: efficiencies and overheads that `calibrate` begins from, and an attention core at 40 %
#: of the compute and half of the bandwidth of other operators, the best of a few pairs tried.
SHAPE = Calibration(
    compute_efficiency=0.5,
    bandwidth_efficiency=0.8,
    overhead=0.005,
    prefill_overhead=0.015,
    attention_compute=0.4,
    attention_bandwidth=0.5,
    expert_bandwidth=0.9,
    routing_overlap=0.45,
)
USUAL, LOOSE = np.log(0.3), 1.0
SHRUNK = 4.0  # devices of a class that weigh as much as those of all
SHARE = Fraction(8, 10)
KEPT = (0.1, 0.3, 0.5, 0.7, 0.9)  # quantiles that stand for the rows of a device
FILES = {"m_5070.csv": "rtx_5070", "m_xt.csv": "rx_7900_xt", "m_rk3588.csv": "rk3588_npu"}
TARGET = Path(__file__).parents[1] / "objectives" / "typical" / "efficiencies.yaml"


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one device, engine and format."""

    device: str
    chip: Chip
    family: str
    engine: str
    measured: Sequence[Measurement]
    terms: Terms

    @cached_property
    def off(self) -> FloatArray:
        """log(measured / predicted) under the shape, (n,)."""
        return np.log(self.terms.ms / predict(self.terms, SHAPE))

    def of(self, phase: Phase) -> Any:
        """Which rows are of a phase."""
        return (self.terms.requests > 0) == (phase == "prefill")


def public_groups(folder: Path) -> list[Rows]:
    """Every group of the tables."""
    found = measurements(public_rows(folder), lambda m, r: m.batch == 1)
    for name, of in FILES.items():
        with (folder / "latency" / "devices3" / name).open(encoding="utf-8") as file:
            found[of] = read(file.read().splitlines(), of, resolve)[0]
    law, made = load_law(LAW), []
    for name, members in found.items():
        known = device(name)
        if known is None or (known.mode and known.mode != "super"):
            continue
        for (engine, _, _), rows in groups(members).items():
            family = family_of(rows[0].format.precision)
            made.append(
                Rows(name.partition("@")[0], known.chip, family, engine_of(engine), rows, terms(rows, known, law))
            )
    return made


Terms_of = Callable[[Rows], tuple[str, ...]]
EFFECTS: tuple[Terms_of, ...] = (
    lambda g: (g.chip,),
    lambda g: (g.family,),
    lambda g: (g.chip, g.engine),
    lambda g: (g.device,),
)


@dataclass(frozen=True, eq=False)
class Mixed:
    """The form fitted to one phase: groups, their weights on the residuals, standard deviations of the effects and of the rest."""

    seen: Sequence[Rows]
    level: float
    sds: FloatArray
    inverse: FloatArray
    weights: FloatArray

    def at(self, chip: Chip, family: str, engine: str) -> Level:
        """The median and the standard deviation of a device that was not seen; `any` chip and the engine "" are any that was, in equal parts of devices."""
        seen = {(g.chip, g.engine, g.device) for g in self.seen if chip in ("any", g.chip) and engine in ("", g.engine)}
        means, variances = np.array(
            [self._one(of, family, by) for of, by, _ in sorted(seen)] or [self._one(chip, family, engine)]
        ).T
        return Level(ratio=_rounded(np.exp(means.mean())), sd=_rounded(np.sqrt(variances.mean() + means.var())))

    def _one(self, chip: Chip, family: str, engine: str) -> tuple[float, float]:
        """Mean and variance of y of a class with an engine."""
        wanted, shared = (
            replace(self.seen[0], device="", chip=chip, family=family, engine=engine),
            np.zeros(len(self.seen)),
        )
        for effect, sd in zip(EFFECTS[:-1], self.sds, strict=False):
            shared += sd**2 * np.array([effect(g) == effect(wanted) for g in self.seen], dtype=float)
        left = float((self.sds**2).sum()) - shared @ self.inverse @ shared
        return self.level + float(shared @ self.weights), float(left)


def fitted(found: Sequence[Rows], phase: Phase) -> Mixed:
    """The form on the groups that have rows of a phase."""
    seen = [g for g in found if g.of(phase).any()]
    y = np.array([np.median(g.off[g.of(phase)]) for g in seen])
    alike = [np.array([[f(a) == f(b) for b in seen] for a in seen], dtype=float) for f in EFFECTS]
    ones = np.ones(len(y))

    def solved(logs: FloatArray) -> tuple[FloatArray, float, FloatArray, float]:
        covariance = np.exp(2 * logs[-1]) * np.eye(len(y)) + sum(
            np.exp(2 * s) * z for s, z in zip(logs, alike, strict=False)
        )
        inverse = np.linalg.inv(covariance)
        information = float(ones @ inverse @ ones)
        level = float(ones @ inverse @ y) / information
        rest = y - level
        deviance = np.linalg.slogdet(covariance)[1] + np.log(information) + rest @ inverse @ rest
        return inverse, level, inverse @ rest, 0.5 * float(deviance)

    def cost(logs: FloatArray) -> float:
        return solved(logs)[3] + 0.5 * float((((logs - USUAL) / LOOSE) ** 2).sum())

    start = np.full(len(EFFECTS) + 1, USUAL)
    logs = minimize(cost, start, method="L-BFGS-B", bounds=[(-5.0, 1.0)] * len(start)).x
    inverse, level, weights, _ = solved(logs)
    return Mixed(seen, level, np.exp(logs), inverse, weights)


Scales = Mapping[tuple[str, Phase], float]


def made(
    found: Sequence[Rows],
    cells: Iterable[tuple[Chip, str, str]],
    residuals: Mapping[bool, dict[Phase, list[float]]],
    scales: Mapping[bool, Scales] = MappingProxyType({}),
    unscaled: Mapping[Phase, list[float]] = MappingProxyType({}),
) -> Typical:
    """What is shipped, of these groups; residuals and scales of classes with an engine stated and without; residuals of classes without a scale."""
    forms = {phase: fitted(found, phase) for phase in PHASES}
    return Typical(
        shape=SHAPE,
        devices=len({g.device for g in found}),
        rows=sum(len(g.terms.ms) for g in found),
        residuals=residuals.get(False, {}),
        with_engine=residuals.get(True, {}),
        unscaled=dict(unscaled),
        cells=[
            Cell(
                chip=chip,
                family=family,
                engine=engine,
                **{
                    p: forms[p]
                    .at(chip, family, engine)
                    .model_copy(update={"scale": scales.get(bool(engine), {}).get((chip, p))})
                    for p in PHASES
                },
            )
            for chip, family, engine in cells
        ],
        source="benchmarks/typical.py on public tables",
    )


def cells_of(found: Sequence[Rows]) -> Iterator[tuple[Chip, str, str]]:
    """Every class and family, with no engine and with each that was seen in the class."""
    for chip in get_args(Chip):
        engines = sorted({g.engine for g in found if g.chip == chip})
        for family in FAMILIES:
            yield from ((chip, family, engine) for engine in ("", *engines))


@dataclass(frozen=True)
class Judged:
    """A row of a device that was left out: log(measured / predicted), and its standard deviation."""

    device: str
    chip: Chip
    phase: Phase
    off: float
    sd: float


def left_out(found: Sequence[Rows], *, engines: bool) -> list[Judged]:
    """Every row predicted from the other devices, with its engine or as of an engine that is not stated."""
    judged = []
    for name in sorted({g.device for g in found}):
        here, others = [g for g in found if g.device == name], [g for g in found if g.device != name]
        asked = [(g.chip, g.family, g.engine if engines else "") for g in here]
        known = made(others, dict.fromkeys(asked), {})
        for group, (chip, family, engine) in zip(here, asked, strict=True):
            cell = known.cell(chip, family, engine)
            off = np.log(group.terms.ms / predict(group.terms, profile_of(known, cell)))
            judged += [
                Judged(name, chip, phase, float(value), cell.level(phase).sd)
                for phase in PHASES
                for value in off[group.of(phase)]
            ]
    return judged


def few_rows(group: Rows) -> AnyArray:
    """Three rows of a log: both phases of the smallest model and decoding of the largest; of one model at its shortest and its longest."""
    sizes = [float(total(m.architecture)[0]) for m in group.measured]
    order = np.lexsort((group.terms.lengths, sizes))
    prefills, decodes = (order[group.of(phase)[order]] for phase in PHASES)
    seen: AnyArray = np.zeros(len(sizes), dtype=np.bool_)
    seen[np.concatenate([prefills[:1], decodes[:1], decodes[-1:]])] = True
    return seen


def narrowed(found: Sequence[Rows]) -> dict[str, list[Judged]]:
    """The same rows predicted as typical of the class, after three rows of the device, and by its other models or lengths."""
    judged: dict[str, list[Judged]] = {"no profile": [], "three rows of a log": [], "calibrated": []}
    for group in found:
        board, seen = device(group.measured[0].device or group.device), few_rows(group)
        if seen.all():
            continue
        assert board is not None
        known = made([g for g in found if g.device != group.device], [(group.chip, group.family, group.engine)], {})
        cell, rest = known.cells[0], group.terms.rows(~seen)
        models = np.array([m.model for m in group.measured])
        single = len(set(models.tolist())) == 1
        few = Group(group.terms.rows(seen), models[seen], board, priors=class_priors(cell, SHAPE, _phases(group, seen)))
        every = leave_one_out(Group(group.terms, models, board), by=group.terms.lengths if single else None)[~seen]
        for name, ms in (
            ("no profile", predict(rest, profile_of(known, cell))),
            ("three rows of a log", predict(rest, few.fitted(choose(few).kept))),
            ("calibrated", every),
        ):
            judged[name] += [
                Judged(group.device, group.chip, phase, float(off), 1.0)
                for phase in PHASES
                for off in np.log(rest.ms / ms)[(rest.requests > 0) == (phase == "prefill")]
                if np.isfinite(off)
            ]
    return judged


def overshoots(
    found: Sequence[Rows],
    residuals: Mapping[bool, dict[Phase, list[float]]],
    scales: Mapping[bool, Scales],
    *,
    engines: bool,
) -> list[float]:
    """Time by the device's own profile / budget of the exact picks of `paper`'s space at total_ms@q80, its devices left out of what is typical.

    Of groups with both phases of two models or more; budgets are the 10th, 30th and 50th percentile of the space's own times there.
    """
    shares = []
    for group in found:
        models = {m.model for m in group.measured}
        if len(models) < 2 or not (group.of("prefill").any() and group.of("decode").any()):
            continue
        board = device(group.measured[0].device or group.device)
        assert board is not None
        others = [g for g in found if g.device != group.device]
        asked = [(group.chip, group.family, group.engine if engines else "")]
        known = made(others, asked, residuals, scales, residuals[engines])
        own = calibrate(list(group.measured), board, load_law(LAW), "").profile
        name = {"int8": "int8", "fp4": "nvfp4", "fp16": "fp16"}.get(group.family, "int4")
        study = {"algo": "exact", "preset": "device", "device": board.mapping(), "precision": name}
        problem = assemble(study, {}).problem
        whole = problem.space.genotypes(np.arange(problem.space.size))
        typical = profile_of(known, known.cells[0])
        ours, theirs = (
            replace(problem, scenario=replace(problem.scenario, calibration=profile))
            .evaluate(whole, ("loss", metric))
            .metrics
            for profile, metric in ((typical, "total_ms@q80"), (own, "total_ms"))
        )
        for budget in np.quantile(theirs["total_ms"], (0.1, 0.3, 0.5)):
            within = np.flatnonzero(ours["total_ms@q80"] <= budget)
            if len(within):
                shares.append(float(theirs["total_ms"][within[np.argmin(ours["loss"][within])]] / budget))
    return shares


def _phases(group: Rows, seen: AnyArray) -> set[Phase]:
    return {phase for phase in PHASES if (group.of(phase) & seen).any()}


def residuals_of(judged: Sequence[Judged], scales: Scales = MappingProxyType({})) -> dict[Phase, list[float]]:
    """Errors in standard deviations times the scale of their class, as many of each device."""
    found: dict[Phase, list[float]] = {}
    for phase in PHASES:
        by_device = of_devices([row for row in judged if row.phase == phase], scales)
        found[phase] = sorted(round(float(z), 3) for zs in by_device.values() for z in np.quantile(zs, KEPT))
    return found


def of_devices(judged: Sequence[Judged], scales: Scales = MappingProxyType({})) -> dict[str, list[float]]:
    """Errors in standard deviations times the scale of their class, by device."""
    by_device = defaultdict(list)
    for row in judged:
        by_device[row.device].append(row.off / (row.sd * scales.get((row.chip, row.phase), 1.0)))
    return by_device


def scales_of(judged: Sequence[Judged]) -> Scales:
    """The scale of each class and phase: its devices' median |residual| over that of all, in logarithms shrunk to it by `SHRUNK` devices."""
    found: dict[tuple[str, Phase], float] = {}
    for phase in dict.fromkeys(row.phase for row in judged):
        rows = [row for row in judged if row.phase == phase]
        usual = _middle(of_devices(rows))
        for chip in sorted({row.chip for row in rows}):
            own = of_devices([row for row in rows if row.chip == chip])
            weight = len(own) / (len(own) + SHRUNK)
            found[chip, phase] = _rounded(float(np.exp(weight * np.log(_middle(own) / usual))))
    return found


def _middle(by_device: Mapping[str, Sequence[float]]) -> float:
    """The median |residual|, as many of each device."""
    return float(np.median(np.abs([np.quantile(zs, KEPT) for zs in by_device.values()])))


def coverage(judged: Sequence[Judged], phase: Phase, *, scaled: bool) -> dict[str, tuple[float, float]]:
    """The share of a left-out device's rows below the upper end at `SHARE`, and inside the range of 80 %, by class and of "all", devices alike.

    Scales and residuals are those of the other devices.
    """
    rows, shares = [row for row in judged if row.phase == phase], defaultdict(list)
    for name in sorted({row.device for row in rows}):
        here, others = [r for r in rows if r.device == name], [r for r in rows if r.device != name]
        scales = scales_of(others) if scaled else {}
        known, count = residuals_of(others, scales)[phase], len({r.device for r in others})
        z = np.array(of_devices(here, scales)[name])
        upper = conformal_factor(known, count, SHARE, rows=len(known))
        outside = beyond(len(known), count, (1 - SHARE) / 2)
        assert upper is not None
        share = float((z <= upper).mean()), float(((known[outside] <= z) & (z <= known[-1 - outside])).mean())
        for group in (here[0].chip, "all"):
            shares[group].append(share)
    return {group: tuple(np.mean(each, axis=0).tolist()) for group, each in shares.items()}


def print_coverage(judged: Mapping[bool, Sequence[Judged]]) -> None:
    """How often upper ends at `SHARE` and ranges of 80 % hold, by class, with one spread of all classes and with scales of their own."""
    for engines, rows in judged.items():
        for phase in PHASES:
            one, own = (coverage(rows, phase, scaled=scaled) for scaled in (False, True))
            print(f"upper ends at q80 and ranges of 80 % hold, {phase}, engine {'stated' if engines else 'not stated'}")
            for group in one:
                cells = (f"{100 * a:.0f} % and {100 * b:.0f} %" for a, b in (one[group], own[group]))
                print(f"  {group:<11}one spread {'; own '.join(cells)}")
            off = (np.mean([abs(a - 0.8) for g, (a, _) in each.items() if g != "all"]) for each in (one, own))
            print(f"  from 80 %, mean of classes: {' to '.join(f'{100 * v:.1f}' for v in off)}")


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def print_errors(judged: Sequence[Judged]) -> None:
    """Median and 90th percentile of |predicted / measured − 1| by phase and class."""
    for phase in PHASES:
        rows = [row for row in judged if row.phase == phase]
        print(f"{phase:<9}{_summary(rows)}")
        for chip in dict.fromkeys(row.chip for row in rows):
            print(f"  {chip:<11}{_summary([row for row in rows if row.chip == chip])}")


def _summary(rows: Sequence[Judged]) -> str:
    error = np.abs(np.exp([-row.off for row in rows]) - 1.0)
    devices = len({row.device for row in rows})
    return f"median {100 * np.median(error):.1f} %, p90 {100 * np.quantile(error, 0.9):.1f} % ({len(rows)} rows of {devices} devices)"


def main() -> None:
    """Print errors; write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {TARGET.name}")
    asked = parser.parse_args()
    found = public_groups(Path(os.environ["PLAS_EXTERNAL_DATA"]))
    judged = {engines: left_out(found, engines=engines) for engines in (True, False)}
    print_coverage(judged)
    for engines, rows in judged.items():
        print(f"devices left out, engine {'stated' if engines else 'not stated'}")
        print_errors(rows)
    scales = {engines: scales_of(rows) for engines, rows in judged.items()}
    residuals = {engines: residuals_of(rows, scales[engines]) for engines, rows in judged.items()}
    print("the shape alone")
    print_errors([Judged(g.device, g.chip, p, float(v), 1.0) for g in found for p in PHASES for v in g.off[g.of(p)]])
    for name, those in narrowed(found).items():
        print(f"rows that three others of the device leave: {name}")
        for phase in PHASES:
            print(f"  {phase:<9}{_summary([row for row in those if row.phase == phase])}")
    for engines in (True, False):
        shares = np.array(overshoots(found, residuals, scales, engines=engines))
        print(
            f"picks at q80, engine {'stated' if engines else 'not stated'}: {(shares <= 1.25).sum()} of {len(shares)} within 1.25 of "
            f"their budget, {(shares <= 1.0).sum()} within it, the worst {shares.max():.2f}"
        )
    if asked.write:
        content = made(found, cells_of(found), residuals, scales, residuals_of(judged[False])).model_dump(
            mode="json", exclude_defaults=True
        )
        TARGET.write_text(yaml_source.dump(content), encoding="utf-8")


if __name__ == "__main__":
    main()
