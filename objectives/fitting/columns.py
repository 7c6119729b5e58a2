"""Names of a table's columns as this project spells them: Hugging Face's, Weights & Biases' and MLflow's are known."""

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
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
FURTHER = (
    *("loss", "tokens", "weight", *BESIDE),
    *("parameters", "active_parameters", "training_flops"),
)
COUNTED = ("tokens", "parameters", "active_parameters", "batch")  # counts that may be written as 1.3B
COLUMNS = tuple(dict.fromkeys([*SHAPE, *ALIASES, *FURTHER, *KIND_DEFAULTS]))
WHOLE = (*SHAPE, "query_dim", "kv_dim")  # counts that are never a fraction: 1.024 and 1,024 are 1024
LETTERS = {
    "L": "depth",
    "d": "width",
    "n_h": "n_heads",
    "n_kv": "n_kv_heads",
    "E": "n_experts",
    "K": "top_k",
    "k": "top_k",
    "N": "parameters",
    "N_a": "active_parameters",
    "D": "tokens",
    "T": "tokens",
    "C": "training_flops",
}  # of papers, which others use for something else: proposed, never read
NEAR = 0.8  # similarity of spelling from which a column is taken for a misspelled one
WORDS = {
    "loss": "loss",
    "param": "parameters",
    "token": "tokens",
    "flop": "training_flops",
    "layer": "depth",
    "gqa": "n_kv_heads",
    "hidden": "width",
    "ffn": "expert_size",
}
UNITS = re.compile(r"\s*[(\[]\s*(nats?(?:[ /].*)?|[kmbgt]|thousands?|millions?|billions?|trillions?)\s*[)\]]$")
BEHIND = re.compile(
    r"(?<=[a-z])(?:_|\s+in\s+|\s+)([kmbgt]|thousands?|millions?|billions?|trillions?)$"
)  # of counts alone
PERCENT = re.compile(r"(?<=activation.rate)\s*[(\[]\s*(?:%|percent)\s*[)\]]$")  # no other column may be in percent
RATIO = re.compile(r"(?:^|_)per_|/s(?:ec|econd)?$")
PREFIX = re.compile(r"(?:(?:config|params|metrics|summary|hparams|model|model_config)[./])+")
HELD_OUT = re.compile(r"(?:final_)?(?:eval|val|valid|validation|test|held_?out)[/_.]loss")
BITS = re.compile(r"(?:.*[^a-z])?(?:bits?|bpt|bits_per_token)(?:[^a-z].*)?")
PER_BYTE = re.compile(r"(?:.*[^a-z])?(?:bpb|bpc|bits_per_(?:byte|char|character))(?:[^a-z].*)?")

PERPLEXITY = re.compile(r"(?:.*[^a-z])?(?:ppl|perplexity)(?:[^a-z].*)?")


def bare(name: str) -> str:
    """A column's name without a tracker's prefix and a unit, lower case: `config.hidden_size` is hidden_size, `#experts` n_experts."""
    unitless = PERCENT.sub("", UNITS.sub("", name.strip().lower()))
    counted = _spelled(BEHIND.sub("", unitless))
    return counted if ALIAS.get(counted, counted) in COUNTED else _spelled(unitless)


def _spelled(name: str) -> str:
    plain = PREFIX.sub("", name, count=1).removesuffix(".value")
    return re.sub(r"^#\s*", "n_", plain).replace(" ", "_").replace("-", "_")


def unit_in(name: str) -> str:
    """The unit that a column's name ends with: "nats", k, m, b, t of counts, also without brackets, or % of activation rates; "" for none."""
    if PERCENT.search(name.strip().lower()):
        return "%"
    found = UNITS.search(name.strip().lower()) or BEHIND.search(name.strip().lower())
    return "" if found is None else "nats" if found[1].startswith("nat") else found[1]


def says_bits(name: str) -> bool:
    """Whether a column calls itself a loss in bits per token."""
    plain = bare(name)
    told = "loss" in plain or "bpt" in plain or "per_token" in plain
    return told and bool(BITS.fullmatch(plain)) and not PER_BYTE.fullmatch(plain)


def is_known(name: str) -> bool:
    """Whether a column means something here, whatever wrote it."""
    plain = bare(name)
    return plain in COLUMNS or plain in ALIAS or bool(HELD_OUT.fullmatch(plain)) or says_bits(name)


@dataclass(frozen=True)
class Names:
    """Each column's name here in the file's order, what was renamed, the loss as the file spells it, and every fault of a name.

    proposed: flags that read a column as one that is not there and that it may be.
    """

    columns: tuple[str, ...]
    notes: tuple[str, ...]
    loss: str
    faults: tuple[str, ...]
    proposed: tuple[str, ...]


