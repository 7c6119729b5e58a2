"""The keys of a study, each one entry: type, `Key` (group, flag, unit), marks (what it identifies, what may vary it), default, help.

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

from nas.study import recorded
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
    Recorded,
    SingleRun,
    cluster_address,
    labelled,
    none_word,
    our_name,
    split_budgets,
    split_names,
    split_pairs,
    written_bytes,
    written_only,
    written_tokens,
    written_vocabulary,
)
from nas.terminal.flags import DEVICE, OUTPUT, SEARCH, SPACE, Key
from objectives.device import Calibration, Device, Sustained
from objectives.loss_law.precision_cost import PrecisionLaw
from objectives.precision import refuse_format
from objectives.quantities import Name, bytes_in_words, counted
from objectives.weight_formats.table import WeightFormat
from search_spaces.arrays import brief
from search_spaces.axes_schema import CAPABILITIES
from search_spaces.formats import Format, base_of

M = TypeVar("M")
NONE = BeforeValidator(none_word)  # the word that means no value
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


KNOWN_FILE = "known.csv"  # of a run's folder: its config.yaml names it, so that it can be repeated


def given_length(config: "StudyConfig", tokens: str) -> int | None:
    """A length in tokens as it was given; None where text makes it."""
    length: int = getattr(config, tokens)
    return length if getattr(config, IN_TEXT[tokens]) is None else None


def _usable(formats: dict[str, WeightFormat]) -> dict[str, WeightFormat]:
    for name, written in formats.items():
        refuse_format(name, written)
    return formats


def _format(given: Any, shipped: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """The name of a weight format: the study's own, or one that ships."""
    own = info.data.get("formats", (given,))  # where these are wrong, one of them
    return given if isinstance(given, str) and given in own else shipped(our_name(given, "formats"))


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

    def recorded(self, device: Device | None) -> dict[str, Any]:
        """Plain content with the device embedded."""
        return {**self.model_dump(mode="json"), "device": device and device.mapping()}


