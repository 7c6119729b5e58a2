"""Designs and their metrics in words: one line, the two parts of a sentence, how large a model is."""

import math
from collections.abc import Collection, Sequence

from nas.problem.objective import Baseline, unit_of
from nas.problem.problem import Problem
from objectives.loss_law.features import COUNTS, MADE_OF, WITH_EMBEDDINGS
from objectives.loss_law.law import Law
from objectives.quantities import day_in_words
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.columns import NOT_OF_A_MODEL
from search_spaces.layer_kinds import LINEAR_KINDS
from search_spaces.mixes import in_words

FFN_RATIO = "FFN ratio"
LARGE = 1e9  # from here on figures are shown by their powers of ten
SUFFIXES = {"ms": "_ms", "GB": "_gb", "J": "_j", "W": "_w", "h": "_hours"}  # of metrics' names, by unit


def describe(architectures: Architectures, searched: Collection[str] = ()) -> str:
    """One architecture in a line: `16 layers, width 1,024, 16 experts top-1, FFN ratio 4 each, 16 heads (8 KV)`.

    Layers where they are of several kinds, the size of query heads where together they are not as wide. Its own tokens and precision, and
    the value of each further axis that was searched.
    """
    each = "" if architectures.n_experts[0] == 1 else " each"
    return _in_words(architectures, searched, _experts(architectures), each)


def model_size(architectures: Architectures) -> str:
    """`16 layers, width 1,024, 16 experts top-1`: the same up to the experts, without device, format and kinds of layers."""
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
    sized = f" of {a['head_dim']}" if a["n_heads"] * a["head_dim"] != a["width"] else ""
    heads = f"{a['n_heads']} heads{sized} ({a['n_kv_heads']} KV)"
    tokens = f", {tokens_in_words([float(a['tokens'])])}" if a.get("tokens") else ""
    bits = f"{a['precision']}, " if a.get("precision") else ""
    bits = f"{a['device']}: {bits}" if a.get("device") else bits
    served = (a.get("speculation", "none"), a.get("experts_in", "fast"))
    others = [name for name in searched if name not in NOT_OF_A_MODEL]
    columns = architectures.further_columns(others).items()
    further = "".join(f", {name} {column[0]}" for name, column in columns if name in others)
    further += "".join(f", {word}" for word in served if ":" in word).replace("slow:", "experts slow:")
    kinds = in_words(architectures)[0]
    size = f"{a['depth']} layers{'' if kinds == 'full' else f' ({kinds})'}, width {a['width']:,}, {experts}"
    return f"{bits}{size}, {FFN_RATIO} {a['expert_ffn_ratio']:.4g}{each}, {heads}{tokens}{further}"


def tokens_in_words(tokens: Sequence[float]) -> str:
    """`10 B tokens`, `1 to 30 B tokens` of several; "" of none."""
    if not tokens:
        return ""
    ends = dict.fromkeys(f"{each / 1e9:g}" for each in (min(tokens), max(tokens)))
    return f"{' to '.join(ends)} B tokens"


def count(n: float, milliard: str = "G") -> str:
    """`1.76 G`, `252 M`; `milliard` is the unit of 10⁹."""
    if not math.isfinite(n):
        return "unknown"
    return f"{n / 1e9:.3g} {milliard}" if n >= 999.5e6 else f"{n / 1e6:.3g} M"


def figure(problem: Problem, metric: str, value: float, *, named: bool = True) -> str:
    """A metric by its name, with its unit: `total 482.9 ms`, `resident 3.88 GB`, `train 1.2e+21 FLOP`."""
    own = {function.name: function.unit for function in problem.functions}
    unit = own[metric] if metric in own else unit_of(metric, problem.scenario.figures)
    if unit == "date":
        return f"{metric * named} {day_in_words(value)}".strip()
    name = metric.rpartition(":")[2].removesuffix(SUFFIXES.get(unit, ""))
    number = f"{value:,.0f}" if 1e4 <= value < LARGE else f"{value:.4g}"
    return f"{name * named} {number} {unit}".strip()


def figure_of(problem: Problem, metric: str, value: float, limit: float | None) -> str:
    """A metric beside its limit, if it has one: `total 486.9 of 500 ms`, `memory_share 0.41 of 1`."""
    if limit is None:
        return figure(problem, metric, value)
    at_most = figure(problem, metric, limit, named=False)
    unit = "".join(at_most.partition(" ")[1:])
    return f"{figure(problem, metric, value).removesuffix(unit)} of {at_most}"


