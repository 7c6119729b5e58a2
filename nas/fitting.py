"""The work of `fit`: a table in, a law file, a report and designs out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from nas import yaml_source
from nas.candidates import write_candidates
from nas.console import notice, say, say_json
from nas.errors import UsageError
from nas.faults import Faults, unknown
from nas.fit_text import terminal
from nas.next_designs import Asked, designs, show
from nas.tables import write
from objectives.fitting.fit import Fit, Method, fitted
from objectives.fitting.intervals import intervals
from objectives.fitting.law_file import law_of
from objectives.fitting.report import report
from objectives.fitting.table import Table, read_table
from objectives.form import Form
from objectives.law import Law, named_form
from objectives.plugins import importable

KV = {"log": "hw_codesign_log_kv", "fixed": "hw_codesign", "free": "hw_codesign"}
PAPER_KV_EXPONENT = 0.05


@dataclass(frozen=True)
class Request:
    """What `fit` was asked for."""

    runs: Path
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
    next: int | None
    space: str
    goal: str
    candidates: Path | None
    quiet: bool
    json: bool


def execute(request: Request) -> None:
    """Fit, show and write.

    Raises:
        UsageError: a table, form or option that cannot be used.
    """
    refuse_places(request)
    name, form, fixed = form_of(request)
    method = Method(_delta(request.delta), request.starts, request.seed, fixed)
    try:
        table = read_table(request.runs, request.rename, request.where)
        fit = fitted(name, form, table, method)
        known = intervals(fit, request.bootstraps, np.random.default_rng(request.seed))
        law = law_of(fit, known, _law_name(request), _named(name, form), _tokens(request, table, form))
    except ValueError as error:
        raise UsageError(str(error)) from None
    asked = None if request.next is None else _asked(request)
    planned = None if asked is None else designs(asked, fit, law)
    content = report(fit, known, {each: named_form(each) for each in importable("objectives.law_forms")})
    _write(request, law, content, fit)
    if request.json:
        next_ = {} if planned is None else {"next": {k: v.tolist() for k, v in planned[0].items()}}
        say_json(content | next_)
    else:
        for line in terminal(content):
            say(line)
    if asked is not None and planned is not None:
        if not request.json:
            show(planned[0], asked, planned[1])
        if asked.out is not None:
            write_candidates(asked.out, planned[0])
            if not request.quiet:
                notice(f"{asked.n} candidates written to {asked.out}")


def refuse_places(request: Request) -> None:
    """Say before the work which files could not be written after it.

    Raises:
        UsageError: a wrong ending, a missing folder, or candidates that were not asked for.
    """
    endings = {"out": (".yaml", ".yml"), "candidates": (".csv", ".jsonl")}
    for name, path in (("out", request.out), ("candidates", request.candidates)):
        if path is not None and path.suffix not in endings[name]:
            raise UsageError(f"{name}: expected a {' or '.join(endings[name])} file, got {path}; change its ending")
        if path is not None and not path.parent.is_dir():
            raise UsageError(f"{name}: expected a folder that exists, got {path.parent}; make it first")
    if request.candidates is not None and request.next is None:
        raise UsageError("candidates: expected --next N with it, got none; say how many to train next")


def _asked(request: Request) -> Asked:
    return Asked(request.next or 0, request.space, request.goal, request.candidates, request.seed)


def form_of(request: Request) -> tuple[str, Form, dict[str, float]]:
    """Name, form and fixed exponents; the KV term's treatment decides the form of the paper's law."""
    fixed = dict(_fixed(pair) for pair in request.fix)
    if request.kv not in KV:
        raise UsageError(f"kv: {unknown('a treatment', request.kv, KV)}")
    name = request.form
    if name == "hw_codesign":
        name = name if "alpha_m" in fixed else KV[request.kv]
        fixed = {"alpha_m": PAPER_KV_EXPONENT, **fixed} if request.kv == "fixed" else fixed
    elif request.kv != "log":
        raise UsageError(f"kv: expected it with --form hw_codesign, got {request.kv} with {name}; leave it out")
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
    return (request.out or request.runs).stem


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
