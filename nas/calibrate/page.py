"""The page of a calibration: whether to use it, predicted and measured times, errors of unseen models, what the numbers mean."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nas.calibrate import calibration_text as texts
from nas.pages.page import column, element, footer, numbers, page, paragraphs, section, shown, table, text

SCRIPTS = ("linked.js", "calibration.js")
COLUMNS = (
    *("line", "prompt_tokens", "generated_tokens", "attended_tokens", "contended", "parameters", "active_parameters"),
    *("measured_ms", "in_sample_ms", "held_out_ms", "datasheet_ms"),
)
WORDS = ("model", "phase", "kind")
SHARED = {"model": "By model", "kind": "Dense and MoE", "length": "By length of the prompt"}
WORST = 10
PRIOR = "a prior: these rows hardly determine it"
Groups = Sequence[Mapping[str, Any]]


def calibration_page(name: str, content: Mapping[str, Any]) -> str:
    """A calibration as one HTML file, from its report.json alone.

    Raises:
        PlasError: no BokehJS in this environment.
        KeyError, TypeError, ValueError: content that `calibrate` did not write.
    """
    groups, served = content["groups"], content.get("served", [])
    rows = [(g, i) for g, group in enumerate(groups) for i in range(len(group["measurements"]["line"]))]
    main = element(
        "main",
        section("Answer", *_answer(content)),
        section("Predicted and measured", _explore()),
        section("Rows that are missed most", _worst(groups, rows)),
        section("Errors on models that the fit had not seen", *map(_unseen, groups)),
        *([section("How models are served", *(_served(content, group) for group in served))] if served else []),
        section("What was fitted", *(_fitted(content, group) for group in groups), *map(_energy, content["energy"])),
        section("What it covers", paragraphs([_covered(group) for group in groups]), paragraphs([_BEYOND], "quiet")),
        section("Rows left out", paragraphs(texts.left_out(content) or ["None."])),
        section(
            "Repeat it",
            paragraphs([f"In the folder that holds {content['table']}:"]),
            element("pre", text(content["command"])),
        ),
        id="main",
    )
    body = (
        element(
            "header", element("h1", text(name)), paragraphs([texts.head(content), *texts.described(content)], "quiet")
        )
        + main
        + footer()
    )
    return page(name, body, calibration_data(groups), SCRIPTS)


def _answer(content: Mapping[str, Any]) -> Iterator[str]:
    """How wrong each profile is on unseen models, and whether to use it."""
    usage = texts.usage(content, content["written"])
    yield element("p", element("strong", text(usage or "Nothing of this is recommended.")))
    yield paragraphs(texts.not_recommended(content))
    header = (
        "profile",
        "models",
        "rows",
        *(f"{phase}: {what}" for phase in texts.PHASES for what in ("held out", "datasheet")),
    )
    rows = [
        [
            group["name"],
            str(group["models"]),
            str(group["rows"]),
            *(
                texts.shares(group["errors"][phase][what])
                for phase in texts.PHASES
                for what in ("held_out", "datasheet")
            ),
        ]
        for group in content["groups"]
    ]
    yield table(header, rows, "Error, median (90th percentile)")
    yield paragraphs(["Held out: every model is predicted from the other models' rows."], "quiet")


def _explore() -> str:
    """Charts of both phases with the panel; drawn by the page's script."""
    label = "Predicted and measured times of {}; arrow keys walk along the measured times, Escape selects nothing."
    charts = [
        element("div", id=phase, class_="chart", tabindex=0, role="application", aria_label=label.format(phase))
        for phase in texts.PHASES
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


def _worst(groups: Groups, rows: Sequence[tuple[int, int]]) -> str:
    """The rows with the largest errors, held out where they were."""
    found = []
    for at, (g, i) in enumerate(rows):
        m = groups[g]["measurements"]
        seen = not math.isfinite(m["held_out_ms"][i])
        predicted = m["in_sample_ms" if seen else "held_out_ms"][i]
        found.append((predicted / m["measured_ms"][i] - 1.0, seen, at, g, i))
    found.sort(key=lambda row: (-abs(row[0]), row[2]))
    header = ("model", "error", "predicted", "phase", "measured ms", "prompt tokens", "line", "profile")
    body = [[m["model"][i], *_missed(error, seen), m["phase"][i], f"{m['measured_ms'][i]:.4g}", f"{m['prompt_tokens'][i]:,}", str(m["line"][i]), groups[g]["name"]]
            for error, seen, _, g, i in found[:WORST] for m in (groups[g]["measurements"],)]  # fmt: skip
    return table(header, body, indices=[at for _, _, at, _, _ in found[:WORST]])


def _missed(error: float, seen: bool) -> tuple[str, str]:
    return f"{100 * error:+.1f} %", "in-sample" if seen else "held out"


def _unseen(group: Mapping[str, Any]) -> str:
    """Errors of one profile by phase, and by what rows have in common where there is more than one of it."""
    whole = table(texts.HEADER, texts.phase_rows(group)) + paragraphs(texts.remarks(group))
    parts = [
        table(
            (SHARED[name], "prefill", "rows", "decode", "rows"),
            [[each, *_phases(phases)] for each, phases in values.items()],
        )
        for name, values in group["unseen_by"].items()
        if len(values) > 1 and any(values.values())
    ]
    return element("h3", text(group["name"])) + whole + element("div", *parts, class_="beside")


def _phases(phases: Mapping[str, Mapping[str, float]]) -> list[str]:
    cells = []
    for phase in texts.PHASES:
        errors = phases.get(phase)
        alone = errors is not None and errors["rows"] == 1
        cells += (
            ["–", "0"]
            if errors is None
            else [f"{100 * errors['median']:.1f} %" if alone else texts.shares(errors), str(errors["rows"])]
        )
    return cells


def _fitted(content: Mapping[str, Any], group: Mapping[str, Any]) -> str:
    """Each number of a profile with its unit and meaning, and whether the rows or a prior decided it."""
    header = ("number", "value", "unit", "achieved", "decided by", "what it is")
    return element("h3", text(group["name"])) + table(header, list(_numbers(content, group)))


def _served(content: Mapping[str, Any], group: Mapping[str, Any]) -> str:
    """A coefficient of how models are served, its errors, and every row with how far it is missed by a fit to other models."""
    header = ("model", "slow layers", "drafted", "accepted", "measured ms", "before", "in-sample", "held out", "line")
    m, words = group["measurements"], [texts.served_value(group, content["slow_bandwidth"]), *group["remarks"]]
    body = [
        [
            m["model"][i],
            f"{100 * m['slow_share'][i]:.0f} %" if m["slow_share"][i] else "–",
            str(m["drafted"][i] or "–"),
            f"{100 * m['accepted'][i]:.0f} %" if m["drafted"][i] else "–",
            f"{m['measured_ms'][i]:.4g}",
            *(_off(m[f"{name}_ms"][i], m["measured_ms"][i]) for name in ("before", "in_sample", "held_out")),
            str(m["line"][i]),
        ]
        for i in range(len(m["line"]))
    ]
    return (
        element("h3", text(group["name"]))
        + paragraphs([texts.served_head(group), *words])
        + table(texts.SERVED_HEADER, [texts.served_row(group)])
        + table(header, body)
    )


def _off(predicted: float, measured: float) -> str:
    return f"{100 * (predicted / measured - 1.0):+.1f} %" if math.isfinite(predicted) else "–"


def _energy(metered: Mapping[str, Any]) -> str:
    """Coefficients of energy with their errors."""
    words = [texts.energy_head(metered), texts.joules(metered["coefficients"]), *metered["remarks"]]
    return (
        element("h3", text(metered["name"]))
        + paragraphs(words)
        + table(texts.ENERGY_HEADER, [texts.energy_row(metered)])
    )


def _numbers(content: Mapping[str, Any], group: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    profile, peaks, free = group["profile"], content["peaks"], group["fitted"]
    told = {phase: "rows" if phase in group["measurements"]["phase"] else PRIOR for phase in texts.PHASES}
    shares = {peak: profile.get(f"compute_efficiency_{peak}") for peak in ("int8", "fp4")}
    for peak, share in ({"fp16": profile["compute_efficiency"]} | shares).items():
        if share:
            rate = (
                f"{share * peaks[peak] / 1e12:.4g} {'TOP/s' if peak == 'int8' else 'TFLOP/s'}" if peak in peaks else ""
            )
            unit = f"of the {peak.upper()} peak"
            yield f"compute efficiency, {peak}", f"{share:.4g}", unit, rate, told["prefill"], _MEANING["compute"]
    share = profile["bandwidth_efficiency"]
    rate = f"{share * content['bandwidth'] / 1e9:.4g} GB/s"
    yield "bandwidth efficiency", f"{share:.4g}", "of the datasheet's", rate, told["decode"], _MEANING["bandwidth"]
    decided, overhead = "rows" if "overhead_us" in free else PRIOR, f"{profile['overhead'] * 1e3:.4g}"
    yield "overhead", overhead, "µs per operator", "", decided, _MEANING["overhead"]
    for name, (key, scale, unit) in _APART.items():
        if name in free and key in profile:
            yield key.replace("_", " "), f"{profile[key] * scale:.4g}", unit, "", "rows", _MEANING[name]
    if "request_ms" in free:
        request = f"{profile['request_overhead']:.4g}"
        yield "request overhead", request, "ms per prefill", "", "rows", _MEANING["request"]


#: Coefficients that a group keeps where they lower held-out errors: the profile's key, a factor and the unit.
_APART = {
    "prefill_bandwidth": ("prefill_bandwidth_efficiency", 1.0, "of the datasheet's"),
    "prefill_overhead_us": ("prefill_overhead", 1e3, "µs per operator"),
    "cache_efficiency": ("cache_efficiency", 1.0, "of the cache's bandwidth"),
    "attention_compute": ("attention_compute", 1.0, "of the compute efficiency"),
    "attention_bandwidth": ("attention_bandwidth", 1.0, "of the bandwidth efficiency"),
    "decode_attention_compute": ("decode_attention_compute", 1.0, "of the compute efficiency"),
    "expert_compute": ("expert_compute", 1.0, "of the compute efficiency"),
    "expert_bandwidth": ("expert_bandwidth", 1.0, "of the bandwidth efficiency"),
    "routing_overlap": ("routing_overlap", 1.0, "of further tokens"),
}
_MEANING = {
    "prefill_bandwidth": "the same in the prefill; above 1 where fusion and caches spare bytes",
    "prefill_overhead_us": "the same in the prefill",
    "cache_efficiency": "what decoding reaches of what the last-level cache holds",
    "attention_compute": "scores, softmax and values where arithmetic binds",
    "attention_bandwidth": "scores, softmax and values where memory binds",
    "decode_attention_compute": "the arithmetic of the same for one token at a time",
    "expert_compute": "products of routed experts where arithmetic binds",
    "expert_bandwidth": "products of routed experts where memory binds",
    "routing_overlap": "choose experts that another token of the pass has chosen",
    "compute": "what matrix products reach when arithmetic binds: most of prefill",
    "bandwidth": "what reading weights and KV cache reaches when memory binds: most of decode",
    "overhead": "launching one operator; counts most for small models",
    "request": "what a server adds to each request",
}


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
