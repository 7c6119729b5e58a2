"""The work of `fit --prior`: own rows update a law that published trainings gave; without rows, what to train first under it."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from nas.errors import UsageError
from nas.fit.command import WorkedOut, asked_of, concluded, deliver, deliver_first, first_asked, rows_of, study_of
from nas.fit.frontier_check import frontier_check, under_draws
from nas.fit.meaning import law_name, refuse_early, table_of, tokens_of
from nas.fit.next_designs import Asked, proposed
from nas.fit.prior_report import Own, prior_report
from nas.fit.request import FitRequest
from nas.fit.verdict import prior_verdict
from nas.fit.worth import expected_regret
from nas.study.catalogue import load_law
from nas.terminal.console import Stages
from objectives.evidence.joint_form import FORM, trainings
from objectives.evidence.posterior import Belief, own_law, posterior, prior_of
from objectives.fitting.portability import doubt
from objectives.fitting.robust import diverged, without_diverged
from objectives.fitting.trained_models import Table
from objectives.loss_law.law import Law, tables_seen

KIND = "fit_on_prior"
EXCLUDED = ("form", "kv", "fix", "delta", "starts", "bootstraps", "law")  # how a form is fitted without a prior


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
        UsageError: an option that a prior excludes, or a law that is none.
    """
    for field in fields(FitRequest):
        if field.name in EXCLUDED and getattr(request, field.name) != field.default:
            raise UsageError(
                f"{field.name}: expected none with --prior, which has form and method; leave one of them out"
            )
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
    law = own_law(given, found.belief, own.table, law_name(request), tokens, own.main_group)
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
    return concluded(request, law, content, judged, plan, prior_verdict)


def own_rows(request: FitRequest, given: Law, prior: Belief) -> Own:
    """The rows asked for and what they make of the prior.

    Raises:
        ValueError: a table that cannot be used.
    """
    paths = [table_of(path) for path in request.runs]
    table = rows_of(request, single=True)
    if "tokens" in table.empty:  # which are not taken from the prior where some rows say theirs
        raise ValueError(table.empty["tokens"])
    _refuse_seen(given, paths, table)
    if table.kinds:
        raise ValueError(
            f"runs: expected rows of full attention with --prior, got layers of {', '.join(table.kinds)}; leave them out with --where"
        )
    groups = table.beside.get("group", np.full(len(table), "", dtype=object))
    told = table if table.has("tokens") else _on(table, given.stated_tokens)
    rows = trainings("own", "own", told, groups)
    found = posterior(prior, rows, table.weight)
    residuals = rows.loss / rows.per - found.fitted
    if (out := diverged(residuals)).any():
        table, rows, groups = without_diverged(table, residuals), rows[np.flatnonzero(~out)], groups[~out]
        found = posterior(prior, rows, table.weight)
    return Own(table, rows, np.unique(groups), prior, found)


def _refuse_seen(given: Law, paths: Sequence[Path], table: Table) -> None:
    for path, source in zip(paths, table.sources, strict=True):
        if source.sha256 in tables_seen(given):
            raise ValueError(
                f"{path}: expected rows that {given.name} has not seen, got a table that it was fitted on; "
                "name new rows, or the prior before it with all of them"
            )


def _on(table: Table, tokens: float) -> Table:
    """A table without tokens, as if trained on so many."""
    numbers = {**table.numbers, "tokens": np.full(len(table), tokens)}
    return Table(numbers, table.lines, table.notes, table.sources, names=table.names)
