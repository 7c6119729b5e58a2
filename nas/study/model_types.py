"""Families of published models by `model_type` of their config.json: model_types.yaml, and what transformers' classes take by default."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from nas.study import config_blocks, config_kinds
from nas.study.config_kinds import Config
from objectives import outside
from objectives.plugins import packaged
from search_spaces.architectures import Architectures
from search_spaces.columns import QK_NORMS

MIXERS = ("layers", "ungated_ffn", "n_conv", "n_linear", "n_kv_shared", "latent_size", "full_head_dim")


@dataclass(frozen=True)
class Family:
    """Properties of a model_type; model_types.yaml says what each field is."""

    llama_cpp: tuple[str, ...] = ()
    qk_norm: str = "no"
    bias: str = "qkvo"
    qkv_bias: bool = False
    norms: int = 2
    experts: str = ""
    shared: bool = False
    mixer: str = ""
    kinds: Callable[[Config], dict[str, Any]] = config_kinds.full_attention
    as_class: str = ""
    dense_at_zero: bool = False
    listed: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)
    plain: Mapping[str, Any] = field(default_factory=dict)

    def fits(self, architecture: Architectures) -> bool:
        """Whether an architecture can be of this family."""
        a = architecture
        return (
            QK_NORMS[int(a.qk_norm[0])] == self.qk_norm
            and bool(a.qkv_bias[0]) == self.qkv_bias
            and int(a.norms_per_layer[0]) == self.norms
            and (int(a.n_experts[0]) > 1) == bool(self.experts)
            and (int(a.shared_expert_size[0]) > 0) == self.shared
            and next((name for name in MIXERS if getattr(a, name)[0]), "") == self.mixer
        )


@dataclass(frozen=True)
class ModelTypes:
    """Families and their variants, text parts of larger models, families that no columns hold and why, keys that size nothing or at some values, formats of ours by the quantisation that a file names."""

    families: Mapping[str, Family]
    variants: tuple[Family, ...]
    text_of: Mapping[str, str]
    outside: Mapping[str, str]
    harmless: frozenset[str]
    harmless_at: Mapping[str, list[Any]]
    stored: Mapping[str, str]


@cache
def model_types() -> ModelTypes:
    """What model_types.yaml says."""
    content = packaged("nas.study", "model_types")
    return ModelTypes(
        {name: _family(entry) for name, entry in content["families"].items()},
        tuple(map(_family, content["variants"])),
        content["text_of"],
        content["outside"],
        frozenset(f"{content['harmless']} {content['drafts']} {content['formats']}".split()),
        content["harmless_at"],
        content["stored"],
    )


def _family(entry: dict[str, Any]) -> Family:
    period, name = entry.pop("period", 0), entry.pop("kinds", "full_attention")
    module = config_kinds if hasattr(config_kinds, name) else config_blocks
    read = config_kinds.windows(period) if period else getattr(module, name)
    lists = {key: tuple(entry.get(key, ())) for key in ("llama_cpp", "listed")}
    return Family(**{**entry, **lists, "kinds": read})


@dataclass(frozen=True)
class ModelClass:
    """What a class of transformers takes for keys that are left out, and which older spellings it takes for which key."""

    defaults: Mapping[str, Any]
    renamed: Mapping[str, str]


@cache
def model_classes() -> Mapping[str, ModelClass]:
    """Every class of model_classes.json."""
    content = outside.json_of(Path(__file__).with_name("model_classes.json"), outside.MB)
    return {name: ModelClass(**entry) for name, entry in content.items()}
