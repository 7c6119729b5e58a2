"""Flags that mean the same in every command."""

import importlib
import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, cast

import typer

from nas.errors import PlasError
from nas.startup.interrupts import INTERRUPTED, take_over
from nas.terminal.console import complain, notice
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
    typer.Option("--preset", help="paper or device: conventions of latency and memory.", rich_help_panel=DEVICE),
]
Space = Annotated[str | None, typer.Option("--space", help="Search space: name or YAML file.", rich_help_panel=SPACE)]
Device = Annotated[
    str | None, typer.Option("--device", help="Device id, id@mode, or YAML file.", rich_help_panel=DEVICE)
]
Precision = Annotated[
    str | None, typer.Option("--precision", help="fp16, int8, int4 or nvfp4.", rich_help_panel=DEVICE)
]
Law = Annotated[str | None, typer.Option("--law", help="Loss law: name or YAML file.", rich_help_panel=SPACE)]
Latency = Annotated[str | None, typer.Option("--latency", help="operator or closed_form.", rich_help_panel=DEVICE)]
Attention = Annotated[str | None, typer.Option("--attention", help="unfused or fused.", rich_help_panel=DEVICE)]
Vocabulary = Annotated[
    int | None,
    typer.Option("--vocabulary", help="Tokens of embedding and LM head; 0 leaves both out.", rich_help_panel=DEVICE),
]
Batch = Annotated[int | None, typer.Option("--batch", help="Sequences at once.", rich_help_panel=DEVICE)]
InputTokens = Annotated[int | None, typer.Option("--input-tokens", help="Prompt length.", rich_help_panel=DEVICE)]
OutputTokens = Annotated[int | None, typer.Option("--output-tokens", help="Tokens generated.", rich_help_panel=DEVICE)]
Objectives = Annotated[
    str | None,
    typer.Option(
        "--objectives", help="Metrics to minimise: loss,total_ms,package.module:function.", rich_help_panel=SPACE
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
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=WORKLOAD)]


def study_flags(**given: Any) -> dict[str, Any]:
    """The flags that were given, under their study keys."""
    flags = {key: value for key, value in given.items() if value is not None and value != []}
    for key, name in (("budget", "budgets"), ("param", "params")):
        if key in flags:
            flags[name] = flags.pop(key)
    return flags


def command(function: Callable[..., None]) -> Callable[[], None]:
    """A command-line program around a function: errors become one line and an exit code."""

    @wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> None:
        take_over()
        try:
            function(*args, **kwargs)
        except PlasError as error:
            complain(str(error))
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt as interrupt:
            notice(str(interrupt) or "Interrupted before the end; give the command again")
            exec("")  # an interrupt inside text that a module executes would end us by the signal: this clears its mark
            raise typer.Exit(INTERRUPTED) from None

    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(guarded)

    def main() -> None:
        with terminal():
            own_package()
            raise SystemExit(
                parsed(app, f"python -m {function.__module__}" if function.__module__ != "__main__" else None)
            )

    return main


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
