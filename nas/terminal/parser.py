"""The command-line program around a command's function: its request's fields become flags, its errors a line and an exit code."""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from errno import ENAMETOOLONG
from functools import cache
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

import typer
from typer.main import get_command

from nas.errors import PlasError, UsageError
from nas.files import import_rights
from nas.terminal.console import complain, notice
from nas.terminal.flags import SEARCH, Flag, Keys, Word, flag_of, modules_for_files, study_keys
from nas.terminal.interrupts import INTERRUPTED, take_over
from nas.terminal.streams import terminal

Kind = TypeVar("Kind")
REFUSED = cast(  # typer's own, or click's: whichever typer raises
    type[Exception], next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
)


def command(
    function: Callable[..., None], *examples: str, right: import_rights.Right | None = None
) -> Callable[[], None]:
    """A command-line program around a function of a request, or of annotated flags; examples end its help.

    A package that adds a command says whose word is enough to import a user's module: its `right`.
    """
    name = function.__name__.rstrip("_")

    def guarded(**given: Any) -> None:
        take_over()
        try:
            with import_rights.command(name, right):
                function(**arguments(function, given))
        except PlasError as error:
            complain(str(error))
            raise typer.Exit(error.exit_code) from None
        except OSError as error:
            if error.errno != ENAMETOOLONG:
                raise
            complain(f"{str(error.filename)[:40]}…: expected a name or a path, got one that is too long; shorten it")
            raise typer.Exit(UsageError.exit_code) from None
        except KeyboardInterrupt as interrupt:
            notice(str(interrupt) or "Interrupted before the end; give the command again")
            exec("")  # an interrupt inside text that a module executes would end us by the signal: this clears its mark
            raise typer.Exit(INTERRUPTED) from None

    guarded.__doc__, guarded.__name__ = function.__doc__, function.__name__
    guarded.__signature__ = inspect.Signature(list(parameters(function)))  # type: ignore[attr-defined]
    guarded.__annotations__ = {}

    @cache
    def parser(*, brief: bool) -> Callable[..., Any]:
        app = typer.Typer(add_completion=False, rich_markup_mode="rich")
        epilog = "\n\n".join(["Examples:", *(f"[cyan]plas {text}[/]" for text in examples)])
        app.command(epilog=epilog, context_settings={"help_option_names": ["--help", "-h"]})(guarded)
        return abridged(get_command(app), function) if brief else get_command(app)

    def main() -> None:
        with terminal():
            own_package()
            module = function.__module__.removesuffix(".__main__")
            typed = f"python -m {module}" if module != "__main__" else None  # None: the parser finds it
            program = sys.argv[0] if sys.argv[0].startswith("plas ") else typed
            raise SystemExit(parsed(parser(brief="-h" in sys.argv[1:]), program))

    main.function, main.examples, main.right = guarded, examples, right  # type: ignore[attr-defined]  # for completion, and for tests
    return main


def parameters(function: Callable[..., None]) -> Iterator[inspect.Parameter]:
    """The parser's parameters of a function: of a request its fields, of anything else itself."""
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        if is_dataclass(hints[name]):
            yield from request_parameters(cast(type, hints[name]))
        else:
            yield one(name, hints[name], parameter.default)


MOST_BRIEF = 10  # flags that `-h` prints


def abridged(parser: Any, function: Callable[..., None]) -> Any:
    """A parser whose help names the flags that matter: those marked so, the command's own first; of one with few flags all."""
    flags = shown_flags(function)
    if len(flags) > MOST_BRIEF:
        brief = [flag.name for flag in flags if flag.brief] or [flag.name for flag in flags]
        for param in parser.params:
            param.hidden |= param.param_type_name == "option" and not {*param.opts} & {"--help", *brief[:MOST_BRIEF]}
        parser.epilog = f"All {len(flags)} flags: --help\n\n{parser.epilog}"
    return parser


def request_parameters(request: type) -> Iterator[inspect.Parameter]:
    """A parameter per flag of a request, in the order of the help."""
    hints, of_keys = get_type_hints(request, include_extras=True), key_flags(request)
    for field in fields(request):
        if field.name not in of_keys:
            usual = inspect.Parameter.empty if field.default is MISSING else field.default
            yield one(field.name, hints[field.name], usual if field.default_factory is MISSING else None)
        for name, flag in of_keys.get(field.name, {}).items():
            kind, usual = (bool, False) if flag.kind is bool else (flag.kind | None, None)
            yield one(name, Annotated[kind, flag], usual)


def key_flags(request: Any) -> dict[str, dict[str, Flag]]:
    """Flags of keys by the field that takes them in, each once: fields first, then keys of the command's own files, then the study's."""
    hints = get_type_hints(request, include_extras=True)
    keys_of = {name: keys for name, hint in hints.items() if (keys := info(hint, Keys))}
    takes = {key: name for name, keys in reversed(keys_of.items()) for key in keys.shown()}
    takes |= {key: name for name, keys in reversed(keys_of.items()) for key in keys.own}
    flags = {name: {**keys.shown(), **keys.own} for name, keys in keys_of.items()}
    return {
        name: {key: flag for key, flag in flags[name].items() if takes[key] == name and key not in hints}
        for name in flags
    }


def shown_flags(owner: Any) -> list[Flag]:
    """Flags that a command's help prints, of its function or its request: its own, then those of a study's keys."""
    hints = get_type_hints(owner, include_extras=True)
    own = [flag for hint in hints.values() if (flag := info(hint, Flag))]
    inner = [flag for hint in hints.values() if is_dataclass(hint) for flag in shown_flags(hint)]
    keys = [flag for flags in key_flags(owner).values() for flag in flags.values()] if is_dataclass(owner) else []
    return [*own, *inner, *keys]


