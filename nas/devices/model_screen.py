"""Published models on one screen: the ranking on one device in full, or tokens per second on several."""

from collections.abc import Sequence
from string import ascii_lowercase

import numpy as np

from nas.answer.design_words import count
from nas.devices.cases import Case
from nas.devices.models import ModelRow, memory_limit
from nas.devices.result import Models
from nas.devices.screen import MOST_ROWS, columns, cut, formats, speed_lines, workload, wrapped
from objectives.quantities import bytes_in_words

NAME_WIDTH = 18


def lines_of(models: Models) -> list[str]:
    """The ranking on one device in full, or tokens per second on several."""
    return _one_device(models[0]) if len(models) == 1 else _several(models)


def _one_device(rows: Sequence[ModelRow]) -> list[str]:
    case = rows[0].case
    limit = memory_limit(case)
    mode = f"@{case.device.mode}" if case.device.mode else ""
    several = len({row.vocabulary for row in rows}) > 1
    own = "each with its own vocabulary" if several else f"vocabulary {rows[0].vocabulary:,}"
    text = case.config.input_text
    prompt = f"{case.config.input_tokens:,} tokens" if text is None else bytes_in_words(text)
    limits = any(row.missed for row in rows)
    header = ("model", "tokens/s", "TTFT ms", limit.metric.replace("_gb", " GB"), "fits", "parameters", "loss")
    return [
        *wrapped(f"{case.device.name}{mode}, {formats([case])}"),
        *wrapped(f"Fits: {limit} GB; {own}. TTFT is the prefill of {prompt}. Losses in nats."),
        "",
        *columns(header, [_cells(row, limit.metric) for row in rows], left=1, last=True, gap=2),
        "",
        *(line for text in (*largest(rows, limits), losses_note(case)) for line in wrapped(text)),
    ]


def _cells(row: ModelRow, memory: str) -> list[str]:
    """A model's row."""
    first = row.metrics["prefill_ms"]
    return [
        row.model,
        f"{row.tokens_per_second:.4g}",
        f"{first:,.{0 if first >= 100 else 1}f}",
        f"{row.metrics[memory]:.2f}",
        "no" if not row.fits else f"over {row.missed[0].metric}" if row.missed else "yes",
        count(row.metrics["params_total"]),
        "-" if not np.isfinite(row.loss) else f"{row.loss:.3f}{'*' if row.extrapolates else ' '}",
    ]


def largest(rows: Sequence[ModelRow], limits: bool) -> list[str]:
    """The model of most parameters that fits, and that is within all limits."""
    fitting = [row for row in rows if row.fits]
    if not fitting:
        least = min(rows, key=lambda row: row.metrics["resident_gb"])
        return [f"None fits; {least.model} needs least, {least.metrics['resident_gb']:.3g} GB resident."]
    largest_model = max(fitting, key=lambda row: row.metrics["params_total"])
    lines = [f"Largest that fits: {largest_model.model}, {largest_model.tokens_per_second:.3g} tokens/s."]
    able = [row for row in fitting if not row.missed]
    if limits and able:
        best = max(able, key=lambda row: row.metrics["params_total"])
        lines.append(f"Largest within all limits: {best.model}, {best.tokens_per_second:.3g} tokens/s.")
    elif limits:
        lines.append("None is within all limits.")
    return lines


def losses_note(case: Case) -> str:
    """Note on the losses, and on which are extrapolations or missing."""
    law = case.problem.scenario.law
    tokens = f" after {law.tokens / 1e9:g} B training tokens" if law.tokens else ""
    return (
        f"loss: what law {law.name} predicts of the shape{tokens}, not the published model's own; * extrapolates; "
        "- no value (queries wider or narrower than the width, layers of several kinds)."
    )


def _several(models: Models) -> list[str]:
    cases = [rows[0].case for rows in models]
    shown = cases[:MOST_ROWS]
    names = "; ".join(f"{letter} {_named(case, cases)}" for letter, case in zip(ascii_lowercase, shown, strict=False))
    more = len(cases) - len(shown)
    by_id = [{row.id: row for row in rows} for rows in models[:MOST_ROWS]]
    order = sorted(models[0], key=lambda row: row.metrics["params_total"])
    body = [[cut(row.model, NAME_WIDTH), *(_speed(column[row.id]) for column in by_id)] for row in order]
    return [
        *(line for text in (formats(cases), names) for line in wrapped(text)),
        *([f"and {more:,} more, see models.csv (--out)"] if more > 0 else []),
        *(line for text in speed_lines(cases) for line in wrapped(text)),
        "",
        "Tokens per second, the smallest model first; - does not fit, ! misses a limit",
        *columns(("model", *ascii_lowercase[: len(shown)]), body, left=1, last=False, gap=1),
    ]


def _named(case: Case, cases: Sequence[Case]) -> str:
    """A case of models: the device, and its format where these differ."""
    further: list[str] = [case.config.precision] if len({c.config.precision for c in cases}) > 1 else []
    further += [workload(case)] if len({workload(c) for c in cases}) > 1 else []
    return " ".join([case.named, *further])


def _speed(row: ModelRow) -> str:
    if not row.fits:
        return "-"
    n = row.tokens_per_second
    text = f"{n:.1f}" if n < 10 else f"{n:.0f}" if n < 10_000 else f"{n / 1000:.0f}k"
    return text + ("!" if row.missed else "")
