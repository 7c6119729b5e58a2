"""Array types that every signature uses."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]
Array = TypeVar("Array", bound=AnyArray)


def frozen(array: Array) -> Array:
    """The same array, read-only."""
    array.flags.writeable = False
    return array
