"""What is measured of one trace, and after how many evaluations."""

import numpy as np
import pandas as pd

from nas.compare.anytime import Replay, Trace
from nas.compare.reference import Reference
from search_spaces.arrays import IntArray

MEASURES = ("gap", "share", "igd_plus", "epsilon")


def reported(evaluations: int) -> IntArray:
    """Evaluations that results are reported at: 10, 30, 100, 300 … and the last."""
    powers = np.outer(10 ** np.arange(1, 13), (1, 3)).ravel()
    return np.unique([*powers[powers < evaluations], evaluations])


def score_table(trace: Trace, reference: Reference) -> pd.DataFrame:
    """The measures of one trace, a row per number of evaluations."""
    counts, replay = reported(len(trace)), Replay(trace, reference)
    rows = [replay.standing(int(count))[: len(MEASURES)] for count in counts]
    return pd.DataFrame(rows, columns=list(MEASURES), index=pd.Index(counts, name="evaluations"))
