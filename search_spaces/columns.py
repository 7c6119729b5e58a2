"""Columns of architectures: names, words, defaults and types, and the reader of given columns."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from search_spaces.arrays import AnyArray, FloatArray, IntArray, frozen
from search_spaces.formats import FORMATS
from search_spaces.layer_kinds import KIND_DEFAULTS, LINEAR_KINDS, kind_faults, read_blocks

MOST_DRAFTED = 16
SPECULATION = ("", "none", *(f"{kind}:{n}" for kind in ("mtp", "draft") for n in range(1, MOST_DRAFTED + 1)))
EXPERTS_IN = ("", "fast", *(f"slow:{percent}%" for percent in range(1, 101)))  # "" is the study's own


def drafted_of(word: str) -> tuple[str, int]:
    """Return what drafts (mtp, draft; "" nothing) and how many tokens a step."""
    kind, _, number = word.partition(":")
    return (kind, int(number)) if number else ("", 0)


def slow_share_of(word: str) -> float:
    """Return the share of layers whose experts lie in slow memory."""
    return float(word.removeprefix("slow:").removesuffix("%")) / 100 if word.startswith("slow:") else 0.0


BYTES = 7  # of a number, which is positive in 64 bits; two names of a study share one with probability below 1e-8
_NAMES = {0: ""}  # 0 is the study's own device


def number_of(name: str) -> int:
    """Return a number for a device name or other text, the same in every process; `names_of` reads it back. "" is 0."""
    if not name:
        return 0
    number = int.from_bytes(blake2b(name.encode(), digest_size=BYTES).digest(), "big") or 1
    if _NAMES.setdefault(number, name) != name:
        raise ValueError(
            f"device: expected names with numbers of their own, got {name} and {_NAMES[number]}; rename one"
        )
    return number


def names_of(numbers: Iterable[int] | IntArray) -> AnyArray:
    """Return the names of numbers, (n,)."""
    column = np.asarray(numbers)
    numbers_held, place = np.unique(column, return_inverse=True)
    names = np.array([_NAMES[number] for number in numbers_held.tolist()], dtype=object)
    found: AnyArray = names[place.reshape(column.shape)]
    return found


QK_NORMS = ("no", "head", "full")
PRECISIONS: tuple[str, ...] = ("", *FORMATS)  # "" is the study's own
CODES = {  # stored as places among words
    "qk_norm": QK_NORMS,
    "precision": PRECISIONS,
    "linear_kind": LINEAR_KINDS,
    "speculation": SPECULATION,
    "experts_in": EXPERTS_IN,
}
TEXTS = ("device", "layers")  # columns of any text, stored as numbers of it
WORDED = (*CODES, *TEXTS)  # columns that are read and written as words
DEFAULTS: dict[str, int | bool | str] = {
    "shared_expert_size": 0,
    "shared_gate": False,
    "qk_norm": "head",
    "precision": "",
    "speculation": "",
    "experts_in": "",
    "device": "",
    "qkv_bias": False,
    "norms_per_layer": 2,
    "tied": True,
    "vocabulary": 0,
    "tokens": 0,
    **KIND_DEFAULTS,
}
OF_SERVING = ("speculation", "experts_in")  # columns of how a model is served, "" as the study says
OF_RUNNING = (*OF_SERVING, "device")  # of where and how a model runs, which no loss depends on
NOT_OF_A_MODEL = ("precision", "tokens", *OF_RUNNING)  # columns of how a model is trained or run
Part = Literal["base", "attention", "ffn"]  # depth and width; n_kv_heads; n_experts, top_k and expert_size
ALIASES = ("gqa", "activation_rate", "expert_ffn_ratio", "ffn_ratio", "query_dim", "kv_dim")
SHAPE = ("depth", "width", "head_dim", "n_heads", "n_kv_heads", "n_experts", "top_k", "expert_size")
FILE_COLUMNS = (
    *("depth", "width", "head_dim", "n_heads", "n_kv_heads", "gqa", "n_experts", "top_k"),
    *("activation_rate", "expert_ffn_ratio", "expert_size", "ffn_ratio"),
)
NAMES = tuple(dict.fromkeys((*SHAPE, *ALIASES, *DEFAULTS)))  # every column that a design may be given by
CALLED = {
    "depth": ("num_hidden_layers", "num_layers", "n_layers", "n_layer", "layers"),
    "width": ("hidden_size", "d_model", "model_dim", "hidden_dim", "embedding_dim", "n_embd", "hidden"),
    "head_dim": ("head_size", "d_head"),
    "n_heads": ("num_attention_heads", "num_heads", "n_head", "heads", "attention_heads"),
    "n_kv_heads": ("num_key_value_heads", "num_kv_heads", "n_kv_head", "kv_heads", "num_query_groups"),
    "expert_size": (
        *("moe_intermediate_size", "intermediate_size", "d_ff"),
        *("ffn_hidden_size", "ffn_dim", "intermediate_dim", "n_inner"),
    ),
    "n_experts": ("num_local_experts", "num_experts", "n_routed_experts", "experts"),
    "top_k": (
        *("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "topk"),
        *("active_experts", "num_active_experts", "n_active_experts"),
    ),
    "tokens": ("n_tokens", "num_tokens", "train_tokens", "training_tokens"),
    "vocabulary": ("vocab_size", "vocab", "n_vocab", "vocabulary_size", "padded_vocab_size"),
    "tied": ("tie_word_embeddings", "tie_embeddings", "tied_embeddings", "weight_tying"),
}  # what other programs call columns: Hugging Face's names first, then what other tables say
CALLED_BY = {other: name for name, others in CALLED.items() for other in others}
NEAR = 0.8  # of difflib: two letters of five may have changed places
MOST_NAMED = 12  # names, or faults, in a message


def constant(value: Any, n: int, dtype: Any) -> AnyArray:
    """Return a column of one value, (n,), that takes the memory of one; faster than `np.broadcast_to`."""
    return np.ndarray((n,), dtype, np.asarray(value, dtype=dtype).tobytes(), strides=(0,))


def any_of(column: AnyArray) -> bool:
    """Return True if a column holds anything but zeros; for a constant column its first row decides."""
    return bool(column[0] if column.strides == (0,) and len(column) else np.count_nonzero(column))


def dtype_of(name: str) -> Any:
    """Return the type of a stored column."""
    return np.bool_ if isinstance(DEFAULTS.get(name, 0), bool) else np.int64


def code(name: str, value: Any) -> Any:
    """Return a value as stored: a word as its place in `CODES`, a text as its number."""
    if name in TEXTS:
        return number_of(value)
    return CODES[name].index(value) if name in CODES else value


CODED = {name: code(name, default) for name, default in DEFAULTS.items()}  # the defaults as they are stored


@lru_cache(maxsize=64)
def defaults(n: int) -> Mapping[str, AnyArray]:
    """Return the further columns at their defaults, each (n,); cached, since searches use few batch sizes."""
    return MappingProxyType({name: constant(value, n, dtype_of(name)) for name, value in CODED.items()})


def worded(name: str, column: AnyArray) -> AnyArray:
    """Return a stored column as read and written, (n,), with words where it has them."""
    if name in TEXTS:
        return names_of(column)
    found: AnyArray = np.asarray(CODES[name], dtype=object)[column] if name in CODES else column
    return found


def near_column(name: str, given: Collection[str]) -> str:
    """Return the column that a name which is none stands for, in other programs or misspelt, unless it is given too; else ""."""
    meant = CALLED_BY.get(name.lower()) or next(iter(get_close_matches(name.lower(), NAMES, n=1, cutoff=NEAR)), "")
    return "" if meant in given else meant


def unknown_columns(names: Collection[str], beside: Collection[str] = ()) -> list[str]:
    """Return a fault for each name that is neither a column of designs nor in `beside`, at most a dozen.

    Args:
        beside: further names that may be given, such as metrics.
    """
    unknown = [name for name in names if name not in NAMES and name not in beside]
    faults = [
        f"expected names of columns, got {name!r:.60}; "
        + (f"did you mean {meant}?" if (meant := near_column(name, names)) else "leave it out")
        for name in unknown
    ]
    more = len(faults) - MOST_NAMED
    return faults if more <= 0 else [*faults[:MOST_NAMED], f"and {more} more"]


class ColumnReader:
    """Reads user-given columns and reports all faults at once."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.given = {name: np.atleast_1d(np.asarray(value)) for name, value in columns.items() if value is not None}
        self.faults: list[str] = []
        self.faulty: set[str] = set()  # by what they follow from
        if unknown := unknown_columns(tuple(map(str, columns))):
            raise ValueError("\n".join(unknown))
        sizes = {len(value) for value in self.given.values()} or {0}
        if len(sizes - {1}) > 1:
            raise ValueError(f"architecture: expected columns of one length, got lengths {sorted(sizes)}")
        self.n = max(sizes)

    def read(self) -> dict[str, AnyArray]:
        """Return every stored column, checked, (n,).

        Raises:
            ValueError: one line a fault.
        """
        shape = self._shape()
        further = {name: self._further(name) for name in DEFAULTS}
        self._check(shape)
        self._refuse()
        self.faults += kind_faults({**shape, **further})
        self._refuse()
        return {**shape, **further}

    def check_derived(self, found: Mapping[str, FloatArray | IntArray]) -> None:
        """Raise an error for given columns that contradict the others, by name.

        Raises:
            ValueError: one line a fault.
        """
        for name in ALIASES:
            if name not in self.given:
                continue
            expected, given = found[name], _numbers(self.given[name])
            if (off := ~np.isclose(given, expected, rtol=1e-6)).any():
                i = int(np.argmax(np.broadcast_to(off, (self.n,))))
                got = np.broadcast_to(given, (self.n,))[i]
                self.faults.append(f"{name}: expected {expected[i]:g} from the other columns, got {got:g}; drop one")
        self._refuse()

    def _refuse(self) -> None:
        if self.faults:
            raise ValueError("\n".join(self.faults))

    def _shape(self) -> dict[str, IntArray]:
        shape = {name: self._positive(name) for name in ("depth", "width")}
        shape["head_dim"] = self._positive("head_dim", np.asarray(64))
        shape["n_heads"] = self._positive("n_heads", shape["width"] / shape["head_dim"], ("width", "head_dim"))
        of_gqa = shape["n_heads"] / _numbers(self.given["gqa"]) if self.given.get("gqa") is not None else None
        shape["n_kv_heads"] = self._positive("n_kv_heads", of_gqa, ("n_heads",))
        shape["n_experts"] = self._positive("n_experts", np.asarray(1))
        shape["top_k"] = self._positive("top_k", np.asarray(1))
        of_ratio = None
        if "expert_ffn_ratio" in self.given:
            of_ratio = np.asarray(_numbers(self.given["expert_ffn_ratio"]) * shape["width"])
        elif "ffn_ratio" in self.given:
            of_ratio = np.asarray(_numbers(self.given["ffn_ratio"]) * shape["width"] / shape["top_k"])
        shape["expert_size"] = self._positive("expert_size", of_ratio, ("width", "top_k"))
        return {name: shape[name] for name in SHAPE}

    def _positive(self, name: str, fallback: AnyArray | None = None, follows: Sequence[str] = ()) -> IntArray:
        """A column, or what follows from others; where one of these is wrong, so is what follows, and that is no fault of its own."""
        raw = self.given.get(name, fallback)
        if raw is fallback is not None and self._wrong.intersection(follows):
            self.faulty.add(name)
            return constant(1, self.n, np.int64)
        if raw is None:
            self.faults.append(f"{name}: expected a positive integer, got nothing; give the column")
            return constant(1, self.n, np.int64)
        numbers = _numbers(raw)
        finite = np.isfinite(numbers)
        numbers = np.where(finite, numbers, 0.0)
        whole = np.round(numbers)
        bad = ~finite | (np.abs(numbers - whole) > 1e-6 * np.maximum(1, np.abs(whole))) | (whole < 1)
        bad |= whole > 2**40
        if bad.any():
            shown = np.atleast_1d(np.asarray(raw))[np.atleast_1d(bad)][0]
            origin = "" if name in self.given else " from the other columns"
            self.faults.append(f"{name}: expected a positive integer, got {shown}{origin}; correct the architecture")
            return constant(1, self.n, np.int64)
        return frozen(np.array(np.broadcast_to(whole, (self.n,)), dtype=np.int64))

    def _further(self, name: str) -> AnyArray:
        default = DEFAULTS[name]
        raw = self.given.get(name)
        if raw is None:
            return constant(code(name, default), self.n, dtype_of(name))
        try:
            values = [_further_value(name, value) for value in raw.tolist()]
        except ValueError as error:
            self.faults.append(str(error))
            return constant(code(name, default), self.n, dtype_of(name))
        return frozen(np.array(np.broadcast_to(np.asarray(values, dtype=dtype_of(name)), (self.n,))))

    @property
    def _wrong(self) -> set[str]:
        """Columns with a fault, or that follow from such."""
        return self.faulty | {line.partition(":")[0] for line in self.faults}

    def _check(self, shape: Mapping[str, IntArray]) -> None:
        wrong_already = self._wrong  # what follows from a fault is none
        heads, kv = shape["n_heads"], shape["n_kv_heads"]
        if not wrong_already & {"n_heads", "n_kv_heads"} and (wrong := heads % kv != 0).any():
            i = int(np.argmax(wrong))
            self.faults.append(f"n_kv_heads: expected a divisor of n_heads {heads[i]}, got {kv[i]}; choose one")
        experts, top_k = shape["n_experts"], shape["top_k"]
        if wrong_already & {"n_experts", "top_k"}:
            return
        if (wrong := ~((top_k < experts) | ((experts == 1) & (top_k == 1)))).any():
            i = int(np.argmax(wrong))
            self.faults.append(
                f"top_k: expected fewer than n_experts {experts[i]} (or 1 of 1, dense), got {top_k[i]}; lower top_k"
            )


