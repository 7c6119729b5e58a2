"""Metrics of a batch: their names, units and scales, and how they hang together."""

import importlib
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from objectives.assessment import Assessment, on_devices
from objectives.device import Calibration
from objectives.dimensions import Dimensions
from objectives.latency import closed_form, roofline
from objectives.plugins import summary
from search_spaces.architectures import Architectures

Draw = Callable[..., Architectures]
UNITS = {
    "loss": "nats", "perplexity": "", "prefill_ms": "ms", "decode_ms": "ms", "tpot_ms": "ms", "total_ms": "ms",
    "memory_gb": "GB", "resident_gb": "GB", "params_total": "parameters", "params_active": "parameters",
    "ttft_ms": "ms", "tokens_per_second": "tokens/s",
    "train_flops": "FLOP", "train_hours": "h", "lifetime_flops": "FLOP",
}  # fmt: skip
LINEAR = {"loss", "perplexity"}


@pytest.mark.parametrize("metric", UNITS)
def test_a_metric_states_its_unit_scale_and_meaning(metric: str) -> None:
    module = importlib.import_module(f"objectives.metrics.{metric}")
    assert UNITS[metric] == module.UNIT
    assert module.LOG_SCALE is (metric not in LINEAR)
    assert summary("objectives.metrics", metric) == (module.__doc__ or "").splitlines()[0]


@pytest.mark.parametrize("metric", UNITS)
@pytest.mark.parametrize("n", [0, 1, 7])
def test_a_metric_is_one_finite_read_only_number_a_row(
    metric: str, n: int, case: Any, random_architectures: Draw
) -> None:
    values = Assessment(random_architectures(7, 1)[:n], case.scenario)[metric]
    assert values.shape == (n,)
    assert values.dtype == np.float64
    assert np.isfinite(values).all()
    assert (values > 0).all()
    assert not values.flags.writeable


@pytest.mark.parametrize("latency", ["operator", "closed_form"])
def test_metrics_are_consistent_with_each_other(case: Any, latency: str, random_architectures: Draw) -> None:
    plain = latency == "closed_form"
    chosen = case.but(latency=latency, output_tokens=7)
    found = Assessment(random_architectures(50, 2, plain=plain), chosen.scenario)
    np.testing.assert_array_equal(found["total_ms"], found["prefill_ms"] + found["decode_ms"])
    np.testing.assert_array_equal(found["tpot_ms"], found["decode_ms"] / 7)
    np.testing.assert_allclose(found["perplexity"], [math.exp(loss) for loss in found["loss"]], rtol=1e-14)
    assert (found["params_active"] <= found["params_total"]).all()
    assert (found["memory_gb"] < found["resident_gb"]).all()


def test_the_scenario_chooses_the_latency_model(case: Any, random_architectures: Draw) -> None:
    plain = random_architectures(9, 4, plain=True)
    operator, closed = (case.but(latency=latency).scenario for latency in ("operator", "closed_form"))
    for scenario, (prefill, decode) in (
        (operator, roofline.latency_ms(Dimensions(plain), operator)),
        (closed, closed_form.latency_ms(plain, closed)),
    ):
        found = Assessment(plain, scenario)
        np.testing.assert_array_equal(found["prefill_ms"], prefill)
        np.testing.assert_array_equal(found["decode_ms"], decode)


def test_the_latency_model_runs_once_whatever_is_asked(
    case: Any, random_architectures: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, real = [], roofline.latency_ms

    def counted(*given: Any) -> Any:
        calls.append(given)
        return real(*given)

    monkeypatch.setattr(roofline, "latency_ms", counted)
    found = Assessment(random_architectures(5, 3), case.scenario)
    assert calls == []
    for metric in ("total_ms", "decode_ms", "tpot_ms", "prefill_ms", "total_ms"):
        found[metric]
    assert len(calls) == 1


@pytest.mark.parametrize("changed", [{}, {"precision": "int8", "batch": 3}, {"latency": "closed_form"}])
def test_many_devices_at_once_give_the_same_bits_as_one_by_one(
    changed: dict[str, Any], case: Any, random_architectures: Draw
) -> None:
    plain = changed.get("latency") == "closed_form"
    architectures, scenario = random_architectures(40, 5, plain=plain), case.but(**changed).scenario
    slow = scenario.device.model_copy(update={"fp16": 1e12, "int8": 3e12, "bandwidth": 7e10})
    profile = Calibration(compute_efficiency=0.4, bandwidth_efficiency=0.7, overhead="5 us", request_overhead="2 ms")
    others = [replace(scenario, device=slow), *([] if plain else [replace(scenario, device=slow, calibration=profile)])]
    first = Assessment(architectures, scenario)
    for found, alone in zip(on_devices(first, [scenario, *others]), [scenario, *others], strict=True):
        for metric in UNITS:
            np.testing.assert_array_equal(found[metric], Assessment(architectures, alone)[metric], strict=True)
    assert next(iter(on_devices(first, others)))["loss"] is first["loss"]


def test_a_metric_is_computed_once(case: Any, random_architectures: Draw) -> None:
    found = Assessment(random_architectures(5, 3), case.scenario)
    for metric in UNITS:
        assert found[metric] is found[metric]


def test_assessments_share_nothing(case: Any, random_architectures: Draw) -> None:
    architectures = random_architectures(5, 3)
    slow = Assessment(architectures, case.but(precision="fp16").scenario)
    fast = Assessment(architectures, case.but(precision="int4").scenario)
    assert (slow["memory_gb"] == 4 * fast["memory_gb"]).all()
    assert (slow["decode_ms"] > fast["decode_ms"]).all()
