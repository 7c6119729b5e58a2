"""Measured errors of times of a device in a power mode without a profile: at datasheet peaks, or as typical of its class."""

from objectives.device import CHIPS, Calibration, Device

#: Source: `python -m benchmarks.datasheet`: median, 10th and 90th percentile of measured / predicted at batch 1.
PREFILL, DECODE = (2.1, 1.1, 5.6), (1.6, 1.2, 3.2)
NPU_PREFILL = (4.6, 4.3, 5.4)
CURE = "times of your own (plas measure, plas calibrate) correct them"


def doubts(device: Device, calibration: Calibration | None) -> list[str]:
    """How far off times are of which nothing was measured on the device; nothing of others and of measured rates."""
    if calibration is not None:
        return [_typical(device, calibration)] if calibration.typical else []
    if device.confidence == "measured" or any(p.mode == device.mode for p in device.profiles):
        return []
    whose, prefill = ("on the NPU of an RK3588", NPU_PREFILL) if device.chip == "npu" else ("on other devices", PREFILL)
    return [
        f"times are at datasheet peaks, which devices rarely reach: {whose} {_took('prefill', prefill)}, "
        f"{_took('on other devices decode' if device.chip == 'npu' else 'decode', DECODE)}, so that picks overshoot limits on "
        f"time; {CURE}"
    ]


def measured_elsewhere() -> str:
    """How much longer than at datasheet peaks measured devices take, NPUs apart."""
    return f"measured, {_took('prefill', PREFILL)}, on an NPU {NPU_PREFILL[0]:g}, {_took('decode', DECODE)}"


def _typical(device: Device, calibration: Calibration) -> str:
    """What times of a class are worth."""
    engine = f" with {calibration.engine}" if calibration.engine else " with any engine (--engine states one)"
    kind, comma, why = CHIPS[device.chip].partition(",")
    chip = "; chip in its file (gpu, soc, npu, …) would narrow them" if device.chip == "any" else ""
    return (
        f"nothing of this device is measured{' in this format or with this engine' * bool(device.profiles)}, times are typical of {kind}{engine}{comma}{why}{chip}; a limit at a quantile, "
        f"total_ms@q80, holds with that probability; {CURE}"
    )


def _took(phase: str, ratio: tuple[float, float, float]) -> str:
    """`prefill took 2.1 times what is predicted (1.1 to 5.6)`."""
    middle, low, high = ratio
    return f"{phase} took {middle:g} times what is predicted ({low:g} to {high:g})"
