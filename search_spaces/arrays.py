"""Array types that every signature uses."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]
Array = TypeVar("Array", bound=AnyArray)


def frozen(array: Array) -> Array:
    """Return the same array, read-only."""
    array.flags.writeable = False
    return array


Owner = TypeVar("Owner")
Value = TypeVar("Value")


class derived(Generic[Owner, Value]):  # noqa: N801  (a decorator)
    """A `functools.cached_property` without its lock, which in Python 3.11 costs as much as a small column."""

    def __init__(self, made: Callable[[Owner], Value]) -> None:
        self.made, self.name, self.__doc__ = made, made.__name__, made.__doc__

    @overload
    def __get__(self, owner: None, kind: type[Owner]) -> Self: ...

    @overload
    def __get__(self, owner: Owner, kind: type[Owner]) -> Value: ...

    def __get__(self, owner: Owner | None, kind: type[Owner]) -> Self | Value:
        if owner is None:
            return self
        value = owner.__dict__[self.name] = self.made(owner)
        return value


def python_value(value: Any) -> Any:
    """Return an element of an array as Python's own number, text or truth value."""
    return value.item() if hasattr(value, "item") else value


Class = TypeVar("Class", bound=type)


def brief(kind: Class) -> Class:
    """Add a one-line `repr` to a dataclass or pydantic model: its fields, with arrays and nested values by size or type."""

    def shown(self: Any) -> str:
        fields = getattr(kind, "__dataclass_fields__", None) or getattr(kind, "model_fields", {})
        text = ", ".join(f"{name}={_brief_value(getattr(self, name))}" for name in fields)
        return f"{kind.__name__}({text if len(text) <= 300 else text[:299] + '…'})"

    kind.__repr__ = shown  # type: ignore[assignment]
    return kind


def _brief_value(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array{value.shape}"
    if value is None or isinstance(value, (str, bool, int, float)):
        return f"{value!r:.40}"
    return f"{type(value).__name__} of {len(value)}" if hasattr(value, "__len__") else type(value).__name__
