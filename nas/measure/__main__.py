"""Measure candidates on real hardware with random weights, each in its own process, or this machine's rates."""

from pathlib import Path
from typing import Annotated

import typer

from nas.terminal import options as o

HOW, WHAT, PLACE = "How", "What", "Where"


def measure(
    source: Annotated[
        Path | None, typer.Argument(help="Run folder or candidate file (.csv, .jsonl).", show_default=False)
    ] = None,
    how: Annotated[
        str, typer.Option("--select", help="Of a run: frontier, best, knee, diverse:K.", rich_help_panel=WHAT)
    ] = "frontier",
    model: Annotated[
        list[str] | None, typer.Option("--model", help="A published model too; repeats.", rich_help_panel=WHAT)
    ] = None,
    vocabulary: o.Vocabulary = None,
    batch: o.Batch = None,
    input_tokens: o.InputTokens = None,
    output_tokens: o.OutputTokens = None,
    hardware: Annotated[
        bool, typer.Option("--hardware", help="This machine's sustained rates as a device file.", rich_help_panel=WHAT)
    ] = False,
    backend: Annotated[
        str, typer.Option("--backend", help="torch, vllm or llama-bench.", rich_help_panel=PLACE)
    ] = "torch",
    interpreter: Annotated[
        str | None,
        typer.Option(
            "--interpreter", help="Python that has the engine, or the llama-bench program.", rich_help_panel=PLACE
        ),
    ] = None,
    models: Annotated[
        Path | None, typer.Option("--models", help="Folder of <id>.gguf for llama-bench.", rich_help_panel=PLACE)
    ] = None,
    device: Annotated[
        str, typer.Option("--device", help="The name that the CSV gives this device.", rich_help_panel=PLACE)
    ] = "",
    torch_device: Annotated[str, typer.Option("--torch-device", help="cpu or cuda.", rich_help_panel=PLACE)] = "cpu",
    power: Annotated[
        str,
        typer.Option("--power", help="Meter energy: auto, none, rapl, nvidia-smi, tegrastats.", rich_help_panel=PLACE),
    ] = "auto",
    precision: Annotated[
        str | None,
        typer.Option(
            "--precision", help="fp32, bf16, fp16; of GGUF files f16, q8_0, q4_0, q4_k_m.", rich_help_panel=PLACE
        ),
    ] = None,
    threads: Annotated[
        int, typer.Option("--threads", min=0, help="0: as many as there are cores.", rich_help_panel=PLACE)
    ] = 0,
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, help="Processes per candidate, interleaved.", rich_help_panel=HOW)
    ] = 3,
    repetitions: Annotated[
        int, typer.Option("--repetitions", min=1, help="Samples per process.", rich_help_panel=HOW)
    ] = 5,
    warmup: Annotated[int, typer.Option("--warmup", min=0, help="Runs before them.", rich_help_panel=HOW)] = 1,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, help="Seconds per process.", rich_help_panel=HOW)
    ] = 600.0,
    memory: Annotated[
        float | None, typer.Option("--memory-limit", min=0.1, help="GB per process.", rich_help_panel=HOW)
    ] = None,
    retry: Annotated[bool, typer.Option("--retry-failed", help="Measure failures again.", rich_help_panel=HOW)] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, rich_help_panel=HOW)] = 0,
    out: Annotated[
        Path, typer.Option("--out", help="Folder of the record; an earlier one is continued. A file with --hardware.")
    ] = Path("measured"),
    quiet: o.Quiet = False,
) -> None:
    """Measure candidates on real hardware with random weights, each in a process of its own."""
    from nas.measure.command import Request, carry_out, rates

    request = Request(
        source=source,
        how=how,
        models=tuple(model or ()),
        vocabulary=vocabulary,
        batch=batch,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        backend=backend,
        interpreter=interpreter,
        files=models,
        device=device,
        torch_device=torch_device,
        power=power,
        precision=precision,
        threads=threads,
        rounds=rounds,
        repetitions=repetitions,
        warmup=warmup,
        timeout=timeout,
        memory_gb=memory,
        retry_failed=retry,
        seed=seed,
        out=out,
        quiet=quiet,
    )
    (rates if hardware else carry_out)(request)


main = o.command(
    measure, "measure runs/paper-nsga2-s0 --select diverse:5 --out measured", "measure --hardware --out my_machine.yaml"
)
if __name__ == "__main__":
    main()
