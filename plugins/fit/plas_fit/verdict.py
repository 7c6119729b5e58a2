"""The verdict on a fit: how good the law is, whether its picks can be relied on, what to do next; then the reasons, a line each."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from plas_fit.fitting.robust import MOST_NATS, MOST_SCALES
from plas_fit.frontier_check import cannot_disagree

Content = Mapping[str, Any]
SETTLED = 0.75  # share of the evidence above which a form counts as told from the others: BIC lower by 2 (Kass and Raftery 1995)
SHOWN = 0.02
STAYS = 0.9  # share of the law's samples in which a pick that stays counts as safe
PER_COEFFICIENT = 2  # designs below which a fit is called thin
FEW = 4  # rows below which shape is the prior's
MISFIT = 3.0  # residual sds over the prior's from which the form is doubted
MANY = 0.25  # share of surprising rows from which the prior is doubted
SURPRISING = 3.0  # sds
OF_TABLE = (
    ("unit", "the losses may be in another unit", "say the unit with --loss-unit."),
    ("sweep", "the rows are a sweep", "choose the runs of the sweep with --best-of."),
    ("mixture", "the rows are of several kinds", "keep the rows of one kind with --where."),
    ("tokens", "the rows differ in tokens", "keep one count of tokens with --where, or fit a form with tokens."),
)  # what a report says of a table, why that is a doubt, what to do
ON_PRIOR = "Or let --prior evidence say what these rows do not."
NAMED = 5  # surprising rows that the verdict names


class Check(NamedTuple):
    """One look at a fit: why its picks are doubted ("" where they are not), the reason, and what to do about it."""

    doubt: str
    reason: str
    action: str = ""


def verdict(content: Content) -> list[str]:
    """Lines of the verdict: the law and its use, what to do next, the reasons."""
    parts = [_table, _rows, _coefficients, _forms, _baselines, _shape]
    checks = [check for part in parts for check in part(content)]
    checks.append(picks_judged(content["frontier"], content["quality"]["residual_sd"]))
    error = content["validation"]["folds"]["rmse"]
    law = f"{content['form']} fits {content['data']['rows']:,} rows and is off by {error:.2g} nats (RMSE) on rows that it has not seen."
    shrink = content["next_shrink"]
    effect = f", which makes standard errors {shrink['shrink']:.2f} of what they are" if shrink else ""
    plan = f"train the models that --next {shrink.get('models', 'N')} proposes{effect}."
    plan += "" if content["data"]["replicates"] else " Train one design twice: the noise is unknown so far."
    said = _concluded(law, checks, plan)
    return said if all(content["determined"].values()) else [said[0], f"{said[1]} {ON_PRIOR}", *said[2:]]


def prior_verdict(content: Content) -> list[str]:
    """Lines of the verdict on a prior with own rows."""
    rows, sd, prior = content["data"]["rows"], content["residual_sd"]["posterior"], content["prior"]
    checks = [*_assumed(content), *_table(content), *_surprises(content), _widths(content)]
    if rows < FEW:
        moved = "the level alone" if rows == 1 else "level and slopes"
        reason = f"Rows: {rows} of {FEW} at least. They moved {moved}; the rest is {prior}'s."
        checks.append(Check("too few rows", reason, f"train {FEW - rows} more models."))
    checks.append(picks_judged(content["frontier"], sd))
    more, width = next(iter(content["differences"]["further"].items()))
    now = content["differences"]["posterior"]
    law = f"{prior}, updated by {rows:,} of your rows, knows the difference of two designs to ±{now / 2:.2g} nats (90 %, median)."
    plan = f"train {more} more models; even random ones make intervals of differences {width:.2g} nats wide ({now:.2g} now), --next {more} chooses better ones."
    if "next" in content:
        plan = f"train the {len(content['next']['id'])} models proposed below."
    return _concluded(law, checks, plan)


def _assumed(content: Content) -> list[Check]:
    """That the table does not say on how many tokens its models were trained."""
    tokens = content["data"].get("assumed_tokens")
    reason = f"Tokens: the table has none, so every row is taken as trained on {tokens:.3g}." if tokens else ""
    return (
        [Check("the tokens are assumed", reason, "say with --tokens N on how many tokens the models were trained.")]
        if tokens
        else []
    )


def _concluded(law: str, checks: Sequence[Check], plan: str) -> list[str]:
    doubts = "; ".join(check.doubt for check in checks if check.doubt)
    use = f"Do not rely on its picks yet: {doubts}." if doubts else "Its picks can be relied on in the fitted range."
    action = next((check.action for check in checks if check.action), "")
    reasons = [check.reason for check in checks]
    return [f"{law} {use}", f"Next: {action or plan}", *reasons, *([f"After that: {plan}"] if action else [])]


def _table(content: Content) -> list[Check]:
    """What the table itself leaves open."""
    noted = [(content["data"].get(name), doubt, action) for name, doubt, action in OF_TABLE]
    return [Check(doubt, reason, action) for reason, doubt, action in noted if reason is not None]


def _rows(content: Content) -> list[Check]:
    """Whether there are enough designs to judge the errors."""
    designs, p = content["data"]["designs"], len(content["determined"])
    if designs >= PER_COEFFICIENT * p:
        return []
    few = f"Rows: {designs} designs for {p} coefficients leave {designs - p} to judge errors by."
    action = f"train {PER_COEFFICIENT * p - designs} more designs at least, or choose a smaller form."
    return [Check("too few rows", f"{few} Intervals, R² and forms below mean little.", action)]


def _coefficients(content: Content) -> list[Check]:
    """Which coefficients are two standard errors from zero."""
    sure = [name for name, determined in content["determined"].items() if determined]
    unsure = [name for name, determined in content["determined"].items() if not determined]
    if not unsure:
        return [Check("", f"Coefficients: all {len(sure)} are determined (two standard errors or more).")]
    doubt = f"{len(unsure)} of {len(sure) + len(unsure)} coefficients are not determined"
    return [Check(doubt, f"Coefficients: determined {', '.join(sure) or 'none'}; not determined {', '.join(unsure)}.")]


def _forms(content: Content) -> list[Check]:
    """Which forms share the evidence."""
    fits = {name: row for name, row in content["forms"].items() if not isinstance(row, str)}
    order = sorted(fits, key=lambda name: -fits[name]["weight"])
    shared = ", ".join(f"{name} {fits[name]['weight']:.2f}" for name in order if fits[name]["weight"] >= SHOWN)
    if (other := better_form(content)) is not None:
        reason = f"Forms: BIC prefers others to {content['form']} (weights {shared})."
        return [Check("another form fits better", reason, f"fit again with --form {other}.")]
    if fits[order[0]]["weight"] >= SETTLED:
        return [Check("", f"Forms: BIC selects {order[0]} (weight {fits[order[0]]['weight']:.2f} of 1).")]
    reason = f"Forms: BIC does not decide (weights {shared}). The law's samples hold each form by its weight."
    return [Check("several forms fit as well", reason)]


def better_form(content: Content) -> str | None:
    """The form that BIC speaks for where the fit's own has next to no weight, else None."""
    weights = {name: row["weight"] for name, row in content.get("forms", {}).items() if not isinstance(row, str)}
    return max(weights, key=weights.__getitem__) if weights and weights[content["form"]] < SHOWN else None


