"""Measurements that somebody gives to others: device, engine and rows in one file that names nobody.

The file is JSON of these fields alone; `plas list --schema measurements` prints its JSON schema.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

KIND: Literal["plas_measurements"] = "plas_measurements"
VERSION: Literal[1] = 1
Text = Annotated[str, Field(max_length=200)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class SharedDevice(_Given):
    """What was measured on, as its system reports it."""

    id: Text = Field(
        "", description="The device's key in PLAS's catalogue (plas list devices), empty where it has none."
    )
    processor: Text = Field("", description="Name of the processor.")
    cores: Count = Field(0, description="Logical processors; 0 where unknown.")
    system: Text = Field("", description="Name of the operating system, without version and host.")
    power_mode: Text = Field("", description="Power mode as nvpmodel reports it, empty elsewhere.")
    governor: Text = Field("", description="Frequency governor of the first processor, empty where unknown.")

    def __str__(self) -> str:
        """`raspberry_pi_5, Cortex-A76, 4 processors, Linux, governor performance`; `an unnamed device` where nothing is known."""
        cores = f"{self.cores} processors" * bool(self.cores)
        mode = f"power mode {self.power_mode}" * bool(self.power_mode)
        governor = f"governor {self.governor}" * bool(self.governor)
        known = (self.id, self.processor, cores, self.system, mode, governor)
        return ", ".join(text for text in known if text) or "an unnamed device"


class SharedRow(_Given):
    """One phase of one architecture."""

    model: Text = Field(description="A published model's name, or design-1, design-2 … for others.")
    architecture: dict[Text, int | float | bool | Text] = Field(
        description="Columns of the architecture, as in a candidate file: depth, width, head_dim, n_heads, n_kv_heads, n_experts, top_k, expert_size, vocabulary …"
    )
    engine: Text = Field(description="Program and version that ran it.")
    precision: Text = Field(description="Format of the weights.")
    batch: Annotated[int, Field(ge=1)] = Field(description="Sequences at once.")
    prompt_len: Count = Field(description="Tokens of each prompt.")
    gen_len: Count = Field(description="Tokens generated after each prompt; 0 of a prefill.")
    metric: Literal["prefill_ms", "tpot_ms", "total_ms"] = Field(
        description="prefill_ms: a prefill of the whole batch; tpot_ms: one decode step; total_ms: a whole request. Milliseconds."
    )
    value: Positive = Field(description="Median of all samples, milliseconds.")
    min: Positive | None = Field(None, description="Least sample, milliseconds.")
    q1: Positive | None = Field(None, description="First quartile, milliseconds.")
    q3: Positive | None = Field(None, description="Third quartile, milliseconds.")
    samples: Count = Field(0, description="Number of samples.")
    contended: bool = Field(False, description="Whether other programs had the processor meanwhile.")
    energy_j: Positive | None = Field(None, description="Energy of a request, joules.")
    memory_gb: Positive | None = Field(None, description="What loading and running added to memory at most, GB.")
    rail: Text = Field("", description="What of the device the energy is of.")


class SharedMeasurements(_Given):
    """A file of `plas measure --share`."""

    kind: Literal["plas_measurements"] = Field(description="What the file is.")
    version: Literal[1] = Field(description="Version of this layout; a reader refuses others.")
    tool: Text = Field(description="Program and version that wrote it.")
    month: Annotated[str, Field(pattern=r"^\d{4}-\d{2}$")] = Field(description="Year and month of the measurement.")
    device: SharedDevice
    rows: Annotated[list[SharedRow], Field(min_length=1, max_length=10_000)]
