"""Layers of several kinds in exports: the class of each, their order, exact parameters, and what is refused by name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.errors import UsageError
from nas.export.checkpoint import Tensor, blocks, tensors
from nas.export.families import EVERY, family_of, full_places, in_order, order_in_words, refuse_stack
from nas.export.hf_config import architecture_of, config_of
from nas.export.model import Model
from nas.export.stack_files import architecture_fields, differences
from nas.export.stack_protocol import KIND, PIVOT, shown, stack
from nas.study import config_file
from nas.study.catalogue import load_space
from nas.study.entry_points import shipped
from objectives import counts
from objectives.engines import RUNS
from search_spaces.architectures import one
from tests.nas.export.kinds import BASE, HELD, NOT_IN_LLAMA, NOT_IN_VLLM, REFUSED

Exported = Callable[..., Model]


@pytest.mark.parametrize("name", HELD)
def test_a_class_holds_every_parameter_and_reads_back(exported: Exported, name: str) -> None:
    class_name, columns = HELD[name]
    model = exported(columns)
    assert family_of(model.architecture).class_name == class_name
    assert sum(tensor.size for tensor in tensors(model) if not tensor.buffer) == counts.total(model.architecture)[0]
    again = architecture_of(json.loads(json.dumps(config_of(model))))
    assert architecture_fields(again) == architecture_fields(model.architecture)


@pytest.mark.parametrize("name", HELD)
def test_what_is_exported_is_a_model_by_its_config(exported: Exported, name: str) -> None:
    """`--model FOLDER/hf/config.json` reads what `plas export` wrote."""
    model = exported(HELD[name][1])
    again = config_file.architecture_of(json.loads(json.dumps(config_of(model))))
    assert architecture_fields(again) == architecture_fields(model.architecture)


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_class_holds_is_refused_beside_the_nearest(name: str) -> None:
    expected, columns = REFUSED[name]
    with pytest.raises(UsageError, match=f"Hugging Face class holds exactly.*{expected}.*leave the candidate out"):
        family_of(one(columns))


@pytest.mark.parametrize(
    ("depth", "others", "places"),
    [
        (26, 22, [5, 11, 17, 23]),  # Gemma 3 1B: one in six
        (48, 36, [3 + 4 * i for i in range(12)]),  # Qwen3-Next: one in four
        (8, 7, [7]),
        (9, 6, [2, 5, 8]),
        (10, 4, [0, 1, 2, 3, 4, 5]),
        (5, 3, [1, 3]),
    ],
)
def test_every_period_ends_with_full_attention(depth: int, others: int, places: list[int]) -> None:
    architecture = one({**BASE, "depth": depth, "n_local": others, "window": 512})
    assert full_places(architecture) == places
    assert in_order(architecture).count("local") == others
    every = depth // (depth - others)
    shown_places = ", ".join(str(place + 1) for place in places)
    assert order_in_words(architecture).endswith(f"layers {shown_places} of {depth}, one in {every}")


def test_orders_are_those_of_a_rule_of_the_space() -> None:
    """The period that the order goes by makes of the depth, as a rule, as many layers of full attention."""
    space = load_space("edge2026")
    keys = np.random.default_rng(0).integers(0, space.size, 300)
    architectures = space.architectures(space.genotypes(keys))
    for i in range(len(architectures)):
        a = architectures[i : i + 1]
        depth, full = int(a.depth[0]), int(a.n_full[0])
        assert depth // (depth // full) == full
        assert in_order(a).count("full") == full == len(set(full_places(a)))


@pytest.mark.parametrize("number", [300, pytest.param(1000, marks=pytest.mark.slow)])
def test_edge2026_designs_are_held_or_refused_for_what_no_class_has(number: int) -> None:
    """Of so many random designs: shared caches beside experts, DeltaNet beside experts without a shared one, Mamba2 with one expert per token."""
    space = load_space("edge2026")
    keys = np.random.default_rng(1).integers(0, space.size, number)
    architectures, held = space.architectures(space.genotypes(keys)), set()
    for i in range(len(architectures)):
        a = architectures[i : i + 1]
        sparse, kind = a.n_experts[0] > 1, int(a.linear_kind[0])
        impossible = sparse and (a.n_kv_shared[0] or kind == 1 or (kind == 2 and a.top_k[0] == 1))
        try:
            held.add(family_of(a).class_name)
        except UsageError:
            assert impossible
        else:
            assert not impossible
    assert {"Qwen3MoeForCausalLM", "MellumForCausalLM", "Lfm2MoeForCausalLM", "GraniteMoeHybridForCausalLM"} <= held


#: Columns that a space may be given as genes, one or several; each alone, with windows, with experts.
GENES: list[dict[str, Any]] = [
    {}, {"norms_per_layer": 4}, {"norms_per_layer": 1}, {"qk_norm": "no"}, {"qk_norm": "full"}, {"qkv_bias": True},
    {"qk_norm": "no", "qkv_bias": True}, {"attention_gate": True}, {"n_dense": 1, "dense_size": 64},
    {"shared_expert_size": 64}, {"shared_expert_size": 64, "shared_gate": True}, {"further_parameters": 8},
    {"table_parameters": 8}, {"ungated_ffn": True}, {"tied": False}, {"layers": "mixer 5; ffn 4; ffn 1 expert_size=8"},
]  # fmt: skip


@pytest.mark.parametrize("columns", GENES)
def test_an_engine_is_said_to_run_only_what_its_export_takes(columns: dict[str, Any]) -> None:
    """What nobody thought of counts as unknown."""
    for more in ({}, {"n_local": 3, "window": 16}, {"n_experts": 4, "top_k": 2}):
        design = one({**BASE, **more, **columns})
        for engine, name in (("llama.cpp", "llama_bench"), ("vLLM", "vllm")):
            if not RUNS[engine].lacks(design, "fp16"):
                assert name in family_of(design).stacks
                refuse_stack(design, name)
    for engine in ("TensorRT-LLM", "MLX", "MLC-LLM"):
        plain = set(columns) <= {"tied"} or columns.get("qk_norm") == "no"
        assert plain == (not RUNS[engine].lacks(one({**BASE, **columns}), "fp16"))


def test_experts_that_grouped_kernels_do_not_take_are_a_caution(exported: Exported) -> None:
    said = {
        size: " ".join(stack(PIVOT).cautions(exported({**BASE, "n_experts": 4, "top_k": 2, "expert_size": size})))
        for size in (92, 96)
    }
    assert ["--expert-multiple 8" in text for text in said.values()] == [True, False]
    assert "--expert-multiple" not in " ".join(stack(PIVOT).cautions(exported({**BASE, "expert_size": 92})))


def test_every_mix_of_edge2026_that_shares_caches_is_gemma_4_in_llama_cpp_too() -> None:
    space = load_space("edge2026")
    columns, found = space.mixes.columns, 0
    for depth, rule in np.argwhere(space.mixes.valid & (columns["n_kv_shared"] > 0)):
        mix = {name: int(table[depth, rule]) for name, table in columns.items() if name != "linear_kind"}
        a = one({**BASE, **mix, "depth": int(space.depths[depth]), "norms_per_layer": 4})
        assert family_of(a).class_name == "Gemma4ForCausalLM"
        refuse_stack(a, "llama_bench")
        found += 1
    assert found > 40


@pytest.mark.parametrize(
    ("name", "key", "value", "fault"),
    [
        ("windows", "layer_types", ["full_attention"] * 2 + ["sliding_attention"] * 3, "another order"),
        ("windows", "use_sliding_window", False, "use_sliding_window|n_local|n_full|window"),
        ("deltanet", "partial_rotary_factor", 1.0, "partial_rotary_factor"),
        ("conv", "block_auto_adjust_ff_dim", True, "block_auto_adjust_ff_dim"),
        ("conv, experts", "use_expert_bias", True, "use_expert_bias"),
        ("mamba2", "residual_multiplier", 0.5, "residual_multiplier"),
        ("mamba2", "attention_multiplier", 1.0, "attention_multiplier"),
        ("windows, experts", "mlp_layer_types", ["dense"] * 5, "mlp_layer_types"),
    ],
)
def test_a_changed_key_is_found(exported: Exported, name: str, key: str, value: object, fault: str) -> None:
    model = exported(HELD[name][1])
    config = {**config_of(model), key: value}
    try:
        found = differences(architecture_fields(model.architecture), architecture_fields(architecture_of(config)))
    except ValueError as error:
        found = [str(error)]
    assert any(part in " ".join(found) for part in fault.split("|")), found


@pytest.mark.slow
@pytest.mark.parametrize("name", HELD)
def test_stacks_that_know_the_class_read_back_and_others_are_refused(
    exported: Exported, tmp_path: Path, name: str
) -> None:
    model = exported(HELD[name][1], recipe="scaled", weights=True)
    known = family_of(model.architecture).stacks
    assert PIVOT in known
    (tmp_path / PIVOT).mkdir()
    stack(PIVOT).emit(model, tmp_path / PIVOT)
    for each in EVERY:
        if each not in known:
            with pytest.raises(UsageError, match=f"{shown(each)}: expected a design whose layers it knows"):
                refuse_stack(model.architecture, each)
        elif name in (fixed := {"llama_bench": NOT_IN_LLAMA, "vllm": NOT_IN_VLLM}.get(each, {})):
            with pytest.raises(UsageError, match=fixed[name]):
                refuse_stack(model.architecture, each)
        elif each in shipped(KIND):
            refuse_stack(model.architecture, each)
            (tmp_path / shown(each)).mkdir(exist_ok=True)
            stack(each).emit(model, tmp_path / shown(each))
            assert differences(stack(each).fields(model), stack(each).read(tmp_path / shown(each))) == []


def test_windows_in_vllm_are_transformers_own_code(exported: Exported, tmp_path: Path) -> None:
    """vLLM's Qwen3 has none; the flag is read back, and its absence found."""
    model = exported(HELD["windows"][1])
    for name in (PIVOT, "vllm"):
        (tmp_path / name).mkdir()
        stack(name).emit(model, tmp_path / name)
    script = tmp_path / "vllm" / "bench.sh"
    assert script.read_text().count("--model-impl transformers") == 2
    script.write_text(script.read_text().replace("--model-impl transformers", "--model-impl auto"))
    (fault,) = differences(stack("vllm").fields(model), stack("vllm").read(tmp_path / "vllm"))
    assert fault.startswith("code")
    stack("vllm").emit(exported(HELD["windows, experts"][1]), tmp_path / "vllm")
    assert "--model-impl" not in script.read_text()


