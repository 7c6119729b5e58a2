"""Questions that a table of trained models can answer: each a set of pairs of its rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from objectives.fitting.trained_models import Table
from search_spaces.arrays import AnyArray, BoolArray, FloatArray, IntArray

EQUAL, ALIKE, EQUAL_FLOPS = np.log(1.01), np.log(1.05), np.log(1.05)
TIE = 1e-9  # nats
DESIGN = (
    *("depth", "width", "query_dim", "kv_dim", "expert_ffn_ratio", "n_experts", "top_k"),
    *("parameters", "active_parameters"),
)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Rows `first` and `second` of a table that differ in measured loss, (pairs,)."""

    first: IntArray
    second: IntArray

    def __len__(self) -> int:
        return len(self.first)

    @property
    def rows(self) -> IntArray:
        """The rows that are in some pair."""
        return np.unique(np.concatenate([self.first, self.second]))


class Comparable:
    """All pairs of a table's rows within its groups, and how each quantity differs in them; `group` is (n,)."""

    def __init__(self, table: Table, group: AnyArray) -> None:
        self.table = table
        first, second = np.triu_indices(len(table), 1)
        keep = (group[first] == group[second]) & (np.abs(table.loss[first] - table.loss[second]) > TIE)
        self.first, self.second = first[keep], second[keep]

    @cached_property
    def _apart(self) -> dict[str, FloatArray]:
        return {}

    def has(self, name: str) -> bool:
        """Whether the table says a quantity."""
        return name in ("flops", "query_ratio") or self.table.has(name)

    def apart(self, name: str) -> FloatArray:
        """|Δ ln| of a quantity in every pair, (pairs,); `flops` are 6 · active parameters · tokens, `query_ratio` query width per width."""
        if name not in self._apart:
            log = np.log(self._quantity(name))
            self._apart[name] = np.abs(log[self.first] - log[self.second])
        return self._apart[name]

    def equal(self, *names: str) -> BoolArray:
        """Pairs that are equal in all of the quantities that the table says, (pairs,)."""
        return self.within(EQUAL, *names)

    def alike(self, *names: str) -> BoolArray:
        """Pairs that are alike in all of the quantities that the table says, (pairs,)."""
        return self.within(ALIKE, *names)

    def differ(self, *names: str) -> BoolArray:
        """Pairs that are not equal in one of the quantities at least, (pairs,)."""
        found = np.zeros(len(self.first), dtype=bool)
        for name in names:
            if self.has(name):
                found |= self.apart(name) > EQUAL
        return found

    def within(self, most: float, *names: str) -> BoolArray:
        """Pairs that differ by at most `most`, a logarithm, in all of the quantities that the table says, (pairs,)."""
        found = np.ones(len(self.first), dtype=bool)
        for name in names:
            if self.has(name):
                found &= self.apart(name) <= most
        return found

    def chosen(self, keep: BoolArray) -> Pairs:
        """The pairs that are kept."""
        return Pairs(self.first[keep], self.second[keep])

    def _quantity(self, name: str) -> FloatArray:
        if name == "flops":
            return 6.0 * self.table.feature("active_parameters") * self.table.feature("tokens")
        if name == "query_ratio":
            return self.table.feature("query_dim") / self.table.feature("width")
        return self.table.feature(name)


def _size(c: Comparable) -> BoolArray:
    return c.equal("tokens", "n_experts", "top_k") & ~c.alike("active_parameters")


def _shape(c: Comparable) -> BoolArray:
    same = c.equal("tokens", "n_experts", "top_k") & c.alike("active_parameters", "parameters")
    return same & c.differ("depth", "width")


def _experts(c: Comparable) -> BoolArray:
    return c.equal("tokens", "depth", "width", "top_k") & c.differ("n_experts")


def _active(c: Comparable) -> BoolArray:
    return c.equal("tokens", "depth", "width", "n_experts") & c.differ("top_k")


def _memory(c: Comparable) -> BoolArray:
    return c.equal("tokens") & c.alike("parameters") & c.differ("n_experts")


def _ffn(c: Comparable) -> BoolArray:
    return c.equal("tokens", "depth", "width", "n_experts", "top_k") & c.differ("expert_ffn_ratio")


def _kv(c: Comparable) -> BoolArray:
    same = c.equal("tokens", "depth", "width", "n_experts", "top_k", "expert_ffn_ratio", "query_dim")
    return same & c.differ("kv_dim")


def _attention(c: Comparable) -> BoolArray:
    return c.equal("tokens") & c.alike("active_parameters", "parameters") & ~c.alike("query_ratio")


def _tokens(c: Comparable) -> BoolArray:
    return c.equal(*DESIGN) & c.differ("tokens")


def _compute(c: Comparable) -> BoolArray:
    return c.within(EQUAL_FLOPS, "flops") & c.equal("n_experts", "top_k") & ~c.alike("active_parameters")


def _equal_tokens(c: Comparable) -> BoolArray:
    return c.equal("tokens")


QUESTIONS: Mapping[str, tuple[tuple[str, ...], Callable[[Comparable], BoolArray]]] = {
    "size": (("active_parameters",), _size),
    "shape": (("depth", "width", "active_parameters"), _shape),
    "experts": (("depth", "width", "n_experts"), _experts),
    "active": (("depth", "width", "top_k"), _active),
    "memory": (("parameters", "n_experts"), _memory),
    "ffn": (("depth", "width", "expert_ffn_ratio"), _ffn),
    "kv": (("depth", "width", "expert_ffn_ratio", "kv_dim"), _kv),
    "attention": (("query_dim", "width", "active_parameters"), _attention),
    "tokens": (("tokens", "active_parameters"), _tokens),
    "compute": (("tokens", "active_parameters"), _compute),
    "equal tokens": ((), _equal_tokens),
}  # by name: the quantities that a table must say, and which pairs


def questions_of(table: Table, group: AnyArray) -> dict[str, Pairs]:
    """The questions that a table has any pair for, with these pairs; `group` marks rows that may be compared, (n,)."""
    comparable = Comparable(table, group)
    by_question = {
        name: comparable.chosen(which(comparable))
        for name, (needed, which) in QUESTIONS.items()
        if all(map(table.has, needed))
    }
    return {name: pairs for name, pairs in by_question.items() if len(pairs)}
