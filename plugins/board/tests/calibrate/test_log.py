"""Logs through `calibrate`: what it says, several files and devices, and files that mean harm."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.errors import UsageError
from plas_board.calibrate import figure as documents
from plas_board.calibrate.figure import document
from plas_board.calibrate.log import reader_of

Sample = Callable[[str], Path]


def test_calibrate_says_what_it_took_and_left_out(inside: Any, sample: Sample, tmp_path: Path) -> None:
    """The format, which model each name is and why, and the rows left out by reason; the page says the same."""
    answer = inside(
        "calibrate", sample("llama_bench.json"), "--device", "rtx_4080", "--out", "mine.yaml", "--report", "page"
    )
    assert answer.code == 0, answer
    assert "Read as llama-bench, of Example GPU 16GB" in answer.out
    assert "qwen2 1.5B: Qwen2.5-1.5B, by its name, 1.544 billion parameters agree" in answer.out
    assert (
        "qwen2 3B: Qwen2.5-3B, by its name, 3.397 billion parameters agree; the file holds its table of embeddings twice"
        in " ".join(answer.out.split())
    )
    assert "llama-bench 1a2b3c4d CUDA, fa auto, q4_0, batch 1: 5 rows, 2 models" in answer.out
    told = json.loads((tmp_path / "page" / "report.json").read_text())["told"]
    assert told[0] == "Read as llama-bench, of Example GPU 16GB"


def test_every_row_is_used_or_left_out_with_a_reason(inside: Any, sample: Sample) -> None:
    """Rows used, left out and of other devices together are the log's, whatever they are."""
    for name, device, count in (
        ("issue.md", "rtx_4080", 11),
        ("batched.txt", "rtx_4080", 6),
        ("server.txt", "rtx_4080", 6),
    ):
        flags = ("--device", device, "--json", *(("--measured-on", "Example GPU 16GB") if name == "issue.md" else ()))
        report = json.loads(inside("calibrate", sample(name), *flags, "--out", f"{name}.yaml").out)
        assert report["rows_used"] + len(report["left_out"]) + report["rows_of_other_devices"] == count
        assert all(row["reason"] for row in report["left_out"])


def test_several_logs_are_one(rows: Callable[..., list[dict[str, str]]], sample: Sample) -> None:
    """Files of several formats, in any order, give the rows of all."""
    found = rows(sample("batched.txt"), sample("llama_bench.json"))
    assert len(found) == 11


def test_devices_are_not_mixed(inside: Any, sample: Sample) -> None:
    """Two devices are named, and one is chosen by its name."""
    answer = inside("calibrate", sample("issue.md"), "--device", "rtx_4080")
    assert answer.code == 2
    assert (
        "expected figures of one device, got Example GPU 16GB (9), CPU (2); choose one with --measured-on" in answer.err
    )
    answer = inside("calibrate", sample("issue.md"), "--device", "rtx_4080", "--measured-on", "GPU 9")
    assert "--measured-on: expected a device of the log (Example GPU 16GB (9), CPU (2)), got 'GPU 9'" in answer.err
    answer = inside(
        "calibrate", sample("issue.md"), "--device", "rtx_4080", "--measured-on", "example gpu 16gb", "--out", "a.yaml"
    )
    assert answer.code == 0, answer
    assert "2 rows, line 10, 11: measured on CPU" in answer.out


