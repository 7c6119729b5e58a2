"""The table of keys: what an entry of a study says is what flags, help and refusals have."""

import ast
import importlib
import re
from collections.abc import Callable
from contextlib import nullcontext
from inspect import signature
from pathlib import Path
from typing import Any, get_args

import pytest

from nas import load_study
from nas.commands.requests import ExplainRequest, RunRequest
from nas.compare.request import CompareRequest
from nas.errors import UsageError
from nas.export.request import ExportRequest
from nas.study.configuration import StudyConfig
from nas.terminal.doors import COMMANDS, door
from nas.terminal.flags import DEVICE, OUTPUT, SEARCH, SPACE, Key, study_keys
from nas.terminal.parser import refuse_idle
from plas_paper.request import TheoryRequest
from plas_range.request import DevicesRequest
from tests.sources import text

Inside = Callable[..., Any]
MOST_FLAGS, MOST_LINES, MOST_BRIEF = 28, 100, 10
IMPORTANT = {
    *("--device", "--preset", "--precision", "--budget", "--input-tokens", "--output-tokens"),
    *("--vocabulary", "--out", "--algo", "--config"),
}


def options(command: str) -> list[Any]:
    """The options of a command as its parser has them."""
    function = importlib.import_module(door(command)).main.function
    infos = [get_args(parameter.annotation)[1] for parameter in signature(function).parameters.values()]
    return [info for info in infos if isinstance(info.default, str)]


def shown(help_text: str) -> list[str]:
    """The flags that a help prints, without --help."""
    flags = re.findall(r"^│ [ *]*(--[a-z-]+)", help_text, re.MULTILINE)
    return [flag for flag in flags if flag != "--help"]


def test_every_key_has_one_entry_that_is_read_as_it_is_imported() -> None:
    assert list(study_keys()) == list(StudyConfig.model_fields)
    for name, field in StudyConfig.model_fields.items():
        assert [mark for mark in field.metadata if isinstance(mark, Key)] == [study_keys()[name].key], name
        assert (field.description or "").partition(";")[0].strip(".") in study_keys()[name].help, name
        assert study_keys()[name].key.group in (SEARCH, SPACE, DEVICE, OUTPUT)
        plain = study_keys()[name].default
        assert plain is None or plain == field.default, name


def test_the_schema_says_what_the_entry_says() -> None:
    properties = StudyConfig.model_json_schema()["properties"]
    for name, entry in study_keys().items():
        assert properties[name]["description"].partition(";")[0].strip(".") in entry.help
        assert properties[name]["group"] == entry.key.group
    assert properties["time_limit"]["unit"] == "seconds"
    assert properties["device"]["flag"] == "--device"


