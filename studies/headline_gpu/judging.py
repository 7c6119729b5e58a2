"""What the trainings say of the laws' picks, by the rules of design.md."""

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau, t

from nas.record.candidates import read_candidates
from objectives.loss_law.features import feature
from studies.headline_gpu.design import BASELINES, BOARDS, LAWS, PREDICTIONS, ROLES, SHAPES
from studies.headline_gpu.running import FULL, RESULTS, SEEDS, factor_of, read_lines

LEVEL = 0.95
Losses = Mapping[str, Sequence[float]]  # of each shape, by seed


def judge(folder: Path) -> None:
    """Print the answers as lines of Markdown."""
    print(*answers(read_lines(folder / RESULTS)), sep="\n")


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a list."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def losses_of(lines: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Validation losses of the shapes that have all seeds, nats per byte."""
    found: dict[str, dict[int, float]] = {}
    for line in lines:
        if line["kind"] == FULL and line["loss"] is not None:
            found.setdefault(line["id"], {})[line["seed"]] = line["loss"]
    return {name: [own[seed] for seed in SEEDS] for name, own in found.items() if set(own) >= set(SEEDS)}


def welch(a: Sequence[float], b: Sequence[float], level: float = LEVEL) -> tuple[float, float, float]:
    """Mean of a less that of b with Welch's interval; without any deviation the interval is the difference."""
    parts = [float(np.var(each, ddof=1)) / len(each) for each in (a, b)]
    difference, variance = float(np.mean(a) - np.mean(b)), sum(parts)
    if variance == 0.0:
        return difference, difference, difference
    freedom = variance**2 / sum(part**2 / (len(each) - 1) for part, each in zip(parts, (a, b), strict=True))
    half = float(t.ppf(0.5 + level / 2, freedom)) * math.sqrt(variance)
    return difference, difference - half, difference + half


def verdict(low: float, high: float) -> str:
    """What an interval of a difference to the baseline says."""
    return "holds" if high < 0 else "fails" if low > 0 else "not decided"


def answers(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """All answers, each over what is trained whole."""
    losses, roles = losses_of(lines), rows_of(ROLES)
    _, ids = read_candidates(SHAPES)
    yield f"{len(losses)} of {len(ids)} shapes with {len(SEEDS)} seeds; {sum(line['loss'] is None for line in lines)} trainings without a loss"
    if losses:
        pooled = math.sqrt(float(np.mean([np.var(own, ddof=1) for own in losses.values()])))
        yield f"Deviation between seeds {pooled:.4f} nats"
    chosen = {name: factor_of(name, lines) for name in ids}
    yield "Factors of the rate: " + ", ".join(f"{name} {factor}" for name, factor in chosen.items())
    yield from ("", *of_roles(losses, roles), "", *of_laws(losses, roles), "", *of_pairs(losses, roles))


def of_roles(losses: Losses, roles: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Each pick less its baseline."""
    pairs = {(role["id"], role["baseline"]) for role in roles}
    yield f"| baseline | board | law | kind | pick | nats | 95 % | adjusted for {len(pairs)} pairs |"
    yield "|---|---|---|---|---|---|---|---|"
    for role in roles:
        if {role["id"], role["baseline"]} <= set(losses):
            both = losses[role["id"]], losses[role["baseline"]]
            difference, low, high = welch(*both)
            _, *adjusted = welch(*both, level=1 - (1 - LEVEL) / len(pairs))
            cells = [role[name] for name in ("baseline", "board", "law", "kind", "id")]
            cells += [f"{difference:+.4f}", f"{low:+.4f} to {high:+.4f}: {verdict(low, high)}", verdict(*adjusted)]
            yield f"| {' | '.join(cells)} |"


def of_laws(losses: Losses, roles: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Order and differences by each law, and the order by counts."""
    architectures, ids = read_candidates(SHAPES)
    predicted = {row["id"]: row for row in rows_of(PREDICTIONS)}
    known = [name for name in ids if name in losses]
    means = {name: float(np.mean(losses[name])) for name in known}
    active = dict(zip(ids, feature(architectures, "active_parameters"), strict=True))
    orders = {law: {name: float(predicted[name][f"loss_{law}"]) for name in known} for law in LAWS}
    orders |= {
        "more stored parameters": {name: -float(predicted[name]["body"]) for name in known},
        "more active parameters": {name: -float(active[name]) for name in known},
    }
    pairs = {(role["id"], role["baseline"]) for role in roles if {role["id"], role["baseline"]} <= set(means)}
    yield "| order by | Kendall's tau | root mean square error of differences, nats |"
    yield "|---|---|---|"
    for what, values in orders.items():
        tau = (
            kendalltau([values[name] for name in known], list(means.values())).statistic if len(known) > 2 else math.nan
        )
        errors = [values[a] - values[b] - means[a] + means[b] for a, b in pairs]
        missed = f"{math.sqrt(float(np.mean(np.square(errors)))):.4f}" if what in LAWS and errors else ""
        yield f"| {what} | {tau:.2f} | {missed} |"


def of_pairs(losses: Losses, roles: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Law against law, experts against dense, and the usual FFN against the law's."""
    pick = {(role["baseline"], role["board"], role["law"], role["kind"]): role["id"] for role in roles}
    yield "| baseline | board | first less second | nats | 95 % |"
    yield "|---|---|---|---|---|"
    both = [((LAWS[0], kind), (LAWS[1], kind)) for kind in ("dense", "experts")]
    both += [((law, "experts"), (law, "dense")) for law in LAWS] + [((LAWS[0], "control"), (LAWS[0], "dense"))]
    _, names = read_candidates(BASELINES)
    for baseline, board, (first, second) in product(names, BOARDS, both):
        a, b = pick.get((baseline, board, *first)), pick.get((baseline, board, *second))
        if a is not None and b is not None and a != b and {a, b} <= set(losses):
            difference, low, high = welch(losses[a], losses[b])
            words = f"{' '.join(first)} ({a}) less {' '.join(second)} ({b})"
            yield f"| {baseline} | {board} | {words} | {difference:+.4f} | {low:+.4f} to {high:+.4f} |"
