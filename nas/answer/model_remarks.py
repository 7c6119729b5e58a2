"""What costs and loss law do not know of a model, and which vocabulary it is shown with, in sentences."""

from nas.problem.problem import Problem
from nas.problem.questions import Baseline
from objectives.loss_law.features import COUNTS, WITH_EMBEDDINGS
from objectives.loss_law.law import Law
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures

SEES_QUERIES = {*COUNTS, *WITH_EMBEDDINGS}  # counts that attention's projections are part of


def blind_spots(known: Baseline, scenario: Scenario) -> list[str]:
    """What prices a model as another: sliding windows as full attention, wide queries by a law without them."""
    window = windowed(known)
    if window:
        context = scenario.input_tokens + scenario.output_tokens
        effect = "too high" if context > known.window else f"the same up to {known.window:,}"
        window += f", costed as full attention: its times and KV cache at {context:,} tokens are {effect}"
    return [text for text in (window, unseen_queries(known.architecture, scenario.law)) if text]


def windowed(known: Baseline) -> str:
    """Which layers have a sliding window; "" without."""
    if not known.n_local:
        return ""
    depth = int(known.architecture.depth[0])
    return f"Sliding window: {known.n_local} of its {depth} layers attend to the last {known.window:,} tokens"


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
    own = _own_head(known)
    if not own:
        return []
    if not problem.vocabulary:
        return [f"Layers alone, without its own vocabulary of {own}"]
    shown = _head(problem.vocabulary, tied=problem.tied)
    return [f"Vocabulary {shown}: its own" if shown == own else f"Vocabulary {shown}, where its own is {own}"]


def equal_heads(known: Baseline) -> list[str]:
    """That both sides of a comparison have the same vocabulary, and what the model's own is."""
    own = _own_head(known)
    return ["Each row gives both sides the same vocabulary and tying" + (f"; its own is {own}." if own else ".")]


def _own_head(known: Baseline) -> str:
    vocabulary = int(known.architecture.vocabulary[0])
    return _head(vocabulary, tied=bool(known.architecture.tied[0])) if vocabulary else ""


def _head(vocabulary: int, *, tied: bool) -> str:
    return f"{vocabulary:,} ({'tied' if tied else 'untied'})"
