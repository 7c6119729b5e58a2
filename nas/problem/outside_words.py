"""Where a design leaves what the rows of its loss law cover, in words."""

from nas.problem.quantity_words import in_words
from objectives.loss_law.coverage import DesignKind
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures

SHARE = "_share"  # ends the name of a share of layers


def leaves(law: Law, design: Architectures) -> list[str]:
    """By which quantities a design, one row, leaves what the law's rows cover: `FFN ratio 0.018 (trained: 2.67 to 10)`; [] of one inside."""
    left = list(law.outside(design))
    alone = {name for name in left if " " not in name}
    pairs = [name.split() for name in left if " " in name and not alone & set(name.split())]
    return [_axis(law, design, name) for name in left if name in alone] + [_pair(law, design, *pair) for pair in pairs]


def _axis(law: Law, design: Architectures, name: str) -> str:
    kind: DesignKind = "sparse" if design.n_experts[0] > 1 else "dense"
    region = law.regions.get(kind)
    value = float(law.feature(design, name)[0])
    if region is None and name == "n_experts":
        return "experts, which no row has" if kind == "sparse" else "no experts, which every row has"
    least, most = {**({} if region is None else region.ranges), **law.covered_vocabularies}[name]
    if name.endswith(SHARE):
        return f"{name.removesuffix(SHARE)} in {100 * value:.0f} % of the layers (trained: {_ends(100 * least, 100 * most)} %)"
    return f"{in_words(name)} {value:.3g} (trained{' with experts' * (kind == 'sparse')}: {_ends(least, most)})"


def _pair(law: Law, design: Architectures, first: str, second: str) -> str:
    a, b = (float(law.feature(design, name)[0]) for name in (first, second))
    return f"{in_words(first)} {a:.3g} beside {in_words(second)} {b:.3g}, a corner that no row reaches"


def _ends(least: float, most: float) -> str:
    return f"{least:.3g}" if least == most else f"{least:.3g} to {most:.3g}"
