"""Engines as stacks: what they refuse and find; in a Python that has one, a pick becomes its file, generates, is checked and timed."""

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from nas.errors import PlasError, UsageError
from nas.export.model import Model
from nas.export.stack_files import differences
from nas.export.stack_protocol import shown
from nas.record.process import Answer
from objectives.engines import EXPERTS, RUNS, TOP_1
from objectives.plugins import version_of
from plas_stacks.engine import MISSING, RECORD, Engine, engines

Exported = Callable[..., Model]
ENGINES = sorted(engines())
HERE = [name for name in ENGINES if version_of(engines()[name].packages[-1]) != MISSING]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Every engine, as if its converter were here."""
    monkeypatch.setattr("plas_stacks.engine.version_of", lambda package: "9.9")
    return engines()[request.param]


def test_what_a_converter_does_not_take_is_refused_by_name_and_version(
    engine: Engine, exported: Exported, small: dict[str, dict[str, Any]]
) -> None:
    engine.refuse(exported(small["dense"], weights=True))
    runs = RUNS[engine.label]
    for name, lack in (("top2", "" if runs.experts else EXPERTS), ("top1", TOP_1 if runs.experts else EXPERTS)):
        model = exported(small[name], weights=True)
        if lack == "" or (lack == TOP_1 and runs.top_1_routing):
            engine.refuse(model)
            continue
        said = rf"{engine.packages[0]} 9\.9 was seen to convert .*, got Qwen3MoeForCausalLM with {lack};"
        with pytest.raises(UsageError, match=said):
            engine.refuse(model)
    with pytest.raises(UsageError, match="expected --weights"):
        engine.refuse(exported(small["dense"]))


def test_a_python_without_the_engine_is_refused(exported: Exported, small: dict[str, dict[str, Any]]) -> None:
    for name in set(ENGINES) - set(HERE):
        with pytest.raises(UsageError, match=rf"plas-codesign\[{shown(name)}\]"):
            engines()[name].refuse(exported(small["dense"], weights=True))


def test_the_format_is_that_of_the_times_where_the_engine_has_it(
    engine: Engine, exported: Exported, small: dict[str, dict[str, Any]]
) -> None:
    for precision in engine.formats:
        model = exported(small["dense"], weights=True, precision=precision)
        assert engine.format_of(model) == precision
        assert engine.cautions(model) == []
    (caution,) = engine.cautions(exported(small["dense"], weights=True, precision="nvfp4"))
    assert f"weights are {engine.formats[0]}, not nvfp4" in caution


@pytest.mark.parametrize(
    ("change", "fault"),
    [({}, ""), ({"parameters": 1}, "parameters:"), ({"generated": 3}, "generated:"), ({"difference": 2.0}, "200 %")],
)
def test_what_a_file_does_otherwise_is_found(
    engine: Engine,
    exported: Exported,
    small: dict[str, dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    change: dict[str, Any],
    fault: str,
) -> None:
    model = exported(small["dense"], weights=True)
    (tmp_path / RECORD).write_text(json.dumps({"precision": engine.formats[0]}))
    answer = {"parameters": engine.fields(model)["parameters"], "generated": 16, "difference": 0.0, **change}
    monkeypatch.setattr("plas_stacks.engine.run_worker", lambda *_: Answer("ok", answer, "", 1.0))
    faults = differences(engine.fields(model), engine.loaded(model, tmp_path))
    assert len(faults) == bool(fault)
    assert fault in "".join(faults)


def test_a_conversion_that_fails_says_why(
    engine: Engine, exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    if engine.name in HERE or engine.name == "llama_cpp":
        pytest.skip(f"{engine.name} is here, or needs no converter")
    with pytest.raises(PlasError, match=r"got crashed \(ModuleNotFoundError"):
        engine.emit(exported(small["dense"], weights=True), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", HERE)
def test_a_pick_runs_in_the_engine(name: str, tmp_path: Path) -> None:
    """In the first and the last format, with an FFN as large as the vocabulary: converted; loaded, 16 tokens generated, parameters and logits compared; timed, and calibrated by it."""
    own = engines()[name]
    (tmp_path / "one.csv").write_text("id,depth,width,n_kv_heads,n_experts,top_k,expert_size\na,1,128,2,1,1,512\n")
    (tmp_path / "board.yaml").write_text(
        "name: a board\nfp16: 1 TFLOP/s\nint8: 2 TOP/s\nbandwidth: 20 GB/s\nmemory: 8 GB\nchip: cpu\n"
    )
    for precision in (own.formats[0], own.formats[-1]):
        study = [
            "one.csv",
            "--vocabulary",
            "512",
            "--input-tokens",
            "40",
            "--output-tokens",
            "8",
            "--precision",
            precision,
        ]
        exported, measured = f"exported-{precision}", f"measured-{precision}"
        plas(tmp_path, "export", *study, "--weights", "--to", name, "--out", exported)
        assert f"{shown(name)}: 1 of 1 candidates as exported" in plas(tmp_path, "export", "--verify", exported)
        threads = ["--threads", "1", "--rounds", "1"]
        plas(tmp_path, "measure", *study, "--backend", name, "--models", exported, "--out", measured, *threads)
        lines = [json.loads(line) for line in (tmp_path / measured / "samples.jsonl").read_text().splitlines()]
        assert {line["result"]["engine"] for line in lines} == {f"{own.label} {version(own.packages[-1])}"}
        assert all(0 < line["result"]["base_bytes"] < line["result"]["peak_bytes"] for line in lines)
        rows = [f"{measured}/measured.csv", "--contended", "minimum"]
        assert own.label in plas(tmp_path, "calibrate", *rows, "--device", "board.yaml", "--out", f"{precision}.yaml")


def plas(folder: Path, *words: str) -> str:
    """What a command prints."""
    done = subprocess.run([sys.executable, "-m", "nas", *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
