"""Numbers of a fit's report as text."""

import math
from collections.abc import Sequence


def number(value: float | None) -> str:
    """Four significant digits; unknown is a dash."""
    return "-" if value is None or not math.isfinite(value) else f"{value:.4g}"


def off_by(value: float, error: float | None) -> str:
    """A difference with its standard error; unknown, as of one family of rows, is a dash."""
    return f"{value:+.2g} ± " + ("-" if error is None or not math.isfinite(error) else f"{error:.1g}")


def span(ends: Sequence[float]) -> str:
    """An interval; unknown is a dash."""
    return "-" if not math.isfinite(ends[0]) else f"{ends[0]:.4g} … {ends[1]:.4g}"
