"""Sentences on how designs are served, and the choice among several ways for one architecture."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from nas.problem.problem import Problem
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.columns import CODES, OF_SERVING


def words_of(problem: Problem) -> dict[str, list[str]]:
    """The words of each axis of serving; where it is none, the one of all designs."""
    axes, serving = problem.space.specification.axes, problem.scenario.serving
    return {name: getattr(axes, name) or [getattr(serving, name)] for name in OF_SERVING}


def served_in_words(problem: Problem) -> list[str]:
    """How designs are served, a line each; none of one chip that writes token by token from its own memory."""
    words, scenario = words_of(problem), problem.scenario
    return [*_drafting(words["speculation"], scenario), *_placed(words["experts_in"], scenario), *_read(scenario)]


def _drafting(words: Sequence[str], scenario: Scenario) -> Iterator[str]:
    """What is drafted, how much of it is accepted and by whom, and what that changes."""
    if words == ["none"]:
        return
    serving = scenario.serving
    steps = [scenario.drafting(word).serving for word in words if word != "none"]
    accepted = ", ".join(f"{each.speculation} {each.accepted:.2f}" for each in steps)
    public = [each for each in steps if not each.acceptance_stated]
    whose = (
        " (of public rows, not of your model or text; --set serving.acceptance=SHARE states yours)" if public else ""
    )
    yield f"Speculation {', '.join(words)}: drafted tokens that a step accepts {accepted}{whose}"
    if scenario.device.vendor == "Apple":
        yield "The one rig that was measured with Metal took 1.8 to 2.7 times as long as is predicted with tokens drafted ahead"
    if any(each.drafter == "mtp" for each in steps):
        nats = (
            f"{serving.mtp_nats:+.4f} nats"
            if serving.mtp_nats
            else "its loss as without it, one published pair has -0.0126 nats"
        )
        yield f"A head that drafts is a layer and a projection more, trained with the model: {nats}"


def _placed(words: Sequence[str], scenario: Scenario) -> Iterator[str]:
    """Where experts lie."""
    if words == ["fast"]:
        return
    memory, hot = scenario.slow_memory, scenario.serving.hot
    kept = f"; {100 * hot.share:.0f} % of them are kept in fast memory and serve {100 * hot.hits:.0f} % of reads"
    whose = ", as host memory behind discrete GPUs is in public rows (17 to 50)" if memory.typical else ""
    yield (
        f"Experts in {_listed(words)} of the layers: memory of {memory.capacity_gb:.4g} GB read at "
        f"{scenario.slow_efficiency * memory.rate / 1e9:.3g} GB/s{whose}{kept if hot.share else ''}; of dense designs their FFN"
    )


def _listed(words: Sequence[str]) -> str:
    """Words by comma, of many the ends."""
    return ", ".join(words) if len(words) <= 4 else f"{words[0]}, {words[1]} to {words[-1]}"


def _read(scenario: Scenario) -> Iterator[str]:
    """Which chip reads prompts."""
    reader = scenario.serving.prompts
    if reader is None:
        return
    link = reader.serving.link
    over = (
        f"and hands the KV cache over at {link / 1e9:.3g} GB/s, with weights of its own"
        if link
        else "from the same memory"
    )
    yield f"Prompts are read by {reader.device.name} {over}"


def best_served(problem: Problem, chosen: Architectures) -> Architectures:
    """One architecture (n = 1) that does not say it itself, served in that of several ways in which it meets the budgets with the least total time.

    Where it meets them in none, in that in which it misses them by least.
    """
    words = words_of(problem)
    if chosen.speculation[0] or chosen.experts_in[0] or all(len(each) == 1 for each in words.values()):
        return chosen
    ways = [
        chosen.served(**{name: CODES[name].index(word) for name, word in zip(words, each, strict=True)})
        for each in product(*words.values())
    ]
    rows = Architectures.concatenate(ways)
    assessment = problem.assess(rows)
    missed = np.max([np.zeros(len(rows)), *(b.violation(assessment[b.metric]) for b in problem.limits)], axis=0)
    missed = np.where(missed > 0, missed, 0.0)
    return ways[int(np.lexsort((assessment["total_ms"], missed))[0])]


METRICS = ("train_flops", "train_hours", "lifetime_flops")


def about_training(problem: Problem) -> list[str]:
    """The tokens of training metrics where these are no axis, and that no head is counted; empty without such metrics."""
    asked = [name for name in problem.asked_besides if name in METRICS]
    if not asked:
        return []
    named, law = ", ".join(asked), problem.scenario.law
    lines = []
    if "tokens" not in problem.space.settings:
        blind = "" if law.sees_tokens else ", which it cannot see: ask a law with tokens (plas list laws) for others"
        lines.append(f"{named}: of the {law.stated_tokens:g} tokens of law {law.name}{blind}")
    if not problem.has_head:
        lines.append(f"{named}: without an LM head, as the study has no vocabulary (--vocabulary)")
    if "lifetime_flops" in asked and not problem.scenario.training.served_tokens:
        lines.append(
            "lifetime_flops: of no tokens served, so that it is train_flops; add --set training.served_tokens=2T"
        )
    return lines


#: A quantity's words, with its unit where they do not say it.
QUANTITIES = {
    "depth": "layers",
    "layers": "kinds of layers",
    "width": "width (features)",
    "n_heads": "heads",
    "head_dim": "head size (features)",
    "query_dim": "query dimension (features)",
    "n_kv_heads": "KV heads",
    "kv_dim": "KV dimension (features)",
    "gqa": "heads per KV head",
    "n_experts": "experts",
    "top_k": "active experts",
    "activation_rate": "active share of experts",
    "expert_size": "hidden size of an expert (features)",
    "expert_ffn_ratio": "FFN ratio each",
    "ffn_ratio": "FFN ratio",
    "ffn": "FFN",
    "parameters": "parameters",
    "active_parameters": "active parameters",
    "tokens": "training tokens",
    "tokens_per_parameter": "training tokens per active parameter",
    "stored_per_active": "stored parameters per active one",
    "kv_ratio": "KV dimension per width",
    "query_ratio": "query dimension per width",
    "aspect_ratio": "width per layer",
    "ffn_attention_ratio": "FFN parameters per attention parameter",
    "predicted_loss": "loss (nats)",
}


def named(quantity: str) -> str:
    """A quantity over a column, with its unit: `KV dimension (features)` of kv_dim; a name that is not known as it is."""
    return QUANTITIES.get(quantity, quantity)


def in_words(text: str) -> str:
    """A text with the names of quantities in words, without units: `FFN ratio below 0.5` of `ffn_ratio below 0.5`."""
    return " ".join(named(word).partition(" (")[0] for word in text.split(" "))
