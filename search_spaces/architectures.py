"""Architectures as columns: one row is one decoder-only model, with layers of one kind or several."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from search_spaces.arrays import AnyArray, BoolArray, FloatArray, IntArray, brief, frozen
from search_spaces.columns import (
    ALIASES,
    CODED,
    FILE_COLUMNS,
    PRECISIONS,
    SHAPE,
    TEXTS,
    ColumnReader,
    any_of,
    code,
    constant,
    defaults,
    dtype_of,
    names_of,
    number_of,
    worded,
)


@brief
@dataclass(frozen=True, eq=False)
class Architectures:
    """Architectures as read-only columns of shape (n,).

    Source: Sun et al. 2026, search-space table; symbols l, d, d_h, n_h, n_kv, E, K, m.
    `tokens` are those that each is trained on; 0 leaves them to the law that prices it.
    Rows need not belong to any search space: `from_columns` takes published models too.
    """

    depth: IntArray
    width: IntArray
    head_dim: IntArray
    n_heads: IntArray
    n_kv_heads: IntArray
    n_experts: IntArray
    top_k: IntArray
    expert_size: IntArray
    shared_expert_size: IntArray
    shared_gate: BoolArray
    qk_norm: IntArray
    precision: IntArray
    speculation: IntArray
    experts_in: IntArray
    device: IntArray
    qkv_bias: BoolArray
    norms_per_layer: IntArray
    tied: BoolArray
    vocabulary: IntArray
    tokens: IntArray
    n_local: IntArray
    window: IntArray
    n_kv_shared: IntArray
    n_kv_shared_local: IntArray
    n_linear: IntArray
    linear_kind: IntArray
    linear_heads: IntArray
    linear_key_heads: IntArray
    linear_key_dim: IntArray
    linear_value_dim: IntArray
    linear_kernel: IntArray
    n_conv: IntArray
    conv_kernel: IntArray
    n_dense: IntArray
    dense_size: IntArray
    attention_gate: BoolArray
    full_head_dim: IntArray
    full_kv_heads: IntArray
    keys_are_values: BoolArray
    latent_size: IntArray
    latent_rope: IntArray
    latent_queries: IntArray
    value_dim: IntArray
    further_parameters: IntArray
    table_parameters: IntArray
    index_heads: IntArray
    index_dim: IntArray
    ungated_ffn: BoolArray
    layers: IntArray

    def __len__(self) -> int:
        return len(self.depth)

    def __getitem__(self, rows: Any) -> Self:
        """The chosen rows (slice, mask or integer array), in that order."""
        if isinstance(rows, slice) and rows.indices(len(self)) == (0, len(self), 1):
            return self
        count = len(self.depth[rows])
        return type(self)(**{name: _rows(column, rows, count) for name, column in vars(self).items()})

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as one table, with the texts that it has numbers of: a task for a worker is small and soon made."""
        numbers = [np.unique(getattr(self, name)) for name in TEXTS if any_of(getattr(self, name))]
        texts = names_of(np.concatenate(numbers)).tolist() if numbers else []
        return _from_table, (np.array(list(vars(self).values()), dtype=np.int64), texts)

    @property
    def query_dim(self) -> IntArray:
        """d_q = n_h · d_h, features, (n,)."""
        return self.n_heads * self.head_dim

    @property
    def kv_dim(self) -> IntArray:
        """d_m = d_h · n_kv, features, (n,)."""
        return self.head_dim * self.n_kv_heads

    @property
    def n_full(self) -> IntArray:
        """Layers of full attention, which are those of no other kind, (n,)."""
        return self.depth - self.n_local - self.n_linear - self.n_conv

    @property
    def gqa(self) -> FloatArray:
        """n_h / n_kv, query heads per KV head, (n,); a larger gqa has fewer KV heads."""
        return self.n_heads / self.n_kv_heads

    @property
    def activation_rate(self) -> FloatArray:
        """ρ = K / E, (n,); 1 is dense."""
        return self.top_k / self.n_experts

    @property
    def expert_ffn_ratio(self) -> FloatArray:
        """r_single = m / d, (n,)."""
        return self.expert_size / self.width

    @property
    def ffn_ratio(self) -> FloatArray:
        """r = (K · m) / d, total activated ratio, (n,); in this order mathematical ties stay equal."""
        return (self.top_k * self.expert_size) / self.width

    def with_vocabulary(self, vocabulary: int, *, tied: bool | None = None) -> Self:
        """Return the same layers with another vocabulary (0: no embedding, no LM head).

        Args:
            vocabulary: entries; 0: neither embedding nor LM head.
            tied: one table for both; None: as it is.
        """
        return self.with_values({"vocabulary": vocabulary} | ({} if tied is None else {"tied": tied}))

    def with_full_attention(self) -> Self:
        """Return the same layers with windows replaced by attention to the whole context."""
        sharing = any_of(self.n_kv_shared)
        if any_of(self.full_head_dim):
            return self  # which layers are local decides their heads
        return self.with_values({"n_local": 0, "window": 0} | ({"n_kv_shared_local": 0} if sharing else {}))

    def with_values(self, values: Mapping[str, int | bool]) -> Self:
        """Return the same architectures with one value for all in some columns, unchecked.

        Args:
            values: by column, one number for all rows.
        """
        if not any(_differs(getattr(self, name), value) for name, value in values.items()):
            return self
        changed = {name: constant(value, len(self), dtype_of(name)) for name, value in values.items()}
        return type(self)(**(vars(self) | changed))

    def with_tokens(self, tokens: int) -> Self:
        """Return the same architectures with so many training tokens (0: the scenario's number).

        Args:
            tokens: training tokens.
        """
        return self.with_values({"tokens": tokens})

    def served(self, speculation: int, experts_in: int) -> Self:
        """Return the same architectures with other serving columns, words by their places in `CODES`."""
        return self.with_values({"speculation": speculation, "experts_in": experts_in})

    def on(self, device: str) -> Self:
        """Return the same architectures on a device of a study with several; "" is the study's own.

        Args:
            device: its name in the study.
        """
        return self.with_values({"device": code("device", device)})

    def in_formats(self) -> Iterator[tuple[str, IntArray]]:
        """Return each format of the rows ("" is the study's own) with its rows."""
        for place in np.unique(self.precision).tolist():
            yield PRECISIONS[place], np.flatnonzero(self.precision == place)

    def in_layouts(self) -> list[IntArray]:
        """Return the rows of each value of `layers`; empty if all rows have one."""
        if not any_of(self.layers) or not _differs(self.layers, self.layers[0]):
            return []
        return [np.flatnonzero(self.layers == number) for number in np.unique(self.layers)]

    def columns(self, always: Collection[str] = ()) -> dict[str, AnyArray]:
        """Return the columns of `frontier.csv` in order, then further ones that differ from their defaults or are named.

        Args:
            always: further columns to return though they have their defaults.
        """
        named: dict[str, AnyArray] = {name: getattr(self, name) for name in FILE_COLUMNS}
        return named | self.further_columns(always)

    def further_columns(self, always: Collection[str] = ()) -> dict[str, AnyArray]:
        """Return columns beyond the shape that differ from their default in some row, and those named."""
        return {
            name: worded(name, getattr(self, name))
            for name, default in CODED.items()
            if name in always or _differs(getattr(self, name), default)
        }

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any]) -> Self:
        """Return checked architectures from columns named as in files (scalars or sequences).

        Needs depth, width, n_kv_heads and expert_size (or expert_ffn_ratio). `head_dim` is 64,
        `n_heads` width / head_dim and experts dense unless given; derived columns are checked
        against the rest.

        Args:
            columns: by name, numbers or texts, each (n,) or one for all.

        Raises:
            ValueError: `column: expected X, got Y; do Z`, one line a fault.
        """
        reader = ColumnReader(columns)
        stored: dict[str, Any] = reader.read()
        found = cls(**stored)
        reader.check_derived({name: getattr(found, name) for name in ALIASES})
        return found

    @classmethod
    def concatenate(cls, parts: Iterable[Self]) -> Self:
        """Return all rows of all parts, in order.

        Args:
            parts: architectures, (n_i,) each; the result has Σ n_i rows.
        """
        stored = [vars(part) for part in parts]
        joined: dict[str, Any] = {f.name: frozen(np.concatenate([p[f.name] for p in stored])) for f in fields(cls)}
        return cls(**joined)

    @classmethod
    def from_shape(cls, shape: Mapping[str, IntArray]) -> Self:
        """Return unchecked architectures from the eight shape columns, with defaults for the others.

        Args:
            shape: by column, each (n,).
        """
        further: dict[str, Any] = {**defaults(len(shape["depth"]))}
        return cls(**further | {name: frozen(column) for name, column in shape.items()})


