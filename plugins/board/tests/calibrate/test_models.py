"""Which architecture a log's model is: told, by name or by numbers, and refused where that is not certain."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.errors import UsageError
from nas.study.config_file import architecture_of, read_config
from nas.study.model_types import model_types
from objectives.counts import total
from objectives.plugins import documents, normalised
from objectives.published_models import MODELS
from plas_board.calibrate.figure import Figure, Stated, Unusable
from plas_board.calibrate.models import Model, fits_llama_cpp_name, given_models, identified, published

FAMILY = {
    "Gemma-2": "gemma2",
    "Gemma-3": "gemma3",
    "Phi-3.5": "phi3",
    "OLMoE": "olmoe",
    "Qwen1.5": "qwen2moe",
    "Qwen2.5": "qwen2",
    "Gemma-4": "gemma4",
    "gpt-oss": "gpt-oss",
    "GLM": "deepseek2",
    "DeepSeek": "deepseek2",
    "MiniMax": "minimax-m2",
    "Ministral": "mistral3",
    "LFM2": "lfm2",
    "SmolLM3": "smollm3",
    "Granite": "granitehybrid",
}


def ranked() -> list[Model]:
    """Those with a file of their own."""
    return [model for model in published() if normalised(model.label) in documents(MODELS)]


def family_of(label: str) -> str:
    """llama.cpp's name of a published model's family."""
    if label.startswith("Qwen3"):
        return ("qwen35" if "Qwen3.5" in label else "qwen3") + "moe" * bool(re.search(r"A\d+B", label))
    return next((family for start, family in FAMILY.items() if label.startswith(start)), "llama")


def test_published_models_are_found_by_numbers_alone() -> None:
    """By the exact count and family, each itself or one of the same architecture; rounded to two decimals too."""
    for model in ranked():
        for slack in (4096, 0.005e9):
            figure = Figure(("a file",), family=family_of(model.label), parameters=Stated(model.parameters, slack))
            found = identified(figure, {}, published())[0]
            assert total(found.architecture)[0] == model.parameters, model.label


def test_shapes_of_equal_parameters_are_named() -> None:
    """A table's 6.74 billion parameters are those of Llama 2 and of others, which the answer says; of others alone none is taken."""
    figure = Figure(("x",), family="llama", parameters=Stated(6.74e9, 0.005e9))
    model, how = identified(figure, {}, published())
    assert (model.label, "as CodeLlama-7B and DeepSeek-Coder-6.7B too" in how) == ("Llama-2-7B", True)
    with pytest.raises(Unusable, match=r"Mistral-7B-v0.1 or Mistral-7B-v0.2 by its parameters"):
        identified(Figure(("x",), family="llama", parameters=Stated(7_241_732_096, 4096)), {}, published())


def test_a_family_and_a_size_are_no_name_where_numbers_are_stated() -> None:
    figure = Figure(("llama 13B",), family="llama", parameters=Stated(13_016_028_160, 4096))
    assert identified(figure, {}, published())[0].label == "CodeLlama-13B"


def test_family_must_agree() -> None:
    """A family of other norms or biases is not taken for the same number of parameters."""
    own = next(model for model in published() if model.label == "Qwen3-1.7B")
    for family in ("llama", "qwen2", "gemma3", "qwen3moe"):
        with pytest.raises(Unusable, match="no published model has its"):
            identified(Figure(("x",), family=family, parameters=Stated(own.parameters, 4096)), {}, published())


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("Qwen2.5-7B-Instruct-Q4_K_M", "Qwen2.5-7B"), ("qwen2.5-0.5b-instruct-fp16", "Qwen2.5-0.5B"),
        ("Meta-Llama-3.1-8B-Instruct-Q8_0", "Llama-3.1-8B"), ("Llama-v3.2-1B-Instruct", "Llama-3.2-1B"),
        ("Llama-v2-7B-Chat", "Llama-2-7B"), ("Mistral-7B-Instruct-v0.3", "Mistral-7B-v0.3"),
        ("Phi-3.5-Mini-Instruct", "Phi-3.5-mini"), ("Qwen/Qwen3-0.6B", "Qwen3-0.6B"), ("gemma-3-1b-it-Q4_0", "Gemma-3-1B"),
        ("SmolLM2-135M-Instruct-f16", "SmolLM2-135M"), ("Qwen3-30B-A3B", "Qwen3-30B-A3B"),
    ],
)  # fmt: skip
def test_names(name: str, label: str) -> None:
    """File names and repositories, without the words that say nothing of the shape."""
    assert identified(Figure((name,)), {}, published())[0].label == label


