"""Values of a study as people write them in a flag: nothing, names by comma."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from os.path import isfile
from pathlib import Path as FilePath
from typing import Any

from nas.files.faults import meant
from nas.problem.objective import costs, is_rate
from objectives.plugins import importable
from objectives.quantities import counted, scaled
from search_spaces.axes_schema import CAPABILITIES, UPPER
from search_spaces.formats import FORMATS

MOST_TOKENS = 10**7  # of a vocabulary
CLUSTER = re.compile(r"^dask:((tcp|tls|ucx|ucxx|ws|wss)://[^\s/@]+:\d{1,5}|[^\s:]+\.json)$")


def none_word(value: Any) -> Any:
    """The word `none` means no value."""
    return None if value == "none" else value


def ascending(values: Iterable[Any]) -> tuple[float, ...]:
    """Numbers, each larger than the one before it.

    Raises:
        ValueError: other content, or fewer than two.
        TypeError: not several values.
    """
    found = tuple(float(value) for value in values)
    rising = all(0.0 < low < high < math.inf for low, high in pairwise(found))
    if len(found) < 2 or not rising:
        raise ValueError(f"expected two positive numbers or more, each larger than the one before, got {list(found)}")
    return found


def split_names(value: Any) -> Any:
    """`loss,total_ms` as a list of names."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def our_name(value: Any, kind: str) -> Any:
    """Names of metrics, strategies or formats that ship, by what people call them: Q4_K_M, NSGA-II, ttft; a file of one's own keeps its name."""
    if isinstance(value, list):
        return [our_name(each, kind) for each in value]
    own = not isinstance(value, str) or isfile(f"{value}.py")
    return value if own else meant(value, FORMATS if kind == "formats" else importable(kind))


def split_pairs(value: Any, *, form: str = "METRIC=COLUMN", example: str = "board:latency_ms=measured") -> Any:
    """`board:latency_ms=measured`, or a list of them, as a mapping; `form` and `example`: what is meant.

    Raises:
        ValueError: another form, with the one that is meant.
    """
    if not isinstance(value, str | list):
        return value
    items = [str(item) for item in ([value] if isinstance(value, str) else value)]
    pairs = [[part.strip() for part in item.rpartition("=")] for item in items]
    if wrong := [item for item, pair in zip(items, pairs, strict=True) if not all(pair)]:
        raise ValueError(f"expected {form}, got {wrong[0]!r}; write for example {example}")
    return {name: right for name, _, right in pairs}


def cluster_address(value: Any) -> Any:
    """The address of a cluster: `dask:tcp://host:8786`, or `dask:scheduler.json`, the file that its scheduler writes.

    Raises:
        ValueError: another form, with those that are meant.
    """
    value = none_word(value)
    if value is not None and not (isinstance(value, str) and CLUSTER.match(value)):
        raise ValueError(
            f"expected dask:tcp://host:port or dask:scheduler.json, got {value!r}; write for example dask:tcp://127.0.0.1:8786"
        )
    return value


def written_tokens(value: Any) -> Any:
    """Training tokens as people write them, `10e9`, `10B`, `1B,3B,10B` or a list: a number, or of several a list."""
    parts = split_names(none_word(value))
    if not isinstance(parts, list):
        return None if parts is None else counted(parts, "10B")
    numbers = [counted(part, "10B") for part in parts]
    return numbers[0] if len(numbers) == 1 else numbers


def written_bytes(value: Any) -> Any:
    """Bytes of text as people write them, `10kB`, `1.5 MB`, `500`; k is 1,000."""
    value = none_word(value)
    return None if value is None else scaled(value, "B", 1.0, "10 kB")


def written_vocabulary(value: Any) -> Any:
    """A vocabulary as people write it, `32000`, `32k`, or several, `8k,16k,32k` or a list; k is 1,000."""
    parts = split_names(value)
    if not isinstance(parts, list):
        return _size(parts)
    sizes = [_size(part) for part in parts]
    return sizes[0] if len(sizes) == 1 else sizes


def _size(value: Any) -> int:
    """A vocabulary, 0 (none) to 10,000,000.

    Raises:
        ValueError: another value.
    """
    number = value
    if isinstance(value, str):
        try:
            number = float(value) if re.fullmatch(r"\s*-?\d+\s*", value) else counted(value, "32k")
        except ValueError:
            number = None
    if isinstance(number, bool) or not isinstance(number, int | float) or number % 1 != 0:
        raise ValueError(f"expected an integer, got {value!r}; write for example 32000 or 32k")
    if not 0 <= number <= MOST_TOKENS:
        raise ValueError(
            f"expected {'at least 0' if number < 0 else f'at most {MOST_TOKENS:,}'}, got {value}; correct it"
        )
    return int(number)


def open_share(given: Any) -> float:
    """A share between 0 and 1, neither of them.

    Raises:
        ValueError: another value.
    """
    try:
        share = float(given)
    except (TypeError, ValueError):
        share = -1.0
    if not 0.0 < share < 1.0:
        raise ValueError(f"expected a share between 0 and 1, got {given!r}; write for example 0.8")
    return share


def labelled(value: Any) -> Any:
    """Devices as they are listed, `a,b` or [a, b@15w, mine.yaml], by name: of a file its own without the folder.

    Raises:
        ValueError: a name twice.
    """
    items = [item.strip() for item in value.split(",") if item.strip()] if isinstance(value, str) else value
    if not isinstance(items, list):
        return items
    found: dict[str, Any] = {}
    for item in items:
        label = _label(item)
        if label in found:
            raise ValueError(
                f"expected each device once, got {label} twice; drop one, or give them names: {{left: {label}}}"
            )
        found[label] = item
    return found


