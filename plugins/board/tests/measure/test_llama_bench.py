"""Measuring with stand-ins of llama.cpp's programs: phases, batches, formats, who had the processors."""

import csv
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plas_board.calibrate.figure import precision
from plas_board.calibrate.llama_bench import described
from plas_board.measure.machine import PRECISIONS
from plas_board.measure.results import contended
from plas_board.measure.workers.llama_bench_worker import ENDINGS

CANDIDATES = """id,depth,width,head_dim,n_heads,n_kv_heads,n_experts,top_k,expert_size,vocabulary
good,2,256,64,4,2,1,1,512,1000
bad,3,256,64,4,2,4,2,256,1000
"""
#: Stands in for llama-bench: keeps its command lines, answers in the format that the file `kind` names.
LLAMA_BENCH = f"""#!{sys.executable} -S
import json, os, sys
open("calls", "a").write(" ".join(sys.argv[1:]) + "\\n")
kind = open("kind").read() if os.path.exists("kind") else "F16"
print(json.dumps([{{"samples_ns": [8e6, 16e6], "build_commit": "abc", "model_type": "qwen3 ?B " + kind, "model_size": 7}}]))
"""
#: Stands in for llama-batched-bench: a line per run, the first one slow.
BATCHED = f"""#!{sys.executable} -S
import json, sys
asked = dict(zip(sys.argv[1::2], sys.argv[2::2]))
open("batched", "a").write(" ".join(sys.argv[1:]) + "\\n")
print("noise")
for i, batch in enumerate(asked["-npl"].split(",")):
    print(json.dumps({{"pp": int(asked["-npp"]), "pl": int(batch), "t_pp": 9.0 if i == 0 else 0.5, "t_tg": 0.2}}))
"""


@pytest.fixture
def folder(commands: Any) -> Path:
    """A folder with candidates, their files and stand-ins of the programs."""
    found: Path = commands.folder
    (found / "candidates.csv").write_text(CANDIDATES)
    (found / "gguf").mkdir()
    for name in ("good", "bad"):
        (found / "gguf" / f"{name}.gguf").touch()
    for name, text in (("llama-bench", LLAMA_BENCH), ("llama-batched-bench", BATCHED)):
        (found / name).write_text(text)
        (found / name).chmod(0o755)
    return found


def rows(folder: Path) -> list[dict[str, str]]:
    """`measured.csv`."""
    return list(csv.DictReader((folder / "record" / "measured.csv").open()))


@pytest.fixture
def llama_bench(folder: Path, inside: Callable[..., Any]) -> Callable[..., Any]:
    """`measure` of the candidates with stand-ins of llama.cpp's programs, one round of 64 tokens in and 4 out."""
    place = ("--backend", "llama-bench", "--interpreter", str(folder / "llama-bench"), "--models", "gguf")
    how = ("--rounds", "1", "--threads", "1", "--input-tokens", "64", "--output-tokens", "4", "--out", "record")
    return lambda *flags: inside("measure", "candidates.csv", *place, *how, *flags)


@pytest.mark.slow
def test_llama_bench(folder: Path, llama_bench: Callable[..., Any]) -> None:
    """llama-bench is called once per phase with the candidate's file, and its samples are kept."""
    answer = llama_bench()
    assert answer.code == 0, answer
    first, second = (folder / "calls").read_text().splitlines()[:2]
    assert "-m gguf/good.gguf" in first
    assert "-p 64 -n 0" in first
    assert "-p 0 -n 4 -d 64" in second
    assert [float(row["value"]) for row in rows(folder)[:2]] == [12.0, 3.0]
    assert rows(folder)[0]["engine"] == "llama-bench abc"
    (folder / "calls").unlink()
    (folder / "gguf" / "good" / "llama-bench").mkdir(parents=True)
    (folder / "gguf" / "good" / "llama-bench" / "model.gguf").touch()
    assert llama_bench("--out", "again").code == 0
    assert "-m gguf/good/llama-bench/model.gguf" in (folder / "calls").read_text(), "as export lays it out"


def test_batches_are_of_llama_batched_bench(folder: Path, llama_bench: Callable[..., Any]) -> None:
    """One process runs warm-up and repetitions of the batch; a time is of the whole batch and of one step of all its sequences."""
    answer = llama_bench("--batch", "3", "--repetitions", "2")
    assert answer.code == 0, answer
    asked = (folder / "batched").read_text().splitlines()[0]
    assert "-m gguf/good.gguf -t 1 -npp 64 -ntg 4 -npl 3,3,3 -c 204" in asked
    assert [(row["batch"], float(row["value"]), row["samples"]) for row in rows(folder)[:2]] == [
        ("3", 500.0, "2"),
        ("3", 50.0, "2"),
    ]
    assert {row["engine"] for row in rows(folder)} == {"llama-bench abc"}
    (folder / "llama-batched-bench").unlink()
    refused = llama_bench("--batch", "3", "--out", "other")
    assert refused.code == 2
    assert (
        f"--batch: expected {folder / 'llama-batched-bench'} for several sequences, got no such program" in refused.err
    )


@pytest.mark.slow
def test_a_file_in_another_format_is_refused(folder: Path, llama_bench: Callable[..., Any]) -> None:
    """The label of a row is the file's format; a file that is not there is said as that."""
    (folder / "kind").write_text("Q4_K - Medium")
    (folder / "gguf" / "bad.gguf").unlink()
    answer = llama_bench()
    assert answer.code == 1
    assert "gguf/good.gguf: expected a file in f16, got qwen3 ?B Q4_K - Medium; correct --precision" in answer.err
    assert "gguf/bad.gguf: expected a GGUF file, got none" in answer.err
    (folder / "gguf" / "bad.gguf").touch()
    assert llama_bench("--precision", "q4_k_m", "--out", "right").code == 0


def test_rows_are_contended_where_others_take_what_threads_need() -> None:
    """Loading does not count: only processors that other programs had and the worker's threads lacked."""
    known = {"threads": 2, "cpu_s": 1.0, "wall_s": 10.0}
    assert contended(known)
    assert not contended({**known, "taken_cores": 0.4})
    assert contended({**known, "taken_cores": 0.6})


@pytest.mark.parametrize("name", PRECISIONS["llama-bench"])
def test_every_format_that_can_be_asked_for_has_llama_cpp_s_name(name: str) -> None:
    """A file in it is recognised by the worker, and by `calibrate` as the same."""
    assert precision(described(f"qwen3 8B {ENDINGS[name]}")[1]) == name
