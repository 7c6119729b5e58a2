"""Ranges in which measured times lie: predictions times measured / predicted of what was held out."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from objectives.device import Calibration, Phase
from objectives.measured_bounds import beyond
from objectives.scenario import Scenario
from objectives.transfers import error_factor
from search_spaces.architectures import Architectures

PHASES: dict[str, tuple[Phase, ...]] = {
    "prefill_ms": ("prefill",),
    "ttft_ms": ("prefill",),
    "decode_ms": ("decode",),
    "tpot_ms": ("decode",),
    "tokens_per_second": ("decode",),
    "total_ms": ("prefill", "decode"),
}
SHARE = Fraction(8, 10)


@dataclass(frozen=True)
class Range:
    """Measured / predicted of a phase, least and largest, and the share of unseen models (or devices) that it claims to hold."""

    least: float
    most: float
    share: Fraction

    def of(self, value: float) -> tuple[float, float]:
        """That of a predicted time."""
        return value * self.least, value * self.most


def phase_range(calibration: Calibration, phase: Phase) -> Range | None:
    """The range of a phase of which 80 % of what was not seen lie inside, or as many as so few can claim; None with nothing held out.

    Of n models the rank (n + 1)·q from either end; of what is typical of a class the same quantile of the ratios of its devices, as
    many of each.
    """
    ratios = sorted(calibration.held_out.get(phase, []))
    if not ratios:
        return None
    models = calibration.held_out_models or len(ratios)
    tail = max((1 - SHARE) / 2, Fraction(1, models + 1))
    outside = beyond(len(ratios) if calibration.typical else models, models, tail)
    return Range(ratios[outside], ratios[-1 - outside], 1 - 2 * tail)


def time_ranges(
    scenario: Scenario, chosen: Architectures, metrics: Mapping[str, float]
) -> dict[str, tuple[float, float]]:
    """The range of each time and rate of one architecture (n = 1) by its name; those of a phase with nothing held out are missing.

    Of its own conditions: it has experts or has none. Both phases of a total are at the same ends of theirs. `metrics` are what is
    predicted, `prefill_ms` among them.
    """
    known = _ranges(scenario, chosen)
    return {
        name: _range_of(name, metrics, known)
        for name in metrics
        if name in PHASES and set(PHASES[name]) <= known.keys()
    }


def share_of(scenario: Scenario, chosen: Architectures) -> int:
    """The per cent of unseen models (or devices) that `time_ranges` claim to hold; 0 where there are none."""
    return round(100 * float(min((r.share for r in _ranges(scenario, chosen).values()), default=Fraction(0))))


def _ranges(scenario: Scenario, chosen: Architectures) -> dict[Phase, Range]:
    """Those of the phases that have one; the upper end is as much later as conditions outside of the measured ones were seen to be."""
    experts, found = bool(chosen.n_experts[0] > 1), dict[Phase, Range]()
    for phase in PHASES["total_ms"]:
        own = scenario.of_phase(phase)
        known = None if own.calibration is None else phase_range(own.calibration, phase)
        if own.calibration is not None and known is not None:
            further = error_factor(own.calibration, own.conditions(experts=experts), phase, (1 + known.share) / 2)
            found[phase] = replace(known, most=known.most * further)
    return found


def _range_of(name: str, times: Mapping[str, float], known: Mapping[Phase, Range]) -> tuple[float, float]:
    """The range of one time or rate."""
    if name == "total_ms":
        prefill, decode = times["prefill_ms"], times[name] - times["prefill_ms"]
        ends = known["prefill"].of(prefill), known["decode"].of(decode)
        return ends[0][0] + ends[1][0], ends[0][1] + ends[1][1]
    only = known[PHASES[name][0]]
    if name == "tokens_per_second":
        return times[name] / only.most, times[name] / only.least
    return only.of(times[name])
