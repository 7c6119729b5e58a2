"""Terms of the operator model for measured phases, which predict them under any calibration, as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from objectives.device import Calibration, Device, Peak
from objectives.dimensions import Dimensions
from objectives.latency.operator import Operator, Pass, Phase, phases
from objectives.latency.roofline import OperatorTime, hit_share, phase_times, working_set
from objectives.loss_law.law import Law
from objectives.scenario import Scenario
from plas_board.calibrating.measurements import Measurement
from search_spaces.arrays import AnyArray, BoolArray, FloatArray

_SHARED = ("second", "cache_speed")


@dataclass(frozen=True, eq=False)
class Terms:
    """Datasheet seconds per operator, (n, operators): `compute` and `memory` sides and which peak.

    Where `second_peak` marks operators at the peak `second` instead of FP16's, `attention` the attention core's and
    `experts` routed experts', `scan` the recurrence of linear attention; `expert_memory` is the part of `memory` that one touched expert adds; `routing` E, K
    and T of each row, (n, 3); `epilogue` are seconds at the FP16 peak after the operator's max, (n,); `launches`
    operators started, (n,); `requests` prefills, (n,); `lengths` the KV length of the phase's last token, (n,); `hits`
    the share of traffic that the last-level cache serves, (n,), at `cache_speed` times the bandwidth (0: no such figure);
    `beside` marks rows at another batch than the first row's, (n,); `ms` measured, (n,).
    """

    compute: FloatArray
    memory: FloatArray
    second_peak: AnyArray
    attention: AnyArray
    experts: AnyArray
    scan: AnyArray
    expert_memory: FloatArray
    routing: FloatArray
    epilogue: FloatArray
    launches: FloatArray
    requests: FloatArray
    lengths: FloatArray
    hits: FloatArray
    beside: AnyArray
    ms: FloatArray
    second: Peak
    cache_speed: float

    def rows(self, which: AnyArray) -> "Terms":
        """Some of the rows."""
        columns = {name: getattr(self, name) for name in Terms.__dataclass_fields__ if name not in _SHARED}
        return replace(self, **{name: column[which] for name, column in columns.items()})


def terms(measurements: Sequence[Measurement], device: Device, law: Law) -> Terms:
    """Terms of measured phases of one family of formats on a device.

    Raises:
        ValueError: a format whose peak the device lacks.
    """
    timed = [_operators(m, device, law) for m in measurements]
    width = max((len(times) for _, times in timed), default=0)
    table = np.zeros((7, len(timed), width))
    epilogue, launches, hits = np.zeros((3, len(timed)))
    for i, (scenario, times) in enumerate(timed):
        phase = _phase(measurements[i], scenario)
        passes, hits[i] = phase.passes, _hits(measurements[i], phase, scenario)
        for j, time in enumerate(times):
            count, routed = _scalar(time.operator.count), time.operator.routed
            expert = routed is not None and _scalar(routed) > 0
            table[:, i, j] = (
                _scalar(time.compute),
                _scalar(time.memory),
                time.operator.peak != "fp16",
                time.operator.kind == "attention",
                expert,
                time.operator.kind == "scan",
                count * passes * _expert_seconds(time.operator, scenario) if expert else 0.0,
            )
            launches[i] += count * _scalar(time.operator.present) * passes
            if time.operator.epilogue_flops is not None:
                epilogue[i] += (
                    count * _scalar(time.operator.epilogue_flops) * passes * scenario.seconds_per_flop("fp16")
                )
    found = _per_step(measurements, table, epilogue, launches)
    return replace(found, hits=hits, cache_speed=(device.cache_bandwidth or 0.0) / device.bandwidth)


def _per_step(
    measurements: Sequence[Measurement], table: FloatArray, epilogue: FloatArray, launches: FloatArray
) -> Terms:
    """Decode phases divided by their passes, since steps are what is measured."""
    steps = np.array([m.generated if m.phase == "decode" else 1 for m in measurements], dtype=float)
    shapes = [(int(m.architecture.n_experts[0]), int(m.architecture.top_k[0]), _tokens(m)) for m in measurements]
    return Terms(
        table[0] / steps[:, None],
        table[1] / steps[:, None],
        table[2] > 0,
        table[3] > 0,
        table[4] > 0,
        table[5] > 0,
        table[6] / steps[:, None],
        np.reshape(np.array(shapes, dtype=float), (-1, 3)),
        epilogue / steps,
        launches / steps,
        np.array([float(m.phase == "prefill") for m in measurements]),
        np.array([m.attended or m.prompt + (m.generated if m.phase == "decode" else 0) for m in measurements]),
        np.zeros(len(measurements)),
        np.array([m.batch != measurements[0].batch for m in measurements]),
        np.array([m.ms for m in measurements]),
        next(
            (m.format.precision.linear_peak for m in measurements if m.format.precision.linear_peak != "fp16"), "int8"
        ),
        0.0,
    )


def _tokens(m: Measurement) -> int:
    """Tokens of one pass."""
    return m.batch * (m.prompt if m.phase == "prefill" else 1)


def _hits(m: Measurement, phase: Phase, scenario: Scenario) -> float:
    """The share of a decode pass's traffic that the last-level cache serves, 0 where the device states none."""
    capacity = scenario.device.cache
    if phase.name == "prefill" or not capacity or not scenario.device.cache_bandwidth:
        return 0.0
    return _scalar(hit_share(working_set(Dimensions(m.architecture), phase, scenario), capacity))


