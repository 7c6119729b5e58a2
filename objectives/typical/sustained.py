"""Speed after minutes of load, by class of cooling: public rows, what is typical of a class, and what is said of a device."""

import math
from collections import defaultdict
from functools import cache
from statistics import NormalDist, fmean, median
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from objectives.device import COOLING, Cooling, Device, Sustained
from objectives.plugins import packaged

COVERED = 0.8  # of further devices, by an interval
_Rate = Annotated[float, Field(gt=0)]


class Row(BaseModel):
    """Rates of one model on one device, in the first seconds and after minutes of load without pauses."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    device: str
    cooling: Cooling
    engine: str
    model: str
    minutes: Annotated[float, Field(gt=0)] | None = None
    burst: _Rate
    sustained: _Rate
    source: str
    note: str = ""

    @property
    def log_share(self) -> float:
        """log(sustained / burst)."""
        return math.log(self.sustained / self.burst)


class Measured(BaseModel):
    """The public rows, and where each was read."""

    model_config = ConfigDict(extra="forbid")
    rows: list[Row]
    sources: dict[str, str]

    @model_validator(mode="after")
    def _named(self) -> Self:
        """Every row has a source that is told."""
        if unknown := {row.source for row in self.rows} - self.sources.keys():
            raise ValueError(f"expected sources of the rows, got none of {', '.join(sorted(unknown))}; write them")
        return self


@cache
def shipped() -> Measured:
    """The rows of the package."""
    return Measured.model_validate(packaged("objectives.typical", "sustained"))


@cache
def typical_of(cooling: Cooling, without: str = "") -> Sustained | None:
    """What a class of cooling keeps of its speed, judged without one device; None where no row tells.

    A device's value is the mean of the logarithms of its rows' shares, m the mean of the class's n devices, s their standard
    deviation within classes, pooled over the classes with ν degrees of freedom: the share is exp(m), of a further device with
    probability 80 % in exp(m ± t(0.9, ν) s sqrt(1 + 1/n)), at most 1.
    """
    by_class = _by_class(without)
    if not (known := by_class.get(cooling)):
        return None
    n, middle = len(known), fmean(known.values())
    freedom = sum(len(devices) - 1 for devices in by_class.values())
    squares = sum((v - fmean(devices.values())) ** 2 for devices in by_class.values() for v in devices.values())
    wide = _student((1 + COVERED) / 2, freedom) * math.sqrt(squares / freedom * (1 + 1 / n))
    rows = [row for row in shipped().rows if row.device in known]
    return Sustained(
        share=math.exp(middle),
        interval=(math.exp(middle - wide), min(1.0, math.exp(middle + wide))),
        freedom=freedom,
        minutes=median(row.minutes for row in rows if row.minutes is not None),
        typical=cooling,
        devices=n,
        source=f"{len(rows)} rows: {'; '.join(dict.fromkeys(shipped().sources[row.source] for row in rows))}",
    )


def _by_class(without: str) -> dict[Cooling, dict[str, float]]:
    """The mean logarithm of each device's shares, by class and device."""
    found: dict[tuple[Cooling, str], list[float]] = defaultdict(list)
    for row in shipped().rows:
        if row.device != without:
            found[row.cooling, row.device].append(row.log_share)
    by_class: dict[Cooling, dict[str, float]] = defaultdict(dict)
    for (cooling, device), logs in found.items():
        by_class[cooling][device] = fmean(logs)
    return dict(by_class)


def sustained_of(device: Device) -> Sustained | None:
    """What a device keeps of its speed: as its file says, else as is typical of its cooling; None where nothing is known."""
    if device.sustained is not None or device.cooling is None:
        return device.sustained
    return typical_of(device.cooling)


def slower_than(known: Sustained, share: float) -> float:
    """How many times as long as predicted at sustained load a further device takes, at most, with a probability.

    The half of the interval on that side, in the logarithm, times t(share)/t(0.9); 1 where no interval is told.
    """
    if known.interval is None:
        return 1.0
    low, high = known.interval
    ends, side = ((known.share / low), 1.0) if share >= 0.5 else ((high / known.share), -1.0)
    return math.exp(side * math.log(ends) * abs(_quantile(share, known)) / _quantile((1 + COVERED) / 2, known))


def _quantile(share: float, known: Sustained) -> float:
    return NormalDist().inv_cdf(share) if known.freedom is None else _student(share, known.freedom)


def _student(share: float, freedom: int) -> float:
    """The quantile of Student's t."""
    from scipy.special import stdtrit  # a few runs need it, and it takes longer to import than they take to start

    return float(stdtrit(freedom, share))


def unknown(device: Device) -> str:
    """Why a device cannot be priced at sustained load, and what to do."""
    cure = "write what you measured into its file, sustained: {share: 0.7}"
    if device.cooling is None:
        classes = ", ".join(COOLING)
        return f"expected a device whose cooling is known, got {device.name}, whose file states none; {cure}, or cooling: {classes}"
    return (
        f"expected a device of whose class rates after minutes are public, got {device.name} (cooling: {device.cooling}), "
        f"and none are of {COOLING[device.cooling]}; {cure}"
    )


def about_load(device: Device, priced: Sustained | None) -> list[str]:
    """What is said of load: what times of sustained load rest on, or that others are of the first seconds where these do not last."""
    if priced is not None:
        return [
            f"times are of sustained load: after minutes {_kept(priced, 'the speed of the first seconds')}, {_by(priced)}"
        ]
    known, own = sustained_of(device), ""
    if device.cooling == "phone":
        own = f"; an app gets about {device.program_gb:.3g} of its {device.memory_gb:.3g} GB"
    if device.sustained is None and device.cooling not in ("phone", "passive"):
        return []
    if known is None:
        return [
            "burst speed: times are of the first seconds of load, and without a fan they do not last; by how much no public row "
            "says, so write what you measure into the device's file, sustained: {share: 0.7}"
        ]
    return [
        f"burst speed: after minutes of load {'typically ' * bool(known.typical)}{_kept(known, 'it')}; --set sustained=true prices that{own}"
    ]


def _kept(known: Sustained, what: str) -> str:
    """`63 % of it (80 % of phones: 41 to 95 %)`."""
    whose = f" of {COOLING[known.typical]}" if known.typical else ""
    if known.interval is None:
        return f"{100 * known.share:.0f} % of {what}"
    low, high = (100 * end for end in known.interval)
    return f"{100 * known.share:.0f} % of {what} (80 %{whose}: {low:.0f} to {high:.0f} %)"


def _by(known: Sustained) -> str:
    """What a share rests on, and what its interval makes of limits at a quantile."""
    if known.typical:
        whose = f"by public rows of {known.devices} {COOLING[known.typical]} (docs/devices.md)"
    else:
        whose = "as its file or the study says" + (f": {known.source}" if known.source else "")
    told = (
        "of which no interval is told"
        if known.interval is None
        else "so that limits at a quantile hold with about theirs"
    )
    return f"{whose}, {told}"
