"""Architectures as columns: one row is one decoder-only Transformer with identical layers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

import numpy as np

from search_spaces.arrays import AnyArray, BoolArray, FloatArray, IntArray, frozen

QK_NORMS = ("no", "head", "full")
DEFAULTS: dict[str, int | bool | str] = {
    "shared_expert_size": 0,
    "shared_gate": False,
    "qk_norm": "head",
    "qkv_bias": False,
    "norms_per_layer": 2,
    "tied": True,
    "vocabulary": 0,
}
Part = Literal["base", "attention", "ffn"]  # depth and width; n_kv_heads; n_experts, top_k and expert_size
ALIASES = ("gqa", "activation_rate", "expert_ffn_ratio", "ffn_ratio", "query_dim", "kv_dim")
SHAPE = (
    "depth",
    "width",
    "head_dim",
    "n_heads",
    "n_kv_heads",
    "n_experts",
    "top_k",
    "expert_size",
)
FILE_COLUMNS = (
    *("depth", "width", "head_dim", "n_heads", "n_kv_heads", "gqa", "n_experts", "top_k"),
    *("activation_rate", "expert_ffn_ratio", "expert_size", "ffn_ratio"),
)


@dataclass(frozen=True, eq=False)
class Architectures:
    """Architectures as read-only columns of shape (n,).

    Source: Sun et al. 2026, search-space table; symbols l, d, d_h, n_h, n_kv, E, K, m.
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
    qkv_bias: BoolArray
    norms_per_layer: IntArray
    tied: BoolArray
    vocabulary: IntArray

    def __len__(self) -> int:
        return len(self.depth)

    def __getitem__(self, rows: Any) -> Self:
        """The chosen rows (slice, mask or integer array), in that order."""
        return type(self)(**{name: _rows(column, rows) for name, column in self._stored().items()})

    def _stored(self) -> dict[str, AnyArray]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def query_dim(self) -> IntArray:
        """d_q = n_h · d_h, features, (n,)."""
        return self.n_heads * self.head_dim

    @property
    def kv_dim(self) -> IntArray:
        """d_m = d_h · n_kv, features, (n,)."""
        return self.head_dim * self.n_kv_heads

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
        """The same layers with another vocabulary (0: no embedding, no LM head)."""
        changed: dict[str, AnyArray] = {"vocabulary": _constant(vocabulary, len(self), np.int64)}
        if tied is not None:
            changed["tied"] = _constant(tied, len(self), np.bool_)
        return type(self)(**(self._stored() | changed))

    def columns(self) -> dict[str, AnyArray]:
        """Columns of `frontier.csv` in order, then further ones that differ from their defaults."""
        named: dict[str, AnyArray] = {name: getattr(self, name) for name in FILE_COLUMNS}
        return named | self.further_columns()

    def further_columns(self) -> dict[str, AnyArray]:
        """Columns beyond the shape that are not at their default in every row."""
        stored = self._stored() | {"qk_norm": np.asarray(QK_NORMS, dtype=object)[self.qk_norm]}
        return {name: stored[name] for name, default in DEFAULTS.items() if np.any(stored[name] != default)}

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any]) -> Self:
        """Checked architectures from columns named as in files (scalars or sequences).

        Needs depth, width, n_kv_heads and expert_size (or expert_ffn_ratio). `head_dim` is 64,
        `n_heads` width / head_dim and experts dense unless given; derived columns are checked
        against the rest, other unknown ones ignored.

        Raises:
            ValueError: `column: expected X, got Y; do Z`, one line a fault.
        """
        found: Self = _Reader(columns).read(cls)
        return found

    @classmethod
    def concatenate(cls, parts: Iterable[Self]) -> Self:
        """All rows of all parts, in order."""
        stored = [part._stored() for part in parts]
        joined: dict[str, Any] = {f.name: frozen(np.concatenate([p[f.name] for p in stored])) for f in fields(cls)}
        return cls(**joined)

    @classmethod
    def from_shape(cls, shape: Mapping[str, IntArray]) -> Self:
        """Unchecked architectures from the eight shape columns, the further ones at their defaults."""
        n = len(shape["depth"])
        columns: dict[str, Any] = {name: frozen(shape[name]) for name in SHAPE}
        columns |= {name: _constant(_code(name, value), n, _dtype(name)) for name, value in DEFAULTS.items()}
        return cls(**columns)


def _rows(column: AnyArray, rows: Any) -> AnyArray:
    if column.strides == (0,) and len(column):
        count = len(np.broadcast_to(np.int8(0), len(column))[rows])
        return np.broadcast_to(column[:1].reshape(()), (count,))
    picked: AnyArray = frozen(column[rows])
    return picked


def _constant(value: Any, n: int, dtype: Any) -> AnyArray:
    return np.broadcast_to(np.asarray(value, dtype=dtype), (n,))


def _dtype(name: str) -> Any:
    return np.bool_ if isinstance(DEFAULTS.get(name, 0), bool) else np.int64


def _code(name: str, value: Any) -> Any:
    return QK_NORMS.index(value) if name == "qk_norm" else value


