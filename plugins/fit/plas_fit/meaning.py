"""Resolves the flags of `fit`: files, form, fixed exponents, delta, tokens; refuses what excludes another."""

import shlex
from dataclasses import fields
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import Faults, unknown
from nas.files.tables import refuse_existing, refuse_used
from nas.study import entry_points
from nas.study.catalogue import installed_form
from nas.terminal.doors import command
from objectives.loss_law.form import Form, named_form
from objectives.plugins import importable
from objectives.quantities import quantity_in
from plas_fit.fitting.trained_models import Table
from plas_fit.request import FitRequest

KV = {"log": "hw_codesign_log_kv", "fixed": "hw_codesign", "free": "hw_codesign"}
UNITS = ("nats", "bits")
PAPER_KV_EXPONENT = 0.05
FILES = ("form", "prior", "law", "config", "space")  # a name, or a file by its own
TABLE = "trainings.csv"  # of a folder of `train`
NOT_REPEATED = ("runs", "out", "report", "candidates", "quiet", "json")


def refuse_early(request: FitRequest) -> None:
    """Say before the work which files could not be written after it, and that tokens are no number of tokens.

    Raises:
        UsageError: no positive number, a wrong ending, a missing folder, a file that exists, a folder with files.
    """
    if request.tokens is not None:
        positive("tokens", request.tokens)
    endings = {"out": (".yaml", ".yml"), "candidates": (".csv", ".jsonl")}
    for name, path in (("out", request.out), ("candidates", request.candidates)):
        if path is not None and path.suffix not in endings[name]:
            raise UsageError(f"{name}: expected a {' or '.join(endings[name])} file, got {path}; change its ending")
        if path is not None and not path.parent.is_dir():
            raise UsageError(f"{name}: expected a folder that exists, got {path.parent}; make it first")
        if path is not None:
            refuse_existing(f"--{name}", path)
    if request.report is not None:
        refuse_used("--report", request.report)


def repeated(request: FitRequest) -> str:
    """The command that makes the report again, typed in the folder that holds its files: every flag that is not its default."""
    words = [*command("fit").split(), *(path.name for path in request.runs)]
    for field in fields(FitRequest):
        value = getattr(request, field.name)
        if field.name in NOT_REPEATED or value == field.default:
            continue
        for one in value if isinstance(value, tuple) else (value,):
            written = Path(one).name if field.name in FILES else str(one)
            words += [f"--{field.name.replace('_', '-')}", written]
    return shlex.join([*words, "--report", "again"])


def table_of(runs: Path) -> Path:
    """The table that `train` wrote, where a folder of it is given."""
    return runs / TABLE if (runs / TABLE).is_file() else runs


def tables_of(request: FitRequest) -> str:
    """The tables by the names of their files."""
    return ", ".join(path.name for path in request.runs)


def unit_of(request: FitRequest) -> str | None:
    """The unit of the table's losses as asked.

    Raises:
        UsageError: another unit.
    """
    if request.loss_unit is not None and request.loss_unit not in UNITS:
        raise UsageError(f"loss_unit: {unknown('a unit', request.loss_unit, UNITS)}")
    return request.loss_unit


PAPERS = "hw_codesign"  # the form that is taken where none is named and the rows vary in all that it sees


def form_of(request: FitRequest) -> tuple[str, Form, dict[str, float]]:
    """Name, form and fixed exponents; the KV term's treatment decides the form of the paper's law."""
    fixed = dict(fixed_exponent(pair) for pair in request.fix)
    if request.kv not in KV:
        raise UsageError(f"kv: {unknown('a treatment', request.kv, KV)}")
    name = request.form or PAPERS
    if name == PAPERS:
        name = name if "alpha_m" in fixed else KV[request.kv]
        fixed = {"alpha_m": PAPER_KV_EXPONENT, **fixed} if request.kv == "fixed" else fixed
    elif request.kv != "log":
        raise UsageError(f"kv: expected it with --form hw_codesign, got {request.kv} with {name}; leave it out")
    if request.form is not None:
        entry_points.refuse_contested("forms", name, "form: ")
    if name in importable("objectives.law_forms"):
        return name, named_form(name), fixed
    if (theirs := installed_form(name)) is not None:
        return name, theirs, fixed
    if Path(name).suffix not in (".yaml", ".yml"):
        raise UsageError(f"form: {unknown('a form', name, entry_points.named('forms'), 'a YAML file')}")
    return Path(name).stem, read_form(Path(name)), fixed


def read_form(path: Path) -> Form:
    """A user's form from YAML.

    Raises:
        UsageError: every fault with its line.
    """
    content, origins = yaml_source.read(path)
    try:
        return Form.model_validate(yaml_source.keys_of(content, path, "see docs/fit.md"))
    except ValidationError as error:
        faults = Faults(origins)
        faults.add_validation(error, model=Form)
        faults.raise_if_any()
        raise


def fixed_exponent(pair: str) -> tuple[str, float]:
    name, _, value = pair.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise UsageError(f"fix: expected NAME=VALUE with a number, got {pair!r}; write alpha_m=0.05")
    return name.strip(), number


def delta_of(text: str) -> float | None:
    if text in ("auto", "none"):
        return None if text == "auto" else float("inf")
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value > 0:
        raise UsageError(f"delta: expected auto, none or a positive number, got {text!r}; choose one")
    return value


def named_or_own(name: str, form: Form) -> str | Form:
    """A shipped form by its name, a user's or an installed package's embedded."""
    return name if name in importable("objectives.law_forms") else form


def positive(name: str, value: float) -> float:
    """A positive finite number.

    Raises:
        UsageError: another.
    """
    if not 0 < value < np.inf:
        raise UsageError(f"{name}: expected a positive number, got {value:g}; write 10e9")
    return value


def flops_of(request: FitRequest) -> float | None:
    """Training FLOP of all designs together at most."""
    return None if request.flops is None else positive("flops", request.flops)


def max_params_of(request: FitRequest) -> float | None:
    """Parameters of each design at most, "8B" or a number.

    Raises:
        UsageError: neither.
    """
    if request.max_params is None:
        return None
    try:
        return quantity_in("parameters", request.max_params)
    except ValueError as error:
        raise UsageError(f"max_params: {error}") from None


def law_name(request: FitRequest) -> str:
    return (request.out or next(iter(request.runs), Path("law"))).stem


def tokens_of(request: FitRequest, table: Table, form: Form) -> float | None:
    """Tokens the law predicts for: as asked, else those of the table, the most where they vary."""
    if request.tokens is not None:
        return request.tokens
    if not table.has("tokens"):
        return None
    column = table.feature("tokens")
    constant = float(np.ptp(column)) <= 0.1 * float(column.min())
    if constant:
        return float(np.median(column))
    return float(column.max()) if "tokens" in form.features else None
