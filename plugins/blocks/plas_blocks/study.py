"""One answer whole: the library, the question, the frontier, and picks."""

import math
import sys
from dataclasses import dataclass
from typing import Any

from plas_blocks.answers import Pick, cost_of, layer_answers, parent_totals, step
from plas_blocks.library import Library
from plas_blocks.query import BlocksQuery
from plas_blocks.solution import Frontier

EXACTLY_COUNTED = 2.0**53
UNTESTED = "Whether the scores add up was not tested: assemble a pick and score it."


@dataclass(frozen=True, eq=False)
class Study:
    """The data of the tables, the screen, the pictures and the page."""

    library: Library
    asked: BlocksQuery
    frontier: Frontier
    picks: tuple[Pick, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The objectives."""
        return self.frontier.problem.names

    def certainty(self) -> str:
        """The proof of the frontier in this run."""
        found = self.frontier
        if found.exact:
            return f"every optimum of these sums, exactly ({found.method})"
        return (
            f"within a tolerance of {rounded_up(100 * found.tolerance)} % of their range, proved by lower bounds ({found.method}): "
            "no mixture is better in all objectives by more"
        )

    def tied(self, row: int) -> str:
        """How many mixtures have the same objectives; empty where they were not counted."""
        count = float(self.frontier.tied[row])
        if count != count:
            return ""
        if count < EXACTLY_COUNTED:
            return f"{count:,.0f}"
        return f"about {count:.2e}" if math.isfinite(count) else f"over {sys.float_info.max:.0e}"

    def buys(self, row: int) -> str:
        """The gain of a little more of the cost."""
        name = cost_of(self.frontier)
        found = None if name is None else step(self.frontier, row, name)
        if found is None:
            return "nothing more"
        return f"{self.names[0]} better by {found.gain:.3g} for {found.cost:.4g} more {name}"

    def summary(self) -> dict[str, Any]:
        """Content of summary.json."""
        found, library = self.frontier, self.library
        return {
            "layers": library.layers,
            "replacements": len(library),
            "kinds": len(set(library.kinds)),
            "objectives": list(self.names),
            "larger_is_better": sorted(library.larger & set(library.metrics)),
            "mixtures": len(found),
            "exact": found.exact,
            "tolerance": found.tolerance,
            "method": found.method,
            "parent": parent_totals(library),
        }

    def pick_rows(self) -> list[dict[str, Any]]:
        """A row per pick: its limit, totals, layers changed, kinds, ties, and the next step."""
        totals = {name: self.frontier.metric(name) for name in self.library.metrics}
        changed, kinds, cost = self.frontier.changed, self.frontier.kinds, cost_of(self.frontier)
        rows = []
        for pick in self.picks:
            row: dict[str, Any] = {"limit": str(pick.limit), "share_of_parent": pick.share}
            if pick.row is not None:
                at = pick.row
                row |= {"id": at, **{name: float(values[at]) for name, values in totals.items()}}
                row |= {"layers_changed": int(changed[at]), "kinds": int(kinds[at]), "tied": self.tied(at)}
                more = None if cost is None else step(self.frontier, at, cost)
                row |= {} if more is None else {"next_cost": more.cost, "next_gain": more.gain}
                row["blocks"] = " ".join(map(str, self.frontier.replacements(at)))
            rows.append(row)
        return rows

    def layer_rows(self) -> list[dict[str, Any]]:
        """A row per layer: how it changes along the frontier."""
        return [vars(answer) for answer in layer_answers(self.frontier)]


def rounded_up(share: float) -> str:
    """To two digits, and never to less than was proved."""
    if not share > 0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(share)) - 1)
    return f"{math.ceil(share / step * (1 - 1e-12)) * step:.2g}"
