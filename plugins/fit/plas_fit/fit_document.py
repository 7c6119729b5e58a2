"""A fit as a document, from the content of its report.json: the verdict, then what it rests on; that of own rows on a prior as well."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nas.document.document import Cell, Document, Part, Section, Table, table_of
from nas.problem.wording import in_words, named
from plas_fit.frontier_check import cannot_disagree
from plas_fit.verdict import SURPRISING, lost_to, narrowed

Content = Mapping[str, Any]
VERDICT = "Verdict"
FOLDED = ("Forms under the same validation (errors in nats)", "Provenance")
LINE = "line of the table"  # head of a column that says which row of the user's table
FORMS = (
    *("form", "coefficients", "R²", "BIC", "weight", "RMSE, folds", "above this fit's"),
    *("RMSE, worst level", "RMSE, largest fifth", "bias, largest fifth", "Spearman"),
)
BEFORE = ("coefficients", "r2", "bic", "weight", "folds_rmse")  # figures left and right of the difference to this fit's
AFTER = ("worst_level_rmse", "largest_rmse", "largest_bias", "spearman")
COEFFICIENTS = ("coefficient", "value", "standard error", "linear theory", "bootstrap", "what it is")
INFLUENCE = ("residual", "robust_sds", "leverage", "cook")


def fit_document(content: Content) -> Document:
    """The document of a fit, or of a fit on a prior."""
    rows, title, parts = content["data"]["rows"], "Fit of {form} to {rows:,} trainings", _fit_parts
    if "prior" in content:
        title, parts = "{rows:,} own trainings on {prior}", _prior_parts
    sections = [Section(VERDICT, tuple(content["verdict"]))]
    sections += [Section(head, tuple(of), folded=head in FOLDED) for head, of in parts(content).items()]
    if "next_said" in content:
        sections.append(designs_section(content["next_said"]))
    shown = tuple(section for section in sections if section.parts)
    return Document(title.format(**{**content, "rows": rows}), shown, content)


def designs_section(plan: Content) -> Section:
    """The designs to train."""
    return Section(plan["title"], (table_of(plan["header"], plan["rows"], notes=plan["notes"]),))


def _fit_parts(content: Content) -> dict[str, Iterable[Part]]:
    """What stands in a fit, by the titles of its sections."""
    unit = "nats" if content["adds_up_to"] == "loss" else "of ln loss"  # of what the terms add up to
    return {
        "Data": _data(content["data"]),
        "Coefficients (95 % intervals; an exponent has no unit)": _coefficients(content, unit),
        "Kinds of layers (nats where all layers are of the kind)": _kinds(content.get("kinds")),
        f"Terms ({unit})": _terms(content["terms"]),
        "What the data cannot tell": _limits(content),
        "Quality": _quality(content["quality"]),
        "Rows not seen by the fit": _validation(content["validation"], content["beyond_rows"]),
        "Simple baselines on the same unseen rows": _baselines(content["baselines"], content["form"]),
        "Forms under the same validation (errors in nats)": _forms(content["forms"]),
        "Do the picks hold": _frontier(content["frontier"]),
        "Rows that matter most": [_influence(content)],
        "Provenance": _provenance(content["provenance"]),
    }


def _prior_parts(content: Content) -> dict[str, Iterable[Part]]:
    """What stands in a fit on a prior, by the titles of its sections."""
    return {
        "Data": _own_data(content["data"]),
        f"What {content['prior']} said and what it says with your rows (90 % intervals)": _coordinates(content),
        "Differences of two designs": _differences(content["differences"]),
        "Rows": _surprising_rows(content["rows"]),
        "Do the picks hold": _frontier(content["frontier"]),
        "Provenance": _provenance(content["provenance"]),
    }


def _data(data: Content) -> Iterator[Part]:
    yield f"{data['rows']:,} rows of {data['designs']:,} designs."
    yield from data["notes"]
    yield _quantities(data["quantities"])
    for a, b, r in data["correlations"]:
        yield f"{in_words(a)} and {in_words(b)} move together in this table: correlation {r:.2f} of logarithms."
    if (noise := data["replicates"]) is None:
        yield "No design was trained twice: noise and the best possible R² are unknown."
        return
    yield f"Replicates: {noise['designs']} designs, sd {number(noise['sd'])} nats on {noise['freedom']} degrees of freedom."
    yield f"With such noise the right law has R² near {noise['ceiling_r2']:.5f}."


def _own_data(data: Content) -> Iterator[Part]:
    yield f"{data['rows']:,} rows."
    yield from data["notes"]
    yield _quantities(data["quantities"])
    if data["missing"]:
        yield f"Your table has no {', '.join(data['missing'])}; the prior is used there."
    if data["assumed_tokens"] is not None:
        taken = f"all rows are taken as trained on {data['assumed_tokens']:.3g}"
        yield f"Your table has no tokens: {taken}; --tokens says on how many."
    if data["small"]:
        least = "1e7 parameters or 1e8 tokens"
        yield f"{data['small']} rows are below {least}, where no published row was fitted: the form extrapolates to them."
    if len(data["groups"]) > 1:
        levels = ", ".join(f"{g['name'] or '(none)'} {g['loss']:.3f} nats ({g['rows']} rows)" for g in data["groups"])
        yield f"Loss at 1e9 parameters and 1e10 tokens by group: {levels}. The law predicts for {data['main'] or '(none)'}."


def _quantities(ends: Content) -> Table:
    """What the rows differ in."""
    rows = [(named(name), q["low"], q["high"], q["levels"]) for name, q in ends.items()]
    return table_of(("quantity", "from", "to", "different values"), rows)


def _coefficients(content: Content, unit: str) -> Iterator[Part]:
    yield content["formula"]["names"]
    of = content["coefficients"]
    sure = content["determined"]
    rows = [(name, *_estimate(c, sure.get(name, True)), _meaning(c.get("means", ""), unit)) for name, c in of.items()]
    yield table_of(COEFFICIENTS, rows)
    origin, bootstrap = content["provenance"], content["bootstrap"]
    yield f"{origin['starts_agreeing']} of {origin['starts']} starts end here; condition number {content['condition']:.3g}."
    if checked := bootstrap["restarts_checked"]:
        better = checked - bootstrap["restarts_agreeing"]
        yield f"{bootstrap['draws']} resamplings, each fitted from here. Of {checked} also fitted from scratch, {better} found something better."


def _estimate(c: Content, determined: bool) -> tuple[Cell, ...]:
    """Value, standard error and both intervals of an estimate."""
    error = ["fixed"] if c.get("fixed") else _figures(c, ["standard_error"]) if determined else ["not determined"]
    return c["value"], *error, span(c["linear"]), span(c["bootstrap"])


def _meaning(means: str, of: str) -> str:
    """`size of the term sparsity (nats)`, `exponent of FFN ratio`."""
    return f"{means} ({of})" if means.startswith("size") else in_words(means)


def _kinds(kinds: Content | None) -> Iterator[Part]:
    """A row per kind, and what these deltas do not hold."""
    if not kinds:
        return
    deltas = kinds["deltas"]
    header = ("kind", "rows", "share of layers", "delta (nats)", "standard error (nats)", *COEFFICIENTS[3:5])
    rows = [
        (kind, d["rows"], f"{d['least']:.2g} to {d['most']:.2g}", *_estimate(d, d["determined"]))
        for kind, d in deltas.items()
    ]
    yield table_of(header, rows)
    if weak := [kind for kind, d in deltas.items() if not d["determined"]]:
        yield f"Not determined (below two standard errors): {', '.join(weak)}."
    if kinds["unseen"]:
        yield f"No row has layers of {', '.join(kinds['unseen'])}: to this law they cost nothing."
    if lengths := [f"{window:,.0f}" for window in kinds["windows"]]:
        yield f"Windows of {', '.join(lengths)} tokens count as one kind: their length costs nothing here."
    yield "A delta is in proportion to the layers of its kind, at every size, wherever in the model they stand."


def _terms(terms: Content) -> Iterator[Part]:
    keys = ("at_reference", "standard_error", "low", "high")
    rows = [(name, *_figures(term, keys)) for name, term in terms.items() if name != "reference_design"]
    yield table_of(("term", "at the reference", "standard error", "least", "most"), rows)
    reference = [f"{in_words(name)} {value:,.4g}" for name, value in terms["reference_design"].items()]
    yield f"Reference design: {', '.join(reference)}."


def _limits(content: Content) -> Iterator[str]:
    """What cannot be told of coefficients and form."""
    yield from content["identifiability"]
    for a, b, r in content["alike"]:
        yield f"{a} and {b} are estimated together: correlation {r:.4f}."
    if (shape := content["lack_of_fit"]) is None:
        yield "Lack of fit: too few rows to test it."
        return
    pattern = "The form does not fit: residuals have a shape" if shape["rejected"] else "No systematic error found"
    yield f"Lack of fit: F {shape['f']:.3g} on {shape['terms']} and {shape['freedom']} degrees of freedom, p {shape['p_value']:.2g}."
    yield f"{pattern}. One of {number(shape['visible'])} nats (RMS) would have been found four times out of five."


def _quality(q: Content) -> Iterator[str]:
    errors = f"RMSE {number(q['rmse'])} nats, mean absolute error {number(q['mae'])} nats, largest {number(q['largest'])} nats"
    yield f"On the rows that it was fitted to: R² {q['r2']:.5f}, {errors}."
    sds = f"{number(q['residual_sd'])} nats, robust {number(q['robust_sd'])} nats"
    yield f"Residual standard deviation {sds}; AIC {q['aic']:.1f}, BIC {q['bic']:.1f}."


def _validation(errors: Content, beyond: Content | None) -> Iterator[Part]:
    """Errors on rows left out, and how well the law's samples cover what lies outside of the rows."""
    of = {"10 random folds": errors["folds"]}
    of |= {f"each value of {in_words(name)} left out": level for name, level in errors["levels"].items()}
    of |= {f"largest fifth by {errors['largest_by']}": errors["largest"]} if errors["largest"] else {}
    rows = [(name, e["rmse"], f"{e['bias']:+.4f}", e["rows"]) for name, e in of.items()]
    yield table_of(("left out", "RMSE (nats)", "bias (nats)", "rows"), rows)
    yield f"Ranks of unseen rows: Spearman {errors['spearman']:.3f}, Kendall {errors['kendall']:.3f}."
    if (near := errors["near_frontier"]) is not None:
        yield f"Near the lowest loss for its size: {near['right']:.0%} of {near['pairs']:,} pairs in the right order."
    if beyond is None:
        yield "How wide intervals must be outside the rows is unknown: too few rows are left without the largest."
        return
    largest = f"the largest fifth by {beyond['by']} ({beyond['rows']:,} rows) predicted from the rest"
    yield f"Outside the rows: the 90 % intervals hold {beyond['covered']:.0%} of {largest}."
    yield f"There loss@q and intervals are made {beyond['factor']:.2g} times as wide."


