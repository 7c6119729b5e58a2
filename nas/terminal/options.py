"""Flags that mean the same in every command."""

import importlib
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from nas.errors import PlasError
from nas.files import import_rights
from nas.terminal.console import complain, notice
from nas.terminal.interrupts import INTERRUPTED, take_over
from nas.terminal.streams import terminal

REFUSED = cast(  # typer's own, or click's: whichever typer raises
    type[Exception], next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
)

SPACE, DEVICE, WORKLOAD = "What to search", "On what", "Output"
Config = Annotated[
    str | None,
    typer.Option("--config", help="A study: YAML file, run folder, or a shipped name.", rich_help_panel=SPACE),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="path=value, any key of the study; repeats.", metavar="PATH=VALUE", rich_help_panel=SPACE
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="paper or device: conventions of latency and memory; default paper, whose defaults are named below.",
        rich_help_panel=DEVICE,
    ),
]
Space = Annotated[
    str | None, typer.Option("--space", help="Search space: name or YAML file; default paper.", rich_help_panel=SPACE)
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device", help="Device id, id@mode, or YAML file; default jetson_agx_orin_64gb.", rich_help_panel=DEVICE
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        "--precision",
        help="fp16, int8, int4, nvfp4, fp32, or int4_kv8 with a KV cache of 8 bits; default fp16.",
        rich_help_panel=DEVICE,
    ),
]
Precisions = Annotated[
    str | None,
    typer.Option(
        "--precisions", help="Formats that designs may have, a,b,c: an axis of the space.", rich_help_panel=SPACE
    ),
]
PrecisionLaw = Annotated[
    str | None,
    typer.Option(
        "--precision-law",
        help="What few bits cost: qat, multiplier or kumar; further ones, a,b, are rivals; default none.",
        rich_help_panel=SPACE,
    ),
]
Deltas = Annotated[
    str | None,
    typer.Option(
        "--deltas",
        help="YAML file of what kinds of layers cost, as you measured; default nothing.",
        rich_help_panel=SPACE,
    ),
]
Law = Annotated[
    str | None, typer.Option("--law", help="Loss law: name or YAML file; default hw_codesign.", rich_help_panel=SPACE)
]
Laws = Annotated[
    str | None,
    typer.Option(
        "--laws",
        help="Other laws, a,b,c: what each would pick, regrets, the least worst; 'plas list laws'.",
        rich_help_panel=SPACE,
    ),
]
Tokens = Annotated[
    str | None,
    typer.Option(
        "--tokens",
        help="Training tokens, 10B; several, 1B,3B,10B, are an axis; default the law's own.",
        metavar="N[,N…]",
        rich_help_panel=SPACE,
    ),
]
UniqueTokens = Annotated[
    str | None,
    typer.Option(
        "--unique-tokens",
        help="Tokens of distinct text, more are epochs; of laws that know of them: data_limited.",
        metavar="N",
        rich_help_panel=SPACE,
    ),
]
TrainDevice = Annotated[
    str | None,
    typer.Option("--train-device", help="Device that trains, of train_hours: h100_sxm.", rich_help_panel=DEVICE),
]
Utilisation = Annotated[
    float | None,
    typer.Option(
        "--utilisation", help="Share of its FP16 peak that training achieves; default 0.4.", rich_help_panel=DEVICE
    ),
]
ServedTokens = Annotated[
    str | None,
    typer.Option(
        "--served-tokens",
        help="Tokens that the model will have served, of lifetime_flops; default 0.",
        metavar="N",
        rich_help_panel=DEVICE,
    ),
]
Latency = Annotated[
    str | None, typer.Option("--latency", help="operator or closed_form; default operator.", rich_help_panel=DEVICE)
]
Attention = Annotated[
    str | None, typer.Option("--attention", help="unfused or fused; default unfused.", rich_help_panel=DEVICE)
]
Vocabulary = Annotated[
    int | None,
    typer.Option(
        "--vocabulary", help="Tokens of embedding and LM head; 0 leaves both out; default 0.", rich_help_panel=DEVICE
    ),
]
Batch = Annotated[int | None, typer.Option("--batch", help="Sequences at once; default 1.", rich_help_panel=DEVICE)]
InputTokens = Annotated[
    int | None, typer.Option("--input-tokens", help="Prompt length; default 1024.", rich_help_panel=DEVICE)
]
OutputTokens = Annotated[
    int | None, typer.Option("--output-tokens", help="Tokens generated; default 16.", rich_help_panel=DEVICE)
]
Objectives = Annotated[
    str | None,
    typer.Option(
        "--objectives",
        help="Metrics to minimise: loss,total_ms,package.module:function; default loss,total_ms.",
        rich_help_panel=SPACE,
    ),
]
Budgets = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        help="metric=limit, at most; repeats; memory_gb=none removes the default.",
        metavar="METRIC=LIMIT",
        rich_help_panel=SPACE,
    ),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Everything that the one screen leaves out.", rich_help_panel=WORKLOAD)
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no notices.", rich_help_panel=WORKLOAD)]
NoPlots = Annotated[
    bool, typer.Option("--no-plots", help="Draw no pictures; those already there stay.", rich_help_panel=WORKLOAD)
]
Chosen = Annotated[
    str | None,
    typer.Option(
        "--select",
        help="frontier, best, knee, diverse:K or budget:metric=limit; left out: a run's frontier, all of a file.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=WORKLOAD)]


KEYS = {  # of flags that are called otherwise than their key of the study
    "budget": "budgets",
    "param": "params",
    "train_device": "training.device",
    "utilisation": "training.utilisation",
    "served_tokens": "training.served_tokens",
}


def study_flags(**given: Any) -> dict[str, Any]:
    """The flags that were given, under their study keys."""
    flags = {key: value for key, value in given.items() if value is not None and value != []}
    return {KEYS.get(name, name): value for name, value in flags.items()}


def command(function: Callable[..., None], *examples: str) -> Callable[[], None]:
    """A command-line program around a function: errors become one line and an exit code; examples end its help."""

    file = Path(function.__code__.co_filename)
    name = file.parent.name if file.stem == "__main__" else file.stem

    @wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> None:
        take_over()
        try:
            with import_rights.command(name):
                function(*args, **kwargs)
        except PlasError as error:
            complain(str(error))
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt as interrupt:
            notice(str(interrupt) or "Interrupted before the end; give the command again")
            exec("")  # an interrupt inside text that a module executes would end us by the signal: this clears its mark
            raise typer.Exit(INTERRUPTED) from None

    app = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
    app.command(epilog="\n\n".join(["Examples:", *(f"[cyan]plas {text}[/]" for text in examples)]))(guarded)

    def main() -> None:
        with terminal():
            own_package()
            raise SystemExit(parsed(app, program_of(function.__module__)))

    main.function, main.examples = function, examples  # type: ignore[attr-defined]  # for completion, and for tests
    return main


def program_of(module: str) -> str | None:
    """What the user typed: `plas run` or `python -m nas.run`; None where the parser must find it."""
    if sys.argv[0].startswith("plas "):
        return sys.argv[0]
    return f"python -m {module.removesuffix('.__main__')}" if module != "__main__" else None


def parsed(app: typer.Typer, program: str | None) -> int:
    """Parse and run; the exit code. What the parser refuses is one line of our form."""
    try:
        return app(prog_name=program, standalone_mode=False) or 0
    except REFUSED as error:
        from nas.terminal.usage import usage_line

        named = getattr(getattr(error, "ctx", None), "command_path", None) or program or sys.argv[0]
        sys.stderr.write(f"{usage_line(error, named)}\n")
        return 2


def own_package() -> None:
    """Say so when `nas`, `objectives` or `search_spaces` belongs to another distribution."""
    for name in ("nas", "objectives", "search_spaces"):
        if getattr(importlib.import_module(name), "PLAS", None) != "plas-codesign":
            sys.stderr.write(
                f"{name}: expected plas-codesign's package, got another distribution's of the same name; "
                "install plas-codesign in its own virtual environment\n"
            )
            raise SystemExit(1)
