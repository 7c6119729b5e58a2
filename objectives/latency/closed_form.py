"""Closed-form latency: prefill at the compute roof, decode at the memory roof.

Source: paper [eq:prefill_latency], [eq:decode_latency_full]; the KV term carries B (ERRATA 16).
"""

from typing import Literal

import numpy as np

from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.columns import Part
from search_spaces.layer_kinds import COUNTS


def latency_ms(architectures: Architectures, scenario: Scenario) -> tuple[FloatArray, FloatArray]:
    """Prefill = l B S_in d² ξ_F / π; decode = (l S_out/β)(ξ_W d² b_w + 2 B S̄ d b_kv/gqa), ms, each (n,).

    Where ξ_F = 4 + 4/gqa + 6r, ξ_W = 2 + 2/gqa + 3r, S̄ = S_in + (S_out + 1)/2.

    Raises:
        ValueError: an option or an architecture that the closed form does not cover.
    """
    refuse_uncovered(architectures, scenario)
    depth, width = architectures.depth.astype(np.float64), architectures.width.astype(np.float64)
    gqa, ratio, p = architectures.gqa, architectures.ffn_ratio, scenario.precision
    xi_flops = 4.0 + 4.0 / gqa + 6.0 * ratio
    xi_weights = 2.0 + 2.0 / gqa + 3.0 * ratio
    context = scenario.input_tokens + (scenario.output_tokens + 1) / 2
    tokens = float(scenario.batch * scenario.input_tokens)
    peak = scenario.device.peak(p.linear_peak)
    prefill = depth * tokens * width**2 * xi_flops / peak
    traffic = xi_weights * width**2 * p.weight_bytes + 2.0 * scenario.batch * context * width * p.kv_bytes / gqa
    decode = depth * scenario.output_tokens / scenario.device.bandwidth * traffic
    return prefill * 1e3, decode * 1e3


def part_seconds(
    architectures: Architectures, scenario: Scenario, phase: Literal["prefill", "decode"], part: Part
) -> FloatArray:
    """Seconds that a layer's attention or FFN adds to a whole phase, (n,); the base adds nothing."""
    if part == "base":
        return np.zeros(len(architectures))
    width, gqa, p = architectures.width.astype(np.float64), architectures.gqa, scenario.precision
    weights = 2.0 + 2.0 / gqa if part == "attention" else 3.0 * architectures.ffn_ratio
    if phase == "prefill":
        peak = scenario.device.peak(p.linear_peak)
        return float(scenario.batch * scenario.input_tokens) * width**2 * 2.0 * weights / peak
    traffic = weights * width**2 * p.weight_bytes
    if part == "attention":
        context = scenario.input_tokens + (scenario.output_tokens + 1) / 2
        traffic = traffic + 2.0 * scenario.batch * context * width * p.kv_bytes / gqa
    return scenario.output_tokens / scenario.device.bandwidth * traffic


def refuse_uncovered(architectures: Architectures, scenario: Scenario) -> None:
    """Say what the closed form leaves out instead of computing something else."""
    options = {
        "attention": scenario.attention != "unfused",
        "causal": scenario.causal,
        "complete": scenario.complete,
        "int4_group_size": scenario.precision.weight_bytes not in (0.5, 1.0, 2.0),
        f"precision {scenario.precision.name}": scenario.precision.of_down is not scenario.precision,
        "calibration": scenario.calibration is not None,
        "vocabulary": bool(architectures.vocabulary.any()),
        "shared_expert_size": bool(architectures.shared_expert_size.any()),
        "query_dim other than width": bool((architectures.query_dim != architectures.width).any()),
        **{name: bool(getattr(architectures, name).any()) for name in COUNTS},
    }
    asked = [name for name, given in options.items() if given]
    if asked:
        raise ValueError(f"latency: expected operator for {', '.join(asked)}, got closed_form; use --latency operator")
