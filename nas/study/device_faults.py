"""Names in a device's profiles and energies that no study could ask for: weight formats and power modes."""

from collections.abc import Iterator, Sequence

from nas.files.faults import Path, unknown
from objectives.calibrating.measurements import FORMATS
from objectives.device import Calibration, Device, Energy


def device_faults(device: Device, *, embedded: bool) -> Iterator[tuple[Path, str]]:
    """Where in a device's file a format is unknown, or a power mode that the file does not have, and what to do.

    A device that is `embedded` in a study may hold profiles of modes that it was embedded without.
    """
    known: dict[str, Sequence[Calibration | Energy]] = {"profiles": device.profiles, "energy": device.energy}
    modes = ("", device.mode, *device.modes)
    for at, each in ((((kind, i)), each) for kind, those in known.items() for i, each in enumerate(those)):
        for key, name in _formats(each):
            if name and name not in FORMATS:
                yield (*at, *key), unknown("a weight format", name, FORMATS)
        if not embedded and each.mode not in modes:
            named = ", ".join(device.modes) or "none"
            yield (*at, "mode"), f"expected a power mode of the file ({named}), got {each.mode!r}; add it to modes"


def _formats(each: Calibration | Energy) -> list[tuple[Path, str]]:
    """The names of formats in a profile or an energy, by key."""
    if isinstance(each, Energy):
        return [(("precisions", i), name) for i, name in enumerate(each.precisions)]
    return [(("precision",), each.precision), (("format",), each.format)]
