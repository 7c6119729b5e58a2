"""Chips as points of a space of rates: classes of equal rates, cells of classes, the levels of memory in a cell."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from nas.problem.evaluations import non_dominated
from objectives.device import Calibration
from objectives.scenario import Scenario
from search_spaces.arrays import FloatArray, IntArray

SLACK = 1e-9  # relative, on what a bound says of a design's memory


def rates_of(scenario: Scenario) -> tuple[float, ...]:
    """What of a device its times depend on: bandwidth, the peaks of the precision's operators, operations and bytes per second, and shares of these."""
    device, p = scenario.device, scenario.precision
    peaks = dict.fromkeys(("fp16", p.linear_peak, p.of_down.linear_peak))
    return (device.bandwidth, *(device.peak(peak) for peak in peaks), *shares_of(scenario.calibration))


def shares_of(profile: Calibration | None) -> tuple[float, float]:
    """Shares of a peak in the prefill and in decoding one token, which may follow figures of the device."""
    return (
        (1.0, 1.0)
        if profile is None
        else (profile.compute_efficiency, profile.compute_efficiency * profile.decode_compute)
    )


@dataclass(frozen=True, eq=False)
class ChipTable:
    """Chips as columns: rates (n, r), memory in GB (n,), the columns that are objectives (n, k), the class of each, (n,).

    A class holds chips of the same rates, on which every architecture takes the same time; `first` is one chip of each.
    """

    scenarios: tuple[Scenario, ...]
    numbers: IntArray
    memory_gb: FloatArray
    costs: FloatArray
    rates: FloatArray
    of_class: IntArray
    first: IntArray
    _cheapest: dict[tuple[int, int], IntArray] = field(default_factory=dict)

    @classmethod
    def of(cls, scenarios: tuple[Scenario, ...], numbers: IntArray, columns: Mapping[str, FloatArray]) -> "ChipTable":
        """Chips by their numbers, with the columns that are minimised."""
        rates = np.array([rates_of(scenarios[number]) for number in numbers.tolist()])
        found, first, of_class = np.unique(rates, axis=0, return_index=True, return_inverse=True)
        memory = np.array([scenarios[number].device.memory_gb for number in numbers.tolist()])
        costs = np.stack([np.zeros(len(numbers)), *(column[numbers] for column in columns.values())], axis=1)[:, 1:]
        return cls(scenarios, numbers, memory, costs, found, of_class.ravel(), first)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def classes(self) -> int:
        """Classes of equal rates."""
        return len(self.rates)

    @cached_property
    def _order(self) -> IntArray:
        """Chips by class, and within one by memory."""
        return np.lexsort((self.numbers, self.memory_gb, self.of_class))

    @cached_property
    def _starts(self) -> IntArray:
        return np.searchsorted(self.of_class[self._order], np.arange(self.classes + 1))

    def members(self, number: int) -> IntArray:
        """The chips of a class (places in this table), by memory."""
        return self._order[self._starts[number] : self._starts[number + 1]]

    def cheapest(self, number: int, start: int) -> IntArray:
        """Chips of a class, without the `start` smallest by memory, that no other of these undercuts in costs, of equal ones the first."""
        if (number, start) not in self._cheapest:
            chips = self.members(number)[start:]
            self._cheapest[number, start] = chips[_not_undercut(self.costs[chips])]
        return self._cheapest[number, start]

    def best_devices(self, classes: IntArray) -> Scenario:
        """A scenario that is on no architecture slower than one of these classes: each rate is the largest."""
        some = [self.scenarios[int(self.numbers[self.first[number]])] for number in classes.tolist()]
        if len(some) == 1:
            return some[0]
        return replaced(some)

    def levels(self, classes: IntArray) -> "Levels":
        """The levels of memory of the chips of some classes."""
        return Levels.of(*self._of_classes(classes))

    def _of_classes(self, classes: IntArray) -> tuple[FloatArray, FloatArray]:
        chips = np.concatenate([self.members(number) for number in classes.tolist()])
        return self.memory_gb[chips], self.costs[chips]


def _not_undercut(costs: FloatArray) -> IntArray:
    """Rows of costs (n, k) that no other undercuts, of equal ones the first."""
    if len(costs) == 0 or costs.shape[1] == 0:
        return np.arange(min(len(costs), 1))
    kept = non_dominated(costs)
    _, first = np.unique(costs[kept], axis=0, return_index=True)
    return kept[np.sort(first)]


def replaced(scenarios: list[Scenario]) -> Scenario:
    """The first scenario on a device with the largest peaks, bandwidth and shares of these."""
    devices, first, profile = [each.device for each in scenarios], scenarios[0].device, scenarios[0].calibration
    others = {name: max(device.other_peaks[name] for device in devices) for name in first.other_peaks}
    best = {name: max(getattr(device, name) for device in devices) for name in ("fp16", "int8", "bandwidth")}
    if profile is not None:
        prefill, decode = np.array([shares_of(each.calibration) for each in scenarios]).max(axis=0).tolist()
        largest = {"compute_efficiency": prefill, "decode_compute": decode / prefill}
        profile = profile.model_copy(update=largest)
    device = first.model_copy(update={**best, "other_peaks": others})
    return replace(scenarios[0], device=device, calibration=profile)


@dataclass(frozen=True, eq=False)
class Levels:
    """Memory (j,), ascending, and the least of every cost among chips with as much or more, (j, k), ascending in each."""

    memory_gb: FloatArray
    costs: FloatArray

    @classmethod
    def of(cls, memory: FloatArray, costs: FloatArray) -> "Levels":
        """The levels of chips: where more memory costs no more, the smaller one is no level."""
        order = np.argsort(memory, kind="stable")
        memory, costs = memory[order], costs[order]
        least = np.minimum.accumulate(costs[::-1], axis=0)[::-1]
        last = np.ones(len(memory), dtype=bool)
        last[:-1] = (least[1:] != least[:-1]).any(axis=1)
        return cls(memory[last], least[last])

    def of_need(self, need_gb: FloatArray) -> IntArray:
        """The first level that may hold so much, (n,); the number of levels where none does."""
        found: IntArray = np.searchsorted(self.memory_gb * (1.0 + SLACK), need_gb, side="left")
        return found


@dataclass(frozen=True, eq=False)
class Cell:
    """Classes (rows of a table), with the up to four cells it falls into, the cheapest first; none where it is one class.

    span: the largest ratio of a rate within it, as a logarithm.
    """

    classes: IntArray
    span: float
    children: tuple["Cell", ...]

    @classmethod
    def of(cls, chips: ChipTable, classes: IntArray, least: FloatArray) -> "Cell":
        """The tree over some classes; `least`, (classes,), orders the parts of a cell."""
        parts = _quarters(np.log(chips.rates), classes)
        children = tuple(
            cls.of(chips, part, least) for part in sorted(parts, key=lambda part: float(least[part].min()))
        )
        return cls(classes, float(np.ptp(np.log(chips.rates[classes]), axis=0).max()), children)


def _quarters(logs: FloatArray, classes: IntArray) -> list[IntArray]:
    """Classes halved twice, each time at the middle of the rate that differs most; none of one class."""
    if len(classes) == 1:
        return []
    return [part for half in _halves(logs, classes) for part in (_halves(logs, half) if len(half) > 1 else [half])]


def _halves(logs: FloatArray, classes: IntArray) -> list[IntArray]:
    rates = logs[classes]
    axis = int(np.ptp(rates, axis=0).argmax())
    upper = rates[:, axis] > 0.5 * (rates[:, axis].max() + rates[:, axis].min())
    return [classes[~upper], classes[upper]]
