"""What engines are known to run as it was trained."""

import csv
from typing import Any

import numpy as np
import pytest

from objectives.engines import EXPERTS, RUNS, TOP_1, engine_of, kinds_of, kinds_of_rule
from objectives.plugins import ROOT
from search_spaces.architectures import Architectures
from search_spaces.axes_schema import Rule
from search_spaces.columns import DEFAULTS
from search_spaces.formats import FORMATS
from search_spaces.space import SearchSpace

STATED = ("llama.cpp", "vLLM", "TensorRT-LLM", "MLX", "MLC-LLM")
TRIED = ("ExecuTorch", "LiteRT-LM", "ONNX Runtime GenAI", "OpenVINO")
ENGINES = (*STATED, *TRIED)
SHAPE = {"depth": [8], "width": [512], "n_experts": [8], "top_k": [1, 2], "expert_size": [512], "n_kv_heads": [2]}
RULES: dict[str, Any] = {
    "window": {"period": 4, "local": 512},
    "kv_shared": {"period": 4, "local": 512, "kv_shared": 4},
    "conv": {"period": 4, "conv": 3},
    "deltanet": {"period": 4, "linear": "deltanet"},
    "mamba2": {"period": 4, "linear": "mamba2"},
}


def design(**axes: list[Any]) -> Architectures:
    """The last design of a space."""
    space = SearchSpace.from_mapping({"head_dim": 64, "axes": SHAPE | axes})
    return space.architectures(space.genotypes(np.array([space.size - 1])))


def lacking(found: Architectures, precision: str = "fp16") -> dict[str, str]:
    """What keeps each engine from a design."""
    return {name: RUNS[name].lacks(found, precision) for name in ENGINES}


def able(found: Architectures, precision: str = "fp16") -> list[str]:
    """The engines that run a design."""
    return [name for name, lack in lacking(found, precision).items() if not lack]


def test_every_engine_of_the_table_is_named_by_users_too_and_has_a_source() -> None:
    assert tuple(RUNS) == ENGINES
    for name, runs in RUNS.items():
        assert engine_of(name.lower()) == name
        assert runs.source
        assert set(runs.formats) <= set(FORMATS)
        further = {*runs.dense, *runs.sparse} - RULES.keys()  # kinds that genes make, each held to an export
        assert all(any(f"{column} " in kind for column in DEFAULTS) for kind in further)


def test_dense_runs_everywhere_experts_in_most_and_top_1_where_its_weight_stays() -> None:
    assert able(design(n_experts=[1], top_k=[1])) == list(STATED)
    assert able(design(n_experts=[1], top_k=[1]), "fp32") == ["llama.cpp", "vLLM", "MLX", "MLC-LLM", *TRIED]
    dense_alone = set(TRIED) - {"OpenVINO"}
    assert {name for name, lack in lacking(design(top_k=[2]), "int4").items() if lack == EXPERTS} == dense_alone
    renormalising = {"llama.cpp", "TensorRT-LLM"}
    assert {name for name, lack in lacking(design(top_k=[1]), "int4").items() if lack == TOP_1} == renormalising


def test_what_was_tried_is_the_table() -> None:
    with (ROOT / "objectives" / "engine_tries.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for name in (*TRIED, "llama.cpp"):
        own = [row for row in rows if row["engine"] == name]
        assert {row["takes"] for row in own} <= {"yes", "no", ""}
        assert all(bool(row["why"]) == (row["takes"] != "yes") for row in own)
        for row in own:
            runs = RUNS[name]
            if row["takes"] == "yes" and row["kind"]:
                assert row["kind"] in (runs.dense if row["experts"] == "no" else runs.sparse)
            if row["takes"] == "no" and row["experts"] == "no":
                assert row["kind"] not in runs.dense


@pytest.mark.parametrize(
    ("kind", "dense", "sparse"),
    [
        ("window", ["vLLM"], ["vLLM"]),
        ("kv_shared", ["llama.cpp", "vLLM"], []),
        ("conv", ["llama.cpp", "vLLM"], ["llama.cpp", "vLLM"]),
        ("deltanet", [], []),
        ("mamba2", ["vLLM"], []),
    ],
)
def test_kinds_of_layers(kind: str, dense: list[str], sparse: list[str]) -> None:
    rule = Rule.model_validate(RULES[kind])
    without = design(layers=[rule], n_experts=[1], top_k=[1])
    assert kinds_of(without) == kinds_of_rule(rule) == [kind]
    assert able(without) == dense
    assert able(design(layers=[rule], top_k=[2])) == sparse


def test_convolutions_run_where_heads_fill_the_width() -> None:
    narrow = design(layers=[Rule.model_validate(RULES["conv"])], n_heads=[4], n_experts=[1], top_k=[1])
    assert able(narrow) == []


@pytest.mark.parametrize(
    ("precision", "engines"),
    [
        ("fp16", list(STATED)),
        ("int8", ["vLLM", *TRIED]),
        ("q8_0", ["llama.cpp"]),
        ("q4_k_m_kv8", ["llama.cpp"]),
        ("nvfp4", ["vLLM", "TensorRT-LLM"]),
        ("nvfp4_down8", []),
    ],
)
def test_formats_of_weights(precision: str, engines: list[str]) -> None:
    assert able(design(n_experts=[1], top_k=[1]), precision) == engines
