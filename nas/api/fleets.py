"""Fleets from Python: the best one, two, three … models that serve all cases, as tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from nas.api.data_frames import notebook_html
from nas.devices.cases import priced_cases
from nas.fleet.answers import FleetAnswer
from nas.fleet.command import answer_of
from nas.fleet.inputs import asked_for
from nas.fleet.request import FleetRequest
from nas.fleet.tables import candidates, columns, model_rows, served_rows, summary
from nas.fleet.text import lines_of
from nas.record.candidates import write_candidates

CASES = ("devices", "precisions", "workloads")
UNITS = dict.fromkeys(("loss", "value", "bound", "buys", "worst_regret", "own_best", "regret"), "nats")
UNITS |= {"train_flops": "FLOP", "train_hours": "h"}


@dataclass(frozen=True, eq=False, repr=False)
class Fleets:
    """Fleets by their number of models; made by `Study.fleet`.

    `unserved` says of each case that no design serves why; it is left out.
    """

    answer: FleetAnswer

    @property
    def values(self) -> pd.DataFrame:
        """A row per number of models: `value` in nats, what a further model `buys`, the `bound`, `state` (proved or gap), cost of training."""
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
        return "\n".join(lines_of(self.answer))

    def __repr__(self) -> str:
        return lines_of(self.answer)[0]

    def _repr_html_(self) -> str:
        return notebook_html(repr(self), self.values, len(self.values))


def fleets_of(
    config: str | Path | None, keys: Mapping[str, Any], cases: str | Path | None, given: Mapping[str, Any]
) -> Fleets:
    """The fleets of cases under a study's keys; `given` are keys of cases and of the question, None where not given.

    Raises:
        UsageError: every fault at once.
    """
    said = {name: _listed(value) for name, value in given.items() if value is not None}
    table = Path(cases) if cases is not None and str(cases).endswith(".csv") else None
    study = config if table is not None or cases is None else cases
    request = FleetRequest(
        None if study is None else str(study),
        {name: value for name, value in said.items() if name not in CASES},
        {name: said[name] for name in CASES if name in said},
        table=table,
        flags=keys,
    )
    wanted, asked = asked_for(request)
    return Fleets(answer_of(priced_cases(wanted), asked))


def _with_units(content: Any) -> pd.DataFrame:
    """A table whose `attrs["units"]` say what its numbers are in."""
    frame = pd.DataFrame(content)
    frame.attrs["units"] = {name: unit for name, unit in UNITS.items() if name in frame}
    return frame


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
