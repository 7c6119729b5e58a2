"""Every stack in `nas/export/stacks/`: what it writes is read back field by field, and a change is found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.errors import UsageError
from nas.export.model import Model
from nas.export.stack_files import differences, number, parsed
from nas.export.stack_protocol import KIND, PIVOT, WHAT, shown, stack, stack_names
from nas.export.stacks.megatron import PROGRAM
from nas.study.entry_points import SHIPPED
from objectives.plugins import importable, summary
from search_spaces.architectures import Architectures
from search_spaces.columns import NOT_OF_A_MODEL

Exported = Callable[..., Model]
STACKS = importable(SHIPPED[KIND])
SHIPPED_STACKS = {"hf", "megatron", "torchtitan", "llamafactory", "trainer", "vllm", "llama_bench"}
NAMES = ("dense", "top1", "top2", "untied", "qwen2", "llama", "wide heads")


def written(model: Model, name: str, folder: Path) -> Path:
    """A stack's folder beside the pivot's."""
    for each in dict.fromkeys((PIVOT, name)):
        (folder / shown(each)).mkdir()
        stack(each).emit(model, folder / shown(each))
    return folder / shown(name)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("case", NAMES)
@pytest.mark.parametrize("name", STACKS)
def test_every_field_reads_back(
    exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path, name: str, case: str, weights: bool
) -> None:
    model = exported(small[case], recipe="scaled", weights=weights)
    wanted = stack(name).fields(model)
    assert differences(wanted, stack(name).read(written(model, name, tmp_path))) == []
    if name in SHIPPED_STACKS:
        assert set(Architectures.__dataclass_fields__) - set(NOT_OF_A_MODEL) <= set(wanted)
    assert stack(name).size(model) >= 0
    assert stack(name).launch(model).strip()
    assert all(text.strip() for text in stack(name).cautions(model))


@pytest.mark.parametrize(
    ("name", "file", "old", "new", "field"),
    [
        ("hf", "config.json", '"hidden_size": 128', '"hidden_size": 192', "width"),
        ("hf", "config.json", '"num_experts_per_tok": 2', '"num_experts_per_tok": 3', "top_k"),
        ("megatron", "train.sh", "--moe-ffn-hidden-size 96", "--moe-ffn-hidden-size 64", "expert_size"),
        ("megatron", "train.sh", "--vocab-size 299", "--vocab-size 301", "vocabulary"),
        ("megatron", "train.sh", "--lr-warmup-iters 38", "--lr-warmup-iters 39", "warmup_steps"),
        ("megatron", "train.sh", "--qk-layernorm", "", "qk_norm"),
        ("megatron", "train.sh", "--moe-router-topk 2", "--moe-router-topk 2 --moe-router-pre-softmax", "router_alive"),
        ("torchtitan", "candidate.py", "'steps': 19074", "'steps': 100", "steps"),
        ("trainer", "train.py", "'max_steps': 19074", "'max_steps': 100", "steps"),
        ("trainer", "train.py", "GLOBAL_BATCH = 256", "GLOBAL_BATCH = 8", "global_batch"),
        ("trainer", "train.py", "EXPERTS = True", "EXPERTS = False", "auxiliary_loss"),
        ("llamafactory", "pretrain.yaml", "adam_beta2: 0.95", "adam_beta2: 0.999", "beta2"),
        ("llamafactory", "pretrain.yaml", "moe_aux_loss_coef: 0.01", "moe_aux_loss_coef: 0.1", "auxiliary_loss"),
        ("vllm", "bench.sh", "--output-len 9", "--output-len 10", "output_tokens"),
        ("llama_bench", "bench.sh", "-p 64", "-p 65", "input_tokens"),
    ],
)
def test_a_changed_field_is_found(
    exported: Exported,
    small: dict[str, dict[str, Any]],
    tmp_path: Path,
    name: str,
    file: str,
    old: str,
    new: str,
    field: str,
) -> None:
    model = exported(small["top2"])
    path = written(model, name, tmp_path) / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    faults = differences(stack(name).fields(model), stack(name).read(path.parent))
    assert any(fault.startswith(f"{field}:") for fault in faults), faults


def test_a_torchtitan_width_is_refused(exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    path = written(exported(small["dense"]), "torchtitan", tmp_path) / "candidate.py"
    path.write_text(path.read_text().replace("MODEL = {", "MODEL = {'dim': 128, "))
    with pytest.raises(ValueError, match="no shapes"):
        stack("torchtitan").read(path.parent)


@pytest.mark.parametrize("added", [0, 1], ids=["since core_v0.18", "before"])
@pytest.mark.parametrize(("parallel", "flags"), [(1, ""), (2, "--make-vocab-size-divisible-by 150")])
def test_megatron_embeds_the_whole_vocabulary_in_every_version(
    exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path, added: int, parallel: int, flags: str
) -> None:
    """Its rule: round what the tokenizer counts (one id more before core_v0.18) up to a multiple of N times TP."""
    text = (written(exported(small["dense"]), "megatron", tmp_path) / "train.sh").read_text()
    assert "# For Megatron-LM core_v0.16 to core_v0.18." in text
    assert "--make-vocab-size-divisible-by 300 / T" in text
    found = parsed(text.replace('"$@"', flags), PROGRAM)[0]
    multiple = number(found, "--make-vocab-size-divisible-by") * parallel
    assert -(-(number(found, "--vocab-size") + added) // multiple) * multiple == 300


@pytest.mark.parametrize(("case", "present"), [("top1", True), ("top2", False), ("dense", False)])
def test_megatron_takes_softmax_before_one_expert(
    exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path, case: str, present: bool
) -> None:
    text = (written(exported(small[case]), "megatron", tmp_path) / "train.sh").read_text()
    assert ("--moe-router-pre-softmax" in text) is present


def test_what_a_stack_cannot_represent_is_said(exported: Exported, small: dict[str, dict[str, Any]]) -> None:
    one_expert, dense = exported(small["top1"], weights=True), exported(small["dense"], weights=True)
    said = {name: " ".join(stack(name).cautions(one_expert)) for name in STACKS}
    assert "renormalises" in said["llama_bench"]
    assert "renormalises" not in " ".join(stack("llama_bench").cautions(dense))
    assert "no multiple of 256" in said["llama_bench"]
    assert "10,000" in said["vllm"]
    assert "NullTokenizer" in said["megatron"]
    assert "auxiliary loss" in said["hf"]
    assert "bias on the router" in said["torchtitan"]
    assert "no GGUF" in " ".join(stack("llama_bench").cautions(exported(small["llama"], weights=True)))


def test_stacks_are_found_by_file_name_and_described() -> None:
    assert set(STACKS) >= SHIPPED_STACKS
    for name in STACKS:
        file = f"nas/export/stacks/{name}.py"
        assert len(summary(SHIPPED[KIND], name)) > 20, f"{file}: expected a first docstring line of what it writes"
        missing = [function for function in WHAT if not callable(getattr(stack(name), function, None))]
        assert missing == [], f"{file}: expected {', '.join(WHAT)}, got no {', '.join(missing)}; add them"
    assert stack_names("llama-bench, vllm,llama_bench") == ("hf", "llama_bench", "vllm")
    with pytest.raises(UsageError, match="did you mean megatron"):
        stack_names("megatorn")
