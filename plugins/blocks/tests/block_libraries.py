"""Random libraries, and what is best in small ones by trying every mixture."""

from collections.abc import Iterator, Sequence

import numpy as np
from plas_blocks.checking import Meaning, checked
from plas_blocks.library import Library, Row
from plas_blocks.problem import Limit

NAMES = ("score", "memory_mib", "runtime_ms", "prefill_ms")


def random_library(
    layers: int, blocks: int, seed: int, *, costs: int = 1, whole: bool = False, pairs: int = 0
) -> Library:
    """Blocks whose score falls as their costs rise; `whole`: small whole numbers, with many ties; `pairs`: of two layers."""
    generator, rows = np.random.default_rng(seed), list[Row]()
    for layer in range(layers):
        slope = generator.random() * 2
        for length, count in ((1, blocks), (2, pairs if layer + 2 <= layers else 0)):
            for number in range(count):
                memory = generator.random() * length
                score = max(length - memory, 0.0) ** 2 * slope + generator.random() * 0.2
                values = [score, memory, *(0.6 * memory + 0.4 * generator.random() for _ in range(costs - 1))]
                told = np.round(np.array(values) * 6) if whole else np.array(values)
                covered = tuple(range(layer, layer + length))
                own = number == 0 and length == 1
                metrics = dict(zip(NAMES, told.tolist(), strict=False))
                rows.append(Row(f"row {len(rows)}", covered, f"{'pair' * (length > 1)}b{number:03}", own, metrics))
    return checked("random", rows, Meaning())


def covers(library: Library, layer: int = 0) -> Iterator[tuple[int, ...]]:
    """Every mixture, as rows."""
    if layer == library.layers:
        yield ()
        return
    for row in np.flatnonzero(library.first == layer).tolist():
        for rest in covers(library, layer + int(library.length[row])):
            yield (row, *rest)


def by_trying(
    library: Library, objectives: Sequence[str], limits: Sequence[Limit]
) -> dict[tuple[float, ...], tuple[int, tuple[int, list[int]]]]:
    """Of every optimum how many mixtures tie, and the one with the fewest layers changed, then the first."""
    found: dict[tuple[float, ...], list[tuple[int, list[int]]]] = {}
    for cover in covers(library):
        totals = {name: library.total(name, np.array(cover)) for name in library.metrics}
        if any((totals[x.metric] < x.value - 1e-9) if x.least else (totals[x.metric] > x.value + 1e-9) for x in limits):
            continue
        layers = [row for row in cover for _ in range(int(library.length[row]))]
        key = tuple(round(float(totals[name]), 9) for name in objectives)
        found.setdefault(key, []).append((int((~library.parent[layers]).sum()), layers))
    best = [k for k in found if not any(o != k and all(a <= b for a, b in zip(o, k, strict=True)) for o in found)]
    return {k: (len(found[k]), min(found[k])) for k in best}


def half_way(library: Library, name: str, share: float) -> float:
    """A limit between the least and the mean of a metric's totals."""
    least = sum(library.metrics[name][library.first == layer].min() for layer in range(library.layers))
    mean = sum(library.metrics[name][library.first == layer].mean() for layer in range(library.layers))
    return float(least + (mean - least) * share)
