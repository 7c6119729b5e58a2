"""A claim of the paper, recomputed: what it says, where, what we find, how it stands."""

from dataclasses import dataclass

HOLDS = "holds"
CONDITIONS = "holds under stated conditions"
FAILS = "does not hold"
UNKNOWN = "cannot be checked without the authors' data"
VERDICTS = (HOLDS, CONDITIONS, FAILS, UNKNOWN)


@dataclass(frozen=True)
class Claim:
    """One row of the page; `label` is a label of paper.tex, `command` repeats the number."""

    text: str
    label: str
    verdict: str
    found: str
    command: str = "python -m nas.reproduce"


def percent(share: float) -> str:
    """`93 %`."""
    return f"{100 * share:.0f} %"
