"""What the operator model needs of measured phases to predict them under any calibration, as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from objectives.calibrating.measurements import Measurement
from objectives.device import Calibration, Device, Peak
from objectives.dimensions import Dimensions
from objectives.latency.operator import Phase, phases
from objectives.latency.roofline import OperatorTime, phase_times
from objectives.loss_law.law import Law
from objectives.scenario import Scenario
from search_spaces.arrays import AnyArray, FloatArray


@dataclass(frozen=True, eq=False)
class Terms:
    """Datasheet seconds per operator, (n, operators): `compute` and `memory` sides and which peak.

    Where `second_peak` marks operators at the peak `second` instead of FP16's; `epilogue` are seconds at the FP16
    peak after the operator's max, (n,); `launches` operators started, (n,); `requests` prefills, (n,); `ms`
    measured, (n,).
    """

    compute: FloatArray
    memory: FloatArray
    second_peak: AnyArray
    epilogue: FloatArray
    launches: FloatArray
    requests: FloatArray
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
        compute = self.compute / np.where(self.second_peak, c.efficiency(self.second), c.compute_efficiency)
        bound = np.maximum(compute, self.memory / c.bandwidth_efficiency).sum(axis=1)
        seconds = bound + self.epilogue / c.compute_efficiency + self.launches * c.overhead_s
        result: FloatArray = seconds * 1e3 + self.requests * c.request_overhead
        return result


def terms(measurements: Sequence[Measurement], device: Device, law: Law) -> Terms:
    """Terms of measured phases of one family of formats on a device.

    Raises:
        ValueError: a format whose peak the device lacks.
    """
    timed = [_operators(m, device, law) for m in measurements]
    width = max((len(times) for _, times in timed), default=0)
    table = np.zeros((4, len(timed), width))
    epilogue, launches = np.zeros((2, len(timed)))
    for i, (scenario, times) in enumerate(timed):
        passes = _phase(measurements[i], scenario).passes
        for j, time in enumerate(times):
            count = _scalar(time.operator.count)
            table[:3, i, j] = _scalar(time.compute), _scalar(time.memory), time.operator.peak != "fp16"
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
    return Terms(
        table[0] / steps[:, None],
        table[1] / steps[:, None],
        table[2] > 0,
        epilogue / steps,
        launches / steps,
        np.array([float(m.phase == "prefill") for m in measurements]),
        np.array([m.ms for m in measurements]),
        next(
            (m.format.precision.linear_peak for m in measurements if m.format.precision.linear_peak != "fp16"), "int8"
        ),
    )


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
