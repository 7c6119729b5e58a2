"""The work of `fit --prior`: own rows update a law that published trainings gave; without rows, what to train first under it."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.files.own_files import made_folder
from nas.files.report_json import stamped
from nas.files.tables import write, write_json
from nas.fit.command import (
    asked_of,
    first_asked,
    on_vocabulary,
    proposal_content,
    refuse_undecided,
    rows_of,
    say_next,
    show,
    show_first,
    study_of,
    write_law,
    write_proposal,
)
from nas.fit.frontier_check import frontier_check, under_draws
from nas.fit.meaning import law_name, refuse_early, repeated, table_of, tables_of, tokens_of
from nas.fit.next_designs import Asked, Proposal, proposed
from nas.fit.page import prior_page
from nas.fit.prior_report import Own, prior_report
from nas.fit.prior_text import prior_markdown, prior_terminal
from nas.fit.request import FitRequest
from nas.fit.verdict import prior_verdict
from nas.fit.worth import expected_regret, worth
from nas.pages.page import write_page
from nas.search.assembly import Study
from nas.study.catalogue import load_law
from nas.terminal.console import Stages, notice
from objectives.evidence.joint_form import FORM, trainings
from objectives.evidence.posterior import Belief, own_law, posterior, prior_of
from objectives.fitting.kept_rows import offered
from objectives.fitting.portability import doubt
from objectives.fitting.robust import diverged, without_diverged
from objectives.fitting.trained_models import Table, lacking
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
    if not request.runs:
        _first_designs(request, given, belief, asked)
        return
    done = worked_out(request, asked)
    content = stamped(KIND, done.content | {"table": tables_of(request), "command": repeated(request)})
    _write(request, done.law, content)
    show(request, content, prior_terminal)
    write_proposal(request, asked, done.planned, content)
    say_next(request, done.law, content)


@dataclass(frozen=True, eq=False)
class Updated:
    """A prior with own rows: the law, the report, the designs asked for."""

    law: Law
    content: dict[str, Any]
    planned: Proposal | None


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


def worked_out(request: FitRequest, asked: Asked | None = None) -> Updated:
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
    stage("the frontier under the draws")
    judged = under_draws(study, law)
    same = given.model_copy(update={"tokens": tokens})
    before = under_draws(study_of(request, same), same)
    content = prior_report(own, given, law, study, request.seed)
    content["data"]["unit"] = None if request.loss_unit else doubt(own.table, given)
    content["frontier"] = frontier_check(judged)
    content["expected_regret"] = None if isinstance(judged, str) or isinstance(before, str) else {
        "prior": expected_regret(before), "posterior": expected_regret(judged)
    }  # fmt: skip
    plan = None if asked is None else proposed(asked, study, law, found.belief, judged, _trained(own.table))
    content |= {} if asked is None or plan is None else _next(asked, plan, study)
    content["worth"] = None if plan is None else worth(judged, plan.trainings, request.stop_below, request.seed)
    refuse_undecided(request, content["worth"])
    content = {"verdict": prior_verdict(content, tokens=request.tokens), **content}
    stage.close()
    origin = law.provenance | {"verdict": content["verdict"][0]}
    return Updated(law.model_copy(update={"provenance": origin}), content, plan)


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


def _trained(table: Table) -> Any:
    return table.feature("tokens") if table.has("tokens") else None


def _next(asked: Asked, plan: Proposal, study: Study, *, first: bool = False) -> dict[str, Any]:
    """The designs as columns, and what is said of them: what is left of the doubt about the picks."""
    found = proposal_content(asked, plan, study, first=first)
    left = plan.plan.shrink
    found["next_said"]["title"] = (
        f"Train {'first' if first else 'next'}: {asked.n} of the {study.problem.space.name} space; "
        f"of the variance of what the picks' regret is about, {left:.2f} is left"
    )
    return found


def _first_designs(request: FitRequest, given: Law, belief: Belief, asked: Asked | None) -> None:
    """What to train under the prior alone."""
    asked = first_asked(request, asked)
    study = study_of(request, given)
    plan = proposed(asked, study, given, belief, under_draws(study, given), None)
    found = _next(asked, plan, study, first=True)
    show_first(request, found)
    write_proposal(request, asked, plan, found)


def _write(request: FitRequest, law: Law, content: dict[str, Any]) -> None:
    """The law file and the report."""
    write_law(request, law, shlex.join(["plas", "fit", "--prior", str(request.prior)]))
    if request.report is not None:
        folder = made_folder(request.report)
        write_json(folder / "report.json", content)
        write(folder / "report.md", prior_markdown(content))
        page = write_page(folder, KIND, prior_page)
        if not request.quiet:
            notice(f"report written to {folder}/ (report.json, report.md); {page} opens in a browser")
