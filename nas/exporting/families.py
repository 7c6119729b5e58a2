"""Which Hugging Face model class holds an architecture exactly, or why none does."""

from dataclasses import dataclass

from nas.errors import UsageError
from search_spaces.architectures import Architectures
from search_spaces.columns import QK_NORMS
from search_spaces.layer_kinds import COUNTS


@dataclass(frozen=True)
class Family:
    """A transformers model class by its `model_type`, with the architecture flags that it fixes."""

    model_type: str
    class_name: str
    sparse: bool
    qk_norm: str
    qkv_bias: bool


FAMILIES = (
    Family("qwen3", "Qwen3ForCausalLM", sparse=False, qk_norm="head", qkv_bias=False),
    Family("qwen3_moe", "Qwen3MoeForCausalLM", sparse=True, qk_norm="head", qkv_bias=False),
    Family("qwen2", "Qwen2ForCausalLM", sparse=False, qk_norm="no", qkv_bias=True),
    Family("llama", "LlamaForCausalLM", sparse=False, qk_norm="no", qkv_bias=False),
)


def family_of(architecture: Architectures) -> Family:
    """The class for one architecture (n = 1).

    Raises:
        UsageError: no class has these parameters, with what stands in the way.
    """
    a = architecture
    faults = []
    if a.shared_expert_size[0]:
        faults.append(f"shared_expert_size {a.shared_expert_size[0]}")
    if a.norms_per_layer[0] != 2:
        faults.append(f"norms_per_layer {a.norms_per_layer[0]}")
    faults += [f"{name} {getattr(a, name)[0]:d}" for name in (*COUNTS, "further_parameters") if getattr(a, name)[0]]
    sparse, qk_norm, bias = bool(a.n_experts[0] > 1), QK_NORMS[int(a.qk_norm[0])], bool(a.qkv_bias[0])
    for family in FAMILIES:
        if not faults and (family.sparse, family.qk_norm, family.qkv_bias) == (sparse, qk_norm, bias):
            return family
    faults = faults or [
        f"{'experts' if sparse else 'dense'}, qk_norm {qk_norm}, {'with' if bias else 'without'} QKV bias"
    ]
    classes = "; ".join(
        f"{f.class_name}: {'experts' if f.sparse else 'dense'}, qk_norm {f.qk_norm}, QKV bias {'yes' if f.qkv_bias else 'no'}"
        for f in FAMILIES
    )
    raise UsageError(
        f"architecture: expected one that a Hugging Face class holds exactly ({classes}), got {', '.join(faults)}; "
        "leave it out"
    )


def family_named(model_type: object) -> Family:
    """The class with this `model_type`.

    Raises:
        ValueError: none of ours.
    """
    for family in FAMILIES:
        if family.model_type == model_type:
            return family
    known = ", ".join(f.model_type for f in FAMILIES)
    raise ValueError(f"model_type: expected one of {known}, got {model_type!r}")
