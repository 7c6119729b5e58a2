"""What the trainings behind a law cover: the range of each quantity, and the corner of each pair of quantities that no row reaches.

A law knows nothing beyond its rows. Both are computed from the rows, in logarithms: a range from the least to the most, and
of each pair in PAIRS the convex hull, widened by a factor PAIR_MARGIN, so that a design counts as covered where it is alike to some
mixture of rows. Designs with and without experts have a region each.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from objectives.loss_law.features import OWNERS
from objectives.loss_law.layer_deltas import QUANTITIES
from search_spaces.arrays import AnyArray, BoolArray, FloatArray

DesignKind = Literal["dense", "sparse"]
Value = FloatArray | float
Range = tuple[Value, Value]  # the least and the greatest; one object twice where they are the same
Corner = tuple[Annotated[float, Field(gt=0)], Annotated[float, Field(gt=0)]]
AXES = (
    *("depth", "width", "aspect_ratio", "head_dim", "query_ratio", "kv_ratio", "ffn_ratio", "ffn_attention_ratio"),
    *("active_parameters", "tokens"),
)
OF_EXPERTS = ("n_experts", "top_k", "expert_ffn_ratio", "parameters")  # which say nothing more of dense designs
PAIRS = (  # each axis may be covered where their combination is not
    ("depth", "width"),
    ("active_parameters", "tokens"),
    ("active_parameters", "ffn_attention_ratio"),
    ("parameters", "active_parameters"),
    ("n_experts", "expert_ffn_ratio"),
    ("n_experts", "top_k"),
)
PAIR_MARGIN = np.log(1.1)  # designs within 10 % are alike, as for the evidence base's questions
TOLERANCE = 1e-12  # in logarithms; a design so close to an end is covered


class Region(BaseModel):
    """Where some rows lie: `ranges` by quantity, `hulls` by "first second" the corners of the pair's convex hull, in order."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    ranges: dict[str, tuple[float, float]] = {}
    hulls: dict[str, tuple[Corner, ...]] = {}

    @model_validator(mode="after")
    def _known(self) -> "Region":
        names = {*self.ranges, *(name for pair in self.hulls for name in pair.split())}
        faults = [
            f"{name}: expected a quantity of designs; remove it"
            for name in names - {*OWNERS, *QUANTITIES, "vocabulary"}
        ]
        faults += [
            f"{name}: expected the least and the most, got {least:g} and {most:g}; correct them"
            for name, (least, most) in self.ranges.items()
            if not 0.0 <= least <= most
        ]
        if faults:
            raise ValueError("\n".join(sorted(faults)))
        return self

    def within(self, **further: tuple[float, float]) -> "Region":
        """The region with further ranges."""
        return Region(ranges={**self.ranges, **further}, hulls=self.hulls)

    @property
    def names(self) -> dict[str, None]:
        """The quantities that decide whether a design is covered, in order."""
        return dict.fromkeys([*self.ranges, *(name for pair in self.hulls for name in pair.split())])

    @cached_property
    def _sides(self) -> dict[str, FloatArray]:
        return {pair: sides_of(np.log(np.array(corners))) for pair, corners in self.hulls.items()}

    def excess(self, range_of: Callable[[str], Range | None]) -> Iterator[tuple[str, Value]]:
        """By axis and by pair: ln of the factor by which a design lies beyond, 0 inside; of ranges of a quantity the least in them.

        `range_of` a quantity is None where it is not known: it decides nothing then.
        """
        for name, (least, most) in self.ranges.items():
            if (ends := range_of(name)) is not None:
                yield name, _beyond(*ends, least, most)
        for pair, sides in self._sides.items():
            first, second = (range_of(name) for name in pair.split())
            if first is None or second is None:
                continue
            (a, b), (c, d) = _logs(first), _logs(second)
            over = [u * (a if u > 0 else b) + v * (c if v > 0 else d) - end for u, v, end in sides.tolist()]
            yield pair, _positive(np.maximum.reduce(np.broadcast_arrays(*over)))


def _beyond(low: Value, high: Value, least: float, most: float) -> Value:
    """How far a range lies above `most` or below `least`, in logarithms; a share of layers, which may be 0, in shares."""
    if least == 0.0:
        return _positive(np.asarray(low) - most)
    return _positive(np.maximum(np.log(low) - np.log(most), np.log(least) - np.log(high)))


def _positive(over: Value) -> Value:
    found: FloatArray = np.where(np.asarray(over) > TOLERANCE, over, 0.0)
    return found


def _logs(ends: Range) -> Range:
    return np.log(ends[0]), np.log(ends[1])


