"""Closed-form latency: prefill at the compute roof, decode at the memory roof.

Source: paper [eq:prefill_latency], [eq:decode_latency_full]; the KV term carries B (ERRATA 16).
"""

from collections.abc import Collection
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel

from objectives.precision import PRECISIONS, Precision
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.columns import Part
from search_spaces.formats import base_of

#: What the formulas read, or what changes no time: fields of a scenario, its precision and device, columns beyond the shape.
#: Whatever is in none of these is refused by name as soon as it is set, also what a later version adds.
SCENARIO = (
    *("law", "device", "precision", "batch", "input_tokens", "output_tokens", "latency"),
    *("head_bytes", "energy", "from_cache", "engine", "prefill_chunk", "training", "text", "formats", "devices"),
)
PRECISION = (
    *("name", "weight_bytes", "activation_bytes", "kv_bytes", "input_bytes", "linear_peak"),
    *("head_bytes", "small_bytes"),
)
FORMATS = ("fp16", "int8", "int4")
DEVICE = (
    *("name", "vendor", "fp16", "int8", "bandwidth", "memory", "cache", "cache_bandwidth", "other_peaks", "profiles"),
    *("confidence", "source", "note", "dense_confirmed", "chip", "modes", "mode_source", "mode", "energy"),
    *("cooling", "sustained", "slow_memory", "columns"),
)
COLUMNS = (
    *("tokens", "precision", "device", "tied", "shared_gate", "qk_norm", "qkv_bias", "norms_per_layer"),
    *("window", "linear_kind", "linear_heads", "linear_key_heads", "linear_key_dim", "linear_value_dim"),
    *("linear_kernel", "conv_kernel", "dense_size"),  # sizes of kinds that are not covered
    *("further_parameters", "table_parameters"),  # weights that no pass reads
)


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
    """Seconds that a layer's attention or FFN adds to a whole phase, (n,); the base adds nothing.

    Raises:
        ValueError: an option or an architecture that the closed form does not cover.
    """
    refuse_uncovered(architectures, scenario)
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
    """Say what the closed form leaves out instead of computing something else; what it is not known to cover is left out.

    Raises:
        ValueError: with the names.
    """
    p = scenario.precision
    found = [*uncovered(scenario, SCENARIO), *uncovered_in(p), *uncovered(scenario.device, DEVICE)]
    found += ["int4_group_size"] if p.stored is None and p.weight_bytes != PRECISIONS[p.name].weight_bytes else []
    found += [f"precision {p.name}"] if p.stored is None and base_of(p.name) not in FORMATS else []
    found += [name for name in architectures.further_columns() if name not in COLUMNS]
    found += ["query_dim other than width"] if (architectures.query_dim != architectures.width).any() else []
    if found:
        raise ValueError(
            f"latency: expected operator for {', '.join(found)}, got closed_form; use --set latency=operator"
        )


def uncovered_in(p: Precision) -> list[str]:
    """Fields of a precision that are not covered; the precision itself where its tensors have several types."""
    return [f"precision {p.name}" if name == "stored" else name for name in uncovered(p, PRECISION)]


def uncovered(thing: Any, covered: Collection[str]) -> list[str]:
    """Fields of a dataclass or a model that say something, other than their default, and are not covered."""
    return [
        name for name, default in _defaults(thing.__class__) if name not in covered and getattr(thing, name) != default
    ]


@cache
def _defaults(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    """Every field with its default; one without has a default that nothing equals."""
    if issubclass(kind, BaseModel):
        models = kind.model_fields.items()
        return tuple((n, object() if f.is_required() else f.get_default(call_default_factory=True)) for n, f in models)
    return tuple((f.name, _default(f)) for f in fields(kind))


def _default(given: "Field[Any]") -> Any:
    if given.default_factory is not MISSING:
        return given.default_factory()
    return object() if given.default is MISSING else given.default
