"""Mixes of layers: the layers that each rule of a space's layer axis gives at each depth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, BoolArray, IntArray, frozen
from search_spaces.axes_schema import Conditions, Rule
from search_spaces.columns import CODED, code, names_of, worded
from search_spaces.layer_kinds import KIND_DEFAULTS, LINEAR_KINDS, SIZES, read_blocks

SHARING_NORMS = 4  # norms of a layer where caches are shared, as in Gemma 3n and 4
MOST_SHARED = 2  # at most one layer in so many reads another's cache: Sun et al. 2024 (2405.05254) share half of them


class LinearSizes(NamedTuple):
    """Sizes of a family of linear attention: expand · d features in heads of `value_dim`, `per_key` heads (0: all) per key.

    key_dim: features of a key (Mamba2: the state's size); kernel: taps of the causal convolution. gate and qk_norm: the
    output gate and the norm of the attention that the family stands beside, so that a published class holds its designs.
    """

    key_dim: int
    value_dim: int
    expand: int
    per_key: int
    kernel: int
    gate: bool
    qk_norm: str

    @property
    def step(self) -> int:
        """Widths with whole heads are multiples of this."""
        return max(1, self.value_dim * max(1, self.per_key) // self.expand)


LINEAR = {
    "no": LinearSizes(0, 0, 0, 0, 0, gate=False, qk_norm="head"),
    "deltanet": LinearSizes(128, 128, 2, 2, 4, gate=True, qk_norm="head"),  # Qwen3-Next-80B-A3B
    "mamba2": LinearSizes(128, 64, 2, 0, 4, gate=False, qk_norm="no"),  # Granite 4.0 H: one group
}
_SIZES = np.array([(*LINEAR[name][:-1], code("qk_norm", LINEAR[name].qk_norm)) for name in LINEAR_KINDS])


def linear_columns(kind: IntArray, width: IntArray) -> dict[str, AnyArray]:
    """Return the columns that linear attention sets, each (n,), for places among `LINEAR_KINDS` and widths."""
    key_dim, value_dim, expand, per_key, kernel, gate, qk_norm = _SIZES[kind].T
    heads = expand * width // np.maximum(value_dim, 1)
    return {
        "linear_heads": heads,
        "linear_key_heads": np.where(per_key > 0, heads // np.maximum(per_key, 1), kind > 0).astype(np.int64),
        "linear_key_dim": key_dim,
        "linear_value_dim": value_dim,
        "linear_kernel": kernel,
        "attention_gate": gate > 0,
        "qk_norm": qk_norm,
    }


def implied_columns(kind: IntArray, sharing: IntArray, width: IntArray) -> dict[str, AnyArray]:
    """Return the columns that layer kinds imply, each (n,), for places among `LINEAR_KINDS`, layers with shared KV caches, and widths."""
    norms = np.where(sharing > 0, SHARING_NORMS, CODED["norms_per_layer"])
    return {**linear_columns(kind, width), "norms_per_layer": norms}


@dataclass(frozen=True, eq=False)
class Mixes:
    """Columns of layer kinds by name, each (depths, rules), and a mask of valid ones.

    Valid are those that the conditions allow, whose shared caches have owners, and that no rule before gives as well:
    so an architecture has one gene.
    """

    columns: Mapping[str, IntArray]
    valid: BoolArray

    @classmethod
    def from_rules(cls, depths: Sequence[int], rules: Sequence[Rule], conditions: Conditions) -> Self:
        """Return mixes of rules at depths: l // period layers of full attention, at least one, at the end of each period."""
        depth = np.array(depths, dtype=np.int64)[:, None]
        period, window, taps, sharing = (
            np.array([getattr(rule, name) or default for rule in rules], dtype=np.int64)
            for name, default in (("period", 1), ("local", 0), ("conv", 0), ("kv_shared", 0))
        )
        linear = np.array([LINEAR_KINDS.index(rule.linear or "no") for rule in rules], dtype=np.int64)
        full = np.maximum(depth // period, 1)
        others, last = depth - full, np.minimum(sharing, depth)
        full_shared = np.where(depth >= period, full - (depth - last) // period, np.minimum(last, 1))
        local, local_shared = others * (window > 0), np.where(window > 0, last - full_shared, 0)
        columns = {
            "n_local": local,
            "window": window * (local > 0),
            "n_kv_shared": full_shared + local_shared,
            "n_kv_shared_local": local_shared,
            "n_linear": others * (linear > 0),
            "linear_kind": linear * (others > 0),
            "n_conv": others * (taps > 0),
            "conv_kernel": taps * (others > 0),
        }
        owned = (full_shared < full) & ((local_shared == 0) | (local_shared < local)) & (MOST_SHARED * sharing <= depth)
        least = np.maximum(
            depth // conditions.full_layer_every if conditions.full_layer_every else 0, conditions.min_full_layers or 0
        )
        valid = owned & (full >= least) & (window >= (local > 0) * (conditions.min_window or 0))
        if conditions.max_kv_shared is not None:
            valid &= full_shared + local_shared <= conditions.max_kv_shared
        return cls({name: frozen(table) for name, table in columns.items()}, frozen(_first(valid, columns)))

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that are nonzero in some valid mix, and the sizes of linear attention."""
        found = [name for name, table in self.columns.items() if table[self.valid].any()]
        linear = (*SIZES["n_linear"][1:], "attention_gate", "qk_norm") if "n_linear" in found else ()
        return (*found, *linear, *(("norms_per_layer",) if "n_kv_shared" in found else ()))

    def at(self, depth: IntArray, layers: IntArray | int, width: IntArray) -> dict[str, AnyArray]:
        """Return columns of layer kinds, each (n,), for genes of depth and layers with widths in features."""
        found: dict[str, AnyArray] = {name: table[depth, layers] for name, table in self.columns.items()}
        return found | implied_columns(found["linear_kind"], found["n_kv_shared"], width)

    def find(self, depth: IntArray, architectures: Architectures) -> IntArray:
        """Return the layers gene of architectures with given depth genes, (n,); −1 if there is none."""
        a, same = architectures, self.valid[depth]
        for name, table in self.columns.items():
            same = same & (table[depth] == getattr(a, name)[:, None])
        found = same.any(axis=1)
        fixed = {name: code(name, default) for name, default in KIND_DEFAULTS.items() if name not in self.columns}
        for name, values in {**fixed, **implied_columns(a.linear_kind, a.n_kv_shared, a.width)}.items():
            found &= getattr(a, name) == values
        return np.where(found, same.argmax(axis=1), -1)


def in_words(architectures: Architectures) -> list[str]:
    """Return the layers of each architecture by kind: `full`, `4 full + 22 within 512, 10 share KV`, `6 full + 18 deltanet`."""
    a = architectures
    names = ("n_full", "n_local", "window", "n_linear", "linear_kind", "n_conv", "n_kv_shared")
    rows = zip(*(worded(name, getattr(a, name)).tolist() for name in names), strict=True)
    listed = names_of(a.layers).tolist()
    return [_blocks_in_words(text) if text else _one_in_words(*row) for text, row in zip(listed, rows, strict=True)]


def _blocks_in_words(text: str) -> str:
    """Blocks as `layers` lists them: `23 mamba2 + 6 full, 23 FFNs`, with the sizes of FFNs where there are several."""
    mixers, ffns = dict[str, int](), dict[str, int]()
    for block in read_blocks(text):
        size = block.columns.get
        kind = "full" if not size("n_local") else "sparse" if size("latent_size") else f"within {size('window'):,}"
        kind = LINEAR_KINDS[size("linear_kind", 0)] if size("n_linear") else kind
        kind += f" of {size('n_kv_heads')} KV heads" if size("n_kv_heads") and not size("latent_size") else ""
        counts, name = (mixers, kind) if block.place == "mixer" else (ffns, f"{size('expert_size', 0):,}")
        counts[name] = counts.get(name, 0) + block.count
    kinds = " + ".join(f"{count} {name}" for name, count in mixers.items())
    sizes = f" of {', '.join(ffns)}" if len(ffns) > 1 and "0" not in ffns else ""
    return f"{kinds}, {sum(ffns.values())} FFNs{sizes}"


def _one_in_words(full: int, local: int, window: int, linear: int, family: str, conv: int, shared: int) -> str:
    others = ((local, f"within {window:,}"), (linear, family), (conv, "of convolution"))
    kinds = " + ".join(f"{count} {kind}" for count, kind in ((full, "full"), *others) if count)
    return (kinds if local or linear or conv else "full") + (f", {shared} share KV" if shared else "")


def _first(valid: BoolArray, columns: Mapping[str, IntArray]) -> BoolArray:
    """Of valid mixes of one depth that are alike the first alone."""
    if valid.shape[1] == 1:
        return valid
    depth, rule = np.nonzero(valid)
    rows = np.stack([depth, *(np.broadcast_to(table, valid.shape)[valid] for table in columns.values())], axis=1)
    first, found = np.unique(rows, axis=0, return_index=True)[1], np.zeros_like(valid)
    found[depth[first], rule[first]] = True
    return found
