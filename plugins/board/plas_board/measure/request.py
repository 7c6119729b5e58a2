"""The flags of `measure`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nas.terminal.flags import Flag, Quiet, Word, flag_of

HOW, WHAT, PLACE = "How", "What", "Where"
OF_MODELS = "all but --out --interpreter --torch-device --threads --timeout --quiet"


@dataclass(frozen=True)
class MeasureRequest:
    """Candidates, workload and engine of a measurement; threads 0 are as many as there are cores."""

    source: Annotated[Path | None, Word("Run folder or candidate file (.csv, .jsonl).")] = None
    how: Annotated[str, Flag("--select", "Of a run: frontier, best, knee, diverse:K.", WHAT)] = "frontier"
    models: Annotated[tuple[str, ...], Flag("--model", "Also measure a published model; repeats.", WHAT)] = ()
    vocabulary: Annotated[
        int | None, Flag("--vocabulary", "Tokens of embedding and LM head; left out: each model's own.", WHAT)
    ] = None
    batch: Annotated[int | None, flag_of("batch")] = None
    input_tokens: Annotated[int | None, flag_of("input_tokens")] = None
    output_tokens: Annotated[int | None, flag_of("output_tokens")] = None
    hardware: Annotated[
        bool, Flag("--hardware", "This machine's sustained rates as a device file.", WHAT, bars=OF_MODELS)
    ] = False
    backend: Annotated[
        str, Flag("--backend", "torch, vllm, llama-bench, or an engine that export --to takes.", PLACE)
    ] = "torch"
    interpreter: Annotated[
        str | None, Flag("--interpreter", "Python that has the engine, or the llama-bench program.", PLACE)
    ] = None
    files: Annotated[
        Path | None, Flag("--models", "Folder of <id>.gguf for llama-bench, or of an export.", PLACE, needs="--backend")
    ] = None
    device: Annotated[str, Flag("--device", "Name of this device in the CSV.", PLACE)] = ""
    torch_device: Annotated[str, Flag("--torch-device", "cpu or cuda.", PLACE, needs="--backend torch")] = "cpu"
    graphs: Annotated[bool, Flag("--cuda-graphs", "Time replays of CUDA graphs instead of single calls.", PLACE)] = (
        False
    )
    power: Annotated[str, Flag("--power", "Meter energy: auto, none, rapl, nvidia-smi, tegrastats.", PLACE)] = "auto"
    precision: Annotated[
        str | None,
        Flag(
            "--precision",
            "fp32, bf16, fp16, int8, int4; of GGUF files f16, q8_0, q6_k, q5_k_m, q4_k_m, q4_0, mxfp4.",
            PLACE,
        ),
    ] = None
    threads: Annotated[int, Flag("--threads", "Threads; 0: one per core.", PLACE, least=0)] = 0
    rounds: Annotated[int, Flag("--rounds", "Processes per candidate, interleaved.", HOW, least=1)] = 3
    repetitions: Annotated[int, Flag("--repetitions", "Samples per process.", HOW, least=1)] = 5
    warmup: Annotated[int, Flag("--warmup", "Warm-up runs per process.", HOW, least=0)] = 1
    timeout: Annotated[float, Flag("--timeout", "Seconds per process.", HOW, least=0.1)] = 600.0
    memory_gb: Annotated[float | None, Flag("--memory-limit", "GB per process.", HOW, least=0.1)] = None
    retry_failed: Annotated[bool, Flag("--retry-failed", "Measure failures again.", HOW)] = False
    seed: Annotated[int, Flag("--seed", None, HOW, least=0)] = 0
    out: Annotated[
        Path, Flag("--out", "Folder of the record; an earlier one is continued. A file with --hardware.")
    ] = Path("measured")
    share: Annotated[
        Path | None,
        Flag("--share", "Also write the measurement to a new .json to share: device, engine and rows, no names."),
    ] = None
    quiet: Annotated[bool, Quiet] = False