def _numbers(raw: AnyArray) -> FloatArray:
    try:
        numbers: FloatArray = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.full(np.shape(raw), np.nan)
    return numbers


_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _further_value(name: str, value: Any) -> Any:
    if name == "layers" and str(value).isdecimal():
        raise ValueError(f"layers: expected entries like 'ffn 2 expert_size=768', got {value}; did you mean depth?")
    if name == "layers" and value:
        read_blocks(str(value))
    if name in TEXTS:
        return number_of(str(value))
    if name in CODES:
        word = "no" if value is False else str(value)
        if word not in CODES[name]:
            words = [word for word in CODES[name] if word]
            more = f" and {len(words) - MOST_NAMED} more" if len(words) > MOST_NAMED else ""
            raise ValueError(f"{name}: expected one of {', '.join(words[:MOST_NAMED])}{more}, got {value}; choose one")
        return code(name, word)
    if dtype_of(name) is np.bool_:
        truth = _WORDS.get(str(value).lower().removesuffix(".0"))
        if truth is None:
            raise ValueError(f"{name}: expected true or false, got {value}; choose one")
        return truth
    number = float(value) if isinstance(value, (int, float, str)) and _is_number(value) else -1.0
    least = 1 if name == "norms_per_layer" else 0
    if number != int(number) or number < least:
        raise ValueError(f"{name}: expected a whole number of at least {least}, got {value}; correct it")
    return int(number)


def _is_number(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except ValueError:
        return False
