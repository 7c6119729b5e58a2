"""Flags of commands: a request is a dataclass whose fields are flags; those that are keys of a study stand in one table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SEARCH, SPACE, DEVICE, OUTPUT = "How to search", "What to search", "On what", "Output"


@dataclass(frozen=True)
class Flag:
    """A flag: `--name`, its help, its group there, what stands for its value, its bounds.

    `--no-x` of a field whose default is True switches it off. `kind` is the value's type where no field says it: in a table.
    """

    name: str
    help: str | None = None
    group: str | None = None
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    show_default: bool = True
    kind: Any = str


@dataclass(frozen=True)
class Word:
    """A word without a flag: a file, a folder, a name."""

    help: str
    metavar: str | None = None
    show_default: bool = False


@dataclass(frozen=True)
class Keys:
    """Flags from the table of a study's keys that one field takes in: those given, by their keys.

    names: keys in the order of the help, separated by blanks; the name of another field stands for that field's flag.
    own: keys that this command says otherwise.
    """

    names: str
    own: Mapping[str, Flag] = field(default_factory=dict)

    def flags(self) -> dict[str, Flag]:
        """Flag of each key; fields that are named for their place are left out."""
        table = {**STUDY, **self.own}
        return {name: table[name] for name in self.names.split() if name in table}


Config = Flag("--config", "A study: YAML file, run folder, or a shipped name.", SPACE)
Settings = Flag("--set", "path=value, any key of the study; repeats.", SPACE, "PATH=VALUE")
Verbose = Flag("--verbose", "Everything that the one screen leaves out.", OUTPUT)
Quiet = Flag("--quiet", "No progress, no notices.", OUTPUT)
NoPlots = Flag("--no-plots", "Draw no pictures; those already there stay.", OUTPUT)
Json = Flag("--json", "Print the result as JSON.", OUTPUT)
Selected = Flag(
    "--select",
    "frontier, best, knee, diverse:K or budget:metric=limit; left out: a run's frontier, all of a file.",
    show_default=False,
)

STUDY = {
    "algo": Flag(
        "--algo",
        "Strategy: 'plas list strategies' names them, package.module is your own, auto picks one; default nsga2.",
        SEARCH,
    ),
    "evaluations": Flag(
        "--evaluations", "Distinct architectures to evaluate; default 5000, or the strategy's own.", SEARCH, kind=int
    ),
    "time_limit": Flag("--time-limit", "Seconds of search.", SEARCH, kind=float),
    "stop_when_stable": Flag(
        "--stop-when-stable", "Stop after N evaluations without a new frontier member.", SEARCH, "N", kind=int
    ),
    "constraints": Flag("--constraints", "native, penalty or reject: how budgets reach the strategy.", SEARCH),
    "seed_from": Flag("--seed-from", "Candidate file whose designs the search starts from.", SEARCH, "FILE"),
    "known": Flag(
        "--known",
        "Results that are known: a table, a run, a folder of trainings, an Optuna storage; not charged; repeats.",
        SEARCH,
        "SOURCE",
        kind=list[str],
    ),
    "known_as": Flag(
        "--known-as",
        "Which column of known results is a metric of your own, where it is not called so; repeats.",
        SEARCH,
        "METRIC=COLUMN",
        kind=list[str],
    ),
    "workers": Flag(
        "--workers", "Processes that evaluate your own objectives, one architecture each.", SEARCH, kind=int
    ),
    "executor": Flag(
        "--executor",
        "Cluster that evaluates them instead: dask:tcp://host:8786, or dask:scheduler.json; none: here.",
        SEARCH,
        "URL",
    ),
    "asynchronous": Flag(
        "--asynchronous",
        "Ask whenever a worker is idle, in the order of arrival; of strategies that need not wait.",
        SEARCH,
        kind=bool,
    ),
    "optuna_storage": Flag(
        "--optuna-storage",
        "Mirror the run into an Optuna storage (sqlite:///study.db, study.log) for optuna-dashboard.",
        SEARCH,
        "URL",
    ),
    "seed": Flag("--seed", "Seed of the strategy; default 0.", SEARCH, kind=int),
    "params": Flag(
        "--param", "The strategy's own: 'plas list --schema nsga2'; repeats.", SEARCH, "NAME=VALUE", kind=list[str]
    ),
    "space": Flag("--space", "Search space: name or YAML file; default paper.", SPACE),
    "law": Flag("--law", "Loss law: name or YAML file; default hw_codesign.", SPACE),
    "laws": Flag(
        "--laws", "Other laws, a,b,c: what each would pick, regrets, the least worst; 'plas list laws'.", SPACE
    ),
    "tokens": Flag(
        "--tokens", "Training tokens, 10B; several, 1B,3B,10B, are an axis; default the law's own.", SPACE, "N[,N…]"
    ),
    "unique_tokens": Flag(
        "--unique-tokens",
        "Tokens of distinct text, more are epochs; of laws that know of them: data_limited.",
        SPACE,
        "N",
    ),
    "precisions": Flag("--precisions", "Formats that designs may have, a,b,c: an axis of the space.", SPACE),
    "precision_law": Flag(
        "--precision-law",
        "What few bits cost: qat, multiplier, kumar or post_training; further ones, a,b, are alternatives; default none.",
        SPACE,
    ),
    "deltas": Flag(
        "--deltas", "YAML file of what kinds of layers cost, as you measured, or none; default by public pairs.", SPACE
    ),
    "scores": Flag(
        "--scores", "Scores of tasks, shown beside losses: YAML file of 'plas fit --scores'; default none.", SPACE
    ),
    "objectives": Flag(
        "--objectives",
        "Metrics to minimise: loss,total_ms,package.module:function; default loss,total_ms.",
        SPACE,
    ),
    "budgets": Flag(
        "--budget",
        "metric=limit, at most; repeats; memory_gb=none removes the default.",
        SPACE,
        "METRIC=LIMIT",
        kind=list[str],
    ),
    "columns": Flag(
        "--columns",
        "Metrics to compute and keep besides the ten: train_hours, a figure of the device such as price.",
        SPACE,
        "NAME[,NAME…]",
    ),
    "preset": Flag(
        "--preset",
        "paper or device: conventions of latency and memory; default paper, whose defaults are named below.",
        DEVICE,
    ),
    "device": Flag("--device", "Device id, id@mode, or YAML file; default jetson_agx_orin_64gb.", DEVICE),
    "devices": Flag("--devices", "Devices that designs may be on, a,b,c: an axis of the space.", DEVICE),
    "device_columns": Flag(
        "--device-columns",
        "CSV of devices' figures that are metrics by their names: a column device, others such as price [USD].",
        DEVICE,
        "FILE",
    ),
    "precision": Flag(
        "--precision",
        "fp16, int8, int4, nvfp4, fp32; w4a16 (AWQ, GPTQ); llama.cpp's q4_0, q4_k_m, q5_k_m, q6_k, q8_0, mxfp4; int4_kv8 "
        "with a KV cache of 8 bits; default fp16.",
        DEVICE,
    ),
    "latency": Flag("--latency", "operator or closed_form; default operator.", DEVICE),
    "attention": Flag("--attention", "unfused or fused; default unfused.", DEVICE),
    "vocabulary": Flag(
        "--vocabulary",
        "Tokens of embedding and LM head, 32k; 0 leaves both out; several, 8k,16k,32k, are an axis; default 0.",
        DEVICE,
        "N[,N…]",
    ),
    "engine": Flag(
        "--engine", "Engine whose times are predicted, llama.cpp; left out: whichever was measured.", DEVICE
    ),
    "calibration": Flag(
        "--calibration",
        "typical (measured, else typical of the chip), shipped (measured alone) or datasheet, its peaks; default datasheet.",
        DEVICE,
    ),
    "serving.speculation": Flag(
        "--speculation",
        "Tokens drafted ahead: mtp:N by a head of the model, draft:N by --draft, none; several, none,mtp:2, are an axis.",
        DEVICE,
        "WORD[,WORD…]",
    ),
    "serving.draft": Flag(
        "--draft", "Model that drafts: a published name, or a folder with config.json.", DEVICE, "MODEL"
    ),
    "serving.acceptance": Flag(
        "--acceptance",
        "Probability that a drafted token is accepted, 0.8, or mtp=0.8,draft=0.6; default as public rows have it.",
        DEVICE,
        "SHARE",
    ),
    "serving.experts_in": Flag(
        "--experts-in",
        "fast, slow:50% (of the layers, in the device's slow_memory), auto (every tenth); several are an axis.",
        DEVICE,
        "WORD[,WORD…]",
    ),
    "serving.phases": Flag(
        "--phases",
        "prefill=DEVICE,link=RATE: the chip that reads prompts; the study's device decodes.",
        DEVICE,
        "PAIRS",
    ),
    "sustained": Flag(
        "--sustained",
        "Speed after minutes of load, as heat leaves it, not of the first seconds: typical of the device's cooling, or as its file says.",
        DEVICE,
        kind=bool,
    ),
    "batch": Flag("--batch", "Sequences at once; default 1.", DEVICE, kind=int),
    "input_tokens": Flag("--input-tokens", "Prompt length; default 1024.", DEVICE, kind=int),
    "output_tokens": Flag("--output-tokens", "Tokens generated; default 16.", DEVICE, kind=int),
    "input_text": Flag(
        "--input-text",
        "Prompt in bytes of text, 10kB, in place of tokens, which each vocabulary makes its own number of.",
        DEVICE,
        "BYTES",
    ),
    "output_text": Flag("--output-text", "Text generated, 500 or 2kB, in place of tokens.", DEVICE, "BYTES"),
    "training.device": Flag("--train-device", "Device that trains, of train_hours: h100_sxm.", DEVICE),
    "training.utilisation": Flag(
        "--utilisation", "Share of its FP16 peak that training achieves; default 0.4.", DEVICE, kind=float
    ),
    "training.served_tokens": Flag(
        "--served-tokens", "Tokens that the model will have served, of lifetime_flops; default 0.", DEVICE, "N"
    ),
}


def flag_name(key: str) -> str:
    """The flag that gives a study key."""
    return (
        STUDY[key].name
        if key in STUDY
        else f"--{key.removeprefix('training.').removeprefix('serving.').replace('_', '-')}"
    )
