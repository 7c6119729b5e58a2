"""Terms of the operator model for measured phases, which predict them under any calibration, as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from objectives.calibrating.measurements import Measurement
from objectives.device import Calibration, Device, Peak
from objectives.dimensions import Dimensions
from objectives.latency.cache import hit_share, working_set
from objectives.latency.operator import Operator, Phase, phases
from objectives.latency.passes import Pass
from objectives.latency.roofline import OperatorTime, phase_times
from objectives.loss_law.law import Law
from objectives.scenario import Scenario
from search_spaces.arrays import AnyArray, FloatArray

_SHARED = ("second", "cache_speed")


@dataclass(frozen=True, eq=False)
class Terms:
    """Datasheet seconds per operator, (n, operators): `compute` and `memory` sides and which peak.

    Where `second_peak` marks operators at the peak `second` instead of FP16's, `attention` the attention core's and
    `experts` routed experts'; `expert_memory` is the part of `memory` that one touched expert adds; `routing` E, K
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
    table = np.zeros((6, len(timed), width))
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
        table[5] / steps[:, None],
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
        precision=m.format.precision,
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
