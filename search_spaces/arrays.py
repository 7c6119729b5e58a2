"""Array types that every signature uses."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]


def frozen(array: AnyArray) -> Any:
    """The same array, read-only."""
    array.flags.writeable = False
    return array
