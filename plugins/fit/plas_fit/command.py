"""The work of `fit`: a table in, a law file, a report and designs out."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nas.answer.carried_study import carried, write_with_study
from nas.answer.past_run import study_recorded
from nas.document.document import Document, markdown
from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import unknown
from nas.files.own_files import made_folder
from nas.files.report_json import stamped
from nas.files.tables import write, write_json
from nas.pages.page import write_page
from nas.search.assembly import Study, assemble
from nas.study.catalogue import load_law
from nas.study.layers import layered, of_ones_own
from nas.terminal.console import Stages, notice, say, say_json
from nas.terminal.console import write as write_lines
from nas.terminal.screen_text import TITLE, Styled, rows
from nas.terminal.tables import document_lines
from objectives.loss_law.form import Form, named_form
from objectives.loss_law.law import Law
from objectives.plugins import importable
from plas_fit import meaning
from plas_fit.fit_document import designs_section, fit_document
from plas_fit.fitting.design import assumed_by, known_by
from plas_fit.fitting.estimate import Fit, Method, fitted
from plas_fit.fitting.intervals import intervals
from plas_fit.fitting.law_file import beyond_rows, law_of
from plas_fit.fitting.model import needed
from plas_fit.fitting.portability import doubt
from plas_fit.fitting.report import report
from plas_fit.fitting.robust import without_diverged
from plas_fit.fitting.several_tables import read_tables
from plas_fit.fitting.trained_models import Table
from plas_fit.fitting.validation import rivals
from plas_fit.frontier_check import frontier_check, under_draws
from plas_fit.next_designs import GOALS, PRIOR_GOALS, Asked, Proposal, designs, plan_in_words
from plas_fit.page import fit_page
from plas_fit.request import FitRequest
from plas_fit.verdict import better_form, verdict

RIVAL_STARTS = 8
Verdict = Callable[[dict[str, Any]], list[str]]


def execute(request: FitRequest) -> None:
    """Fit, show and write; without a table, the first designs to train.

    Raises:
        UsageError: a table, form or option that cannot be used.
    """
    meaning.refuse_early(request)
    given, asked = load_law(request.law), asked_of(request)
    study_of(request, given)  # a fault of the study is said before the fit
    if request.runs:
        deliver(request, "fit", asked, worked_out(request, given, asked))
    else:
        _first_designs(request, given, asked)


@dataclass(frozen=True, eq=False)
class WorkedOut:
    """A law with the report of its fit, and the designs asked for."""

    law: Law
    content: dict[str, Any]
    planned: Proposal | None


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
        spread = intervals(fit, request.bootstraps, np.random.default_rng(request.seed))
        few = Method(None if not np.isinf(fit.delta) else fit.delta, RIVAL_STARTS, request.seed, {})
        others = rivals({rival: of for rival, of in _forms().items() if rival != name}, table, few, stage)
        fits = {rival: result[0] for rival, result in others.items() if not isinstance(result, str)}
        own, tokens = meaning.named_or_own(name, form), meaning.tokens_of(request, table, form)
        beyond = beyond_rows(fit, request.seed)
        law = on_vocabulary(law_of(fit, spread, meaning.law_name(request), own, tokens, fits, beyond), table)
    except ValueError as error:
        raise UsageError(str(error)) from None
    study = study_of(request, law)
    planned = None if asked is None else designs_after(asked, study, law, fit)
    content = report(fit, spread, others, beyond, stage)
    content["data"]["unit"] = None if request.loss_unit else doubt(table, given)
    stage("the frontier under samples of the law")
    judged = under_draws(study, law)
    content["frontier"] = frontier_check(judged)
    content["next_shrink"] = next_shrink(fit, study, law, planned)
    stage.close()
    return concluded(WorkedOut(law, content, planned), verdict)


def concluded(done: WorkedOut, verdict_of: Verdict) -> WorkedOut:
    """The same with what to train next, and the verdict, which the law holds as well."""
    content, planned = done.content, done.planned
    if planned is not None:
        content |= proposal_content(planned)
    content = {"verdict": verdict_of(content), **content}
    origin = done.law.provenance | {"verdict": content["verdict"][0]}
    return replace(done, law=done.law.model_copy(update={"provenance": origin}), content=content)


def fit_of(request: FitRequest, stage: Callable[[str], None]) -> tuple[str, Form, Fit]:
    """Name, form and fit: of the form that is named, of the paper's where none is and the rows vary in all that it sees, else of that which predicts rows left out best.

    Rows whose training diverged are left out of it.

    Raises:
        ValueError: a table that cannot be used, a line a fault.
    """
    name, form, fixed = meaning.form_of(request)
    method = Method(meaning.delta_of(request.delta), request.starts, request.seed, fixed)
    own = request.form is not None or request.kv != FitRequest.kv or bool(request.fix)
    table = rows_of(request, needed(form, fixed) if form.fitted and own else ())
    stage(f"{len(table):,} rows from {request.starts} starts")

    def fit(rows: Table) -> tuple[str, Form, Fit]:
        try:
            return name, form, fitted(name, form, rows, method)
        except ValueError:
            if own:
                raise
        best, other, noted = chosen_by_rows(rows, method, stage)
        return best, other, fitted(best, other, noted, method)

    first = fit(table)
    kept = without_diverged(table, first[2].residuals, len(first[2].vector))
    return first if kept is table else fit(kept)


def chosen_by_rows(table: Table, method: Method, stage: Callable[[str], None]) -> tuple[str, Form, Table]:
    """The form of least error on rows left out among those that can be fitted to a table, and the table with a note that says so.

    Raises:
        ValueError: none can, with the reason of each.
    """
    results = rivals(_forms(), table, Method(method.delta, RIVAL_STARTS, method.seed, {}), stage)
    errors = {name: result[1].folds.rmse for name, result in results.items() if not isinstance(result, str)}
    if not errors:
        raise ValueError("\n".join(f"{name}: {why}" for name, why in results.items()))
    best = min(errors, key=lambda name: (errors[name], name))
    note = f"form {best}: of {len(errors)} that the rows allow the one of least error on rows left out, {errors[best]:.3g} nats"
    return best, named_form(best), replace(table, notes=(*table.notes, note))


def _forms() -> dict[str, Form]:
    """Every shipped form that a fit finds."""
    forms = {name: named_form(name) for name in importable("objectives.law_forms")}
    return {name: form for name, form in forms.items() if form.fitted}


def rows_of(request: FitRequest, needs: Sequence[str] = (), *, single: bool = False) -> Table:
    """The rows of the tables asked for; `needs`: quantities of the form; `single`: one row is enough.

    Raises:
        ValueError: tables that cannot be used, a line a fault.
    """
    unit, tables = meaning.unit_of(request), [meaning.table_of(path) for path in request.runs]
    return read_tables(
        tables, request.rename, request.where, request.last, unit, request.best_of, needs=needs, single=single
    )


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
    fixed = dict(meaning.fixed_exponent(pair) for pair in request.fix)
    if "alpha_m" in given.law_form.exponents and request.kv != "free":
        fixed = {"alpha_m": given.coefficients["alpha_m"], **fixed}
    if request.tokens is not None:
        given = given.model_copy(update={"tokens": request.tokens})
    study = study_of(request, given)
    planned = designs(asked, study, given, lambda candidates: assumed_by(given, fixed, candidates))
    deliver_first(request, asked, planned)
    free = len(given.law_form.coefficients) - len(fixed)
    if asked.n <= free and not request.quiet:
        notice(f"{asked.n} models cannot determine this law's {free} coefficients; plan {2 * free} or more")


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
    limits = meaning.flops_of(request), meaning.max_params_of(request)
    return Asked(request.next, goal, request.candidates, request.seed, *limits)


def study_of(request: FitRequest, law: Law) -> Study:
    """The study whose space, frontier and picks the designs and the check are about, under the law: that of --config, else the one whose candidates the table trained, else a device as it is for what is the user's own, else the paper's."""
    open_study = request.config is None and request.space is None and request.runs
    if open_study and (trained := carried(meaning.table_of(request.runs[0]))) is not None:
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


def proposal_content(planned: Proposal, *, first: bool = False) -> dict[str, Any]:
    """The designs as columns, and in words."""
    columns = {name: column.tolist() for name, column in planned.columns.items()}
    return {"next": columns, "next_said": plan_in_words(planned, first=first)}


def write_proposal(request: FitRequest, asked: Asked | None, planned: Proposal | None) -> None:
    """The designs as a candidate file."""
    if asked is None or planned is None or asked.out is None:
        return
    write_with_study(asked.out, planned.columns, planned.study)
    if not request.quiet:
        notice(f"{asked.n} candidates written to {asked.out}")


def first_asked(request: FitRequest, asked: Asked | None) -> Asked:
    """The designs asked for without a table.

    Raises:
        UsageError: none are, or a flag that needs a table.
    """
    if asked is None:
        raise UsageError("runs: expected a CSV of trained models, got none; name one, or ask for designs with --next N")
    return asked


def deliver_first(request: FitRequest, asked: Asked, planned: Proposal) -> None:
    """Show and write the designs proposed without a table."""
    content = proposal_content(planned, first=True)
    section = designs_section(content["next_said"])
    show(request, Document(section.title, (section,), {"next": content["next"]}))
    write_proposal(request, asked, planned)


def deliver(request: FitRequest, kind: str, asked: Asked | None, done: WorkedOut) -> None:
    """Write the law and the report where they are asked for, show the fit, write the designs, and say what to type next."""
    content = stamped(kind, done.content | {"table": meaning.tables_of(request), "command": meaning.repeated(request)})
    document = fit_document(content)
    if request.out is not None:
        by = shlex.join(["plas", "fit", *([] if request.prior is None else ["--prior", request.prior])])
        write(request.out, f"# Fitted by {by}.\n" + yaml_source.dump(done.law.mapping()))
        if not request.quiet:
            notice(f"law written to {request.out}")
    if request.report is not None:
        folder = made_folder(request.report)
        write_json(folder / "report.json", content)
        write(folder / "report.md", markdown(document))
        page = write_page(folder, kind, fit_page)
        if not request.quiet:
            notice(f"report written to {folder}/ (report.json, report.md); {page} opens in a browser")
    show(request, document)
    write_proposal(request, asked, done.planned)
    for line in () if request.quiet else next_lines(request, done.law, content):
        notice(line)


def show(request: FitRequest, document: Document) -> None:
    """Print a document, or its content as JSON; a verdict that has left the screen is repeated at the end."""
    if request.json:
        say_json(document.data)
        return
    lines = document_lines(document)
    write_lines(lines)
    if (screen := rows()) is not None and len(lines) >= screen and "verdict" in document.data:
        say()
        say(Styled("Verdict", TITLE), f", its reasons at the top: {document.data['verdict'][0]}")


def next_lines(request: FitRequest, law: Law, content: dict[str, Any]) -> list[str]:
    """What to type next, as it can be pasted: another form where it explains the rows better, train what was proposed and fit again, or search with the law."""
    preset = "device" if request.config is None else None
    flags = (("--config", request.config), ("--space", request.space), ("--preset", preset))
    same = [text for flag, value in flags if value is not None for text in (flag, value)]
    better = better_form(content)
    lines = [] if better is None else [f"the same again with --form {better}, for which BIC speaks"]
    if request.candidates is not None:
        tokens = [] if law.tokens is None else ["--tokens", f"{law.tokens:g}"]
        train = ["plas", "train", str(request.candidates), *tokens, "--out", "trained", "--data", "YOUR_TEXT"]
        lines.append(shlex.join(train))
    if request.out is not None:
        lines.append(shlex.join(["plas", "run", "--algo", "exact", "--law", str(request.out), *same]))
    return [f"{'Next:' if number == 0 else '     '} {line}" for number, line in enumerate(lines)]