if unlike := {field.name for field in fields(Architectures)} ^ {*SHAPE, *CODED}:
    raise TypeError(
        "search_spaces/architectures.py, search_spaces/columns.py: expected the same columns in Architectures and in SHAPE "
        f"and DEFAULTS, got {', '.join(sorted(unlike))} in one of them; add it to the other"
    )


def _from_table(table: IntArray, texts: Sequence[str]) -> Architectures:
    """Architectures from all their columns, (columns, n), with the texts that some are numbers of."""
    for text in texts:
        number_of(text)
    names = [field.name for field in fields(Architectures)]
    columns: dict[str, Any] = {n: frozen(row.astype(dtype_of(n))) for n, row in zip(names, table, strict=True)}
    return Architectures(**columns)


def _differs(column: AnyArray, value: Any) -> bool:
    """Whether a column holds anything but a value; of a constant one its first row decides."""
    return bool(column[0] != value if column.strides == (0,) and len(column) else np.any(column != value))


def _rows(column: AnyArray, rows: Any, count: int) -> AnyArray:
    if column.strides == (0,) and len(column):
        return constant(column[0], count, column.dtype)
    picked: AnyArray = frozen(column[rows])
    return picked


def one(row: Mapping[str, Any]) -> Architectures:
    """Return a single architecture (n = 1) from a mapping of its columns."""
    return Architectures.from_columns({name: [value] for name, value in row.items()})


