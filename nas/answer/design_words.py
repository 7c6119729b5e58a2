"""Designs in words: one line, the two parts of a sentence, how large a model is."""

import math
from collections.abc import Collection, Sequence

from search_spaces.architectures import Architectures
from search_spaces.columns import NOT_OF_A_MODEL
from search_spaces.mixes import in_words

FFN_RATIO = "FFN ratio"


def describe(architectures: Architectures, searched: Collection[str] = ()) -> str:
    """One architecture in a line: `16 layers, width 1,024, 16 experts top-1, FFN ratio 4 each, 16 heads (8 KV)`.

    Layers where they are of several kinds, the size of query heads where together they are not as wide. Its own tokens and precision, and
    the value of each further axis that was searched.
    """
    each = "" if architectures.n_experts[0] == 1 else " each"
    return _in_words(architectures, searched, _experts(architectures), each)


def size_of(architectures: Architectures) -> str:
    """The same up to the experts: `16 layers, width 1,024, 16 experts top-1`."""
    return describe(architectures).partition(f", {FFN_RATIO}")[0]


def model_size(architectures: Architectures) -> str:
    """The same without device, format and kinds of layers."""
    return f"{architectures.depth[0]} layers, width {architectures.width[0]:,}, {_experts(architectures)}"


def _experts(architectures: Architectures) -> str:
    number = architectures.n_experts[0]
    return "dense" if number == 1 else f"{number} experts top-{architectures.top_k[0]}"


def describe_in_words(architectures: Architectures, searched: Collection[str] = ()) -> tuple[str, str]:
    """The same as a sentence has it, in two parts: its size (`16 layers, width 1,024, 16 experts of which one is used`), and the rest."""
    number, top_k = int(architectures.n_experts[0]), int(architectures.top_k[0])
    used = "one is" if top_k == 1 else f"{top_k} are"
    experts = "dense" if number == 1 else f"{number} experts of which {used} used"
    whole = _in_words(architectures, searched, experts, "" if number == 1 else " each")
    size, _, rest = whole.partition(f", {FFN_RATIO}")
    return size, FFN_RATIO + rest


def _in_words(architectures: Architectures, searched: Collection[str], experts: str, each: str) -> str:
    a = {name: column[0] for name, column in architectures.columns().items()}
    free = a["n_heads"] * a["head_dim"] != a["width"]
    sized = f" of {a['head_dim']}" if free else ""
    heads = f"{a['n_heads']} heads{sized} ({a['n_kv_heads']} KV)"
    tokens = f", {tokens_in_words([float(a['tokens'])])}" if a.get("tokens") else ""
    bits = f"{a['precision']}, " if a.get("precision") else ""
    bits = f"{a['device']}: {bits}" if a.get("device") else bits
    words = [a.get("speculation", "none"), a.get("experts_in", "fast")]
    served = "".join(f", {word}" if ":" in word else "" for word in words)
    served = served.replace("slow:", "experts slow:")
    others = [name for name in searched if name not in NOT_OF_A_MODEL]
    further = "".join(
        f", {name} {column[0]}" for name, column in architectures.further_columns(others).items() if name in others
    )
    kinds = in_words(architectures)[0]
    layers = "" if kinds == "full" else f" ({kinds})"
    size = f"{a['depth']} layers{layers}, width {a['width']:,}, {experts}"
    return f"{bits}{size}, {FFN_RATIO} {a['expert_ffn_ratio']:.4g}{each}, {heads}{tokens}{further}{served}"


def tokens_in_words(tokens: Sequence[float]) -> str:
    """`10 B tokens`, `1 to 30 B tokens` of several; "" of none."""
    if not tokens:
        return ""
    ends = dict.fromkeys(f"{each / 1e9:g}" for each in (min(tokens), max(tokens)))
    return f"{' to '.join(ends)} B tokens"


def count(n: float) -> str:
    """`1.76 G`, `252 M`."""
    if not math.isfinite(n):
        return "unknown"
    return f"{n / 1e9:.3g} G" if n >= 999.5e6 else f"{n / 1e6:.3g} M"
