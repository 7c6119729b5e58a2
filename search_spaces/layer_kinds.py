"""Kinds of layers: their columns, and which combinations are valid models.

Every layer has one mixer and one FFN. Mixers: full attention, attention within a sliding window, linear attention of a
family, short convolution. How many there are of each is a column; full attention is what is left of the depth. Their
order changes no cost. Beside windows, layers of full attention may have heads of their own (`full_head_dim`,
`full_kv_heads`, Gemma 4). Latent attention (`latent_size`, DeepSeek's MLA) keeps one vector of `latent_size` + `latent_rope`
elements a token for all heads, whose size `head_dim` is without and with position (`latent_rope`), and values have `value_dim`.
Blocks of it (see `Block`) may attend to the `window` tokens alone that an indexer of `index_heads` heads of `index_dim` chooses
(DeepSeek's sparse attention); a block with a window and without an indexer takes another block's choice. An FFN has a gate, three matrices, or none, two (`ungated_ffn`).

Where sizes differ from layer to layer, or a layer has a mixer or an FFN alone, `layers` lists them: see `Block`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np

from search_spaces.arrays import AnyArray, BoolArray, IntArray

LINEAR_KINDS = ("no", "deltanet", "mamba2")
KIND_DEFAULTS: dict[str, int | bool | str] = {
    "n_local": 0,
    "window": 0,
    "n_kv_shared": 0,
    "n_kv_shared_local": 0,
    "n_linear": 0,
    "linear_kind": "no",
    "linear_heads": 0,
    "linear_key_heads": 0,
    "linear_key_dim": 0,
    "linear_value_dim": 0,
    "linear_kernel": 0,
    "n_conv": 0,
    "conv_kernel": 0,
    "n_dense": 0,
    "dense_size": 0,
    "attention_gate": False,
    "full_head_dim": 0,
    "full_kv_heads": 0,
    "keys_are_values": False,
    "latent_size": 0,
    "latent_rope": 0,
    "latent_queries": 0,
    "value_dim": 0,
    "further_parameters": 0,
    "table_parameters": 0,
    "index_heads": 0,
    "index_dim": 0,
    "ungated_ffn": False,
    "layers": "",
}
Place = Literal["mixer", "ffn"]


@dataclass(frozen=True)
class Block:
    """Mixers or FFNs of one size: their number of layers, and the columns that differ from the architecture's.

    In files `layers` lists them: `mixer 24 n_kv_heads=2; ffn 23; ffn 1 expert_size=768`.
    """

    place: Place
    count: int
    columns: Mapping[str, int]


def written_blocks(blocks: list[Block]) -> str:
    """Return the value of `layers` for these blocks, with equal ones merged."""
    counts: dict[tuple[Place, str], int] = {}
    for block in blocks:
        key = block.place, "".join(f" {name}={value}" for name, value in sorted(block.columns.items()))
        counts[key] = counts.get(key, 0) + block.count
    return "; ".join(f"{place} {count}{columns}" for (place, columns), count in counts.items())


@lru_cache(maxsize=256)
def read_blocks(text: str) -> tuple[Block, ...]:
    """Return the blocks in a value of `layers`.

    Raises:
        ValueError: `layers: expected X, got Y`.
    """
    blocks = tuple(_block(entry, text) for entry in text.split(";"))
    if {block.place for block in blocks} != {*get_args(Place)}:
        raise ValueError("layers: expected mixers and FFNs, got one of them alone; list both")
    return blocks


def _block(entry: str, text: str) -> Block:
    word, *rest = entry.split() or [""]
    place = next((each for each in OF_BLOCKS if each == word), None)
    pairs = [pair.partition("=") for pair in rest[1:]]
    if place is None or not rest or not rest[0].isdecimal() or not 0 < int(rest[0]) <= 10**6:
        raise ValueError(f"layers: expected entries like 'ffn 2 expert_size=768', got {text[:60]!r}")
    for name, _, value in pairs:
        if name not in OF_BLOCKS[place] or not value.removeprefix("-").isdecimal() or len(value) > 13:
            raise ValueError(f"layers: expected sizes of a {place} in whole numbers, got {name}={value}")
    return Block(place, int(rest[0]), {name: int(value) for name, _, value in pairs})


#: Heads that one part of the layers has, and those of latent attention: published models have them, no search space does.
OTHER_HEADS = (
    *("full_head_dim", "full_kv_heads", "keys_are_values"),
    *("latent_size", "latent_rope", "latent_queries", "value_dim"),
    *("index_heads", "index_dim", "ungated_ffn", "layers"),
)
#: What a kind's layers are made of: nothing without such layers, something with them.
SIZES = {
    "n_local": ("window",),
    "n_linear": (
        *("linear_kind", "linear_heads", "linear_key_heads", "linear_key_dim", "linear_value_dim", "linear_kernel"),
    ),
    "n_conv": ("conv_kernel",),
    "n_dense": ("dense_size",),
}
_SHARED = ("norms_per_layer", "further_parameters", "width")
_OF_FFN = ("n_experts", "top_k", "expert_size", "shared_expert_size", "shared_gate", "ungated_ffn")
#: Columns that blocks may have of their own; codes of words as numbers.
OF_BLOCKS: dict[Place, tuple[str, ...]] = {
    "mixer": (
        *("head_dim", "n_heads", "n_kv_heads", "qk_norm", "qkv_bias", "attention_gate", *_SHARED),
        *(
            name
            for name in KIND_DEFAULTS
            if not name.startswith(("n_dense", "dense", "table", "layers", *_OF_FFN, *_SHARED))
        ),
    ),
    "ffn": (*_OF_FFN, *_SHARED),
}
#: Columns that say how many layers are not of full attention and experts, and whether attention has a gate.
COUNTS = (*SIZES, "n_kv_shared", "attention_gate")


def kind_faults(columns: Mapping[str, AnyArray]) -> list[str]:
    """Return faults in columns of layer kinds, one line each, for the first wrong row.

    `columns` are stored ones, (n,), with depth and n_experts.
    """
    if not any(columns[name].any() for name in KIND_DEFAULTS):
        return []
    return [*_size_faults(columns), *_count_faults(columns), *_head_faults(columns)]


def _size_faults(c: Mapping[str, AnyArray]) -> Iterator[str]:
    """Sizes without layers that have them, and layers without a size."""
    for count, sizes in SIZES.items():
        for size in sizes:
            needed, given = c[count] > 0, c[size] > 0
            if (i := _first(needed & ~given)) is not None:
                expected = f"one of {', '.join(LINEAR_KINDS[1:])}" if size == "linear_kind" else "a positive integer"
                got = "no" if size == "linear_kind" else "0"
                yield f"{size}: expected {expected} beside {count} {c[count][i]}, got {got}; give the column"
            elif (i := _first(given & ~needed)) is not None:
                yield f"{count}: expected at least 1 beside {size}, got 0; drop {size} or give {count}"


def _count_faults(c: Mapping[str, AnyArray]) -> Iterator[str]:
    """More layers of a kind than there are, shared KV caches without an owner, dense layers among dense ones."""
    depth, mixers = c["depth"], c["n_local"] + c["n_linear"] + c["n_conv"]
    if (i := _first(mixers > depth)) is not None:
        names = ", ".join(name for name in ("n_local", "n_linear", "n_conv") if c[name][i])
        yield f"{names}: expected at most depth {depth[i]} together, got {mixers[i]}; lower one"
        return
    heads, keys = c["linear_heads"], c["linear_key_heads"]
    if (i := _first((keys > 0) & (heads % np.maximum(keys, 1) != 0))) is not None:
        yield f"linear_key_heads: expected a divisor of linear_heads {heads[i]}, got {keys[i]}; choose one"
    yield from _sharing_faults(c, depth - mixers)
    if (i := _first((c["n_dense"] > 0) & (c["n_dense"] >= depth))) is not None:
        yield f"n_dense: expected fewer than depth {depth[i]}, got {c['n_dense'][i]}; lower it"


def _sharing_faults(c: Mapping[str, AnyArray], full: IntArray) -> Iterator[str]:
    """KV caches that are shared need an owner of the same kind of attention."""
    local = c["n_kv_shared_local"]
    if (i := _first(local > c["n_kv_shared"])) is not None:
        yield f"n_kv_shared_local: expected at most n_kv_shared {c['n_kv_shared'][i]}, got {local[i]}; lower it"
        return
    for name, shared, layers, kind in (
        ("n_kv_shared_local", local, c["n_local"], "n_local"),
        ("n_kv_shared", c["n_kv_shared"] - local, full, "the full-attention layers,"),
    ):
        if (i := _first((shared > 0) & (shared >= layers))) is not None:
            yield f"{name}: expected fewer than {kind} {layers[i]}, got {shared[i]}; one layer at least has a cache"


def _head_faults(c: Mapping[str, AnyArray]) -> Iterator[str]:
    """Heads of full attention alone without windows or half given, and latent attention of other kinds of layers or without its sizes."""
    own, latent = c["full_head_dim"] > 0, c["latent_size"] > 0
    if (i := _first(own != (c["full_kv_heads"] > 0))) is not None:
        yield f"full_head_dim: expected it beside full_kv_heads, got {c['full_head_dim'][i]} and {c['full_kv_heads'][i]}; give both or none"
    elif (
        i := _first(own & ((c["n_local"] == 0) | (c["n_heads"] % np.maximum(c["full_kv_heads"], 1) != 0)))
    ) is not None:
        yield (
            f"full_kv_heads: expected a divisor of n_heads {c['n_heads'][i]} beside layers with a window, "
            f"got {c['full_kv_heads'][i]}; correct it"
        )
    elif (
        i := _first((own | latent) & ((c["qkv_bias"] > 0) | (c["qk_norm"] > 1) | latent & (c["qk_norm"] > 0)))
    ) is not None:
        yield "qkv_bias, qk_norm: expected no bias and a norm of heads beside full_head_dim, none beside latent_size, got another; drop it"
    elif (i := _first((c["keys_are_values"] > 0) & ~own)) is not None:
        yield "keys_are_values: expected false without full_head_dim, got true; drop it"
    if (
        i := _first(
            ((c["index_heads"] > 0) != (c["index_dim"] > 0)) | (c["index_dim"] > 0) & (c["latent_queries"] == 0)
        )
    ) is not None:
        yield f"index_dim: expected it beside index_heads and latent_queries, got {c['index_dim'][i]}; correct them"
    sizes = (c["value_dim"] > 0) & (c["latent_rope"] > 0) & (c["latent_rope"] < c["head_dim"])
    if (i := _first(latent & ~sizes)) is not None:
        yield f"latent_size: expected value_dim above 0 and latent_rope from 1 to below head_dim {c['head_dim'][i]} beside it; correct them"
    elif (
        i := _first(~latent & ((c["value_dim"] > 0) | (c["latent_rope"] > 0) | (c["latent_queries"] > 0)))
    ) is not None:
        yield "latent_size: expected it beside value_dim, latent_rope and latent_queries, got 0; drop them or give it"
    elif (i := _first(latent & ((c["n_local"] + c["n_kv_shared"] + c["attention_gate"]) > 0))) is not None:
        yield "latent_size: expected 0 beside windows, shared KV caches or a gate of attention; drop one"


def _first(wrong: BoolArray) -> int | None:
    """The first row that is wrong, if any."""
    return int(np.argmax(wrong)) if wrong.any() else None
