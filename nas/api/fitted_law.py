"""A loss law fitted from Python, as `plas fit` does it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from nas.api.data_frames import notebook_html
from nas.files import yaml_source
from nas.files.tables import write
from nas.law_fitting.request import Request, refuse_places
from nas.law_fitting.text import terminal
from nas.study.catalogue import load_law
from nas.work.fit import worked_out
from objectives.loss_law.law import Law


@dataclass(frozen=True, eq=False, repr=False)
class FittedLaw:
    """A law with the report of its fit; `load_study(law=fitted)` uses it, its uncertainty included."""

    law: Law
    report: dict[str, Any]

    @property
    def coefficients(self) -> pd.DataFrame:
        """Each coefficient with its standard error and 95 % intervals, one row each."""
        return pd.DataFrame(self.report["coefficients"]).T

    def mapping(self) -> dict[str, Any]:
        """The law as YAML content."""
        return self.law.mapping()

    def save(self, path: str | Path) -> None:
        """Write the law file, which `--law` takes.

        Raises:
            UsageError: another ending than .yaml, or a file that exists.
        """
        refuse_places(Request(out=Path(path)))
        write(Path(path), "# Fitted by plas fit.\n" + yaml_source.dump(self.mapping()))

    def __str__(self) -> str:
        return "\n".join(terminal(self.report))

    def __repr__(self) -> str:
        return f"Law {self.law.name} fitted to {self.report['data']['rows']} rows"

    def _repr_html_(self) -> str:
        return notebook_html(repr(self), self.coefficients.reset_index(names="coefficient"))


def fit_law(
    runs: str | Path | pd.DataFrame,
    form: str = "hw_codesign",
    *,
    rename: Mapping[str, str] | None = None,
    where: Sequence[str] = (),
    fix: Mapping[str, float] | None = None,
    tokens: float | None = None,
    bootstraps: int = 1000,
    seed: int = 0,
    **options: Any,
) -> FittedLaw:
    """Fit a form of loss law to trained models: a CSV or a table, one row a model, with `loss` in nats per token.

    rename maps columns to ours, where keeps rows ("tokens>1e9"), fix holds exponents, tokens is what to predict
    for. Further options are those of `plas fit` (`kv`, `delta`, `starts`, `loss_unit`, `last`, `config`, `space`).

    Raises:
        UsageError: a table, form or option that cannot be used.
    """
    asked = Request(
        form=form,
        rename=tuple(f"{old}={new}" for old, new in (rename or {}).items()),
        where=tuple(where),
        fix=tuple(f"{name}={value!r}" for name, value in (fix or {}).items()),
        tokens=tokens,
        bootstraps=bootstraps,
        seed=seed,
        quiet=True,
        **options,
    )
    if not isinstance(runs, pd.DataFrame):
        return _fitted(asked, Path(runs))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "runs.csv"
        runs.to_csv(path, index=False)
        return _fitted(asked, path)


def _fitted(asked: Request, runs: Path) -> FittedLaw:
    done = worked_out(asked, runs, load_law(asked.law), None)
    return FittedLaw(done.law, done.content)