def test_no_key_is_described_twice() -> None:
    flags = {
        node.value
        for node in ast.walk(ast.parse(text("nas/terminal/flags.py")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert {entry.help for entry in study_keys().values()} & flags == set()


def test_run_has_few_flags() -> None:
    assert len(options("run")) <= MOST_FLAGS


@pytest.mark.parametrize("command", COMMANDS)
def test_the_short_help_has_at_most_ten_flags_and_the_long_one_all(command: str, inside: Inside) -> None:
    brief, every = inside(command, "-h"), inside(command, "--help")
    assert (brief.code, every.code) == (0, 0)
    all_of_them = {info.default for info in options(command)}
    assert set(shown(every.out)) == all_of_them
    assert set(shown(brief.out)) <= all_of_them
    if len(all_of_them) <= MOST_BRIEF:
        assert set(shown(brief.out)) == all_of_them
    else:
        assert len(shown(brief.out)) <= MOST_BRIEF
        assert f"All {len(all_of_them)} flags: --help" in brief.out


def test_the_ten_that_matter_and_two_screens(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert set(shown(inside("run", "-h").out)) == IMPORTANT
    lines = inside("run", "--help").out.splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= 80


def test_a_key_without_a_flag_is_taken_as_one(inside: Inside) -> None:
    assert inside("run", "--causal=perhaps").err.startswith("--causal=perhaps: taken as --set causal=perhaps\n")
    hostile = inside("run", "--causal=\x1b[31m" + "x" * 5_000).err
    assert hostile.startswith("--causal=\\u001b[31mxx")
    assert max(map(len, hostile.splitlines())) < 1_000
    assert "device: expected a device" in inside("explain", "--devices=a", "--model", "qwen2.5-0.5b").err
    assert "did you mean --precision" in inside("run", "--precison", "int8").err


GROUPS = {group: {key for key, entry in study_keys().items() if entry.key.group == group} for group in (SEARCH, OUTPUT)}
UNREAD = {  # keys of a study by the request of a command to which they are nothing
    RunRequest: {"auto"},
    CompareRequest: GROUPS[OUTPUT] | {"algo", "auto", "evaluations", "executor", "known", "params", "seed"},
    ExplainRequest: GROUPS[SEARCH] | {"name", "applications"},
    ExportRequest: GROUPS[SEARCH] | GROUPS[OUTPUT] | {"only", "laws", "default_budget"},
    DevicesRequest: GROUPS[SEARCH] | {"device", "laws", "residual_sd", "baselines"},
    TheoryRequest: GROUPS[SEARCH] | {"name", "baselines", "outside", "residual_sd"},
}


@pytest.mark.parametrize("command", UNREAD, ids=lambda command: command.__name__)
def test_a_key_that_a_command_does_not_read_is_refused_by_its_name(command: Any) -> None:
    for key in study_keys():
        said = f"^--set {key}: expected a key that this command reads, got one that has no effect; drop it$"
        unread = key in UNREAD[command] and (
            key != "algo" or command is CompareRequest
        )  # else it is consent to an import
        with pytest.raises(UsageError, match=said) if unread else nullcontext():
            refuse_idle(command(settings=(f"{key}=1",)))


def test_a_study_with_keys_that_a_command_does_not_read_is_taken(inside: Inside) -> None:
    Path("shared.yaml").write_text(
        "algo: nsga2\nseed: 7\nevaluations: 50\nworkers: 2\npenalty_weight: 3\nobjectives: [loss, total_ms]\n"
    )
    model = ("--model", "qwen2.5-0.5b")
    assert inside("explain", *model, "--config", "shared.yaml").out == inside("explain", *model).out
    assert "--set seed: expected a key that this command reads" in inside("explain", *model, "--seed", "7").err


def test_what_can_mean_one_thing_alone_is_taken(inside: Inside) -> None:
    """A key of the study, other tools' words and other spellings, as the words that they stand for are."""
    short = ("--device", "rpi5", "--evaluations", "5", "--no-plots", "--quiet")
    typed = ("--batch", "4", "--trials", "5", "--algorithm", "NSGA-II", "--dense", "--ram=6GB", "--bits", "Q4_K_M")
    answer = inside("run", "--hardware", "rpi5", "--no-plots", "--quiet", *typed, "--out", "typed")
    assert answer.code == 0
    assert "--hardware: taken as --device\n" in answer.err
    assert "--ram=6GB: taken as --budget resident_gb=6GB\n" in answer.err
    written = ("--algo", "nsga2", "--only", "n_experts=1", "--budget", "resident_gb=6", "--precision", "q4_k_m")
    assert inside("run", *short, "--set", "batch=4", *written, "--out", "written").code == 0
    one, other = (Path(run, "evaluations.csv").read_text() for run in ("typed", "written"))
    assert one == other
    sized = ("--layers", "12..24", "--hidden-size", "1024", "--pop-size", "8", "--batch-size", "4", "--tps", "0.01")
    limits = ("--algo", "nsga2", "--budgets", "latency=9,000s,memory=8GB", "--objectives", "loss,latency")
    assert inside("run", *short, *sized, *limits, "-o", "sized").code == 3  # none of five is within the evidence
    written = ("--only", "depth=12..24", "--only", "width=1024", "--param", "population=8", "--set", "batch=4")
    budgets = [f"--budget={limit}" for limit in ("total_ms=9000s", "resident_gb=8", "tokens_per_second=0.01")]
    limits = ("--algo", "nsga2", *budgets, "--objectives", "loss,total_ms")
    assert inside("run", *short, *written, *limits, "--out", "meant").code == 3
    one, other = (Path(run, "evaluations.csv").read_text() for run in ("sized", "meant"))
    assert one == other
    assert inside("run", *short, "--budget", "tok/s=2", "--budget", "ttft=9s", "--out", "rates").code == 0
    assert "ttft_ms: 9000" in Path("rates", "config.yaml").read_text()


def test_a_word_alone_and_numbers_as_people_write_them_are_taken(inside: Inside) -> None:
    """A device's name, its file, a study's file or a run's folder where no flag is; a number of the flag that refused it alone."""
    Path("mine.yaml").write_text("name: mine\nfp16: 6 TFLOP/s\nbandwidth: 17 GB/s\nmemory: 4 GB\n")
    Path("study.yaml").write_text("device: mine.yaml\nalgo: lhs\n")
    rest = ("--evaluations", "1e1", "--no-plots", "--quiet", "--time-limit=1000s")
    for flag, *words in (
        ("--device", "mine.yaml", "--out", "1k", "--algo", "lhs", "--seed", "5,000"),
        ("--config", "study.yaml", "--out", "two", "--seed=5k"),
        ("--resume", "1k"),
    ):
        answer = inside("run", *words, *rest)
        assert answer.code == 0, answer.err
        assert f"{words[0]}: taken as {flag} {words[0]}\n" in answer.err
        assert "1e1: taken as 10\n" in answer.err
        assert "--time-limit=1000s: taken as --time-limit 1000\n" in answer.err
    one, other = (Path(run, "evaluations.csv").read_text() for run in ("1k", "two"))
    assert one == other
    assert "seed: 5000\n" in Path("two", "config.yaml").read_text()


@pytest.mark.parametrize(
    ("typed", "same"),
    [
        (("list", "boards", "jetson"), ("list", "devices", "jetson")), (("list", "device"), ("list", "devices")),
        (("list", "raspberry"), ("list", "devices", "raspberry")), (("list", "jetson", "orin"), ("list", "devices", "jetson", "orin")),
        (("list", "qwen"), ("list", "models", "qwen")), (("list", "algorithms"), ("list", "strategies")),
    ],
)  # fmt: skip
def test_words_of_a_list(typed: tuple[str, ...], same: tuple[str, ...], inside: Inside) -> None:
    answer = inside(*typed)
    assert answer.code == 0
    assert answer.out == inside(*same).out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "--bits", "4"), "did you mean int4, w4a16, q4_k_m or mlx_4bit?"), (("run", "--trials"), "--evaluations: expected a value"),
        (("run", "--budget", "time=100ms", "--device", "rpi5"), "did you mean total_ms, prefill_ms, decode_ms or tpot_ms?"),
        (("run", "--ram"), "expected metric=limit"), (("run", "--budget", "8 GB"), "write for example resident_gb=8 GB"),
        (("run", "--budget", "100ms"), "write for example total_ms=100ms"), (("list", "nothing_of_ours"), "kind: expected one"),
        (("run", "--nothing_of_ours", "1"), "--nothing_of_ours: expected an option of"),
    ],
)  # fmt: skip
def test_what_can_mean_several_things_is_refused(words: tuple[str, ...], said: str, inside: Inside) -> None:
    answer = inside(*words)
    assert answer.code == 2
    assert said in answer.err


