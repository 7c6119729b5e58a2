"""A study of several devices as it is written: keys that it has besides a study's, its cases."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from nas.files.faults import Path as Place
from nas.study.written_values import none_word, split_names
from objectives.device import Device

SHIPPED = "devices_paper"  # the study of a command that names no device
REFERENCE = "qwen2.5_0.5b"  # where a case has no limit of its own: as fast as this model is there
EVERYTHING = "all"
CASE_KEYS = (  # of a study that a case may have for itself: what its costs depend on besides the device
    *("precision", "int4_group_size", "batch", "input_tokens", "output_tokens", "latency", "attention", "causal"),
    *("complete", "head_bytes", "vocabulary", "tied"),
)


def _listed(value: Any) -> Any:
    """One mapping is a list of one: a device or a model written out."""
    return split_names(value) if isinstance(value, str) else value


class DevicesConfig(BaseModel):
    """Keys of a file for `devices` that are no study's; `devices` may map labels to devices written out.

    `models_under` are the conventions that published models are priced under; preset `device` where none were chosen.
    """

    model_config = ConfigDict(extra="forbid")
    devices: Annotated[
        Annotated[list[str], Field(min_length=1)] | dict[str, dict[str, Any]] | None, BeforeValidator(_listed)
    ] = None
    precisions: Annotated[Annotated[list[str], Field(min_length=1)] | None, BeforeValidator(_listed)] = None
    workloads: Annotated[Annotated[list[str], Field(min_length=1)] | None, BeforeValidator(_listed)] = None
    cases: Annotated[list[dict[str, Any]], Field(min_length=1)] | None = None
    as_fast_as: Annotated[str | dict[str, Any] | None, BeforeValidator(none_word)] = REFERENCE
    models: Annotated[list[str | dict[str, Any]], BeforeValidator(_listed), Field(min_length=1)] = [EVERYTHING]
    models_under: dict[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Row:
    """One case as asked: study keys, its own budgets, an application's name; each with where it was given."""

    values: dict[str, Any]
    budgets: dict[str, Any] = field(default_factory=dict)
    application: str = ""
    label: str = ""
    origins: Mapping[Place, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Asked:
    """A base study with its cases.

    raw, origins: the study that all cases share; `models_raw` is it under the conventions for published models.
    `devices` are known by name already; `faults` of a table are those that were seen without knowing the study.
    """

    raw: dict[str, Any]
    origins: dict[Place, str]
    rows: tuple[Row, ...]
    devices: dict[str, Device]
    config: DevicesConfig
    models_raw: dict[str, Any]
    notices: tuple[str, ...] = ()
    faults: tuple[tuple[str, str], ...] = ()

    @property
    def referred(self) -> bool:
        """Whether a reference model was asked for, so that it also limits cases that have limits of their own."""
        return "as_fast_as" in self.config.model_fields_set

    def for_models(self) -> "Asked":
        """The same cases under the conventions for published models, which no other model's time limits."""
        return replace(self, raw=self.models_raw, config=self.config.model_copy(update={"as_fast_as": None}))
