"""The page of a calibration: whether to use it, predicted and measured times, errors of unseen models, what the numbers mean."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nas.document.document import Cell, Section, Table, table_of
from nas.pages.page import column, element, footer, numbers, page, paragraphs, section, section_html, shown, text
from plas_board.calibrate.calibration_document import (
    coefficients,
    energy_section,
    error,
    group_section,
    head,
    left_out,
    not_recommended,
    served_section,
    summary,
    usage,
)
from plas_board.calibrating.group import PHASES

SCRIPTS = ("linked.js", "calibration.js")
COLUMNS = (
    *("line", "prompt_tokens", "generated_tokens", "attended_tokens", "contended", "parameters", "active_parameters"),
    *("measured_ms", "in_sample_ms", "held_out_ms", "datasheet_ms"),
)
WORDS = ("model", "phase", "kind")
SHARED = {"model": "By model", "kind": "Dense and MoE", "length": "By length of the prompt"}
WORST = 10
Groups = Sequence[Mapping[str, Any]]


def calibration_page(name: str, content: Mapping[str, Any]) -> str:
    """A calibration as one HTML file, from its report.json alone.

    Raises:
        PlasError: no BokehJS in this environment.
        KeyError, TypeError, ValueError: content that `calibrate` did not write.
    """
    groups = content["groups"]
    fits = [
        *(_longer(group_section(content, group), _group_parts(content, group)) for group in groups),
        *(_longer(served_section(content, group), _served_rows(group)) for group in content.get("served", ())),
        *map(energy_section, content["energy"]),
    ]
    answer = (usage(content, content["written"]) or "Nothing of this is recommended.", *not_recommended(content))
    main = element(
        "main",
        section_html(Section("Answer", (*answer, summary(content)))),
        section("Predicted and measured", _explore()),
        *map(section_html, [Section("Rows that are missed most", (_worst(groups),)), *fits]),
        section_html(Section("What it covers", (*map(_covered, groups), _BEYOND))),
        section_html(Section("Rows left out", tuple(left_out(content) or ["None."]))),
        section(
            "Repeat it",
            paragraphs([f"In the folder that holds {content['table']}:"]),
            element("pre", text(content["command"])),
        ),
        id="main",
    )
    top = element("header", element("h1", text(name)), paragraphs([head(content), *content.get("told", ())], "quiet"))
    return page(name, top + main + footer(), calibration_data(groups), SCRIPTS)


def _explore() -> str:
    """Charts of both phases with the panel; drawn by the page's script."""
    label = "Predicted and measured times of {}; arrow keys walk along the measured times, Escape selects nothing."
    charts = [
        element("div", id=phase, class_="chart", tabindex=0, role="application", aria_label=label.format(phase))
        for phase in PHASES
    ]
    left = element(
        "div",
        element("div", id="by", class_="controls"),
        element("div", *charts, class_="several"),
        element("p", _KEYS, class_="quiet keys"),
        element("p", id="said", class_="quiet", aria_live="polite"),
        element("div", id="across", class_="controls"),
        element(
            "div", id="errors", class_="chart", role="img", aria_label="Errors of all rows; the tables below hold them."
        ),
        element("noscript", element("p", "The pictures need JavaScript; the tables do not.")),
    )
    panel = element("aside", id="panel", class_="panel", aria_label="Selected row")
    return element("div", left, element("div", panel, class_="side"), class_="explore")


_KEYS = (
    "On the line a prediction is right; dotted lines are 25 % off. Click a point, or focus a picture and press <kbd>←</kbd> <kbd>→</kbd> "
    "<kbd>Home</kbd> <kbd>End</kbd> <kbd>Esc</kbd>. Names in the legend hide what they mark."
)


def _longer(fit: Section, parts: Iterable[Table]) -> Section:
    return replace(fit, parts=(*fit.parts, *parts))


def _worst(groups: Groups) -> Table:
    """The rows with the largest errors, held out where they were."""
    rows: list[tuple[float, tuple[Cell, ...]]] = []
    for group in groups:
        m = group["measurements"]
        for i, measured in enumerate(m["measured_ms"]):
            seen = not math.isfinite(m["held_out_ms"][i])
            missed = m["in_sample_ms" if seen else "held_out_ms"][i] / measured - 1.0
            cells = (
                m["model"][i],
                f"{100 * missed:+.1f} %",
                "in-sample" if seen else "held out",
                m["phase"][i],
                measured,
                f"{m['prompt_tokens'][i]:,}",
                str(m["line"][i]),
                group["name"],
            )
            rows.append((abs(missed), cells))
    order = sorted(range(len(rows)), key=lambda row: -rows[row][0])[:WORST]
    header = ("model", "error", "predicted", "phase", "measured (ms)", "prompt tokens", "line", "profile")
    return replace(table_of(header, [rows[row][1] for row in order]), indices=tuple(order))


