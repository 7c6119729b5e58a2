"""Words of how a design is served: what is drafted ahead of it, and where its experts lie."""

MOST_DRAFTED = 16
SPECULATION = ("", "none", *(f"{kind}:{n}" for kind in ("mtp", "draft") for n in range(1, MOST_DRAFTED + 1)))
EXPERTS_IN = ("", "fast", *(f"slow:{percent}%" for percent in range(1, 101)))  # "" is the study's own


def drafted_of(word: str) -> tuple[str, int]:
    """What drafts (mtp, draft; "" nothing) and how many tokens in a step."""
    kind, _, number = word.partition(":")
    return (kind, int(number)) if number else ("", 0)


def slow_share_of(word: str) -> float:
    """The share of the layers whose experts lie in slow memory."""
    return float(word.removeprefix("slow:").removesuffix("%")) / 100 if word.startswith("slow:") else 0.0
