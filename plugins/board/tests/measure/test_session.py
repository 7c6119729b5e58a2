"""Measuring with stand-in workers: interleaved rounds, failures recorded, resumed without repeating."""

import csv
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.record.folder import locked
from nas.study.catalogue import load_device
from plugins.board.tests.measure.conftest import CANDIDATES, STAND_IN


def rows(folder: Path) -> list[dict[str, str]]:
    """`measured.csv`."""
    return list(csv.DictReader((folder / "record" / "measured.csv").open()))


def test_rounds_are_interleaved_and_failures_recorded(folder: Path, measured: Callable[..., Any]) -> None:
    """Every candidate once a round; one that fails does not stop the next."""
    answer = measured()
    assert answer.code == 0, answer
    assert (folder / "asked").read_text() == "2323"
    assert "4 measurements in record, 2 failed" in answer.out
    assert re.search(r"good +4 \(2\.5 to 5\.5\) +2 \(2 to 2\) +0 +yes", answer.out)
    assert re.search(r"bad +- +- +2 +-", answer.out)
    assert [(r["model"], r["metric"], r["state"]) for r in rows(folder)] == [
        ("good", "prefill_ms", "ok"),
        ("good", "tpot_ms", "ok"),
        ("bad", "prefill_ms", "crashed"),
        ("bad", "tpot_ms", "crashed"),
    ]


def test_summary(folder: Path, measured: Callable[..., Any]) -> None:
    """Median, minimum, quartiles over all rounds' samples, and whether others had the processor."""
    measured()
    first = rows(folder)[0]
    assert [float(first[name]) for name in ("min", "q1", "value", "q3")] == [2, 2.5, 4, 5.5]
    assert (first["samples"], first["rounds"], first["contended"], first["engine"]) == ("6", "2", "yes", "stand-in")


def test_resumes_what_is_missing(folder: Path, measured: Callable[..., Any]) -> None:
    """A record cut in the middle of a line continues after the last whole one."""
    measured()
    log = folder / "record" / "samples.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:2]) + lines[2][:20])
    (folder / "asked").unlink()
    measured()
    assert (folder / "asked").read_text() == "23"
    assert [json.loads(line)["round"] for line in log.read_text().splitlines()] == [1, 1, 2, 2]


@pytest.mark.slow
def test_retry_failed(folder: Path, measured: Callable[..., Any]) -> None:
    """Failures are measured again only where that is asked for."""
    measured()
    (folder / "broken").unlink()
    measured()
    assert rows(folder)[2]["state"] == "crashed"
    measured("--retry-failed")
    assert (rows(folder)[2]["state"], rows(folder)[2]["failures"]) == ("ok", "2")


def test_other_settings_are_refused(folder: Path, measured: Callable[..., Any]) -> None:
    """A record is of one setting."""
    measured()
    answer = measured("--batch", "4")
    assert answer.code == 2
    assert "expected the settings that it began with (batch 1), got 4" in answer.err


def test_the_csv_calibrates(folder: Path, measured: Callable[..., Any], inside: Callable[..., Any]) -> None:
    """What `measure` writes is what `calibrate` reads; failed rows are left out."""
    measured()
    (folder / "board.yaml").write_text("name: B\nfp16: 1 TFLOP/s\nint8: 1 TOP/s\nbandwidth: 50 GB/s\nmemory: 8 GB\n")
    answer = inside("calibrate", "record/measured.csv", "--device", "board.yaml", "--contended", "minimum")
    assert answer.code == 0, answer
    assert "stand-in, fp32, batch 1: 2 rows, 1 models" in answer.out
    assert "2 rows, line 4, 5: the measurement failed: crashed" in answer.out


def test_every_measurement_failed(folder: Path, measured: Callable[..., Any]) -> None:
    """Exit code 1 with every reason, and no CSV recommended that holds nothing."""
    (folder / "candidates.csv").write_text(CANDIDATES.replace("good,2", "good,3"))
    answer = measured()
    assert answer.code == 1
    assert "record: expected times, got 4 failed measurements: 4 crashed, cannot" in answer.err
    assert "calibrate" not in answer.out + answer.err
    (folder / "broken").unlink()
    assert measured("--retry-failed").code == 0


