"""Schemas of what users write: they hold for every shipped file and every spelling that is read, and refuse what is not."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nas.commands.init import KINDS
from nas.commands.schema import models, schema_of
from nas.files import yaml_source
from nas.study.configuration import StudyConfig
from objectives.plugins import documents
from tests.nas.commands.language_server import marked

FOLDERS = {
    "study": "configs",
    "space": "search_spaces.spaces",
    "law": "objectives.laws",
    "device": "objectives.devices",
    "recipe": "nas.export.recipes",
}
SHIPPED = [(kind, name) for kind, folder in FOLDERS.items() for name in documents(folder)]
OTHERS = {"compare_paper": "comparison", "compare_hard": "comparison", "devices_paper": "devices"}
WRITTEN: dict[str, list[Any]] = {
    "vocabulary": [0, "32k", "8k,16k", [8000, "16k"]],
    "tokens": [1e10, "10B", "1B,3B", ["1B", 3e9], None],
    "budgets": [{"decode_ms": "20 ms"}, "decode_ms=20", ["decode_ms<=20"], {"tokens_per_second": ">=20"}],
    "objectives": [["loss"], "loss,total_ms"],
    "devices": [["l4", {"name": "x", "memory": "8 GB"}], "l4,t4", {"mine": "board.yaml"}],
    "device_columns": ["prices.csv", {"l4": {"price": "249 USD"}}, "none"],
    "residual_sd": [0.01, "none"],
    "evaluations": [5000, "none"],
    "input_text": [500, "10 kB"],
    "sustained": [True, 0.7, {"share": 0.7}],
    "known_as": [{"board:latency_ms": "measured"}, "board:latency_ms=measured"],
    "train": [{"data": "stdlib", "tokens": ["1e5", "1M"]}, "none"],
    "serving": [
        {"speculation": "none,mtp:1", "acceptance": 0.8},
        {"phases": "prefill=l4"},
        {"phases": {"link": "10 GB/s"}},
    ],
    "training": [{"device": "none", "served_tokens": "2T"}],
}
WRONG: dict[str, list[Any]] = {
    "budgets": [3],
    "batch": ["many", 0],
    "causal": ["yes"],
    "preset": ["papers"],
    "evaluations": ["some", 0],
    "residual_sd": ["little", -1],
    "precision": ["fp17"],
    "serving": [{"speculate": "mtp:1"}],
    "devise": ["l4"],
    "seed": [-1],
}


@cache
def validator(kind: str) -> Any:
    """A schema that checks."""
    checker = pytest.importorskip("jsonschema", reason="needs jsonschema, of the extra test")
    return checker.Draft202012Validator(json.loads(json.dumps(schema_of(kind))))


def faults(kind: str, content: Any) -> list[str]:
    """What a schema has against a content."""
    plain = json.loads(json.dumps(content, default=str))
    return [f"{'.'.join(map(str, each.absolute_path))}: {each.message}" for each in validator(kind).iter_errors(plain)]


@pytest.mark.parametrize(("kind", "name"), SHIPPED, ids=lambda each: each)
def test_every_shipped_file_is_as_its_schema_has_it(kind: str, name: str) -> None:
    content, _ = yaml_source.read(documents(FOLDERS[kind])[name])
    assert faults(OTHERS.get(name, kind) if kind == "study" else kind, content) == []


@pytest.mark.parametrize("key", WRITTEN)
def test_every_spelling_that_is_read_is_in_the_schema(key: str) -> None:
    for value in WRITTEN[key]:
        StudyConfig.model_validate({key: value})
        assert faults("study", {key: value}) == []


@pytest.mark.parametrize("key", WRONG)
def test_what_a_study_refuses_its_schema_refuses(key: str) -> None:
    for value in WRONG[key]:
        with pytest.raises(ValueError, match="validation error"):
            StudyConfig.model_validate({key: value})
        assert faults("study", {key: value}) != []


def test_studies_inside_a_comparison_are_checked_too() -> None:
    assert faults("comparison", {"studies": {"a": {"group": "g", "device": "l4"}, "b": None}}) == []
    assert faults("comparison", {"studies": {"a": {"devise": "l4"}}}) != []
    assert faults("comparison", {"study": {"batch": "many"}}) != []
    assert faults("devices", {"devices": ["l4"], "workloads": "1024/16", "batch": 2}) == []
    assert faults("devices", {"devices": ["l4"], "budget": {}}) != []


def test_a_device_of_a_user_is_checked() -> None:
    board = {
        "name": "Our board",
        "fp16": "6 TFLOP/s",
        "int8": "12 TOP/s",
        "bandwidth": "51.2 GB/s",
        "memory": "8 GB",
        "chip": "npu",
    }
    assert faults("device", board) == []
    assert faults("device", {**board, "bandwith": "51.2 GB/s"}) != []
    assert faults("device", {**board, "memory": ["8 GB"]}) != []


@pytest.mark.parametrize("kind", models())
def test_every_key_of_a_file_is_in_its_schema(kind: str) -> None:
    written = {field.alias or name for name, field in models()[kind].model_fields.items()}
    assert set(schema_of(kind)["properties"]) == written


def test_an_editor_has_nothing_against_what_init_writes_and_marks_wrong_keys(inside: Any, tmp_path: Path) -> None:
    """With the server that editors use: the schema is found by the first line, offline, in the file's own folder."""
    for study in ("paper", "wearable", "compare_paper", "devices_paper"):
        assert inside("init", f"{study}.yaml", "--from", study).code == 0
    assert {path.name for path in tmp_path.glob("*.json")} == {f"{kind}.schema.json" for kind in KINDS.values()}
    text = (tmp_path / "paper.yaml").read_text()
    (tmp_path / "wrong.yaml").write_text(text.replace("batch: 1", "batch: many") + "budgts: {decode_ms: 20}\n")
    found = marked(sorted(tmp_path.glob("*.yaml")))
    wrong = found.pop("wrong.yaml")
    assert found == {f"{study}.yaml": [] for study in ("compare_paper", "devices_paper", "paper", "wearable")}
    assert sorted(line.partition(": ")[2] for line in wrong) == [
        'Incorrect type. Expected "integer".',
        "Property budgts is not allowed.",
    ]
