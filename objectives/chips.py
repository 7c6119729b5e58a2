"""Chips from genes: figures as lists, ranges or formulas, costs as formulas, and conditions. Each chip is a device with its columns."""

import difflib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from types import MappingProxyType
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from objectives.arithmetic import FUNCTIONS, evaluated, names_of, parsed
from objectives.device import Device
from objectives.device_columns import NAME, Figure, refuse_taken
from objectives.plugins import packaged
from objectives.quantities import scaled, short
from search_spaces.arrays import AnyArray, BoolArray, FloatArray, IntArray

MOST, MOST_COMBINED = 100_000, 5_000_000
PREFIX = "chip_"  # of the columns that say a chip's genes
SETTINGS = ("base", "class", "columns", "where")


@dataclass(frozen=True)
class FigureOfChip:
    """A figure of a device for genes: its base unit, the formula unit, and their ratio."""

    base: str
    scale: float
    unit: str


FIGURES: dict[str, FigureOfChip] = {
    "bandwidth": FigureOfChip("B/s", 1e9, "GB/s"),
    "int8": FigureOfChip("OP/s", 1e12, "TOP/s"),
    "fp16": FigureOfChip("FLOP/s", 1e12, "TFLOP/s"),
    "fp4": FigureOfChip("FLOP/s", 1e12, "TFLOP/s"),
    "memory": FigureOfChip("B", 1e9, "GB"),
    "cache": FigureOfChip("B", 1e6, "MB"),
    "cache_bandwidth": FigureOfChip("B/s", 1e9, "GB/s"),
}
NEEDED = ("fp16", "int8", "bandwidth", "memory")
SHORT = {"bandwidth": "bw", "memory": "mem", "cache_bandwidth": "cbw"}


@dataclass(frozen=True, eq=False)
class Words:
    """A gene whose values are words, each with the figures that formulas may read."""

    figures: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, eq=False)
class Chips:
    """Chips of one study by label; `genes`: values of each gene in every chip, (n,), in the units of formulas."""

    devices: Mapping[str, Device]
    genes: Mapping[str, AnyArray]


def chips(given: Mapping[str, Any], base: Device | None = None) -> Chips:
    """Return the chips that genes and conditions allow.

    Args:
        given: the key `chip` of a study without `base`, which is the device whose class, efficiencies and calibration hold.
        base: that device; None: every figure is a gene's.

    Raises:
        ValueError: `key: expected X, got Y; do Z`; a formula that is none, an unknown name, no chip that meets the conditions.
    """
    genes, formulas = _sorted(given)
    missing = [name for name in NEEDED if name not in given and base is None]
    if missing:
        raise ValueError(
            f"{missing[0]}: expected a value, got nothing; write one, a range or a formula, or name a base"
        )
    columns = _combined(genes)
    _evaluate(formulas, columns, "")
    kept = _within(given.get("where", []), columns)
    columns = {name: column[kept] for name, column in columns.items()}
    _refuse_figures(columns)
    costs = _costs(given.get("columns", {}), columns)
    labels = _labels(genes, columns)
    return Chips(dict(zip(labels, _devices(labels, columns, costs, base, given), strict=True)), columns)