def _baselines(baselines: Content, form: str) -> Iterator[Part]:
    """A table of the folds and one of the largest fifth, a row per predictor, then which is better by how much."""
    rows = {name: row for name, row in baselines["predictors"].items() if not isinstance(row, str)}
    yield _compared("10 random folds", {name: row["folds"] for name, row in rows.items()})
    if beyond := {name: row["largest"] for name, row in rows.items() if row["largest"] is not None}:
        yield _compared(f"largest fifth by {baselines['largest_by']} ({beyond[form]['rows']:,} rows)", beyond)
    yield from (f"{name}: {row}" for name, row in baselines["predictors"].items() if isinstance(row, str))
    if baselines["logarithms"]:
        yield f"The logarithms are those of {', '.join(map(in_words, baselines['logarithms']))}."
    lost = [f"{form} loses to the {lost_to(better)}." for better in baselines["better"]]
    yield from lost or [f"{form} is shown to lose to none of them."]


def _compared(head: str, errors: Mapping[str, Content]) -> Table:
    rows = []
    for name, e in errors.items():
        order = "-" if e["order"] is None else f"{e['order']['right']:.1%} of {e['order']['pairs']:,}"
        rows.append((name, e["rmse"], _off_by(e["excess"], e["excess_error"]), order))
    return table_of((head, "RMSE (nats)", "below this form's (nats)", "pairs in order"), rows)