def _expert_seconds(operator: Operator, scenario: Scenario) -> float:
    """Seconds to read one expert's weights of one product in a pass at the datasheet's bandwidth."""
    return _scalar(operator.expert_bytes) * scenario.seconds_per_byte("decode")


def scenario_of(m: Measurement, device: Device, law: Law, calibration: Calibration | None = None) -> Scenario:
    """The scenario of a measured phase: complete, fused and causal, as preset `device`."""
    return Scenario(
        law=law,
        device=device,
        precision=m.format.precision.on(device),
        batch=m.batch,
        input_tokens=m.prompt,
        output_tokens=m.generated,
        attention="fused",
        causal=not m.attended,
        complete=True,
        calibration=calibration,
    )


def _phase(m: Measurement, scenario: Scenario) -> Phase:
    if m.phase == "decode":
        return phases(scenario)[1]
    length = m.attended or m.prompt
    return Phase("prefill", m.batch, m.prompt, length, length)


def _operators(m: Measurement, device: Device, law: Law) -> tuple[Scenario, list[OperatorTime]]:
    """Every operator of the phase with a layer's counted l times."""
    scenario = scenario_of(m, device, law)
    x = Dimensions(m.architecture)
    times = phase_times(x, Pass(_phase(m, scenario), scenario))
    layer = [_repeated(time, x.depth) for time in (*times.attention, *times.ffn)]
    return scenario, [*layer, *times.head]


def _repeated(time: OperatorTime, depth: FloatArray) -> OperatorTime:
    operator = replace(time.operator, count=time.operator.count * depth)
    compute, memory = time.compute * depth, time.memory * depth
    return replace(time, operator=operator, seconds=time.seconds * depth, compute=compute, memory=memory)


def _scalar(value: object) -> float:
    return float(np.asarray(cast(float, value)).reshape(-1)[0])


Slopes = dict[str, FloatArray]


@dataclass(frozen=True)
class Beside:
    """By what the efficiencies of rows at another batch differ from the calibration's."""

    compute: float = 1.0
    bandwidth: float = 1.0


def predict(t: Terms, c: Calibration) -> FloatArray:
    """Milliseconds of rows under a calibration, (n,).

    The attention core is taken on the side that is larger over the whole phase.
    """
    return predict_with_slopes(t, c)[0]


def predict_with_slopes(t: Terms, c: Calibration, beside: Beside | None = None) -> tuple[FloatArray, Slopes]:
    """Milliseconds, (n,), and by coefficient the milliseconds that they change by in its logarithm, each (n,)."""
    reading = t.requests > 0
    other = beside or Beside()
    compute, second, speed = _efficiencies(t, c, reading, other)
    launch = t.launches * np.where(reading, c.overhead_s("prefill"), c.overhead_s("decode"))
    epilogue = t.epilogue / compute
    streamed = c.bandwidth_efficiency * np.where(t.beside, other.bandwidth, 1.0)
    core, found = _bound(t, c, np.where(t.second_peak, second[:, None], compute[:, None]), speed, streamed)
    if t.cache_speed and c.cache_efficiency is not None:
        core, found = _with_cache(t, c, core, found, compute, second, other)
    found["compute"] = found["compute"] - epilogue
    own_launches = c.prefill_overhead is not None
    found["overhead_us"] = np.where(reading & own_launches, 0.0, launch)
    found["prefill_overhead_us"] = np.where(reading & own_launches, launch, 0.0)
    if c.prefill_bandwidth_efficiency is not None:
        apart = found["bandwidth"] - found["expert_bandwidth"]
        found["prefill_bandwidth"] = np.where(reading, apart, 0.0)
        found["bandwidth"] = found["bandwidth"] - found["prefill_bandwidth"]
    found["beside_compute"] = np.where(t.beside, found["compute"] + found["second"], 0.0)
    of_bytes = sum(found[name] for name in ("bandwidth", "prefill_bandwidth", "cache_efficiency") if name in found)
    found["beside_bandwidth"] = np.where(t.beside, of_bytes, 0.0)
    request = t.requests * c.request_overhead
    slopes = {name: 1e3 * slope for name, slope in found.items()} | {"request_ms": request}
    return 1e3 * (core + epilogue + launch) + request, slopes


