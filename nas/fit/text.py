"""A fit's report in words and tables, for the terminal and as Markdown."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from nas.fit.frontier_check import cannot_disagree
from nas.fit.worth import worth_lines
from nas.problem.wording import in_words, named
from nas.terminal.screen_text import TITLE, Styled
from nas.terminal.tables import BELOW, fitted

HEADER = ("RMSE (nats)", "below this form's (nats)", "pairs in order")
WHAT = "what it is"  # of a coefficient, below its row where there is no room
DESIGN = "architecture"
LINE = "line of the table"  # head of a column that says which row of the user's table
Rows = Sequence[Sequence[str]]
Part = Literal["verdict", "coefficients", "terms", "provenance"]
Drawn = Callable[[Sequence[str], Rows], list[str]]
FORMS = (
    *("form", "coefficients", "R²", "BIC", "weight", "RMSE, folds", "above this fit's"),
    *("RMSE, worst level", "RMSE, largest fifth", "bias, largest fifth", "Spearman"),
)


class Section(NamedTuple):
    """A title and the lines below it; `part`: what of a fit it is, for a page that has more to show of it."""

    title: str
    lines: list[str]
    part: Part | None = None


def terminal(content: dict[str, Any]) -> list[str]:
    """Lines of plain text."""
    return [line for section in sections(content, aligned) for line in ("", *headed(section))][1:]


def headed(section: Section) -> list[str]:
    """The title, and its lines indented below it."""
    return [Styled(section.title, TITLE), *(f"  {line}" for line in section.lines)]


def markdown(content: dict[str, Any], plots: Sequence[str] = ()) -> str:
    """The report as a Markdown page, with the plots' files."""
    lines = [f"# Fit of {content['form']}", ""]
    for section in sections(content, piped):
        lines += [f"## {section.title}", "", *apart(section.lines), ""]
    for name in plots:
        lines += [f"![{name}](plots/{name}.png)", ""]
    return "\n".join(lines)


def apart(body: Sequence[str]) -> Iterator[str]:
    """Lines of Markdown, an empty one where text and a table meet."""
    for before, line in zip(("", *body), body, strict=False):
        if before and before.startswith("|") != line.startswith("|"):
            yield ""
        yield line if line.startswith("|") else f"{line}  "


def aligned(header: Sequence[str], rows: Rows) -> list[str]:
    """A table with aligned columns that fit the screen; the indent is the section's."""
    return ["".join(line).removeprefix("  ") for line in fitted(header, rows, below=(WHAT, *BELOW))[0]]


