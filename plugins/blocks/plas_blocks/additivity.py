"""Whether scores add up: predicted against real scores of mixtures that were assembled and scored.

Adding per-block scores is an assumption: what one replacement does to the loss may depend on the others. A library that
holds mixtures which were really assembled says how far it holds.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from nas.errors import UsageError
from nas.files.tables import csv_text, write
from objectives import outside
from objectives.display_text import csv_fault
from plas_blocks.checking import LARGEST
from search_spaces.arrays import FloatArray, IntArray

MOST_BYTES = 100 * outside.MB
FILE = "additivity.csv"
UNTESTED = "Whether the scores add up was not tested: the library has no mixtures that were assembled and scored."


@dataclass(frozen=True, eq=False)
class Additivity:
    """Assembled mixtures: layers changed, the score that the sum predicts and the real one, (n,) each."""

    changed: IntArray
    predicted: FloatArray
    real: FloatArray

    @property
    def rank_correlation(self) -> float:
        """Spearman's; NaN of fewer than three mixtures or of equal ones."""
        if len(self.real) < 3 or np.ptp(self.real) == 0 or np.ptp(self.predicted) == 0:
            return float("nan")
        return float(spearmanr(self.predicted, self.real).statistic)

    @property
    def error(self) -> float:
        """Mean absolute difference, in the score's unit."""
        return float(np.abs(self.real - self.predicted).mean())

    @property
    def bias(self) -> float:
        """Mean of real - predicted."""
        return float((self.real - self.predicted).mean())

    @property
    def worst(self) -> float:
        """Largest absolute difference."""
        return float(np.abs(self.real - self.predicted).max())

    def sentence(self, score: str) -> str:
        """The result in one sentence."""
        side, rank = "worse" if self.bias > 0 else "better", self.rank_correlation
        ranked = (
            "no rank correlation that could be measured"
            if rank != rank
            else f"rank correlation {rank:.3f} with the real one"
        )
        return (
            f"Adding scores up was tested: of {len(self.real)} assembled mixtures the predicted {score} has {ranked} "
            f"and is off by {self.error:.4g} on average, {self.worst:.4g} at most (real ones {side} by {abs(self.bias):.4g})."
        )

    def content(self) -> dict[str, float | int]:
        """As JSON."""
        return {
            "mixtures": len(self.real),
            "rank_correlation": self.rank_correlation,
            "mean_absolute_error": self.error,
            "largest_error": self.worst,
            "bias": self.bias,
        }


def read_additivity(library: Path) -> Additivity | None:
    """The additivity file beside a library's file; None where there is none, or no mixture.

    Raises:
        UsageError: a file of another form.
    """
    path = (library if library.is_dir() else library.parent) / FILE
    if not path.is_file():
        return None
    try:
        lines = list(csv.DictReader(io.StringIO(outside.text(path, MOST_BYTES, own=True)), strict=True))
        rows = [(int(line["changed"]), float(line["predicted"]), float(line["real"])) for line in lines]
    except csv.Error as error:
        raise UsageError(f"{path}: expected CSV, got {csv_fault(error)}; correct the file") from None
    except (KeyError, TypeError, ValueError, OSError):
        raise UsageError(
            f"{path}: expected the columns changed, predicted and real, got others; correct the file"
        ) from None
    if not rows or not (np.abs([row[1:] for row in rows]) <= LARGEST).all():
        return None
    changed, predicted, real = (np.array(column) for column in zip(*rows, strict=True))
    return Additivity(changed, predicted, real)


def write_additivity(folder: Path, found: Additivity, blocks: Sequence[str] = ()) -> None:
    """additivity.csv; `blocks` says of each mixture which rows of the library it is made of.

    Raises:
        PlasError: the folder cannot be written.
    """
    named = {"blocks": list(blocks)} if blocks else {}
    columns = {"changed": found.changed, "predicted": found.predicted, "real": found.real, **named}
    write(folder / FILE, csv_text(columns))
