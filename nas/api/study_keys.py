"""The keys of a study as editors and type checkers see them, each with what `plas list --schema study` says of it."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypedDict, TypeVar

Number = int | float
Written = int | float | str  # with or without its unit: "20 ms", "10B"
Named = str | Path | Mapping[str, Any]  # a shipped name, a file, or the content of one
Listed = str | Sequence[str]
Metrics = str | Iterable[str | Callable[..., Any]]


Function = TypeVar("Function", bound=Callable[..., Any])


def with_keys(function: Function) -> Function:
    """Name every key in the signature of a function that takes them, for completion and `help`."""
    signature = inspect.signature(function)
    *own, _ = signature.parameters.values()
    kind, default = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    keys = [
        inspect.Parameter(name, kind, default=..., annotation=default)
        for name in StudyKeys.__annotations__
        if name not in signature.parameters
    ]
    function.__signature__ = signature.replace(parameters=[*own, *keys])  # type: ignore[attr-defined]
    return function


class FittedLaw(Protocol):
    """What `nas.fit_law` returns, or whatever else has a law's content."""

    def mapping(self) -> dict[str, Any]:
        """Return the law as YAML content."""


class StudyKeys(TypedDict, total=False):
    """Every key of a study, all optional."""

    name: str
    """Names the run folder."""
    preset: Literal["paper", "device"]
    """Defaults for the study: paper, or device (a real device)."""
    space: Named
    """Search space: name, YAML file or mapping."""
    only: Listed | Mapping[str, Any]
    """Restrict axes to values or to an inclusive range: n_experts=1, depth=8..24,width=1024,2048."""
    law: Named | FittedLaw
    """Loss law: name, YAML file or mapping."""
    laws: str | Sequence[Named | FittedLaw]
    """Other laws under which the picks' regrets are computed; further priors of prior_guided. Names, files or mappings."""
    outside: Literal["mark", "allow", "exclude"]
    """Designs unlike anything the law was fitted on: mark (shown, never recommended), allow, or exclude."""
    tokens: Written | Iterable[Written] | None
    """Training tokens, 10B, for laws that use them; several, 1B,3B,10B, become an axis; default: the law's own."""
    unique_tokens: Written | None
    """Distinct training tokens, for laws with repeated text (tokens); default: the law's own."""
    training: Mapping[str, Any]
    """Where models are trained, and how many tokens they will serve."""
    residual_sd: Written | None
    """Residual standard deviation of the law (nats); closer designs count as tied."""
    device: Named
    """Device: id, id@mode, YAML file or mapping."""
    devices: Listed | Mapping[str, Named]
    """Devices to choose from, a,b or name: device; they become an axis. Default: `device` alone."""
    chip: Mapping[str, Any] | None
    """Chips to choose from: figures as lists, {from, to, step} or formulas, with base, columns, where."""
    device_columns: Named
    """Device figures to use as metrics: CSV with the columns device, price [USD] and others, or {device: {price: 249 USD}}."""
    formats: Mapping[str, Any]
    """Weight formats of your own that precision may name, as in a plug-in's file."""
    precision: str
    """fp16, fp8, int8, int4, nvfp4, fp32; w4a16 (AWQ, GPTQ); llama.cpp's q2_k to q8_0, iq4_xs, mxfp4; mlx_4bit, mlx_6bit, mlx_8bit; _kv8, _kv4: a KV cache of as many bits."""
    precisions: Listed
    """Formats to choose from, a,b,c; they become an axis. Default: `precision` alone."""
    precision_law: Listed
    """How much loss low precision adds; several are alternatives; none ignores it."""
    deltas: Named
    """Loss that a kind of layers adds if all layers are of it, {kind: nats}, or a file; none ignores it. {}: from published pairs."""
    latency: Literal["operator", "closed_form"]
    """Latency model: operator or closed_form."""
    attention: Literal["unfused", "fused"]
    """Attention kernel: unfused (scores go through memory) or fused."""
    causal: bool
    """Skip the masked half of prefill attention."""
    complete: bool
    """Add residuals, RoPE, expert combination."""
    vocabulary: int | str | Sequence[int | str]
    """Vocabulary size, 32k; 0: no embedding and LM head; several, 8k,16k,32k, become an axis."""
    tied: bool | Sequence[bool]
    """Embedding and LM head share one table; [true, false] becomes an axis."""
    token_curve: Named
    """Bytes of text per token by vocabulary: name, file or mapping (recipe: docs/vocabulary.md)."""
    head_bytes: Number | Mapping[str, Number]
    """Bytes per element of embedding and LM head, else the format's own; {int4: 1}: by precision."""
    int4_group_size: int | None
    """Weights per scale under int4."""
    calibration: Named
    """Speeds: typical (measured, else typical of the chip), shipped (measured only) or datasheet (full peaks)."""
    engine: str | None
    """Inference engine to predict, llama.cpp; default: any that was measured."""
    prefill_chunk: int | Literal["engine"] | None
    """Prompt tokens processed at once: a number, engine (llama.cpp 512, MLX 2048, others 8192), or none for all (tokens)."""
    serving: Mapping[str, Any]
    """Tokens drafted ahead, experts in slow memory, a chip for prompts."""
    sustained: bool | Number | Mapping[str, Any]
    """Speed after minutes of load: true (from the device's file or its cooling), or a share such as 0.7."""
    batch: int
    """Sequences at once."""
    input_tokens: int
    """Prompt length (tokens)."""
    output_tokens: int
    """Answer generated (tokens)."""
    input_text: Written | None
    """Prompt in bytes of text, 10kB, in place of input_tokens."""
    output_text: Written | None
    """Text generated, bytes, in place of output_tokens."""
    objectives: Metrics
    """Metrics to minimise: loss,total_ms,package.module:function."""
    budgets: Mapping[str, Any] | Listed
    """A limit: metric=LIMIT (at most), or metric>=LIMIT for a rate (at least); metric=none removes it."""
    columns: Metrics
    """Further metrics to compute: shipped ones, or figures of the device."""
    train: Mapping[str, Any] | None
    """How the objective train trains."""
    measure: Mapping[str, Any] | None
    """How the objective measure measures."""
    default_budget: Mapping[str, Any] | str | None
    """Memory budget unless removed."""
    applications: Mapping[str, Mapping[str, Any]] | str | None
    """Applications with their limits, name: {metric: limit}, each answered with a pick; default: the paper's four if there is no budget."""
    baselines: str | Sequence[Named]
    """Models to compare with: published names, columns, {config: config.json}, nearest to the limits."""
    algo: str
    """Strategy: 'plas list strategies' names them, package.module is your own, auto picks one."""
    auto: str
    """Why algo was picked: auto writes it."""
    params: Mapping[str, Any]
    """The strategy's own parameters: 'plas list --schema nsga2'."""
    evaluations: int | None
    """Distinct architectures to evaluate; default: 5000, or the strategy's own."""
    time_limit: Written | None
    """Time of the search (seconds)."""
    stop_when_stable: int | None
    """Stop after so many evaluations without a new frontier member."""
    constraints: Literal["native", "penalty", "reject"] | None
    """How budgets reach the strategy; left out: native where it can, else penalty."""
    penalty_weight: Number
    """Weight of violations under constraints: penalty."""
    seed_from: str | Path | Sequence[Mapping[str, Any]] | None
    """Candidate file to start from."""
    known: str | Path | Sequence[str | Path]
    """Results that are known already: tables, run folders, Optuna storages in files."""
    known_as: Mapping[str, str]
    """metric of your own: column of the known results, where it is not called so."""
    workers: int | None
    """Worker processes, one architecture each; none: evaluate batches in this process."""
    asynchronous: bool
    """Ask whenever a worker is idle; the order of arrival decides what is proposed next."""
    executor: str | None
    """Cluster that evaluates, dask:tcp://host:8786 or dask:scheduler.json; on the command line alone."""
    resources: Mapping[str, Number]
    """What an evaluation takes of what a cluster's workers declare, such as GPU: 1."""
    evaluation_timeout: Written | None
    """Time for one architecture, with workers or an executor (seconds)."""
    seed: int
    """Seed of the strategy."""