def _forms(forms: Content) -> Iterator[Part]:
    fits = {name: row for name, row in forms.items() if not isinstance(row, str)}
    rows = [
        (
            name,
            *_figures(row, BEFORE),
            _off_by(row["folds_excess"] or None, row["folds_excess_error"]),
            *_figures(row, AFTER),
        )
        for name, row in sorted(fits.items(), key=lambda fit: fit[1]["bic"])
    ]
    yield table_of(FORMS, rows)
    yield from (f"{name} not fitted: {reason}" for name, reason in forms.items() if isinstance(reason, str))


def _frontier(check: Content | None) -> Iterator[Part]:
    """The picks of a study, how many samples of the law share them, and what they lose under the others."""
    if check is None or "reason" in check:
        yield from [] if check is None else [f"{check['reason']}."]
        return
    members = f"{check['study']}: {check['members']:,} designs on the frontier of {', '.join(check['objectives'])}"
    picks = [(f"{check['budget']} <= {pick['limit']:.4g}", pick) for pick in check["picks"]]
    if check["alike"]:
        yield f"{members}; {cannot_disagree(check)}."
        yield table_of(("budget", "the only answer of this form"), [(limit, pick["pick"]) for limit, pick in picks])
    else:
        same = check["jaccard"]
        shared = f"share {same['mean']:.2f} with it (Jaccard, {same['low']:.2f} to {same['high']:.2f})"
        yield f"{members}; {check['draws']} samples of the law {shared}."
        yield table_of(
            ("budget", "samples that agree", "mean regret (nats)", "95 % below (nats)", "architecture"),
            [(limit, f"{p['same']:.0%}", p["regret"], p["regret_high"], p["pick"]) for limit, p in picks],
        )
    if check["blind"]:
        yield f"The law does not see {', '.join(map(in_words, check['blind']))}: on these axes the cheapest was taken."
    if ends := [f"{in_words(name)} {share:.0%}" for name, share in check["boundary"].items() if share > 0]:
        yield f"At an end of an axis: {', '.join(ends)} of the frontier."
    outside = [f"{' with '.join(map(in_words, name.split()))} {share:.0%}" for name, share in check["outside"].items()]
    yield f"Outside the fitted range: {', '.join(outside) or 'none'} of the frontier."


