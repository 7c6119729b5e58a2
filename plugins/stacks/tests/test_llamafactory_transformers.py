"""`pretrain.yaml` run by LLaMA-Factory itself for every class that takes it, where PLAS_LLAMAFACTORY names its Python."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.export.families import FAMILIES, family_of
from nas.export.model import Model
from nas.export.stacks import hf
from objectives import counts
from plas_stacks import llamafactory
from tests.nas.export.conftest import SMALL
from tests.nas.export.kinds import HELD

Exported = Callable[..., Model]
pytestmark = pytest.mark.slow
STEPS, SEQUENCES = 12, 60
CASES = {
    "dense": SMALL,
    "top1": {**SMALL, "n_experts": 4},
    "top2": {**SMALL, "n_experts": 4, "top_k": 2},
    "qwen2": {**SMALL, "qk_norm": "no", "qkv_bias": True},
    "llama": {**SMALL, "qk_norm": "no"},
    **{name: HELD[name][1] for name in ("windows", "deltanet", "conv", "mamba2", "four norms", "shared caches")},
}


def test_every_class_of_ours_is_tried(exported: Exported) -> None:
    tried = {family_of(exported(columns).architecture) for columns in CASES.values()}
    assert tried == {family for family in FAMILIES if "llamafactory" in family.stacks}


def program() -> str:
    """LLaMA-Factory's own, beside the interpreter."""
    beside = Path(os.environ.get("PLAS_LLAMAFACTORY") or "nowhere/python").with_name("llamafactory-cli")
    if shutil.which(beside) is None:
        pytest.skip("PLAS_LLAMAFACTORY names no Python with llamafactory-cli beside it")
    return str(beside)


def trained(model: Model, folder: Path) -> list[dict[str, Any]]:
    """What the training logged, a step each, on a text of so many sequences."""
    cli, data = program(), folder / "data"
    for stack, name in ((hf, "hf"), (llamafactory, "llamafactory")):
        (folder / name).mkdir()
        stack.emit(model, folder / name)
    data.mkdir()
    (data / "dataset_info.json").write_text('{"mine": {"file_name": "mine.txt", "columns": {"prompt": "text"}}}')
    line = "a line that is easily learnt, and then another one\n"
    text = line * (SEQUENCES * model.recipe.sequence_length // (len(line) - 1) + 2)
    (data / "mine.txt").write_text(text[: SEQUENCES * model.recipe.sequence_length + 20])
    given = ["dataset=mine", "use_cpu=true", f"max_steps={STEPS}", "logging_steps=1"]
    command = [cli, "train", f"llamafactory/{llamafactory.FILE}", *given]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    log = (folder / "saves" / model.folder / "trainer_log.jsonl").read_text().splitlines()
    (examples,) = {line.split("=")[1].strip() for line in done.stderr.splitlines() if "Num examples =" in line}
    assert abs(int(examples) - SEQUENCES) <= 2
    return [row for row in map(json.loads, log) if "loss" in row]


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_it_trains(exported: Exported, tmp_path: Path, name: str, weights: bool) -> None:
    """Losses fall, whole sequences are packed, and what is saved has the candidate's parameters and loads."""
    transformers = pytest.importorskip("transformers")
    model = exported(CASES[name], recipe="small", weights=weights)
    rows = trained(model, tmp_path)
    assert len(rows) == STEPS
    assert rows[-1]["loss"] < rows[0]["loss"] - 0.3
    saved = tmp_path / "saves" / model.folder
    built = transformers.AutoModelForCausalLM.from_pretrained(saved)
    assert built.num_parameters() == counts.total(model.architecture)[0]
    if model.sparse:
        config = json.loads((saved / "config.json").read_text())
        assert (config["output_router_logits"], config["router_aux_loss_coef"]) == (True, model.recipe.auxiliary_loss)
