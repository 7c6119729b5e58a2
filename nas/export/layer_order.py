"""The order of layers of several kinds: columns count them, a class of models wants each by its place.

A period is depth // full layers, and each of the first so many periods ends with a layer of full attention, as in a space's rules;
all other layers are of the other kind. Where layers share KV caches, periods are counted from the end, and the layers that share, the
last ones, are whole periods where their counts allow it: the last of all is of full attention, as in Gemma 4. The first `n_dense` layers have the dense FFN.
"""

from search_spaces.architectures import Architectures
from search_spaces.columns import worded
from search_spaces.mixes import in_words

FULL = "full"


def mixers(architecture: Architectures) -> tuple[str, ...]:
    """Kinds of layers beside full attention of one architecture (n = 1): local, a family of linear attention, conv."""
    a = architecture
    linear = str(worded("linear_kind", a.linear_kind)[0])
    kinds = (("local", a.n_local), (linear, a.n_linear), ("conv", a.n_conv))
    return tuple(kind for kind, count in kinds if count[0])


def period(architecture: Architectures) -> int:
    """Layers of which the last is of full attention: depth // full layers, or as those that share have it; the depth where none is."""
    depth, full = int(architecture.depth[0]), int(architecture.n_full[0])
    shared = int(architecture.n_kv_shared[0])
    full_shared = shared - int(architecture.n_kv_shared_local[0])
    if full_shared and shared % full_shared == 0 and shared // full_shared * full <= depth:
        return shared // full_shared
    return depth // full if full else depth


def full_places(architecture: Architectures) -> list[int]:
    """Places, from 0, of the layers of full attention."""
    every, full = period(architecture), int(architecture.n_full[0])
    before = int(architecture.depth[0]) - every * full if architecture.n_kv_shared[0] else 0
    return [before + every * number - 1 for number in range(1, full + 1)]


def in_order(architecture: Architectures) -> list[str]:
    """The kind of each layer, from the first: `full`, or the architecture's one other kind."""
    full, others = set(full_places(architecture)), mixers(architecture)
    return [FULL if place in full else others[0] for place in range(int(architecture.depth[0]))]


def sharing_within(architecture: Architectures) -> int:
    """How many of the layers that share KV caches, the last ones, have the window."""
    depth, shared = int(architecture.depth[0]), int(architecture.n_kv_shared[0])
    return shared - sum(place >= depth - shared for place in full_places(architecture))


def order_in_words(architecture: Architectures) -> str:
    """Where its layers of full attention stand, counted from 1; nothing where every layer is one."""
    if not mixers(architecture):
        return ""
    places = ", ".join(str(place + 1) for place in full_places(architecture))
    shared = int(architecture.n_kv_shared[0])
    sharing = f"; the last {shared} layers read the KV caches of the last before them of their kind" if shared else ""
    return f"{in_words(architecture)[0]}: full attention in layers {places} of {int(architecture.depth[0])}, one in {period(architecture)}{sharing}"
