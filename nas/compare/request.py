"""What `compare` was asked for on the command line."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nas.compare.configuration import parameters_by_strategy
from nas.compare.trace_columns import bounds_by_name, columns_of, reference_by_name
from nas.study.layers import parsed_settings


@dataclass(frozen=True)
class Request:
    """What `compare` was asked for; `given` are keys of the comparison, `flags` those of a study."""

    given: Mapping[str, Any]
    flags: Mapping[str, Any]
    settings: list[str]
    config: str | None
    studies: list[str]
    params: list[str]
    caps: list[str]
    traces: list[Path]
    workers: int | None
    resume: Path | None
    retry_failed: bool
    interim: bool
    out: Path | None
    quiet: bool
    json: bool
    columns: list[str] = field(default_factory=list)
    reference: list[str] = field(default_factory=list)
    bounds: list[str] = field(default_factory=list)
    pictures: bool = True

    @property
    def own(self) -> dict[str, Any]:
        """Keys of the comparison with the parameters and caps of its strategies."""
        params = {"params": parameters_by_strategy(self.params)} if self.params else {}
        caps = {"caps": parsed_settings(self.caps, "--cap")} if self.caps else {}
        columns = {"columns": self.columns} if self.columns else {}
        reference = {"reference": reference_by_name(self.reference)} if self.reference else {}
        bounds = {"bounds": bounds_by_name(self.bounds)} if self.bounds else {}
        columns_of(self.columns)
        return {**self.given, **params, **caps, **columns, **reference, **bounds}

    @property
    def traces_alone(self) -> bool:
        """Whether traces of other tools are all there is."""
        return bool(self.traces) and not (self.given.keys() & {"algos"} or self.config or self.studies or self.flags)
