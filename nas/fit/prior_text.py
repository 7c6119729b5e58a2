"""Own rows over a prior in words and tables, for the terminal, Markdown and the page."""

from collections.abc import Iterator, Mapping
from typing import Any

from nas.fit.prior_report import SURPRISING
from nas.fit.text import (
    LINE,
    Drawn,
    Section,
    aligned,
    apart,
    frontier_lines,
    headed,
    number,
    piped,
    planned,
    quantities,
    worth_section,
)
from nas.problem.wording import in_words


def prior_terminal(content: Mapping[str, Any]) -> list[str]:
    """Lines of plain text."""
    return [line for section in prior_sections(content, aligned) for line in ("", *headed(section))][1:]


def prior_markdown(content: Mapping[str, Any]) -> str:
    """The report as a Markdown page."""
    lines = [f"# {content['data']['rows']} own trainings on {content['prior']}", ""]
    for section in prior_sections(content, piped):
        lines += [f"## {section.title}", "", *apart(section.lines), ""]
    return "\n".join(lines)


def prior_sections(content: Mapping[str, Any], drawn: Drawn) -> Iterator[Section]:
    """Every section in its order."""
    yield Section("Verdict", content["verdict"], "verdict")
    yield Section("Data", _data(content, drawn))
    head = f"What {content['prior']} said and what it says with your rows (90 % intervals)"
    yield Section(head, _coordinates(content, drawn))
    yield Section("Differences of two designs", _differences(content["differences"]))
    yield Section("Rows", _rows(content, drawn))
    yield Section("Does the uncertainty reach the answer", frontier_lines(content["frontier"], drawn))
    yield Section("Provenance", _provenance(content["provenance"]), "provenance")
    if "next_said" in content:
        yield planned(content["next_said"], drawn)
    if content.get("worth"):
        yield worth_section(content["worth"])


def _data(content: Mapping[str, Any], drawn: Drawn) -> list[str]:
    data = content["data"]
    lines = [f"{data['rows']} rows", *data["notes"], *([data["unit"]] if data["unit"] else [])]
    lines += quantities(data["quantities"], drawn)
    if data["missing"]:
        lines.append(f"your table says nothing of {', '.join(data['missing'])}: there the prior stands")
    if data["assumed_tokens"] is not None:
        lines.append(
            f"your table says nothing of tokens: all rows are taken as trained on {data['assumed_tokens']:.3g} tokens"
        )
    if data["small"]:
        lines.append(
            f"{data['small']} rows are below 1e7 parameters or 1e8 tokens, where no published row was fitted: the form extrapolates to them"
        )
    if len(data["groups"]) > 1:
        levels = ", ".join(f"{g['name'] or '(none)'} {g['loss']:.3f} nats ({g['rows']} rows)" for g in data["groups"])
        lines.append(
            f"loss at 1e9 parameters and 1e10 tokens by group: {levels}; the law predicts for {data['main'] or '(none)'}"
        )
    return lines


def _coordinates(content: Mapping[str, Any], drawn: Drawn) -> list[str]:
    rows = [
        [f"{each['what']} ({name})", _interval(each["prior"]), _interval(each["posterior"]), f"{each['sd_ratio']:.2f}"]
        for name, each in content["coordinates"].items()
    ]
    sd = content["residual_sd"]
    ranges = [
        f"{in_words(name)} {number(ends['now'][0])} to {number(ends['now'][1])} (was {number(ends['prior'][0])} to {number(ends['prior'][1])})"
        for name, ends in content["range"].items()
    ]
    return [
        *drawn(("what (its letter)", "prior", "with your rows", "of its sd"), rows),
        f"what one design is off the law: an sd of {sd['posterior']:.2g} nats (prior {sd['prior']:.2g} nats)",
        "range: the prior's" + (f", widened to your rows: {', '.join(ranges)}" if ranges else "; your rows lie inside"),
    ]


def _interval(each: Mapping[str, float]) -> str:
    value, low, high = (f"{each[key]:.{3 if abs(each['value']) >= 1.0 else 2}g}" for key in ("value", "low", "high"))
    return f"{value} ({low} … {high})"


def _differences(known: Mapping[str, Any]) -> list[str]:
    more = ", ".join(f"{width:.3g} nats with {count} more" for count, width in known["further"].items())
    return [
        f"median width of 90 % intervals, {known['pairs']} random pairs of the {known['space']} space on {known['tokens']:.3g} tokens: "
        f"{known['prior']:.3g} nats under the prior, {known['posterior']:.3g} nats now ({known['posterior'] / known['prior']:.2f} of it)",
        f"expected {more}, of random designs of that space; --next N chooses better ones",
    ]


def _rows(content: Mapping[str, Any], drawn: Drawn) -> list[str]:
    rows = content["rows"]
    names = rows["name"] or [""] * len(rows["line"])
    every = zip(
        rows["line"], names, *(rows[key] for key in ("observed", "prior", "surprise", "predicted", "off")), strict=True
    )
    off = [each for each in every if max(abs(each[4]), abs(each[6])) > SURPRISING]
    if not off:
        return [f"no row lies beyond {SURPRISING:g} sds of what the prior expected, or of what the law says now"]
    shown = [
        [str(line), str(name), number(seen), number(before), f"{surprise:+.1f}", number(now), f"{sds:+.1f}"]
        for line, name, seen, before, surprise, now, sds in off
    ]
    header = (LINE, "name", "loss (nats)", "prior (nats)", "off by (sds)", "now (nats)", "off by now (sds)")
    return [*drawn(header, shown), "the prior's is beside the median of your rows: levels are found from them"]


def _provenance(known: Mapping[str, Any]) -> list[str]:
    tables = [f"{each['rows']} rows of {each['name']}, SHA-256 {each['sha256']}" for each in known["tables"]]
    prior = known["prior"]
    of = "" if "rows" not in prior else f", of {prior['rows']:,} rows"
    rest = {key: value for key, value in known.items() if key not in ("tables", "prior", "verdict")}
    return [
        *tables,
        f"prior: {prior['name']}{of}, SHA-256 {prior['sha256']}",
        *(f"{key}: {value}" for key, value in rest.items()),
    ]
