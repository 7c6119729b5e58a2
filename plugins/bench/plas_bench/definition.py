"""What a problem is: its frozen study, and the values and the exact front that it was frozen with, as YAML beside this file."""

from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from nas.errors import UsageError
from nas.files.faults import nearest
from objectives import outside

PROBLEMS = Path(__file__).parent / "problems"
Family = Literal["analytic", "table", "kind"]


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Check(_Frozen):
    """Values at fixed designs: genotypes (n, g), objectives (n, m), violations (n, k), each to 12 significant digits."""

    genotypes: list[list[int]]
    objectives: list[list[float]]
    violations: list[list[float]]


class FrozenFront(_Frozen):
    """The exact front: its members, its best and worst value of each objective, and the digest of its values.

    vectors: different values among the members, compared to seven significant digits; sha256: of them; keys_sha256: of the members'
    numbers (`plas_bench.digests`). Where processors round differently one of the two may differ, hardly both.
    """

    members: int
    vectors: int
    ideal: list[float]
    nadir: list[float]
    sha256: str
    keys_sha256: str


class Table(_Frozen):
    """Rows that somebody paid for: a CSV and what its columns are.

    file: in `plas_bench/tables`, or with `external` in the folder of public data; shape: how a row describes an architecture
    (`plas_bench.tables.SHAPES`); genes: columns of architectures that are searched; where: cells that a row must have;
    measured: metric of ours by the column that holds what was measured of it.
    """

    file: str
    external: bool = False
    sha256: str
    source: str
    shape: Literal["columns", "dense", "translator"] = "columns"
    genes: list[str]
    where: dict[str, str] = {}
    measured: dict[str, str]


class KindOf(_Frozen):
    """A frozen kind of distortion, and the seed of what it draws."""

    name: str
    seed: int


class Definition(_Frozen):
    """A problem as it was frozen: `study` holds every key with space, law and device embedded; nothing is looked up by name.

    designs: how many there are; evaluations: the budget that results are reported at; frozen_on: the day; kind: name and seed of the distortion of `plas_bench.kinds`
    that its objectives are measured under.
    """

    name: Annotated[str, Field(pattern=r"^plas1-[a-z0-9-]+$")]
    version: Literal[1]
    family: Family
    title: str
    designs: Annotated[int, Field(ge=1)]
    evaluations: Annotated[int, Field(ge=10)]
    frozen_on: str
    study: dict[str, Any]
    table: Table | None = None
    kind: KindOf | None = None
    check: Check
    front: FrozenFront


@cache
def names() -> list[str]:
    """Every problem, by name: analytic ones from small spaces to large ones, kinds, tables."""
    order = ("paper", "mixed", "fine", "huge", "edge2026", "kind", "table")
    there = (path.stem for path in PROBLEMS.glob("*.yaml"))
    return sorted(there, key=lambda name: (_place(name, order), name))


def _place(name: str, order: tuple[str, ...]) -> int:
    word = name.split("-")[1]
    return order.index(word) if word in order else len(order)


@cache
def definition(name: str) -> Definition:
    """The definition of a problem.

    Raises:
        UsageError: no such problem, with the nearest.
    """
    if name not in names():
        raise UsageError(
            f"problem: expected one of the {len(names())} that 'plas bench list' names, got {name!r}; {nearest(name, names())}"
        )
    return Definition.model_validate(yaml.safe_load(outside.text(PROBLEMS / f"{name}.yaml", outside.MB)))
