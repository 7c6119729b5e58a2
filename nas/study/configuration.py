"""The keys of a study's YAML, which are the flags' names too, with their defaults."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    StrictBool,
    Tag,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from nas.study.expensive_settings import MeasureSettings, TrainSettings
from nas.study.serving_keys import ServingConfig
from nas.study.value_parsers import (
    ALWAYS,
    ANSWER,
    AT_START,
    CASE,
    FREE,
    NAMED,
    RUN,
    STRATEGY,
    Free,
    Part,
    SingleRun,
    cluster_address,
    labelled,
    none_word,
    split_budgets,
    split_names,
    split_pairs,
    written_bytes,
    written_tokens,
    written_vocabulary,
)
from objectives.device import Calibration, Device, Sustained
from objectives.loss_law.precision_cost import PrecisionLaw
from objectives.precision import define
from objectives.quantities import Name, bytes_in_words, counted
from objectives.weight_formats.table import WeightFormat
from search_spaces.axes_schema import CAPABILITIES
from search_spaces.formats import Format, base_of

M = TypeVar("M")
NAME = r"^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,59}$"  # of a folder: neither . nor ..
Count = Annotated[int, Field(strict=True, ge=1, le=10**12)]
HeadByte = Annotated[float, Field(gt=0, le=8)]
HeadBytes = Annotated[
    Annotated[HeadByte, Tag("float")] | Annotated[dict[Format, HeadByte], Tag("dict")],
    Discriminator(lambda value: "dict" if isinstance(value, dict) else "float"),
]
Tokens = Annotated[int, Field(strict=True, ge=1, le=10**8)]
TextBytes = Annotated[float | None, Field(ge=1, le=1e9), BeforeValidator(written_bytes)]
Vocabulary = Annotated[int, Field(strict=True, ge=0, le=10**7)]
IN_TEXT = {"input_tokens": "input_text", "output_tokens": "output_text"}  # a length in tokens: the same in bytes
IN_TOKENS = {text: tokens for tokens, text in IN_TEXT.items()}
PAPER_APPLICATIONS: dict[str, dict[str, Any]] = {
    "embodied AI": {"decode_ms": 20},
    "smart home": {"total_ms": 500},
    "autonomous driving": {"total_ms": 100},
    "private serving": {"total_ms": 2000},
}


def _defined(formats: dict[str, WeightFormat]) -> dict[str, WeightFormat]:
    """Make a study's own weight formats known."""
    for name, written in formats.items():
        define(name, written)
    return formats


