"""Every module of `objectives/metrics/`, also one that is added: what it must state, that declared parts add up, its row in the documentation."""

import importlib
import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from objectives.assessment import Assessment, stating
from objectives.device import Calibration, Energy
from objectives.parts import PartAssessment, composition
from objectives.plugins import importable, summary
from objectives.scenario import Scenario
from objectives.text.vocabulary_cost import VocabularyCost
from objectives.token_curve import Size, Source, Text, TokenCurve
from objectives.training import Training
from search_spaces.architectures import Architectures, one
from search_spaces.columns import SHAPE, Part

METRICS = importable("objectives.metrics")
PAGE = "docs/model.md"
VOCABULARY = 8192
ROWS = (Path(__file__).parents[2] / PAGE).read_text(encoding="utf-8")
PARTS: tuple[Part, ...] = ("base", "attention", "ffn")


@pytest.fixture
def scenario(case: Any) -> Scenario:
    """A scenario in which every metric has a value."""
    priced: Scenario = case.but(batch=2, input_tokens=70, output_tokens=9, complete=True).scenario
    known = Energy(base_power="2 W", per_flop="5 pJ", per_byte="40 pJ")
    training = Training(device=priced.device, utilisation=0.4)
    sizes = [Size(vocabulary=2048, bytes_per_token=2.5), Size(vocabulary=65_536, bytes_per_token=4.0)]
    cost = VocabularyCost(scale=0.03, exponent=0.5, fitted_on=(4096, 65_536), relative_to=50_257, source="made up")
    text = Text(TokenCurve(name="made up", source=Source(), sizes=sizes), cost)
    known_text = replace(priced, calibration=Calibration(overhead="9 us"), energy=known, training=training, text=text)
    return known_text.of_vocabulary(VOCABULARY)


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_states_unit_scale_and_function(metric: str) -> None:
    module, file = importlib.import_module(f"objectives.metrics.{metric}"), f"objectives/metrics/{metric}.py"
    assert isinstance(getattr(module, "UNIT", None), str), f'{file}: expected UNIT = "GB" or the like, got none; add it'
    assert isinstance(getattr(module, "LOG_SCALE", None), bool), f"{file}: expected LOG_SCALE, True or False; add it"
    assert "(n,)" in summary("objectives.metrics", metric), f"{file}: expected a docstring of quantity, unit and (n,)"
    assert inspect.isfunction(getattr(module, "evaluate", None)), f"{file}: expected evaluate(assessment); add it"


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_is_documented(metric: str) -> None:
    assert f"\n| `{metric}` |" in ROWS, f"{PAGE}: expected a row for metric {metric} under Metrics, got none; add it"


@pytest.mark.parametrize("metric", METRICS)
def test_parts_add_up_to_the_metric(
    metric: str, scenario: Scenario, random_architectures: Callable[..., Architectures]
) -> None:
    whole = random_architectures(40, 3, plain=True).with_vocabulary(VOCABULARY, tied=True)
    shallow = Architectures.from_shape({name: getattr(whole, name) for name in SHAPE} | {"depth": np.ones(40, int)})
    if (declared := composition(metric, scenario)) is None:
        pytest.skip("declares no parts")

    def total(quantity: str) -> Any:
        found = np.zeros(40)
        for part in PARTS:
            share = PartAssessment(whole if part == "base" else shallow, scenario, part)[quantity]
            found = found + sum(share.once) + whole.depth * sum(share.per_layer)
        return found

    columns = [total(name) for name, sign in declared.quantities.items() for _ in range(1 if sign else 2)]
    np.testing.assert_allclose(
        declared.value(*columns),
        Assessment(whole, scenario)[metric],
        rtol=1e-9,
        err_msg=f"objectives/metrics/{metric}.py: expected parts that add up to evaluate; correct one",
    )


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_of_energy_or_of_text_says_so(metric: str, scenario: Scenario) -> None:
    design = one({"depth": 4, "width": 256, "n_kv_heads": 2, "expert_size": 512, "vocabulary": VOCABULARY})
    for attribute, without in (("ENERGY", replace(scenario, energy=None)), ("PER_BYTE", replace(scenario, text=None))):
        assert np.isfinite(Assessment(design, scenario)[metric][0])
        try:
            priced = bool(np.isfinite(Assessment(design, without)[metric][0]))
        except ValueError:
            priced = False
        assert (metric in stating(attribute)) != priced, f"objectives/metrics/{metric}.py: say {attribute} = True"
