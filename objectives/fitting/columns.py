"""Names of a table's columns as this project spells them: exact names of others, also behind a tracker's prefix, are known."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from objectives.display_text import in_a_command
from search_spaces.columns import ALIASES, SHAPE
from search_spaces.layer_kinds import KIND_DEFAULTS

ALSO_CALLED = {
    "depth": ("num_hidden_layers", "num_layers", "n_layers", "n_layer", "layers"),
    "width": ("hidden_size", "d_model", "model_dim", "hidden_dim", "embedding_dim", "n_embd"),
    "n_heads": ("num_attention_heads", "num_heads", "n_head", "heads", "attention_heads"),
    "n_kv_heads": ("num_key_value_heads", "num_kv_heads", "n_kv_head", "kv_heads", "num_query_groups"),
    "expert_size": (
        "moe_intermediate_size",
        "intermediate_size",
        "d_ff",
        "ffn_hidden_size",
        "ffn_dim",
        "intermediate_dim",
    ),
    "n_experts": ("num_local_experts", "num_experts", "n_routed_experts", "experts"),
    "top_k": (
        *("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "topk"),
        *("active_experts", "num_active_experts", "n_active_experts"),
    ),
    "parameters": ("params", "n_params", "num_params", "n_parameters", "num_parameters", "total_params"),
    "active_parameters": ("active_params", "n_active_params", "num_active_params", "activated_params"),
    "tokens": ("n_tokens", "num_tokens", "train_tokens", "training_tokens"),
    "training_flops": ("train_flops", "training_flop"),
    "learning_rate": ("lr", "max_lr", "peak_lr", "max_learning_rate", "peak_learning_rate"),
    "batch": ("bs", "bsz", "batch_size", "global_batch_size"),
}  # Hugging Face's names first, then what other tables call the same
ALIAS = {alias: name for name, aliases in ALSO_CALLED.items() for alias in aliases}
BESIDE = ("learning_rate", "batch", "seed")  # of a run, in no law
FURTHER = (*("loss", "tokens", "weight", *BESIDE), *("parameters", "active_parameters", "training_flops"))
COLUMNS = tuple(dict.fromkeys([*SHAPE, *ALIASES, *FURTHER, *KIND_DEFAULTS]))
PREFIX = re.compile(r"(?:(?:config|params|metrics|summary|hparams|model|model_config)[./])+")  # of a tracker
BITS = ("loss_bits", "bits_per_token", "val_loss_bits", "eval_loss_bits")
SETS = ("eval", "val", "valid", "validation", "test", "held_out", "heldout")
LOSSES = (
    *("loss", *BITS),
    *(f"{final}{data}{mark}loss" for final in ("", "final_") for data in SETS for mark in "/_."),
)
NO_LOSSES = {  # parts of names of what no law is of, and what to do
    "ppl": 'a perplexity; df["loss"] = np.log(df["{}"])',
    "perplexity": 'a perplexity; df["loss"] = np.log(df["{}"])',
    "bpb": "bits per byte; loss = value · 0.693 · bytes per token, of your tokeniser and text: add that column",
    "bits_per_byte": "bits per byte; loss = value · 0.693 · bytes per token, of your tokeniser and text: add that column",
    "bpc": "bits per character; loss = value · 0.693 · characters per token, of your tokeniser and text: add that column",
    "bits_per_char": "bits per character; loss = value · 0.693 · characters per token, of your tokeniser and text: add that column",
}


def bare(name: str) -> str:
    """A column's name without a tracker's prefix: `config.hidden_size` is hidden_size."""
    prefix = PREFIX.match(name)
    return name[prefix.end() if prefix else 0 :].removesuffix(".value")


def inexact(unread: Iterable[str], read: Collection[str], known: Collection[str], path: Path) -> list[str]:
    """Faults of columns not read that but for case, blanks and hyphens have the name of a known one which is not read: else it were taken for absent."""
    faults = []
    for name in unread:
        plain = re.sub(r"[^a-z0-9]+", "_", bare(name).lower().replace("#", "n ")).strip("_")
        meant = ALIAS.get(plain, plain)
        if meant in known and meant not in read:
            line = f'df = df.rename(columns={{"{name}": "{meant}"}})'
            faults.append(f"{path}:1: expected {meant} by an exact name, got {name}; {line}")
    return faults


@dataclass(frozen=True)
class Names:
    """Each column's name here in the file's order, what was renamed, the loss as the file spells it, and every fault of a name."""

    columns: tuple[str, ...]
    notes: tuple[str, ...]
    loss: str
    faults: tuple[str, ...]


def named(header: Sequence[str], renamed: Sequence[str], path: Path) -> Names:
    """The columns of a file by the names they have here.

    Raises:
        ValueError: a renaming of no column.
    """
    asked = dict(pair.partition("=")[::2] for pair in renamed)
    for old, new in asked.items():
        if old not in header or not new:
            raise ValueError(
                f"rename: expected OLD=NEW with a column of {path}, got {old}={new}; it has {', '.join(header)}"
            )
    loss, faults = _loss(header, asked, path)
    taken = {*asked.values(), *(name for name in header if name in COLUMNS and name not in asked)}
    names = [asked.get(old) or ("loss" if old == loss else _named(old, header, taken)) for old in header]
    faults += _unique(names, header, path)
    pairs = list(zip(header, names, strict=True))
    notes = [f"column {old} is read as {new}" for old, new in pairs if new in COLUMNS and old != new]
    notes += [
        f"column {old} is not used beside {ALIAS[bare(old)]}"
        for old, new in pairs
        if new not in COLUMNS and ALIAS.get(bare(old)) in names
    ]
    unread = (old for old, new in pairs if new not in COLUMNS)
    faults += inexact(unread, names, {*COLUMNS} - {"loss", *BESIDE}, path)
    return Names(tuple(names), tuple(notes), loss, tuple(faults))


def _unique(names: list[str], header: Sequence[str], path: Path) -> list[str]:
    """Faults of names that several columns have, which none of them keeps; of what no law reads the first keeps it."""
    faults = []
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        places = [place for place, other in enumerate(names) if other == name]
        if name in BESIDE:
            for place in places[1:]:
                names[place] = header[place]
            continue
        both = [header[place] for place in places]
        faults.append(
            f"{path}:1: expected each column once, got {name} twice ({', '.join(both)}); "
            f"keep one with {_rename(both[0], name)}, or remove one"
        )
        for place in places:
            names[place] = f"{name} of column {place + 1}"
    return faults


def _named(old: str, header: Sequence[str], taken: Collection[str]) -> str:
    plain = bare(old)
    if plain == "intermediate_size" and any(bare(name) == "moe_intermediate_size" for name in header):
        return old
    name = ALIAS.get(plain, plain)
    return name if name in COLUMNS and name != "loss" and name not in taken else old


def _rename(old: str, new: str) -> str:
    return f"--rename {in_a_command(f'{old}={new}')}"


def _loss(header: Sequence[str], asked: dict[str, str], path: Path) -> tuple[str, list[str]]:
    """The column that holds the loss, as the file spells it, "" for none; faults where several may, or none in nats does."""
    chosen = [old for old, new in asked.items() if new == "loss"]
    if not chosen:
        left = [old for old in header if old not in asked]
        chosen = ["loss"] if "loss" in left else [old for old in left if bare(old) in LOSSES]
    if len(chosen) > 1:
        shown = ", ".join(chosen)
        return "", [
            f"{path}:1: expected one column of held-out losses, got {shown}; choose with {_rename(chosen[0], 'loss')}"
        ]
    for old in chosen or header:
        for part, what in NO_LOSSES.items():
            if re.search(rf"(?<![a-z]){part}(?![a-z])", old.lower()):
                return (old if chosen else ""), [f"{path}:1: expected nats per token, got {old}, {what.format(old)}"]
    if not chosen:
        return "", [f"{path}: expected a column loss, got {', '.join(header)}; rename one with --rename OLD=loss"]
    return chosen[0], []