def test_an_axis_under_two_names_is_refused(inside: Inside) -> None:
    answer = inside("run", "--only", "layers=24", "--only", "depth=12")
    assert answer.code == 2
    assert answer.err == "--only layers: expected depth under one name, got it under two; drop one\n"


ONLY = {
    "n_experts=1": {"n_experts": [1]},
    "depth=8..24,width=1024": {"depth": [8, 12, 16, 20, 24], "width": [1024]},
    "width=1024,2048,n_experts=8|16": {"width": [1024, 2048], "n_experts": [8, 16]},
    "depth=24..": {"depth": [24, 28, 32]},
    "n_kv_heads=1,n_heads": {"n_kv_heads": [1, "n_heads"]},
    "top_k=2": {"top_k": [2], "n_experts": [8, 16]},  # no dense design has it
}


@pytest.mark.parametrize("written", ONLY)
def test_axes_are_narrowed_everywhere_alike(written: str) -> None:
    """As text, as what is recorded, and a second time: the same space, smaller, all of its designs inside."""
    whole, study = load_study(algo="random").problem.space, load_study(algo="random", only=written)
    space, axes = study.problem.space, study.problem.space.specification.axes
    assert {name: getattr(axes, name) for name in ONLY[written]} == ONLY[written]
    assert 0 < space.size < whole.size
    again = load_study(**study.assembled.resolved())  # as --resume reads it
    assert again.problem.space.mapping() == space.mapping()
    assert again.assembled.resolved()["only"] == study.assembled.resolved()["only"]


def test_narrowed_spaces_are_solved_exactly() -> None:
    """As the space that is written out with these axes alone; every design of it is of the whole space, too."""
    written = load_study(algo="random").problem.space.mapping()
    axes = {**written["axes"], "n_experts": [1], "depth": [8, 12, 16]}
    dense, by_hand = load_study(only="n_experts=1,depth=8..16"), load_study(space={**written, "axes": axes})
    assert dense.problem.space.size == by_hand.problem.space.size
    assert dense.solve().frame.equals(by_hand.solve().frame)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (("--only", "n_experts=2"), "--only n_experts: expected values that some design of paper has, of 1, 8, 16, got 2"),
        (("--only", "head_size=2"), "--only head_size: expected an axis of numbers or words of paper (depth, "),
        (("--only", "8"), "--only: expected axis=value, got '8'"),
        (("--only", "n_experts=1,top_k=2"), "--only n_experts: expected values that some design of paper has beside the others"),
        (("--budget", "n_experts=1"), "write --only n_experts=1"),
        (("--budget", "depth<=24"), "write --only depth=..24"),
        (("--set", "space.axes.n_experts=[1]"), "write --only n_experts=1"),
        (("--space", "dense"), "--only n_experts=1: designs without experts"),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_narrowed_is_refused_with_the_line_to_type(
    line: tuple[str, ...], said: str, inside: Inside
) -> None:
    answer = inside("run", *line)
    assert answer.code == 2
    assert said in answer.err
