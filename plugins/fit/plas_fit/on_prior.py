"""The work of `fit --prior`: own rows update a law that published trainings gave; without rows, what to train first under it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from nas.errors import UsageError
from nas.search.assembly import Study
from nas.study.catalogue import load_law
from nas.terminal.console import Stages
from objectives.loss_law.law import Law, tables_seen
from plas_fit.command import (
    WorkedOut,
    asked_of,
    concluded,
    deliver,
    deliver_first,
    first_asked,
    on_vocabulary,
    rows_of,
    study_of,
)
from plas_fit.evidence.joint_form import FORM, LEAST_ACTIVE, LEAST_TOKENS, MILLIARD, TOKENS, Trainings, trainings
from plas_fit.evidence.posterior import Belief, Posterior, named, own_law, posterior, predicted, prior_of
from plas_fit.fitting.kept_rows import offered
from plas_fit.fitting.portability import doubt
from plas_fit.fitting.robust import diverged, without_diverged
from plas_fit.fitting.trained_models import Table, lacking
from plas_fit.frontier_check import expected_regret, frontier_check, under_draws
from plas_fit.meaning import law_name, refuse_early, table_of, tokens_of
from plas_fit.next_designs import Asked, proposed, quantities, whitened
from plas_fit.request import FitRequest
from plas_fit.verdict import prior_verdict
from search_spaces.arrays import AnyArray, FloatArray

KIND = "fit_on_prior"
NORMAL = 1.645  # sds between which a normal variable lies nine times of ten
PAIRS, SETS = 200, 8
FURTHER = (4, 8, 30)
SHOWN = ("depth", "width", "kv_dim", "query_dim", "expert_ffn_ratio", "n_experts", "parameters", "active_parameters")
MISSING = {
    "aspect_ratio": "depth and width",
    "query_ratio": "attention size",
    "expert_ffn_ratio": "the size of experts or FFN",
}  # what a table may not say of shapes, by the quantity that it would give
COORDINATES: Mapping[str, tuple[str, Callable[[FloatArray], FloatArray]]] = {
    "S_N": ("a factor e of parameters, nats", np.exp),
    "a": ("how fast that falls, exponent", np.exp),
    "s": ("share of stored parameters in it, of 1", expit),
    "S_D": ("a factor e of tokens, nats", np.exp),
    "b": ("how fast that falls, exponent", np.exp),
    "kappa": ("how little tokens replace parameters, exponent", np.exp),
    "p": ("width over depth, tilt, no unit", np.positive),
    "q": ("width over depth, curvature, no unit", np.exp),
    "h_query": ("attention width, exponent", np.positive),
    "h_split": ("experts that share the FFN, exponent", np.positive),
    "loss": ("at 1e9 parameters and 1e10 tokens, nats", np.positive),
}  # in the order of the joint form's coordinates: the number that each stands for


@dataclass(frozen=True, eq=False)
class Own:
    """Own rows: their table, as the joint form reads them, the names of their groups, the prior and what it becomes."""

    table: Table
    rows: Trainings
    groups: AnyArray
    prior: Belief
    found: Posterior

    @property
    def main_group(self) -> str:
        """The group that the law predicts for; "" where all rows are one."""
        return str(self.groups[self.found.main]) if len(self.groups) > 1 else ""


def execute(request: FitRequest) -> None:
    """Update the prior, show and write; without a table, the first designs to train under it.

    Raises:
        UsageError: a prior, table or option that cannot be used.
    """
    refuse_early(request)
    given, belief, asked = *prior_asked(request), asked_of(request)
    study_of(request, given)  # a fault of the study is said before the fit
    if request.runs:
        deliver(request, KIND, asked, worked_out(request, asked))
    else:
        asked, study = first_asked(request, asked), study_of(request, given)
        deliver_first(request, asked, proposed(asked, study, given, belief, under_draws(study, given), None))


def prior_asked(request: FitRequest) -> tuple[Law, Belief]:
    """The law that is the prior, for the tokens asked for, and its draws as a normal.

    Raises:
        UsageError: a law that is none.
    """
    assert request.prior is not None
    law = load_law(request.prior)
    if request.tokens is not None:
        law = law.model_copy(update={"tokens": request.tokens})
    try:
        return law, prior_of(law)
    except ValueError as error:
        raise UsageError(str(error)) from None


def worked_out(request: FitRequest, asked: Asked | None = None) -> WorkedOut:
    """The prior with the rows of the tables asked for, and everything that follows.

    Raises:
        UsageError: a prior, table or option that cannot be used.
    """
    given, prior = prior_asked(request)
    stage = Stages(quiet=request.quiet)
    try:
        own = own_rows(request, given, prior)
    except ValueError as error:
        raise UsageError(str(error)) from None
    stage(f"{len(own.table):,} rows on {given.name}")
    found = own.found
    tokens = tokens_of(request, own.table, FORM) or given.stated_tokens
    law = on_vocabulary(own_law(given, found.belief, own.table, law_name(request), tokens, own.main_group), own.table)
    study = study_of(request, law)
    stage("the frontier under samples of the law")
    judged = under_draws(study, law)
    same = given.model_copy(update={"tokens": tokens})
    before = under_draws(study_of(request, same), same)
    content = prior_report(own, given, law, study, request.seed)
    content["data"]["unit"] = None if request.loss_unit else doubt(own.table, given)
    content["frontier"] = frontier_check(judged)
    content["expected_regret"] = None
    if not isinstance(judged, str) and not isinstance(before, str):
        content["expected_regret"] = {"prior": expected_regret(before), "posterior": expected_regret(judged)}
    trained = own.table.feature("tokens") if own.table.has("tokens") else None
    plan = None if asked is None else proposed(asked, study, law, found.belief, judged, trained)
    stage.close()
    return concluded(WorkedOut(law, content, plan), prior_verdict)


def own_rows(request: FitRequest, given: Law, prior: Belief) -> Own:
    """The rows asked for and what they make of the prior.

    Raises:
        ValueError: a table that cannot be used.
    """
    paths = [table_of(path) for path in request.runs]
    table = rows_of(request, ("parameters",), single=True)
    if lacks := lacking(table, ("parameters",)):
        raise ValueError("\n".join([*lacks, *offered(table.beside)]))
    if "tokens" in table.empty:  # which are not taken from the prior where some rows say theirs
        raise ValueError(table.empty["tokens"])
    _refuse_seen(given, paths, table)
    if table.kinds:
        kinds = ", ".join(table.kinds)
        raise ValueError(f"runs: expected rows of full attention, got layers of {kinds}; leave them out with --where")
    groups = table.beside.get("group", np.full(len(table), "", dtype=object))
    rows = trainings("own", "own", table if table.has("tokens") else _on(table, given.stated_tokens), groups)
    updated = posterior(prior, rows, table.weight)
    residuals = rows.loss / rows.per - updated.fitted
    if (out := diverged(residuals)).any():
        table, rows, groups = without_diverged(table, residuals), rows[np.flatnonzero(~out)], groups[~out]
        updated = posterior(prior, rows, table.weight)
    return Own(table, rows, np.unique(groups), prior, updated)


def _refuse_seen(given: Law, paths: Sequence[Path], table: Table) -> None:
    for path, source in zip(paths, table.sources, strict=True):
        if source.sha256 in tables_seen(given):
            unseen = f"{path}: expected rows that {given.name} has not seen"
            raise ValueError(f"{unseen}, got a table that it was fitted on; name new rows, or the prior before it")


def _on(table: Table, tokens: float) -> Table:
    """A table without tokens, as if trained on so many."""
    numbers = {**table.numbers, "tokens": np.full(len(table), tokens)}
    return Table(numbers, table.lines, table.notes, table.sources, names=table.names)


def prior_report(own: Own, given: Law, law: Law, study: Study, seed: int) -> dict[str, Any]:
    """Everything but the study's frontier."""
    after = own.found.belief.doubted
    return {
        "prior": given.name,
        "form": law.provenance["form"],
        "data": _data(own, given),
        "coordinates": _coordinates(own.prior, after),
        "differences": _differences(study, given, law, after, seed),
        "rows": _rows(own),
        "residual_sd": {"prior": own.prior.scale, "posterior": after.scale},
        "range": {
            name: {"prior": list(ends), "now": list(law.fitted_on[name])}
            for name, ends in given.fitted_on.items()
            if law.fitted_on.get(name, ends) != ends
        },
        **({"kinds": sorted(law.covers)} if {*law.covers} < {*given.covers} else {}),
        "coefficients": _coefficients(after),
        "provenance": law.provenance,
    }


