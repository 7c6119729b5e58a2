"""Weight formats of tables of measurements: the precision that each is priced in, and the one whose profile it gives."""

from dataclasses import dataclass

from objectives.scenario import PRECISIONS, Precision
from objectives.weight_formats.table import WEIGHT_FORMATS


@dataclass(frozen=True)
class Format:
    """A weight format.

    family: formats that calibrate together. study: the precision whose profile it gives (empty: none computes alike).
    precision: what its rows are priced in, and a study that takes its times as measured.
    """

    family: str
    study: str
    precision: Precision


def _formats() -> dict[str, Format]:
    found = {"w4": Format("w4", "", PRECISIONS["w4a16"])}
    for name, written in WEIGHT_FORMATS.items():
        family = next((called for called in written.measured_as if called in WEIGHT_FORMATS), name)
        for called in (*written.measured_as, name):
            found[called] = Format(family, written.profile or name, PRECISIONS[name])
    return found


FORMATS = _formats()


def format_of(name: str) -> Format:
    """A weight format by name, hyphens read as underscores.

    Raises:
        ValueError: unknown name.
    """
    found = FORMATS.get(name.strip().lower().replace("-", "_"))
    if found is None:
        raise ValueError(f"expected a weight format ({', '.join(FORMATS)}), got {name!r}; write the nearest")
    return found
