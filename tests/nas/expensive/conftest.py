"""Fixtures of objectives that cost: workers in this process, a stand-in for the trainer, texts, a folder for token files."""

import json
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nas.files.yaml_source import dump
from nas.search.worker_pool import WorkerPool
from plas_train import objective as training
from tests.nas.extras import skip_without_hf

LINE = "the quick brown fox jumps over the lazy dog and runs away, number {}\n"
SPACE = {
    "name": "small",
    "head_dim": 16,
    "axes": {"depth": [1, 2, 4], "width": [32, 64, 96], "expert_ffn_ratio": [1, 2], "n_kv_heads": [1, 2]},
}
STUDY: dict[str, Any] = {
    "name": "trained",
    "space": SPACE,
    "objectives": ["train", "total_ms"],
    "train": {"data": "text.txt", "tokens": 1000},
    "applications": {},
    "default_budget": "none",
    "baselines": [],
    "algo": "random",
    "evaluations": 6,
    "workers": 2,
}
#: Stands in for the trainer: the loss is a formula of the job, unless the file `behaviour` beside it ends it otherwise.
TRAINER = """
import json, os, sys, time
job = json.load(sys.stdin)
config, here = job["config"], os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "asked.jsonl"), "a") as file:
    file.write(json.dumps({**job, "there": [os.path.exists(job[name]["path"]) for name in ("data", "validation")]}) + "\\n")
if os.path.exists(os.path.join(here, "behaviour")):
    exec(open(os.path.join(here, "behaviour")).read())
loss = 2.0 + 1.0 / config["hidden_size"] + 0.1 / config["num_hidden_layers"] + 0.01 * job["seed"]
print(json.dumps({"state": "ok", "loss": loss, "texts": {}, "seconds": 1.5}))
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip by name what trains where torch and transformers are not installed."""
    skip_without_hf(items, "torch")


@pytest.fixture
def folder(commands: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a text of 300 lines; token files and scratch lie in it, too."""
    found: Path = commands.folder
    (found / "text.txt").write_text("".join(LINE.format(i) for i in range(300)))
    (found / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(found / "tmp"))
    training._ready.cache_clear()
    return found


@pytest.fixture
def in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are threads of this process, so that what a test puts in its place is in theirs."""
    monkeypatch.setattr(
        "nas.search.cluster.WorkerPool", lambda n, timeout_s: WorkerPool(n, timeout_s, make=ThreadPoolExecutor)
    )


@pytest.fixture
def run(folder: Path, inside: Callable[..., Any], in_threads: None) -> Callable[..., Any]:
    """`run` of the study with other keys."""

    def ran(*flags: object, **changes: Any) -> Any:
        (folder / "study.yaml").write_text(dump({**STUDY, **changes}))
        return inside("run", "--config", "study.yaml", *flags)

    return ran


@pytest.fixture
def trainer(folder: Path, monkeypatch: pytest.MonkeyPatch, bare_python: None) -> Path:
    """The folder of the stand-in for the trainer."""
    place = folder / "trainer"
    place.mkdir()
    (place / "worker.py").write_text(TRAINER)
    monkeypatch.setattr("plas_train.scheduler.SCRIPT", place / "worker.py")
    monkeypatch.setattr("plas_train.objective.refuse_missing", lambda command: None)
    return place


@pytest.fixture
def asked(trainer: Path) -> Callable[[], list[dict[str, Any]]]:
    """The jobs that the stand-in was given, in order."""

    def read() -> list[dict[str, Any]]:
        path = trainer / "asked.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    return read
