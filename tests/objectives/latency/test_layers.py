"""Layers that differ: the sum over their blocks, which is the architecture's own price where the blocks are its own layers."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from objectives.assessment import Assessment
from objectives.counts import count
from search_spaces.architectures import Architectures, one
from search_spaces.columns import DEFAULTS, SHAPE, code
from search_spaces.layer_kinds import OF_BLOCKS, Block, read_blocks, written_blocks

METRICS = ("params_total", "params_active", "memory_gb", "resident_gb", "prefill_ms", "decode_ms", "total_ms", "loss")
OPTIONS: list[dict[str, Any]] = [
    {},
    {"complete": True, "attention": "fused", "causal": True},
    {"precision": "int8", "batch": 3},
    {"precision": "q4_k_m", "head_bytes": None},
]


def as_blocks(row: dict[str, Any]) -> str:
    """The layers of a design of several kinds, one block a kind of mixer and of FFN."""
    depth, norms = row["depth"], row["norms_per_layer"]
    apart = ("n_local", "window", "n_linear", "n_conv", "n_kv_shared", "n_kv_shared_local")
    plain = dict.fromkeys(apart, 0)
    codes = {name: int(code(name, row[name])) for name in ("linear_kind",)}
    linear = {name: row[name] for name in OF_BLOCKS["mixer"] if name.startswith("linear_")} | codes
    full = depth - row["n_local"] - row["n_linear"] - row["n_conv"]
    mixers = [
        (full, {}),
        (row["n_local"], {"n_local": row["n_local"], "window": row["window"]}),
        (row["n_linear"], {"n_linear": row["n_linear"], **linear}),
        (row["n_conv"], {"n_conv": row["n_conv"], "conv_kernel": row["conv_kernel"]}),
    ]
    dense = {"n_experts": 1, "top_k": 1, "shared_expert_size": 0, "shared_gate": 0, "expert_size": row["dense_size"]}
    ffns = [(depth - row["n_dense"], {}), (row["n_dense"], dense)]
    # all norms stand at the mixers here
    blocks = [Block("mixer", n, {**plain, **own, "norms_per_layer": norms}) for n, own in mixers if n]
    blocks += [Block("ffn", n, {**own, "norms_per_layer": 0}) for n, own in ffns if n]
    return written_blocks(blocks)


def row_of(architectures: Architectures, i: int) -> dict[str, Any]:
    return {name: column.tolist()[0] for name, column in architectures[i : i + 1].columns((*DEFAULTS,)).items()}


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_blocks_that_are_the_layers_cost_what_the_layers_cost(
    options: dict[str, Any], case: Any, random_architectures: Callable[..., Architectures]
) -> None:
    drawn = random_architectures(60, 5, kinds=True)
    plain = {"n_kv_shared": 0, "n_kv_shared_local": 0}  # a block shares no cache with another
    designs = drawn.with_values(plain)
    scenario = replace(case.but(**options).scenario)
    rows = [row_of(designs, i) for i in range(len(designs))]
    columns = [{name: row[name] for name in (*SHAPE, *DEFAULTS)} for row in rows]
    listed = Architectures.concatenate([one(row | {"layers": as_blocks(row)}) for row in columns])
    before, found = Assessment(designs, scenario), Assessment(listed, scenario)
    for metric in METRICS:
        np.testing.assert_allclose(found[metric], before[metric], rtol=1e-12, err_msg=metric)


SMALL = {"depth": 4, "width": 512, "n_heads": 8, "n_kv_heads": 4, "expert_size": 1536, "qk_norm": "no"}
SMALL |= {"vocabulary": 4096}


def listed(blocks: str, **columns: Any) -> Architectures:
    return one({**SMALL, **columns, "layers": blocks})


def test_layers_without_an_ffn_or_a_mixer_have_none(case: Any) -> None:
    """Four layers of which one has no attention and another no FFN: their weights, norms, caches and launches are gone."""
    design = listed("mixer 3; ffn 2; ffn 1 expert_size=768")
    whole, alone = 786_432 + 512, 3 * 512 * 1536 + 512
    embedding, last = 4096 * 512, 512
    assert count(design).total.tolist() == [embedding + last + 3 * whole + 2 * alone + 3 * 512 * 768 + 512]
    three = Assessment(one({**SMALL, "depth": 3}), case.but().scenario)
    assert Assessment(design, case.but().scenario)["decode_ms"] < three["decode_ms"]


def test_blocks_of_own_sizes_add_up(case: Any) -> None:
    """The time of layers of two sizes is the mean of models that have one size each."""
    scenario, body = case.but().scenario, {**SMALL, "vocabulary": 0}
    blocks = "mixer 2; mixer 2 n_kv_heads=1; ffn 2; ffn 2 expert_size=64"
    mixed = one({**body, "layers": blocks})
    ends = [one(body), one({**body, "n_kv_heads": 1, "expert_size": 64})]
    for metric in ("prefill_ms", "decode_ms", "memory_gb"):
        mean = sum(Assessment(each, scenario)[metric][0] for each in ends) / 2
        assert Assessment(mixed, scenario)[metric][0] == pytest.approx(mean, rel=1e-12)


def test_a_chosen_part_of_the_tokens_costs_less_time_and_no_less_memory(case: Any) -> None:
    latent = {"head_dim": 48, "n_heads": 8, "n_kv_heads": 8, "latent_size": 64, "latent_rope": 16, "latent_queries": 40}
    latent |= {"value_dim": 24}
    chosen = {**latent, "index_heads": 2, "index_dim": 16, "n_local": 4, "window": 128}
    scenario = case.but(input_tokens=4096, attention="fused").scenario
    whole, part = (
        Assessment(listed(written_blocks([Block("mixer", 4, columns), Block("ffn", 4, {})]), **latent), scenario)
        for columns in (latent, chosen)
    )
    assert part["prefill_ms"] < whole["prefill_ms"]
    assert part["decode_ms"] < whole["decode_ms"]
    assert part["resident_gb"] > whole["resident_gb"]  # the keys of the indexer


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ("mixer", "layers: expected entries like"),
        ("mixer x; ffn 1", "layers: expected entries like"),
        ("mixer 0; ffn 1", "layers: expected entries like"),
        ("mixer 1; head 1", "layers: expected entries like"),
        ("mixer 1 depth=3; ffn 1", "layers: expected sizes of a mixer in whole numbers, got depth=3"),
        ("mixer 1 n_kv_heads=1.5; ffn 1", "layers: expected sizes of a mixer in whole numbers, got n_kv_heads=1.5"),
        ("mixer 1", "layers: expected mixers and FFNs, got one of them alone"),
    ],
)
def test_what_lists_no_layers_is_refused(layers: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        one({**SMALL, "layers": layers})


def test_alike_blocks_are_written_together() -> None:
    blocks = [Block("mixer", 1, {"n_kv_heads": 2}), Block("ffn", 3, {}), Block("mixer", 2, {"n_kv_heads": 2})]
    assert read_blocks(written_blocks(blocks)) == (Block("mixer", 3, {"n_kv_heads": 2}), Block("ffn", 3, {}))
