"""What kinds of layers cost by public pairs, and how well pairs left out are predicted.

python -m studies.layer_kinds [--write-costs objectives/layer_costs/costs.yaml]
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nas.document.document import Document, Section, table_of
from nas.files.tables import write
from nas.files.yaml_source import dump
from nas.terminal.console import Stages
from nas.terminal.tables import show
from objectives.layer_costs.costs import SEARCHED, LayerCosts
from studies.layer_kinds.estimate import Pair, Pairs, costs_of, estimate, public_pairs

DECIDES = 0.01  # nats: smaller measured differences have no sign to predict
WAYS = {"pair": "each pair by all others", "laboratory": "each laboratory by the others"}


@dataclass(frozen=True)
class Predicted:
    """A pair that was left out: measured and predicted difference, nats, the 90 % interval, and whether other pairs say anything of its kinds."""

    pair: Pair
    laboratory: str
    measured: float
    predicted: float
    interval: tuple[float, float]
    known: bool

    @property
    def signed(self) -> bool:
        """Whether its sign is judged."""
        return self.known and abs(self.measured) > DECIDES

    @property
    def right(self) -> bool:
        """Whether the predicted sign is the measured one."""
        return self.measured * self.predicted > 0

    @property
    def held(self) -> bool:
        """Whether the interval holds what was measured."""
        return self.interval[0] <= self.measured <= self.interval[1]

    @property
    def searched(self) -> bool:
        """Whether it differs in kinds that a search prices."""
        return bool(self.pair.change.keys() & set(SEARCHED))


def main() -> None:
    """Estimate the costs, judge them on pairs left out, print and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write-costs", type=Path)
    given = parser.parse_args()
    of, stage = public_pairs(), Stages(quiet=False)
    stage("all pairs")
    costs = costs_of(of, estimate(of, of.fitted))
    laboratories = sorted({of.laboratory(pair) for pair in of.fitted})
    groups: dict[str, list[tuple[Pair, ...]]] = {
        "pair": [(pair,) for pair in of.fitted],
        "laboratory": [tuple(p for p in of.fitted if of.laboratory(p) == whose) for whose in laboratories],
    }
    judged = {way: left_out(of, out, stage) for way, out in groups.items()}
    stage.close()
    if given.write_costs is not None:
        kept = dump(costs.model_dump(mode="json"))
        write(given.write_costs, "# Made by studies.layer_kinds.\n" + kept)
    show(costs_document(of, costs, judged), as_json=False)


def left_out(of: Pairs, groups: Sequence[tuple[Pair, ...]], stage: Stages) -> list[Predicted]:
    """Every pair of every group, predicted from all pairs but its group's."""
    judged = []
    for number, out in enumerate(groups):
        stage(f"left out: {number + 1} of {len(groups)}")
        rest = [pair for pair in of.fitted if pair not in out]
        by, seen = estimate(of, rest), {kind for pair in rest for kind in pair.change}
        for pair in out:
            difference = by.difference(pair, of.laboratory(pair))
            own = pair.change.keys() <= seen
            judged.append(Predicted(pair, of.laboratory(pair), pair.nats, difference.mean, difference.interval(), own))
    return judged


def costs_document(of: Pairs, costs: LayerCosts, judged: Mapping[str, Sequence[Predicted]]) -> Document:
    """The costs, and how well pairs left out are predicted."""
    title = f"What kinds of layers cost, nats where all layers are of the kind: {len(of.fitted)} public pairs"
    rows = [
        (
            kind + "*" * (kind not in SEARCHED),
            f"{cost.nats:+.4f}",
            f"{cost.interval[0]:+.3f} to {cost.interval[1]:+.3f}",
            cost.pairs,
            ", ".join(cost.laboratories),
        )
        for kind, cost in costs.costs.items()
    ]
    notes = (
        "window: of windows of half the context, of a quarter twice that. The interval is of a laboratory that is new. "
        "*: no column of a search holds it.",
        f"Signs are judged of measured differences above {DECIDES:g} nats, of kinds that are in other pairs too. "
        f"{len(of.pairs) - len(of.fitted)} further pairs are not fitted, each with its reason.",
    )
    cost_table = table_of(("kind", "nats", "90 %", "pairs", "laboratories"), rows, notes=notes[:1])
    header = ("by", "sign right", "of searched kinds", "90 % interval holds", "its width")
    record = table_of(header, [(WAYS[way], *_record(predicted)) for way, predicted in judged.items()], notes=notes[1:])
    sections = (Section(title, (cost_table,)), Section("Pairs left out", (record,)))
    return Document(title, sections)


def _record(predicted: Sequence[Predicted]) -> tuple[str, ...]:
    signed, held = [one for one in predicted if one.signed], sum(one.held for one in predicted)
    right = [
        f"{sum(one.right for one in some)} of {len(some)}" for some in (signed, [one for one in signed if one.searched])
    ]
    width = sum(one.interval[1] - one.interval[0] for one in predicted) / len(predicted)
    return (*right, f"{held} of {len(predicted)} ({100 * held / len(predicted):.0f} %)", f"{width:.3f}")


if __name__ == "__main__":
    main()