class _Reader:
    """Reads user-given columns and says every fault at once."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.given = {name: np.atleast_1d(np.asarray(value)) for name, value in columns.items() if value is not None}
        self.faults: list[str] = []
        sizes = {len(value) for value in self.given.values()} or {0}
        if len(sizes - {1}) > 1:
            raise ValueError(f"architecture: expected columns of one length, got lengths {sorted(sizes)}")
        self.n = max(sizes)

    def read(self, cls: type[Architectures]) -> Any:
        shape: dict[str, Any] = self._shape()
        further: dict[str, Any] = {name: self._further(name) for name in DEFAULTS}
        self._check(shape)
        if self.faults:
            raise ValueError("\n".join(self.faults))
        self._check_derived(found := cls(**shape, **further))
        if self.faults:
            raise ValueError("\n".join(self.faults))
        return found

    def _shape(self) -> dict[str, IntArray]:
        shape = {name: self._positive(name) for name in ("depth", "width")}
        shape["head_dim"] = self._positive("head_dim", np.asarray(64))
        shape["n_heads"] = self._positive("n_heads", shape["width"] / shape["head_dim"])
        shape["n_kv_heads"] = self._positive("n_kv_heads", self._from_gqa(shape["n_heads"]))
        shape["n_experts"] = self._positive("n_experts", np.asarray(1))
        shape["top_k"] = self._positive("top_k", np.asarray(1))
        shape["expert_size"] = self._positive("expert_size", self._from_ratio(shape))
        return {name: shape[name] for name in SHAPE}

    def _from_gqa(self, n_heads: IntArray) -> FloatArray | None:
        gqa = self.given.get("gqa")
        return None if gqa is None else n_heads / _numbers(gqa)

    def _from_ratio(self, shape: Mapping[str, IntArray]) -> FloatArray | None:
        if "expert_ffn_ratio" in self.given:
            return np.asarray(_numbers(self.given["expert_ffn_ratio"]) * shape["width"])
        if "ffn_ratio" in self.given:
            return np.asarray(_numbers(self.given["ffn_ratio"]) * shape["width"] / shape["top_k"])
        return None

    def _positive(self, name: str, fallback: AnyArray | None = None) -> IntArray:
        raw = self.given.get(name, fallback)
        if raw is None:
            self.faults.append(f"{name}: expected a positive integer, got nothing; give the column")
            return _constant(1, self.n, np.int64)
        numbers = _numbers(raw)
        finite = np.isfinite(numbers)
        numbers = np.where(finite, numbers, 0.0)
        whole = np.round(numbers)
        bad = ~finite | (np.abs(numbers - whole) > 1e-6 * np.maximum(1, np.abs(whole))) | (whole < 1)
        bad |= whole > 2**40
        if bad.any():
            shown = np.atleast_1d(np.asarray(raw))[np.atleast_1d(bad)][0]
            origin = "" if name in self.given else " from the other columns"
            self.faults.append(f"{name}: expected a positive integer, got {shown}{origin}; correct the architecture")
            return _constant(1, self.n, np.int64)
        return frozen(np.array(np.broadcast_to(whole, (self.n,)), dtype=np.int64))

    def _further(self, name: str) -> AnyArray:
        default = DEFAULTS[name]
        raw = self.given.get(name)
        if raw is None:
            return _constant(_code(name, default), self.n, _dtype(name))
        try:
            values = [_further_value(name, value) for value in raw.tolist()]
        except ValueError as error:
            self.faults.append(str(error))
            return _constant(_code(name, default), self.n, _dtype(name))
        return frozen(np.array(np.broadcast_to(np.asarray(values, dtype=_dtype(name)), (self.n,))))

    def _check(self, shape: Mapping[str, IntArray]) -> None:
        wrong_already = {line.partition(":")[0] for line in self.faults}  # what follows from a fault is none
        heads, kv = shape["n_heads"], shape["n_kv_heads"]
        if not wrong_already & {"n_heads", "n_kv_heads"} and (wrong := heads % kv != 0).any():
            i = int(np.argmax(wrong))
            self.faults.append(f"n_kv_heads: expected a divisor of n_heads {heads[i]}, got {kv[i]}; choose one")
        experts, top_k = shape["n_experts"], shape["top_k"]
        if wrong_already & {"n_experts", "top_k"}:
            return
        if (wrong := ~((top_k < experts) | ((experts == 1) & (top_k == 1)))).any():
            i = int(np.argmax(wrong))
            self.faults.append(
                f"top_k: expected fewer than n_experts {experts[i]} (or 1 of 1, dense), got {top_k[i]}; lower top_k"
            )

    def _check_derived(self, found: Architectures) -> None:
        for name in ALIASES:
            if name not in self.given:
                continue
            expected, given = getattr(found, name), _numbers(self.given[name])
            if (off := ~np.isclose(given, expected, rtol=1e-6)).any():
                i = int(np.argmax(np.broadcast_to(off, (self.n,))))
                got = np.broadcast_to(given, (self.n,))[i]
                self.faults.append(f"{name}: expected {expected[i]:g} from the other columns, got {got:g}; drop one")


def _numbers(raw: AnyArray) -> FloatArray:
    try:
        numbers: FloatArray = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError):
        return np.full(np.shape(raw), np.nan)
    return numbers


_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _further_value(name: str, value: Any) -> Any:
    if name == "qk_norm":
        word = "no" if value is False else str(value)
        if word not in QK_NORMS:
            raise ValueError(f"qk_norm: expected one of {', '.join(QK_NORMS)}, got {value}; choose one")
        return QK_NORMS.index(word)
    if _dtype(name) is np.bool_:
        truth = _WORDS.get(str(value).lower().removesuffix(".0"))
        if truth is None:
            raise ValueError(f"{name}: expected true or false, got {value}; choose one")
        return truth
    number = float(value) if isinstance(value, (int, float, str)) and _is_number(value) else -1.0
    least = 1 if name == "norms_per_layer" else 0
    if number != int(number) or number < least:
        raise ValueError(f"{name}: expected a whole number of at least {least}, got {value}; correct it")
    return int(number)


def _is_number(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except ValueError:
        return False


def one(row: Mapping[str, Any]) -> Architectures:
    """A single architecture (n = 1) from a mapping of its columns."""
    return Architectures.from_columns({name: [value] for name, value in row.items()})


def stack(rows: Sequence[Mapping[str, Any]]) -> Architectures:
    """One architecture per mapping, in order.

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
