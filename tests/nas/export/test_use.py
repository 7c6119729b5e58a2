"""What a person does with an export: reads its page, starts what it names, brings bench results back."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.export.model import Model
from nas.export.readme import readme
from nas.export.stack_protocol import RECIPES_PAGE, shown, stack
from nas.study.entry_points import shipped

Inside = Callable[..., Any]
Exported = Callable[..., Model]
ROWS = "id,depth,width,n_kv_heads,n_experts,top_k,expert_size\na,4,768,1,1,1,768\nb,8,1024,2,4,1,512\nc,16,1536,4,1,1,3072\n"
STACKS = [name for name in shipped("stacks") if not hasattr(stack(name), "loaded")]  # engines need Pythons of their own
EVERY = ",".join(map(shown, STACKS))


@pytest.fixture
def export(commands: Any, inside: Inside) -> Path:
    """An export of three candidates for every stack."""
    (commands.folder / "some.csv").write_text(ROWS)
    answer = inside("export", "some.csv", "--to", EVERY, "--out", "out")
    assert answer.code == 0, answer
    found: Path = commands.folder / "out"
    return found


def test_the_page(export: Path) -> None:
    """README.md names every candidate, every stack with its command, and what to know before."""
    page = (export / "README.md").read_text()
    for name in STACKS:
        assert f"**{shown(name)}**" in page
    assert page.count("```bash\ncd a\n") == len(STACKS)
    assert all(f"| `{name}` | {name} |" in page for name in "abc")
    assert "plas calibrate . --device DEVICE" in page
    assert "leave out embedding and LM head" in page


def test_unused_ids_are_said_for_every_stack(commands: Any, inside: Inside) -> None:
    """The default tokenizer leaves most of the vocabulary unused, whatever is trained; a fitting one is not mentioned."""
    (commands.folder / "some.csv").write_text(ROWS)
    for to in ("hf", "trainer"):
        answer = inside("export", "some.csv", "--to", to, "--out", f"plain-{to}")
        assert "Caution, every stack: the tokenizer in hf uses 257 of 151,936 ids" in answer.out
        assert "uses 257 of 151,936 ids" in (commands.folder / f"plain-{to}" / "README.md").read_text()
    assert "ids: for training" not in inside("export", "some.csv", "--vocabulary", 257, "--out", "own").out


def test_times_without_the_head_are_named(commands: Any, inside: Inside) -> None:
    """Predicted times stand beside parameters that include the head: the column and a line say what they leave out."""
    (commands.folder / "some.csv").write_text(ROWS)
    plain = inside("export", "some.csv", "--out", "plain").out
    assert "total_ms without LM head" in plain
    assert "Predicted times and memory_gb leave out embedding and LM head" in plain
    whole = inside("export", "some.csv", "--preset", "device", "--out", "whole").out
    assert "total_ms without LM head" not in whole
    assert "leave out embedding" not in whole


def test_picks_keep_their_names(copied: Path, inside: Inside) -> None:
    """Rows of picks.csv are named by their questions."""
    assert inside("export", copied / "picks.csv", "--out", "out").code == 0
    with (copied / "picks.csv").open(newline="") as file:
        questions = [row["question"] for row in csv.DictReader(file)]
    with Path("out/candidates.csv").open(newline="") as file:
        assert [row["id"] for row in csv.DictReader(file)] == questions
    assert questions
    assert all(not name[0].isdigit() for name in questions)


#: Stand-ins for torch and transformers that record how the script trains.
TORCH = """
import numpy as np
class utils:
    class data:
        class Dataset: pass
def manual_seed(seed): pass
def from_numpy(array): return array
"""
TRANSFORMERS = """
import json
SAID = {}
class Model:
    training = True
    def float(self): return self
class AutoConfig:
    @staticmethod
    def from_pretrained(path): return json.load(open(path / "config.json"))
class AutoModelForCausalLM:
    from_config = staticmethod(lambda config: SAID.update(start="config") or Model())
    from_pretrained = staticmethod(lambda path: SAID.update(start="weights") or Model())
class AutoTokenizer:
    eos_token_id = 256
    @staticmethod
    def from_pretrained(path): return AutoTokenizer()
    def __call__(self, text, add_special_tokens): return {"input_ids": list(text.encode())}
class TrainingArguments:
    def __init__(self, **given): SAID.update(arguments=given)
class Trainer:
    def __init__(self, model, args, train_dataset, eval_dataset):
        self.model, self.data, self.held = model, train_dataset, eval_dataset
    def compute_loss(self, model, inputs): return sorted(inputs)
    def train(self):
        self.model.training = True
        SAID.update(sequences=len(self.data), first=[int(i) for i in self.data[0]["input_ids"][:5]],
                    last=len(self.data[len(self.data) - 1]["labels"]), trained=self.compute_loss(self.model, self.data[0]))
    def evaluate(self):
        self.model.training = False
        SAID.update(judged=self.compute_loss(self.model, self.held[0]))
        return {}
    def save_model(self, out): json.dump(SAID, open("said.json", "w"))
