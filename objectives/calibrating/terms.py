"""What the operator model needs of measured phases to predict them under any calibration, as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from objectives.calibrating.measurements import Measurement
from objectives.device import Calibration, Device, Kind, Peak
from objectives.dimensions import Dimensions
from objectives.latency.operators import Phase, phases
from objectives.latency.roofline import OperatorTime, phase_times
from objectives.loss_law.law import Law
from objectives.scenario import Scenario
from search_spaces.arrays import AnyArray, FloatArray


@dataclass(frozen=True, eq=False)
class Terms:
    """Datasheet seconds per operator, (n, operators): `compute` and `memory` sides and which peak.

    Where `second_peak` marks operators at the peak `second` instead of FP16's, `attention` the attention core's and
    `experts` routed experts'; `expert_memory` is the part of `memory` that one touched expert adds; `routing` E, K
    and T of each row, (n, 3); `epilogue` are seconds at the FP16 peak after the operator's max, (n,); `launches`
    operators started, (n,); `requests` prefills, (n,); `lengths` the KV length of the phase's last token, (n,); `ms`
    measured, (n,).
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
    ms: FloatArray
    second: Peak

    def rows(self, which: AnyArray) -> "Terms":
        """Some of the rows."""
        columns = {name: getattr(self, name) for name in Terms.__dataclass_fields__ if name != "second"}
        return Terms(**{name: column[which] for name, column in columns.items()}, second=self.second)

    def predict(self, c: Calibration) -> FloatArray:
        """Milliseconds under a calibration, (n,).

        The attention core is taken on the side that is larger over the whole phase.
        """
        reading = self.requests > 0
        share = np.where(self.second_peak, c.efficiency(self.second), c.compute_efficiency)
        speed = np.where(reading, c.bandwidth("prefill"), c.bandwidth("decode"))[:, None] * np.ones_like(share)
        kinds: tuple[tuple[AnyArray, Kind], ...] = ((self.attention, "attention"), (self.experts, "experts"))
        for where, kind in kinds:
            compute, memory = c.factors(kind)
            share, speed = np.where(where, share * compute, share), np.where(where, speed * memory, speed)
        traffic = self.memory + self.expert_memory * self._fewer_experts(c.routing_overlap)[:, None]
        bound = np.maximum(self.compute / share, traffic / speed).sum(axis=1)
        launch = np.where(reading, c.overhead_s("prefill"), c.overhead_s("decode"))
        seconds = bound + self.epilogue / c.compute_efficiency + self.launches * launch
        result: FloatArray = seconds * 1e3 + self.requests * c.request_overhead
        return result

    def _fewer_experts(self, overlap: float) -> FloatArray:
        """Distinct experts under an overlap of routing, less those without, (n,)."""
        experts, chosen, tokens = self.routing.T
        missed = 1.0 - chosen / experts
        result: FloatArray = experts * (missed**tokens - missed ** (1.0 + (1.0 - overlap) * (tokens - 1.0)))
        return result


def terms(measurements: Sequence[Measurement], device: Device, law: Law) -> Terms:
    """Terms of measured phases of one family of formats on a device.

    Raises:
        ValueError: a format whose peak the device lacks.
    """
    timed = [_operators(m, device, law) for m in measurements]
    width = max((len(times) for _, times in timed), default=0)
    table = np.zeros((6, len(timed), width))
    epilogue, launches = np.zeros((2, len(timed)))
    for i, (scenario, times) in enumerate(timed):
        passes = _phase(measurements[i], scenario).passes
        for j, time in enumerate(times):
            count, routed = _scalar(time.operator.count), time.operator.routed
            expert = routed is not None and _scalar(routed) > 0
            table[:, i, j] = (
                _scalar(time.compute),
                _scalar(time.memory),
                time.operator.peak != "fp16",
                time.operator.kind == "attention",
                expert,
                count * passes * _expert_seconds(measurements[i], scenario) if expert else 0.0,
            )
            launches[i] += count * _scalar(time.operator.present) * passes
            if time.operator.epilogue_flops is not None:
                epilogue[i] += (
                    count * _scalar(time.operator.epilogue_flops) * passes * scenario.seconds_per_flop("fp16")
                )
    return _per_step(measurements, table, epilogue, launches)


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
        np.array([m.ms for m in measurements]),
        next(
            (m.format.precision.linear_peak for m in measurements if m.format.precision.linear_peak != "fp16"), "int8"
        ),
    )


def _tokens(m: Measurement) -> int:
    """Tokens of one pass."""
    return m.batch * (m.prompt if m.phase == "prefill" else 1)


def _expert_seconds(m: Measurement, scenario: Scenario) -> float:
    """Seconds to read one expert's weights of one product in a pass at the datasheet's bandwidth."""
    weights = float(m.architecture.expert_size[0]) * float(m.architecture.width[0])
    return weights * scenario.precision.weight_bytes * scenario.seconds_per_byte("decode")


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
        head_bytes=m.format.head_bytes,
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
    times = phase_times(x, _phase(m, scenario), scenario)
    layer = [_repeated(time, x.depth) for time in (*times.attention, *times.ffn)]
    return scenario, [*layer, *times.head]


def _repeated(time: OperatorTime, depth: FloatArray) -> OperatorTime:
    operator = replace(time.operator, count=time.operator.count * depth)
    compute, memory = time.compute * depth, time.memory * depth
    return replace(time, operator=operator, seconds=time.seconds * depth, compute=compute, memory=memory)


def _scalar(value: object) -> float:
    return float(np.asarray(cast(float, value)).reshape(-1)[0])
