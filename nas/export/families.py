"""Finds the Hugging Face model class that holds an architecture exactly, and the order of its layers, or why none does.

Columns count layers of several kinds, a class wants each by its place. A period is depth // full layers, and each of the first so many
periods ends with a layer of full attention, as in a space's rules; all other layers are of the other kind. Where layers share KV caches,
periods are counted from the end, and the layers that share, the last ones, are whole periods where their counts allow it: the last of all
is of full attention, as in Gemma 4. The first `n_dense` layers have the dense FFN.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from nas.errors import UsageError
from objectives.plugins import packaged
from search_spaces.architectures import Architectures
from search_spaces.columns import NOT_OF_A_MODEL, QK_NORMS, worded
from search_spaces.layer_kinds import KIND_DEFAULTS, OTHER_HEADS
from search_spaces.mixes import in_words

FULL = "full"
TRAIN = "train"  # `plas train`, whose worker scales what ends a residual branch by the names of Qwen's classes
EVERY = ("hf", "trainer", TRAIN, "vllm", "llama_bench")
#: Columns beyond the shape that a class may hold; an architecture with any other is refused by the column's name.
HELD = {
    *("shared_expert_size", "shared_gate", "qk_norm", "qkv_bias", "norms_per_layer", "tied", "vocabulary"),
    *(*KIND_DEFAULTS, *NOT_OF_A_MODEL),
} - {*OTHER_HEADS, "table_parameters"}
Fault = tuple[bool, str, str]
GEMMA3_27B = 62  # layers by which llama.cpp tells that model


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


@dataclass(frozen=True)
class Family:
    """A transformers model class by its `model_type`, with what it fixes of an architecture; class_keys.yaml says what each field is."""

    model_type: str
    class_name: str
    sparse: bool
    qk_norm: str = "head"
    qkv_bias: bool = False
    mixers: tuple[str, ...] = ("",)
    gate: bool = False
    shared: tuple[str, ...] = ("no",)
    dense_first: bool = False
    norms: int = 2
    kv_shared: bool = False
    stacks: tuple[str, ...] = EVERY


def _listed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


FAMILIES = tuple(
    Family(**{name: _listed(value) for name, value in entry.items()})
    for entry in packaged("nas.export", "class_keys")["classes"]
)


@lru_cache(maxsize=64)  # an export asks for every tensor of a model
def family_of(architecture: Architectures) -> Family:
    """The class for one architecture (n = 1).

    Raises:
        UsageError: no class has these parameters: what the nearest would need.
    """
    faults = {family: _faults(family, architecture) for family in FAMILIES}
    nearest = min(FAMILIES, key=lambda family: sum(weight for *_, weight in faults[family]))
    if not faults[nearest]:
        return nearest
    wanted = ", ".join(want for want, _, _ in faults[nearest])
    got = ", ".join(got for _, got, _ in faults[nearest])
    remedy = 'search with --budget "kv_shared<=0"' if architecture.n_kv_shared.any() else "change it"
    raise UsageError(
        f"architecture: expected one that a Hugging Face class holds exactly, {wanted} for the nearest, "
        f"{nearest.class_name}, got {got}; {remedy} or leave the candidate out"
    )


def _faults(family: Family, architecture: Architectures) -> list[tuple[str, str, int]]:
    """Differences of a class: wanted, given, and how far that is; kinds of layers weigh more than experts, these more than flags."""
    a = architecture
    kinds, sparse = mixers(a), bool(a.n_experts[0] > 1)
    shared = ("gated" if a.shared_gate[0] else "plain") if a.shared_expert_size[0] else "no"
    wanted_kinds = family.mixers[0] or "every layer full"
    bias, gate = bool(a.qkv_bias[0]), bool(a.attention_gate[0])
    ffn, adds, answers = ("dense", "experts"), ("no", "with"), ("no", "yes")
    lines = [
        (kinds in [(m,) if m else () for m in family.mixers], f"layers {wanted_kinds}", in_words(a)[0], 100),
        (sparse == family.sparse, ffn[family.sparse], ffn[sparse], 10),
        _alike("qk_norm", family.qk_norm, QK_NORMS[int(a.qk_norm[0])]),
        (bias == family.qkv_bias, f"{adds[family.qkv_bias]} QKV bias", f"{adds[bias]} QKV bias", 1),
        _alike("attention_gate", answers[family.gate], answers[gate]),
        (shared in family.shared, f"shared expert {' or '.join(family.shared)}", f"shared expert {shared}", 1),
        _alike("norms_per_layer", family.norms, int(a.norms_per_layer[0]), 2),
        (
            bool(a.n_kv_shared[0]) == family.kv_shared,
            f"n_kv_shared {'above ' * family.kv_shared}0",
            f"n_kv_shared {a.n_kv_shared[0]}",
            5,
        ),
        _alike("n_dense", int(a.n_dense[0]) * family.dense_first, int(a.n_dense[0])),
        _alike("further_parameters", 0, int(a.further_parameters[0])),
        *((False, f"no {name}", f"{name} {c[0]}", 1) for name, c in a.further_columns().items() if name not in HELD),
        *_shape_faults(family, a),
    ]
    return [(want, got, weight) for good, want, got, weight in lines if not good]


def _alike(name: str, wanted: object, given: object, weight: int = 1) -> tuple[bool, str, str, int]:
    return wanted == given, f"{name} {wanted}", f"{name} {given}", weight


def _shape_faults(family: Family, a: Architectures) -> list[tuple[bool, str, str, int]]:
    """Sizes that a class derives from others, and routing that would be dead in it."""
    lines = [(bool(a.n_full[0]) or not mixers(a), "a layer of full attention", "none", 1)]
    if family.model_type == "granitemoehybrid":
        inner, width = int(a.linear_heads[0] * a.linear_value_dim[0]), int(a.width[0])
        lines.append((inner % width == 0, f"Mamba2 features a multiple of width {width}", f"{inner}", 1))
        # the softmax over the chosen expert alone is 1: its router would not learn
        lines.append((not family.sparse or a.top_k[0] > 1, "top_k above 1", f"top_k {a.top_k[0]}", 1))
    if family.model_type == "olmoe":
        size, width = int(a.query_dim[0]), int(a.width[0])
        lines.append((size == width, f"heads that fill the width of {width}", f"{size} features", 1))
    if family.model_type in ("gemma2", "gemma3_text"):
        whole = a.width[0] % a.n_heads[0] == 0
        lines.append((bool(whole), f"n_heads a divisor of width {a.width[0]}", f"n_heads {a.n_heads[0]}", 1))
    if family.kv_shared:
        local, wanted = int(a.n_kv_shared_local[0]), sharing_within(a)
        lines.append(
            (wanted == local, f"n_kv_shared_local {wanted} of the last {a.n_kv_shared[0]} layers", f"{local}", 1)
        )
    return lines


def refuse_stack(architecture: Architectures, stack: str) -> None:
    """Refuse a stack of ours that does not know the architecture's layers, or fixes something of them otherwise.

    Raises:
        UsageError: with the stacks that do, or naming what it fixes.
    """
    family = family_of(architecture)
    if stack in EVERY and stack not in family.stacks:
        others = ", ".join(name.replace("_", "-") for name in family.stacks if name != "train")
        raise UsageError(
            f"{stack.replace('_', '-')}: expected a design whose layers it knows, got {in_words(architecture)[0]} "
            f"of {family.class_name}, for which --to takes {others}; leave out the stack or the candidate"
        )
    if stack not in FORMS:
        return
    whose, sizes = FORMS[stack]
    for good, wanted, got in sizes(architecture).get(family.model_type, []):
        if not good:
            raise UsageError(
                f"{stack.replace('_', '-')}: expected {wanted}, as {whose} has {family.class_name}, got {got}; leave out the stack or the candidate"
            )


def family_in(model_type: object, *, sparse: bool, windows: bool) -> Family:
    """The class with this `model_type`, with or without experts; with or without windows where it may have either.

    Raises:
        ValueError: none of ours.
    """
    families = [family for family in FAMILIES if (family.model_type, family.sparse) == (model_type, sparse)]
    if not families:
        choices = ", ".join(dict.fromkeys(f.model_type for f in FAMILIES))
        raise ValueError(
            f"model_type: expected one of {choices}, got {model_type!r}{' with experts' if sparse else ''}"
        )
    return families[-1] if windows else families[0]


def _llama(a: Architectures) -> dict[str, list[Fault]]:
    """Sizes that llama.cpp fixes and the class leaves open, by model_type: whether they hold, wanted, given."""
    width, groups = int(a.width[0]), int(a.linear_key_heads[0])
    inner = int(a.linear_heads[0] * a.linear_value_dim[0])
    keys, values = int(a.linear_key_dim[0]), int(a.linear_value_dim[0])
    another_depth = "another depth than Gemma 3 27B's, whose heads it scales otherwise"
    mamba = f"Mamba2 with {2 * width} features, twice the width, in one group"
    return {
        "lfm2": [_heads(a)],
        "lfm2_moe": [_heads(a)],
        "mellum": [_output(a)],
        "granitemoehybrid": [((inner, groups) == (2 * width, 1), mamba, f"{inner} in {groups}")],
        "qwen3_next": [(keys == values, "keys and values of Gated DeltaNet of one size", f"{keys} and {values}")],
        "gemma3_text": [(bool(a.depth[0] != GEMMA3_27B), another_depth, str(GEMMA3_27B))],
        "gemma4_text": [_last_owners(a)],
    }


def _vllm(a: Architectures) -> dict[str, list[Fault]]:
    """vLLM's, by model_type: it loads Granite's heads of another size and a tied Qwen3-Next all the same, and computes something else."""
    shared = bool(a.n_experts[0] == 1 or a.shared_expert_size[0])
    return {
        "lfm2": [_heads(a)],
        "lfm2_moe": [_heads(a)],
        "granitemoehybrid": [_heads(a), (shared, "a shared expert beside the others", "none")],
        "qwen3_next": [_output(a)],
    }


def _heads(a: Architectures) -> Fault:
    width = int(a.width[0])
    return bool(a.query_dim[0] == width), f"heads that fill the width of {width}", f"{a.n_heads[0]} of {a.head_dim[0]}"


def _output(a: Architectures) -> Fault:
    return not a.tied[0], "an output matrix of its own", "tied embeddings"


def _last_owners(a: Architectures) -> Fault:
    """The two layers whose KV caches the last layers read."""
    owners = in_order(a)[: int(a.depth[0] - a.n_kv_shared[0])][-2:]
    wanted = "a layer within the window, then one of full attention, last before those that share"
    return owners == ["local", FULL], wanted, " and ".join(owners)


FORMS = {
    "llama_bench": ("llama.cpp", _llama),
    "vllm": ("vLLM", _vllm),
}  # stacks with a form of their own, whose code it is
