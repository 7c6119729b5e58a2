"""The keys of a study as a type checker sees them; what they mean stands in `plas schema study`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from nas.api.fitted_law import FittedLaw

Number = int | float
Written = int | float | str  # with or without its unit: "20 ms", "10B"
Named = str | Path | Mapping[str, Any]  # a shipped name, a file, or the content of one
Listed = str | Sequence[str]
Metrics = str | Iterable[str | Callable[..., Any]]


class StudyKeys(TypedDict, total=False):
    """Every key of a study, all of which may be left out."""

    name: str
    preset: str
    space: Named
    law: Named | FittedLaw
    laws: str | Sequence[Named | FittedLaw]
    tokens: Written | Iterable[Written] | None
    unique_tokens: Written | None
    training: Mapping[str, Any]
    residual_sd: Written | None
    device: Named
    devices: Listed | Mapping[str, Named]
    chip: Mapping[str, Any] | None
    device_columns: Named
    precision: str
    precisions: Listed
    precision_law: Listed
    deltas: Named
    scores: Named | None
    latency: str
    attention: str
    causal: bool
    complete: bool
    vocabulary: int | str | Sequence[int | str]
    tied: bool | Sequence[bool]
    token_curve: Named
    head_bytes: Number | Mapping[str, Number]
    int4_group_size: int | None
    calibration: Named
    engine: str | None
    serving: Mapping[str, Any]
    sustained: bool | Number | Mapping[str, Any]
    batch: int
    input_tokens: int
    output_tokens: int
    input_text: Written | None
    output_text: Written | None
    objectives: Metrics
    budgets: Mapping[str, Any] | Listed
    columns: Metrics
    train: Mapping[str, Any] | None
    measure: Mapping[str, Any] | None
    default_budget: Mapping[str, Any] | str | None
    applications: Mapping[str, Mapping[str, Any]] | str | None
    baselines: str | Sequence[Named]
    algo: str
    auto: str
    params: Mapping[str, Any]
    evaluations: int | None
    time_limit: Written | None
    stop_when_stable: int | None
    constraints: str | None
    penalty_weight: Number
    seed_from: str | Path | Sequence[Mapping[str, Any]] | None
    known: str | Path | Sequence[str | Path]
    known_as: Mapping[str, str]
    workers: int | None
    asynchronous: bool
    executor: str | None
    resources: Mapping[str, Number]
    evaluation_timeout: Written | None
    optuna_storage: str | None
    seed: int