def _influence(content: Content) -> Table:
    """Rows of the user's table, which the page can show."""
    of = "nats" if content["provenance"]["residuals"] == "loss" else "of ln loss"
    header = (LINE, f"residual ({of})", "in robust sds", "leverage (of 1)", "Cook's distance")
    rows = [(str(row["line"]), *_figures(row, INFLUENCE)) for row in content["influence"]]
    places = {line: place for place, line in enumerate(content["rows"]["line"])}
    return replace(table_of(header, rows), indices=tuple(places.get(row["line"]) for row in content["influence"]))


def _provenance(origin: Content) -> Iterator[str]:
    yield from (f"{each['rows']} rows of {each['name']}, SHA-256 {each['sha256']}" for each in origin["tables"])
    if (prior := origin.get("prior")) is not None:
        of = "" if "rows" not in prior else f", of {prior['rows']:,} rows"
        yield f"prior: {prior['name']}{of}, SHA-256 {prior['sha256']}"
    yield from (f"{name}: {value}" for name, value in origin.items() if name not in ("tables", "prior", "verdict"))


def _coordinates(content: Content) -> Iterator[Part]:
    rows = [
        (f"{c['what']} ({name})", _interval(c["prior"]), _interval(c["posterior"]), f"{c['sd_ratio']:.2f}")
        for name, c in content["coordinates"].items()
    ]
    yield table_of(("what (its letter)", "prior", "with your rows", "of its sd"), rows)
    sd = content["residual_sd"]
    yield f"A design is off the law by an sd of {sd['posterior']:.2g} nats (prior {sd['prior']:.2g} nats)."
    ranges = [
        f"{in_words(name)} {' to '.join(map(number, ends['now']))} (was {' to '.join(map(number, ends['prior']))})"
        for name, ends in content["range"].items()
    ]
    widened = f", widened to your rows: {', '.join(ranges)}" if ranges else "; your rows lie inside"
    alone = f" It holds for {' and '.join(kinds)} designs alone." if (kinds := content.get("kinds")) else ""
    yield f"Range: the prior's{widened}.{alone}"


