"""Serving: what drafting, slow memory and a second chip change of times, memory and training, each by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nas.study.catalogue import load_device
from objectives.assessment import Assessment
from objectives.counts import count
from objectives.device import SlowMemory
from objectives.dimensions import Dimensions
from objectives.latency.operator import Pass, Phase
from objectives.latency.roofline import pass_seconds
from objectives.scenario import Scenario
from objectives.serving import Acceptance, HotExperts, Serving, accepted_of
from objectives.training import training_flops
from search_spaces.architectures import Architectures, architectures_of, one

SHARES = {"mtp": Acceptance(shares={1: 0.9, 3: 0.7}), "draft": Acceptance(0.8)}
SPARSE = {"n_experts": 16, "top_k": 2, "expert_size": 512}
DRAFT = {"depth": 2, "width": 256, "n_kv_heads": 2, "expert_size": 512, "vocabulary": 32_000}


@pytest.fixture
def designs() -> Architectures:
    """A dense and a sparse design with an LM head."""
    shape = {"depth": 12, "width": 1024, "n_kv_heads": 4, "vocabulary": 32_000}
    return architectures_of([{**shape, "expert_size": 4096}, {**shape, **SPARSE}])


@pytest.fixture
def scenario(case: Any) -> Scenario:
    """A board with slow memory beside its own, at datasheet rates."""
    board = load_device("rtx_3070").model_copy(
        update={"slow_memory": SlowMemory(bandwidth="20 GB/s", capacity="64 GB")}
    )
    found: Scenario = case.but(input_tokens=300, output_tokens=40).scenario
    return replace(found, device=board)


def ms(designs: Architectures, scenario: Scenario, serving: Serving, metric: str = "decode_ms") -> Any:
    return Assessment(designs, scenario.served(serving))[metric]


def steps_of(designs: Architectures, scenario: Scenario, positions: int, **kind: bool) -> Any:
    """Milliseconds of all decode passes of so many positions."""
    phase = Phase("decode", scenario.batch, positions, 301, 340)
    return 1e3 * pass_seconds(Dimensions(designs), [Pass(phase, scenario, **kind)])[0]


@pytest.mark.parametrize(
    ("known", "drafted", "accepted"), [(Acceptance(0.5), 3, 0.5 + 0.2375 + 0.1128125), (SHARES["mtp"], 2, 1.6)]
)
def test_accepted_tokens_of_a_step(known: Acceptance, drafted: int, accepted: float) -> None:
    assert known.accepted(drafted) == pytest.approx(accepted)


def test_a_head_that_drafts_takes_its_passes_and_saves_the_accepted_ones(
    designs: Architectures, scenario: Scenario
) -> None:
    found = ms(designs, scenario, Serving("mtp:3", acceptance=SHARES, position_cost=0.2))
    drafting = steps_of(designs, scenario, 1, one_layer=True)
    further = 3 * 0.2 * steps_of(designs, scenario, 1)
    by_hand = (steps_of(designs, scenario, 4) + further + 3 * drafting) / (1 + 3 * 0.7)
    np.testing.assert_allclose(found, by_hand, rtol=1e-12)


def test_a_draft_model_is_a_constant_of_each_step(designs: Architectures, scenario: Scenario) -> None:
    found = ms(designs, scenario, Serving("draft:2", acceptance=SHARES, draft=one(DRAFT)))
    drafting = Assessment(one(DRAFT), scenario)["decode_ms"][0]
    by_hand = (steps_of(designs, scenario, 3) + 2 * drafting) / (1 + 0.8 + 0.8 * 0.76)
    np.testing.assert_allclose(found, by_hand, rtol=1e-12)
    prefill = ms(designs, scenario, Serving("draft:2", acceptance=SHARES, draft=one(DRAFT)), "prefill_ms")
    alone = Assessment(designs, scenario)["prefill_ms"] + Assessment(one(DRAFT), scenario)["prefill_ms"][0]
    np.testing.assert_allclose(prefill, alone, rtol=1e-12)


def test_positions_of_a_step_share_experts(designs: Architectures, scenario: Scenario) -> None:
    """A dense design gains more than one with experts, whose further positions read further experts, less where they overlap."""
    plain = Assessment(designs, scenario)["decode_ms"]
    gains = [
        plain / ms(designs, scenario, Serving("mtp:3", acceptance=SHARES, position_overlap=overlap))
        for overlap in (0.0, 0.45, 1.0)
    ]
    assert gains[0][0] == gains[1][0] == gains[2][0]
    assert gains[0][1] < gains[1][1] < gains[2][1] < gains[2][0]


@pytest.mark.parametrize("hits", [0.0, 0.25])
def test_slow_experts_are_read_at_the_slow_rate(designs: Architectures, scenario: Scenario, hits: float) -> None:
    hot = HotExperts(0.1, hits)
    more = ms(designs, scenario, Serving(experts_in="slow:50%", hot=hot)) - ms(designs, scenario, Serving())
    x, p = Dimensions(designs), scenario.precision
    weights = x.activated_size * x.width * p.weight_bytes
    activations = (x.activated_size + x.top_k * x.width) * p.activation_bytes
    apart = 0.5 * (1.0 - hits) * (1 / 20e9 - 1 / scenario.device.bandwidth)
    by_hand = 40e3 * apart * 12 * 3 * (weights + activations)
    np.testing.assert_allclose(more, by_hand, rtol=1e-9)


def test_a_prompt_takes_slow_experts_over_the_link(designs: Architectures, scenario: Scenario) -> None:
    linked = scenario.slow_memory.model_copy(update={"link": 10e9})
    other = replace(scenario, device=scenario.device.model_copy(update={"slow_memory": linked}))
    slow, over = (ms(designs, each, Serving(experts_in="slow:100%"), "prefill_ms") for each in (scenario, other))
    assert (over > 1.8 * slow).all()
    decoding = [ms(designs, each, Serving(experts_in="slow:100%")) for each in (scenario, other)]
    np.testing.assert_array_equal(*decoding)


def test_memory_is_divided(designs: Architectures, scenario: Scenario) -> None:
    half = Serving(experts_in="slow:50%", hot=HotExperts(0.2))
    slow = ms(designs, scenario, half, "slow_gb")
    experts = count(designs).experts_total * scenario.precision.weight_bytes / 1e9
    np.testing.assert_allclose(slow, 0.5 * experts, rtol=1e-12)
    for metric in ("memory_gb", "resident_gb"):
        left = Assessment(designs, scenario)[metric] - ms(designs, scenario, half, metric)
        np.testing.assert_allclose(left, 0.8 * slow, rtol=1e-9)


def test_what_drafts_is_resident(designs: Architectures, scenario: Scenario) -> None:
    plain = Assessment(designs, scenario)
    width, weights = designs.width.astype(float), scenario.precision.weight_bytes
    for metric in ("memory_gb", "resident_gb"):
        more = ms(designs, scenario, Serving("mtp:1", acceptance=SHARES), metric) - plain[metric]
        layer = plain["memory_gb"] / 12
        least = layer + 2 * width**2 * weights / 1e9
        assert (more >= least * (1 - 1e-9)).all()
        assert (more <= least + 0.01).all()
        draft = Assessment(one(DRAFT), scenario)[metric][0]
        with_model = ms(designs, scenario, Serving("draft:1", acceptance=SHARES, draft=one(DRAFT)), metric)
        np.testing.assert_allclose(with_model - plain[metric], draft, rtol=1e-9)


def test_a_head_that_drafts_is_trained(designs: Architectures, case: Any) -> None:
    tokens = np.full(2, 1e9)
    more = training_flops(designs, tokens, 1024, drafting=True) / training_flops(designs, tokens, 1024)
    assert (more > 1 + 1 / 12).all()
    assert (more < 1.6).all()


def test_a_life_holds_the_training_of_its_head(designs: Architectures, scenario: Scenario) -> None:
    drafting, served = Serving("mtp:2", acceptance=SHARES), replace(scenario.training, served_tokens=1e12)
    lasting = replace(scenario, training=served, law=scenario.law.model_copy(update={"tokens": 1e9}))
    more = [ms(designs, lasting, each, "lifetime_flops") for each in (drafting, Serving())]
    trained = [ms(designs, lasting, each, "train_flops") for each in (drafting, Serving())]
    np.testing.assert_allclose(more[0] - more[1], trained[0] - trained[1], rtol=1e-9)


def test_energy_of_two_chips_is_refused(scenario: Scenario) -> None:
    """Coefficients are of the chip that decodes alone."""
    npu = replace(scenario, device=load_device("rk3588_npu"))
    with pytest.raises(ValueError, match="expected one chip"):
        scenario.served(Serving(prompts=npu)).coefficients()


def test_training_for_drafting_adds_to_the_loss(designs: Architectures, scenario: Scenario) -> None:
    plain = Assessment(designs, scenario)["loss"]
    drafting = Serving("mtp:2", acceptance=SHARES, mtp_nats=-0.0126)
    np.testing.assert_allclose(ms(designs, scenario, drafting, "loss"), plain - 0.0126, rtol=1e-12)
    model = Serving("draft:2", acceptance=SHARES, draft=one(DRAFT), mtp_nats=-0.0126)
    np.testing.assert_array_equal(ms(designs, scenario, model, "loss"), plain)


def test_another_chip_reads_prompts(designs: Architectures, scenario: Scenario) -> None:
    npu = replace(scenario, device=load_device("rk3588_npu"))
    shared, linked = (Serving(prompts=replace(npu, serving=Serving(link=link))) for link in (0.0, 5e9))
    there = Assessment(designs, npu)["prefill_ms"]
    np.testing.assert_array_equal(ms(designs, scenario, shared, "prefill_ms"), there)
    cache = 2 * 12 * 300 * designs.kv_dim * scenario.precision.kv_bytes
    np.testing.assert_allclose(ms(designs, scenario, linked, "prefill_ms") - there, 1e3 * cache / 5e9, rtol=1e-9)
    np.testing.assert_array_equal(ms(designs, scenario, linked), Assessment(designs, scenario)["decode_ms"])


def test_plain_words_change_no_bit(designs: Architectures, scenario: Scenario) -> None:
    rows = architectures_of(
        [
            {name: column[i] for name, column in designs.columns(("vocabulary",)).items()}
            | {"speculation": "none", "experts_in": "fast"}
            for i in range(2)
        ]
    )
    plain, worded = Assessment(designs, scenario), Assessment(rows, scenario.served(Serving(acceptance=SHARES)))
    for metric in ("loss", "prefill_ms", "decode_ms", "memory_gb", "resident_gb", "train_flops"):
        np.testing.assert_array_equal(plain[metric], worded[metric])


def test_accepted_tokens_of_many_drafts_are_those_of_each() -> None:
    shares = np.array([0.0, 0.3, 0.9])
    assert accepted_of(shares, 4) == pytest.approx([Acceptance(share).accepted(4) for share in shares.tolist()])


def test_a_draft_that_is_counted_apart_costs_nothing(designs: Architectures, scenario: Scenario) -> None:
    apart = Serving("draft:2", acceptance={"draft": Acceptance(shares={2: 0.0})}, draft_apart=True)
    for metric in ("prefill_ms", "memory_gb", "resident_gb"):
        assert ms(designs, scenario, apart, metric) == pytest.approx(ms(designs, scenario, Serving(), metric))
    free = replace(apart, draft=one(DRAFT), draft_apart=False)
    alone = ms(one(DRAFT), scenario, Serving())
    assert ms(designs, scenario, free) == pytest.approx(ms(designs, scenario, apart) + 2.0 * alone)