def info(hint: Any, kind: type[Kind]) -> Kind | None:
    """The flag or word in an annotation."""
    return next((each for each in getattr(hint, "__metadata__", ()) if isinstance(each, kind)), None)


def one(name: str, hint: Any, usual: Any) -> inspect.Parameter:
    """A parameter of the parser: `tuple[X, ...]` repeats, `--no-x` of what is True begins as not given."""
    kind, flag = get_args(hint)[0], info(hint, Flag)
    if get_origin(kind) is tuple:
        kind, usual = list[get_args(kind)[0]], None if usual == () else usual  # type: ignore[misc]
        kind = kind | None if usual is None else kind
    usual = False if flag is not None and negative(flag, usual) else usual
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=usual, annotation=Annotated[kind, declared(hint)]
    )


def negative(flag: Flag, usual: Any) -> bool:
    """Whether a flag switches off what is on."""
    return usual is True and flag.name.startswith("--no-")


def declared(hint: Any) -> Any:
    """A flag or a word in the parser's own words."""
    if (flag := info(hint, Flag)) is not None:
        return typer.Option(
            flag.name,
            help=flag.help,
            rich_help_panel=flag.group,
            metavar=flag.metavar,
            min=flag.least,
            max=flag.most,
            show_default=flag.show_default,
        )
    word = info(hint, Word)
    assert word is not None
    return typer.Argument(help=word.help, metavar=word.metavar, show_default=word.show_default)


def arguments(function: Callable[..., None], given: Mapping[str, Any]) -> dict[str, Any]:
    """The function's arguments from what was parsed."""
    hints = get_type_hints(function, include_extras=True)
    return {
        name: filled(hints[name], given) if is_dataclass(hints[name]) else taken(hints[name], given[name])
        for name in inspect.signature(function).parameters
    }


def taken(hint: Any, value: Any) -> Any:
    """A parsed value; lists as tuples, empty where none was given."""
    return tuple(value or ()) if get_origin(get_args(hint)[0]) is tuple else value


def filled(request: Any, given: Mapping[str, Any]) -> Any:
    """A request with what was parsed: keys that were given, lists as tuples."""
    hints, of_keys, values = get_type_hints(request, include_extras=True), key_flags(request), dict[str, Any]()
    for field in fields(request):
        hint = hints[field.name]
        if field.name in of_keys:
            values[field.name] = keys_given(of_keys[field.name], given)
            continue
        value, flag = taken(hint, given[field.name]), info(hint, Flag)
        values[field.name] = not value if flag is not None and negative(flag, field.default) else value
    made = request(**values)
    refuse_idle(made)
    return made


def refuse_idle(request: Any) -> None:
    """Refuse flags and keys that were given and have no effect: the flag that they need was not, or the command does not read them.

    Raises:
        UsageError: the first of them.
    """
    hints = get_type_hints(type(request), include_extras=True)
    several = [keys for hint in hints.values() if (keys := info(hint, Keys))]
    # Typed where nothing is searched, it lets a study's own strategy be imported.
    free = set() if any(SEARCH in keys.groups for keys in several) else {"algo"}
    written = (text.partition("=")[0].partition(".")[0].strip() for text in getattr(request, "settings", ()))
    typed = [key for key in written if key in study_keys()]
    for key in typed:
        if key not in free and not any(keys.takes(key) for keys in several):
            raise UsageError(
                f"--set {key}: expected a key that this command reads, got one that has no effect; drop it"
            )
    values = dict[str, Any]()  # by what is typed
    given = {name: Flag(name) for name in (study_keys()[key].key.flag or key for key in typed)}
    for field in fields(request):
        value, hint = getattr(request, field.name), hints[field.name]
        if keys := info(hint, Keys):
            given |= {flag.name: flag for flag in (keys.own.get(key) or flag_of(key) for key in value)}
            continue
        flag = info(hint, Flag) or Flag((info(hint, Word) or Word("")).metavar or field.name)
        values[flag.name] = value
        given |= {} if value == field.default else {flag.name: flag}
    for name, flag in given.items():
        needed, _, choice = flag.needs.partition(" ")
        if needed and (
            choice not in str(values[needed]).replace("_", "-").split(",") if choice else needed not in given
        ):
            got = values[needed] or "none"
            raise UsageError(f"{name}: expected {flag.needs} with it, got {got}; add it, or leave {name} out")
        barred = {*flag.bars.removeprefix("all but").split()}
        if idle := [key for key in given if key != name and (key in barred) != flag.bars.startswith("all but")]:
            raise UsageError(f"{name}: expected no {idle[0]} with it, got both; drop one")


def keys_given(flags: Mapping[str, Flag], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of keys that were given; `--no-x` gives False."""
    values = {key: (flag, with_modules(given[key])) for key, flag in flags.items()}
    return {
        key: not flag.name.startswith("--no-") if value is True else value
        for key, (flag, value) in values.items()
        if value is not None and value is not False and value != []
    }


def with_modules(value: Any) -> Any:
    """A value with the files of a user's own code as modules."""
    if isinstance(value, list):
        return [*map(with_modules, value)]
    return modules_for_files(value) if isinstance(value, str) else value


def parsed(parser: Callable[..., Any], program: str | None) -> int:
    """Parse and run; the exit code. What the parser refuses is one line of our form."""
    try:
        return parser(prog_name=program, standalone_mode=False) or 0
    except REFUSED as error:
        from nas.terminal.usage import rewritten, taken, usage_line

        if words := rewritten(error, sys.argv[1:]):
            for line in taken(sys.argv[1:], words):
                notice(line)
            sys.argv[1:] = words
            return parsed(parser, program)
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