def region_of(column: Callable[[str], FloatArray | None], kind: DesignKind) -> Region:
    """The region of rows of a kind; `column` gives a quantity of every row, NaN where a row does not say it, None where none does."""
    names = AXES if kind == "dense" else (*AXES, *OF_EXPERTS)
    axes = {name: values for name in names if (values := column(name)) is not None and np.isfinite(values).any()}
    ranges = {name: (_down(np.nanmin(values)), _up(np.nanmax(values))) for name, values in axes.items()}
    hulls = {}
    for first, second in PAIRS:
        if first in axes and second in axes:
            both = np.stack([axes[first], axes[second]], axis=1)
            hulls[f"{first} {second}"] = corners_of(both[np.isfinite(both).all(axis=1)])
    return Region(ranges=ranges, hulls={pair: corners for pair, corners in hulls.items() if corners})


def corners_of(points: FloatArray) -> tuple[tuple[float, float], ...]:
    """The corners of the convex hull of points (n, 2) in logarithms, counter-clockwise, as they are to six digits; by Andrew's monotone chain."""
    rows = [(float(a), float(b)) for a, b in np.unique(np.log(points), axis=0)]

    def half(ordered: list[tuple[float, float]]) -> list[tuple[float, float]]:
        chain: list[tuple[float, float]] = []
        for x, y in ordered:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], (x, y)) <= 1e-9:
                chain.pop()
            chain.append((x, y))
        return chain[:-1]

    found = half(rows) + half(rows[::-1]) if len(rows) > 1 else rows
    return tuple((float(f"{np.exp(x):.6g}"), float(f"{np.exp(y):.6g}")) for x, y in found)


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def sides_of(corners: FloatArray) -> FloatArray:
    """The sides of a hull of corners (k, 2) as rows u, v, end, (sides, 3): inside is u x + v y <= end; a point or a line has four."""
    if len(corners) > 2:
        along = np.roll(corners, -1, axis=0) - corners
        normal = np.stack([along[:, 1], -along[:, 0]], axis=1)
    else:
        along = corners[-1] - corners[0] if len(corners) == 2 else np.array([1.0, 0.0])
        across = np.array([-along[1], along[0]])
        normal = np.stack([along, -along, across, -across])
    normal = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    ends = (normal @ corners.T).max(axis=1) + PAIR_MARGIN
    return np.column_stack([normal, ends])


def _down(value: float) -> float:
    """A number to four digits, not above it."""
    return _rounded(value, lambda given, near: near <= given, -1)


def _up(value: float) -> float:
    """A number to four digits, not below it."""
    return _rounded(value, lambda given, near: near >= given, 1)


def _rounded(value: float, allowed: Callable[[float, float], bool], step: int) -> float:
    near = float(f"{value:.4g}")
    if value == 0.0 or allowed(value, near):
        return near
    unit = 10.0 ** (np.floor(np.log10(abs(value))) - 3)
    return float(f"{near + step * unit:.4g}")


def joined(first: Mapping[DesignKind, Region], second: Mapping[DesignKind, Region]) -> dict[DesignKind, Region]:
    """What two sets of rows cover together: of each kind the wider range, and the hull of both."""
    return {kind: _joined(first.get(kind), second.get(kind)) for kind in dict.fromkeys([*first, *second])}


def _joined(first: Region | None, second: Region | None) -> Region:
    if first is None or second is None:
        found = first or second
        assert found is not None
        return found
    ranges = dict(first.ranges)
    for name, (least, most) in second.ranges.items():
        low, high = ranges.get(name, (least, most))
        ranges[name] = (min(low, least), max(high, most))
    hulls = {
        pair: corners_of(np.array([*first.hulls.get(pair, ()), *second.hulls.get(pair, ())]))
        for pair in dict.fromkeys([*first.hulls, *second.hulls])
    }
    return Region(ranges=ranges, hulls=hulls)


def kinds_of(
    regions: Mapping[DesignKind, Region],
    n_experts: AnyArray,
    range_of: Callable[[str], Range | None],
    every: Mapping[str, tuple[float, float]],
) -> dict[str, FloatArray]:
    """By quantity or pair: how far designs of each kind, told by their number of experts (n,), leave its region, (n,); only what some leave.

    A kind without a region leaves that of the other by its number of experts, at least. every: ranges of designs of both kinds.
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
        for name, over in region.excess(range_of):
            left = np.where(rows, over, 0.0)
            if left.any():
                found[name] = np.maximum(left, found.get(name, 0.0))
    return found


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
    *("aspect_ratio", "query_ratio", "kv_ratio"),
)
DOMAINS = ("prices", "prices_sparse")
ULPS = 1e-12  # relative; a quantity so close to the end of a range is inside


def ranged(name: str, least: float, most: float) -> str:
    return f"{name} {least:g}" + ("" if least == most else f" to {most:g}")


def beyond(values: FloatArray, least: float, most: float) -> BoolArray:
    outside: BoolArray = (values < least * (1 - ULPS)) | (values > most * (1 + ULPS))
    return outside