def architectures_of(rows: Sequence[Mapping[str, Any]]) -> Architectures:
    """Return one architecture per mapping, in order.

    Raises:
        ValueError: the first fault, with the number of its row.
    """
    alike: dict[tuple[str, ...], list[int]] = {}
    for number, row in enumerate(rows):
        alike.setdefault(tuple(row), []).append(number)
    parts, faulty = [], []
    for numbers in alike.values():
        group = [rows[number] for number in numbers]
        if (made := _together(group)) is None:
            fault = _first_fault(group)
            faulty += [] if fault is None else [numbers[fault]]
            made = Architectures.concatenate([one(row) for row in group]) if fault is None else None
        parts += [] if made is None else [made]
    if faulty:
        number = min(faulty)
        try:
            one(rows[number])
        except ValueError as error:
            raise ValueError(f"row {number + 1}: {str(error).splitlines()[0]}") from None
    order = np.argsort(np.concatenate([np.array(numbers) for numbers in alike.values()]))
    return Architectures.concatenate(parts)[order]


def _together(rows: Sequence[Mapping[str, Any]]) -> Architectures | None:
    """Rows that give the same columns, as one; None where a column cannot be read as a whole."""
    try:
        return Architectures.from_columns({name: [row[name] for row in rows] for name in rows[0]})
    except ValueError:
        return None


def _first_fault(rows: Sequence[Mapping[str, Any]]) -> int | None:
    """The first of rows, not readable together, that is none by itself either, found by halving."""
    if len(rows) == 1:
        return 0
    half = len(rows) // 2
    for start, part in ((0, rows[:half]), (half, rows[half:])):
        if _together(part) is None and (found := _first_fault(part)) is not None:
            return start + found
    return None