def test_stacks_of_others_decide_for_themselves(exported: Exported) -> None:
    refuse_stack(exported(HELD["conv"][1]).architecture, "a-stack-of-a-package")


def test_decays_are_the_logarithms_of_even_steps() -> None:
    (bits,) = blocks(Tensor("A_log", (4,), 0.0, decays=16.0), 0, 0)
    values = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    assert values == pytest.approx(np.log([4.0, 8.0, 12.0, 16.0]), rel=2**-8)


def test_what_a_class_adds_is_said(exported: Exported) -> None:
    def said(name: str) -> str:
        return " ".join(stack(PIVOT).cautions(exported(HELD[name][1])))

    assert "0.25 of each head" in said("deltanet")
    assert "no auxiliary loss" in said("conv, experts")
    assert "auxiliary loss is off" in said("windows, experts")
    assert "GELU" in said("four norms")
    assert "scores are not scaled" in said("shared caches")


def named(columns: dict[str, Any], **more: Any) -> str:
    """The class of columns with more of them."""
    return family_of(one({**columns, **more})).class_name


def test_the_classes_of_today_are_unchanged() -> None:
    assert named(BASE) == "Qwen3ForCausalLM"
    assert named(BASE, n_experts=4, top_k=2) == "Qwen3MoeForCausalLM"
    assert named(BASE, qk_norm="no", qkv_bias=True) == "Qwen2ForCausalLM"
    assert named(BASE, qk_norm="no") == "LlamaForCausalLM"
