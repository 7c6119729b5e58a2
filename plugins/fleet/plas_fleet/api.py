"""Fleets from Python: the best one, two, three … models that serve all cases, as tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from nas.api.data_frames import notebook_html
from nas.api.study import Study, plain_value
from nas.record.candidates import write_candidates
from nas.terminal.tables import document_lines
from plas_fleet.answers import FleetAnswer
from plas_fleet.command import answer_of
from plas_fleet.fleet_document import fleet_document, opening_lines
from plas_fleet.inputs import asked_for
from plas_fleet.request import FleetRequest
from plas_fleet.tables import candidates, columns, model_rows, served_rows, summary
from plas_range.cases import priced_cases

UNITS = dict.fromkeys(("loss", "value", "buys", "worst_regret", "own_best", "regret"), "nats")
UNITS |= {"train_flops": "FLOP", "train_hours": "h"}


@dataclass(frozen=True, eq=False, repr=False)
class Fleets:
    """Fleets by their number of models; made by `fleets`.

    `unserved` says of each case that no design serves why; it is left out.
    """

    answer: FleetAnswer

    @property
    def values(self) -> pd.DataFrame:
        """A row per number of models: `value` in nats, what a further model `buys`, cost of training."""
        return _with_units(summary(self.answer)["fleets"])

    @property
    def frame(self) -> pd.DataFrame:
        """A row per fleet and case: which model serves it, loss, `own_best`, `regret`, how full each limit is."""
        return _with_units(columns(served_rows(self.answer)))

    @property
    def models(self) -> pd.DataFrame:
        """A row per fleet and model: its architecture, loss, the cases that it serves, what holds it back."""
        return _with_units(columns(model_rows(self.answer)))

    @property
    def unserved(self) -> dict[str, str]:
        """Cases that no design serves, each with the reason."""
        return dict(self.answer.lost)

    def save(self, path: str | Path) -> None:
        """Write the models of the largest fleet as a candidate file, .csv or .jsonl, which `plas export` takes.

        Raises:
            UsageError: another ending, or no fleet.
        """
        write_candidates(Path(path), candidates(self.answer))

    def __str__(self) -> str:
        return "\n".join("".join(line) for line in document_lines(fleet_document(self.answer)))

    def __repr__(self) -> str:
        return opening_lines(self.answer)[0]

    def _repr_html_(self) -> str:
        return notebook_html(repr(self), self.values, len(self.values))


def fleets(
    study: Study,
    models: int | str = "1..4",
    *,
    cases: str | Path | None = None,
    devices: str | Sequence[str] | None = None,
    precisions: str | Sequence[str] | None = None,
    workloads: str | Sequence[str] | None = None,
    minimise: str | None = None,
    weights: Sequence[float] | None = None,
) -> Fleets:
    """The best fleets of one, two, three … models that serve all cases, as `plas fleet` does it; without cases, those of devices_paper.

    `cases` is a study of several devices or a table of cases (.csv); the keys of the study stand over it.

    Examples:
        >>> study = nas.load_study(budgets={"total_ms": 500})
        >>> found = plas_fleet.fleets(study, "1..2", devices=["jetson_agx_orin_64gb", "rtx_4090"])
        >>> found.values.models.tolist(), bool((found.frame.regret >= 0).all())
        ([1, 2], True)

    Raises:
        UsageError: every fault at once; a space that cannot be covered.
    """
    asked: dict[str, Any] = {"models": models, "minimise": minimise, "weights": weights}
    table = Path(cases) if cases is not None and str(cases).endswith(".csv") else None
    config = study.config if table is not None or cases is None else cases
    request = FleetRequest(
        None if config is None else str(config),
        _given(asked),
        _given({"devices": devices, "precisions": precisions, "workloads": workloads}),
        table=table,
        flags={key: plain_value(key, value) for key, value in study.keys.items()},
    )
    wanted, question = asked_for(request)
    return Fleets(answer_of(priced_cases(wanted), question))


def _given(said: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, sequences as lists."""
    return {
        name: list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
        for name, value in said.items()
        if value is not None
    }


def _with_units(content: Any) -> pd.DataFrame:
    """A table whose `attrs["units"]` say what its numbers are in."""
    frame = pd.DataFrame(content)
    frame.attrs["units"] = {name: unit for name, unit in UNITS.items() if name in frame}
    return frame
