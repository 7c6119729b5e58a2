"""What each stack writes is read back field by field, a change is found, and the exported page names it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from nas.errors import UsageError
from nas.export.families import family_of
from nas.export.model import Model
from nas.export.readme import readme
from nas.export.stack_files import differences, number, parsed
from nas.export.stack_protocol import TRAINING, stack, stack_names
from nas.study.entry_points import shipped
from plas_stacks import torchtitan
from plas_stacks.megatron import PROGRAM
from tests.nas.export import test_stacks as core
from tests.nas.export.kinds import HELD

Exported = Callable[..., Model]
Columns = dict[str, dict[str, Any]]
STACKS = ("llamafactory", "megatron", "torchtitan")
ALL = ",".join(STACKS)
ROW = "id,depth,width,n_kv_heads,n_experts,top_k,expert_size\none,2,128,1,4,1,96\n"


@pytest.mark.parametrize("name", HELD)
def test_layers_of_several_kinds_read_back(exported: Exported, tmp_path: Path, name: str) -> None:
    model = exported(HELD[name][1], recipe="scaled", weights=True)
    for each in sorted({*STACKS} & {*family_of(model.architecture).stacks}):
        assert each == "llamafactory"
        assert differences(stack(each).fields(model), stack(each).read(core.written(model, each, tmp_path))) == []


@pytest.mark.parametrize(
    ("name", "file", "old", "new", "field"),
    [
        ("megatron", "train.sh", "--moe-ffn-hidden-size 96", "--moe-ffn-hidden-size 64", "expert_size"),
        ("megatron", "train.sh", "--vocab-size 299", "--vocab-size 301", "vocabulary"),
        ("megatron", "train.sh", "--lr-warmup-iters 38", "--lr-warmup-iters 39", "warmup_steps"),
        ("megatron", "train.sh", "--qk-layernorm", "", "qk_norm"),
        ("megatron", "train.sh", "--moe-router-topk 2", "--moe-router-topk 2 --moe-router-pre-softmax", "router_alive"),
        ("torchtitan", "candidate.py", "'steps': 19074", "'steps': 100", "steps"),
        ("llamafactory", "pretrain.yaml", "adam_beta2: 0.95", "adam_beta2: 0.999", "beta2"),
        ("llamafactory", "pretrain.yaml", "moe_aux_loss_coef: 0.01", "moe_aux_loss_coef: 0.1", "auxiliary_loss"),
    ],
)
def test_a_changed_field_is_found(
    exported: Exported, small: Columns, tmp_path: Path, name: str, file: str, old: str, new: str, field: str
) -> None:
    core.assert_change_is_found(exported(small["top2"]), name, tmp_path, file, (old, new), field)


def test_a_torchtitan_width_is_refused(exported: Exported, small: Columns, tmp_path: Path) -> None:
    path = core.written(exported(small["dense"]), "torchtitan", tmp_path) / "candidate.py"
    path.write_text(path.read_text().replace("MODEL = {", "MODEL = {'dim': 128, "))
    with pytest.raises(ValueError, match="no shapes"):
        torchtitan.read(path.parent)


@pytest.mark.parametrize("added", [0, 1], ids=["since core_v0.18", "before"])
@pytest.mark.parametrize(("parallel", "flags"), [(1, ""), (2, "--make-vocab-size-divisible-by 150")])
def test_megatron_embeds_the_whole_vocabulary_in_every_version(
    exported: Exported, small: Columns, tmp_path: Path, added: int, parallel: int, flags: str
) -> None:
    """Its rule: round what the tokenizer counts (one id more before core_v0.18) up to a multiple of N times TP."""
    text = (core.written(exported(small["dense"]), "megatron", tmp_path) / "train.sh").read_text()
    assert "# For Megatron-LM core_v0.16 to core_v0.18." in text
    assert "# With --tensor-model-parallel-size 2 add --make-vocab-size-divisible-by 150.\n" in text
    assert "300 is not split evenly over 8 devices: Megatron's own padding, 128, makes 1,024 rows for 8." in text
    values = parsed(text.replace('"$@"', flags), PROGRAM)[0]
    multiple = number(values, "--make-vocab-size-divisible-by") * parallel
    assert -(-(number(values, "--vocab-size") + added) // multiple) * multiple == 300


@pytest.mark.parametrize(("case", "present"), [("top1", True), ("top2", False), ("dense", False)])
def test_megatron_takes_softmax_before_one_expert(
    exported: Exported, small: Columns, tmp_path: Path, case: str, present: bool
) -> None:
    text = (core.written(exported(small[case]), "megatron", tmp_path) / "train.sh").read_text()
    assert ("--moe-router-pre-softmax" in text) is present


def test_yaml_numbers_are_numbers(exported: Exported, small: Columns, tmp_path: Path) -> None:
    """PyYAML, which LLaMA-Factory reads with, wants a point before an exponent."""
    content = yaml.safe_load(
        (core.written(exported(small["dense"]), "llamafactory", tmp_path) / "pretrain.yaml").read_text()
    )
    assert content["lr_scheduler_kwargs"] == {"min_lr": 1e-6}
    assert content["adam_epsilon"] == 1e-8


def test_what_a_stack_cannot_represent_is_said(exported: Exported, small: Columns) -> None:
    model = exported(small["top1"], weights=True)
    assert "NullTokenizer" in " ".join(stack("megatron").cautions(model))
    assert "bias on the router" in " ".join(stack("torchtitan").cautions(model))


def test_the_page_names_those_that_train(exported: Exported, small: Columns) -> None:
    page = readme([exported(small["dense"])], ("hf", *STACKS), {}, [])
    assert all(f"**{name}**" in page.partition("## How to start")[0] for name in STACKS)
    assert all(stack(name).launch(exported(small["dense"])) in page for name in STACKS)
    assert "--to trainer" not in page


def test_the_core_knows_their_names() -> None:
    assert set(TRAINING) == {"trainer", *STACKS} <= set(shipped("stacks"))
    with pytest.raises(UsageError, match="did you mean megatron"):
        stack_names("megatorn")


def test_an_export_is_listed_written_and_verified(commands: Any, inside: Callable[..., Any]) -> None:
    """Two exports have the same bytes; `--verify` reads every stack, and finds a change."""
    listed = {row["name"] for row in json.loads(inside("list", "stacks", "--json").out)}
    assert listed >= {*STACKS}
    (commands.folder / "some.csv").write_text(ROW)
    for out in ("a", "b"):
        assert inside("export", "some.csv", "--vocabulary", 300, "--to", ALL, "--out", out).code == 0
    files = sorted(path.relative_to("a") for path in Path("a").rglob("*") if path.is_file())
    assert {path.parts[1] for path in files if len(path.parts) > 2} == {"hf", *STACKS}
    assert all((Path("a") / path).read_bytes() == (Path("b") / path).read_bytes() for path in files)
    checked = inside("export", "--verify", "a")
    assert (checked.code, checked.out.count("1 of 1 candidates as exported")) == (0, 4)
    script = Path("a/one/megatron/train.sh")
    script.write_text(script.read_text().replace("--num-layers 2", "--num-layers 3"))
    changed = inside("export", "--verify", "a")
    assert changed.code == 1
    assert "depth: expected 2, got 3" in changed.out