def named(header: Sequence[str], renamed: Sequence[str], path: Path, words: Collection[str] = ()) -> Names:
    """The columns of a file by the names they have here; `words`: those that hold no number, which are never proposed.

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
    single = [
        pair
        for pair in pairs
        if header.count(pair[0]) == 1 and pair[0] not in words and not RATIO.search(bare(pair[0]))
    ]  # no flag chooses between columns of one name, and no rate is a count
    near, spoken = _misspelled(single), _spoken_of(single)
    notes += [f"column {old} is not used; {_rename(old, new)} reads it as {new}" for old, new in near.items()]
    return Names(tuple(names), tuple(notes), loss, tuple(faults), _flags(near | spoken))


def may_be_meant(proposed: Sequence[str]) -> list[str]:
    """The line that proposes flags, to paste; none without any."""
    return [f"columns that may be meant, add what is right: {' '.join(proposed)}"] if proposed else []


def _flags(proposed: Mapping[str, str]) -> tuple[str, ...]:
    """A flag for each name that is missing, or the choice between those of several columns."""
    by_name: dict[str, list[str]] = {}
    for old, new in proposed.items():
        by_name.setdefault(new, []).append(_rename(old, new))
    single = [flags[0] for flags in by_name.values() if len(flags) == 1]
    return (*single, *(f"(either {' or '.join(flags)})" for flags in by_name.values() if len(flags) > 1))


def _unique(names: list[str], header: Sequence[str], path: Path) -> list[str]:
    """Faults of names that several columns have, which none of them keeps; of what no law reads the first keeps it."""
    faults = []
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        places = [place for place, other in enumerate(names) if other == name]
        both = list(dict.fromkeys(header[place] for place in places))
        if name in BESIDE:
            for place in places[1:]:
                names[place] = header[place]
            continue
        faults.append(
            f"{path}:1: expected each column once, got {name} twice ({', '.join(both)}); "
            f"keep one with {_rename(both[0], name)}, or remove one"
            if len(both) > 1
            else f"{path}:1: expected each column once, got {both[0]} twice; remove one, or give it another name in the file"
        )
        for place in places:
            names[place] = f"{name} of column {place + 1}"
    return faults


def _named(old: str, header: Sequence[str], taken: Collection[str]) -> str:
    plain = bare(old)
    if plain == "intermediate_size" and any(bare(name) == "moe_intermediate_size" for name in header):
        return old
    found = ALIAS.get(plain, plain)
    return found if found in COLUMNS and found != "loss" and found not in taken else old


def _misspelled(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Columns that are not read and spelled much like one that is missing, with its name; a word of another quantity in them decides."""
    read, found = {new for _, new in pairs}, {}
    for old, new in pairs:
        close = difflib.get_close_matches(bare(old), [*COLUMNS, *ALIAS], n=1, cutoff=NEAR)
        meant = [ALIAS.get(name, name) for name in close]
        others = {name for word, name in WORDS.items() if word in bare(old)}
        if new not in COLUMNS and meant and meant[0] not in read and (not others or meant[0] in others):
            found[old] = meant[0]
    return found


def _spoken_of(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Columns that are not read and hold the word of one that is missing, end with its name, or are its letter, with its name."""
    read, found = {new for _, new in pairs}, {}
    for old, new in pairs:
        end = re.split(r"[./]", bare(old))[-1]
        meant = [name for word, name in WORDS.items() if word in bare(old)]
        meant += [ALIAS.get(end, end), LETTERS.get(re.sub(r"\s*[(\[].*", "", old.strip()), "")]
        missing = [name for name in meant if name in COLUMNS and name not in read]
        if new not in COLUMNS and missing:
            found[old] = missing[-1]
    return found


def _rename(old: str, new: str) -> str:
    return f"--rename {in_a_command(f'{old}={new}')}"


def _loss(header: Sequence[str], asked: dict[str, str], path: Path) -> tuple[str, list[str]]:
    """The column that holds the loss, as the file spells it, "" for none; faults where several may, or none in nats does."""
    chosen = [old for old, new in asked.items() if new == "loss"]
    if chosen and PERPLEXITY.fullmatch(bare(chosen[0])):
        return chosen[0], [_perplexity(chosen[0], path)]
    if chosen or "loss" in header:
        return (chosen or ["loss"])[0], []
    left = [old for old in dict.fromkeys(header) if old not in asked]
    found = [old for old in left if bare(old) == "loss" or HELD_OUT.fullmatch(bare(old)) or says_bits(old)]
    if len(found) > 1:
        return "", [
            f"{path}:1: expected one column of held-out losses, got {', '.join(found)}; choose with {_rename(found[0], 'loss')}"
        ]
    if not found and (rates := [old for old in left if PER_BYTE.fullmatch(bare(old))]):
        return "", [
            f"{path}:1: expected nats per token, got {rates[0]}, bits per byte or character; "
            "loss = value · 0.693 · bytes per token, of your tokeniser and text: add that column"
        ]
    if not found and (given := [old for old in left if PERPLEXITY.fullmatch(bare(old))]):
        return "", [_perplexity(given[0], path)]
    if not found:
        return "", [f"{path}: expected a column loss, got {', '.join(header)}; rename one with --rename OLD=loss"]
    return found[0], []


def _perplexity(name: str, path: Path) -> str:
    return (
        f"{path}:1: expected nats per token, got {name}, a perplexity; loss is its natural logarithm: add that column"
    )
