"""A claim of the paper, recomputed: what it says, where, what we find, how it stands, what finding it took."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from nas.files import yaml_source
from plas_paper.reproduce.whole_spaces import looked_at

HOLDS = "holds"
CONDITIONS = "holds under stated conditions"
FAILS = "does not hold"
UNKNOWN = "cannot be checked without the authors' data"
VERDICTS = (HOLDS, CONDITIONS, FAILS, UNKNOWN)


@dataclass(frozen=True)
class Statement:
    """A claim of the paper: `label` is a label of paper.tex; `printed` its value, `formula` its basis, `how` we recompute it.

    `corrected` is the form that holds where the printed one does not.
    """

    key: str
    text: str
    label: str
    printed: str
    how: str
    formula: str = ""
    corrected: str = ""


@dataclass(frozen=True)
class Number:
    """A printed number with ours; of an exponent the sign counts, of another number the ratio."""

    name: str
    printed: float
    ours: float
    exponent: bool = False


@dataclass(frozen=True)
class Claim:
    """One row of the page; `command` repeats the number, `designs` were evaluated for it in `settings` of the model."""

    statement: Statement
    verdict: str
    found: str
    command: str = "plas reproduce"
    numbers: tuple[Number, ...] = ()
    designs: int = 0
    settings: int = 0

    @property
    def text(self) -> str:
        """The claim in a sentence."""
        return self.statement.text

    @property
    def label(self) -> str:
        """Where it stands in paper.tex."""
        return self.statement.label


@cache
def statements() -> dict[str, Statement]:
    """Every statement by its key, in the paper's order."""
    content, _ = yaml_source.read(Path(__file__).with_name("statements.yaml"))
    return {key: Statement(key, **fields) for key, fields in content.items()}


def stated(key: str) -> Statement:
    """The statement of a key."""
    return statements()[key]


def judged(makers: Sequence[Callable[[], Claim | list[Claim]]]) -> list[Claim]:
    """The claims of all makers, each with the designs that its maker looked at."""
    found: list[Claim] = []
    for make in makers:
        with looked_at() as seen:
            made = make()
        claims = [made] if isinstance(made, Claim) else made
        found += [replace(claim, designs=sum(seen.values()), settings=len(seen)) for claim in claims]
    return found


def percent(share: float) -> str:
    """`93 %`."""
    return f"{100 * share:.0f} %"
