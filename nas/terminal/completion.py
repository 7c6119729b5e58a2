"""Completion of `plas` in a shell: a script per shell, which calls here for the words that may follow.

Names are read from file names, so that an answer takes no longer than `--help`.
"""

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from enum import EnumType
from typing import get_args

from nas.errors import UsageError
from nas.files.faults import unknown
from nas.terminal.doors import EXPENSIVE
from nas.terminal.flags import study_keys
from objectives.plugins import documents, importable
from objectives.published_models import model_ids
from search_spaces.formats import FORMATS

WORDS = "words"  # `plas completion words RUN --al` prints what the last word may become
SCRIPTS = {
    "bash": """_plas() {
  local IFS=$'\\n'
  COMPREPLY=($(plas completion words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [[ ${COMPREPLY[0]} == *[=:@] ]] && compopt -o nospace
}
complete -o default -F _plas plas""",
    "zsh": """autoload -Uz compinit && compinit
_plas() {
  local -a found
  found=("${(@f)$(plas completion words "${(@)words[2,$CURRENT]}" 2>/dev/null)}")
  if [[ -n "$found" ]]; then compadd -a found; else _files; fi
}
compdef _plas plas""",
    "fish": "complete -c plas -a '(plas completion words (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'",
}

Names = Callable[[], Sequence[str]]
METRICS: Names = lambda: (*importable("objectives.metrics"), *EXPENSIVE)  # noqa: E731
STRATEGIES: Names = lambda: (*importable("nas.strategies"), "auto")  # noqa: E731


def yaml_names(package: str) -> Names:
    """The names of a package's YAML files."""
    return lambda: tuple(documents(package))


VALUES: dict[str, Names] = {
    "--algo": STRATEGIES,
    "--algos": STRATEGIES,
    "--device": yaml_names("objectives.devices"),
    "--space": yaml_names("search_spaces.spaces"),
    "--law": yaml_names("objectives.laws"),
    "--model": model_ids,
    "--config": yaml_names("configs"),
    "--from": yaml_names("configs"),
    "--studies": yaml_names("configs"),
    "--preset": yaml_names("nas.study.presets"),
    "--recipe": yaml_names("nas.export.recipes"),
    "--form": lambda: importable("objectives.law_forms"),
    "--objectives": METRICS,
    "--budget": lambda: tuple(f"{name}=" for name in METRICS()),
    "--sweep": lambda: tuple(f"{name}=" for name in METRICS()),
    "--select": lambda: ("frontier", "best", "knee", "diverse:", "budget:"),
    "--precision": lambda: FORMATS,
    "--set": lambda: tuple(f"{key}=" for key in study_keys()),
}


def answer(arguments: Sequence[str], commands: Mapping[str, str]) -> str:
    """Text of `plas completion ARGUMENTS`: a shell's script, or words, one a line.

    Raises:
        UsageError: no such shell.
    """
    first = arguments[0] if arguments else ""
    if first == WORDS:
        return "".join(f"{word}\n" for word in candidates(arguments[1:], commands))
    if first not in SCRIPTS:
        raise UsageError(f"completion: {unknown('a shell', first, SCRIPTS)}")
    return SCRIPTS[first] + "\n"


def candidates(words: Sequence[str], commands: Mapping[str, str]) -> list[str]:
    """Completions of the last word after `plas`; none where a file may stand."""
    *before, last = words or [""]
    if not before:
        return _beginning(last, tuple(commands))
    if before[-1] in VALUES:
        listed = last.rpartition(",")
        return [f"{listed[0]}{listed[1]}{name}" for name in _beginning(listed[2], VALUES[before[-1]]())]
    if before[0] not in commands:
        return []
    options, choices = _signature(commands[before[0]])
    if last.startswith("-"):
        return _beginning(last, options)
    return _beginning(last, choices if len(before) == 1 else ())


def _beginning(start: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if name.startswith(start)]


def _signature(module: str) -> tuple[list[str], list[str]]:
    """A command's options, and the values of its argument where they are known, from its function's parameters."""
    function = importlib.import_module(module).main.function
    options, choices = ["--help", "-h"], list[str]()
    for parameter in inspect.signature(function).parameters.values():
        kind, info = get_args(parameter.annotation)
        if isinstance(info.default, str):  # a flag's name stands in the default's place
            options.append(info.default)
        else:
            choices += [name for each in get_args(kind) if isinstance(each, EnumType) for name in each.__members__]
    return options, choices