@brief
class StudyConfig(BaseModel):
    """A study; names refer to shipped spaces, laws and devices, mappings and files give one's own."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)
    name: Annotated[str, Field(pattern=NAME), Key(OUTPUT), FREE] = "paper"
    """Names the run folder."""
    preset: Annotated[Literal["paper", "device"], Key(DEVICE, "--preset", brief=True), ALWAYS] = "paper"
    """Defaults for the study: paper, or device (a real device)."""
    space: Annotated[
        str | dict[str, Any], Key(SPACE, "--space"), Part("space"), Recorded(lambda s: s.problem.space.mapping())
    ] = "paper"
    """Search space: name, YAML file or mapping."""
    only: Annotated[
        dict[str, list[Any]],
        BeforeValidator(written_only, json_schema_input_type=str | list[str] | dict[str, Any]),
        Key(SPACE, "--only", metavar="AXIS=VALUES", kind=list[str], typed="Listed | Mapping[str, Any]"),
        FREE,
        NAMED,
    ] = {}
    """Restrict axes to values or to an inclusive range: n_experts=1, depth=8..24,width=1024,2048."""
    law: Annotated[
        str | dict[str, Any],
        Key(SPACE, "--law", typed="Named | FittedLaw"),
        Part("law"),
        Recorded(lambda s: s.problem.scenario.law.mapping()),
    ] = "hw_codesign"
    """Loss law: name, YAML file or mapping."""
    laws: Annotated[
        list[str | dict[str, Any]],
        BeforeValidator(split_names),
        Key(SPACE, typed="str | Sequence[Named | FittedLaw]"),
        ANSWER,
        Recorded(lambda s: [law.mapping() for law in s.laws[1:]]),
    ] = []
    """Other laws under which the picks' regrets are computed; further priors of prior_guided. Names, files or mappings."""
    outside: Annotated[Literal["mark", "allow", "exclude"], Key(SPACE)] = "allow"
    """Designs unlike anything the law was fitted on: mark (shown, never recommended), allow, or exclude."""
    tokens: Annotated[
        float | list[float] | None,
        BeforeValidator(written_tokens, json_schema_input_type=float | str | list[float | str] | None),
        Key(SPACE, "--tokens", metavar="N[,N…]", typed="Written | Iterable[Written] | None"),
        Recorded(lambda s: s.config.tokens if isinstance(s.config.tokens, float) else None),
    ] = None
    """Training tokens, 10B, for laws that use them; several, 1B,3B,10B, become an axis; default: the law's own."""
    unique_tokens: Annotated[
        float | None,
        BeforeValidator(lambda value: None if value in (None, "none") else counted(value, "10B")),
        Key(SPACE, unit="tokens"),
    ] = None
    """Distinct training tokens, for laws with repeated text; default: the law's own."""
    training: Annotated[
        TrainingConfig, Key(DEVICE), Recorded(lambda s: s.config.training.recorded(s.problem.scenario.training.device))
    ] = TrainingConfig()
    """Where models are trained, and how many tokens they will serve."""
    residual_sd: Annotated[float | None, Field(ge=0), NONE, Key(SPACE, unit="nats"), ANSWER] = None
    """Residual standard deviation of the law; closer designs count as tied."""
    device: Annotated[
        str | dict[str, Any],
        Key(DEVICE, "--device", brief=True),
        Part("device"),
        Recorded(lambda s: s.problem.scenario.device.mapping()),
    ] = "jetson_agx_orin_64gb"
    """Device: id, id@mode, YAML file or mapping."""
    devices: Annotated[
        dict[str, Any],
        BeforeValidator(labelled, json_schema_input_type=str | list[str | dict[str, Any]] | dict[str, Any]),
        Key(DEVICE, typed="Listed | Mapping[str, Named]"),
        NAMED,
        Recorded(
            lambda s: (
                {} if s.config.chip else {name: each.device.mapping() for name, each in s.problem.scenario.devices}
            )
        ),
    ] = {}
    """Devices to choose from, a,b or name: device; they become an axis. Default: `device` alone."""
    chip: Annotated[
        dict[str, Any],
        BeforeValidator(lambda value: {} if value in (None, "none") else value),
        Key(DEVICE, typed="Mapping[str, Any] | None"),
        NAMED,
    ] = {}
    """Chips to choose from: figures as lists, {from, to, step} or formulas, with base, columns, where."""
    device_columns: Annotated[
        str | dict[str, dict[str, Any]],
        BeforeValidator(lambda value: {} if value in (None, "none") else value),
        Key(DEVICE),
        AT_START,
        NAMED,
        Recorded(lambda s: None),  # the devices hold them
    ] = {}
    """Device figures to use as metrics: CSV with the columns device, price [USD] and others, or {device: {price: 249 USD}}."""
    formats: Annotated[
        dict[Name, WeightFormat],
        AfterValidator(_usable),
        PlainSerializer(
            lambda formats: {n: f.model_dump(mode="json", exclude_defaults=True) for n, f in formats.items()}
        ),
        Key(SPACE),
        NAMED,
    ] = {}
    """Weight formats of your own that precision may name, as in a plug-in's file."""
    precision: Annotated[
        Format,
        WrapValidator(_format),
        PlainSerializer(str),
        Key(DEVICE, "--precision", brief=True, typed="str"),
        ALWAYS,
        CASE,
    ] = "fp16"
    """fp16, fp8, int8, int4, nvfp4, fp32; w4a16 (AWQ, GPTQ); llama.cpp's q2_k to q8_0, iq4_xs, mxfp4; mlx_4bit, mlx_6bit, mlx_8bit; _kv8, _kv4: a KV cache of as many bits."""
    precisions: Annotated[
        list[Format],
        BeforeValidator(lambda v: our_name(split_names(v), "formats")),
        Key(SPACE, "--precisions"),
        Recorded(lambda s: []),
    ] = []
    """Formats to choose from, a,b,c; they become an axis. Default: `precision` alone."""
    precision_law: Annotated[
        list[PrecisionLaw], BeforeValidator(lambda value: [] if value == "none" else split_names(value)), Key(SPACE)
    ] = []
    """How much loss low precision adds; several are alternatives; none ignores it."""
    deltas: Annotated[
        str | dict[str, Any], Key(SPACE), Recorded(lambda s: "none" if s.problem.space.mixed else {})
    ] = {}
    """Loss that a kind of layers adds if all layers are of it, {kind: nats}, or a file; none ignores it. {}: from published pairs."""
    latency: Annotated[Literal["operator", "closed_form"], Key(DEVICE), ALWAYS, CASE] = "operator"
    """Latency model: operator or closed_form."""
    attention: Annotated[Literal["unfused", "fused"], Key(DEVICE), ALWAYS, CASE] = "unfused"
    """Attention kernel: unfused (scores go through memory) or fused."""
    causal: Annotated[bool, Field(strict=True), Key(DEVICE), ALWAYS, CASE] = False
    """Skip the masked half of prefill attention."""
    complete: Annotated[bool, Field(strict=True), Key(DEVICE), ALWAYS, CASE] = False
    """Add residuals, RoPE, expert combination."""
    vocabulary: Annotated[
        Vocabulary | list[Vocabulary],
        BeforeValidator(written_vocabulary, json_schema_input_type=int | str | list[int | str]),
        Key(DEVICE, "--vocabulary", metavar="N[,N…]", brief=True, typed="int | str | Sequence[int | str]"),
        ALWAYS,
        CASE,
    ] = 0
    """Vocabulary size, 32k; 0: no embedding and LM head; several, 8k,16k,32k, become an axis."""
    tied: Annotated[StrictBool | list[StrictBool], Key(DEVICE, typed="bool | Sequence[bool]"), ALWAYS, CASE] = True
    """Embedding and LM head share one table; [true, false] becomes an axis."""
    token_curve: Annotated[str | dict[str, Any], Key(DEVICE), Part(always=False), Recorded(recorded.curve)] = (
        "slimpajama"
    )
    """Bytes of text per token by vocabulary: name, file or mapping (recipe: docs/vocabulary.md)."""
    head_bytes: Annotated[HeadBytes | None, NONE, Key(DEVICE, typed="Number | Mapping[str, Number]"), ALWAYS, CASE] = (
        None
    )
    """Bytes per element of embedding and LM head, else the format's own; {int4: 1}: by precision."""
    int4_group_size: Annotated[Count | None, NONE, Key(DEVICE), ALWAYS, CASE] = None
    """Weights per scale under int4."""
    calibration: Annotated[
        Literal["datasheet", "shipped", "typical"] | Calibration,
        BeforeValidator(lambda value: "datasheet" if value == "none" else value),
        Key(DEVICE, typed="Named"),
        ALWAYS,
        Recorded(lambda s: recorded.calibration(s, s.problem.scenario)),
    ] = "datasheet"
    """Speeds: typical (measured, else typical of the chip), shipped (measured only) or datasheet (full peaks)."""
    engine: Annotated[Annotated[str, Field(max_length=60)] | None, NONE, Key(DEVICE), CASE] = None
    """Inference engine to predict, llama.cpp; default: any that was measured."""
    prefill_chunk: Annotated[Count | Literal["engine"] | None, NONE, Key(DEVICE, unit="tokens"), CASE] = None
    """Prompt tokens processed at once: a number, engine (llama.cpp 512, MLX 2048, others 8192), or none for all."""
    serving: Annotated[ServingConfig, Key(DEVICE), Recorded(recorded.serving)] = ServingConfig()
    """Tokens drafted ahead, experts in slow memory, a chip for prompts."""
    sustained: Annotated[
        StrictBool | Sustained,
        Key(DEVICE, typed="bool | Number | Mapping[str, Any]"),
        CASE,
        NAMED,
        Recorded(lambda s: s.problem.scenario.sustained and s.problem.scenario.sustained.model_dump(mode="json")),
    ] = False
    """Speed after minutes of load: true (from the device's file or its cooling), or a share such as 0.7."""
    batch: Annotated[int, Field(strict=True, ge=1, le=10**6), Key(DEVICE), ALWAYS, CASE] = 1
    """Sequences at once."""
    input_tokens: Annotated[
        Tokens,
        Key(DEVICE, "--input-tokens", kind=int, unit="tokens", brief=True),
        ALWAYS,
        CASE,
        Recorded(lambda s: given_length(s.config, "input_tokens")),
    ] = 1024
    """Prompt length."""
    output_tokens: Annotated[
        Tokens,
        Key(DEVICE, "--output-tokens", kind=int, unit="tokens", brief=True),
        ALWAYS,
        CASE,
        Recorded(lambda s: given_length(s.config, "output_tokens")),
    ] = 16
    """Answer generated."""
    input_text: Annotated[TextBytes, Key(DEVICE), CASE] = None
    """Prompt in bytes of text, 10kB, in place of input_tokens."""
    output_text: Annotated[TextBytes, Key(DEVICE), CASE] = None
    """Text generated, bytes, in place of output_tokens."""
    objectives: Annotated[
        list[str],
        BeforeValidator(lambda v: our_name(split_names(v), "objectives.metrics")),
        Field(min_length=1),
        Key(SPACE, "--objectives", typed="Metrics"),
        Part("objectives"),
        Recorded(lambda s: [objective.name for objective in s.problem.objectives]),
    ] = ["loss", "total_ms"]
    """Metrics to minimise: loss,total_ms,package.module:function."""
    budgets: Annotated[
        dict[str, Any],
        BeforeValidator(split_budgets, json_schema_input_type=str | list[str] | dict[str, Any]),
        Key(SPACE, "--budget", metavar="METRIC=LIMIT", kind=list[str], brief=True, typed="Mapping[str, Any] | Listed"),
        Part("budgets"),
        Recorded(lambda s: {budget.metric: budget.limit for budget in s.problem.budgets}),
    ] = {}
    """A limit: metric=LIMIT (at most), or metric>=LIMIT for a rate (at least); metric=none removes it."""
    columns: Annotated[
        list[str],
        BeforeValidator(split_names),
        Key(SPACE, typed="Metrics"),
        Part("objectives", always=False),
        Recorded(lambda s: list(s.problem.columns)),
    ] = []
    """Further metrics to compute: shipped ones, or figures of the device."""
    train: Annotated[TrainSettings | None, NONE, Key(SPACE), Part("objectives", always=False)] = None
    """How the objective train trains."""
    measure: Annotated[MeasureSettings | None, NONE, Key(SPACE), Part("objectives", always=False)] = None
    """How the objective measure measures."""
    default_budget: Annotated[
        DefaultBudget | None,
        NONE,
        Key(SPACE, typed="Mapping[str, Any] | str | None"),
        AT_START,
        Recorded(lambda s: "none"),
    ] = DefaultBudget()
    """Memory budget unless removed."""
    applications: Annotated[
        dict[Name, dict[str, Any]] | None,
        Key(OUTPUT, typed="Mapping[str, Mapping[str, Any]] | str | None"),
        ANSWER,
        Recorded(
            lambda s: {
                q.label: {q.budget.metric: q.budget.limit} for q in s.problem.queries if q.budget and not q.baseline
            }
        ),
    ] = None
    """Applications with their limits, name: {metric: limit}, each answered with a pick; default: the paper's four if there is no budget."""
    baselines: Annotated[
        list[str | dict[str, Any]],
        BeforeValidator(split_names),
        Key(OUTPUT, typed="str | Sequence[Named]"),
        ANSWER,
        Recorded(lambda s: [baseline.mapping() for baseline in s.baselines]),
    ] = ["qwen2.5_0.5b"]
    """Models to compare with: published names, columns, {config: config.json}, nearest to the limits."""
    algo: Annotated[
        str, BeforeValidator(lambda v: our_name(v, "nas.strategies")), Key(SEARCH, "--algo", brief=True), STRATEGY, RUN
    ] = "nsga2"
    """Strategy: 'plas list strategies' names them, package.module is your own, auto picks one."""
    auto: Annotated[str, Key(SEARCH), FREE, NAMED] = ""
    """Why algo was picked: auto writes it."""
    params: Annotated[
        dict[str, Any],
        Key(SEARCH, "--param", metavar="NAME=VALUE", kind=list[str]),
        STRATEGY,
        RUN,
        Recorded(lambda s: s.parameters.model_dump(mode="json")),
    ] = {}
    """The strategy's own parameters: 'plas list --schema nsga2'."""
    evaluations: Annotated[Count | None, NONE, Key(SEARCH, "--evaluations", kind=int), FREE] = None
    """Distinct architectures to evaluate; default: 5000, or the strategy's own."""
    time_limit: Annotated[
        float | None, Field(gt=0), NONE, Key(SEARCH, "--time-limit", kind=float, unit="seconds"), FREE
    ] = None
    """Time of the search."""
    stop_when_stable: Annotated[Count | None, NONE, Key(SEARCH), FREE] = None
    """Stop after so many evaluations without a new frontier member."""
    constraints: Annotated[
        Literal["native", "penalty", "reject"] | None, NONE, Key(SEARCH), STRATEGY, Recorded(lambda s: s.handling)
    ] = None
    """How budgets reach the strategy; left out: native where it can, else penalty."""
    penalty_weight: Annotated[float, Field(gt=0, le=1000000000.0), Key(SEARCH), STRATEGY] = 10.0
    """Weight of violations under constraints: penalty."""
    seed_from: Annotated[
        str | list[dict[str, Any]] | None,
        NONE,
        Key(SEARCH, typed="str | Path | Sequence[Mapping[str, Any]] | None"),
        STRATEGY,
        Recorded(lambda s: recorded.start_rows(s) or None),
    ] = None
    """Candidate file to start from."""
    known: Annotated[
        list[Annotated[str, Field(min_length=1)]],
        BeforeValidator(split_names),
        Key(SEARCH, typed="str | Path | Sequence[str | Path]"),
        AT_START,
        SingleRun("give them to single runs"),
        Recorded(lambda s: [] if s.known is None else [KNOWN_FILE]),
    ] = []
    """Results that are known already: tables, run folders, Optuna storages in files."""
    known_as: Annotated[
        dict[str, Annotated[str, Field(min_length=1)]],
        BeforeValidator(split_pairs, json_schema_input_type=str | list[str] | dict[str, str]),
        Key(SEARCH, typed="Mapping[str, str]"),
        AT_START,
        Recorded(lambda s: {}),
    ] = {}
    """metric of your own: column of the known results, where it is not called so."""
    workers: Annotated[
        Annotated[int, Field(strict=True, ge=1, le=1024)] | None, NONE, Key(SEARCH, "--workers", kind=int), FREE
    ] = None
    """Worker processes, one architecture each; none: evaluate batches in this process."""
    asynchronous: Annotated[bool, Field(strict=True), Key(SEARCH), Part("strategy", always=False)] = False
    """Ask whenever a worker is idle; the order of arrival decides what is proposed next."""
    executor: Annotated[
        str | None,
        BeforeValidator(cluster_address),
        Key(SEARCH),
        Free(recorded=False),
        SingleRun("use --workers"),
        Recorded(lambda s: None),  # named again by whoever goes on with the run
    ] = None
    """Cluster that evaluates, dask:tcp://host:8786 or dask:scheduler.json; on the command line alone."""
    resources: Annotated[
        dict[Name, Annotated[float, Field(gt=0, allow_inf_nan=False)]], Key(SEARCH, typed="Mapping[str, Number]"), FREE
    ] = {}
    """What an evaluation takes of what a cluster's workers declare, such as GPU: 1."""
    evaluation_timeout: Annotated[float | None, Field(gt=0), NONE, Key(SEARCH, unit="seconds"), FREE] = None
    """Time for one architecture, with workers or an executor."""
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**32), Key(SEARCH, "--seed", kind=int), STRATEGY, RUN] = 0
    """Seed of the strategy."""

    @property
    def head(self) -> tuple[int, bool]:
        """The vocabulary of every design and whether its tables are one; no vocabulary where it is an axis."""
        if isinstance(self.vocabulary, list) or isinstance(self.tied, list):
            return 0, True
        return self.vocabulary, self.tied

    @model_validator(mode="before")
    @classmethod
    def _without_made(cls, raw: Any) -> Any:
        """A recorded study has no tokens where its text makes them; earlier versions recorded that a run had no mirror."""
        if not isinstance(raw, Mapping):
            return raw
        keys = (*IN_TEXT, "optuna_storage")
        return {key: v for key, v in raw.items() if key not in keys or v != "none"}

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