def test_a_missing_engine_is_found_once(folder: Path, inside: Callable[..., Any]) -> None:
    """A Python without the backend's package is a usage error before any candidate, and nothing is recorded."""
    bare = folder / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    for backend, module in (("torch", "torch"), ("vllm", "vllm")):
        answer = inside(
            "measure", "candidates.csv", "--backend", backend, "--interpreter", str(bare), "--out", "record"
        )
        assert answer.code == 2
        assert (
            f"--interpreter: expected a Python with {module}, got {bare} without it; install {module} there"
            in answer.err
        )
    assert [path.name for path in (folder / "record").iterdir()] == [".lock"]
    assert (
        "expected a Python with torch"
        in inside("measure", "--hardware", "--interpreter", str(bare), "--out", "b.yaml").err
    )


def test_our_own_python_names_the_extra(
    folder: Path, inside: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --interpreter it is this environment that lacks the extra."""
    monkeypatch.setattr("plas_board.measure.machine.MODULES", {"torch": "no_such_module"})
    answer = inside("measure", "candidates.csv", "--out", "record")
    assert answer.code == 2
    assert "pip install 'plas-codesign[hf]', or name another" in answer.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("candidates.csv", "--interpreter", "/no/such/python"),
            "expected a Python, got /no/such/python, which is no program",
        ),
        ((), "got nothing to measure"),
        (("candidates.csv", "--backend", "tpu"), "--backend: expected a backend"),
        (("candidates.csv", "--precision", "int4"), "--precision: expected a precision of torch"),
        (("candidates.csv", "--vocabulary", "-3"), "vocabulary: expected at least 0"),
        (("twice.csv",), "expected each id once, got 'good' twice"),
        (("candidates.csv", "--out", "garbled"), "expected the record of an earlier measure"),
        (("candidates.csv", "--select", "knee"), "a candidate file is measured whole"),
        (("candidates.csv", "--cuda-graphs"), "--cuda-graphs: expected --backend torch with --torch-device cuda"),
        (("candidates.csv", "--backend", "llama-bench"), "--interpreter: expected the llama-bench program"),
        (("candidates.csv", "--backend", "llama-bench", "--interpreter", "x"), "--models: expected the folder"),
        (("candidates.csv", "--out", "."), "--out: expected a new folder"),
        (("--hardware", "--out", "board"), "--out: expected a new .yaml file"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], message: str, folder: Path, inside: Callable[..., Any]) -> None:
    """What cannot be done is one line and exit code 2."""
    (folder / "twice.csv").write_text(CANDIDATES.replace("bad", "good"))
    (folder / "garbled").mkdir()
    (folder / "garbled" / "settings.json").write_text("{")
    answer = inside("measure", *arguments)
    assert answer.code == 2, answer
    assert message in answer.err


@pytest.mark.slow
@pytest.mark.parametrize("cache", [33554432, 0])
def test_hardware(folder: Path, inside: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, cache: int) -> None:
    """Sustained rates become a device file with source and date, which every command takes; a cache where there is one."""
    monkeypatch.setattr("plas_board.measure.machine.last_level_cache", lambda: cache)
    rates = {"rates": {"fp32": 1e12, "bf16": 3e12, "fp16": 2e12}, "bandwidth": 4e10, "engine": "stand-in"}
    found = rates | {"prefill_ms": [1], "decode_ms": [1], "cache_bandwidth": 9e10 if cache else 0.0}
    program = folder / "python"
    program.write_text(f"#!{sys.executable} -S\nprint('''{json.dumps(found)}''')\n")
    answer = inside("measure", "--hardware", "--interpreter", str(program), "--out", "mine.yaml")
    assert answer.code == 0, answer
    assert ("33.55 MB of cache at 90 GB/s" in answer.out) == bool(cache)
    text = (folder / "mine.yaml").read_text()
    assert "bf16 matrix products" in text
    assert "INT8 was not measured" in text
    device = load_device(str(folder / "mine.yaml"))
    assert (device.cache, device.cache_bandwidth) == ((pytest.approx(33.55e6), 9e10) if cache else (None, None))
    used = inside("explain", "--model", "qwen3_0.6b", "--device", "mine.yaml")
    assert used.code == 0, used


def test_a_busy_machine_is_said(folder: Path, measured: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A line before the first measurement, none on an idle machine."""
    monkeypatch.setattr("plas_board.measure.command.busy_cores", lambda: 1.26)
    assert "the machine is not idle: other programs have 1.3 of" in measured().err
    monkeypatch.setattr("plas_board.measure.command.busy_cores", lambda: 0.1)
    assert "not idle" not in measured("--out", "again").err


def fake_vllm(folder: Path, seconds: str, inside: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Measure with a stand-in for vLLM whose clock moves by `seconds` a request, so that no other program disturbs it."""
    (folder / "vllm.py").write_text(
        "import json, os, time\n__version__ = '0'\nclock = [0.0]\ntime.perf_counter = lambda: clock[0]\n"
        "open('space', 'a').write(os.environ['VLLM_CPU_KVCACHE_SPACE'])\n"
        "class SamplingParams:\n    def __init__(self, **given): self.tokens = given['max_tokens']\n"
        "class LLM:\n    def __init__(self, model, **given):\n"
        "        assert given['load_format'] == 'dummy'\n"
        "        open('configurations', 'a').write(open(model + '/config.json').read() + '\\n')\n"
        "    def generate(self, prompts, sampling, use_tqdm):\n"
        "        open('prompts', 'a').write(json.dumps(prompts[0]['prompt_token_ids']) + '\\n')\n"
        f"        clock[0] += {seconds}\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(folder))
    how = ("--backend", "vllm", "--interpreter", sys.executable, "--rounds", "1", "--repetitions", "2")
    workload = ("--input-tokens", "9", "--output-tokens", "4")
    return inside("measure", "candidates.csv", *how, *workload, "--out", "record")


def test_vllm(folder: Path, inside: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM gets a configuration of the Qwen3 family without weights, and requests that no cache can answer."""
    answer = fake_vllm(folder, "0.02 + 0.01 * sampling.tokens", inside, monkeypatch)
    assert "0 failed" in answer.out, answer
    dense, sparse = (json.loads(line) for line in (folder / "configurations").read_text().splitlines())
    assert (dense["model_type"], dense["num_hidden_layers"], dense["intermediate_size"]) == ("qwen3", 2, 512)
    assert (sparse["model_type"], sparse["num_experts"], sparse["num_experts_per_tok"]) == ("qwen3_moe", 4, 2)
    assert (
        folder / "space"
    ).read_text() == "22"  # GiB on a processor, where vLLM would take nearly all memory otherwise
    asked = (folder / "prompts").read_text().splitlines()
    assert len(set(asked)) == 3  # a prompt for each of three repetitions, twice each: one token, then all
    assert [float(row["value"]) for row in rows(folder)] == pytest.approx([30.0, 10.0] * 2)


def test_vllm_on_a_busy_machine(folder: Path, inside: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where more tokens took less time no decode step can be told, which is said."""
    answer = fake_vllm(folder, "1.0 / sampling.tokens", inside, monkeypatch)
    assert "the machine was busy; measure again" in answer.out + answer.err, answer


@pytest.mark.slow
def test_torch_worker(folder: Path, inside: Callable[..., Any]) -> None:
    """The torch worker measures a dense and a sparse candidate on this machine's processor."""
    pytest.importorskip("torch")
    flags = ("--rounds", "1", "--repetitions", "2", "--input-tokens", "16", "--output-tokens", "2", "--threads", "1")
    answer = inside("measure", "candidates.csv", *flags, "--out", "record")
    assert "2 measurements in record, 0 failed" in answer.out, answer
    assert all(float(row["value"]) > 0 for row in rows(folder))


def test_predicted_against_measured(folder: Path, inside: Callable[..., Any]) -> None:
    """Candidates of a run are measured under its workload; predictions, times and changed picks are printed."""
    program = folder / "python"
    program.write_text(STAND_IN.replace('float(job["architecture"]["depth"])', "1e6"))
    (folder / "broken").unlink()
    made = inside("run", "--algo", "random", "--evaluations", "60", "--input-tokens", "33", "--quiet", "--out", "run")
    assert made.code == 0, made
    flags = ("--select", "diverse:3", "--interpreter", str(program), "--rounds", "1", "--out", "record")
    answer = inside("measure", "run", *flags)
    assert answer.code == 0, answer
    assert {row["prompt_len"] for row in rows(folder)} == {"33"}
    assert "Predicted by the run, and measured (ms)" in answer.out
    assert answer.out.count("/ 1.8e+07") == 3  # 2e6 of prefill and 16 steps of 1e6
    assert "private serving (total_ms <= 2000): none instead of run-" in answer.out


def test_workload_of_less_than_one(folder: Path, measured: Callable[..., Any]) -> None:
    """No tokens are nothing to measure."""
    answer = measured("--output-tokens", "0")
    assert answer.code == 2
    assert "output_tokens: expected at least 1, got 0" in answer.err


def test_one_process_a_record(folder: Path, measured: Callable[..., Any]) -> None:
    """A record that another process works on is left alone."""
    measured()
    with locked(folder / "record"):
        answer = measured()
    assert answer.code == 2
    assert "another process works on" in answer.err
