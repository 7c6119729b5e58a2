"""Measure candidates on real hardware with random weights, each in its own process, or this machine's rates."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nas import options as o

if TYPE_CHECKING:
    from nas.measuring.process import Answer

PRECISIONS = {
    "torch": ("fp32", "bf16", "fp16"),
    "vllm": ("fp16", "bf16", "fp32"),
    "llama-bench": ("f16", "q8_0", "q4_0", "q4_k_m"),
}
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
    import os

    from nas.console import notice, say
    from nas.measuring.chosen import chosen
    from nas.measuring.session import Plan, workload
    from nas.measuring.session import measure as work

    refuse_unknown(backend, torch_device)
    precision = precision_of(backend, precision)
    if hardware:
        from nas.measuring.hardware import measure_hardware

        say(measure_hardware(out, interpreter or sys.executable, torch_device, threads or os.cpu_count() or 1, timeout))
        return
    if backend == "llama-bench" and interpreter is None:
        from nas.errors import UsageError

        raise UsageError("--interpreter: expected the llama-bench program, got nothing; name it")
    settings = {
        "backend": backend,
        "device": device,
        "precision": precision,
        **workload(source, batch, input_tokens, output_tokens),
        "warmup": warmup,
        "repetitions": repetitions,
        "rounds": rounds,
        "threads": threads or os.cpu_count() or 1,
        "seed": seed,
        "torch_device": torch_device,
    }
    plan = Plan(
        chosen(source, how, model or [], vocabulary),
        settings,
        out,
        interpreter or sys.executable,
        timeout,
        memory,
        models,
        retry,
    )

    def report(name: str, turn: int, answer: "Answer") -> None:
        if not quiet:
            notice(
                f"round {turn}, {name}: {answer.state}{', ' + answer.reason if answer.reason else ''}, {answer.seconds:.1f} s"
            )

    record = work(plan, report)
    failed = sum(line["state"] != "ok" for line in record.lines)
    say(
        f"{len(record.lines)} measurements in {out}, {failed} failed; {out / 'measured.csv'} is what 'plas calibrate' reads"
    )

    if source is not None and source.is_dir():
        print_agreement(source, how, record.lines, settings)


def print_agreement(source: Path, how: str, lines: list[dict[str, Any]], settings: dict[str, Any]) -> None:
    """Predicted against measured of a run's candidates, and the picks that change."""
    from nas.console import say, table
    from nas.measuring.agreement import TIMES, agreement, questions
    from nas.measuring.chosen import rows_of_run

    run, rows = rows_of_run(source, how)
    found = agreement(run, rows, lines, settings["output_tokens"])
    if found is None:
        return
    say("Predicted by the run, and measured (ms)")
    pairs = zip(found.names, found.predicted.tolist(), found.measured.tolist(), strict=True)
    body = [[name, *(f"{p:.4g} / {m:.4g}" for p, m in zip(ours, clock, strict=True))] for name, ours, clock in pairs]
    table(("candidate", *TIMES), body)
    changes = found.changes(questions(run))
    say("Picks among these that measurement changes: " + ("; ".join(changes) or "none"))


def refuse_unknown(backend: str, torch_device: str) -> None:
    """Refuse a backend or a place that does not exist.

    Raises:
        UsageError: with the choices.
    """
    from nas.errors import UsageError
    from nas.faults import unknown

    choices = (
        ("--backend", "a backend", backend, PRECISIONS),
        ("--torch-device", "a place", torch_device, ("cpu", "cuda")),
    )
    for flag, what, given, known in choices:
        if given not in known:
            raise UsageError(f"{flag}: {unknown(what, given, known)}")


def precision_of(backend: str, given: str | None) -> str:
    """The precision asked for, or the backend's first.

    Raises:
        UsageError: one that the backend lacks.
    """
    from nas.errors import UsageError
    from nas.faults import unknown

    if given is not None and given not in PRECISIONS[backend]:
        raise UsageError(f"--precision: {unknown(f'a precision of {backend}', given, PRECISIONS[backend])}")
    return given or PRECISIONS[backend][0]


main = o.command(measure)
if __name__ == "__main__":
    main()
