"""Published models, and architectures written out, to compare with."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import Faults, unknown
from nas.problem.objective import Baseline, Budget, PickQuery
from nas.problem.problem import Problem
from nas.study.config_kinds import (
    attention_alone,
    gemma3n,
    gemma4,
    gpt_oss,
    granite,
    latent,
    lfm2,
    lfm2_moe,
    mellum,
    qwen3_next,
    whole,
    windows,
)
from objectives import outside
from objectives.display_text import shown_name
from objectives.plugins import documents, normalised
from search_spaces.architectures import Architectures, one
from search_spaces.columns import QK_NORMS

MODELS = "search_spaces.models"


def baselines_of(given: Sequence[str | Mapping[str, Any]], faults: Faults) -> list[Baseline]:
    """The models to compare with, each by name, columns or its config.json."""
    found = []
    for i, item in enumerate(given):
        try:
            found.append(baseline(item))
        except (UsageError, ValueError) as error:
            faults.add(("baselines", i), str(error))
    return found


def baseline(item: str | Mapping[str, Any]) -> Baseline:
    """A published model by name, the model of a config.json (`{config: path}`, with a `name` where it is to have another), or columns.

    Raises:
        UsageError: no such model, or a config.json that columns do not hold.
        ValueError: columns that are no architecture, a line a fault.
    """
    if isinstance(item, Mapping) and "config" in item:
        label, architecture = _of_config(item)
    else:
        label, architecture = _of_columns(item)
    return Baseline(shown_name(label), architecture)


def model_named(text: str) -> Baseline:
    """A published model by its name, or the one that a config.json, or a folder with one, describes.

    Raises:
        UsageError: no such model, or a config.json that columns do not hold.
    """
    path = config_path(text)
    return baseline(text if path is None else {"config": str(path)})


def _of_config(item: Mapping[str, Any]) -> tuple[str, Architectures]:
    """Name and architecture of `{config: path}`.

    Raises:
        UsageError: other keys beside it, or a config.json that columns do not hold.
    """
    if others := [str(key) for key in item if key not in ("config", "name")]:
        raise UsageError(f"{', '.join(others)}: expected config and name alone, got it beside config; the file says it")
    given = item["config"]
    if not isinstance(given, str):
        raise UsageError(
            f"config: expected the path of a config.json, got {given!r}; write {{config: model/config.json}}"
        )
    path = Path(given, "config.json") if Path(given).is_dir() else Path(given)
    return str(item.get("name", path.resolve().parent.name or path.stem)), read_config(path)


def config_path(text: str) -> Path | None:
    """The config.json that a text names, itself or by its folder; None for a published model's name."""
    path = Path(text)
    if path.suffix == ".json":
        return path
    return path / "config.json" if normalised(text) not in documents(MODELS) and path.is_dir() else None


def _of_columns(item: str | Mapping[str, Any]) -> tuple[str, Architectures]:
    """Name and architecture of a published model, or of columns.

    Raises:
        UsageError: no such model.
        ValueError: columns that are no architecture.
    """
    content = _published(item) if isinstance(item, str) else item
    columns = {key: value for key, value in content.items() if key not in ("name", "source")}
    return str(content.get("name", "custom")), one(columns)


@lru_cache
def _published(name: str) -> Mapping[str, Any]:
    """The columns of a published model, with its name and source.

    Raises:
        UsageError: none has that name.
    """
    models = documents(MODELS)
    if normalised(name) not in models:
        raise UsageError(unknown("a published model", name, models))
    content: dict[str, Any] = yaml_source.read(models[normalised(name)])[0]
    return content


def architecture_from(text: str) -> Architectures:
    """An architecture from `depth=16,width=2048,…`."""
    pairs = [part.partition("=") for part in re.split(r"[,\s]+", text.strip()) if part]
    if not pairs or not all(sign for _, sign, _ in pairs):
        raise UsageError(f"architecture: expected name=value pairs, got {text!r}; write depth=16,width=2048,…")
    known = {*Architectures.__dataclass_fields__, "gqa", "expert_ffn_ratio", "ffn_ratio"}
    for name, _, _ in pairs:
        if name not in known:
            raise UsageError(f"architecture: {unknown('a column', name, known)}")
    try:
        return one({name: value for name, _, value in pairs})
    except ValueError as error:
        raise UsageError(str(error)) from None


