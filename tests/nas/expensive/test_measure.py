"""The objective `measure` with stand-ins for its engines: times of the workload, formats, what is refused by name."""

import csv
import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.problem.problem import Problem
from plas_board.measure import objective

Run = Callable[..., Any]
#: Stands in for a Python with torch: times by depth; of depth 4 it dies.
PYTHON = f"""#!{sys.executable} -S
import json, sys
if sys.argv[1:2] == ["-c"]:
    sys.exit(0)
job = json.load(sys.stdin)
open({{log!r}}, "a").write(json.dumps(job) + "\\n")
base = float(job["architecture"]["depth"])
if base == 4:
    sys.exit("no kernel")
print(json.dumps({{{{"prefill_ms": [9 * base, 2 * base, base], "decode_ms": [base] * 3, "engine": "stand-in"}}}}))
"""
#: Stands in for llama-bench: says the format that its file has.
LLAMA_BENCH = f"""#!{sys.executable} -S
import json, os, sys
path = sys.argv[sys.argv.index("-m") + 1]
open({{log!r}}, "a").write(json.dumps({{{{"bytes": os.path.getsize(path), "line": sys.argv[1:]}}}}) + "\\n")
print(json.dumps([{{{{"samples_ns": [8e6, 16e6], "build_commit": "abc", "model_type": "qwen3 ?B Q4_0", "model_size": 7}}}}]))
"""


@pytest.fixture
def program(folder: Path) -> Callable[[str], str]:
    """A stand-in's path; its log is asked.jsonl."""

    def write(text: str) -> str:
        path = folder / "program"
        path.write_text(text.format(log=str(folder / "asked.jsonl")))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    return write


def asked(folder: Path) -> list[dict[str, Any]]:
    """What the stand-in was told."""
    return [json.loads(line) for line in (folder / "asked.jsonl").read_text().splitlines()]


def rows(folder: Path) -> list[dict[str, str]]:
    """`evaluations.csv` of the run."""
    return list(csv.DictReader((folder / "out" / "evaluations.csv").open()))


BASE: dict[str, Any] = {"objectives": ["loss", "measure"], "train": "none", "workers": 1, "output_tokens": 10}


@pytest.mark.slow
def test_a_request_is_its_prefill_and_its_steps(folder: Path, run: Run, program: Callable[[str], str]) -> None:
    """Medians of all samples in the study's workload; a design whose process dies fails with the reason."""
    measure = {"interpreter": program(PYTHON), "rounds": 2}
    answer = run("--out", "out", **BASE, measure=measure, algo="exact", input_tokens=64, batch=2)
    assert answer.code == 0, answer
    for row in rows(folder):
        depth = int(row["depth"])
        if depth == 4:
            assert row["reason"] == "measure: crashed, no kernel"
        else:
            assert float(row["measure"]) == 2.0 * depth + 10 * depth
    jobs = asked(folder)
    assert len(jobs) == 2 * len(rows(folder))
    assert {(job["batch"], job["input_tokens"], job["precision"], job["threads"]) for job in jobs} == {
        (2, 64, "fp32", 1)
    }


def test_llama_bench_reads_a_file_of_random_weights(folder: Path, run: Run, program: Callable[[str], str]) -> None:
    """Each design is written in the format that was asked for, and measured by its decoding."""
    measure = {"backend": "llama-bench", "precision": "q4_0", "interpreter": program(LLAMA_BENCH), "metric": "tpot_ms"}
    answer = run("--out", "out", **BASE, measure=measure, vocabulary=1000, evaluations=2)
    assert answer.code == 0, answer
    assert len({line["bytes"] for line in asked(folder)}) == 2, "two designs, two phases each"
    assert all(float(row["measure"]) > 0 for row in rows(folder))
    assert not list((folder / "tmp").glob("plas-measure-*"))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"workers": 2}, "workers: expected 1 with measure, got 2, which would slow each other"),
        ({"workers": "none"}, "workers: expected workers for measure, got none"),
        ({"measure": {"precision": "int4"}}, "measure.precision: expected a precision of torch"),
        ({"measure": {"metric": "loss"}}, "measure.metric: expected"),
        ({"measure": {"backend": "llama-bench"}}, "measure.interpreter: expected the llama-bench program, got nothing"),
        ({"measure": {"backend": "llama-bench", "interpreter": "x"}}, "measure: expected a vocabulary for llama-bench"),
        (
            {"measure": {"interpreter": "no-such-program"}},
            "measure.interpreter: expected a Python, got no-such-program",
        ),
        ({"measure": {"interpreter": "stranger/tool"}}, "measure.interpreter: expected a program outside run folders"),
        ({"space": "edge2026"}, "measure: expected full attention and an FFN in every layer, got n_"),
    ],
)
def test_refused_by_name(run: Run, folder: Path, changes: dict[str, Any], expected: str) -> None:
    """Nothing is measured and nothing is written."""
    (folder / "stranger").mkdir()
    (folder / "stranger" / "manifest.json").write_text("{}")
    (folder / "stranger" / "tool").write_text("")
    answer = run("--out", "out", **{**BASE, **changes})
    assert answer.code == 2, answer
    assert expected in answer.err
    assert not (folder / "out").exists()


def test_each_vocabulary_is_measured_with_its_own_tokens_of_a_text(
    monkeypatch: pytest.MonkeyPatch, problem_of: Callable[..., Problem]
) -> None:
    problem = problem_of(vocabulary=[8000, 128_000], input_text="4 kB", output_text=500)
    monkeypatch.setattr(objective, "refuse_missing", lambda *_: None)
    monkeypatch.setattr(objective, "_ms", lambda _, scenario, one: scenario.input_tokens)
    designs = problem.architectures(problem.space.genotypes(np.array([0, problem.space.size - 1])))
    lengths = [problem.scenario.of_vocabulary(size).input_tokens for size in designs.vocabulary.tolist()]
    assert lengths[0] != lengths[1]
    assert objective.measure(designs, problem.scenario, settings={"backend": "torch"}) == lengths
