"""Sentences on what costs and loss law do not know of a model, and the vocabulary it is shown with."""

from nas.problem.objective import Baseline
from nas.problem.problem import Problem
from objectives.loss_law.features import COUNTS, MADE_OF, WITH_EMBEDDINGS
from objectives.loss_law.law import Law
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.layer_kinds import LINEAR_KINDS

SEES_QUERIES = {  # quantities that attention's projections are part of
    *(name for name in COUNTS if name != "active_ffn_parameters"),
    *WITH_EMBEDDINGS,
    *MADE_OF,
    "query_dim",
}


def blind_spots(known: Baseline, scenario: Scenario) -> list[str]:
    """Features of a model that a law does not see: layers that are not of full attention, queries that are wider than the layers."""
    found = (unseen_kinds(known.architecture, scenario.law), unseen_queries(known.architecture, scenario.law))
    return [text for text in found if text]


def unseen_kinds(architecture: Architectures, law: Law) -> str:
    """Which layers are of other kinds than those that laws are fitted on; "" where every layer is alike."""
    kinds = layer_kinds(architecture)
    if kinds and law.layer_deltas:
        return (
            f"{kinds}: priced so; the loss is law {law.name}'s with what layers of {', '.join(law.layer_deltas)} cost"
        )
    return f"{kinds}: priced so, but law {law.name} does not see it, the loss change is not modelled" if kinds else ""


def layer_kinds(architecture: Architectures) -> str:
    """The layers of one architecture (n = 1) by kind; "" where every layer is one of full attention and experts."""
    a = architecture
    depth, window = int(a.depth[0]), windowed(a)
    linear = f"{{}} of linear attention ({LINEAR_KINDS[int(a.linear_kind[0])]})"
    counts = {linear: a.n_linear, "{} of short convolution": a.n_conv, "{} that share a KV cache": a.n_kv_shared}
    counts["{} of full attention with heads of their own"] = a.n_full * (a.full_head_dim > 0)
    counts["{} of latent attention"] = a.n_full * (a.latent_size > 0)
    counts["{} with a dense FFN"] = a.n_dense
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
    further = int(architecture.further_parameters[0])
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