def _interval(estimate: Mapping[str, float]) -> str:
    places = 3 if abs(estimate["value"]) >= 1.0 else 2
    value, low, high = (f"{estimate[key]:.{places}g}" for key in ("value", "low", "high"))
    return f"{value} ({low} … {high})"


def _differences(widths: Content) -> Iterator[str]:
    more = ", ".join(f"{width:.3g} nats with {count} more" for count, width in widths["further"].items())
    pairs = f"{widths['pairs']} random pairs of the {widths['space']} space on {widths['tokens']:.3g} tokens"
    now = f"{widths['posterior']:.3g} nats now ({narrowed(widths):.2f} of it)"
    yield f"Median width of 90 % intervals, {pairs}: {widths['prior']:.3g} nats under the prior, {now}."
    yield f"Expected: {more}, of random designs of that space. --next N chooses better ones."


def _surprising_rows(rows: Content) -> Iterator[Part]:
    names = rows["name"] or [""] * len(rows["line"])
    keys = ("observed", "prior", "surprise", "predicted", "off")
    every = zip(map(str, rows["line"]), names, *(rows[key] for key in keys), strict=True)
    off = [
        (line, name, seen, before, f"{surprise:+.1f}", now, f"{sds:+.1f}")
        for line, name, seen, before, surprise, now, sds in every
        if max(abs(surprise), abs(sds)) > SURPRISING
    ]
    if not off:
        yield f"No row lies beyond {SURPRISING:g} sds of what the prior expected, or of what the law says now."
        return
    header = (LINE, "name", "loss (nats)", "prior (nats)", "off by (sds)", "now (nats)", "off by now (sds)")
    yield table_of(header, off)
    yield "The prior's is beside the median of your rows: levels are found from them."


def _figures(row: Content, keys: Sequence[str]) -> list[Cell]:
    """Figures of a table; one that is unknown is a dash there."""
    return [math.nan if row[key] is None else row[key] for key in keys]


def number(value: float | None) -> str:
    """Four significant digits; unknown is a dash."""
    return "-" if value is None or not math.isfinite(value) else f"{value:.4g}"


def _off_by(value: float | None, error: float | None) -> str:
    """A difference with its standard error; unknown, as of one family of rows, is a dash."""
    return (
        "-"
        if value is None
        else f"{value:+.2g} ± " + ("-" if error is None or not math.isfinite(error) else f"{error:.1g}")
    )


def span(ends: Sequence[float]) -> str:
    """An interval; unknown is a dash."""
    return "-" if not math.isfinite(ends[0]) else f"{ends[0]:.4g} … {ends[1]:.4g}"
