"""The page of recipes: every value of its examples is what the export of its first sample holds."""

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from nas.export.stack_files import number, parsed
from nas.export.stack_protocol import RECIPES_PAGE
from tests.sources import ROOT

PAGE = (ROOT / RECIPES_PAGE).read_text(encoding="utf-8")
PROGRAM = "torchrun --nproc-per-node 8 /path/to/Megatron-LM/pretrain_gpt.py"
BARE = {"--group-query-attention", "--qk-layernorm", "--disable-bias-linear", "--swiglu", "--bf16"}
Contents = dict[str, dict[str, Any]]


def block(language: str, start: str) -> str:
    """The content of the page's block of a language that begins so."""
    (content,) = re.findall(rf"```{language}\n({re.escape(start)}.*?)```", PAGE, flags=re.DOTALL)
    return str(content)


def table(second: str) -> dict[str, str]:
    """Flags of the page's table with this second column, each with the last name that stands there."""
    rows = PAGE.partition(f"| flag | {second} |\n|---|---|\n")[2].partition("\n\n")[0].splitlines()
    pairs = [row.strip("| ").split(" | ") for row in rows]
    return {flag: re.findall(r"`(\w+)`", of)[-1] for flags, of in pairs for flag in re.findall(r"`(--[\w-]+)`", flags)}


@pytest.fixture
def configs(commands: Any, inside: Callable[..., Any]) -> Contents:
    """The config of each candidate that the page's sample exports."""
    (commands.folder / "two.csv").write_text(PAGE.partition("$ cat two.csv\n")[2].partition("$ ")[0])
    assert inside(*PAGE.partition("$ plas ")[2].partition("\n")[0].split()).code == 0
    return {name: json.loads(Path("trained", name, "hf/config.json").read_text()) for name in ("dense", "experts")}


@pytest.fixture
def trainer(configs: Contents) -> dict[str, Any]:
    """What the training script of `experts` sets at its top; ARGUMENTS besides, key by key."""
    tree = ast.parse(Path("trained/experts/trainer/train.py").read_text())
    values = {ast.unparse(node.targets[0]): node.value for node in tree.body if isinstance(node, ast.Assign)}
    arguments = ast.literal_eval(values["ARGUMENTS"])
    plain = {name: ast.literal_eval(values[name]) for name in ("SEQUENCE_LENGTH", "GLOBAL_BATCH", "SEED")}
    return {"ARGUMENTS": arguments, **plain, **arguments, **arguments["lr_scheduler_kwargs"]}


def test_megatrons_flags_hold_what_the_page_says_they_are(configs: Contents, trainer: dict[str, Any]) -> None:
    (flags,) = parsed(block("bash", PROGRAM), PROGRAM)
    of_config, of_trainer = table("key of `hf/config.json`"), table("name in `trainer/train.py`")
    config = configs["experts"]
    assert {flag: number(flags, flag) for flag in of_config} == {flag: config[key] for flag, key in of_config.items()}
    assert {flag: number(flags, flag) for flag in of_trainer} == {flag: trainer[of] for flag, of in of_trainer.items()}
    assert {flag for flag, value in flags.items() if value is True} == {*BARE, "--moe-router-pre-softmax"}
    assert config["num_experts_per_tok"] == 1  # for which softmax comes first
    assert number(flags, "--seed") == 1234 + trainer["SEED"]
    assert f"`--ffn-hidden-size {configs['dense']['intermediate_size']}`" in PAGE
    assert (config["model_type"], config["tie_word_embeddings"]) == ("qwen3_moe", True)


@pytest.mark.parametrize("added", [0, 1], ids=["since core_v0.18", "before"])
def test_megatron_embeds_the_whole_vocabulary_in_every_version(configs: Contents, added: int) -> None:
    """Its rule: round what the tokenizer counts (one id more before core_v0.18) up to a multiple of N times T devices."""
    (flags,) = parsed(block("bash", PROGRAM), PROGRAM)
    vocabulary, size = configs["experts"]["vocab_size"], number(flags, "--vocab-size") + added
    several = {int(t): int(n) for n, t in re.findall(r"(\d+) for (\d)", PAGE)}
    assert {*several} == {2, 4, 8}
    for devices, multiple in {1: number(flags, "--make-vocab-size-divisible-by"), **several}.items():
        assert -(-size // (multiple * devices)) * multiple * devices == vocabulary


def test_torchtitans_configuration_holds_the_training_scripts_figures(trainer: dict[str, Any]) -> None:
    tree = ast.parse(block("python", "from pathlib"))
    assigned = {ast.unparse(node.targets[0]): node.value for node in tree.body if isinstance(node, ast.Assign)}
    optimizer, schedule, training, checkpoint = (
        ast.literal_eval(assigned[name]) for name in ("OPTIMIZER", "SCHEDULE", "TRAINING", "CHECKPOINT")
    )
    assert optimizer == {
        "lr": trainer["learning_rate"],
        "betas": (trainer["adam_beta1"], trainer["adam_beta2"]),
        "eps": trainer["adam_epsilon"],
        "weight_decay": trainer["weight_decay"],
    }
    assert (schedule["warmup_steps"], schedule["decay_type"]) == (trainer["warmup_steps"], "cosine")
    assert schedule["min_lr_factor"] == pytest.approx(trainer["min_lr"] / trainer["learning_rate"], rel=1e-12)
    assert training == {
        "local_batch_size": 1,
        "global_batch_size": trainer["GLOBAL_BATCH"],
        "seq_len": trainer["SEQUENCE_LENGTH"],
        "max_norm": trainer["max_grad_norm"],
        "steps": trainer["max_steps"],
    }
    assert checkpoint == {"enable": True, "interval": trainer["save_steps"]}


def test_llamafactorys_yaml_holds_the_training_scripts_arguments(configs: Contents, trainer: dict[str, Any]) -> None:
    """As PyYAML reads it, which wants a point before an exponent."""
    content = yaml.safe_load(block("yaml", "model_name_or_path"))
    arguments = trainer["ARGUMENTS"]
    assert dict(list(content.items())[-len(arguments) :]) == arguments
    assert {**content, **arguments} == content
    assert content["moe_aux_loss_coef"] == configs["experts"]["router_aux_loss_coef"]
    assert content["cutoff_len"] == trainer["SEQUENCE_LENGTH"]
    assert content["gradient_accumulation_steps"] == trainer["GLOBAL_BATCH"]
