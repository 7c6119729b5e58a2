"""The work of `fit`: a table in, a law file, a report and designs out."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nas.answer.carried_study import carried, write_with_study
from nas.answer.past_run import study_recorded
from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import unknown
from nas.files.report_json import stamped
from nas.files.tables import write
from nas.fit.frontier_check import frontier_check, under_draws
from nas.fit.meaning import (
    delta_of,
    fixed_exponent,
    flops_of,
    form_of,
    law_name,
    max_params_of,
    named_or_own,
    refuse_early,
    repeated,
    table_of,
    tables_of,
    tokens_of,
    unit_of,
)
from nas.fit.next_designs import GOALS, PRIOR_GOALS, Asked, Proposal, designs, said_of
from nas.fit.page import fit_page
from nas.fit.request import FitRequest
from nas.fit.text import aligned, headed, terminal
from nas.fit.text import planned as plan_lines
from nas.fit.verdict import better_form, verdict
from nas.fit.worth import STOP, worth
from nas.pages.page import write_page
from nas.search.assembly import Study, assemble
from nas.study.catalogue import load_law
from nas.study.layers import layered, of_ones_own
from nas.terminal.console import Stages, notice, say, say_json
from nas.terminal.screen_text import TITLE, Styled, rows
from objectives.fitting.design import assumed_by, known_by
from objectives.fitting.estimate import Fit, Method, fitted
from objectives.fitting.intervals import intervals
from objectives.fitting.law_file import beyond_rows, law_of
from objectives.fitting.model import needed
from objectives.fitting.portability import doubt
from objectives.fitting.report import report
from objectives.fitting.robust import without_diverged
from objectives.fitting.several_tables import read_tables
from objectives.fitting.trained_models import Table
from objectives.fitting.validation import Validation, rivals
from objectives.loss_law.form import Form, named_form
from objectives.loss_law.law import Law
from objectives.plugins import importable

RIVAL_STARTS = 8


def execute(request: FitRequest) -> None:
    """Fit, show and write; without a table, the first designs to train.

    Raises:
        UsageError: a table, form or option that cannot be used.
    """
    refuse_early(request)
    given, asked = load_law(request.law), asked_of(request)
    study_of(request, given)  # a fault of the study is said before the fit
    if not request.runs:
        _first_designs(request, given, asked)
        return
    done = worked_out(request, given, asked)
    content = stamped("fit", done.content | {"table": tables_of(request), "command": repeated(request)})
    _write(request, done, content)
    show(request, content, terminal)
    write_proposal(request, asked, done.planned, content)
    say_next(request, done.law, content)


@dataclass(frozen=True, eq=False)
class WorkedOut:
    """A fit with all that is said of it: the law, the report, the designs asked for, the study they are about."""

    law: Law
    content: dict[str, Any]
    fit: Fit
    planned: Proposal | None
    study: Study


def worked_out(request: FitRequest, given: Law, asked: Asked | None) -> WorkedOut:
    """Fit the tables asked for, and everything that follows.

    Raises:
        UsageError: a table, form or option that cannot be used.
    """
    stage = Stages(quiet=request.quiet)
    try:
        name, form, fit = fit_of(request, stage)
        table = fit.table
        stage(f"{request.bootstraps:,} resamplings")
        known = intervals(fit, request.bootstraps, np.random.default_rng(request.seed))
        others = rivals_of(fit, stage)
        fits = {each: found[0] for each, found in others.items() if not isinstance(found, str)}
        own, tokens = named_or_own(name, form), tokens_of(request, table, form)
        beyond = beyond_rows(fit, request.seed)
        law = on_vocabulary(law_of(fit, known, law_name(request), own, tokens, fits, beyond), table)
    except ValueError as error:
        raise UsageError(str(error)) from None
    study = study_of(request, law)
    planned = None if asked is None else designs_after(asked, study, law, fit)
    content = report(fit, known, others, given, beyond, stage)
    content["data"]["unit"] = None if request.loss_unit else doubt(table, given)
    stage("the frontier under the draws")
    judged = under_draws(study, law)
    content["frontier"] = frontier_check(judged)
    content["next_shrink"] = next_shrink(fit, study, law, planned)
    content |= {} if asked is None or planned is None else proposal_content(asked, planned, study)
    content["worth"] = None if planned is None else worth(judged, planned.trainings, request.stop_below, request.seed)
    refuse_undecided(request, content["worth"])
    content = {"verdict": verdict(content, shlex.join(map(str, request.runs))), **content}
    stage.close()
    origin = law.provenance | {"verdict": content["verdict"][0]}
    return WorkedOut(law.model_copy(update={"provenance": origin}), content, fit, planned, study)


def fit_of(request: FitRequest, stage: Callable[[str], None]) -> tuple[str, Form, Fit]:
    """Name, form and fit: of the form that is named, of the paper's where none is and the rows vary in all that it sees, else of that which predicts rows left out best.

    Rows whose training diverged are left out of it.

    Raises:
        ValueError: a table that cannot be used, a line a fault.
    """
    name, form, fixed = form_of(request)
    method = Method(delta_of(request.delta), request.starts, request.seed, fixed)
    own = request.form is not None or request.kv != FitRequest.kv or bool(request.fix)
    table = rows_of(request, needed(form, fixed) if form.fitted and own else ())
    stage(f"{len(table):,} rows from {request.starts} starts")

    def fit(rows: Table) -> tuple[str, Form, Fit]:
        try:
            return name, form, fitted(name, form, rows, method)
        except ValueError:
            if own:
                raise
        best, other, said = chosen_by_rows(rows, method, stage)
        return best, other, fitted(best, other, said, method)

    found = fit(table)
    kept = without_diverged(table, found[2].residuals, len(found[2].vector))
    return found if kept is table else fit(kept)


def chosen_by_rows(table: Table, method: Method, stage: Callable[[str], None]) -> tuple[str, Form, Table]:
    """The form of least error on rows left out among those that can be fitted to a table, and the table with a note that says so.

    Raises:
        ValueError: none can, with the reason of each.
    """
    shipped = {name: named_form(name) for name in importable("objectives.law_forms")}
    few = Method(method.delta, RIVAL_STARTS, method.seed, {})
    found = rivals({name: form for name, form in shipped.items() if form.fitted}, table, few, stage)
    errors = {name: each[1].folds.rmse for name, each in found.items() if not isinstance(each, str)}
    if not errors:
        raise ValueError("\n".join(f"{name}: {why}" for name, why in found.items() if isinstance(why, str)))
    best = min(errors, key=lambda name: (errors[name], name))
    said = f"form {best}: of {len(errors)} that the rows allow the one of least error on rows left out, {errors[best]:.3g} nats"
    return best, shipped[best], replace(table, notes=(*table.notes, said))


def rows_of(request: FitRequest, needs: Sequence[str] = (), *, single: bool = False) -> Table:
    """The rows of the tables asked for; `needs`: quantities of the form; `single`: one row is enough.

    Raises:
        ValueError: tables that cannot be used, a line a fault.
    """
    unit, tables = unit_of(request), [table_of(path) for path in request.runs]
    return read_tables(
        tables, request.rename, request.where, request.last, unit, request.best_of, needs=needs, single=single
    )


def refuse_undecided(request: FitRequest, known: dict[str, Any] | None) -> None:
    """A limit that nothing can be held against is no silent "go on".

    Raises:
        UsageError: the drop per FLOP is unknown.
    """
    if request.stop_below is None or known is None or known.get("decision") is not None:
        return
    reason = known.get("reason") or "unknown training tokens (give --tokens)"
    raise UsageError(
        f"stop_below: expected an expected drop of regret per FLOP, got none: {reason}; leave --stop-below out"
    )


def rivals_of(fit: Fit, stage: Callable[[str], None]) -> dict[str, tuple[Fit, Validation] | str]:
    """Every other form that a fit finds, fitted to the same rows, or why it cannot be."""
    shipped = {name: named_form(name) for name in importable("objectives.law_forms")}
    forms = {name: form for name, form in shipped.items() if form.fitted and name != fit.form_name}
    method = Method(None if not np.isinf(fit.delta) else fit.delta, RIVAL_STARTS, fit.method.seed, {})
    return rivals(forms, fit.table, method, stage)


def designs_after(asked: Asked, study: Study, law: Law, fit: Fit) -> Proposal:
    """What to train after a fit."""
    trained = fit.table.feature("tokens") if fit.table.has("tokens") else None
    return designs(asked, study, law, lambda candidates: known_by(fit), trained)


def on_vocabulary(law: Law, table: Table) -> Law:
    """A law that says the vocabulary of the tokens which its loss is per, where the table has one in all rows."""
    size = table.vocabulary
    return law if size is None else law.model_copy(update={"tokenizer_size": size})


def next_shrink(fit: Fit, study: Study, law: Law, planned: Proposal | None) -> dict[str, float]:
    """How many models to train next, as asked or as many as coefficients, and what becomes of the standard errors."""
    if planned is None:
        n = min(max(len(fit.vector), 5), study.problem.space.size)
        try:
            planned = designs_after(Asked(n, "coefficients", None, fit.method.seed), study, law, fit)
        except UsageError:
            return {}
    return {"models": len(planned.plan.rows), "shrink": planned.plan.shrink}


def _first_designs(request: FitRequest, given: Law, asked: Asked | None) -> None:
    """What to train before there is a table, under a law given beforehand."""
    asked = first_asked(request, asked)
    fixed = dict(fixed_exponent(pair) for pair in request.fix)
    if "alpha_m" in given.law_form.exponents and request.kv != "free":
        fixed = {"alpha_m": given.coefficients["alpha_m"], **fixed}
    if request.tokens is not None:
        given = given.model_copy(update={"tokens": request.tokens})
    study = study_of(request, given)
    planned = designs(asked, study, given, lambda candidates: assumed_by(given, fixed, candidates))
    found = proposal_content(asked, planned, study, first=True)
    show_first(request, found)
    write_proposal(request, asked, planned, found)
    unknown_coefficients = len(given.law_form.coefficients) - len(fixed)
    if asked.n <= unknown_coefficients and not request.quiet:
        notice(
            f"{asked.n} models cannot determine this law's {unknown_coefficients} coefficients; plan {2 * unknown_coefficients} or more"
        )


def asked_of(request: FitRequest) -> Asked | None:
    """What is asked about the models to train next; None where nothing is.

    Raises:
        UsageError: an unknown goal, or a limit that is none.
    """
    if request.next is None:
        return None
    goals = GOALS if request.prior is None else PRIOR_GOALS
    goal = goals[0] if request.goal is None else request.goal
    if goal not in goals:
        raise UsageError(f"goal: {unknown('a goal', goal, goals)}")
    return Asked(request.next, goal, request.candidates, request.seed, flops_of(request), max_params_of(request))


def study_of(request: FitRequest, law: Law) -> Study:
    """The study whose space, frontier and picks the designs and the check are about, under the law: that of --config, else the one whose candidates the table trained, else a device as it is for what is the user's own, else the paper's."""
    open_study = request.config is None and request.space is None and request.runs
    if open_study and (trained := carried(table_of(request.runs[0]))) is not None:
        return study_recorded(trained.resolved, {"law": law.mapping(), "baselines": []}, [])
    own = bool(request.runs) or request.prior is not None or of_ones_own(request.space) or of_ones_own(request.law)
    flags = {
        "law": law.mapping(),
        "baselines": [],
        "algo": "random",
        **({} if request.space is None else {"space": request.space}),
        **({"preset": "device", "outside": "allow"} if own and request.config is None else {}),
        **(
            {"vocabulary": law.tokenizer_size}
            if own and request.config is None and request.runs and law.tokenizer_size
            else {}
        ),
        **({} if request.prior is None else {"outside": "mark"}),  # picks of what prior and rows cover
    }
    return assemble(*layered(flags, [], request.config))


def proposal_content(asked: Asked, planned: Proposal, study: Study, *, first: bool = False) -> dict[str, Any]:
    """The designs as columns, and what is said of them."""
    law = study.problem.scenario.law
    noise = law.implied_residual_sd if law.residual_sd is None else law.residual_sd
    return {
        "next": {name: column.tolist() for name, column in planned.columns.items()},
        "next_said": said_of(asked, planned, study, noise, first=first),
    }


def write_proposal(request: FitRequest, asked: Asked | None, planned: Proposal | None, content: dict[str, Any]) -> None:
    """The designs as a candidate file, unless the loop is to stop."""
    if asked is None or planned is None or asked.out is None:
        return
    if stops(content):
        said = f"{asked.out} is not written: nothing is left that is worth training"
    else:
        write_with_study(asked.out, planned.columns, planned.study)
        said = f"{asked.n} candidates written to {asked.out}"
    if not request.quiet:
        notice(said)


def stops(content: dict[str, Any]) -> bool:
    """Whether the limit that was asked for says to train no more."""
    return bool(content.get("worth")) and content["worth"].get("decision") == STOP


def first_asked(request: FitRequest, asked: Asked | None) -> Asked:
    """The designs asked for without a table.

    Raises:
        UsageError: none are, or a flag that needs a table.
    """
    if asked is None:
        raise UsageError(
            "runs: expected a CSV of trained models, got none; name one, or ask for the first designs with --next N"
        )
    for flag in ("out", "report", "stop_below"):
        if getattr(request, flag) is not None:
            raise UsageError(f"{flag}: expected a CSV of trained models with it, got none; name one or leave it out")
    return asked


def show_first(request: FitRequest, found: dict[str, Any]) -> None:
    """Print the designs proposed without a table."""
    if request.json:
        say_json({"next": found["next"]})
    else:
        for line in headed(plan_lines(found["next_said"], aligned)):
            say(line)


def show(request: FitRequest, content: dict[str, Any], lines: Callable[[dict[str, Any]], Iterable[str]]) -> None:
    """Print a fit: its content as JSON, or the lines of it."""
    if request.json:
        say_json(content)
        return
    shown = list(lines(content))
    for line in shown:
        say(line)
    if (screen := rows()) is not None and len(shown) >= screen:
        say()
        say(Styled("Verdict", TITLE), f", its reasons at the top: {content['verdict'][0]}")


def say_next(request: FitRequest, law: Law, content: dict[str, Any]) -> None:
    """Say what to type next."""
    if not request.quiet:
        for line in next_lines(request, law, content):
            notice(line)


def write_law(request: FitRequest, law: Law, command: str) -> None:
    """Write the law that a command fitted, where a file is named."""
    if request.out is not None:
        write(request.out, f"# Fitted by {command}.\n" + yaml_source.dump(law.mapping()))
        if not request.quiet:
            notice(f"law written to {request.out}")


def _write(request: FitRequest, done: WorkedOut, content: dict[str, Any]) -> None:
    write_law(request, done.law, "plas fit")
    if request.report is not None:
        from nas.fit.files import write_report

        write_report(request.report, content, done.fit)
        page = write_page(request.report, "fit", fit_page)
        if not request.quiet:
            notice(f"report written to {request.report}/ (report.json, report.md, plots/); {page} opens in a browser")


def next_lines(request: FitRequest, law: Law, content: dict[str, Any]) -> list[str]:
    """What to type next, as it can be pasted: another form where it explains the rows better, train what was proposed and fit again, or search with the law."""
    asked = [("--config", request.config), ("--space", request.space)]
    asked += [("--preset", "device")] if request.config is None else []
    same = [text for flag, value in asked if value is not None for text in (flag, value)]
    better = better_form(content)
    lines = [] if better is None else [f"the same again with --form {better}, for which BIC speaks"]
    if request.candidates is not None and not stops(content):
        tokens = [] if law.tokens is None else ["--tokens", f"{law.tokens:g}"]
        lines.append(
            shlex.join(["plas", "train", str(request.candidates), *tokens, "--out", "trained", "--data", "YOUR_TEXT"])
        )
    if request.out is not None:
        lines.append(shlex.join(["plas", "run", "--algo", "exact", "--law", str(request.out), *same]))
    return [f"{'Next:' if number == 0 else '     '} {line}" for number, line in enumerate(lines)]
