"""The verdict on a fit, in a few lines before everything else: rows, coefficients, forms, shape, picks, what to train next; that on a prior with own rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from nas.fit.frontier_check import cannot_disagree
from nas.fit.prior_report import SURPRISING
from nas.fit.text import lost
from nas.terminal.doors import command

FEW = 4  # rows below which shape is the prior's
MISFIT = 3.0  # residual sds over the prior's from which the form is doubted
MANY = 0.25  # share of surprising rows from which the prior is doubted


def prior_verdict(content: Mapping[str, Any], tokens: float | None = None) -> list[str]:
    """Lines of the verdict, the summary first; `tokens`: as they were said beside the table."""
    assumed = content["data"]["assumed_tokens"] if tokens is None else None
    doubts = [
        *(["the tokens"] if assumed else []),
        *(["the unit of the losses"] if content["data"]["unit"] else []),
        *(["whether rows and prior agree"] if _strange(content) else []),
        *(["few rows"] if content["data"]["rows"] < FEW else []),
    ]
    word, picks = picks_judged(content["frontier"], content["residual_sd"]["posterior"])
    doubts += [word] if word else []
    summary = f"Not settled by these rows: {', '.join(doubts)}." if doubts else "Usable for picks inside the range."
    unit = content["data"]["unit"]
    taken = f"so every row is taken as trained on {assumed:.3g}; --tokens N says on how many" if assumed else ""
    first = [f"tokens: the table has none, {taken}"] if taken else []
    rest = [*_prior_rows(content), *_surprise(content), _shrunk(content), picks]
    return [summary, *first, *([unit] if unit else []), *rest]


def _strange(content: Mapping[str, Any]) -> bool:
    """Whether many rows surprise the prior, or its form leaves much more than the prior's residual sd."""
    off = np.abs(content["rows"]["surprise"]) > SURPRISING
    sd = content["residual_sd"]
    return bool(off.mean() > MANY or sd["posterior"] > MISFIT * sd["prior"])


def _prior_rows(content: Mapping[str, Any]) -> list[str]:
    rows = content["data"]["rows"]
    if rows >= FEW:
        return []
    moved = "the level alone" if rows == 1 else "level and slopes"
    return [f"rows: {rows} of {FEW} at least: {moved} moved, the rest is {content['prior']}'s; train {FEW - rows} more"]


def _surprise(content: Mapping[str, Any]) -> list[str]:
    rows, sd = content["rows"], content["residual_sd"]
    off = [str(line) for line, each in zip(rows["line"], rows["surprise"], strict=True) if abs(each) > SURPRISING]
    which = f"line {off[0]} lies" if len(off) == 1 else f"lines {', '.join(off)} lie"
    said = [f"surprise: {which} beyond {SURPRISING:g} sds of what the prior expected"] if off else []
    if sd["posterior"] > MISFIT * sd["prior"]:
        said.append(
            f"residuals: an sd of {sd['posterior']:.2g} nats where the prior's laboratories have {sd['prior']:.2g}: "
            "look for another recipe, unit or count of parameters among the rows, or tell recipes apart by a column group"
        )
    return said


def _shrunk(content: Mapping[str, Any]) -> str:
    known, regret = content["differences"], content["expected_regret"]
    line = f"differences: 90 % intervals are {known['posterior'] / known['prior']:.2f} as wide as the prior's"
    if regret is None:
        return line
    return f"{line}; the picks' expected regret is {regret['posterior']:.2g} nats (under the prior alone {regret['prior']:.2g})"


SETTLED = 0.75  # share of the evidence above which a form counts as told from the others: BIC lower by 2 (Kass and Raftery 1995)
SHOWN = 0.02
STAYS = 0.9  # share of the draws in which a pick that stays counts as safe
PER_COEFFICIENT = 2  # designs below which a fit is called thin


def verdict(content: Mapping[str, Any], runs: str) -> list[str]:
    """Lines of the verdict, the summary first."""
    parts = [_unit, _sweep, _mixture, _tokens, _rows, _coefficients, _forms, _baselines, _shape, _picks]
    said = [found for part in parts if (found := part(content)) is not None]
    doubts = [word for word, _ in said if word]
    summary = (
        f"Not settled by these rows: {', '.join(doubts)}." if doubts else "Usable for picks inside the fitted range."
    )
    return [summary, *(line for _, line in said), _next(content, runs)]


def _unit(content: Mapping[str, Any]) -> tuple[str, str] | None:
    unit = content["data"]["unit"]
    return None if unit is None else ("the unit of the losses", unit)


def _sweep(content: Mapping[str, Any]) -> tuple[str, str] | None:
    sweep = content["data"]["sweep"]
    return None if sweep is None else ("which runs of a sweep to fit", sweep)


def _mixture(content: Mapping[str, Any]) -> tuple[str, str] | None:
    mixture = content["data"]["mixture"]
    return None if mixture is None else ("rows of several kinds", mixture)


def _tokens(content: Mapping[str, Any]) -> tuple[str, str] | None:
    tokens = content["data"]["tokens"]
    return None if tokens is None else ("the tokens", tokens)


