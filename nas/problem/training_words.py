"""Sentences on metrics of training: the tokens that they count, and what they leave out."""

from nas.problem.problem import Problem

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
        lines.append("lifetime_flops: of no tokens served, so that it is train_flops; add --served-tokens 2T")
    return lines
