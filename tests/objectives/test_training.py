"""Training and lifetime: FLOPs against a sum over single tokens, hours, and what others published."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from nas.study.catalogue import load_device, load_law
from objectives.assessment import Assessment
from objectives.scenario import Scenario
from objectives.training import Training, training_flops
from search_spaces.architectures import Architectures, one

MOE = {"depth": 3, "width": 128, "n_kv_heads": 1, "expert_size": 96, "n_experts": 4, "top_k": 2}
DENSE = {"depth": 2, "width": 256, "n_kv_heads": 2, "expert_size": 640, "vocabulary": 500}
MIXED = {
    **MOE, "depth": 9, "expert_size": 64, "n_dense": 2, "dense_size": 200,
    "n_local": 3, "window": 5, "n_kv_shared": 2, "n_kv_shared_local": 1, "n_conv": 1, "conv_kernel": 3,
    "n_linear": 2, "linear_kind": "deltanet", "linear_heads": 4, "linear_key_heads": 2, "linear_key_dim": 8,
    "linear_value_dim": 16, "linear_kernel": 4,
}  # fmt: skip
SHARED = {**MOE, "shared_expert_size": 64, "head_dim": 32, "n_heads": 8, "n_kv_heads": 4}


def multiply_adds(shape: dict[str, int], position: int) -> int:
    """Multiply-accumulates of one token forward that attends to `position` tokens, itself among them, one by one."""
    a = one(shape)
    d, d_q, d_m = (int(column[0]) for column in (a.width, a.query_dim, a.kv_dim))
    experts, k, m = (shape.get(name, 1) for name in ("n_experts", "top_k", "expert_size"))
    layer = d * d_q + 2 * d * d_m + d_q * d  # q; k and v; o
    layer += sum(3 * d * m for _ in range(k)) + 3 * d * shape.get("shared_expert_size", 0)
    layer += d * experts if experts > 1 else 0
    layer += 2 * d_q * position  # scores, and values by them
    return shape["depth"] * layer + shape.get("vocabulary", 0) * d


def test_layers_of_several_kinds_are_trained_on_what_each_of_them_does() -> None:
    """3 full layers (1 shares KV), 3 within a window (1 shares), 2 of Gated DeltaNet, 1 convolution; 2 FFNs are dense."""
    d, d_q, d_m, length, window = 128, 128, 64, 12, 5
    attention = 6 * 2 * d * d_q + 4 * 2 * d * d_m
    inner, keys = 4 * 16, 2 * 2 * 8
    linear = 2 * (d * (keys + inner + inner + 2 * 4) + inner * d)
    convolution = d * 3 * d + d * d
    ffns = 7 * (2 * 3 * d * 64 + d * 4) + 2 * 3 * d * 200
    weights = 2 * (attention + linear + convolution + ffns)
    scores = sum(4 * d_q * (3 * i + 3 * min(i, window)) for i in range(1, length + 1))
    recurrences = length * 2 * 7 * 4 * 8 * 16
    found = training_flops(one(MIXED), np.array([length]), length)
    assert found[0] == pytest.approx(3 * (length * weights + scores + recurrences), rel=1e-12)


def scenario(**training: object) -> Scenario:
    """The default device under a law of tokens."""
    return Scenario(load_law("chinchilla_epoch"), load_device("rtx_4090"), training=Training(**training))  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [MOE, DENSE, SHARED])
def test_training_is_three_passes_of_every_token_over_what_it_attends_to(shape: dict[str, int]) -> None:
    length, sequences = 12, 5
    forward = sum(2 * multiply_adds(shape, position + 1) for position in range(length))
    found = training_flops(one(shape), np.array([length * sequences]), length)
    assert found[0] == pytest.approx(3 * sequences * forward, rel=1e-12)


def test_every_row_counts_its_own_tokens_and_else_the_laws() -> None:
    a = Architectures.from_columns({**{k: [v] * 3 for k, v in MOE.items()}, "tokens": [0, 10**9, 3 * 10**10]})
    flops = Assessment(a, scenario())["train_flops"]
    np.testing.assert_allclose(flops / flops[1], [10, 1, 30], rtol=1e-12)


def test_hours_are_those_of_one_device_at_its_utilisation() -> None:
    device = load_device("h100_sxm")
    asked = scenario(device=device, utilisation=0.25)
    found = Assessment(one(DENSE), asked)
    assert found["train_hours"][0] == pytest.approx(found["train_flops"][0] / (0.25 * device.fp16) / 3600, rel=1e-12)


def test_hours_without_a_device_say_which_flag_is_missing() -> None:
    with pytest.raises(
        ValueError, match=r"train_hours: expected a device that trains, got none; add --set training.device=h100_sxm"
    ):
        Assessment(one(DENSE), scenario())["train_hours"]


def test_a_law_without_tokens_cannot_say_what_training_takes() -> None:
    law = load_law("hw_codesign").model_copy(update={"tokens": None})
    with pytest.raises(ValueError, match="tokens: expected training tokens, got none from law hw_codesign"):
        Assessment(one(DENSE), replace(scenario(), law=law))["train_flops"]


def test_a_life_is_training_and_a_pass_forward_for_every_token_served() -> None:
    found = Assessment(one(DENSE), scenario(served_tokens=6e10, sequence_length=64))
    per_token = found["train_flops"][0] / (3 * 10e9)
    assert found["lifetime_flops"][0] == pytest.approx((3 * 10e9 + 6e10) * per_token, rel=1e-12)


def test_the_published_wedge_between_training_and_use() -> None:
    """Sardana et al. 2024, figure 1: in place of 13 B parameters that serve 2e12 tokens, 7 B save 17 % of 1e23 FLOPs."""
    c, served = load_law("chinchilla").coefficients, 2e12

    def tokens(parameters: float, loss: float) -> float:
        left: float = loss - c["e"] - c["a"] * parameters ** -c["alpha"]
        return float((c["b"] / left) ** (1 / c["beta"]))

    ratio = c["beta"] * c["b"] / (c["alpha"] * c["a"])
    optimal = (ratio * 13e9 ** c["alpha"]) ** (1 / c["beta"])  # a Chinchilla-optimal 13 B
    loss = c["e"] + c["a"] * 13e9 ** -c["alpha"] + c["b"] * optimal ** -c["beta"]
    asked = scenario(served_tokens=served, sequence_length=1)

    def lifetime(parameters: float) -> float:
        """Of a model whose matrices hold so many parameters: layers of 12 d², their attention's term apart."""
        width = round((parameters / (12 * 40)) ** 0.5 / 64) * 64
        a = one({"depth": 40, "width": width, "n_kv_heads": width // 64, "expert_size": 8 * width // 3})
        exact = 40 * (4 * width**2 + 3 * width * (8 * width // 3))
        flops = Assessment(a, replace(asked, law=asked.law.model_copy(update={"tokens": tokens(parameters, loss)})))
        return float(flops["lifetime_flops"][0]) * parameters / exact

    before = lifetime(13e9)
    best = minimize_scalar(lifetime, bounds=(4e9, 12e9), method="bounded")
    assert best.x == pytest.approx(7e9, rel=0.05)
    assert before - best.fun == pytest.approx(1.7e22, rel=0.06)
    assert 1 - best.fun / before == pytest.approx(0.17, abs=0.01)
