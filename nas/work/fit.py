"""The work of `fit`: a table in, a law file, a report and designs out."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import unknown
from nas.files.tables import write
from nas.law_fitting.frontier_check import frontier_check
from nas.law_fitting.next_designs import GOALS, Asked, designs, show
from nas.law_fitting.request import (
    Request,
    delta_of,
    fixed_exponent,
    flops_of,
    form_of,
    law_name,
    max_params_of,
    named_or_own,
    positive,
    refuse_places,
    tokens_of,
    unit_of,
)
from nas.law_fitting.text import terminal
from nas.law_fitting.verdict import verdict
from nas.record.candidates import write_candidates
from nas.search.assembly import Study, assemble
from nas.study.catalogue import load_law
from nas.study.layers import layered
from nas.terminal.console import notice, say, say_json
from nas.terminal.progress import Stages
from objectives.fitting.design import Plan, assumed_by, known_by
from objectives.fitting.estimate import Fit, Method, fitted
from objectives.fitting.intervals import intervals
from objectives.fitting.law_file import law_of
from objectives.fitting.loss_unit import doubt
from objectives.fitting.report import report
from objectives.fitting.trained_models import read_table
from objectives.fitting.validation import Validation, rivals
from objectives.loss_law.law import Law, named_form
from objectives.plugins import importable
from search_spaces.arrays import AnyArray

RIVAL_STARTS = 8
TABLE = "trainings.csv"  # of a folder of `train`


def execute(request: Request) -> None:
    """Fit, show and write; without a table, the first designs to train.

    Raises:
        UsageError: a table, form or option that cannot be used.
    """
    refuse_places(request)
    given, asked = load_law(request.law), _asked(request)
    study_of(request, given)  # a fault of the study is said before the fit
    if request.runs is None:
        _first_designs(request, given, asked)
        return
    done = worked_out(request, request.runs, given, asked)
    _write(request, done.law, done.content, done.fit)
    if not request.json:
        for line in terminal(done.content):
            say(line)
    _show(request, asked, done.planned, done.study, done.content)


@dataclass(frozen=True, eq=False)
class WorkedOut:
    """A fit with all that is said of it: the law, the report, the designs asked for, the study they are about."""

    law: Law
    content: dict[str, Any]
    fit: Fit
    planned: tuple[dict[str, AnyArray], Plan] | None
    study: Study


def worked_out(request: Request, runs: Path, given: Law, asked: Asked | None) -> WorkedOut:
    """Fit a table, and everything that follows.

    Raises:
        UsageError: a table, form or option that cannot be used.
    """
    name, form, fixed = form_of(request)
    method = Method(delta_of(request.delta), request.starts, request.seed, fixed)
    stage = Stages(quiet=request.quiet)
    try:
        table = read_table(table_of(runs), request.rename, request.where, request.last, unit_of(request))
        stage(f"{len(table):,} rows from {request.starts} starts")
        fit = fitted(name, form, table, method)
        stage(f"{request.bootstraps:,} resamplings")
        known = intervals(fit, request.bootstraps, np.random.default_rng(request.seed))
        others = rivals_of(fit, stage)
        fits = {each: found[0] for each, found in others.items() if not isinstance(found, str)}
        own, tokens = named_or_own(name, form), tokens_of(request, table, form)
        law = law_of(fit, known, law_name(request), own, tokens, fits)
    except ValueError as error:
        raise UsageError(str(error)) from None
    study = study_of(request, law)
    planned = None if asked is None else designs(asked, study, law, lambda candidates: known_by(fit))
    content = report(fit, known, others, given, stage)
    content["data"]["unit"] = None if request.loss_unit else doubt(table, given)
    stage("the frontier under the draws")
    content["frontier"] = frontier_check(study, law)
    content["next_shrink"] = next_shrink(fit, study, law, planned)
    content = {"verdict": verdict(content, str(runs)), **content}
    stage.close()
    return WorkedOut(law, content, fit, planned, study)


def table_of(runs: Path) -> Path:
    """The table that `train` wrote, where a folder of it is given."""
    return runs / TABLE if (runs / TABLE).is_file() else runs


def rivals_of(fit: Fit, stage: Callable[[str], None]) -> dict[str, tuple[Fit, Validation] | str]:
    """Every other form fitted to the same rows, or why it cannot be."""
    forms = {name: named_form(name) for name in importable("objectives.law_forms") if name != fit.form_name}
    method = Method(None if not np.isinf(fit.delta) else fit.delta, RIVAL_STARTS, fit.method.seed, {})
    return rivals(forms, fit.table, method, stage)


def next_shrink(fit: Fit, study: Study, law: Law, planned: tuple[dict[str, AnyArray], Plan] | None) -> dict[str, float]:
    """How many models to train next, as asked or as many as coefficients, and what becomes of the standard errors."""
    if planned is None:
        n = min(max(len(fit.vector), 5), study.problem.space.size)
        try:
            planned = designs(Asked(n, "coefficients", None, fit.method.seed), study, law, lambda _: known_by(fit))
        except UsageError:
            return {}
    return {"models": len(planned[1].rows), "shrink": planned[1].shrink}


def _first_designs(request: Request, given: Law, asked: Asked | None) -> None:
    """What to train before there is a table, under a law given beforehand."""
    if asked is None:
        raise UsageError(
            "runs: expected a CSV of trained models, got none; name one, or ask for the first designs with --next N"
        )
    for flag, value in (("out", request.out), ("report", request.report)):
        if value is not None:
            raise UsageError(f"{flag}: expected a CSV of trained models with it, got none; name one or leave it out")
    fixed = dict(fixed_exponent(pair) for pair in request.fix)
    if "alpha_m" in given.law_form.exponents and request.kv != "free":
        fixed = {"alpha_m": given.coefficients["alpha_m"], **fixed}
    if request.tokens is not None:
        given = given.model_copy(update={"tokens": positive("tokens", request.tokens)})
    study = study_of(request, given)
    planned = designs(asked, study, given, lambda candidates: assumed_by(given, fixed, candidates))
    _show(request, asked, planned, study, {}, first=True)
    unknown_coefficients = len(given.law_form.coefficients) - len(fixed)
    if asked.n <= unknown_coefficients and not request.quiet:
        notice(
            f"{asked.n} models cannot determine this law's {unknown_coefficients} coefficients; plan {2 * unknown_coefficients} or more"
        )


def _asked(request: Request) -> Asked | None:
    if request.next is None:
        return None
    if request.goal not in GOALS:
        raise UsageError(f"goal: {unknown('a goal', request.goal, GOALS)}")
    return Asked(
        request.next, request.goal, request.candidates, request.seed, flops_of(request), max_params_of(request)
    )


def study_of(request: Request, law: Law) -> Study:
    """The study whose space, frontier and picks the designs and the check are about, under the law."""
    flags = {"law": law.mapping(), "baselines": [], **({} if request.space is None else {"space": request.space})}
    return assemble(*layered(flags, [], request.config))


def _show(
    request: Request,
    asked: Asked | None,
    planned: tuple[dict[str, AnyArray], Plan] | None,
    study: Study,
    content: dict[str, Any],
    *,
    first: bool = False,
) -> None:
    """The designs on the terminal or within the JSON, and as a candidate file."""
    columns = {} if planned is None else planned[0]
    if request.json:
        say_json(content | ({"next": {name: column.tolist() for name, column in columns.items()}} if columns else {}))
    if asked is None or planned is None:
        return
    if not request.json:
        law = study.problem.scenario.law
        noise = law.implied_residual_sd if law.residual_sd is None else law.residual_sd
        show(columns, asked, study, planned[1], noise, first=first)
    if asked.out is not None:
        write_candidates(asked.out, columns)
        if not request.quiet:
            notice(f"{asked.n} candidates written to {asked.out}")


def _write(request: Request, law: Law, content: dict[str, Any], fit: Fit) -> None:
    if request.out is not None:
        write(request.out, "# Fitted by plas fit.\n" + yaml_source.dump(law.mapping()))
        if not request.quiet:
            notice(f"law written to {request.out}; use it with --law {request.out}")
    if request.report is not None:
        from nas.law_fitting.files import write_report

        write_report(request.report, content, fit)
        if not request.quiet:
            notice(f"report written to {request.report}/ (report.json, report.md, plots/)")