@pytest.mark.parametrize(
    "name",
    [
        "Qwen2.5-Omni-7B",
        "Qwen2-3B",
        "Llama-3.3-8B",
        "Mistral-7B-v0.4",
        "Qwen2.5-VL-7B-Instruct",
        "gemma-34b",
        "tiny",
        "Llamamba-7B",
        "Minimaxi",
    ],
)
def test_other_names_are_not_guessed(name: str) -> None:
    """A name that is not exactly a published one's says nothing without numbers."""
    with pytest.raises(Unusable, match=r"no published model is known here by this name; name it with --model"):
        identified(Figure((name,)), {}, published())


def test_numbers_against_a_name() -> None:
    """A file called like one model that holds another one is not used."""
    with pytest.raises(Unusable, match=r"1\.544 billion parameters, where Qwen2\.5-7B has 7\.616"):
        identified(
            Figure(("Qwen2.5-7B-Q4_0",), family="qwen2", parameters=Stated(1_543_714_304, 4096)), {}, published()
        )


def test_files_with_a_layer_that_drafts_tokens() -> None:
    """35.51 billion parameters of a Qwen3.5-35B-A3B with one, 34.66 without, as llama.cpp rounds them."""
    for stated, note in ((35.51e9, "drafts tokens"), (34.66e9, "billion parameters")):
        figure = Figure(("qwen35moe 35B.A3B",), family="qwen35moe", parameters=Stated(stated, 0.005e9))
        model, how = identified(figure, {}, published())
        assert (model.label, note in how) == ("Qwen3.5-35B-A3B", True)


@pytest.mark.parametrize(
    "figure",
    [
        Figure(("jamba 3B",), family="jamba", parameters=Stated(3.03e9, 0.005e9)),
        Figure(("ai21labs_AI21-Jamba2-3B-Q4_K_M",)),
    ],
)
def test_families_that_no_columns_hold_are_left_out_by_name(figure: Figure) -> None:
    with pytest.raises(Unusable, match="Mamba of the first kind, which no columns hold"):
        identified(figure, {}, published())


def test_layers_of_a_mixer_or_of_experts_alone_are_known_by_their_parameters() -> None:
    figure = Figure(("nemotron_h_moe 120B.A12B",), family="nemotron_h_moe", parameters=Stated(120.67e9, 0.005e9))
    assert identified(figure, {}, published())[0].label == "Nemotron-3-Super-120B-A12B"


def test_several_models_are_named() -> None:
    """Two architectures of one family and number are named, none is taken."""
    both = [model for model in published() if model.label in ("Llama-2-7B", "Llama-3.1-8B")]
    wide = Stated(sum(model.parameters for model in both) / 2, abs(both[0].parameters - both[1].parameters))
    with pytest.raises(Unusable, match=" or "):
        identified(Figure(("x",), family="llama", parameters=wide), {}, both)


