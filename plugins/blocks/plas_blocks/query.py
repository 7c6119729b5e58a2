"""Checks the command's objectives, limits, fixed layers and picks against the library."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.files.faults import unknown
from plas_blocks.checking import LARGEST
from plas_blocks.exact_by_kind import few_kinds
from plas_blocks.files import layers_of
from plas_blocks.library import Library
from plas_blocks.problem import Limit, posed
from plas_blocks.request import BlocksRequest
from plas_blocks.solution import Frontier
from plas_blocks.solving import Doing, solved
from search_spaces.arrays import BoolArray

LIMIT = re.compile(r"^\s*([^<>=]*[^<>=\s])\s*(<=|>=|=)\s*(\S+)\s*$")
FIXED = re.compile(r"^\s*([\d,\s-]+)=(.+)$")
PARENT = "parent"
KEYS = ("objectives", "budgets", "fixed", "max_kinds", "picks")


@dataclass(frozen=True)
class BlocksQuery:
    """As typed, or as a folder's config.yaml has it."""

    objectives: tuple[str, ...] = ("score", "memory_mib")
    budgets: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    max_kinds: int | None = None
    picks: tuple[str, ...] = field(default=())

    @classmethod
    def from_config(cls, content: Mapping[str, Any], where: str) -> "BlocksQuery":
        """The query of a recorded configuration.

        Raises:
            UsageError: content of another form.
        """
        lists = {key: content.get(key, []) for key in KEYS if key != "max_kinds"}
        kinds = content.get("max_kinds", "none")
        known = all(isinstance(v, list) and all(isinstance(t, str) for t in v) for v in lists.values())
        if not known or not lists["objectives"] or not (kinds == "none" or type(kinds) is int):
            raise UsageError(
                f"{where}: expected a configuration of plas blocks, got changed content; make the folder again"
            )
        texts = {key: tuple(value) for key, value in lists.items()}
        return cls(
            texts["objectives"], texts["budgets"], texts["fixed"], kinds if kinds != "none" else None, texts["picks"]
        )

    @classmethod
    def typed(cls, request: BlocksRequest) -> "BlocksQuery":
        """The query of the flags; without objectives the one score that they name, if they do.

        Raises:
            UsageError: no objective.
        """
        score = request.scores if len(request.scores) == 1 else cls.objectives[:1]
        names = (*score, *cls.objectives[1:])
        if request.objective is not None:
            names = tuple(name.strip() for name in request.objective.split(",") if name.strip())
        if not names:
            raise UsageError("--objective: expected metrics, got none; write for example score,memory_mib")
        return cls(names, request.budgets, request.fixed, request.max_kinds, request.picks)

    def names(self, library: Library) -> tuple[str, ...]:
        """The objectives as the library names them.

        Raises:
            UsageError: it has none of a name.
        """
        return tuple(dict.fromkeys(library.named(name) for name in self.objectives))

    def answerable(self, library: Library, text: str) -> Limit:
        """A limit that a frontier of these objectives answers: on one of them, on the side of its better values.

        Raises:
            UsageError: another one, under which something else than what is on the frontier may be best.
        """
        limit, names = limit_of(library, text), self.names(library)
        if limit.metric not in names or limit.least != (limit.metric in library.larger):
            known = " or ".join(f"{name}{'>=' if name in library.larger else '<='}" for name in names)
            raise UsageError(
                f"pick: expected a limit on an objective ({known}), got {limit}; give it as --budget, which all is solved within"
            )
        return limit

    def content(self) -> dict[str, Any]:
        """As config.yaml has it."""
        kinds = "none" if self.max_kinds is None else self.max_kinds
        values = (list(self.objectives), list(self.budgets), list(self.fixed), kinds, list(self.picks))
        return dict(zip(KEYS, values, strict=True))


def answered(library: Library, asked: BlocksQuery, say: Doing = lambda text: None) -> Frontier:
    """The frontier of a query.

    Raises:
        UsageError: unknown metrics, blocks or layers, or what cannot be done.
        InfeasibleError: no mixture is within the limits.
    """
    names = asked.names(library)
    limits = [limit_of(library, text) for text in asked.budgets]
    problem = posed(library, names, limits, allowed(library, asked.fixed), whole=asked.max_kinds is not None)
    if asked.max_kinds is None:
        return solved(problem, say)
    if asked.max_kinds < 1:
        raise UsageError(f"--max-kinds: expected at least 1, got {asked.max_kinds}; allow one kind")
    return few_kinds(problem, asked.max_kinds, say)


def limit_of(library: Library, text: str) -> Limit:
    """`memory_mib=24000` or `<=`: at most; `has_attention>=20`: at least. `accuracy=0.5`, of which more is better, is at least.

    Raises:
        UsageError: another form, an unknown metric, no number.
    """
    found = LIMIT.match(text)
    if found is None:
        raise UsageError(f"budget: expected metric=limit, got {text!r}; write for example memory_mib=24000")
    name, sign, written = library.named(found[1]), found[2], found[3]
    try:
        value = float(written)
    except ValueError:
        value = np.nan
    if not abs(value) <= LARGEST:
        sentence = f"expected a number in the library's unit, got {written[:40]!r}"
        raise UsageError(f"budget: {name}: {sentence}; write {name}=1000")
    return Limit(name, value, sign == ">=" or (sign == "=" and name in library.larger))


def allowed(library: Library, fixed: Sequence[str]) -> BoolArray:
    """Which rows may be chosen where layers are fixed: `0,5-7=parent`, `3=BLOCK`.

    Raises:
        UsageError: another form, layers that there are not, a block that a layer does not have.
    """
    mask = np.ones(len(library), dtype=bool)
    for text in fixed:
        found = FIXED.match(text)
        if found is None:
            raise UsageError(f"--fix: expected LAYERS=BLOCK, got {text!r}; write for example 0,30-31=parent")
        for layer in _layers(library, found[1]):
            here = (library.first <= layer) & (layer < library.first + library.length)
            own = library.parent if found[2].strip() == PARENT else _named(library, found[2].strip())
            if not (here & own).any():
                names = [*(library.blocks[row] for row in np.flatnonzero(here)), PARENT]
                raise UsageError(f"--fix: layer {layer}: {unknown('a block', found[2].strip(), dict.fromkeys(names))}")
            mask &= ~here | own
    return mask


def _named(library: Library, name: str) -> BoolArray:
    return np.array([block == name for block in library.blocks], dtype=bool)


def _layers(library: Library, text: str) -> list[int]:
    layers = list[int]()
    for part in text.split(","):
        found = layers_of("--fix", part.strip())
        if found[-1] >= library.layers:
            raise UsageError(f"--fix: expected layers up to {library.layers - 1}, got {part.strip()!r}; write 0,30-31")
        layers += found
    return layers