def _rows(content: Mapping[str, Any]) -> tuple[str, str] | None:
    """Whether there are enough designs to judge the errors."""
    designs, p = content["data"]["designs"], len(content["determined"])
    if designs >= PER_COEFFICIENT * p:
        return None
    return (
        "few rows",
        f"rows: {designs} designs for {p} coefficients leave {designs - p} to judge errors by: intervals, R² and forms below mean "
        f"little; train {PER_COEFFICIENT * p - designs} more at least, or choose a smaller form",
    )


def _coefficients(content: Mapping[str, Any]) -> tuple[str, str]:
    """Which coefficients are two standard errors from zero."""
    sure = [name for name, known in content["determined"].items() if known]
    unsure = [name for name, known in content["determined"].items() if not known]
    if not unsure:
        return "", f"coefficients: all {len(sure)} are determined (two standard errors or more)"
    return "coefficients", f"coefficients: determined {', '.join(sure) or 'none'}; not determined {', '.join(unsure)}"


def _forms(content: Mapping[str, Any]) -> tuple[str, str]:
    """Which forms share the evidence."""
    fits = {name: row for name, row in content["forms"].items() if not isinstance(row, str)}
    order = sorted(fits, key=lambda name: -fits[name]["weight"])
    shared = ", ".join(f"{name} {fits[name]['weight']:.2f}" for name in order if fits[name]["weight"] >= SHOWN)
    best, own = order[0], content["form"]
    if (other := better_form(content)) is not None:
        return "the form", f"forms: BIC speaks for others than {own} ({shared}): fit with --form {other}"
    if fits[best]["weight"] >= SETTLED:
        return "", f"forms: BIC selects {best} (weight {fits[best]['weight']:.2f} of 1)"
    return "the form", f"forms: not distinguished by BIC (weights {shared}); the draws hold each by its weight"


def better_form(content: Mapping[str, Any]) -> str | None:
    """The form that BIC speaks for where the fit's own has next to no weight, else None."""
    weights = {name: row["weight"] for name, row in content.get("forms", {}).items() if not isinstance(row, str)}
    return max(weights, key=weights.__getitem__) if weights and weights[content["form"]] < SHOWN else None


def _baselines(content: Mapping[str, Any]) -> tuple[str, str]:
    """Whether a predictor without a law is better on unseen rows."""
    known = content["baselines"]
    if known["better"]:
        return "the form against simple baselines", f"baselines: {lost(known, content['form'])}"
    tried = [name for name, row in known["predictors"].items() if not isinstance(row, str) and name != content["form"]]
    if not tried:
        return "", "baselines: none can be had of these rows"
    return "", f"baselines: on unseen rows the form is shown to be worse than none of {', '.join(tried)}"


def _shape(content: Mapping[str, Any]) -> tuple[str, str]:
    """The lack-of-fit test, with what it could have seen."""
    shape = content["lack_of_fit"]
    if shape is None:
        return "the shape of the residuals", "shape: too few rows to ask whether the form is wrong"
    if shape["rejected"]:
        return (
            "the shape of the residuals",
            f"shape: the form is wrong somewhere (lack of fit, p {shape['p_value']:.2g}); predict no further than the rows reach",
        )
    return (
        "",
        f"shape: no misfit seen; one of {shape['visible']:.2g} nats (RMS) would be four times of five, a smaller one may be there",
    )


def _picks(content: Mapping[str, Any]) -> tuple[str, str]:
    return picks_judged(content["frontier"], content["quality"]["residual_sd"])


def picks_judged(known: Mapping[str, Any], sd: float) -> tuple[str, str]:
    """Whether a search's picks stay under the draws, and whether they lie where models were trained; `sd` of residuals, nats."""
    if "reason" in known:
        return "", f"picks: {known['reason']}"
    outside = max(known["outside"].values(), default=0.0)
    beyond = f"{outside:.0%} of the frontier lie outside the fitted range"
    if known["alike"]:
        return "the picks", f"picks: {cannot_disagree(known)}" + (f"; {beyond}" if outside else "")
    if outside > STAYS:
        return "the picks", f"picks: {beyond}, where all draws extrapolate by one form; their agreement is no evidence"
    same = [pick["same"] for pick in known["picks"]]
    lost = max(pick["regret_high"] for pick in known["picks"])
    line = (
        f"picks: at {len(same)} budgets of {known['study']} {min(same):.0%} to {max(same):.0%} of the draws agree; "
        f"a pick loses at most {lost:.2g} nats (95 %), the residual sd is {sd:.2g} nats"
    )
    line += f"; {beyond}" if outside else ""
    safe = (min(same) >= STAYS or lost <= sd) and outside <= 1 - STAYS
    return ("" if safe else "the picks"), line


def _next(content: Mapping[str, Any], runs: str) -> str:
    """How much the next models would bring."""
    repeats = "" if content["data"]["replicates"] else ", two of one design among them: noise is unknown so far"
    plan = content["next_shrink"]
    if not plan:
        return f"next: {command('fit')} {runs} --next N plans what to train{repeats}"
    return f"next: {plan['models']} models of --next {plan['models']} make standard errors {plan['shrink']:.2f} of what they are{repeats}"