def test_told(sample: Callable[[str], Path]) -> None:
    """What is given wins over numbers that no published model has, and its own numbers are checked."""
    given = given_models([f"llama 7B={sample('config.json')}"])
    own = total(read_config(sample("config.json")))[0]
    model, how = identified(
        Figure(("code", "llama 7B"), family="llama", parameters=Stated(own, 4096)), given, published()
    )
    assert total(model.architecture)[0] == own
    assert how == "as given, 6.739 billion parameters agree"
    with pytest.raises(Unusable, match="billion parameters, where"):
        identified(Figure(("llama 7B",), family="llama", parameters=Stated(7e9, 4096)), given, published())
    with pytest.raises(Unusable, match="family qwen3, which llama 7B is not of"):
        identified(Figure(("llama 7B",), family="qwen3"), given, published())


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a="], "expected NAME=MODEL, got 'a='"),
        (["=qwen3_8b"], "expected NAME=MODEL"),
        (["a=qwen3_8b", "A=qwen3_4b"], "expected each name once, got 'A' twice"),
        (["a=qwen9"], "--model: expected a published model"),
        (["a=nowhere/config.json"], "nowhere/config.json: expected a Hugging Face config.json, got No such file"),
    ],
)
def test_mistakes_in_models(texts: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        given_models(texts)


CONFIG: dict[str, Any] = {
    "model_type": "qwen3", "hidden_size": 1024, "head_dim": 128, "intermediate_size": 3072, "num_attention_heads": 16,
    "num_hidden_layers": 28, "num_key_value_heads": 8, "tie_word_embeddings": True, "vocab_size": 151936, "attention_bias": False,
}  # fmt: skip


def test_config_of_a_published_model() -> None:
    """A published config.json gives the architecture that ships."""
    (model,) = (model for model in published() if model.label == "Qwen3-0.6B")
    assert str(architecture_of(CONFIG).columns()) == str(model.architecture.columns())
    tied = {**CONFIG, "model_type": "gemma3_text"}
    del tied["tie_word_embeddings"]
    assert architecture_of(tied).tied[0]
    experts = {
        **CONFIG,
        "model_type": "qwen3_moe",
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 512,
    }
    assert int(architecture_of(experts).expert_size[0]) == 512


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "lama"}, "model_type: expected a family that is read .*, got 'lama'; the nearest is llama"),
        ({"attention_bias": "yes"}, "attention_bias: expected true or false, got 'yes'"),
        ({"my_own_width": 3}, "my_own_width: expected keys of a qwen3 model"),
        ({"hidden_size": "wide"}, "hidden_size: expected a positive integer"),
        ({"num_hidden_layers": True}, "num_hidden_layers: expected a positive integer"),
        ({"num_key_value_heads": 5}, "n_kv_heads"),
    ],
)
def test_a_refused_config_is_one_line(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | change))
    with pytest.raises(UsageError, match=message) as refused:
        read_config(tmp_path / "config.json")
    assert "\n" not in str(refused.value)


def test_every_family_is_of_llama_cpp() -> None:
    """Published models are of the family that llama.cpp gives them and of no other known one, but for equal ones."""
    names = {name for family in model_types().families.values() for name in family.llama_cpp}
    for model in ranked():
        fitting = {name for name in names if fits_llama_cpp_name(name, model.architecture)}
        assert family_of(model.label) in fitting, model.label
        alike = (
            {
                "llama",
                "phi3",
                "internlm2",
                "smollm3",
                "mistral3",
                "gemma",
                "granite",
                "ernie4_5",
                "minicpm",
                "stablelm",
                "bitnet",
            },
            {"qwen2", "qwen2vl", "seed_oss", "chatglm"},
            {"qwen3", "qwen3vl", "exaone4", "hunyuan-dense"},
            {"gemma2", "glm4"},
            {"llama", "granitemoe", "phimoe"},
            {"qwen3moe", "qwen3vlmoe"},
        )
        alike += ({"qwen3next", "qwen35moe"}, {"olmoe", "minimax-m2"}, {"deepseek2", "mistral4"})
        assert any(fitting <= names for names in alike) or len(fitting) == 1, (model.label, fitting)