SEES_QUERIES = {  # quantities that attention's projections are part of
    *(name for name in COUNTS if name != "active_ffn_parameters"),
    *WITH_EMBEDDINGS,
    *MADE_OF,
    "query_dim",
}


def blind_spots(known: Baseline, scenario: Scenario) -> list[str]:
    """Features of a model that a law does not see: layers that are not of full attention, queries that are wider than the layers."""
    law, kinds, costs = scenario.law, layer_kinds(known.architecture), ", ".join(scenario.law.layer_deltas)
    seen = f"; the loss is law {law.name}'s with what layers of {costs} cost"
    seen = seen if costs else f", but law {law.name} does not see it, the loss change is not modelled"
    return [
        text for text in (f"{kinds}: priced so{seen}" * bool(kinds), unseen_queries(known.architecture, law)) if text
    ]


def layer_kinds(architecture: Architectures) -> str:
    """The layers of one architecture (n = 1) by kind; "" where every layer is one of full attention and experts."""
    a = architecture
    if a.layers[0]:
        return f"Layers differ: {in_words(a)[0]}"
    depth, window = int(a.depth[0]), windowed(a)
    linear = f"{{}} of linear attention ({LINEAR_KINDS[int(a.linear_kind[0])]})"
    counts = {linear: a.n_linear, "{} of short convolution": a.n_conv, "{} that share a KV cache": a.n_kv_shared}
    counts["{} of full attention with heads of their own"] = a.n_full * (a.full_head_dim > 0)
    counts["{} of latent attention"] = a.n_full * (a.latent_size > 0)
    counts["{} with a dense FFN" if a.n_experts[0] > 1 else f"{{}} with an FFN of {a.dense_size[0]:,}"] = a.n_dense
    others = [text.format(int(count[0])) for text, count in counts.items() if count[0]]
    listed = f"Layers: {', '.join(others)}, of {depth}" if others else ""
    return "; ".join(text for text in (window, listed) if text)


def windowed(architecture: Architectures) -> str:
    """Which layers of one architecture have a sliding window; "" without."""
    local, depth, window = (
        int(column[0]) for column in (architecture.n_local, architecture.depth, architecture.window)
    )
    return f"Sliding window: {local} of its {depth} layers attend to the last {window:,} tokens" if local else ""


def unpriced(architecture: Architectures) -> list[str]:
    """Parameters that are counted but take no time here."""
    further = int(architecture.further_parameters[0] + architecture.table_parameters[0])
    if not further:
        return []
    return [f"{further:,} of its parameters are of tensors without an operator: counted and held in memory, no time"]


def unseen_queries(architecture: Architectures, law: Law) -> str:
    """That d_q differs from the width and the law does not depend on it; "" where it cannot matter."""
    queries, width = int(architecture.query_dim[0]), int(architecture.width[0])
    if queries == width or SEES_QUERIES & set(law.law_form.features):
        return ""
    heads = f"{architecture.n_heads[0]} heads of {architecture.head_dim[0]}"
    return (
        f"Queries of {queries:,} features ({heads}) beside a width of {width:,}: law {law.name} does not see them, "
        f"its loss is that of {width:,}"
    )


def head(known: Baseline, problem: Problem) -> list[str]:
    """Whether a model is shown with its own vocabulary and tying; nothing for one without."""
    own = _own_head(known.architecture)
    if not own:
        return []
    shown = _own_head(problem.headed(known.architecture))
    if not shown:
        return [f"Layers alone, without its own vocabulary of {own}"]
    return [f"Vocabulary {shown}: its own" if shown == own else f"Vocabulary {shown}, where its own is {own}"]


def equal_heads(known: Baseline) -> list[str]:
    """That both sides of a comparison have the same vocabulary, and what the model's own is."""
    own = _own_head(known.architecture)
    return ["Each row gives both sides the same vocabulary and tying" + (f"; its own is {own}." if own else ".")]


def _own_head(architecture: Architectures) -> str:
    """`151,936 (tied)` of one architecture; nothing of one without."""
    vocabulary, tied = int(architecture.vocabulary[0]), bool(architecture.tied[0])
    return f"{vocabulary:,} ({'tied' if tied else 'untied'})" if vocabulary else ""