def _data(own: Own, given: Law) -> dict[str, Any]:
    table, rows = own.table, own.rows
    missing = [words for name, words in MISSING.items() if not table.has(name)]
    small = (rows.of.active < LEAST_ACTIVE - MILLIARD) | (rows.of.tokens < LEAST_TOKENS - TOKENS)
    ends = {name: table.feature(name) for name in (*SHOWN, "tokens") if table.has(name)}
    return {
        "rows": len(table),
        "notes": list(table.notes),
        "missing": missing,
        "assumed_tokens": None if table.has("tokens") else given.stated_tokens,
        "small": int(small.sum()),
        "quantities": {
            name: {"low": float(column.min()), "high": float(column.max()), "levels": len(np.unique(column))}
            for name, column in ends.items()
        },
        "groups": [
            {"name": str(name), "rows": int((rows.group == i).sum()), "loss": float(own.found.at_reference[i])}
            for i, name in enumerate(own.groups)
        ],
        "main": own.main_group,
    }


def _coordinates(prior: Belief, after: Belief) -> dict[str, Any]:
    return {
        name: {"what": what, "prior": _interval(prior, i, made), "posterior": _interval(after, i, made)}
        | {"sd_ratio": float(after.sd[i] / prior.sd[i])}
        for i, (name, (what, made)) in enumerate(COORDINATES.items())
    }