def _format(given: Any, shipped: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """The name of a weight format: the study's own, or one that ships."""
    own = info.data.get("formats", (given,))  # where these are wrong, one of them
    return given if isinstance(given, str) and given in own else shipped(given)


class DefaultBudget(BaseModel):
    """A budget that stands unless the study removes it: metric <= share · the device's memory, of which a phone's app has a part."""

    model_config = ConfigDict(extra="forbid")
    metric: Literal["memory_gb", "resident_gb"] = "memory_gb"
    share: Annotated[float, Field(gt=0, le=1)] = 1.0

    def on(self, device: Device | float | None) -> tuple[str, float]:
        """The metric and its limit on a device, or of so many GB; of several devices (None) on the share of each one's own."""
        if device is None:
            return self.metric.replace("_gb", "_share"), self.share
        if isinstance(device, Device):
            device = device.program_gb if self.metric == "resident_gb" else device.memory_gb
        return self.metric, self.share * device


class TrainingConfig(BaseModel):
    """The training that `train_hours` and `lifetime_flops` price."""

    model_config = ConfigDict(extra="forbid")
    device: Annotated[
        str | dict[str, Any] | None,
        BeforeValidator(none_word),
        Field(description="Device that trains: id, id@mode, file or mapping"),
    ] = None
    utilisation: Annotated[float, Field(gt=0, le=1, description="Share of its FP16 peak that training achieves")] = 0.4
    sequence_length: Annotated[
        int, Field(strict=True, ge=1, le=10**8, description="Tokens of a sequence, of which attention is paid for")
    ] = 2048
    served_tokens: Annotated[
        float,
        Field(ge=0, allow_inf_nan=False, description="Tokens that the model will have served in its life"),
        BeforeValidator(lambda value: value if value == 0 else counted(value, "2T")),
    ] = 0.0


class StudyConfig(BaseModel):
    """A study; names refer to shipped spaces, laws and devices, mappings and files give one's own."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(pattern=NAME, description="Names the run folder"), FREE] = "paper"
    preset: Annotated[
        Literal["paper", "device"], Field(description="Conventions: the paper's, or a real device's"), ALWAYS
    ] = "paper"
    space: Annotated[str | dict[str, Any], Field(description="Search space: name, file or mapping"), Part("space")] = (
        "paper"
    )
    law: Annotated[str | dict[str, Any], Field(description="Loss law: name, file or mapping"), Part("law")] = (
        "hw_codesign"
    )
    laws: Annotated[
        list[str | dict[str, Any]],
        BeforeValidator(split_names),
        Field(
            description="Other laws: regrets of exact picks under each; further priors of prior_guided; names, files or mappings"
        ),
        ANSWER,
    ] = []
    outside: Annotated[
        Literal["mark", "allow", "exclude"],
        Field(
            description="Designs outside of what the law's rows cover: mark (shown, never recommended), allow, or exclude"
        ),
    ] = "allow"
    tokens: Annotated[
        float | list[float] | None,
        BeforeValidator(written_tokens, json_schema_input_type=float | str | list[float | str] | None),
        Field(description="Training tokens, of laws that depend on them; several are an axis; left out: the law's own"),
    ] = None
    unique_tokens: Annotated[
        float | None,
        BeforeValidator(lambda value: None if value in (None, "none") else counted(value, "10B")),
        Field(description="Tokens of distinct text, of laws that know of repeated ones; left out: the law's own"),
    ] = None
    training: Annotated[TrainingConfig, Field(description="Where models are trained, and how much they will serve")] = (
        TrainingConfig()
    )
    scores: Annotated[
        str | dict[str, Any] | None,
        BeforeValidator(none_word),
        Field(description="Scores of tasks by bits per byte, shown beside losses: file of 'plas fit --scores'; none"),
        ANSWER,
        NAMED,
    ] = None
    residual_sd: Annotated[
        float | None,
        Field(ge=0),
        BeforeValidator(none_word),
        Field(description="Residual sd of the law in nats: designs closer than it can distinguish are tied"),
        ANSWER,
    ] = None
    device: Annotated[
        str | dict[str, Any], Field(description="Device: id, id@mode, file or mapping"), Part("device")
    ] = "jetson_agx_orin_64gb"
    devices: Annotated[
        dict[str, Any],
        BeforeValidator(labelled, json_schema_input_type=str | list[str | dict[str, Any]] | dict[str, Any]),
        Field(
            description="Devices that designs may be on, a,b or name: device, an axis of the space; left out: `device` alone"
        ),
        NAMED,
    ] = {}
    chip: Annotated[
        dict[str, Any],
        BeforeValidator(lambda value: {} if value in (None, "none") else value),
        Field(
            description="Genes of chips that designs may be on: figures as lists, {from, to, step} or formulas, base, columns, where"
        ),
        NAMED,
    ] = {}
    device_columns: Annotated[
        str | dict[str, dict[str, Any]],
        BeforeValidator(lambda value: {} if value in (None, "none") else value),
        Field(
            description="Figures of devices that are metrics by their names: CSV with a column device, price [USD] and others, or {device: {price: 249 USD}}"
        ),
        AT_START,
        NAMED,
    ] = {}
    formats: Annotated[
        dict[Name, WeightFormat],
        AfterValidator(_defined),
        PlainSerializer(
            lambda formats: {n: f.model_dump(mode="json", exclude_defaults=True) for n, f in formats.items()}
        ),
        Field(description="Weight formats of your own that precision may name, as in a plug-in's file"),
        NAMED,
    ] = {}
    precision: Annotated[
        Format,
        WrapValidator(_format),
        PlainSerializer(str),
        Field(description="Weights and linear operators; _kv8, _kv4: a KV cache of as many bits"),
        ALWAYS,
        CASE,
    ] = "fp16"
    precisions: Annotated[
        list[Format],
        BeforeValidator(split_names),
        Field(description="Formats that designs may have, an axis of the space; left out: `precision` alone"),
    ] = []
    precision_law: Annotated[
        list[PrecisionLaw],
        BeforeValidator(lambda value: [] if value == "none" else split_names(value)),
        Field(description="What few bits cost in loss; further ones are alternatives; none: nothing"),
    ] = []
    deltas: Annotated[
        str | dict[str, Any],
        Field(
            description="kind of layers: nats where all are of it, as you measured; a file; none. {}: by public pairs"
        ),
    ] = {}
    latency: Annotated[Literal["operator", "closed_form"], Field(description="Latency model"), ALWAYS, CASE] = (
        "operator"
    )
    attention: Annotated[
        Literal["unfused", "fused"], Field(description="Whether scores leave the chip"), ALWAYS, CASE
    ] = "unfused"
    causal: Annotated[
        bool, Field(strict=True, description="Skip the masked half of prefill attention"), ALWAYS, CASE
    ] = False
    complete: Annotated[
        bool, Field(strict=True, description="Add residuals, RoPE, expert combination"), ALWAYS, CASE
    ] = False
    vocabulary: Annotated[
        Vocabulary | list[Vocabulary],
        BeforeValidator(written_vocabulary, json_schema_input_type=int | str | list[int | str]),
        Field(description="Tokens of embedding and LM head, 32k; 0 leaves both out; several are an axis"),
        ALWAYS,
        CASE,
    ] = 0
    tied: Annotated[
        StrictBool | list[StrictBool],
        Field(description="One table for embedding and LM head; [true, false] is an axis"),
        ALWAYS,
        CASE,
    ] = True
    token_curve: Annotated[
        str | dict[str, Any],
        Field(description="Bytes of text per token by vocabulary: name, file or mapping (recipe: docs/vocabulary.md)"),
        Part(always=False),
    ] = "slimpajama"
    head_bytes: Annotated[
        HeadBytes | None,
        BeforeValidator(none_word),
        Field(description="Bytes per element of embedding and LM head, else the format's own; {int4: 1}: by precision"),
        ALWAYS,
        CASE,
    ] = None
    int4_group_size: Annotated[
        Count | None, BeforeValidator(none_word), Field(description="Weights per scale under int4"), ALWAYS, CASE
    ] = None
    calibration: Annotated[
        Literal["datasheet", "shipped", "typical"] | Calibration,
        BeforeValidator(lambda value: "datasheet" if value == "none" else value),
        Field(
            description="Share of the datasheet: typical (measured, else typical of the chip), shipped (measured alone) or datasheet, all of it"
        ),
        ALWAYS,
    ] = "datasheet"
    engine: Annotated[
        Annotated[str, Field(max_length=60)] | None,
        BeforeValidator(none_word),
        Field(description="Engine whose times are predicted, llama.cpp; left out: whichever was measured"),
        CASE,
    ] = None
    serving: Annotated[
        ServingConfig, Field(description="Tokens drafted ahead, experts in slow memory, a chip for prompts")
    ] = ServingConfig()
    sustained: Annotated[
        StrictBool | Sustained,
        Field(
            description="Speed after minutes of load, not of the first seconds: by the device's file or its cooling; 0.7: that share of it"
        ),
        CASE,
        NAMED,
    ] = False
    batch: Annotated[int, Field(strict=True, ge=1, le=10**6, description="Sequences at once"), ALWAYS, CASE] = 1
    input_tokens: Annotated[Tokens, Field(description="Prompt length"), ALWAYS, CASE] = 1024
    output_tokens: Annotated[Tokens, Field(description="Tokens generated"), ALWAYS, CASE] = 16
    input_text: Annotated[
        TextBytes, Field(description="Prompt in bytes of text, 10kB, in place of input_tokens"), CASE
    ] = None
    output_text: Annotated[TextBytes, Field(description="Text generated, bytes, in place of output_tokens"), CASE] = (
        None
    )
    objectives: Annotated[
        list[str],
        BeforeValidator(split_names),
        Field(min_length=1, description="Metrics to minimise"),
        Part("objectives"),
    ] = ["loss", "total_ms"]
    budgets: Annotated[
        dict[str, Any],
        BeforeValidator(split_budgets, json_schema_input_type=str | list[str] | dict[str, Any]),
        Field(description="metric: limit, at most; of a rate '>=limit', at least"),
        Part("budgets"),
    ] = {}
    columns: Annotated[
        list[str],
        BeforeValidator(split_names),
        Field(description="Metrics to compute and keep besides the ten: shipped ones, figures of the device"),
        Part("objectives", always=False),
    ] = []
    train: Annotated[
        TrainSettings | None,
        BeforeValidator(none_word),
        Field(description="How the objective train trains"),
        Part("objectives", always=False),
    ] = None
    measure: Annotated[
        MeasureSettings | None,
        BeforeValidator(none_word),
        Field(description="How the objective measure measures"),
        Part("objectives", always=False),
    ] = None
    default_budget: Annotated[
        DefaultBudget | None, BeforeValidator(none_word), Field(description="Memory budget unless removed"), AT_START
    ] = DefaultBudget()
    applications: Annotated[
        dict[Name, dict[str, Any]] | None,
        Field(
            description="name: {metric: limit} answered with a pick each; left out: the paper's four where no budget is given"
        ),
        ANSWER,
    ] = None
    baselines: Annotated[
        list[str | dict[str, Any]],
        BeforeValidator(split_names),
        Field(description="Models to compare with: published names, columns, {config: config.json}"),
        ANSWER,
    ] = ["qwen2.5_0.5b"]
    algo: Annotated[str, Field(description="Search strategy"), STRATEGY, RUN] = "nsga2"
    auto: Annotated[str, Field(description="Why algo was picked: auto writes it"), FREE, NAMED] = ""
    params: Annotated[dict[str, Any], Field(description="The strategy's own parameters"), STRATEGY, RUN] = {}
    evaluations: Annotated[
        Count | None, BeforeValidator(none_word), Field(description="Distinct architectures to evaluate"), FREE
    ] = None
    time_limit: Annotated[
        float | None, Field(gt=0), BeforeValidator(none_word), Field(description="Seconds of search"), FREE
    ] = None
    stop_when_stable: Annotated[
        Count | None,
        BeforeValidator(none_word),
        Field(description="Stop after so many evaluations without a new frontier member"),
        FREE,
    ] = None
    constraints: Annotated[
        Literal["native", "penalty", "reject"] | None,
        BeforeValidator(none_word),
        Field(description="How budgets reach the strategy; left out: native where it can, else penalty"),
        STRATEGY,
    ] = None
    penalty_weight: Annotated[
        float, Field(gt=0, le=1e9, description="Weight of violations under constraints: penalty"), STRATEGY
    ] = 10.0
    seed_from: Annotated[
        str | list[dict[str, Any]] | None,
        BeforeValidator(none_word),
        Field(description="Candidate file to start from"),
        STRATEGY,
    ] = None
    known: Annotated[
        list[Annotated[str, Field(min_length=1)]],
        BeforeValidator(split_names),
        Field(description="Results that are known already: tables, run folders, Optuna storages in files"),
        AT_START,
        SingleRun("give them to single runs"),
    ] = []
    known_as: Annotated[
        dict[str, Annotated[str, Field(min_length=1)]],
        BeforeValidator(split_pairs, json_schema_input_type=str | list[str] | dict[str, str]),
        Field(description="metric of your own: column of the known results, where it is not called so"),
        AT_START,
    ] = {}
    workers: Annotated[
        Annotated[int, Field(strict=True, ge=1, le=1024)] | None,
        BeforeValidator(none_word),
        Field(description="Processes that evaluate, one architecture each; none: in this process, a batch at once"),
        FREE,
    ] = None
    asynchronous: Annotated[
        bool,
        Field(
            strict=True, description="Ask whenever a worker is idle; the order of arrival decides what is proposed next"
        ),
        Part("strategy", always=False),
    ] = False
    executor: Annotated[
        str | None,
        BeforeValidator(cluster_address),
        Field(
            description="Cluster that evaluates, dask:tcp://host:8786 or dask:scheduler.json; on the command line alone"
        ),
        Free(recorded=False),
        SingleRun("use --workers"),
    ] = None
    resources: Annotated[
        dict[Name, Annotated[float, Field(gt=0, allow_inf_nan=False)]],
        Field(description="What an evaluation takes of what a cluster's workers declare, such as GPU: 1"),
        FREE,
    ] = {}
    evaluation_timeout: Annotated[
        float | None,
        Field(gt=0),
        BeforeValidator(none_word),
        Field(description="Seconds for one architecture, with workers or an executor"),
        FREE,
    ] = None
    optuna_storage: Annotated[
        Annotated[str, Field(min_length=1)] | None,
        BeforeValidator(none_word),
        Field(description="Database URL or journal file that the run is mirrored into, for optuna-dashboard"),
        FREE,
        SingleRun("mirror single runs"),
    ] = None
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**32, description="Seed of the strategy"), STRATEGY, RUN] = 0

    @property
    def head(self) -> tuple[int, bool]:
        """The vocabulary of every design and whether its tables are one; no vocabulary where it is an axis."""
        if isinstance(self.vocabulary, list) or isinstance(self.tied, list):
            return 0, True
        return self.vocabulary, self.tied

    @model_validator(mode="before")
    @classmethod
    def _without_made(cls, raw: Any) -> Any:
        """A recorded study has no tokens where its text makes them."""
        if not isinstance(raw, Mapping):
            return raw
        return {key: value for key, value in raw.items() if key not in IN_TEXT or value != "none"}

    def head_bytes_at(self, precision: str) -> float | None:
        """Bytes per element of embedding and LM head in a precision, None: the format's own; those of int4 are of int4_kv8 too."""
        if not isinstance(self.head_bytes, dict):
            return self.head_bytes
        return next(
            (self.head_bytes[name] for name in (precision, base_of(precision)) if name in self.head_bytes), None
        )

    @property
    def request_words(self) -> str:
        """`1,024 tokens in, 16 out`, or the text as it was given: `10 kB in, 200 bytes out`."""
        read = f"{self.input_tokens:,} tokens" if self.input_text is None else bytes_in_words(self.input_text)
        written = f"{self.output_tokens:,}" if self.output_text is None else bytes_in_words(self.output_text)
        unit = " tokens" if self.output_text is None and self.input_text is not None else ""
        return f"{read} in, {written}{unit} out"

    @property
    def metric_budgets(self) -> dict[str, Any]:
        """The budgets on metrics, as written; the others are limits on kinds of layers, conditions of the space."""
        return {name: limit for name, limit in self.budgets.items() if name not in CAPABILITIES}

    @property
    def applications_to_answer(self) -> dict[Name, dict[str, Any]]:
        """The study's applications; left out, the paper's where no metric has a limit."""
        if self.applications is not None:
            return self.applications
        limited = any(limit not in ("none", None) for limit in self.metric_budgets.values())
        return {} if limited else PAPER_APPLICATIONS


def marked(kind: type[M]) -> dict[str, M]:
    """The keys of a study with a mark of a kind, each with its mark."""
    return {
        key: mark
        for key, field in StudyConfig.model_fields.items()
        for mark in field.metadata
        if isinstance(mark, kind)
    }