def _sorted(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Genes with their values, lists of numbers or `Words`, and formulas of figures."""
    genes: dict[str, Any] = {}
    formulas: dict[str, str] = {}
    for name, written in given.items():
        if name in SETTINGS:
            continue
        if not NAME.fullmatch(name) or name in _functions():
            raise ValueError(
                f"{name}: expected a gene's name of lower-case letters, digits and _, got {name!r}; rename it"
            )
        if isinstance(written, str) and not _is_quantity(name, written):
            formulas[name] = written
        else:
            genes[name] = _values(name, written)
    return genes, formulas


def _is_quantity(name: str, text: str) -> bool:
    try:
        _number(name, text)
    except ValueError:
        return False
    return True


def _number(name: str, value: Any) -> float:
    """A value in the unit that formulas have it in."""
    if (figure := FIGURES.get(name)) is None:
        return scaled(value, "", 1.0, "4")
    return scaled(value, figure.base, figure.scale, f"100 {figure.unit}") / figure.scale


def _values(name: str, written: Any) -> Any:
    """The values of a gene: one, a list, `{from, to, step}`, or words with figures."""
    try:
        if isinstance(written, Mapping):
            return _range(name, written) if "from" in written else _words(name, written)
        several = written if isinstance(written, list) else [written]
        values = list(dict.fromkeys(_number(name, value) for value in several))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if not values:
        raise ValueError(f"{name}: expected a value or several, got an empty list; write them")
    return values


def _range(name: str, written: Mapping[str, Any]) -> list[float]:
    """`from`, `from + step`, … up to and including `to`."""
    if set(written) != {"from", "to", "step"}:
        raise ValueError(f"expected from, to and step, got {', '.join(written)}; write the three")
    first, last, step = (_number(name, written[key]) for key in ("from", "to", "step"))
    count = math.floor((last - first) / step + 1e-9) + 1
    if not 1 <= count <= MOST:
        raise ValueError(f"expected from <= to in at most {MOST:,} steps, got {short(dict(written))}; correct them")
    return [round(first + i * step, 9) for i in range(count)]


def _words(name: str, written: Mapping[str, Any]) -> Words:
    """Words with the same figures each."""
    figures = {str(word): dict(each) if isinstance(each, Mapping) else None for word, each in written.items()}
    kinds = {frozenset(each) if each is not None else None for each in figures.values()}
    if len(kinds) != 1 or None in kinds:
        raise ValueError(
            f"expected words with the same figures each, got {short(dict(written))}; write {{lpddr5: {{rate: 6.4}}}}"
        )
    return Words(
        {word: {key: _number("", value) for key, value in (each or {}).items()} for word, each in figures.items()}
    )


def _combined(genes: Mapping[str, Any]) -> dict[str, AnyArray]:
    """Every combination of the genes' values, (n,) each; of words their places and each of their figures."""
    sizes = [len(values.figures) if isinstance(values, Words) else len(values) for values in genes.values()]
    if (count := math.prod(sizes)) > MOST_COMBINED:
        raise ValueError(f"expected at most {MOST_COMBINED:,} combinations of genes, got {count:,}; take wider steps")
    places = np.unravel_index(np.arange(count), sizes) if sizes else ()
    columns: dict[str, AnyArray] = {}
    for (name, values), place in zip(genes.items(), places, strict=True):
        if not isinstance(values, Words):
            columns[name] = np.array(values, dtype=np.float64)[place]
            continue
        columns[name] = np.array(list(values.figures), dtype=object)[place]
        for figure in next(iter(values.figures.values())):
            if figure in genes or figure in columns:
                raise ValueError(f"{name}: expected figures with names of their own, got {figure} twice; rename one")
            columns[figure] = np.array([each[figure] for each in values.figures.values()])[place]
    return columns or {"": np.zeros(1)}


def _evaluate(formulas: Mapping[str, str], columns: dict[str, AnyArray], at: str) -> None:
    """Add the value of each formula, those that others read first.

    Raises:
        ValueError: an unknown name, or formulas that wait for one another.
    """
    left, size = dict(formulas), len(next(iter(columns.values())))
    for name, formula in left.items():
        _known(f"{at}{name}", formula, {**columns, **formulas})
    while left:
        ready = [name for name, formula in left.items() if not names_of(parsed(formula)) & left.keys()]
        if not ready:
            raise ValueError(
                f"{at}{next(iter(left))}: expected formulas that end, got {', '.join(left)} of one another; break the circle"
            )
        for name in ready:
            columns[name] = np.broadcast_to(_value(f"{at}{name}", left.pop(name), columns), (size,)).copy()


def _known(at: str, formula: str, columns: Mapping[str, Any]) -> None:
    """Refuse names that no gene, figure or formula has."""
    try:
        asked = names_of(parsed(formula))
    except ValueError as error:
        raise ValueError(f"{at}: {error}") from None
    for name in sorted(asked):
        if name not in columns:
            close = difflib.get_close_matches(name, list(columns), 1, 0.5)
            hint = f"did you mean {close[0]}?" if close else "name one of them"
            raise ValueError(
                f"{at}: expected names of genes ({', '.join(filter(None, columns))}), got {name!r} in {formula!r}; {hint}"
            )


def _value(at: str, formula: str, columns: Mapping[str, AnyArray]) -> FloatArray:
    def column(name: str) -> FloatArray:
        if columns[name].dtype == object:
            raise ValueError(f"expected numbers, got the words of {name} in {formula!r}; name a figure of theirs")
        return columns[name]

    try:
        return evaluated(formula, column, _functions())
    except ValueError as error:
        raise ValueError(f"{at}: {error}") from None


def _within(conditions: str | Sequence[str], columns: Mapping[str, AnyArray]) -> IntArray:
    """The combinations that meet every condition.

    Raises:
        ValueError: none does, naming the condition that excludes all that were left; or too many do.
    """
    written = [conditions] if isinstance(conditions, str) else list(conditions)
    size = len(next(iter(columns.values())))
    held: list[BoolArray] = []
    for i, condition in enumerate(written):
        if not isinstance(condition, str):
            raise ValueError(f"where.{i}: expected a condition, got {short(condition)}; write 'memory >= 4'")
        _known(f"where.{i}", condition, columns)
        held.append(np.broadcast_to(_value(f"where.{i}", condition, columns) > 0, (size,)))
    alone = next((i for i, each in enumerate(held) if not each.any()), None)
    if alone is not None:
        raise ValueError(
            f"where.{alone}: expected a chip that meets it, got none of {size:,} with {written[alone]!r}; relax it"
        )
    everything = np.ones(size, dtype=bool)
    left = reduce(np.logical_and, held, everything)
    if not left.any():
        together = [bool(reduce(np.logical_and, held[: i + 1], everything).any()) for i in range(len(held))]
        first = together.index(False)
        raise ValueError(
            f"where.{first}: expected a chip that meets it with those before it, got none of {size:,} with {written[first]!r}; relax one"
        )
    if (count := int(left.sum())) > MOST:
        raise ValueError(f"where: expected at most {MOST:,} chips, got {count:,}; take wider steps or add a condition")
    return np.flatnonzero(left)


def _refuse_figures(columns: Mapping[str, AnyArray]) -> None:
    """Refuse figures of chips that are none."""
    for name in FIGURES.keys() & columns.keys():
        column = columns[name]
        if not (np.isfinite(column).all() and (column > 0).all()):
            wrong = column[~(np.isfinite(column) & (column > 0))][0]
            raise ValueError(
                f"{name}: expected positive figures, got {wrong:g} of a chip; correct the formula, or exclude it"
            )


def _costs(formulas: Mapping[str, Any], columns: Mapping[str, AnyArray]) -> dict[str, FloatArray]:
    """The columns that formulas give, (n,) each; one may read those of others."""
    texts = {name: str(each["formula"] if isinstance(each, Mapping) else each) for name, each in formulas.items()}
    for name in texts:
        if name in columns:
            raise ValueError(f"columns.{name}: expected a name of its own, got that of a gene or figure; rename it")
    known = dict(columns)
    _evaluate(texts, known, "columns.")
    for name in texts:
        if not np.isfinite(known[name]).all():
            raise ValueError(f"columns.{name}: expected finite figures, got others of {texts[name]!r}; correct it")
    return {name: known[name] for name in texts}


def _labels(genes: Mapping[str, Any], columns: Mapping[str, AnyArray]) -> list[str]:
    """`bw120_int8_40_mem8`: the genes that have several values, in their order."""
    varied = [name for name, values in genes.items() if isinstance(values, Words) or len(values) > 1]
    parts = [[_part(name, value) for value in columns[name].tolist()] for name in varied]
    size = len(next(iter(columns.values())))
    return ["_".join(each) for each in zip(*parts, strict=True)] if parts else ["chip"] * size


def _part(name: str, value: float | str) -> str:
    if isinstance(value, str):
        return value
    stem = SHORT.get(name, name)
    return f"{stem}{'_' if stem[-1].isdigit() else ''}{value:.9g}"


def _devices(
    labels: Sequence[str],
    columns: Mapping[str, AnyArray],
    costs: Mapping[str, FloatArray],
    base: Device | None,
    given: Mapping[str, Any],
) -> Iterator[Device]:
    """A device of each chip: a copy of one that was checked, with its own figures."""
    figures = {name: (columns[name] * FIGURES[name].scale).tolist() for name in FIGURES if name in columns}
    start = _start(figures, base, given)
    shown = {PREFIX + name: (each, FIGURES[name].unit) for name, each in _numbers(columns) if name in FIGURES}
    shown |= {PREFIX + name: (each, "") for name, each in _numbers(columns) if name not in FIGURES}
    said = given.get("columns", {})
    units = {name: (each.tolist(), unit_of(said[name])) for name, each in costs.items()} | shown
    refuse_taken({name: Figure(value=0.0) for name in units})
    fp4 = figures.pop("fp4", None)
    columns_of = [_figures(each, unit) for each, unit in units.values()]
    for i, label in enumerate(labels):
        own = {name: each[i] for name, each in zip(units, columns_of, strict=True)}
        update: dict[str, Any] = {name: each[i] for name, each in figures.items()}
        update |= {} if fp4 is None else {"other_peaks": {"fp4": fp4[i]}}
        yield start.model_copy(update={**update, "name": label, "columns": own})


def unit_of(written: Any) -> str:
    """Return the unit beside a column's formula, {formula: …, unit: USD}; "" for a formula alone."""
    return str(written.get("unit", "")) if isinstance(written, Mapping) else ""


def _figures(values: Sequence[float], unit: str) -> list[Figure]:
    """The figures of values, one object for each that differs."""
    made = {value: Figure.model_construct(value=value, unit=unit) for value in dict.fromkeys(values)}
    return [made[value] for value in values]


def _numbers(columns: Mapping[str, AnyArray]) -> Iterator[tuple[str, list[float]]]:
    return ((name, column.tolist()) for name, column in columns.items() if name and column.dtype != object)


def _start(figures: Mapping[str, list[float]], base: Device | None, given: Mapping[str, Any]) -> Device:
    """The first chip, checked: what the base says beside its figures, or of the class alone."""
    first = {name: f"{each[0]!r} {FIGURES[name].base}" for name, each in figures.items() if name != "fp4"}
    kept = {} if base is None else base.model_copy(update={"columns": {}, "energy": [], "modes": {}}).mapping()
    kept.pop("other_peaks", None)
    if "class" in given:
        kept["chip"] = given["class"]
    said = {"name": "chip", "source": f"genes over {base.name}" if base else "genes", "confidence": "estimate"}
    return Device.model_validate({**kept, **first, **said, "dense_confirmed": True})


_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Published(BaseModel):
    """A published figure: its value, its wording, its source and its date."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    value: _Positive
    read: Annotated[str, Field(min_length=1)]
    source: Annotated[str, Field(pattern=r"^https://")]
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class Coefficient(BaseModel):
    """A cost per unit of one figure of a chip, with the least and the greatest published figure."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    of: str
    unit: str
    value: _Positive
    low: _Positive
    high: _Positive
    what: str
    figures: Annotated[tuple[Published, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _of_figures(self) -> Self:
        """The ends are published figures, and so is the value."""
        values = [each.value for each in self.figures]
        if (self.low, self.high) != (min(values), max(values)) or self.value not in values:
            raise ValueError(f"expected ends and a value among {values}, got {self.low}, {self.value}, {self.high}")
        return self


@cache
def coefficients() -> Mapping[str, Coefficient]:
    """Return the shipped coefficients by the names that formulas use."""
    content = packaged("objectives.typical", "chip_costs")["coefficients"]
    return MappingProxyType({name: Coefficient.model_validate(_dated(each)) for name, each in content.items()})


def _dated(content: Mapping[str, Any]) -> dict[str, Any]:
    """Dates as text, which YAML reads as days."""
    figures = [{**each, "date": str(each["date"])} for each in content["figures"]]
    return {**content, "figures": figures}


def _functions() -> dict[str, Callable[..., Any]]:
    """Functions of formulas: arithmetic, and each coefficient times a figure by its name; `NAME_low`, `NAME_high` are the ends published."""
    functions: dict[str, Callable[..., Any]] = {**FUNCTIONS}
    for name, cost in coefficients().items():
        ends = {name: cost.value, f"{name}_low": cost.low, f"{name}_high": cost.high}
        functions |= {end: lambda x, by=by: by * x for end, by in ends.items()}
    return functions
