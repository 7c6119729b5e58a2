"""Measured errors of times at datasheet peaks, on a device or in a power mode without a profile."""

from objectives.device import Calibration, Device

#: Source: `python -m benchmarks.datasheet`: median, 10th and 90th percentile of measured / predicted at batch 1.
PREFILL, DECODE = (2.1, 1.1, 5.6), (1.6, 1.2, 3.2)
NPU_PREFILL = (4.6, 4.3, 5.4)
CURE = "times of your own (plas measure, plas calibrate) correct them"


def doubts(device: Device, calibration: Calibration | None) -> list[str]:
    """How far off times are that no profile of the device's power mode corrects; nothing of others and of measured rates."""
    if calibration is not None or device.confidence == "measured" or _in_mode(device):
        return []
    if device.profiles:
        return [f"times are at datasheet peaks: {other_modes(device)}; {CURE}"]
    whose, prefill = ("on the NPU of an RK3588", NPU_PREFILL) if device.npu else ("on other devices", PREFILL)
    return [
        f"times are at datasheet peaks, which devices rarely reach: {whose} {_took('prefill', prefill)}, "
        f"{_took('on other devices decode' if device.npu else 'decode', DECODE)}, so that picks overshoot limits on time; {CURE}"
    ]


def measured_elsewhere() -> str:
    """How much longer than at datasheet peaks measured devices take, NPUs apart."""
    return f"measured, {_took('prefill', PREFILL)}, on an NPU {NPU_PREFILL[0]:g}, {_took('decode', DECODE)}"


def other_modes(device: Device) -> str:
    """Which other power modes have a profile, and what share of the datasheet they reach."""
    modes = sorted({f"@{p.mode}" if p.mode else "the default mode" for p in device.profiles})
    compute = _shares([p.compute_efficiency for p in device.profiles])
    bandwidth = _shares([p.bandwidth_efficiency for p in device.profiles])
    mode = f"@{device.mode}" if device.mode else "the default mode"
    return (
        f"{mode} has no calibrated profile; measured were {', '.join(modes)}, with {compute} of the compute and {bandwidth} "
        "of the bandwidth that the datasheet states"
    )


def _in_mode(device: Device) -> bool:
    return any(p.mode == device.mode for p in device.profiles)


def _took(phase: str, ratio: tuple[float, float, float]) -> str:
    """`prefill took 2.1 times what is predicted (1.1 to 5.6)`."""
    middle, low, high = ratio
    return f"{phase} took {middle:g} times what is predicted ({low:g} to {high:g})"


def _shares(values: list[float]) -> str:
    low, high = (f"{100 * v:.0f}" for v in (min(values), max(values)))
    return f"{low} %" if low == high else f"{low} to {high} %"
