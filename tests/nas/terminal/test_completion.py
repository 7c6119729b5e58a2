"""What a shell is told that the next word may be, and what help says of defaults and examples."""

import importlib
import shlex
from inspect import signature
from typing import get_args

import pytest

from nas.errors import UsageError
from nas.run import main
from nas.study.configuration import StudyConfig
from nas.terminal.completion import SCRIPTS, VALUES, answer, candidates
from nas.terminal.doors import COMMANDS, door
from objectives.plugins import documents, importable

MODULES = {name: door(name) for name in COMMANDS}


@pytest.mark.parametrize(
    ("words", "among"),
    [
        ([], COMMANDS),
        (["ru"], ["run"]),
        (["run", "--dev"], ["--device"]),
        (["run", "--device", "rasp"], ["raspberry_pi_5"]),
        (["run", "--space", ""], documents("search_spaces.spaces")),
        (["run", "--law", ""], documents("objectives.laws")),
        (["run", "--algo", ""], [*importable("nas.strategies"), "auto"]),
        (["run", "--config", ""], documents("configs")),
        (["compare", "--algos", "nsga2,rand"], ["nsga2,random"]),
        (["run", "--budget", "total"], ["total_ms="]),
        (["run", "--set", "lat"], ["latency="]),
        (["list", "dev"], ["devices"]),
        (["explain", "--model", "qwen2.5_0"], ["qwen2.5_0.5b"]),
        (["select", "runs/"], []),
        (["nothing", "--x"], []),
    ],
    ids=str,
)
def test_words_that_may_follow(words: list[str], among: list[str]) -> None:
    assert candidates(words, MODULES) == list(among)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_command_is_completed(command: str) -> None:
    module = importlib.import_module(door(command))
    found = candidates([command, "--"], MODULES)
    assert "--help" in found
    assert len(found) == len(set(found))
    for example in module.main.examples:
        words = shlex.split(example)
        assert words[0] == command
        assert {word for word in words if word.startswith("--")} <= set(found), example


def test_fixed_choices_are_those_of_a_study() -> None:
    assert VALUES["--precision"]() == get_args(StudyConfig.model_fields["precision"].annotation)


@pytest.mark.parametrize(
    "key", ["preset", "space", "device", "precision", "law", "vocabulary", "input_tokens", "algo", "seed"]
)
def test_help_names_the_defaults_of_a_study(key: str) -> None:
    option = get_args(signature(main.function).parameters[key].annotation)[1]
    assert f"default {StudyConfig.model_fields[key].default}" in option.help


@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_script_asks_for_words(shell: str) -> None:
    assert "plas completion words" in answer([shell], MODULES)


def test_another_shell_is_refused() -> None:
    with pytest.raises(UsageError, match="did you mean fish"):
        answer(["fisch"], MODULES)