"""


@pytest.mark.parametrize(("case", "weights"), [("dense", False), ("top2", True)])
def test_the_training_script(
    exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path, case: str, weights: bool
) -> None:
    """It packs text into whole sequences, keeps the global batch, and adds the loss of balance in training only."""
    model = exported(small[case], recipe="scaled", weights=weights)
    for name in ("hf", "trainer"):
        (tmp_path / name).mkdir()
        stack(name).emit(model, tmp_path / name)
    (tmp_path / "torch.py").write_text(TORCH)
    (tmp_path / "transformers.py").write_text(TRANSFORMERS)
    length = model.recipe.sequence_length
    (tmp_path / "one.txt").write_text("abcde" + "x" * (length - 5))
    (tmp_path / "two.txt").write_text("y" * (2 * length))
    command = [sys.executable, "trainer/train.py", "one.txt", "two.txt", "--eval", "two.txt", "--steps", "7"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path), "WORLD_SIZE": "4"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    said = json.loads((tmp_path / "said.json").read_text())
    assert said["start"] == ("weights" if weights else "config")
    assert (said["sequences"], said["first"], said["last"]) == (3, list(b"abcde"), length)
    arguments, plan = said["arguments"], model.schedule
    assert arguments["gradient_accumulation_steps"] * 4 == model.recipe.global_batch
    assert (arguments["max_steps"], arguments["learning_rate"]) == (7, plan.peak)
    assert arguments["lr_scheduler_kwargs"] == {"min_lr": plan.final}
    balance = {"output_router_logits"} if model.sparse else set()
    assert set(said["trained"]) == {"input_ids", "labels"} | balance
    assert set(said["judged"]) == {"input_ids", "labels"} | balance
    few = subprocess.run(
        [*command[:2], "one.txt"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "WORLD_SIZE": "7"},
        capture_output=True,
        text=True,
    )
    assert "expected a number of GPUs that divides 256, got 7" in few.stderr


def bench(export: Path, name: str, scale: float) -> None:
    """Results as vLLM's and llama.cpp's benches write them."""
    place = export / name
    for tokens, seconds in ((1, 0.02), (17, 0.02 + 16 * 0.004)):
        result = {"avg_latency": 9.9, "latencies": [scale * seconds, scale * seconds, 9.0], "percentiles": {}}
        (place / "vllm" / f"latency-{tokens}.json").write_text(json.dumps(result))
    common = {"build_commit": "abc", "model_type": "qwen3 0.6B Q4_K - Medium", "n_depth": 0}
    entries = [
        common | {"n_prompt": 1024, "n_gen": 0, "samples_ns": [scale * 3e7, scale * 3e7, 9e9]},
        common | {"n_prompt": 0, "n_gen": 16, "samples_ns": [scale * 16 * 5e6] * 3},
    ]
    (place / "llama-bench" / "result.json").write_text(json.dumps(entries))


def test_bench_results_calibrate(export: Path, inside: Inside) -> None:
    """What the bench scripts write is what `calibrate` reads: medians, the step between two lengths, formats."""
    nothing = inside("calibrate", "out", "--device", "jetson_agx_thor")
    assert nothing.code == 2
    assert "expected results of bench.sh, got none" in nothing.err
    for name, scale in (("a", 1.0), ("b", 2.0), ("c", 4.0)):
        bench(export, name, scale)
    answer = inside("calibrate", "out", "doubtful=write", "--device", "jetson_agx_thor", "--out", "thor.yaml", "--json")
    assert answer.code == 0, answer
    groups = {g["profile"]["engine"]: g for g in json.loads(answer.out)["groups"]}
    assert {name: (g["rows"], g["profile"]["precision"]) for name, g in groups.items()} == {
        "vLLM": (6, "fp16"),
        "llama-bench abc": (6, "int4"),
    }
    (export / "a" / "vllm" / "latency-1.json").write_text("{")
    (export / "b" / "llama-bench" / "result.json").write_text("[{}]")
    answer = inside("calibrate", "out", "doubtful=write", "--device", "jetson_agx_thor", "--out", "again.yaml")
    assert answer.code == 0, answer
    assert "garbled result of vllm" in answer.out
    assert "garbled result of llama-bench" in answer.out


def test_bench_times(export: Path) -> None:
    """Milliseconds of both phases, by hand."""
    from plas_board.calibrate.inputs import bench_lines

    bench(export, "b", 2.0)
    rows = list(csv.DictReader(bench_lines(export)))
    assert [(r["engine"], r["metric"], r["prompt_len"], r["gen_len"], r["precision"]) for r in rows] == [
        ("vLLM", "prefill_ms", "1024", "0", "bf16"),
        ("vLLM", "tpot_ms", "1024", "16", "bf16"),
        ("llama-bench abc", "prefill_ms", "1024", "0", "q4_k_m"),
        ("llama-bench abc", "tpot_ms", "0", "16", "q4_k_m"),
    ]
    assert [float(r["value"]) for r in rows] == pytest.approx([40.0, 8.0, 60.0, 10.0])
    assert {(r["model"], r["depth"], r["vocabulary"]) for r in rows} == {("b", "8", "151936")}


@pytest.mark.parametrize("stacks", [("hf",), ("hf", "vllm"), ("hf", "vllm", "trainer")])
def test_every_export_says_how_to_train(stacks: tuple[str, ...], small: dict[str, Any], exported: Exported) -> None:
    """The README names the stack whose command trains, or exports for it, the recipes of others, and the command for validation runs."""
    model = exported(small["dense"])
    page = readme([model], stacks, {}, [])
    own = "trainer" in stacks
    assert ("**trainer**" in page.partition("## How to start")[0]) is own
    assert (stack("trainer").launch(model) in page) is own
    assert ("--to trainer" in page) is not own
    assert f"Megatron-LM, torchtitan or LLaMA-Factory, from `hf`: {RECIPES_PAGE}" in page
    assert "plas train candidates.csv --data TEXT --tokens N" in page
