"""A loss law fitted from Python, as `plas fit` does it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from pydantic import TypeAdapter, ValidationError

from nas.api.data_frames import Given, architectures_of, notebook_html
from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import Faults, unknown
from nas.files.tables import write
from nas.study.catalogue import load_law
from nas.terminal.parser import refuse_idle
from nas.terminal.tables import document_lines
from objectives.loss_law.law import Law
from plas_fit import command, on_prior
from plas_fit.fit_document import fit_document
from plas_fit.meaning import refuse_early
from plas_fit.request import FitRequest
from search_spaces.arrays import FloatArray

OF_COMMAND = ("runs", "out", "report", "candidates", "quiet", "json")  # fields of a request that are files and streams
FROM_ONE = ("starts", "next")
NUMBERS_TOO = ("delta", "max_params")  # words or a number
_REQUEST = TypeAdapter(FitRequest)


@dataclass(frozen=True, eq=False, repr=False)
class FittedLaw:
    """A fitted law with its report; `load_study(law=fitted)` uses it with its uncertainty."""

    law: Law
    report: dict[str, Any]

    @property
    def coefficients(self) -> pd.DataFrame:
        """A table of the coefficients with standard errors and 95 % intervals (90 % for a fit with a prior), one row each."""
        return pd.DataFrame(self.report["coefficients"]).T

    @property
    def next(self) -> pd.DataFrame:
        """The models to train next, one row each, if the fit was called with a number of them (`next=8`).

        Examples:
            >>> runs = nas.load_study().sample(40, seed=7)
            >>> fitted = nas.fit_law(runs, tokens=10e9, bootstraps=0, next=3)
            >>> len(fitted.next), "expert_size" in fitted.next
            (3, True)

        Raises:
            UsageError: the fit was called without `next`.
        """
        if "next" not in self.report:
            raise UsageError("next: expected a fit with proposals, got none; give fit_law(…, next=8)")
        return pd.DataFrame(self.report["next"])

    def predict(self, models: Given) -> FloatArray:
        """Return the loss of each model, nats per token, (n,).

        models: as `Study.evaluate` takes them, or columns of all that the law reads (`parameters`, `tokens`). Models without
        tokens are trained on those that the law predicts for.

        Examples:
            >>> runs = nas.load_study().sample(40, seed=7)
            >>> bool(abs(nas.fit_law(runs, tokens=10e9, bootstraps=0).predict(runs) - runs.loss).max() < 0.01)
            True

        Raises:
            UsageError: rows that are no models.
        """
        form = self.law.law_form
        if not isinstance(models, (pd.DataFrame, Mapping)) or "depth" in models or not {*form.features} <= {*models}:
            return self.law.loss(architectures_of(None, models))
        columns = {name: np.atleast_1d(np.asarray(models[name], dtype=np.float64)) for name in form.features}
        terms = form.values(columns.__getitem__, self.law.coefficients).values()
        return form.loss(np.sum(np.broadcast_arrays(*terms), axis=0))

    def mapping(self) -> dict[str, Any]:
        """Return the law as YAML content."""
        return self.law.mapping()

    def save(self, path: str | Path) -> None:
        """Write the law file that `--law` takes.

        Raises:
            UsageError: another ending than .yaml, or a file that exists.
        """
        try:
            refuse_early(FitRequest(out=Path(path)))
        except UsageError as error:
            raise UsageError(str(error).removeprefix("--")) from None
        write(Path(path), "# Fitted by plas fit.\n" + yaml_source.dump(self.mapping()))

    def __str__(self) -> str:
        return "\n".join("".join(line) for line in document_lines(fit_document(self.report)))

    def __repr__(self) -> str:
        return f"Law {self.law.name!r} fitted to {self.report['data']['rows']} rows"

    def _repr_html_(self) -> str:
        """The formula with its unit, then the coefficients; their units are what makes each term nats."""
        formula = self.report.get("formula", {}).get("names", "loss")
        shown = self.coefficients.map(_in_words).reset_index(names="coefficient")
        return notebook_html(repr(self), shown, above=f"{formula}, in nats per token")


def _in_words(value: Any) -> Any:
    """An interval as `0.1 … 0.2`; "" of one that was not computed."""
    if not isinstance(value, (list, tuple)):
        return value
    return "" if any(end != end for end in value) else " … ".join(f"{end:.4g}" for end in value)


def fit_law(
    runs: str | Path | Sequence[str | Path] | pd.DataFrame | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    form: str | None = None,
    *,
    rename: Mapping[str, str] | None = None,
    where: str | Sequence[str] = (),
    fix: Mapping[str, float] | None = None,
    tokens: float | None = None,
    bootstraps: int = 1000,
    seed: int = 0,
    **options: Any,
) -> FittedLaw:
    """Return a loss law fitted to trained models: CSVs, a table, columns or rows, one row a model, with `loss` in nats per token.

    `rename` maps your columns to ours. `where` keeps rows ("tokens>1e9"). `fix` holds exponents. `tokens` is the number to predict for.
    Further options are those of `plas fit` (`kv`, `delta`, `prior`, …). `next` proposes that many models within `flops` or `max_params`.

    Examples:
        >>> runs = nas.load_study().sample(40, seed=7)
        >>> fitted = nas.fit_law(runs, tokens=10e9, bootstraps=0)
        >>> fitted.coefficients.index[:2].tolist()
        ['kappa_l', 'alpha_l']

    Raises:
        UsageError: a table, form or option that cannot be used.
    """
    _refuse_wrong(options, {"bootstraps": bootstraps, "seed": seed})
    asked = _asked(
        form=form,
        rename=_pairs("rename", rename),
        where=(where,) if isinstance(where, str) else where,
        fix=_pairs("fix", fix),
        tokens=tokens,
        bootstraps=bootstraps,
        seed=seed,
        quiet=True,
        **options,
    )
    paths = _paths(runs)
    return _fitted(asked, paths) if paths else _fitted_table(asked, _table(runs))


def _asked(**options: Any) -> FitRequest:
    """Options as `plas fit` has them; numbers where it reads them of a text, and paths of files, are written as one.

    Raises:
        UsageError: every option of another type, or one that cannot be.
    """
    given = {
        name: str(value) if isinstance(value, Path) or (name in NUMBERS_TOO and _is_number(value)) else value
        for name, value in options.items()
    }
    try:
        asked = _REQUEST.validate_python(given)
    except ValidationError as error:
        faults = Faults()
        faults.add_validation(error)
        faults.raise_if_any()
        raise
    try:
        refuse_idle(replace(asked, runs=(Path(),)))  # rows are always given
    except UsageError as error:
        raise UsageError(re.sub("--([a-z-]+)", lambda flag: flag[1].replace("-", "_"), str(error))) from None
    refuse_early(asked)
    return asked


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _pairs(name: str, given: Any) -> tuple[str, ...]:
    """A mapping as the flag repeats it, old=new."""
    if not isinstance(given, (Mapping, type(None))):
        raise UsageError(f"{name}: expected a mapping, got {given!r}; write {name}={{name: value}}")
    return tuple(f"{old}={new}" for old, new in (given or {}).items())


def _paths(runs: Any) -> list[Path]:
    """Files that were named, one or several; none where rows were given."""
    named = [runs] if isinstance(runs, (str, Path)) else runs
    if not isinstance(named, (list, tuple)) or not all(isinstance(each, (str, Path)) for each in named):
        return []
    return [Path(each) for each in named]


def _table(runs: Any) -> pd.DataFrame:
    try:
        found = pd.DataFrame(runs)
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"runs: expected a CSV, a table, columns or rows, got {type(runs).__name__} ({error})"
        ) from None
    if found.empty:
        raise UsageError("runs: expected a row per trained model, got none; add them")
    return found


def _refuse_wrong(options: dict[str, Any], counts: dict[str, Any]) -> None:
    """Options that `plas fit` does not have, and counts that are none."""
    known = [field.name for field in fields(FitRequest) if field.name not in OF_COMMAND]
    for name in options:
        if name not in known:
            raise UsageError(f"fit_law: {unknown('an option', name, known)}")
    for name, value in (counts | {name: options[name] for name in FROM_ONE if options.get(name) is not None}).items():
        least = int(name in FROM_ONE)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UsageError(f"{name}: expected a whole number from {least} on, got {value!r}; correct it")


def _fitted_table(asked: FitRequest, table: pd.DataFrame) -> FittedLaw:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a table in Python"
        table.to_csv(path, index=False)
        try:
            return _fitted(asked, [path])
        except UsageError as error:  # a table of the caller's has no path
            message = str(error).replace(str(path), "runs").replace("--rename OLD=loss", 'rename={"OLD": "loss"}')
            raise UsageError(message) from None


def _fitted(asked: FitRequest, runs: Sequence[Path]) -> FittedLaw:
    request = replace(asked, runs=(*runs,))
    designs = command.asked_of(request)
    if request.prior is not None:
        updated = on_prior.worked_out(request, designs)
        return FittedLaw(updated.law, updated.content)
    done = command.worked_out(request, load_law(asked.law), designs)
    return FittedLaw(done.law, done.content)
