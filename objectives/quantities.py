"""Quantities as people write them: "204.8 GB/s", "85 TOP/s", "20 ms", "8 GB"."""

import math
import re
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from objectives.display_text import shown_name

_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_SMALL = {"": 1.0, "k": 1e3, "m": 1e-3, "u": 1e-6, "µ": 1e-6, "n": 1e-9, "p": 1e-12}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}
_TIMES_IN_MS = {"s": 1e3, "ms": 1.0, "us": 1e-3, "µs": 1e-3, "ns": 1e-6, "min": 6e4}
_TIMES_IN_H = {"h": 1.0, "d": 24.0, "min": 1 / 60}
_WRITTEN = re.compile(
    r"^\s*([-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*([^\d\s.,].*)?$"
)

DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def split(text: str, expected: str) -> tuple[float, str]:
    """Return number and unit of a written quantity.

    Raises:
        ValueError: `expected X, got Y; do Z`.
    """
    match = _WRITTEN.match(text)
    if not match:
        comma = re.match(r"\s*\d+,\d+\s*[^\d.,]*$", text)
        remedy = "write the decimals with a point" if comma else "write a number and a unit"
        raise ValueError(f"expected {expected}, got {text!r}; {remedy}")
    return float(match[1].replace(",", "").replace("_", "")), (match[2] or "").strip()


def scaled(value: Any, unit: str, scale: float, example: str) -> float:
    """Return a positive quantity in base units; a bare number counts `scale` of them.

    Raises:
        ValueError: not a number, not positive, or another unit.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f'expected a quantity like "{example}", got {value!r}; write one')
    try:
        if isinstance(value, str):
            number, written = split(value, f'a quantity like "{example}"')
            factor = scale if not written else _factor(written, unit, example)
        else:
            number, factor = float(value), scale
    except OverflowError:
        number, factor = math.inf, scale
    if not (math.isfinite(number * factor) and number * factor > 0):
        raise ValueError(f'expected a positive quantity like "{example}", got {short(value)}; correct it')
    return number * factor


def short(value: Any) -> str:
    """Return a value as the user wrote it, at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _factor(written: str, unit: str, example: str) -> float:
    """Scale of a written unit; bytes keep their case, since Gb is not GB."""
    names = [unit, unit.replace("B/s", "Bps")] if unit.startswith("B") else [unit, unit.replace("/s", "s").upper()]
    prefixes = _PREFIXES | (_BINARY if unit.startswith("B") else {})
    for name in names:
        if written.endswith(name) and written.removesuffix(name).strip() in prefixes:
            return prefixes[written.removesuffix(name).strip()]
    raise ValueError(f'expected a quantity like "{example}", got unit {written!r}; use that unit')


def milliseconds(value: Any) -> float:
    """Return milliseconds from "20 ms", "0.1 s", or a bare number of ms."""
    return _time(value, "ms", _TIMES_IN_MS, 'a time like "20 ms"', "s, ms or us")


def hours(value: Any) -> float:
    """Return hours from "500 h", "3 d", or a bare number of hours."""
    return _time(value, "h", _TIMES_IN_H, 'hours like "500 h"', "h, d or min")


def _time(value: Any, base: str, units: Mapping[str, float], expected: str, usual: str) -> float:
    if isinstance(value, str):
        number, unit = split(value, expected)
        if unit and unit not in units:
            raise ValueError(f"expected {expected}, got unit {unit!r}; use {usual}")
        value = number * units[unit or base]
    return scaled(value, base, 1.0, expected.split('"')[1])


def counted(value: Any, example: str) -> float:
    """Return a count from "500 M", "1.5 B" (10^9), "2 T", or a bare number."""
    billions = isinstance(value, str) and value.strip().endswith("B")
    return scaled(value.strip().removesuffix("B") + "G" if billions else value, "", 1.0, example)


def gigabytes(value: Any) -> float:
    """Return GB of 10^9 bytes from "8 GB", "512 MB", or a bare number of GB."""
    return scaled(value, "B", 1e9, "8 GB") / 1e9


def bytes_in_words(size: float) -> str:
    """Return `10 kB`, `1.5 MB` or `500 B`; k is 1,000."""
    scale, unit = next(((s, u) for s, u in ((1e6, "MB"), (1e3, "kB")) if size >= s), (1.0, "B"))
    return f"{size / scale:,.10g} {unit}"


def joules(value: Any) -> float:
    """Return joules from "5 J", "300 mJ", "4.2 pJ", or a bare number of J."""
    return _small(value, "J", "5 J")


def watts(value: Any) -> float:
    """Return watts from "5 W", "800 mW", or a bare number of W."""
    return _small(value, "W", "5 W")


def _small(value: Any, unit: str, example: str) -> float:
    """A quantity in a unit that is written with small prefixes as well."""
    if isinstance(value, str):
        number, written = split(value, f'a quantity like "{example}"')
        prefix = written.removesuffix(unit).strip()
        if written and not (written.endswith(unit) and prefix in _SMALL):
            raise ValueError(f'expected a quantity like "{example}", got unit {written!r}; use that unit')
        value = number * (_SMALL[prefix] if written else 1.0)
    return scaled(value, unit, 1.0, example)


def day_number(value: Any) -> float:
    """Return a day as the number YYYYMMDD, from 2026-12-01 or that number.

    Raises:
        ValueError: no day.
    """
    try:
        text = f"{value:.0f}" if isinstance(value, int | float) else str(value).strip()
        day = value if isinstance(value, date) else date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"expected a date like 2026-12-01, got {short(value)}; write one") from None
    return float(f"{day:%Y%m%d}")


def day_in_words(number: float) -> str:
    """Return `2026-12-01` for the number 20261201; another number as it is."""
    try:
        return date.fromisoformat(f"{number:.0f}").isoformat()
    except ValueError:
        return f"{number:g}"


def quantity_in(unit: str, value: Any) -> float:
    """Return a written positive quantity ("20 ms", "8 GB", "1.5 B" parameters, 3.2, 249 USD, a date) in the unit of a metric.

    Raises:
        ValueError: not a positive quantity of that unit.
    """
    if unit == "ms":
        return milliseconds(value)
    if unit == "GB":
        return gigabytes(value)
    if unit in ("J", "W"):
        return joules(value) if unit == "J" else watts(value)
    if unit == "parameters":
        return counted(value, "500M")
    if unit == "h":
        return hours(value)
    if unit == "date":
        return day_number(value)
    if unit == "FLOP":
        return scaled(value, "FLOP", 1.0, "1e21")
    names = (unit, "tok/s", "t/s") if unit == "tokens/s" else (unit,)
    name = next((name for name in names if isinstance(value, str) and value.strip().endswith(name)), "")
    bare = value.strip().removesuffix(name) if isinstance(value, str) else value
    return scaled(bare, "", 1.0, f"3.2 {unit}".strip())


Name = Annotated[str, AfterValidator(shown_name)]
BytesPerSecond = Annotated[float, BeforeValidator(lambda v: scaled(v, "B/s", 1e9, "204.8 GB/s"))]
