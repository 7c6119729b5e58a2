"""Keys and columns that somebody adds: what closed forms do not cover is refused by name, and what nothing reads or prices is found."""

import re
from dataclasses import dataclass, fields, replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import nas
from nas.errors import UsageError
from nas.study.configuration import StudyConfig
from objectives.assessment import Assessment
from objectives.device import Device
from objectives.latency.closed_form import COLUMNS, DEVICE, PRECISION, SCENARIO, latency_ms, part_seconds, uncovered
from objectives.precision import Precision
from objectives.scenario import Scenario
from plas_paper.theory_problem import OPTIONS, TheoryProblem
from search_spaces.architectures import Architectures, one
from search_spaces.columns import CODES, DEFAULTS, NOT_OF_A_MODEL, TEXTS, code
from tests.sources import FILES, text

SHAPE = {"depth": 12, "width": 768, "n_kv_heads": 4, "expert_size": 1536}
EVERYTHING = SHAPE | {
    "n_experts": 4,
    "top_k": 2,
    "shared_expert_size": 64,
    "vocabulary": 1000,
    "n_dense": 1,
    "dense_size": 512,
    "n_local": 3,
    "window": 64,
    "n_kv_shared": 3,
    "n_kv_shared_local": 1,
    "n_conv": 2,
    "conv_kernel": 3,
    "n_linear": 2,
    "linear_kind": "deltanet",
    "linear_heads": 8,
    "linear_key_heads": 4,
    "linear_kernel": 4,
    "linear_key_dim": 64,
    "linear_value_dim": 64,
    "full_head_dim": 128,
    "full_kv_heads": 4,
}  # a design in which each column matters, but for those of latent attention
LATENT = SHAPE | {
    "head_dim": 96,
    "n_heads": 8,
    "qk_norm": "no",
    "latent_size": 64,
    "latent_rope": 32,
    "latent_queries": 128,
    "value_dim": 64,
    "index_heads": 4,
    "index_dim": 16,
}


@dataclass(frozen=True)
class LaterScenario(Scenario):
    """A scenario of a later version, with one more effect on times."""

    second_bandwidth: float = 0.0


class LaterDevice(Device):
    """A device of a later version."""

    link_latency: float = 0.0


def later(scenario: Scenario, **more: Any) -> Scenario:
    """The scenario in the later version."""
    return LaterScenario(**{f.name: getattr(scenario, f.name) for f in fields(Scenario)}, **more)


@pytest.fixture
def closed() -> Any:
    """A problem in closed form with a budget."""
    return nas.load_study(latency="closed_form", budgets={"decode_ms": 20}).problem


def test_a_made_up_field_of_a_scenario_is_refused(closed: Any) -> None:
    design = one(SHAPE)
    assert np.isfinite(latency_ms(design, later(closed.scenario))).all()
    TheoryProblem(replace(closed, scenario=later(closed.scenario)))
    with pytest.raises(ValueError, match="operator for second_bandwidth, got closed_form"):
        latency_ms(design, later(closed.scenario, second_bandwidth=1.0))
    with pytest.raises(ValueError, match="operator for second_bandwidth, got closed_form"):
        part_seconds(design, later(closed.scenario, second_bandwidth=1.0), "decode", "ffn")
    with pytest.raises(UsageError, match=r"theory: .* got one with second_bandwidth"):
        TheoryProblem(replace(closed, scenario=later(closed.scenario, second_bandwidth=1.0)))


def test_a_made_up_effect_of_a_device_is_refused(closed: Any) -> None:
    scenario = closed.scenario
    device = LaterDevice.model_validate({**scenario.device.mapping(), "link_latency": 1.0})
    with pytest.raises(ValueError, match="operator for link_latency"):
        latency_ms(one(SHAPE), replace(scenario, device=device))
    with pytest.raises(UsageError, match=r"theory: .* got one with link_latency"):
        TheoryProblem(replace(closed, scenario=replace(scenario, device=device)))


@pytest.mark.parametrize("column", DEFAULTS)
def test_every_column_is_covered_or_refused(column: str, closed: Any) -> None:
    plain = one(SHAPE)
    kinds = {name: getattr(plain, name) for name in (*SHAPE, "head_dim", "n_heads", "n_experts", "top_k")}
    default = DEFAULTS[column]
    other = (
        code(column, "mixer 12; ffn 3")
        if column in TEXTS
        else 1
        if column in CODES
        else not default
        if isinstance(default, bool)
        else int(default) + 1
    )
    changed = Architectures.from_shape({**kinds, column: np.array([other])})
    if column in COLUMNS:
        assert np.array_equal(latency_ms(changed, closed.scenario), latency_ms(plain, closed.scenario))
    else:
        with pytest.raises(ValueError, match=f"operator for .*{column}.*, got closed_form"):
            latency_ms(changed, closed.scenario)


@pytest.mark.parametrize("column", [name for name in DEFAULTS if name not in NOT_OF_A_MODEL])
def test_every_column_is_priced(column: str, case: Any) -> None:
    """A column that changes neither parameters nor memory nor time would be searched as if it were free."""
    plain = one(LATENT if column in LATENT and column not in EVERYTHING and column != "qk_norm" else EVERYTHING)
    stored = {field.name: getattr(plain, field.name) for field in fields(plain)}
    old = stored[column]
    other = (old + 1) % len(CODES[column]) if column in CODES else ~old if old.dtype == np.bool_ else old + 1
    if column == "layers":
        other = np.array([code(column, "mixer 12; ffn 3")])
    changed = Architectures(**stored | {column: other})
    found, before = (Assessment(each, case.but(complete=True).scenario) for each in (changed, plain))
    assert any(found[name] != before[name] for name in ("params_total", "resident_gb", "total_ms")), (
        f"{column}: expected a column that changes parameters, memory or time, got none of them; "
        "price it in objectives/counts.py or objectives/latency/operators.py"
    )


def test_the_oracle_has_every_column(reference: ModuleType) -> None:
    missing = set(DEFAULTS) - {field.name for field in fields(reference.Arch)} - {*NOT_OF_A_MODEL, "layers"}
    assert not missing, (
        f"tests/reference.py: expected every column in Arch, got no {', '.join(missing)}; add and count it"
    )


@pytest.mark.parametrize("kind", [Device, Scenario, StudyConfig])
def test_every_key_is_read(kind: type[Any]) -> None:
    """A key of device files, scenarios or studies that nothing reads would be accepted without effect."""
    source = "".join(map(text, FILES))
    names = kind.model_fields if hasattr(kind, "model_fields") else [field.name for field in fields(kind)]
    unread = [name for name in names if not re.search(rf'\.{name}\b|"{name}"', source)]
    where = "objectives/scenario.py or nas/study/scenarios.py"
    assert unread == [], (
        f"{kind.__name__}: expected keys that something reads, got {', '.join(unread)}; read it in {where}"
    )


def test_what_is_covered_exists() -> None:
    """A name in a list of what is covered that nothing has any more would cover nothing."""
    assert {*SCENARIO, *OPTIONS} <= {f.name for f in fields(Scenario)}
    assert set(PRECISION) <= {f.name for f in fields(Precision)}
    assert set(DEVICE) <= set(Device.model_fields)
    assert set(COLUMNS) <= set(DEFAULTS)


def test_a_field_without_a_default_is_never_covered_by_silence(closed: Any) -> None:
    assert uncovered(closed.scenario.precision, ()) == list(PRECISION[:6])
