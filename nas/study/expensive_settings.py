"""The keys `train` and `measure` of a study: how its objectives of these names are evaluated."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from nas.problem.objective import KEEP
from nas.study.value_parsers import FREE, ascending, none_word, split_names
from objectives.quantities import counted

Texts = Annotated[list[Annotated[str, Field(min_length=1)]], BeforeValidator(split_names)]
MOST_TOKENS = 1e15
Threads = Annotated[int, Field(strict=True, ge=1, le=1024)]


def _tokens(value: Any) -> float | list[float]:
    """A number of tokens, or several from few to many."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or len(parts) == 1:
        return _some_tokens(parts[0] if isinstance(parts, list | tuple) else parts)
    return list(ascending([_some_tokens(part) for part in parts]))


def _some_tokens(value: Any) -> float:
    tokens = counted(value, "1M")
    if tokens > MOST_TOKENS:
        raise ValueError(f"expected at most {MOST_TOKENS:g}, got {tokens:g}")
    return tokens


class CostlySettings(BaseModel):
    """Settings that every expensive objective has in common."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @property
    def fidelities(self) -> tuple[float, ...]:
        """Fidelities to evaluate at, from the cheapest to the full one; none where every design gets the full one at once."""
        return ()

    @property
    def share(self) -> float:
        """Of the designs that end a step, what share goes on."""
        return KEEP


class TrainSettings(CostlySettings):
    """How the objective `train` trains a design; where texts lie is free to differ, the hash `text` identifies their content."""

    data: Annotated[
        Texts, Field(min_length=1, description="Files, folders, patterns, saved data sets, or stdlib"), FREE
    ]
    tokens: Annotated[
        float | list[float],
        BeforeValidator(_tokens, json_schema_input_type=float | str | list[float | str]),
        Field(
            description="Tokens of each training, rounded up to whole batches; several, rising: steps, whose best alone go on"
        ),
    ]
    keep: Annotated[
        Annotated[float, Field(gt=0, lt=1)] | None,
        BeforeValidator(none_word),
        Field(description="Share of the designs that goes on from a step; left out: a third"),
    ] = None
    validation: Annotated[Texts, Field(description="Text to validate on; left out: 5 % of the data"), FREE] = []
    validation_tokens: Annotated[int, Field(strict=True, ge=1, le=10**9, description="Of it at most")] = 65_536
    tokenizer: Annotated[
        str, Field(min_length=1, description="bytes, a tokenizer.json, or a folder with one"), FREE
    ] = "bytes"
    recipe: Annotated[str | dict[str, Any], Field(description="Recipe: name, file or mapping")] = "small"
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**31, description="Of initial weights and order of the data")] = 0
    last_steps: Annotated[
        int, Field(strict=True, ge=1, le=10**6, description="Steps after whose validation losses the mean is taken")
    ] = 3
    device: Annotated[str, Field(pattern=r"^(cpu|cuda(:[0-9]{1,3})?)$", description="Of the worker")] = "cpu"
    precision: Annotated[
        Literal["fp32", "bf16"] | None,
        BeforeValidator(none_word),
        Field(description="Of matrix products; left out: fp32 on a CPU, bf16 on a GPU"),
    ] = None
    threads: Annotated[Threads, Field(description="Of each training")] = 1
    text: Annotated[
        Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None,
        BeforeValidator(none_word),
        Field(description="Hash of texts and tokenizer, which a run records and keeps to"),
    ] = None

    @model_validator(mode="after")
    def _kept_of_steps(self) -> Self:
        if self.keep is not None and not self.fidelities:
            raise ValueError(
                "keep: expected several numbers of tokens with it, got one; write tokens: [1e5, 4e5], or drop it"
            )
        return self

    @property
    def least_tokens(self) -> float:
        """Of the shortest training."""
        return self.tokens[0] if isinstance(self.tokens, list) else self.tokens

    @property
    def most_tokens(self) -> float:
        """Of the whole training."""
        return self.tokens[-1] if isinstance(self.tokens, list) else self.tokens

    @property
    def fidelities(self) -> tuple[float, ...]:
        """Numbers of tokens, from few to many; none where there is one alone."""
        return tuple(self.tokens) if isinstance(self.tokens, list) else ()

    @property
    def share(self) -> float:
        """Of the designs that end a step, what share goes on."""
        return KEEP if self.keep is None else self.keep


class MeasureSettings(CostlySettings):
    """How the objective `measure` measures a design."""

    metric: Annotated[
        Literal["prefill_ms", "tpot_ms", "decode_ms", "total_ms"], Field(description="What is measured")
    ] = "total_ms"
    backend: Annotated[Literal["torch", "vllm", "llama-bench"], Field(description="What runs the model")] = "torch"
    precision: Annotated[
        str | None, BeforeValidator(none_word), Field(description="Of the weights; left out: the backend's first")
    ] = None
    interpreter: Annotated[
        str | None,
        BeforeValidator(none_word),
        Field(description="Python with the engine, or llama-bench, on the worker; left out: the worker's own Python"),
        FREE,
    ] = None
    torch_device: Annotated[Literal["cpu", "cuda"], Field(description="Of the worker, for torch")] = "cpu"
    threads: Threads = 1
    rounds: Annotated[int, Field(strict=True, ge=1, le=1000, description="Processes of each design")] = 1
    repetitions: Annotated[int, Field(strict=True, ge=1, le=10**5, description="Samples of each process")] = 5
    warmup: Annotated[int, Field(strict=True, ge=0, le=10**5, description="Runs before them")] = 1
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False, description="Seconds of a process")] = 600.0
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**31, description="Of the random weights")] = 0