def _interval(belief: Belief, place: int, made: Callable[[FloatArray], FloatArray]) -> dict[str, float]:
    """A coordinate's number at the mean and at the ends of its 90 % interval, with mean and sd of the coordinate itself."""
    mean, sd = float(belief.mean[place]), float(belief.sd[place])
    value, low, high = made(mean + np.array([0.0, -NORMAL, NORMAL]) * sd).tolist()
    return {"mean": mean, "sd": sd, "value": value, "low": low, "high": high}


def _coefficients(after: Belief) -> dict[str, Any]:
    """The law's coefficients with 90 % intervals of the draws."""
    drawn = np.array([list(named(point).values()) for point in after.drawn()])
    ends = np.quantile(drawn, (0.05, 0.95), axis=0).T.tolist()
    values = named(after.mean).items()
    return {name: {"value": value, "low": a, "high": b} for (name, value), (a, b) in zip(values, ends, strict=True)}


def _differences(study: Study, given: Law, law: Law, after: Belief, seed: int) -> dict[str, Any]:
    """Median widths of 90 % intervals of differences of random pairs of the space, before, now, and after random trainings more."""
    generator, space = np.random.default_rng(seed), study.problem.space
    drawn = space.sample(
        2 * PAIRS, generator
    )  # a small space has fewer: those of pairs, and of one design it beside itself
    designs = space.architectures(np.resize(drawn, (max(2, len(drawn) // 2 * 2), drawn.shape[1])))
    before = given.model_copy(update={"tokens": law.tokens})
    now = _width(law.drawn_losses(designs))
    slopes = whitened(after, quantities(designs, law.tokens_of(designs)))
    apart = slopes[0::2] - slopes[1::2]
    sd = float(np.median(np.linalg.norm(apart, axis=1)))

    def left(more: int) -> float:
        """Median width once so many more random designs are trained."""
        widths = [_left(slopes, apart, after.scale, more, generator) for _ in range(SETS)]
        return now * float(np.mean(widths)) / sd if sd else 0.0

    return {
        "pairs": len(apart),
        "space": space.name,
        "tokens": law.tokens,
        "prior": _width(before.drawn_losses(designs)),
        "posterior": now,
        "further": {str(more): left(more) for more in FURTHER},
    }


def _width(losses: FloatArray) -> float:
    """Median width of the draws' 90 % intervals of differences of designs side by side; losses (draws, 2 n)."""
    low, high = np.quantile(losses[:, 0::2] - losses[:, 1::2], (0.05, 0.95), axis=0)
    return float(np.median(high - low))


def _left(slopes: FloatArray, apart: FloatArray, scale: float, more: int, generator: np.random.Generator) -> float:
    """Median sd of differences once so many random designs are trained."""
    chosen = slopes[generator.choice(len(slopes), min(more, len(slopes)), replace=False)] / scale
    after = np.linalg.inv(np.eye(slopes.shape[1]) + chosen.T @ chosen)
    return float(np.median(np.sqrt(np.einsum("ni,ij,nj->n", apart, after, apart))))


def _rows(own: Own) -> dict[str, Any]:
    """Each row: its loss, what the law says now, how many sds it is off that, and off the prior beside the others of its group."""
    table, rows, found = own.table, own.rows, own.found
    expected, spread = _before(own)
    return {
        "line": table.lines.tolist(),
        "name": [] if table.names is None else table.names.tolist(),
        "group": rows.group.tolist(),
        "observed": table.loss.tolist(),
        "predicted": found.fitted.tolist(),
        "off": ((rows.loss - found.fitted) / found.belief.scale).tolist(),
        "surprise": ((rows.loss - expected) / spread).tolist(),
        "prior": expected.tolist(),
    }


def _before(own: Own) -> tuple[FloatArray, FloatArray]:
    """What the prior's draws expect of each row beside the median of its group, and with which sd, (n,) each; a row alone surprises nobody.

    Of the draws the median and half the middle 68 %: a few of them explode far from published rows.
    """
    rows, prior = own.rows, own.prior
    drawn = predicted(prior.drawn(), rows.of)
    expected, spread = np.empty(len(rows)), np.empty(len(rows))
    for group in range(len(own.groups)):
        at = np.flatnonzero(rows.group == group)
        level = np.median(rows.loss[at] - drawn[:, at], axis=1, keepdims=True)
        beside = drawn[:, at] + level
        low, expected[at], high = np.quantile(beside, (0.16, 0.5, 0.84), axis=0)
        spread[at] = np.hypot((high - low) / 2, prior.scale) if len(at) > 1 else np.inf
    return expected, spread
