"""What kinds of layers cost by public pairs, and how well pairs left out are predicted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nas.errors import UsageError
from nas.evidence.request import EvidenceRequest
from nas.files.tables import write
from nas.files.yaml_source import dump
from nas.terminal.console import Stages, say, say_json
from nas.terminal.screen_text import TITLE, Styled
from nas.terminal.tables import table
from objectives.layer_costs.costs import SEARCHED, LayerCosts
from objectives.layer_costs.estimate import Pair, Pairs, costs_of, estimate, public_pairs

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


def execute(request: EvidenceRequest) -> None:
    """Estimate the costs from the pairs of this package, judge them on pairs left out, print it.

    Raises:
        UsageError: beside tables, laws or questions of the evidence on losses.
    """
    others = (request.tables, request.laws, request.published, request.question, request.left_out, request.write_law)
    if any(others):
        raise UsageError("layer_kinds: expected no tables, laws or questions beside it, got some; drop them")
    of, stage = public_pairs(), Stages(quiet=request.quiet or request.json)
    stage("all pairs")
    costs = costs_of(of, estimate(of, of.fitted))
    laboratories = sorted({of.laboratory(pair) for pair in of.fitted})
    groups: dict[str, list[tuple[Pair, ...]]] = {
        "pair": [(pair,) for pair in of.fitted],
        "laboratory": [tuple(p for p in of.fitted if of.laboratory(p) == whose) for whose in laboratories],
    }
    judged = {way: left_out(of, out, stage) for way, out in groups.items()}
    stage.close()
    if request.write_costs is not None:
        document = dump(costs.model_dump(mode="json"))
        write(request.write_costs, "# Made by plas evidence --layer-kinds --write-costs.\n" + document)
    if request.json:
        say_json(content(of, costs, judged))
    else:
        say_costs(of, costs, judged)


def left_out(of: Pairs, groups: Sequence[tuple[Pair, ...]], stage: Stages) -> list[Predicted]:
    """Every pair of every group, predicted from all pairs but its group's."""
    found = []
    for number, out in enumerate(groups):
        stage(f"left out: {number + 1} of {len(groups)}")
        rest = [pair for pair in of.fitted if pair not in out]
        by, seen = estimate(of, rest), {kind for pair in rest for kind in pair.change}
        for pair in out:
            said = by.difference(pair, of.laboratory(pair))
            known = pair.change.keys() <= seen
            found.append(Predicted(pair, of.laboratory(pair), pair.nats, said.mean, said.interval(), known))
    return found


def content(of: Pairs, costs: LayerCosts, judged: dict[str, list[Predicted]]) -> dict[str, Any]:
    """Everything as plain content: sources, pairs in nats, costs, and every pair left out."""
    return {
        "sources": {name: source.model_dump() for name, source in of.sources.items()},
        "pairs": [pair.model_dump() | {"laboratory": of.laboratory(pair), "nats": pair.nats} for pair in of.pairs],
        **costs.model_dump(),
        "left_out": {
            way: [
                {
                    "laboratory": each.laboratory,
                    "at": each.pair.at,
                    "change": each.pair.change,
                    "measured": each.measured,
                    "predicted": each.predicted,
                    "interval": each.interval,
                    "sign_judged": each.signed,
                }
                for each in predicted
            ]
            for way, predicted in judged.items()
        },
    }


def say_costs(of: Pairs, costs: LayerCosts, judged: dict[str, list[Predicted]]) -> None:
    """The costs and the record on one screen."""
    title = f"What kinds of layers cost, nats where all layers are of the kind: {len(of.fitted)} public pairs"
    say(Styled(title, TITLE))
    rows = [
        [
            kind + "*" * (kind not in SEARCHED),
            f"{each.nats:+.4f}",
            f"{each.interval[0]:+.3f} to {each.interval[1]:+.3f}",
            str(each.pairs),
            ", ".join(each.laboratories),
        ]
        for kind, each in costs.costs.items()
    ]
    table(["kind", "nats", "90 %", "pairs", "laboratories"], rows)
    say()
    say(
        "window: of windows of half the context, of a quarter twice that. The interval is of a laboratory that is new. *: no column of a search holds it."
    )
    say()
    say(Styled("Pairs left out", TITLE))
    header = ["by", "sign right", "of searched kinds", "90 % interval holds", "its width"]
    table(header, [[WAYS[way], *_record(predicted)] for way, predicted in judged.items()])
    say()
    say(
        f"Signs are judged of measured differences above {DECIDES:g} nats, of kinds that other pairs say something of. "
        f"{len(of.pairs) - len(of.fitted)} further pairs are not fitted, each with its reason; all of it: --json."
    )


def _record(predicted: Sequence[Predicted]) -> list[str]:
    signed, held = [each for each in predicted if each.signed], sum(each.held for each in predicted)
    searched = [each for each in signed if each.searched]
    width = sum(each.interval[1] - each.interval[0] for each in predicted) / len(predicted)
    return [
        f"{sum(each.right for each in signed)} of {len(signed)}",
        f"{sum(each.right for each in searched)} of {len(searched)}",
        f"{held} of {len(predicted)} ({100 * held / len(predicted):.0f} %)",
        f"{width:.3f}",
    ]
