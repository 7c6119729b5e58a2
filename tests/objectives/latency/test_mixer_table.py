"""Times from the table of mixers have the bits of those that are computed, in every scenario that it holds for."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from objectives.device import Calibration, Device, SlowMemory
from objectives.dimensions import Dimensions
from objectives.latency.mixer_table import MixerTable, holds
from objectives.latency.operator import CHUNK
from objectives.latency.roofline import latency_ms
from objectives.loss_law.law import Law
from objectives.precision import precision
from objectives.scenario import Scenario
from objectives.serving import Serving
from search_spaces.space import Mixers, SearchSpace

MEASURED = Calibration(
    compute_efficiency=0.5,
    bandwidth_efficiency=0.8,
    overhead=0.005,
    prefill_overhead=0.02,
    attention_compute=0.6,
    routing_overlap=0.3,
)
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "fused": {"attention": "fused"},
    "causal": {"causal": True, "batch": 3},
    "complete": {"complete": True},
    "long": {"input_tokens": 4000, "output_tokens": 400},
    "one token": {"input_tokens": 300, "output_tokens": 1},
    "int8": {"precision": precision("int8"), "batch": 2},
    "measured": {"calibration": MEASURED},
    "slow experts": {"serving": Serving(experts_in="slow:50%")},
}


@pytest.fixture(scope="session")
def space_of(shipped: Callable[[str, str], dict[str, Any]]) -> Callable[[str], SearchSpace]:
    """A shipped space by its name."""
    return lambda name: SearchSpace.from_mapping(shipped("search_spaces.spaces", name))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("name", ["fine", "edge2026"])
def test_a_mixer_takes_to_the_last_bit_what_its_operators_take(
    name: str,
    options: dict[str, Any],
    space_of: Callable[[str], SearchSpace],
    law: Law,
    device: Callable[[str], Device],
) -> None:
    slow = {"slow_memory": SlowMemory(bandwidth="20 GB/s", capacity="64 GB")}
    board = device("jetson_agx_orin_64gb").model_copy(update=slow)
    space, scenario = space_of(name), Scenario(law, board, **options)
    mixers = Mixers(space)
    assert holds(scenario)
    table = MixerTable.made(mixers, space.architectures(mixers.designs()), scenario)
    for n in (1, 2, 20, 300):
        genotypes = space.sample(n, np.random.default_rng(n))
        same(space, genotypes, table, scenario)


def test_blocks_of_many_rows_take_their_own(
    space_of: Callable[[str], SearchSpace], law: Law, device: Callable[[str], Device]
) -> None:
    space, scenario = space_of("fine"), Scenario(law, device("jetson_agx_orin_64gb"))
    mixers = Mixers(space)
    table = MixerTable.made(mixers, space.architectures(mixers.designs()), scenario)
    same(space, space.sample(CHUNK + 1034, np.random.default_rng(0)), table, scenario)


def same(space: SearchSpace, genotypes: Any, table: MixerTable, scenario: Scenario) -> None:
    """Both phases, with the table and without."""
    architectures = space.architectures(genotypes)
    plain, tabled = (
        latency_ms(Dimensions(architectures), scenario, mixer) for mixer in (None, table.seconds(genotypes))
    )
    for one, other in zip(plain, tabled, strict=True):
        assert one.tobytes() == other.tobytes()


def test_it_holds_for_no_further_passes_caches_links_or_closed_forms(law: Law, device: Callable[[str], Device]) -> None:
    plain = Scenario(law, device("jetson_agx_orin_64gb"))
    cached = plain.device.model_copy(update={"cache": 1e6, "cache_bandwidth": 1e12})
    assert holds(plain)
    assert not holds(replace(plain, latency="closed_form"))
    assert not holds(replace(plain, serving=Serving(speculation="mtp:2")))
    assert not holds(replace(plain, serving=Serving(link=1e9)))
    assert not holds(replace(plain, device=cached, calibration=MEASURED.model_copy(update={"cache_efficiency": 0.8})))