def piped(header: Sequence[str], rows: Rows) -> list[str]:
    """A Markdown table."""
    return ["| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows)]


def sections(content: dict[str, Any], drawn: Drawn) -> Iterator[Section]:
    """Every section in its order."""
    yield Section("Verdict", content["verdict"], "verdict")
    yield Section("Data", _data(content["data"], drawn))
    head = "Coefficients (95 % intervals; an exponent has no unit)"
    yield Section(head, _coefficients(content, drawn), "coefficients")
    if content.get("kinds"):
        yield Section("Kinds of layers (nats where all layers are of the kind)", kind_lines(content["kinds"], drawn))
    yield Section(f"Terms ({unit(content)})", _terms(content["terms"], drawn), "terms")
    yield Section("What the data cannot tell", _doubts(content))
    yield Section("Quality", _quality(content))
    unseen = [*_validation(content["validation"], drawn), *_beyond(content["beyond_rows"])]
    yield Section("Rows not seen by the fit", unseen)
    baselines = baseline_lines(content["baselines"], content["form"], drawn)
    yield Section("Simple baselines on the same unseen rows", baselines)
    yield Section("Forms under the same validation (errors in nats)", _forms(content["forms"], drawn))
    if content["given_law"] is not None:
        yield Section("A law given beforehand", _given(content["given_law"]))
    if content["frontier"] is not None:
        yield Section("Does the uncertainty reach the answer", frontier_lines(content["frontier"], drawn))
    yield Section("Rows that matter most", _influence(content, drawn))
    yield Section("Provenance", _provenance(content["provenance"]), "provenance")
    if "next_said" in content:
        yield planned(content["next_said"], drawn)
    if content.get("worth"):
        yield worth_section(content["worth"])


def worth_section(known: dict[str, Any]) -> Section:
    """What the proposed trainings are worth."""
    return Section("What these trainings are worth", [*worth_lines(known), *_approximated(known)])


def planned(said: dict[str, Any], drawn: Drawn) -> Section:
    """The designs to train."""
    return Section(said["title"], [*drawn(said["header"], said["rows"]), *said["notes"]])


def _approximated(known: dict[str, Any]) -> list[str]:
    return [f"worked out with {known['approximation']}"] if "approximation" in known else []


def _provenance(known: dict[str, Any]) -> list[str]:
    tables = [f"{each['rows']} rows of {each['name']}, SHA-256 {each['sha256']}" for each in known["tables"]]
    return [*tables, *(f"{key}: {value}" for key, value in known.items() if key != "tables")]


def _data(data: dict[str, Any], drawn: Drawn) -> list[str]:
    lines = [
        f"{data['rows']} rows, {data['designs']} designs",
        *data["notes"],
        *(data[name] for name in ("unit", "sweep", "mixture", "tokens") if data.get(name)),
    ]
    lines += quantities(data["quantities"], drawn)
    lines += [
        f"{in_words(a)} and {in_words(b)} move together in this table: correlation {r:.2f} of logarithms"
        for a, b, r in data["correlations"]
    ]
    noise = data["replicates"]
    if noise is None:
        return [*lines, "no design was trained twice: noise and the best possible R² are unknown"]
    return [
        *lines,
        f"replicates: {noise['designs']} designs, sd {number(noise['sd'])} nats on {noise['freedom']} degrees of freedom; "
        f"under such noise the right law has R² near {noise['ceiling_r2']:.5f}",
    ]


def quantities(known: Mapping[str, Any], drawn: Drawn) -> list[str]:
    """The table of what the rows differ in, in words with units."""
    rows = [[named(name), number(q["low"]), number(q["high"]), str(q["levels"])] for name, q in known.items()]
    return drawn(("quantity", "from", "to", "different values"), rows)


def unit(content: Mapping[str, Any]) -> str:
    """Of what the terms of a form add up to."""
    return "nats" if content["adds_up_to"] == "loss" else "of ln loss"


def _coefficients(content: dict[str, Any], drawn: Drawn) -> list[str]:
    rows = [
        [
            name,
            number(c["value"]),
            "fixed" if c["fixed"] else number(c["standard_error"]),
            span(c["linear"]),
            span(c["bootstrap"]),
            _meaning(c.get("means", ""), unit(content)),
        ]
        for name, c in content["coefficients"].items()
    ]
    p, b = content["provenance"], content["bootstrap"]
    lines = [content["formula"]["names"]]
    lines += drawn(("coefficient", "value", "standard error", "linear theory", "bootstrap", WHAT), rows)
    lines.append(
        f"{p['starts_agreeing']} of {p['starts']} starts end here; condition number {content['condition']:.3g}"
    )
    if b["restarts_checked"]:
        lines.append(
            f"{b['draws']} resamplings from warm starts; of {b['restarts_checked']} also fitted from scratch, "
            f"{b['restarts_checked'] - b['restarts_agreeing']} found something better"
        )
    return lines


def _meaning(means: str, of: str) -> str:
    """`size of the term sparsity (nats)`, `exponent of FFN ratio`."""
    return f"{means} ({of})" if means.startswith("size") else in_words(means)


def _terms(terms: dict[str, Any], drawn: Drawn) -> list[str]:
    reference = ", ".join(f"{in_words(name)} {value:,.4g}" for name, value in terms["reference_design"].items())
    rows = [
        [name, *(number(t[key]) for key in ("at_reference", "standard_error", "low", "high"))]
        for name, t in terms.items()
        if name != "reference_design"
    ]
    header = ("term", "at the reference", "standard error", "least", "most")
    return [*drawn(header, rows), f"reference design: {reference}"]


def _doubts(content: dict[str, Any]) -> list[str]:
    lines = list(content["identifiability"])
    lines += [f"{a} and {b} are estimated together: correlation {r:.4f}" for a, b, r in content["alike"]]
    shape = content["lack_of_fit"]
    if shape is None:
        lines.append("lack of fit: too few rows to test")
    else:
        verdict = (
            "the form does not fit: residuals have a shape"
            if shape["rejected"]
            else "no shape is seen in the residuals"
        )
        verdict += f"; at these rows it sees a misfit of {number(shape['visible'])} nats (RMS) four times of five"
        lines.append(
            f"lack of fit: F {shape['f']:.3g} on {shape['terms']} and {shape['freedom']} degrees of freedom, p {shape['p_value']:.2g}: {verdict}"
        )
    return lines


def _quality(content: dict[str, Any]) -> list[str]:
    q = content["quality"]
    return [
        f"R² {q['r2']:.5f}, RMSE {number(q['rmse'])} nats, mean absolute error {number(q['mae'])} nats, largest {number(q['largest'])} nats",
        f"residual standard deviation {number(q['residual_sd'])} nats, robust {number(q['robust_sd'])} nats; AIC {q['aic']:.1f}, BIC {q['bic']:.1f}",
    ]


def _validation(known: dict[str, Any], drawn: Drawn) -> list[str]:
    rows = [["10 random folds", *_errors(known["folds"])]]
    rows += [[f"each value of {in_words(name)} left out", *_errors(errors)] for name, errors in known["levels"].items()]
    if known["largest"]:
        rows.append([f"largest fifth by {known['largest_by']}", *_errors(known["largest"])])
    lines = drawn(("left out", "RMSE (nats)", "bias (nats)", "rows"), rows)
    lines.append(f"ranks of unseen rows: Spearman {known['spearman']:.3f}, Kendall {known['kendall']:.3f}")
    if (near := known["near_frontier"]) is not None:
        lines.append(
            f"near the lowest loss for its size, {near['right']:.0%} of {near['pairs']:,} pairs in the right order"
        )
    return lines


def _beyond(known: dict[str, Any] | None) -> list[str]:
    """Sentences on how well the draws cover outside of the rows."""
    if known is None:
        return [
            "outside the rows: how much too narrow the draws are is unknown, as too few rows are left without the largest"
        ]
    return [
        f"outside the rows: the draws' 90 % intervals hold {known['covered']:.0%} of the largest fifth by {known['by']} ({known['rows']:,} "
        f"rows) predicted from the rest; there loss@q and intervals are {known['factor']:.2g} times as wide"
    ]


def _given(law: dict[str, Any]) -> list[str]:
    lines = [
        f"{law['law']} ranks these rows with Spearman {law['spearman']:.3f}, Kendall {law['kendall']:.3f}",
        f"a nat that it predicts is {law['slope']:.2f} nats here; it is off by {number(law['as_is_rmse'])} nats as it is (RMSE), "
        f"{number(law['offset_rmse'])} nats with a constant added, {number(law['line_rmse'])} nats through a line",
    ]
    if law["assumed"]:
        held = ", ".join(f"{in_words(name)} {value:.4g}" for name, value in law["assumed"].items())
        lines.append(f"the table does not hold, and it was asked with: {held}")
    return lines


def frontier_lines(known: dict[str, Any], drawn: Drawn) -> list[str]:
    if "reason" in known:
        return [known["reason"]]
    members = f"{known['study']}: {known['members']:,} members of the frontier of {', '.join(known['objectives'])}"
    lines = [*_one_answer(known, members, drawn)] if known["alike"] else [*_under_draws(known, members, drawn)]
    ends = [f"{in_words(name)} {share:.0%}" for name, share in known["boundary"].items() if share > 0]
    if known["blind"]:
        lines.append(
            f"the law does not see {', '.join(map(in_words, known['blind']))}: on these axes the cheapest was taken"
        )
    lines += [f"members at an end of an axis: {', '.join(ends)}"] if ends else []
    out = [f"{in_words(name)} {share:.0%}" for name, share in known["outside"].items()]
    return lines + (
        [f"members outside the fitted range: {', '.join(out)}"] if out else ["no member is outside the fitted range"]
    )


def _one_answer(known: dict[str, Any], members: str, drawn: Drawn) -> Iterator[str]:
    """The picks of draws that cannot disagree on them, without what would read as certainty."""
    yield f"{members}; {cannot_disagree(known)}"
    rows = [[f"{known['budget']} <= {pick['limit']:.4g}", pick["pick"]] for pick in known["picks"]]
    yield from drawn(("budget", "the only answer of this form"), rows)


def _under_draws(known: dict[str, Any], members: str, drawn: Drawn) -> Iterator[str]:
    """The picks, how many draws share them, and what they lose under the others."""
    stays = known["jaccard"]
    yield (
        f"{members}; {known['draws']} draws share {stays['mean']:.2f} with it (Jaccard, {stays['low']:.2f} to {stays['high']:.2f})"
    )
    rows = [
        [
            f"{known['budget']} <= {pick['limit']:.4g}",
            f"{pick['same']:.0%}",
            number(pick["regret"]),
            number(pick["regret_high"]),
            pick["pick"],
        ]
        for pick in known["picks"]
    ]
    yield from drawn(("budget", "same in draws", "mean regret (nats)", "95 % below (nats)", DESIGN), rows)


def _errors(errors: dict[str, Any]) -> list[str]:
    return [number(errors["rmse"]), f"{errors['bias']:+.4f}", str(errors["rows"])]


def _forms(forms: dict[str, Any], drawn: Drawn) -> list[str]:
    names = ("coefficients", "r2", "bic", "weight", "folds_rmse")
    further = ("worst_level_rmse", "largest_rmse", "largest_bias", "spearman")
    fits = {name: row for name, row in forms.items() if not isinstance(row, str)}
    rows = [
        [
            name,
            *(number(fits[name][key]) for key in names),
            _apart_by(fits[name]),
            *(number(fits[name][key]) for key in further),
        ]
        for name in sorted(fits, key=lambda name: fits[name]["bic"])
    ]
    lines = drawn(FORMS, rows)
    return lines + [f"{name} not fitted: {reason}" for name, reason in forms.items() if isinstance(reason, str)]


def _apart_by(row: dict[str, Any]) -> str:
    """Difference of errors on unseen rows with its standard error; none for the fit itself."""
    return off_by(row["folds_excess"], row["folds_excess_error"]) if row["folds_excess"] else "-"


def _influence(content: dict[str, Any], drawn: Drawn) -> list[str]:
    of = "nats" if content["provenance"]["residuals"] == "loss" else "of ln loss"
    body = [
        [
            str(row["line"]),
            number(row["residual"]),
            number(row["robust_sds"]),
            number(row["leverage"]),
            number(row["cook"]),
        ]
        for row in content["influence"]
    ]
    residual = f"residual ({of})"
    return drawn((LINE, residual, "in robust sds", "leverage (of 1)", "Cook's distance"), body)


def baseline_lines(known: Mapping[str, Any], form: str, drawn: Drawn) -> list[str]:
    """A line per predictor for the folds and one for the largest fifth, then who is better by how much."""
    rows = {name: row for name, row in known["predictors"].items() if not isinstance(row, str)}
    lines = drawn(("10 random folds", *HEADER), [[name, *_cells(row["folds"])] for name, row in rows.items()])
    beyond = [[name, *_cells(row["largest"])] for name, row in rows.items() if row["largest"] is not None]
    if beyond:
        size = rows[form]["largest"]["rows"]
        lines += drawn((f"largest fifth by {known['largest_by']} ({size:,} rows)", *HEADER), beyond)
    lines += [f"{name}: {row}" for name, row in known["predictors"].items() if isinstance(row, str)]
    if known["logarithms"]:
        lines.append(f"the logarithms are those of {', '.join(map(in_words, known['logarithms']))}")
    lines += [f"{form} loses to the {_loss(each)}" for each in known["better"]]
    return lines if known["better"] else [*lines, f"{form} is shown to lose to none of them"]


def _cells(row: Mapping[str, Any]) -> list[str]:
    order = "-" if row["order"] is None else f"{row['order']['right']:.1%} of {row['order']['pairs']:,}"
    below = "-" if row["excess"] is None else off_by(row["excess"], row["excess_error"])
    return [number(row["rmse"]), below, order]


def _loss(each: Mapping[str, Any]) -> str:
    return (
        f"{each['baseline']} on {each['rows']} by {each['excess']:.2g} ± {each['excess_error']:.1g} nats "
        f"(RMSE {number(each['fit_rmse'])} nats against {number(each['rmse'])} nats)"
    )


def lost(known: Mapping[str, Any], form: str) -> str:
    """To which baseline the form loses most on the folds and on the largest rows, by how much."""
    most: dict[str, Mapping[str, Any]] = {}
    for each in known["better"]:
        if each["rows"] not in most or each["rmse"] < most[each["rows"]]["rmse"]:
            most[each["rows"]] = each
    return f"on unseen rows {form} loses to the {', and to the '.join(_loss(most[rows]) for rows in sorted(most))}"


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


def number(value: float | None) -> str:
    """Four significant digits; unknown is a dash."""
    return "-" if value is None or not math.isfinite(value) else f"{value:.4g}"


def off_by(value: float, error: float | None) -> str:
    """A difference with its standard error; unknown, as of one family of rows, is a dash."""
    return f"{value:+.2g} ± " + ("-" if error is None or not math.isfinite(error) else f"{error:.1g}")


def span(ends: Sequence[float]) -> str:
    """An interval; unknown is a dash."""
    return "-" if not math.isfinite(ends[0]) else f"{ends[0]:.4g} … {ends[1]:.4g}"
