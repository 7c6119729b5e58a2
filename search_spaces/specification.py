"""Pydantic model of a search space's YAML, and the query heads that it allows for each width."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, model_validator

from search_spaces.arrays import BoolArray, IntArray, brief
from search_spaces.axes_schema import Axes, Conditions, Positive, Rule
from search_spaces.columns import code
from search_spaces.mixes import LINEAR, Mixes

SHIPPED = "shipped"  # the context in which a file is read that ships, whose content tests have checked
ROUNDING = 1e-12  # relative; so that a ratio written in decimals holds what it says


@dataclass(frozen=True, eq=False)
class Heads:
    """n_heads for every (width, head size, value of the axis n_heads), and a mask of valid ones, each (W, H, N).

    Without an axis of n_heads N is 1 and its value width / head_dim, valid where that is whole.
    """

    values: IntArray
    valid: BoolArray

    @cached_property
    def used(self) -> IntArray:
        """Return every number of heads that some width has, ascending."""
        return np.unique(self.values[self.valid])

    def divided_by(self, kv_heads: Sequence[int]) -> "Heads":
        """Return the same heads without numbers that none of these numbers of KV heads divides."""
        fitting = np.array([heads for heads in self.used.tolist() if any(heads % kv == 0 for kv in kv_heads)])
        return Heads(self.values, self.valid & np.isin(self.values, fitting))


GENES = ("depth", "width", "n_experts", "top_k", "ffn", "n_kv_heads")  # of every space
OF_LAYERS = "layers"  # behind the depth, where a space has an axis of them
#: Of spaces with layers of several kinds that state no least number of full ones: no loss law sees that number, and the
#: cheapest kind would win everywhere. Source: Wang et al. 2025 (2507.06457): recall needs a full layer in three to six.
FULL_LAYERS = {"min_full_layers": 2, "full_layer_every": 6}
OF_HEADS = ("head_dim", "n_heads")  # behind the width, where a space has axes of them
#: Behind all others, by name, where a space has axes of them: every field of `Axes` that is none of the above is the gene
#: of the column of its name.
FURTHER_AXES = tuple(
    sorted(Axes.model_fields.keys() - {*GENES, OF_LAYERS, *OF_HEADS, "expert_size", "expert_ffn_ratio"})
)
MOST = 2**63  # a key, the number of an architecture, is a signed 64-bit integer
MOST_CELLS = 10_000_000  # of a table that says which values of one axis go with which of another


@brief
class SpaceSpecification(BaseModel):
    """A search space as YAML; `chip` holds genes of chips, which belong to the study, not to the space."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,60}$")] = "custom"
    description: str = ""
    head_dim: Positive | None = 64
    axes: Axes
    conditions: Conditions = Conditions()
    chip: Annotated[dict[str, Any] | None, Field(exclude=True)] = None

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> "SpaceSpecification":
        of_sizes, of_layers = _head_dim_faults(self), layers_faults(self)
        if info.context == SHIPPED:
            return self
        faults = [*of_sizes, *heads_faults(self), *of_layers]
        faults += [] if any(fault.startswith("axes.n_heads") for fault in faults) else kv_faults(self)
        faults += expert_faults(self.axes.n_experts, self.axes.top_k, self.conditions)
        faults += ffn_faults(self.axes, self.conditions)
        faults = faults or size_faults(self)
        if faults:
            raise ValueError("\n".join(faults))
        return self

    @property
    def genes(self) -> tuple[str, ...]:
        """Names of the genes, in order."""
        of_heads = (name for name in OF_HEADS if getattr(self.axes, name) is not None)
        of_layers = (OF_LAYERS,) if self.axes.layers is not None else ()
        return (*GENES[:1], *of_layers, *GENES[1:2], *of_heads, *GENES[2:], *self.settings)

    @property
    def settings(self) -> dict[str, list[int]]:
        """The values of each further axis by column name, ascending, as stored."""
        given = {name: getattr(self.axes, name) for name in FURTHER_AXES}
        return {name: [code(name, v) for v in values] for name, values in given.items() if values is not None}

    @property
    def head_dims(self) -> list[int]:
        """Every size of a head, ascending."""
        return self.axes.head_dim or [self.head_dim or 64]

    @property
    def rules(self) -> list[Rule]:
        """The layer rules; full attention if layers are no axis."""
        return self.axes.layers or [Rule()]

    def mixes(self) -> Mixes:
        """The mix of each rule at each depth."""
        return Mixes.from_rules(self.axes.depth, self.rules, self.conditions)

    def possible_heads(self) -> Heads:
        """The (width, head_dim, n_heads) that axes and conditions allow, before KV heads are considered."""
        width, size = np.array(self.axes.width)[:, None, None], np.array(self.head_dims)[:, None]
        if self.axes.n_heads is None:
            return Heads(width // size, width % size == 0)
        values = np.broadcast_to(np.array(self.axes.n_heads), (len(width), len(size), len(self.axes.n_heads)))
        least, most = self.conditions.min_query_ratio or 0.0, self.conditions.max_query_ratio or math.inf
        queries = values * size
        valid = (queries >= least * (1 - ROUNDING) * width) & (queries <= most * (1 + ROUNDING) * width)
        return Heads(values, valid)

    def heads(self) -> Heads:
        """The (width, head_dim, n_heads) of the space: those with a valid number of KV heads."""
        listed = self.axes.n_kv_heads
        if isinstance(listed, str) or "n_heads" in listed:
            return self.possible_heads()
        return self.possible_heads().divided_by([kv for kv in listed if isinstance(kv, int)])

    def kv_axis(self) -> list[int | str]:
        """KV-head values in gene order; `divisors` becomes every divisor of some n_heads."""
        if isinstance(self.axes.n_kv_heads, list):
            return list(self.axes.n_kv_heads)
        return sorted({kv for heads in self.heads().used.tolist() for kv in divisors(heads)})


def _head_dim_faults(space: SpaceSpecification) -> list[str]:
    """One head size or an axis of them; the one that is left out is none."""
    if space.axes.head_dim is None:
        space.head_dim = space.head_dims[0]
        return []
    twice = "head_dim" in space.model_fields_set and space.head_dim is not None
    space.head_dim = None
    return ["head_dim: expected it or axes.head_dim, got both; remove one"] if twice else []


def layers_faults(space: SpaceSpecification) -> list[str]:
    """Return conditions on layers that are no axis, widths of broken heads, and depths without a mix.

    A space with layers of several kinds has conditions on its layers of full attention: its own, or `FULL_LAYERS`.
    """
    axes, conditions = space.axes, space.conditions
    own = ("min_full_layers", "full_layer_every", "min_window", "max_kv_shared")
    given = [name for name in own if getattr(conditions, name) is not None]
    if axes.layers is None:
        return [f"conditions.{name}: expected axes.layers beside it, got none; remove it" for name in given]
    if not any(getattr(conditions, name) for name in FULL_LAYERS) and any(rule.period for rule in axes.layers):
        space.conditions = conditions.model_copy(update=FULL_LAYERS)
    for family in dict.fromkeys(rule.linear for rule in axes.layers if rule.linear is not None):
        if wrong := [width for width in axes.width if width % LINEAR[family].step]:
            multiples = f"multiples of {LINEAR[family].step} beside linear: {family}"
            return [f"axes.width: expected {multiples}, whose heads come out whole, got {wrong[0]}; change one"]
    if (cells := len(axes.depth) * len(axes.layers)) > MOST_CELLS:
        return [
            f"axes.layers: expected at most {MOST_CELLS:,} pairs of depth and layers, got {cells:,}; shorten either axis"
        ]
    if not (found := space.mixes().valid.any(axis=1)).all():
        depth = axes.depth[int(np.argmin(found))]
        return [
            f"axes.depth: expected a mix of axes.layers within the conditions at every depth, got none at {depth}; drop it"
        ]
    return []


def heads_faults(space: SpaceSpecification) -> list[str]:
    """Return widths that no head size divides or, if n_heads is an axis, widths without a valid number of heads."""
    axes, conditions, sizes = space.axes, space.conditions, space.head_dims
    least, most = conditions.min_query_ratio or 0.0, conditions.max_query_ratio or math.inf
    if axes.n_heads is None:
        wrong = [width for width in axes.width if all(width % size for size in sizes)]
        of = f"multiples of {'a ' if len(sizes) > 1 else ''}head_dim {', '.join(map(str, sizes))}"
        faults = [f"axes.width: expected {of}, got {width}; change one" for width in wrong[:1]]
        given = [name for name in ("min_query_ratio", "max_query_ratio") if getattr(conditions, name) is not None]
        return faults + [f"conditions.{name}: expected axes.n_heads beside it, got none; remove it" for name in given]
    if least > most:
        return [f"conditions.min_query_ratio: expected at most max_query_ratio {most:g}, got {least:g}; correct one"]
    if (cells := len(axes.width) * len(sizes) * len(axes.n_heads)) > MOST_CELLS:
        return [
            f"axes.n_heads: expected at most {MOST_CELLS:,} of width, head_dim and n_heads together, got {cells:,}; "
            "shorten one of them"
        ]
    for width, valid in zip(axes.width, space.possible_heads().valid, strict=True):
        if not valid.any():
            return [
                f"axes.n_heads: expected heads of together {least:g} to {most:g} times width {width}, got none; add a value"
            ]
    return []


def expert_faults(experts: list[int], top_ks: list[int], conditions: Conditions) -> list[str]:
    """Return numbers of experts without a valid top_k."""
    for n in experts:
        least, most = smallest_top_k(n, conditions), largest_top_k(n, conditions)
        if not any(least <= k <= most for k in top_ks):
            needed = "1 (dense)" if n == 1 else f"fewer than n_experts {n}"
            limit = conditions.max_activation_rate
            extra = f" within max_activation_rate {limit:g}" if limit else ""
            extra += f", at least min_top_k {least}" if least > 1 else ""
            return [f"axes.top_k: expected {needed}{extra}, got {top_ks}; add such a value"]
    return []


def ffn_faults(axes: Axes, conditions: Conditions) -> list[str]:
    """Return ratios that give no whole expert size, and limits that leave nothing."""
    limit, narrow = conditions.max_expert_ffn_ratio, min(axes.width)
    if axes.expert_size is not None:
        small = min(axes.expert_size)
        if limit is not None and small > limit * narrow:
            return [
                f"axes.expert_size: expected a value up to {limit * narrow:g} (width {narrow}), got {small}; add one"
            ]
        return []
    ratios = axes.expert_ffn_ratio or []
    for width in axes.width:
        if len({round(ratio * width) for ratio in ratios}) < len(ratios):
            return [
                f"axes.expert_ffn_ratio: expected ratios of distinct expert sizes, got two of one size at width {width}; remove one"
            ]
    for ratio in ratios:
        for width in axes.width:
            size = ratio * width
            if abs(size - round(size)) > 1e-9 * size or round(size) < 1:
                return [
                    f"axes.expert_ffn_ratio: expected a whole expert size, got {ratio:g} of width {width} = {size:g}; "
                    "give expert_size instead"
                ]
    if limit is not None and min(ratios) > limit:
        return [f"axes.expert_ffn_ratio: expected a ratio up to {limit:g}, got {min(ratios):g}; add one"]
    return []


def kv_faults(space: SpaceSpecification) -> list[str]:
    """Return widths for which no listed KV value divides a number of heads."""
    possible, left = space.possible_heads(), space.heads()
    for width, values, before, after in zip(space.axes.width, left.values, possible.valid, left.valid, strict=True):
        if before.any() and not after.any():
            heads = ", ".join(map(str, np.unique(values[before])[:5]))
            return [
                f"axes.n_kv_heads: expected a divisor of n_heads {heads} (width {width}), got none; add 1 or n_heads"
            ]
    return []


def expert_faults_of(mapping: Any) -> list[str]:
    """Return faults of K against E alone, in a space with other faults, so that none hides another."""
    axes = mapping.get("axes") if isinstance(mapping, dict) else None
    if not isinstance(axes, dict):
        return []
    conditions = mapping.get("conditions", {})
    try:
        neutral = {"depth": [1], "width": [64], "expert_size": [1], "n_kv_heads": [1]}
        given = {key: axes[key] for key in ("n_experts", "top_k") if key in axes}
        checked = Axes.model_validate({**neutral, **given})
        return expert_faults(checked.n_experts, checked.top_k, Conditions.model_validate(conditions))
    except ValueError:
        return []


def divisors(n: int) -> list[int]:
    """Return every divisor of a number, ascending."""
    small = [i for i in range(1, math.isqrt(n) + 1) if n % i == 0]
    return small + [n // i for i in reversed(small) if i * i < n]


def size_faults(space: SpaceSpecification) -> list[str]:
    """Return a fault if the tables would fill the memory or the space is too large to be numbered."""
    axes, used = space.axes, space.heads().used.tolist()
    ffn = ("expert_ffn_ratio", axes.expert_ffn_ratio) if axes.expert_size is None else ("expert_size", axes.expert_size)
    for (one, ones), (other, others) in (
        (("n_experts", axes.n_experts), ("top_k", axes.top_k)),
        (("width", axes.width), ffn),
        (("width" if axes.n_heads is None else "n_heads", used), ("n_kv_heads", range(_kv_values(space, used)))),
    ):
        if (cells := len(ones) * len(others or ())) > MOST_CELLS:
            return [
                f"axes.{other}: expected at most {MOST_CELLS:,} pairs of {one} and {other}, got {cells:,}; shorten either axis"
            ]
    size = count(space)
    if size >= MOST:
        return [f"axes: expected fewer than {MOST:,} (2^63) architectures, got {size:,}; shorten an axis"]
    return []


def _kv_values(space: SpaceSpecification, used: list[int]) -> int:
    """How many values the axis of KV heads has; of divisors, counted until their table is too large."""
    if isinstance(space.axes.n_kv_heads, list):
        return len(space.axes.n_kv_heads)
    found: set[int] = set()
    for heads in used:
        found.update(divisors(heads))
        if len(found) * len(used) > MOST_CELLS:
            break
    return len(found)


def count(space: SpaceSpecification) -> int:
    """Return the number of architectures, each with every setting, exact however large."""
    axes, conditions = space.axes, space.conditions
    pairs = sum(
        bisect_right(axes.top_k, largest_top_k(n, conditions)) - bisect_left(axes.top_k, smallest_top_k(n, conditions))
        for n in axes.n_experts
    )
    limit = conditions.max_expert_ffn_ratio
    largest = math.inf if limit is None else limit * (1 + 1e-12)
    sizes, heads = axes.expert_size, space.heads()
    kvs = {n: len(_kv_of(axes.n_kv_heads, n)) for n in heads.used.tolist()}
    of_width = 0
    for width, values, valid in zip(axes.width, heads.values, heads.valid, strict=True):
        if sizes is None:
            ffns = sum(round(ratio * width) <= largest * width for ratio in axes.expert_ffn_ratio or [])
        else:
            ffns = bisect_right(sizes, largest * width)
        of_width += ffns * sum(kvs[n] for n in values[valid].tolist())
    return int(space.mixes().valid.sum()) * pairs * of_width * math.prod(map(len, space.settings.values()))


def _kv_of(axis: list[int | str] | str, heads: int) -> Collection[int]:
    """The distinct numbers of KV heads that a number of heads allows."""
    if isinstance(axis, str):
        return divisors(heads)
    return {heads if kv == "n_heads" else int(kv) for kv in axis if kv == "n_heads" or heads % int(kv) == 0}


def largest_top_k(experts: int, conditions: Conditions) -> int:
    """Return the largest K for a number of experts: K < E within the activation limit, or E = K = 1; 0 if none."""
    limit = conditions.max_activation_rate
    if experts == 1 or limit is None:
        return max(experts - 1, 1)
    return min(experts - 1, math.floor(limit * experts + 1e-9))


def smallest_top_k(experts: int, conditions: Conditions) -> int:
    """Return the least K for a number of experts: 1 for dense designs, else what the conditions say."""
    return 1 if experts == 1 else conditions.min_top_k or 1