def _label(item: Any) -> str:
    if isinstance(item, Mapping):
        return str(item.get("name", "device"))
    return FilePath(str(item)).stem if FilePath(str(item)).suffix in (".yaml", ".yml") else str(item)


def written_only(value: Any) -> Any:
    """`depth=8..24,width=1024,2048`, a list of such texts, or a mapping, as values by axis; a part without = is one more value.

    Raises:
        ValueError: a value without its axis, or an axis without a value.
    """
    if value in (None, "none"):
        return {}
    if isinstance(value, Mapping):
        return {str(axis): _parts(given) for axis, given in value.items()}
    chosen: dict[str, list[Any]] = {}
    texts = value if isinstance(value, list) else [value]
    for part in (part for text in texts for part in str(text).split(",")):
        axis, sign, given = part.rpartition("=")
        axis = axis.strip() if sign else next(reversed(chosen), "")
        if not axis or not given.strip():
            raise ValueError(f"expected axis=value, got {part!r}; write for example depth=8..24,n_experts=1")
        chosen[axis] = [*chosen.get(axis, ()), *_parts(given)]
    return chosen


def _parts(given: Any) -> list[Any]:
    """Values of an axis, `8|16` or a list; whole numbers as such."""
    parts = re.split(r"[|,]", given) if isinstance(given, str) else given if isinstance(given, list) else [given]
    texts = [part.strip() if isinstance(part, str) else part for part in parts]
    return [int(text) if isinstance(text, str) and text.isdecimal() else text for text in texts]


BUDGET = re.compile(r"^([^<>=]*[^<>=\s][^<>=]*)(<=|>=|==|<|>|=)([^<>=]*[^<>=\s][^<>=]*)$")
NEXT_BUDGET = re.compile(r",(?=[^,<>=]*[a-z][^,<>=]*[<>=])")


def split_budgets(value: Any) -> Any:
    """`decode_ms=20`, `decode_ms<=20`, several by comma, or a list of them, as a mapping.

    Raises:
        ValueError: another form, or two limits on one metric.
    """
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return value
    found: dict[str, str] = {}
    for metric, limit in map(split_budget, (part for text in value for part in NEXT_BUDGET.split(str(text)))):
        if found.setdefault(metric, limit) != limit:
            raise ValueError(f"expected one limit on {metric}, got {found[metric]} and {limit}; keep one")
    return found


def split_budget(text: str) -> tuple[str, str]:
    """`decode_ms=20` or `decode_ms<=20` as metric and limit, both texts; the limit of `rate>=20` is `>=20`.

    Raises:
        ValueError: another form, with the one that is meant.
    """
    found = BUDGET.match(text)
    if found is None:
        unit = re.fullmatch(r"[\d.,\s]+(?:(m?s)|[kmgt]?i?b)", text.strip(), re.IGNORECASE)
        metric = "decode_ms=20" if unit is None else f"{'total_ms' if unit[1] else 'resident_gb'}={text}"
        raise ValueError(f"expected metric=limit, got {text!r}; write for example {metric}")
    metric, sign, limit = found.groups()
    metric, limit = our_name(metric.strip(), "objectives.metrics"), limit.strip()
    if sign not in ("=", "<=", ">=") or (sign == "<=" and is_rate(metric)):
        least, most = f"{metric}>={limit}", f"{metric}<={limit}"
        if is_rate(metric) or (metric in CAPABILITIES and metric not in UPPER):
            raise ValueError(f"expected metric>=limit, at least, got {text!r}; write '{least}'")
        remedy = f"only rates have a lower limit ({', '.join(costs())}), drop it" if sign == ">" else f"write '{most}'"
        raise ValueError(f"expected metric<=limit, at most, got {text!r}; {remedy}")
    return metric, f"{'>=' * (sign == '>=')}{limit}"


@dataclass(frozen=True)
class Part:
    """The part of a run's identity that a key belongs to; a key without a mark belongs to `scenario`.

    always: every run has recorded it. Of any other key a run of an earlier version has none: absent is its default.
    """

    name: str = "scenario"
    always: bool = True


@dataclass(frozen=True)
class Free:
    """A key that may differ; `recorded`: a continuation takes the value that was last given from the run's folder."""

    recorded: bool = True


@dataclass(frozen=True)
class AtStart:
    """A key that other keys have taken in when a run began; a continuation that names it is refused."""


@dataclass(frozen=True)
class Named:
    """A key that a run records only where its study names it."""


@dataclass(frozen=True)
class Recorded:
    """A key that a run records otherwise than as it was given: resolved, embedded, without a path; `content` has it of the assembled study."""

    content: Callable[[Any], Any]


@dataclass(frozen=True)
class PerCase:
    """A key that a case of `devices` may have for itself: what its costs depend on besides the device."""


@dataclass(frozen=True)
class PerRun:
    """A key that a comparison sets in each of its runs, so that no study of it does."""


@dataclass(frozen=True)
class SingleRun:
    """A key that a comparison refuses; `instead`: what to do."""

    instead: str


ALWAYS, FREE, AT_START = Part(), Free(), AtStart()
CASE, NAMED, RUN = PerCase(), Named(), PerRun()
STRATEGY, ANSWER = Part("strategy"), Part("answer", always=False)
