"""What the trainings behind a law cover: designs near rows, and the range of what the law does not see.

A law knows nothing beyond its rows. A design is inside where one row lies within a factor NEAR of it on every axis of AXES and OF_EXPERTS, or three rows
within a factor FAR. What the law does not see has a range. Designs with and without experts have a region each.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import cache, reduce
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator

from objectives.loss_law.features import OF_TRAINING, OWNERS
from objectives.loss_law.layer_deltas import QUANTITIES
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, BoolArray, FloatArray

DesignKind = Literal["dense", "sparse"]
Value = FloatArray | float
RangeOf = Callable[[str], "Range | None"]
Range = tuple[Value, Value]  # the least and the greatest; one object twice where they are the same
AXES = ("depth", "width", "active_parameters", "expert_ffn_ratio")
OF_EXPERTS = ("n_experts", "top_k", "stored_per_active")  # which say nothing more of dense designs
UInt64Array = NDArray[np.uint64]
UNLIMITED = 1e30
BLIND_AXES = ("head_dim", "query_ratio", "kv_ratio", "ffn_ratio")
NEAR, FAR, SEVERAL = np.log(2.0), np.log(3.0), 3  # one row, several rows
ALIKE = np.log(1.1)  # rows so close on every axis are one design
ROWS = "rows"  # what a design leaves that is near none
AT_ONCE = 50_000  # distances that fit into the cache
DOWN, UP = Context(4, ROUND_FLOOR), Context(4, ROUND_CEILING)  # to four digits
TOLERANCE = 1e-12  # in logarithms; a design so close to an end is covered
OF_SUMS = 1e-11  # the same of quantities that are sums of parts


def _numbers(text: str) -> str:
    try:
        positive = all(0.0 < float(number) < np.inf for number in text.split())
    except ValueError:
        positive = False
    if not positive:
        raise ValueError(f"expected positive numbers with spaces between, got {text[:40]!r}; correct the row")
    return text


class Region(BaseModel):
    """Where some rows lie: `ranges` by quantity; `rows` of designs, numbers in the order of `axes`.

    usual: ranges of what the law does not see, as published models have it: a pick keeps to them, and what is claimed of a design does not
    depend on them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    ranges: dict[str, tuple[float, float]] = {}
    usual: dict[str, tuple[float, float]] = {}
    axes: tuple[str, ...] = ()
    rows: tuple[Annotated[str, AfterValidator(_numbers)], ...] = ()

    @model_validator(mode="after")
    def _known(self) -> "Region":
        faults = [
            f"{name}: expected a quantity of designs; remove it"
            for name in {*self.ranges, *self.usual, *self.axes} - {*OWNERS, *QUANTITIES, "vocabulary"}
        ]
        faults += [
            f"{name}: expected the least and the most, got {least:g} and {most:g}; correct them"
            for name, (least, most) in (*self.ranges.items(), *self.usual.items())
            if not 0.0 <= least <= most
        ]
        if any(len(row.split()) != len(self.axes) for row in self.rows):
            faults.append(f"rows: expected {len(self.axes)} numbers a row, {', '.join(self.axes)}; correct it")
        if faults:
            raise ValueError("\n".join(sorted(faults)))
        return self

    def within(self, **further: tuple[float, float]) -> "Region":
        """Return the region with further ranges."""
        return self.model_copy(update={"ranges": {**self.ranges, **further}})

    @property
    def names(self) -> dict[str, None]:
        """The quantities that decide whether a design is covered, in order."""
        return dict.fromkeys([*self.ranges, *self.usual, *(self.axes if self.rows else ())])

    @property
    def designs_as_built(self) -> Architectures | None:
        """The rows as architectures of one head; None of rows that do not say the shape."""
        if not self.rows or not {"depth", "width", "expert_ffn_ratio"} <= {*self.axes}:
            return None
        columns: dict[str, FloatArray] = dict(zip(self.axes, np.exp(logs_of(self.rows)).T, strict=True))
        named = ("depth", "width", "n_experts", "top_k")
        shape: dict[str, AnyArray] = {name: np.rint(columns[name]).astype(int) for name in named if name in columns}
        size = np.maximum(np.rint(columns["expert_ffn_ratio"] * columns["width"]).astype(int), 1)
        heads = {"head_dim": shape["width"], "n_heads": np.ones_like(size), "n_kv_heads": np.ones_like(size)}
        return Architectures.from_columns({**shape, **heads, "expert_size": size})

    def excess(self, range_of: RangeOf) -> Iterator[tuple[str, Value]]:
        """By quantity, and for `rows`: ln of the factor by which a design lies beyond, 0 inside; of ranges of a quantity the least in them.

        `range_of` a quantity is None where it is not known: it decides nothing then.
        """
        yield from _beyond_ranges((*self.ranges.items(), *self.usual.items()), range_of)
        if (logs := self._logs(range_of)) is not None:
            yield ROWS, self._too_far(*logs)

    def left(self, range_of: RangeOf) -> Iterator[tuple[str, Value]]:
        """As `excess`, but 1 where rows are too far, however far; 0 where they are, but for sums in another order, not."""
        yield from _beyond_ranges(self.usual.items(), range_of)
        yield from self.outside(range_of, OF_SUMS)

    def outside(self, range_of: RangeOf, tolerance: float = TOLERANCE) -> Iterator[tuple[str, Value]]:
        """By quantity, and for `rows`: above 0 where a design lies beyond; what is merely unusual does not count."""
        yield from _beyond_ranges(self.ranges.items(), range_of)
        if (logs := self._logs(range_of)) is not None:
            yield ROWS, np.asarray(~self._near(*logs, tolerance), dtype=np.float64)

    def _logs(self, range_of: RangeOf) -> tuple[list[int], FloatArray, FloatArray] | None:
        """The axes that are known, and the logarithms of their ends, (axes, n); None where nothing is to be near."""
        known = [(at, ends) for at, name in enumerate(self.axes) if (ends := range_of(name)) is not None]
        if not known or not self.rows:
            return None
        logs = np.stack(np.broadcast_arrays(*(np.atleast_1d(np.log(end)) for _, ends in known for end in ends)))
        return [at for at, _ in known], logs[0::2], logs[1::2]

    def _too_far(self, places: list[int], low: FloatArray, high: FloatArray) -> FloatArray:
        """ln of the factor by which a design is too far from the nearest row, or from the third nearest, whichever is less, (n,)."""
        found, logs = np.zeros(low.shape[1]), logs_of(self.rows)[:, places, None]
        left = np.flatnonzero(~self._near(places, low, high))
        size = max(1, AT_ONCE // len(self.rows))
        for rows in (left[start : start + size] for start in range(0, len(left), size)):
            apart = np.zeros((len(logs), len(rows)))  # on the axis where it is greatest
            for axis, (least, most) in enumerate(zip(low[:, rows], high[:, rows], strict=True)):
                np.maximum(apart, least - logs[:, axis], out=apart)
                np.maximum(apart, logs[:, axis] - most, out=apart)
            over = apart.min(axis=0) - NEAR
            if len(apart) >= SEVERAL:
                over = np.minimum(over, np.partition(apart, SEVERAL - 1, axis=0)[SEVERAL - 1] - FAR)
            found[rows] = _positive(over)
        return found

    def _near(self, places: list[int], low: FloatArray, high: FloatArray, tolerance: float = TOLERANCE) -> BoolArray:
        """Which ranges (axes, n) have a row within NEAR of them, or several within FAR, (n,): by sets of rows as bits."""
        found: BoolArray = np.logical_or.reduce(self._rows_within(places, low, high, NEAR + tolerance), axis=1)
        left = np.flatnonzero(~found)
        several = self._rows_within(places, low[:, left], high[:, left], FAR + tolerance)
        found[left] = np.bitwise_count(several).sum(axis=1) >= SEVERAL
        return found

    def _rows_within(self, places: list[int], low: FloatArray, high: FloatArray, by: float) -> UInt64Array:
        """Bits of the rows that lie within `by` of ranges (axes, n) on every axis, (n, words)."""
        of_axes = ordered(self.rows)
        found = (
            upto.take(np.searchsorted(ends, most, side="right"), axis=0)
            ^ upto.take(np.searchsorted(ends, least), axis=0)
            for (ends, upto), least, most in zip((of_axes[at] for at in places), low - by, high + by, strict=True)
        )
        return reduce(np.bitwise_and, found)


@cache
def logs_of(rows: tuple[str, ...]) -> FloatArray:
    """Logarithms of rows of numbers, (rows, axes)."""
    return np.asarray(np.log([[float(number) for number in row.split()] for row in rows]))


@cache
def ordered(rows: tuple[str, ...]) -> list[tuple[FloatArray, UInt64Array]]:
    """By axis: the rows' values in order, and the bits of so many of the first of them, (rows + 1, words)."""
    found, words = list[tuple[FloatArray, UInt64Array]](), -(-len(rows) // 64)
    for column in logs_of(rows).T:
        order = np.argsort(column, kind="stable")
        bits = np.zeros((len(order) + 1, words), dtype=np.uint64)
        bits[np.arange(1, len(order) + 1), order // 64] = np.uint64(1) << (order % 64).astype(np.uint64)
        found.append((column[order], np.bitwise_or.accumulate(bits, axis=0)))
    return found


def _beyond_ranges(ranges: Iterable[tuple[str, tuple[float, float]]], range_of: RangeOf) -> Iterator[tuple[str, Value]]:
    for name, (least, most) in ranges:
        if (ends := range_of(name)) is not None:
            yield name, _beyond(*ends, least, most)


def _beyond(low: Value, high: Value, least: float, most: float) -> Value:
    """How far a range lies above `most` or below `least`, in logarithms; a share of layers, which may be 0, in shares."""
    if least == 0.0:
        return _positive(np.asarray(low) - most)
    return _positive(np.maximum(np.log(low) - np.log(most), np.log(least) - np.log(high)))


def _positive(over: Value) -> Value:
    return np.asarray(np.where(np.asarray(over) > TOLERANCE, over, 0.0), dtype=np.float64)


def region_of(column: Callable[[str], FloatArray | None], kind: DesignKind) -> Region:
    """Return the region of rows of a kind; `column` gives a quantity of every row, NaN where a row does not say it, None where none does.

    Rows that lack an axis which another row states are left out; of rows that are alike one is kept.
    """
    names = AXES if kind == "dense" else (*AXES, *OF_EXPERTS)

    def stated(among: Sequence[str]) -> dict[str, FloatArray]:
        found = {name: values for name in among if (values := column(name)) is not None}
        return {name: values for name, values in found.items() if np.isfinite(values).any()}

    axes, ranges = stated(names), {name: ends_of(values) for name, values in stated(BLIND_AXES).items()}
    ranges |= {name: (ends_of(values)[0], UNLIMITED) for name, values in stated(OF_TRAINING).items()}
    if not axes:
        return Region(ranges=ranges)
    every = np.stack([*axes.values()], axis=1)
    whole = every[np.isfinite(every).all(axis=1)]
    rows = tuple(" ".join(f"{value:.6g}" for value in row) for row in _different(whole))
    return Region(ranges=ranges, axes=tuple(axes), rows=rows)


def ends_of(values: FloatArray) -> tuple[float, float]:
    """Return the least and the most of values to four digits, which hold them all; NaN says nothing."""
    least, most = (Decimal(f"{end:.10g}") for end in (np.nanmin(values), np.nanmax(values)))
    return float(DOWN.create_decimal(least)), float(UP.create_decimal(most))


def _different(rows: FloatArray) -> FloatArray:
    """Of rows (n, axes) those that are not alike to one before them, in order."""
    kept: list[FloatArray] = []
    for row in np.unique(rows, axis=0):
        if not any(np.abs(np.log(row / other)).max() <= ALIKE for other in kept):
            kept.append(row)
    return np.array(kept).reshape(-1, rows.shape[1])


LeftBy = Callable[[Region, RangeOf], Iterable[tuple[str, Value]]]


def joined(first: Mapping[DesignKind, Region], second: Mapping[DesignKind, Region]) -> dict[DesignKind, Region]:
    """Return what two sets of rows cover together: of each kind the wider ranges, and the rows of both that state the same axes."""
    return {**first, **second, **{kind: _joined(first[kind], second[kind]) for kind in first if kind in second}}


def _joined(first: Region, second: Region) -> Region:
    ranges, usual = dict(first.ranges), dict(first.usual)
    for name, (least, most) in second.ranges.items():
        own = usual if name in usual else ranges
        low, high = own.get(name, (least, most))
        own[name] = (min(low, least), max(high, most))
    rows = first.rows
    if not {*first.axes} - {*second.axes}:
        order = [second.axes.index(name) for name in first.axes]
        rows = tuple(dict.fromkeys([*rows, *(" ".join(row.split()[at] for at in order) for row in second.rows)]))
    return Region(ranges=ranges, usual=usual, axes=first.axes, rows=rows)


def kinds_of(
    regions: Mapping[DesignKind, Region],
    n_experts: AnyArray,
    range_of: RangeOf,
    every: Mapping[str, tuple[float, float]],
    left_by: LeftBy = Region.excess,
) -> dict[str, FloatArray]:
    """By quantity, and for `rows`: how far designs of each kind, told by their number of experts (n,), leave its region, (n,); only what some leave.

    A kind without a region leaves that of the other by its number of experts, at least. every: ranges of designs of both kinds.
    left_by: `Region.outside` where it is enough whether they leave it.
    """
    sparse, found = np.asarray(n_experts) > 1, dict[str, FloatArray]()
    kinds = (
        (regions.get("dense", ONLY_EXPERTS), ~sparse),
        (regions.get("sparse", NO_EXPERTS), sparse),
        (Region(ranges=dict(every)), np.ones_like(sparse)),
    )
    for region, rows in kinds:
        if not region.names or not rows.any():
            continue
        for name, over in left_by(region, range_of if rows.all() else _of_rows(range_of, rows)):
            if np.any(over):
                left = np.zeros(rows.shape)
                left[rows] = over
                found[name] = np.maximum(left, found.get(name, 0.0))
    return found


def _of_rows(range_of: RangeOf, rows: BoolArray) -> RangeOf:
    """Ranges of some rows alone."""

    def of(name: str) -> Range | None:
        if (ends := range_of(name)) is None:
            return None
        low, high = (np.asarray(end)[rows] if np.shape(end) == rows.shape else end for end in ends)
        return (low, low) if ends[0] is ends[1] else (low, high)

    return of


def extrapolation(excess: Mapping[str, FloatArray], count: int) -> FloatArray:
    """The product of the factors by which designs lie beyond, (n,); 1 of those that lie inside."""
    in_order = (excess[name] for name in sorted(excess))  # so that a design has the same bits in any batch
    return np.asarray(np.exp(sum(in_order, np.zeros(count))))


NO_EXPERTS = Region(ranges={"n_experts": (1.0, 1.0)})
ONLY_EXPERTS = Region(ranges={"n_experts": (2.0, 2.0)})


RANGED = (
    *("depth", "width", "head_dim", "n_experts", "top_k", "activation_rate", "expert_ffn_ratio", "ffn_ratio"),
    *("kv_dim", "query_dim", "granularity", "expansion_rate", "parameters", "active_parameters"),
    *("parameters_with_embeddings", "active_parameters_with_embeddings", "ffn_attention_ratio", "normalised_width"),
    *("aspect_ratio", "query_ratio", "kv_ratio", "stored_per_active"),
)
DOMAINS = ("prices", "prices_sparse")
ULPS = 1e-12  # relative; a quantity so close to the end of a range is inside


def ranged(name: str, least: float, most: float) -> str:
    return f"{name} {least:g}" + ("" if least == most else f" to {most:g}")


def beyond(values: FloatArray, least: float, most: float) -> BoolArray:
    outside: BoolArray = (values < least * (1 - ULPS)) | (values > most * (1 + ULPS))
    return outside
