"""The work of `fit`: a table in, a law file, a report and designs out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from nas import yaml_source
from nas.assemble import Study, assemble
from nas.candidates import write_candidates
from nas.console import Stages, notice, say, say_json
from nas.errors import UsageError
from nas.faults import Faults, unknown
from nas.fit_text import terminal
from nas.frontier_check import frontier_check
from nas.layers import layered
from nas.named import load_law
from nas.next_designs import GOALS, Asked, designs, show
from nas.tables import write
from objectives.fitting.design import Plan, assumed_by, known_by
from objectives.fitting.fit import Fit, Method, fitted
from objectives.fitting.intervals import intervals
from objectives.fitting.law_file import law_of
from objectives.fitting.report import report
from objectives.fitting.table import Table, read_table
from objectives.form import Form
from objectives.law import Law, named_form
from objectives.plugins import importable
from search_spaces.arrays import AnyArray

KV = {"log": "hw_codesign_log_kv", "fixed": "hw_codesign", "free": "hw_codesign"}
PAPER_KV_EXPONENT = 0.05


@dataclass(frozen=True)
class Request:
    """What `fit` was asked for."""

    runs: Path | None
    form: str
    out: Path | None
    report: Path | None
    rename: tuple[str, ...]
    where: tuple[str, ...]
    tokens: float | None
    kv: str
    fix: tuple[str, ...]
    delta: str
    starts: int
    bootstraps: int
    seed: int
    law: str
    config: str | None
    space: str | None
    next: int | None
    goal: str
    candidates: Path | None
    quiet: bool
    json: bool


def execute(request: Request) -> None:
    """Fit, show and write; without a table, the first designs to train.

    Raises:
        UsageError: a table, form or option that cannot be used.
    """
    if request.out is not None and request.out.suffix not in (".yaml", ".yml"):
        raise UsageError(f"out: expected a .yaml file, got {request.out}; change its ending")
    given, asked = load_law(request.law), _asked(request)
    study_of(request, given)  # a fault of the study is said before the fit
    if request.runs is None:
        _first_designs(request, given, asked)
        return
    name, form, fixed = form_of(request)
    method = Method(_delta(request.delta), request.starts, request.seed, fixed)
    stage = Stages(quiet=request.quiet)
    try:
        table = read_table(request.runs, request.rename, request.where)
        stage(f"{len(table):,} rows from {request.starts} starts")
        fit = fitted(name, form, table, method)
        stage(f"{request.bootstraps:,} resamplings")
        known = intervals(fit, request.bootstraps, np.random.default_rng(request.seed))
        law = law_of(fit, known, _law_name(request), _named(name, form), _tokens(request, table, form))
    except ValueError as error:
        raise UsageError(str(error)) from None
    study = study_of(request, law)
    planned = None if asked is None else designs(asked, study, law, lambda candidates: known_by(fit))
    forms = {each: named_form(each) for each in importable("objectives.law_forms")}
    content = report(fit, known, forms, given, stage)
    stage("the frontier under the draws")
    content["frontier"] = frontier_check(study, law)
    stage.close()
    _write(request, law, content, fit)
    if not request.json:
        for line in terminal(content):
            say(line)
    _show(request, asked, planned, study, content)


def _first_designs(request: Request, given: Law, asked: Asked | None) -> None:
    """What to train before there is a table, under a law given beforehand."""
    if asked is None:
        raise UsageError(
            "runs: expected a CSV of trained models, got none; name one, or ask for the first designs with --next N"
        )
    for flag, value in (("out", request.out), ("report", request.report)):
        if value is not None:
            raise UsageError(f"{flag}: expected a CSV of trained models with it, got none; name one or leave it out")
    fixed = dict(_fixed(pair) for pair in request.fix)
    if "alpha_m" in given.law_form.exponents and request.kv != "free":
        fixed = {"alpha_m": given.coefficients["alpha_m"], **fixed}
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
        if request.candidates is not None:
            raise UsageError(
                f"candidates: expected --next N with it, got {request.candidates} alone; say how many to train"
            )
        return None
    if request.goal not in GOALS:
        raise UsageError(f"goal: {unknown('a goal', request.goal, GOALS)}")
    return Asked(request.next, request.goal, request.candidates, request.seed)


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
        show(columns, asked, study.problem.space.name, planned[1], first=first)
    if asked.out is not None:
        write_candidates(asked.out, columns)
        if not request.quiet:
            notice(f"{asked.n} candidates written to {asked.out}")


def form_of(request: Request) -> tuple[str, Form, dict[str, float]]:
    """Name, form and fixed exponents; the KV term's treatment decides the form of the paper's law."""
    fixed = dict(_fixed(pair) for pair in request.fix)
    if request.kv not in KV:
        raise UsageError(f"kv: {unknown('a treatment', request.kv, KV)}")
    name = request.form
    if name == "hw_codesign":
        name = name if "alpha_m" in fixed else KV[request.kv]
        fixed = {"alpha_m": PAPER_KV_EXPONENT, **fixed} if request.kv == "fixed" else fixed
    if name in importable("objectives.law_forms"):
        return name, named_form(name), fixed
    if Path(name).suffix not in (".yaml", ".yml"):
        raise UsageError(f"form: {unknown('a form', name, importable('objectives.law_forms'))}, or give a YAML file")
    return Path(name).stem, read_form(Path(name)), fixed


def read_form(path: Path) -> Form:
    """A user's form from YAML.

    Raises:
        UsageError: every fault with its line.
    """
    content, origins = yaml_source.read(path)
    try:
        return Form.model_validate(content)
    except ValidationError as error:
        faults = Faults(origins)
        faults.add_validation(error, model=Form)
        faults.raise_if_any()
        raise


def _fixed(pair: str) -> tuple[str, float]:
    name, _, value = pair.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise UsageError(f"fix: expected NAME=VALUE with a number, got {pair!r}; write alpha_m=0.05")
    return name.strip(), number


def _delta(text: str) -> float | None:
    if text in ("auto", "none"):
        return None if text == "auto" else float("inf")
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value > 0:
        raise UsageError(f"delta: expected auto, none or a positive number, got {text!r}; choose one")
    return value


def _named(name: str, form: Form) -> str | Form:
    """A shipped form by its name, a user's embedded."""
    return name if name in importable("objectives.law_forms") else form


def _law_name(request: Request) -> str:
    return (request.out or request.runs or Path("law")).stem


def _tokens(request: Request, table: Table, form: Form) -> float | None:
    """Tokens the law predicts for: as asked, else those of the table, the most where they vary."""
    if request.tokens is not None:
        if not 0 < request.tokens < np.inf:
            raise UsageError(f"tokens: expected a positive number, got {request.tokens:g}; write 10e9")
        return request.tokens
    if not table.has("tokens"):
        return None
    column = table.feature("tokens")
    constant = float(np.ptp(column)) <= 0.1 * float(column.min())
    if constant:
        return float(np.median(column))
    return float(column.max()) if "tokens" in form.features else None


def _write(request: Request, law: Law, content: dict[str, Any], fit: Fit) -> None:
    if request.out is not None:
        write(request.out, "# Fitted by plas fit.\n" + yaml_source.dump(law.mapping()))
        if not request.quiet:
            notice(f"law written to {request.out}; use it with --law {request.out}")
    if request.report is not None:
        from nas.fit_files import write_report

        write_report(request.report, content, fit)
        if not request.quiet:
            notice(f"report written to {request.report}/ (report.json, report.md, plots/)")