def _group_parts(content: Mapping[str, Any], group: Mapping[str, Any]) -> Iterator[Table]:
    """Held-out errors by what rows have in common, where there is more than one of it; then each number with its meaning."""
    for name, values in group["unseen_by"].items():
        if len(values) > 1 and any(values.values()):
            rows = [
                (value, *(cell for phase in PHASES for cell in _cells(by.get(phase)))) for value, by in values.items()
            ]
            yield table_of((SHARED[name], "prefill", "rows", "decode", "rows"), rows, "Errors on models left out")
    header = ("number", "value", "unit", "achieved", "decided by", "what it is")
    yield table_of(header, list(coefficients(content, group)), "What was fitted")


def _cells(errors: Mapping[str, float] | None) -> tuple[str, str]:
    if errors is None:
        return "–", "0"
    return f"{100 * errors['median']:.1f} %" if errors["rows"] == 1 else error(errors), str(errors["rows"])


def _served_rows(group: Mapping[str, Any]) -> Iterator[Table]:
    """Every row with how far it is missed by a fit to other models."""
    m = group["measurements"]
    rows = [
        (
            m["model"][i],
            f"{100 * m['slow_share'][i]:.0f} %" if m["slow_share"][i] else "–",
            str(m["drafted"][i] or "–"),
            f"{100 * m['accepted'][i]:.0f} %" if m["drafted"][i] else "–",
            measured,
            *(_off(m[f"{name}_ms"][i], measured) for name in ("before", "in_sample", "held_out")),
            str(m["line"][i]),
        )
        for i, measured in enumerate(m["measured_ms"])
    ]
    header = ("model", "slow layers", "drafted", "accepted", "measured (ms)", "before", "in-sample", "held out", "line")
    yield table_of(header, rows, "How models are served")


def _off(predicted: float, measured: float) -> str:
    return f"{100 * (predicted / measured - 1.0):+.1f} %" if math.isfinite(predicted) else "–"


def _covered(group: Mapping[str, Any]) -> str:
    """Models, sizes, prompts and outputs that the rows hold."""
    m, profile = group["measurements"], group["profile"]
    kinds = " and ".join(dict.fromkeys(m["kind"]))
    decode = [n for n in m["generated_tokens"] if n]
    outputs = f", {_span(decode)} generated" if decode else ", nothing generated"
    return (
        f"{group['name']}: {group['models']} models ({kinds}) of {_size(min(m['parameters']))} to {_size(max(m['parameters']))} parameters, "
        f"prompts of {_span(m['prompt_tokens'])} tokens{outputs}; weights in {profile['precision']}, {profile['batch']} at once"
    )


_BEYOND = (
    "Where a study has another precision or batch, commands take the nearest profile and say so. "
    "Other engines, larger models and longer prompts are extrapolations."
)


def _span(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _size(parameters: float) -> str:
    return f"{parameters / 1e9:.3g} G" if parameters >= 1e9 else f"{parameters / 1e6:.3g} M"


def calibration_data(groups: Groups) -> dict[str, Any]:
    """Rows of all groups as columns.

    Raises:
        ValueError: columns of different lengths, or other than numbers.
    """
    counts = [len(group["measurements"]["line"]) for group in groups]
    joined = {
        name: np.concatenate(
            [np.zeros(0), *(numbers(_plain(g["measurements"][name]), n) for g, n in zip(groups, counts, strict=True))]
        )
        for name in COLUMNS
    }
    texts = {name: [shown(str(cell)) for g in groups for cell in g["measurements"][name]] for name in WORDS}
    if {len(cells) for cells in texts.values()} != {sum(counts)}:
        raise ValueError("expected a model, a phase and a kind in every row")
    return {
        "metrics": [],
        "n": sum(counts),
        "rows": {name: column(values) for name, values in joined.items()},
        "texts": texts,
        "groups": [shown(str(group["name"])) for group in groups],
        "group": column(np.repeat(np.arange(len(groups)), counts)),
    }


def _plain(values: Sequence[Any]) -> list[Any]:
    return [int(value) if isinstance(value, bool) else value for value in values]
