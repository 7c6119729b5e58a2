"""Names of a table's columns as this project spells them: Hugging Face's, Weights & Biases' and MLflow's are known."""

import re
from collections.abc import Sequence
from pathlib import Path

from search_spaces.columns import ALIASES, SHAPE
from search_spaces.layer_kinds import KIND_DEFAULTS

HUGGING_FACE = {
    "num_hidden_layers": "depth",
    "hidden_size": "width",
    "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads",
    "moe_intermediate_size": "expert_size",
    "intermediate_size": "expert_size",
    "num_local_experts": "n_experts",
    "num_experts": "n_experts",
    "num_experts_per_tok": "top_k",
}
FURTHER = (
    *("loss", "tokens", "seed", "learning_rate", "weight"),
    *("parameters", "active_parameters", "training_flops"),
)
COLUMNS = tuple(dict.fromkeys([*SHAPE, *ALIASES, *FURTHER, *KIND_DEFAULTS]))
PREFIX = re.compile(r"(?:(?:config|params|metrics|summary|hparams|model|model_config)[./])+")
HELD_OUT = re.compile(r"(?:eval|val|valid|validation|test)[/_.]loss")
BITS = re.compile(r"(?:.*[^a-z])?(?:bits?|bpt|bits_per_token)(?:[^a-z].*)?")
PER_BYTE = re.compile(r"(?:.*[^a-z])?(?:bpb|bpc|bits_per_(?:byte|char|character))(?:[^a-z].*)?")


def bare(name: str) -> str:
    """A column's name without a tracker's prefix, lower case: `config.hidden_size` is hidden_size."""
    return PREFIX.sub("", name.strip().lower(), count=1).removesuffix(".value").replace(" ", "_")


def says_bits(name: str) -> bool:
    """Whether a column calls itself a loss in bits per token."""
    plain = bare(name)
    told = "loss" in plain or "bpt" in plain or "per_token" in plain
    return told and bool(BITS.fullmatch(plain)) and not PER_BYTE.fullmatch(plain)


def is_known(name: str) -> bool:
    """Whether a column means something here, whatever wrote it."""
    plain = bare(name)
    return plain in COLUMNS or plain in HUGGING_FACE or bool(HELD_OUT.fullmatch(plain)) or says_bits(name)


def named(header: Sequence[str], renamed: Sequence[str], path: Path) -> tuple[list[str], list[str], str]:
    """Each column's name here, what was renamed, and the loss's name in the file.

    Raises:
        ValueError: a renaming of no column, one name twice, or two columns that may be the loss.
    """
    asked = dict(pair.partition("=")[::2] for pair in renamed)
    for old, new in asked.items():
        if old not in header or not new:
            raise ValueError(
                f"rename: expected OLD=NEW with a column of {path}, got {old}={new}; it has {', '.join(header)}"
            )
    loss = _loss(header, asked, path)
    names = [asked.get(old) or ("loss" if old == loss else _named(old, header)) for old in header]
    twice = next((name for name in names if name in COLUMNS and names.count(name) > 1), None) or next(
        (name for name in names if names.count(name) > 1), None
    )
    if twice is not None:
        both = [old for old, name in zip(header, names, strict=True) if name == twice]
        raise ValueError(
            f"{path}:1: expected each column once, got {twice} twice ({', '.join(both)}); rename or remove one"
        )
    notes = [f"column {old} is read as {new}" for old, new in zip(header, names, strict=True) if old != new]
    return names, notes, loss


def _named(old: str, header: Sequence[str]) -> str:
    plain = bare(old)
    if plain == "intermediate_size" and any(bare(name) == "moe_intermediate_size" for name in header):
        return old
    found = HUGGING_FACE.get(plain, plain)
    taken = found in header and old != found and plain in COLUMNS
    return found if found in COLUMNS and found != "loss" and not taken else old


def _loss(header: Sequence[str], asked: dict[str, str], path: Path) -> str:
    """The column that holds the loss, as the file spells it; "" for none.

    Raises:
        ValueError: several may.
    """
    chosen = [old for old, new in asked.items() if new == "loss"]
    if chosen or "loss" in header:
        return (chosen or ["loss"])[0]
    left = [old for old in header if old not in asked]
    found = [old for old in left if bare(old) == "loss" or HELD_OUT.fullmatch(bare(old)) or says_bits(old)]
    if len(found) > 1:
        raise ValueError(
            f"{path}:1: expected one column of held-out losses, got {', '.join(found)}; choose with --rename '{found[0]}=loss'"
        )
    if not found and (rates := [old for old in left if PER_BYTE.fullmatch(bare(old))]):
        raise ValueError(
            f"{path}:1: expected nats per token, got {rates[0]}, bits per byte or character; "
            "loss = value · 0.693 · bytes per token, of your tokeniser and text: add that column"
        )
    return found[0] if found else ""
