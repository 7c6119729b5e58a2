"""Sentences on a fit's deltas of layer kinds, and on what its rows cannot tell."""

from collections.abc import Callable, Sequence
from typing import Any

from nas.fit.numbers_in_words import number, span

Drawn = Callable[[Sequence[str], Sequence[Sequence[str]]], list[str]]


def kind_lines(known: dict[str, Any], drawn: Drawn) -> list[str]:
    """A line per kind, and what these deltas do not hold."""
    deltas = known["deltas"]
    rows = []
    for kind, d in deltas.items():
        estimate = (number(d["value"]), number(d["standard_error"]), span(d["linear"]), span(d["bootstrap"]))
        rows.append([kind, str(d["rows"]), f"{d['least']:.2g} to {d['most']:.2g}", *estimate])
    header = ("kind", "rows", "share of layers", "delta (nats)", "standard error (nats)", "linear theory", "bootstrap")
    lines = drawn(header, rows)
    weak = [kind for kind, d in deltas.items() if not d["determined"]]
    lines += [f"not determined (below two standard errors): {', '.join(weak)}"] if weak else []
    unseen = ", ".join(known["unseen"])
    lines += [f"no row has layers of {unseen}: to this law they cost nothing"] if unseen else []
    lengths = [f"{window:,.0f}" for window in known["windows"]]
    lines += (
        [f"windows of {', '.join(lengths)} tokens count as one kind: their length costs nothing here"]
        if lengths
        else []
    )
    return [
        *lines,
        "a delta is in proportion to the layers of its kind, at every size; where in the model they stand is not seen",
    ]