def baseline_questions(problem: Problem, known: Baseline) -> list[PickQuery]:
    """The picks at most as slow as a baseline: of any memory, of its memory, dense of its memory, of twice its memory.

    Memory is that of the weights, memory_gb; each is asked without the LM head on both, and with it on both, or, where
    vocabulary is a gene, with the own one of each.

    Raises:
        ValueError: the latency model does not cover the baseline.
    """
    own = int(known.architecture.vocabulary[0])
    with_head = () if problem.scenario.latency == "closed_form" or not own else (own,)
    asked = []
    heads = {size: f"LM head of {size:,}" if size else "no LM head" for size in (0, problem.vocabulary, *with_head)}
    for vocabulary, head in ({None: "own LM heads"} if problem.space.own_heads else heads).items():
        variant = problem.with_vocabulary(vocabulary)
        theirs = variant.assess(variant.headed(known.architecture))
        label = f"{known.label}, {head}"
        as_fast, same, twice = (
            Budget(metric, factor * float(theirs[metric][0]))
            for metric, factor in (("total_ms", 1), ("memory_gb", 1), ("memory_gb", 2))
        )
        at_once = PickQuery(label, as_fast, vocabulary, known.label)
        asked += [
            at_once,
            replace(at_once, label=f"{label}, equal memory", within=(same,)),
            replace(at_once, label=f"{label}, equal memory, dense", within=(same,), dense=True),
            replace(at_once, label=f"{label}, twice the memory", within=(twice,)),
        ]
    return asked


MOST_BYTES = 1_000_000
MIXERS = ("n_conv", "n_linear", "n_kv_shared", "latent_size", "full_head_dim")


@dataclass(frozen=True)
class Family:
    """Properties of a model_type of transformers: norms and biases, layer kinds, defaults of its keys.

    `llama_cpp` are llama.cpp's names; `mixer` is the first of `MIXERS` that is not 0, which tells it from others.
    """

    llama_cpp: tuple[str, ...] = ()
    qk_norm: str = "no"
    qkv_bias: bool = False
    norms: int = 2
    tied: bool = False
    experts: str = ""
    shared: bool = False
    mixer: str = ""
    kinds: Callable[[Mapping[str, Any]], dict[str, Any]] = attention_alone

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


QWEN3_NEXT = Family((), "head", experts="moe_intermediate_size", shared=True, mixer="n_linear", kinds=qwen3_next)
LATENT = Family(("deepseek2",), experts="moe_intermediate_size", shared=True, mixer="latent_size", kinds=latent)
#: By `model_type` of config.json; `experts` is the key of one expert's size.
FAMILIES = {
    "llama": Family(("llama",)),
    "mistral": Family(("llama", "mistral3")),
    "ministral3": Family(("mistral3",)),
    "mixtral": Family(("llama",), experts="intermediate_size"),
    "qwen2": Family(("qwen2", "qwen2vl"), qkv_bias=True),
    "qwen2_moe": Family(("qwen2moe",), qkv_bias=True, experts="moe_intermediate_size", shared=True),
    "qwen3": Family(("qwen3", "qwen3vl"), "head"),
    "qwen3_moe": Family(("qwen3moe", "qwen3vlmoe"), "head", experts="moe_intermediate_size"),
    "qwen3_next": replace(QWEN3_NEXT, llama_cpp=("qwen3next",)),
    "qwen3_5_text": Family(("qwen35",), "head", mixer="n_linear", kinds=qwen3_next),
    "qwen3_5_moe_text": replace(QWEN3_NEXT, llama_cpp=("qwen35moe",)),
    "mellum": Family((), "head", experts="moe_intermediate_size", kinds=mellum),
    "minimax_m2": Family(("minimax-m2",), "full", experts="intermediate_size"),
    "phi3": Family(("phi3",)),
    "smollm3": Family(("smollm3",), tied=True),
    "gemma2": Family(("gemma2",), norms=4, tied=True, kinds=windows(2, 4096)),
    "gemma3_text": Family(("gemma3",), "head", norms=4, tied=True, kinds=windows(6, 4096)),
    "gemma3n_text": Family(("gemma3n",), "head", norms=4, tied=True, mixer="n_kv_shared", kinds=gemma3n),
    "gemma4_text": Family(("gemma4",), "head", norms=4, tied=True, mixer="n_kv_shared", kinds=gemma4),
    "gpt_oss": Family(("gpt-oss",), qkv_bias=True, experts="intermediate_size", kinds=gpt_oss),
    "lfm2": Family(("lfm2",), "head", tied=True, mixer="n_conv", kinds=lfm2),
    "lfm2_moe": Family(
        ("lfm2moe",), "head", tied=True, experts="moe_intermediate_size", mixer="n_conv", kinds=lfm2_moe
    ),
    "granitemoehybrid": Family(("granitehybrid",), mixer="n_linear", kinds=granite),
    "olmoe": Family(("olmoe",), "full", experts="intermediate_size"),
    "deepseek_v2": LATENT,
    "deepseek_v3": LATENT,
    "glm4_moe_lite": LATENT,
}
#: Further shapes that one of these classes, and llama.cpp's name of it, stands for.
VARIANTS = (
    Family(("gemma4",), "head", norms=4, mixer="full_head_dim"),
    Family(("gemma4",), "head", norms=7, experts="moe_intermediate_size", shared=True, mixer="full_head_dim"),
    Family(("granitehybrid",), experts="intermediate_size", shared=True, mixer="n_linear"),
)
#: Families that no columns hold, and why.
OUTSIDE = {
    "openelm": "widths that differ from layer to layer",
    "falcon_h1": "attention and Mamba side by side in a layer",
    "nemotron_h": "layers of a mixer or of an FFN alone",
    "nemotron_h_moe": "layers of a mixer or of an FFN alone",
    "mamba2": "layers without an FFN",
}
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")  # keys of how many there are
#: Sizes that are looked at in every family, used or not; 0 stands for none.
SIZES = ("intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size", "num_experts")
#: Settings that change the operators, and what they must be.
PLAIN: dict[str, Any] = {"attention_bias": False, "mlp_bias": False, "decoder_sparse_step": 1, "mlp_only_layers": []}


