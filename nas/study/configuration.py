"""The keys of a study, each one entry: type, `Key` (help, group, flag), marks (what it identifies, what may vary it), default.

Flags, their help, the JSON schema, the types of `load_study` and what `--resume` refuses follow from it.
"""

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
    written_only,
    written_tokens,
    written_vocabulary,
)
from nas.terminal.flags import DEVICE, OUTPUT, SEARCH, SPACE, Key
from objectives.device import Calibration, Sustained
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
    """A budget that stands unless the study removes it: metric <= share · the device's memory."""

    model_config = ConfigDict(extra="forbid")
    metric: Literal["memory_gb", "resident_gb"] = "memory_gb"
    share: Annotated[float, Field(gt=0, le=1)] = 1.0

    def on(self, memory_gb: float | None) -> tuple[str, float]:
        """The metric and its limit on a device of so much memory, GB; of several devices (None) on the share of each one's own."""
        if memory_gb is None:
            return self.metric.replace("_gb", "_share"), self.share
        return self.metric, self.share * memory_gb


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
    name: Annotated[str, Field(pattern=NAME), Key("Names the run folder", OUTPUT), FREE] = "paper"
    preset: Annotated[
        Literal["paper", "device"],
        Key("Conventions: the paper's, or a real device's", DEVICE, "--preset", brief=True),
        ALWAYS,
    ] = "paper"
    space: Annotated[
        str | dict[str, Any],
        Key("Search space: name, YAML file or mapping", SPACE, "--space", typed="Named"),
        Part("space"),
    ] = "paper"
    only: Annotated[
        dict[str, list[Any]],
        BeforeValidator(written_only, json_schema_input_type=str | list[str] | dict[str, Any]),
        Key(
            "Axes narrowed to values, by comma, or to a range with both its ends: n_experts=1, depth=8..24,width=1024,2048",
            SPACE,
            "--only",
            metavar="AXIS=VALUES",
            kind=list[str],
            typed="Listed | Mapping[str, Any]",
        ),
        FREE,
        NAMED,
    ] = {}
    law: Annotated[
        str | dict[str, Any],
        Key("Loss law: name, YAML file or mapping", SPACE, "--law", typed="Named | FittedLaw"),
        Part("law"),
    ] = "hw_codesign"
    laws: Annotated[
        list[str | dict[str, Any]],
        BeforeValidator(split_names),
        Key(
            "Other laws: regrets of exact picks under each; further priors of prior_guided; names, files or mappings",
            SPACE,
            typed="str | Sequence[Named | FittedLaw]",
        ),
        ANSWER,
    ] = []
    outside: Annotated[
        Literal["mark", "allow", "exclude"],
        Key("Designs outside of what the law's rows cover: mark (shown, never recommended), allow, or exclude", SPACE),
    ] = "allow"
    tokens: Annotated[
        float | list[float] | None,
        BeforeValidator(written_tokens, json_schema_input_type=float | str | list[float | str] | None),
        Key(
            "Tokens of training, 10B, of laws that depend on them; several, 1B,3B,10B, are an axis; left out: the law's own",
            SPACE,
            "--tokens",
            metavar="N[,N…]",
            typed="Written | Iterable[Written] | None",
        ),
    ] = None
    unique_tokens: Annotated[
        float | None,
        BeforeValidator(lambda value: None if value in (None, "none") else counted(value, "10B")),
        Key(
            "Distinct text, of laws that know of repeated text; left out: the law's own",
            SPACE,
            unit="tokens",
            typed="Written | None",
        ),
    ] = None
    training: Annotated[
        TrainingConfig, Key("Where models are trained, and how much they will serve", DEVICE, typed="Mapping[str, Any]")
    ] = TrainingConfig()
    scores: Annotated[
        str | dict[str, Any] | None,
        BeforeValidator(none_word),
        Key(
            "Scores of tasks by bits per byte, shown beside losses: file of 'plas fit --scores'; none",
            SPACE,
            typed="Named | None",
        ),
        ANSWER,
        NAMED,
    ] = None
    residual_sd: Annotated[
        float | None,
        Field(ge=0),
        BeforeValidator(none_word),
        Key(
            "Residual sd of the law: designs closer than it can distinguish are tied",
            SPACE,
            unit="nats",
            typed="Written | None",
        ),
        ANSWER,
    ] = None
    device: Annotated[
        str | dict[str, Any],
        Key("Device: id, id@mode, YAML file or mapping", DEVICE, "--device", brief=True, typed="Named"),
        Part("device"),
    ] = "jetson_agx_orin_64gb"
    devices: Annotated[
        dict[str, Any],
        BeforeValidator(labelled, json_schema_input_type=str | list[str | dict[str, Any]] | dict[str, Any]),
        Key(
            "Devices that designs may be on, a,b or name: device, an axis of the space; left out: `device` alone",
            DEVICE,
            typed="Listed | Mapping[str, Named]",
        ),
        NAMED,
    ] = {}
    chip: Annotated[
        dict[str, Any],
        BeforeValidator(lambda value: {} if value in (None, "none") else value),
        Key(
            "Genes of chips that designs may be on: figures as lists, {from, to, step} or formulas, base, columns, where",
            DEVICE,
            typed="Mapping[str, Any] | None",
        ),
        NAMED,
    ] = {}
    device_columns: Annotated[
        str | dict[str, dict[str, Any]],
        BeforeValidator(lambda value: {} if value in (None, "none") else value),
        Key(
            "Figures of devices that are metrics by their names: CSV with a column device, price [USD] and others, or {device: {price: 249 USD}}",
            DEVICE,
            typed="Named",
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
        Key(
            "Weight formats of your own that precision may name, as in a plug-in's file",
            SPACE,
            typed="Mapping[str, Any]",
        ),
        NAMED,
    ] = {}
    precision: Annotated[
        Format,
        WrapValidator(_format),
        PlainSerializer(str),
        Key(
            "fp16, int8, int4, nvfp4, fp32; w4a16 (AWQ, GPTQ); llama.cpp's q4_0, q4_k_m, q5_k_m, q6_k, q8_0, mxfp4; _kv8, _kv4: with a KV cache of as many bits",
            DEVICE,
            "--precision",
            brief=True,
            typed="str",
        ),
        ALWAYS,
        CASE,
    ] = "fp16"
    precisions: Annotated[
        list[Format],
        BeforeValidator(split_names),
        Key(
            "Formats that designs may have, a,b,c: an axis of the space; left out: `precision` alone",
            SPACE,
            "--precisions",
            typed="Listed",
        ),
    ] = []
    precision_law: Annotated[
        list[PrecisionLaw],
        BeforeValidator(lambda value: [] if value == "none" else split_names(value)),
        Key("What few bits cost in loss; further ones are alternatives; none: nothing", SPACE, typed="Listed"),
    ] = []
    deltas: Annotated[
        str | dict[str, Any],
        Key(
            "kind of layers: nats where all are of it, as you measured; a file; none. {}: by public pairs",
            SPACE,
            typed="Named",
        ),
    ] = {}
    latency: Annotated[
        Literal["operator", "closed_form"], Key("Latency model: operator or closed_form", DEVICE), ALWAYS, CASE
    ] = "operator"
    attention: Annotated[
        Literal["unfused", "fused"], Key("Whether scores leave the chip: unfused or fused", DEVICE), ALWAYS, CASE
    ] = "unfused"
    causal: Annotated[
        bool, Field(strict=True), Key("Skip the masked half of prefill attention", DEVICE), ALWAYS, CASE
    ] = False
    complete: Annotated[
        bool, Field(strict=True), Key("Add residuals, RoPE, expert combination", DEVICE), ALWAYS, CASE
    ] = False
    vocabulary: Annotated[
        Vocabulary | list[Vocabulary],
        BeforeValidator(written_vocabulary, json_schema_input_type=int | str | list[int | str]),
        Key(
            "Tokens of embedding and LM head, 32k; 0 leaves both out; several, 8k,16k,32k, are an axis",
            DEVICE,
            "--vocabulary",
            metavar="N[,N…]",
            brief=True,
            typed="int | str | Sequence[int | str]",
        ),
        ALWAYS,
        CASE,
    ] = 0
    tied: Annotated[
        StrictBool | list[StrictBool],
        Key("One table for embedding and LM head; [true, false] is an axis", DEVICE, typed="bool | Sequence[bool]"),
        ALWAYS,
        CASE,
    ] = True
    token_curve: Annotated[
        str | dict[str, Any],
        Key(
            "Bytes of text per token by vocabulary: name, file or mapping (recipe: docs/vocabulary.md)",
            DEVICE,
            typed="Named",
        ),
        Part(always=False),
    ] = "slimpajama"
    head_bytes: Annotated[
        HeadBytes | None,
        BeforeValidator(none_word),
        Key(
            "Bytes per element of embedding and LM head, else the format's own; {int4: 1}: by precision",
            DEVICE,
            typed="Number | Mapping[str, Number]",
        ),
        ALWAYS,
        CASE,
    ] = None
    int4_group_size: Annotated[
        Count | None, BeforeValidator(none_word), Key("Weights per scale under int4", DEVICE), ALWAYS, CASE
    ] = None
    calibration: Annotated[
        Literal["datasheet", "shipped", "typical"] | Calibration,
        BeforeValidator(lambda value: "datasheet" if value == "none" else value),
        Key(
            "Share of the datasheet: typical (measured, else typical of the chip), shipped (measured alone) or datasheet, all of it",
            DEVICE,
            typed="Named",
        ),
        ALWAYS,
    ] = "datasheet"
    engine: Annotated[
        Annotated[str, Field(max_length=60)] | None,
        BeforeValidator(none_word),
        Key(
            "Engine whose times are predicted, llama.cpp; left out: whichever was measured", DEVICE, typed="str | None"
        ),
        CASE,
    ] = None
    serving: Annotated[
        ServingConfig,
        Key("Tokens drafted ahead, experts in slow memory, a chip for prompts", DEVICE, typed="Mapping[str, Any]"),
    ] = ServingConfig()
    sustained: Annotated[
        StrictBool | Sustained,
        Key(
            "Speed after minutes of load, not of the first seconds: by the device's file or its cooling; 0.7: that share of it",
            DEVICE,
            typed="bool | Number | Mapping[str, Any]",
        ),
        CASE,
        NAMED,
    ] = False
    batch: Annotated[int, Field(strict=True, ge=1, le=10**6), Key("Sequences at once", DEVICE), ALWAYS, CASE] = 1
    input_tokens: Annotated[
        Tokens, Key("Prompt length", DEVICE, "--input-tokens", kind=int, unit="tokens", brief=True), ALWAYS, CASE
    ] = 1024
    output_tokens: Annotated[
        Tokens, Key("Answer generated", DEVICE, "--output-tokens", kind=int, unit="tokens", brief=True), ALWAYS, CASE
    ] = 16
    input_text: Annotated[
        TextBytes, Key("Prompt in bytes of text, 10kB, in place of input_tokens", DEVICE, typed="Written | None"), CASE
    ] = None
    output_text: Annotated[
        TextBytes, Key("Text generated, bytes, in place of output_tokens", DEVICE, typed="Written | None"), CASE
    ] = None
    objectives: Annotated[
        list[str],
        BeforeValidator(split_names),
        Field(min_length=1),
        Key("Metrics to minimise: loss,total_ms,package.module:function", SPACE, "--objectives", typed="Metrics"),
        Part("objectives"),
    ] = ["loss", "total_ms"]
    budgets: Annotated[
        dict[str, Any],
        BeforeValidator(split_budgets, json_schema_input_type=str | list[str] | dict[str, Any]),
        Key(
            "metric=limit, at most; of a rate metric>=limit, at least; none removes one",
            SPACE,
            "--budget",
            metavar="METRIC=LIMIT",
            kind=list[str],
            brief=True,
            typed="Mapping[str, Any] | Listed",
        ),
        Part("budgets"),
    ] = {}
    columns: Annotated[
        list[str],
        BeforeValidator(split_names),
        Key("Metrics to compute and keep besides the ten: shipped ones, figures of the device", SPACE, typed="Metrics"),
        Part("objectives", always=False),
    ] = []
    train: Annotated[
        TrainSettings | None,
        BeforeValidator(none_word),
        Key("How the objective train trains", SPACE, typed="Mapping[str, Any] | None"),
        Part("objectives", always=False),
    ] = None
    measure: Annotated[
        MeasureSettings | None,
        BeforeValidator(none_word),
        Key("How the objective measure measures", SPACE, typed="Mapping[str, Any] | None"),
        Part("objectives", always=False),
    ] = None
    default_budget: Annotated[
        DefaultBudget | None,
        BeforeValidator(none_word),
        Key("Memory budget unless removed", SPACE, typed="Mapping[str, Any] | str | None"),
        AT_START,
    ] = DefaultBudget()
    applications: Annotated[
        dict[Name, dict[str, Any]] | None,
        Key(
            "name: {metric: limit} answered with a pick each; left out: the paper's four where no budget is given",
            OUTPUT,
            typed="Mapping[str, Mapping[str, Any]] | str | None",
        ),
        ANSWER,
    ] = None
    baselines: Annotated[
        list[str | dict[str, Any]],
        BeforeValidator(split_names),
        Key(
            "Models to compare with: published names, columns, {config: config.json}",
            OUTPUT,
            typed="str | Sequence[Named]",
        ),
        ANSWER,
    ] = ["qwen2.5_0.5b"]
    algo: Annotated[
        str,
        Key(
            "Strategy: 'plas list strategies' names them, package.module is your own, auto picks one",
            SEARCH,
            "--algo",
            brief=True,
        ),
        STRATEGY,
        RUN,
    ] = "nsga2"
    auto: Annotated[str, Key("Why algo was picked: auto writes it", SEARCH), FREE, NAMED] = ""
    params: Annotated[
        dict[str, Any],
        Key(
            "The strategy's own parameters: 'plas list --schema nsga2'",
            SEARCH,
            "--param",
            metavar="NAME=VALUE",
            kind=list[str],
            typed="Mapping[str, Any]",
        ),
        STRATEGY,
        RUN,
    ] = {}
    evaluations: Annotated[
        Count | None,
        BeforeValidator(none_word),
        Key(
            "Distinct architectures to evaluate; left out: 5000, or the strategy's own",
            SEARCH,
            "--evaluations",
            kind=int,
        ),
        FREE,
    ] = None
    time_limit: Annotated[
        float | None,
        Field(gt=0),
        BeforeValidator(none_word),
        Key("Time of the search", SEARCH, "--time-limit", kind=float, unit="seconds", typed="Written | None"),
        FREE,
    ] = None
    stop_when_stable: Annotated[
        Count | None,
        BeforeValidator(none_word),
        Key("Stop after so many evaluations without a new frontier member", SEARCH),
        FREE,
    ] = None
    constraints: Annotated[
        Literal["native", "penalty", "reject"] | None,
        BeforeValidator(none_word),
        Key("How budgets reach the strategy; left out: native where it can, else penalty", SEARCH),
        STRATEGY,
    ] = None
    penalty_weight: Annotated[
        float,
        Field(gt=0, le=1000000000.0),
        Key("Weight of violations under constraints: penalty", SEARCH, typed="Number"),
        STRATEGY,
    ] = 10.0
    seed_from: Annotated[
        str | list[dict[str, Any]] | None,
        BeforeValidator(none_word),
        Key("Candidate file to start from", SEARCH, typed="str | Path | Sequence[Mapping[str, Any]] | None"),
        STRATEGY,
    ] = None
    known: Annotated[
        list[Annotated[str, Field(min_length=1)]],
        BeforeValidator(split_names),
        Key(
            "Results that are known already: tables, run folders, Optuna storages in files",
            SEARCH,
            typed="str | Path | Sequence[str | Path]",
        ),
        AT_START,
        SingleRun("give them to single runs"),
    ] = []
    known_as: Annotated[
        dict[str, Annotated[str, Field(min_length=1)]],
        BeforeValidator(split_pairs, json_schema_input_type=str | list[str] | dict[str, str]),
        Key(
            "metric of your own: column of the known results, where it is not called so",
            SEARCH,
            typed="Mapping[str, str]",
        ),
        AT_START,
    ] = {}
    workers: Annotated[
        Annotated[int, Field(strict=True, ge=1, le=1024)] | None,
        BeforeValidator(none_word),
        Key(
            "Processes that evaluate, one architecture each; none: in this process, a batch at once",
            SEARCH,
            "--workers",
            kind=int,
        ),
        FREE,
    ] = None
    asynchronous: Annotated[
        bool,
        Field(strict=True),
        Key("Ask whenever a worker is idle; the order of arrival decides what is proposed next", SEARCH),
        Part("strategy", always=False),
    ] = False
    executor: Annotated[
        str | None,
        BeforeValidator(cluster_address),
        Key("Cluster that evaluates, dask:tcp://host:8786 or dask:scheduler.json; on the command line alone", SEARCH),
        Free(recorded=False),
        SingleRun("use --workers"),
    ] = None
    resources: Annotated[
        dict[Name, Annotated[float, Field(gt=0, allow_inf_nan=False)]],
        Key(
            "What an evaluation takes of what a cluster's workers declare, such as GPU: 1",
            SEARCH,
            typed="Mapping[str, Number]",
        ),
        FREE,
    ] = {}
    evaluation_timeout: Annotated[
        float | None,
        Field(gt=0),
        BeforeValidator(none_word),
        Key("Time for one architecture, with workers or an executor", SEARCH, unit="seconds", typed="Written | None"),
        FREE,
    ] = None
    optuna_storage: Annotated[
        Annotated[str, Field(min_length=1)] | None,
        BeforeValidator(none_word),
        Key(
            "Database URL or journal file that the run is mirrored into, for optuna-dashboard",
            SEARCH,
            typed="str | None",
        ),
        FREE,
        SingleRun("mirror single runs"),
    ] = None
    seed: Annotated[
        int, Field(strict=True, ge=0, lt=2**32), Key("Seed of the strategy", SEARCH, "--seed", kind=int), STRATEGY, RUN
    ] = 0

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
