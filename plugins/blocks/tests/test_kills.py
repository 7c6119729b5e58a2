"""Scores killed outright in the middle: nothing scored is lost or scored again."""

import signal
import subprocess
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow


def lines(path: Path) -> int:
    """Whole lines of a file that grows."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def killed_at(process: "subprocess.Popen[str]", path: Path, count: int) -> None:
    """Kill a process outright as soon as a file has so many lines."""
    until = time.monotonic() + 120.0
    while process.poll() is None and lines(path) < count and time.monotonic() < until:
        time.sleep(0.02)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_killed_scores_of_blocks_of_transformers_end_in_the_same_library(
    commands: Any, succeeded: Callable[..., str]
) -> None:
    """Scores of a small model with random weights; what is scored is not scored again."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
    config = transformers.LlamaConfig(**shape, num_key_value_heads=2, vocab_size=257, tie_word_embeddings=True)
    folder: Path = commands.folder
    transformers.LlamaForCausalLM(config).save_pretrained(folder / "model")
    text = Path(sysconfig.get_path("stdlib")) / "argparse.py"
    asked = (
        "model",
        "--measure",
        "--text",
        str(text),
        "--tokens",
        "4096",
        "--sequence-length",
        "128",
        "--mixtures",
        "4",
    )
    succeeded(commands("blocks", *asked, "--out", "whole"))
    killed_at(commands.start("blocks", *asked, "--out", "cut"), folder / "cut" / "scores.jsonl", 4)
    killed_at(commands.start("blocks", *asked, "--out", "cut", "--resume"), folder / "cut" / "scores.jsonl", 12)
    succeeded(commands("blocks", *asked, "--out", "cut", "--resume"))
    for name in ("library.csv", "library.yaml", "additivity.csv", "scores.jsonl"):
        assert (folder / "cut" / name).read_bytes() == (folder / "whole" / name).read_bytes(), name