def test_power_mode_is_said(inside: Any, sample: Sample) -> None:
    """No log names it: the answer says which one is taken."""
    answer = inside("calibrate", sample("llama_bench.json"), "--device", "jetson_agx_orin_64gb", "--out", "a.yaml")
    assert "No log names the power mode: the default one is taken (50w, 30w, 15w can be named with @)" in answer.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("{json}", "--model", "qwen9 7B=qwen3_8b"),
            "--model: expected a name of the log (qwen2 1.5B, qwen2 3B), got 'qwen9 7b'",
        ),
        (("{csv}", "--model", "a=qwen3_8b"), "--model: expected a log of another program"),
        (
            ("{csv}", "{csv}"),
            "measured: expected one measured CSV, one export, or logs, got 2 of them; join the tables",
        ),
        (("{json}", "{csv}"), "beside the others, got a table of model, metric, value, prompt_len, of which none"),
        (("{bare}", "--model", "qwen3_8b", "--precision", "int5"), "--precision: expected a weight format"),
        (("{bare}", "--precision", "bf16"), "the log names no model: give it with --model MODEL"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], message: str, inside: Any, sample: Sample, tmp_path: Path) -> None:
    """One line and exit code 2."""
    (tmp_path / "own.csv").write_text("model,metric,value,prompt_len\nqwen3_8b,prefill_ms,9,512\n")
    tables = [line for line in sample("batched.txt").read_text().splitlines() if line.startswith("|")]
    (tmp_path / "bare.txt").write_text("\n".join(tables))
    places = {
        "json": sample("llama_bench.json"),
        "csv": tmp_path / "own.csv",
        "bare": tmp_path / "bare.txt",
    }
    answer = inside("calibrate", *(text.format(**places) for text in arguments), "--device", "l4")
    assert answer.code == 2, answer
    assert message in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    "content",
    [
        b'[{"model_type": 1, "n_prompt": [], "n_gen": {}, "samples_ns": "x"}]',
        b'[{"model_type": "qwen2 1.5B Q4_0", "n_prompt": 1e999, "n_gen": 0, "avg_ns": NaN}]',
        b'[{"model_type": "a", "n_prompt": 1, "n_gen": 0}, 3]',
        b"[" * 100_000,
        b"|model|test|t/s|\n|-|-|-|\n|"
        + b"9" * 50_000
        + b"|pp"
        + b"9" * 50_000
        + b"|"
        + b"9" * 50_000
        + b" \xc2\xb1 1|\n",
        b"\x1b]0;name\x07|model|test|t/s|\n|\x1b[31mred|pp512|1|\n",
        b"|PP|TG|B|N_KV|S_PP t/s|\n|-|-|-|-|-|\n|" + b"9" * 400 + b"|1|0|x|nan|\n||||||||\n",
        b'{"pp": [], "tg": {}, "pl": 1e999, "n_kv": null, "speed_pp": NaN, "speed_tg": -1}\n',
        b"prompt eval time = 1.00 ms / 0 tokens\neval time = 0.00 ms / 999999999 runs\n" + b"a" * 100_000,
        b"Trial 1: prompt_tps=0.000, generation_tps=1.000\nGeneration: 5 tokens, 1 tokens-per-sec\n--model "
        + b"a" * 100_000,
    ],
    ids=range(10),
)
def test_hostile_files(content: bytes, inside: Any, tmp_path: Path) -> None:
    """Anything is left out or refused in lines that a terminal only shows, never a traceback."""
    (tmp_path / "log").write_bytes(content)
    answer = inside("calibrate", "log", "--device", "l4")
    assert answer.code in (1, 2), answer
    assert "Traceback" not in answer.err
    assert "\x1b" not in answer.err + answer.out


def test_huge_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample: Sample, log: Callable[..., Any]) -> None:
    """A file over the limit is refused unread, and so are too many figures."""
    monkeypatch.setattr(documents, "MOST_BYTES", 1_000)
    with pytest.raises(UsageError, match="expected a CSV file or a log, got more than 0 MB"):
        document(sample("llama_bench.json"))
    monkeypatch.undo()
    monkeypatch.setattr("plas_board.calibrate.log.MOST_FIGURES", 4)
    with pytest.raises(UsageError, match="expected at most 4 figures, got 5; split it"):
        log(sample("llama_bench.json"))


def test_a_measured_csv_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("device,engine,model,precision,batch,prompt_len,gen_len,metric,value,quality\n")
    assert reader_of(document(tmp_path / "own.csv")) is None