def lost_to(better: Content) -> str:
    """A baseline that is better, on which rows, by how much."""
    by = f"{better['excess']:.2g} ± {better['excess_error']:.1g} nats"
    errors = f"RMSE {better['fit_rmse']:.4g} nats against {better['rmse']:.4g} nats"
    return f"{better['baseline']} on {better['rows']} by {by} ({errors})"


def _baselines(content: Content) -> list[Check]:
    """Whether a predictor without a law is better on unseen rows; of those on the same rows the best."""
    baselines, form = content["baselines"], content["form"]
    if baselines["better"]:
        worst = {better["rows"]: better for better in sorted(baselines["better"], key=lambda row: -row["rmse"])}
        losses = ", and to the ".join(lost_to(worst[rows]) for rows in sorted(worst))
        return [Check("a simple rule is better", f"Baselines: on unseen rows {form} loses to the {losses}.")]
    tried = [name for name, row in baselines["predictors"].items() if not isinstance(row, str) and name != form]
    better = f"none is shown to be better on unseen rows ({', '.join(tried)})" if tried else "none fits these rows"
    return [Check("", f"Baselines: {better}.")]


def _shape(content: Content) -> list[Check]:
    """The lack-of-fit test, with what it could have seen."""
    if (shape := content["lack_of_fit"]) is None:
        return [Check("too few rows to test the form", "Shape: too few rows to ask whether the form is wrong.")]
    if shape["rejected"]:
        reason = f"Shape: the form is wrong somewhere (lack of fit, p {shape['p_value']:.2g}). Predict no further than the rows reach."
        return [Check("the errors are systematic", reason)]
    size = f"{shape['visible']:.2g} nats (RMS)"
    return [Check("", f"Shape: no systematic error found. One of {size} would have been found four times out of five.")]