def read_config(path: Path) -> Architectures:
    """The architecture of a config.json.

    Raises:
        UsageError: no such file, another family, or a setting that changes the operators.
    """
    try:
        content = outside.json_of(path, MOST_BYTES)
        text = content.get("text_config", content) if isinstance(content, dict) else None
        tied = {key: content[key] for key in ("tie_word_embeddings",) if isinstance(text, dict) and key in content}
        return architecture_of(tied | text if isinstance(text, dict) else {})
    except OSError as error:
        raise UsageError(f"{path}: expected a Hugging Face config.json, got {error.strerror}; check the path") from None
    except ValueError as error:
        message = str(error).splitlines()[0] if type(error) is ValueError else "expected JSON, got something else"
        raise UsageError(f"{path}: {message}; give a Hugging Face config.json of a decoder that columns hold") from None


def architecture_of(config: Mapping[str, Any]) -> Architectures:
    """The architecture that a config.json describes.

    Raises:
        ValueError: `key: expected X, got Y`.
    """
    family = _family(config)
    for key, plain in PLAIN.items():
        if config.get(key) not in (None, plain) and not (key == "attention_bias" and family.qkv_bias):
            raise ValueError(f"{key}: expected {plain!r}, got {str(config[key])[:60]!r}")
    heads, width = whole(config, "num_attention_heads"), whole(config, "hidden_size")
    sparse = bool(family.experts) and next((config[key] for key in EXPERTS if key in config), None) != 0
    columns: dict[str, Any] = {
        "depth": whole(config, "num_hidden_layers"),
        "width": width,
        "head_dim": whole(config, "head_dim", width // heads),
        "n_heads": heads,
        "n_kv_heads": whole(config, "num_key_value_heads", heads),
        "n_experts": _experts(config) if sparse else 1,
        "top_k": whole(config, "num_experts_per_tok") if sparse else 1,
        "qk_norm": family.qk_norm,
        "qkv_bias": family.qkv_bias,
        "norms_per_layer": family.norms,
        "tied": _tied(config, family.tied),
        "vocabulary": whole(config, "vocab_size"),
    }
    if family.shared and sparse and "shared_expert_intermediate_size" in config:
        columns |= {"shared_expert_size": whole(config, "shared_expert_intermediate_size"), "shared_gate": True}
    columns |= family.kinds(config)
    if "expert_size" not in columns:
        columns["expert_size"] = whole(config, family.experts if sparse else "intermediate_size")
    for key in (key for key in SIZES if key in config):
        whole(config, key, 0, least=0)  # one that this family does not use is no size either
    return one(columns)


def _tied(config: Mapping[str, Any], otherwise: bool) -> bool:
    """Whether embedding and LM head are one table.

    Raises:
        ValueError: the config says something else than true or false.
    """
    key = "tie_word_embeddings" if "tie_word_embeddings" in config else "tie_embedding"
    value = config.get(key, otherwise)
    if value is None:
        return otherwise
    if not isinstance(value, bool):
        raise ValueError(f"{key}: expected true or false, got {str(value)[:60]!r}")
    return value


def _family(config: Mapping[str, Any]) -> Family:
    """The family of a config.json.

    Raises:
        ValueError: none that columns hold.
    """
    kind = str(config.get("model_type"))
    found = FAMILIES.get(kind)
    mixed = bool(config.get("kv_lora_rank")) and (found is None or found.mixer != "latent_size")
    other = "latent attention (MLA) beside something else" if mixed else ""
    if why := OUTSIDE.get(kind, other):
        raise ValueError(f"model_type: expected layers that columns hold, got {kind[:60]!r}, which has {why}")
    if found is None:
        raise ValueError(f"model_type: expected one of {', '.join(FAMILIES)}, got {kind[:60]!r}")
    return found


def _experts(config: Mapping[str, Any]) -> int:
    return whole(config, next((key for key in EXPERTS if key in config), EXPERTS[0]))
