"""Fixtures of the training tests: texts, candidates, a stand-in for the worker, and whether torch is here."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.nas.extras import skip_without_hf

LINE = "the quick brown fox jumps over the lazy dog and runs away, number {}\n"
CANDIDATES = """id,depth,width,head_dim,n_kv_heads,n_experts,top_k,expert_ffn_ratio,seed
small,1,32,16,1,1,1,2,0
sparse,1,32,16,1,4,1,2,0
sparse,1,32,16,1,4,1,2,1
"""
#: Stands in for the worker: what it does is decided by the job's width, depth and seed and by files beside it.
STAND_IN = """
import json, math, os, sys, time
job = json.load(sys.stdin)
config, here = job["config"], os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "asked.jsonl"), "a") as file:
    file.write(json.dumps(job) + "\\n")
print(json.dumps({"step": 1, "steps": 2, "loss": 3.0}), flush=True)
if config.get("num_experts") and os.path.exists(os.path.join(here, "behaviour")):
    exec(open(os.path.join(here, "behaviour")).read())
open(job["curve"], "w").write("step,loss\\n")
open(job["checkpoint"], "w").write("held")
loss = 2.0 + 1.0 / config["hidden_size"] + 0.1 * job["seed"]
print(json.dumps({"state": "ok", "loss": loss, "texts": {n: loss + 1 for n in job["texts"]}, "seconds": 1.5,
                  "between": [loss + step for step in job.get("between_steps", ())]}))
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip by name what trains where torch and transformers are not installed."""
    skip_without_hf(items, "torch")


@pytest.fixture
def folder(commands: Any) -> Path:
    """A folder with candidates and a text of 300 lines."""
    found: Path = commands.folder
    (found / "list.csv").write_text(CANDIDATES)
    (found / "text.txt").write_text("".join(LINE.format(i) for i in range(300)))
    return found


@pytest.fixture
def trained(
    folder: Path, inside: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, bare_python: None
) -> Callable[..., Any]:
    """`train` of the candidates with the stand-in; what it was asked is in asked.jsonl."""
    script = folder / "worker.py"
    script.write_text(STAND_IN)
    monkeypatch.setattr("plas_train.scheduler.SCRIPT", script)
    monkeypatch.setattr("plas_train.command.refuse_missing", lambda command: None)

    def run(*flags: str, source: str = "list.csv", data: str = "text.txt", tokens: str = "256") -> Any:
        usual = ("--tokens", tokens, "--sequence-length", "32", "--batch", "2", "--out", "trained")
        return inside("train", source, "--data", data, *usual, *flags)

    return run


@pytest.fixture
def asked(folder: Path) -> Callable[[], list[dict[str, Any]]]:
    """The jobs that the stand-in was given, in order."""
    return lambda: [json.loads(line) for line in (folder / "asked.jsonl").read_text().splitlines()]