def picks_judged(check: Content, sd: float) -> Check:
    """Whether a search's picks stay under the law's samples, and lie where models were trained; `sd` of residuals, nats."""
    if "reason" in check:
        return Check("how sure its picks are is unknown", f"Picks: {check['reason']}.")
    outside = max(check["outside"].values(), default=0.0)
    beyond = f"{outside:.0%} of the frontier lie outside the fitted range"
    if check["alike"]:
        also = f"; {beyond}" if outside else ""
        return Check("this form can give one answer only", f"Picks: {cannot_disagree(check)}{also}.")
    if outside > STAYS:
        return Check(beyond, f"Picks: {beyond}. All samples extrapolate there by one form: agreement is no evidence.")
    same = [pick["same"] for pick in check["picks"]]
    regret = max(pick["regret_high"] for pick in check["picks"])
    agree = f"{min(same):.0%} to {max(same):.0%} of the law's samples agree"
    loses = f"A pick loses at most {regret:.2g} nats (95 %); the residual sd is {sd:.2g} nats."
    reason = f"Picks: at {len(same)} budgets of {check['study']} {agree}. {loses}" + (f" {beyond}." if outside else "")
    if min(same) < STAYS and regret > sd:
        return Check("too few rows to say which design is best", reason)
    return Check(beyond if outside > 1 - STAYS else "", reason)


def _surprises(content: Content) -> list[Check]:
    """Rows that the prior did not expect, and residuals that are wider than its laboratories'."""
    rows, sd = content["rows"], content["residual_sd"]
    surprise, loss = np.array(rows["surprise"]), np.array(rows["observed"])
    off, wide = np.abs(surprise) > SURPRISING, sd["posterior"] > MISFIT * sd["prior"]
    doubt, checks = "your rows and the prior disagree" if off.mean() > MANY or wide else "", []
    if off.any():
        places = np.flatnonzero(off)
        lines = ", ".join(f"line {rows['line'][i]} (loss {loss[i]:.4g}) by {surprise[i]:+.3g}" for i in places[:NAMED])
        more = f" and {len(places) - NAMED} more" if len(places) > NAMED else ""
        reason = f"Surprise: {lines}{more} standard deviations off what the prior expected."
        above = loss[off] - np.array(rows["prior"])[off]
        diverged = bool(((surprise[off] > MOST_SCALES) & (above > MOST_NATS)).all() and not off.all())
        limit = _between(loss[~off].max(), loss[off].min()) if diverged else ""
        action = f"leave out what has diverged: --where 'loss<{limit}'." if limit else ""
        doubt = doubt or ("a training has probably diverged" if limit else "")
        checks.append(Check(doubt, reason + (" That has probably diverged." if limit else ""), action))
    if wide:
        reason = (
            f"Residuals: sd {sd['posterior']:.2g} nats, where the prior's laboratories have {sd['prior']:.2g} nats."
        )
        action = "look for another recipe, unit or count of parameters, or name recipes in a column group."
        checks.append(Check("" if checks else doubt, reason, action))
    return checks


def _between(low: float, high: float) -> str:
    """A short number between two; "" where the first is not below the second."""
    texts = (f"{(low + high) / 2:.{digits}g}" for digits in (1, 2, 4))
    return next((text for text in texts if low < float(text) < high), "")


def narrowed(widths: Content) -> float:
    """The width of differences now over that under the prior; 1 where designs do not differ."""
    ratio: float = widths["posterior"] / widths["prior"] if widths["prior"] else 1.0
    return ratio


def _widths(content: Content) -> Check:
    """How much narrower the rows make differences, and the picks' expected regret."""
    widths, regret = content["differences"], content["expected_regret"]
    ratio = narrowed(widths)
    moved = f"narrow the intervals to {ratio:.0%}" if ratio <= 1 else f"widen the intervals to {ratio:,.3g} times"
    reason = f"Differences: your rows {moved} of what published data give."
    if regret is not None:
        reason += f" A pick is on average {regret['posterior']:.2g} nats worse than the best design ({regret['prior']:.2g} without your rows)."
    return Check("with your rows the law is less certain than without" if ratio > 1 else "", reason)
