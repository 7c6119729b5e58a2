"""Every stack that ships: what it writes is read back field by field, and a change is found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.errors import UsageError
from nas.export.model import Model
from nas.export.stack_files import differences
from nas.export.stack_protocol import KIND, PIVOT, WHAT, shown, stack, stack_names
from nas.study.entry_points import SHIPPED, shipped
from nas.terminal.doors import summary
from objectives.plugins import bundled
from search_spaces.architectures import Architectures
from search_spaces.columns import NOT_OF_A_MODEL

Exported = Callable[..., Model]
STACKS = [
    name for name in shipped(KIND) if not hasattr(stack(name), "loaded")
]  # engines: plugins/stacks/tests/test_engines.py
SHIPPED_STACKS = {"hf", "trainer", "vllm", "llama_bench"}
NAMES = ("dense", "top1", "top2", "untied", "qwen2", "llama", "wide heads")


def written(model: Model, name: str, folder: Path) -> Path:
    """A stack's folder beside the pivot's."""
    for each in dict.fromkeys((PIVOT, name)):
        (folder / shown(each)).mkdir()
        stack(each).emit(model, folder / shown(each))
    return folder / shown(name)


def assert_reads_back(model: Model, name: str, folder: Path) -> dict[str, Any]:
    """See that a stack's folder holds every field of a model and can be launched; the fields."""
    wanted: dict[str, Any] = stack(name).fields(model)
    assert differences(wanted, stack(name).read(written(model, name, folder))) == []
    assert stack(name).launch(model).strip()
    assert all(text.strip() for text in stack(name).cautions(model))
    return wanted


def assert_change_is_found(
    model: Model, name: str, folder: Path, file: str, change: tuple[str, str], field: str
) -> None:
    """See that a text of a stack's file in place of another is found as a fault of a field."""
    path = written(model, name, folder) / file
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change))
    faults = differences(stack(name).fields(model), stack(name).read(path.parent))
    assert any(fault.startswith(f"{field}:") for fault in faults), faults


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("case", NAMES)
@pytest.mark.parametrize("name", STACKS)
def test_every_field_reads_back(
    exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path, name: str, case: str, weights: bool
) -> None:
    model = exported(small[case], recipe="scaled", weights=weights)
    wanted = assert_reads_back(model, name, tmp_path)
    if name in SHIPPED_STACKS:
        assert set(Architectures.__dataclass_fields__) - set(NOT_OF_A_MODEL) <= set(wanted)
    assert stack(name).size(model) >= 0


@pytest.mark.parametrize(
    ("name", "file", "old", "new", "field"),
    [
        ("hf", "config.json", '"hidden_size": 128', '"hidden_size": 192', "width"),
        ("hf", "config.json", '"num_experts_per_tok": 2', '"num_experts_per_tok": 3', "top_k"),
        ("trainer", "train.py", "'max_steps': 19074", "'max_steps': 100", "steps"),
        ("trainer", "train.py", "GLOBAL_BATCH = 256", "GLOBAL_BATCH = 8", "global_batch"),
        ("trainer", "train.py", "EXPERTS = True", "EXPERTS = False", "auxiliary_loss"),
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
    assert_change_is_found(exported(small["top2"]), name, tmp_path, file, (old, new), field)


def test_what_a_stack_cannot_represent_is_said(exported: Exported, small: dict[str, dict[str, Any]]) -> None:
    one_expert, dense = exported(small["top1"], weights=True), exported(small["dense"], weights=True)
    said = {name: " ".join(stack(name).cautions(one_expert)) for name in STACKS}
    assert "renormalises" in said["llama_bench"]
    assert "renormalises" not in " ".join(stack("llama_bench").cautions(dense))
    assert "no multiple of 256" in said["llama_bench"]
    assert "10,000" in said["vllm"]
    assert "auxiliary loss" in said["hf"]
    assert "no GGUF" in " ".join(stack("llama_bench").cautions(exported(small["llama"], weights=True)))


def test_stacks_are_found_and_described() -> None:
    assert set(STACKS) >= SHIPPED_STACKS
    for name in STACKS:
        file = bundled(KIND)[name].module if name in bundled(KIND) else f"{SHIPPED[KIND]}.{name}"
        assert len(summary(file)) > 20, f"{file}: expected a first docstring line of what it writes"
        missing = [function for function in WHAT if not callable(getattr(stack(name), function, None))]
        assert missing == [], f"{file}: expected {', '.join(WHAT)}, got no {', '.join(missing)}; add them"
    assert stack_names("llama-bench, vllm,llama_bench") == ("hf", "llama_bench", "vllm")
    with pytest.raises(UsageError, match="did you mean trainer"):
        stack_names("trianer")