def _efficiencies(
    t: Terms, c: Calibration, reading: BoolArray, other: Beside
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Shares of the FP16 peak, of the second peak and of the bandwidth, each (n,)."""
    factor = np.where(t.beside, other.compute, 1.0)
    speed = np.where(reading, c.bandwidth("prefill"), c.bandwidth("decode")) * np.where(t.beside, other.bandwidth, 1.0)
    return c.compute_efficiency * factor, c.efficiency(t.second) * factor, speed


def _with_cache(
    t: Terms, c: Calibration, core: FloatArray, found: Slopes, compute: FloatArray, second: FloatArray, other: Beside
) -> tuple[FloatArray, Slopes]:
    """(1 − h) times what memory takes + h times what the cache takes."""
    assert c.cache_efficiency is not None
    faster = max(c.cache_efficiency * t.cache_speed, c.bandwidth_efficiency)
    speed = faster * np.where(t.beside, other.bandwidth, 1.0)
    share = np.where(t.second_peak, second[:, None], compute[:, None])
    within, inner = _bound(t, c, share, speed, speed)
    blended = {name: (1.0 - t.hits) * found[name] + t.hits * inner[name] for name in found}
    blended["bandwidth"] = (1.0 - t.hits) * found["bandwidth"]
    blended["cache_efficiency"] = t.hits * inner["bandwidth"]
    return (1.0 - t.hits) * core + t.hits * within, blended


def _bound(
    t: Terms, c: Calibration, share: FloatArray, speed: FloatArray, streamed: FloatArray
) -> tuple[FloatArray, Slopes]:
    """Seconds of the larger sides, (n,), and the slopes of the efficiencies; `streamed` is the share that experts get."""
    reading, own = (t.requests > 0)[:, None], c.decode_attention_compute is not None
    core = np.where(reading, c.attention_compute, c.factors("attention", "decode")[0])
    plain = np.where(reading, np.where(t.scan, c.scan_compute, 1.0), c.decode_share(t.routing[:, 2:]))
    of_flops = np.where(t.attention, core, np.where(t.experts, c.expert_compute, 1.0) * plain)
    of_bytes = np.where(t.attention, c.attention_bandwidth, np.where(t.experts, c.expert_bandwidth, 1.0))
    fewer, slope = _fewer_experts(t, c.routing_overlap)
    rate = of_bytes * np.where(t.experts, streamed[:, None], speed[:, None])
    compute, memory = t.compute / (share * of_flops), (t.memory + t.expert_memory * fewer[:, None]) / rate
    larger = compute >= memory
    flops, traffic = np.where(larger, compute, 0.0), np.where(larger, 0.0, memory)
    overlap = np.where(larger, 0.0, t.expert_memory / rate).sum(axis=1) * slope
    slopes = {
        "compute": -np.where(t.second_peak, 0.0, flops).sum(axis=1),
        "second": -np.where(t.second_peak, flops, 0.0).sum(axis=1),
        "bandwidth": -traffic.sum(axis=1),
        "attention_compute": -np.where(t.attention & (reading | (not own)), flops, 0.0).sum(axis=1),
        "decode_attention_compute": -np.where(t.attention & ~reading & own, flops, 0.0).sum(axis=1),
        "attention_bandwidth": -np.where(t.attention, traffic, 0.0).sum(axis=1),
        "scan_compute": -np.where(t.scan & reading, flops, 0.0).sum(axis=1),
        "expert_compute": -np.where(t.experts, flops, 0.0).sum(axis=1),
        "expert_bandwidth": -np.where(t.experts, traffic, 0.0).sum(axis=1),
        "routing_overlap": overlap,
    }
    return (flops + traffic).sum(axis=1), slopes


def _fewer_experts(t: Terms, overlap: float) -> tuple[FloatArray, FloatArray]:
    """Distinct experts under an overlap of routing less those without, and the slope in its logarithm, each (n,)."""
    experts, chosen, tokens = t.routing.T
    missed = 1.0 - chosen / experts
    with np.errstate(divide="ignore", invalid="ignore"):
        left = missed ** (1.0 + (1.0 - overlap) * (tokens - 1.0))
        slope = np.where(missed > 0, experts * left * np.log(missed) * (tokens - 1.0) * overlap, 0.0)
    return experts * (missed**tokens - left), slope
