"""Figures as datasheets print them: "67 TOPS (sparse)", "LPDDR5X-8533 64-bit", "8 gb", "51.2 GB/sec"."""

import math
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationInfo

from objectives.memory_rate import memory_rate, without_memory
from objectives.quantities import Name, scaled, short

EXAMPLES = {"FLOP/s": "42.5 TFLOP/s", "OP/s": "85 TOP/s", "B/s": "204.8 GB/s", "B": "64 GB"}
#: The unit that each figure of a device is in.
UNITS = {
    **dict.fromkeys(("fp16", "fp4", "fp8", "fp32", "tf32"), "FLOP/s"),
    **dict.fromkeys(("int8", "int4", "int16"), "OP/s"),
    **dict.fromkeys(("bandwidth", "cache_bandwidth", "link"), "B/s"),
    **dict.fromkeys(("memory", "cache", "capacity"), "B"),
}
OTHER_PEAKS = ("fp4", "fp8", "fp32", "tf32", "int4", "int16")  # that may stand beside the others, as in `other_peaks`
_BARE = {"B": 1e9, "B/s": 1e9, "FLOP/s": 1e12, "OP/s": 1e12}  # what a bare number counts
_LARGEST_BARE = 1e6  # from here a bare number can count base units only: no device has an exabyte or 10^18 operations
_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_LONG = {"kilo": "k", "mega": "m", "giga": "g", "tera": "t", "peta": "p", "billion": "g", "trillion": "t"}
_NUMBER = r"(?<![\w.,])(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?(?:e[-+]?\d+)?|\.\d+)\+?"
_PREFIX = r"\s?-?(?P<prefix>kilo|mega|giga|tera|peta|billion|trillion|[kmgtp]?)\s?-?"
_OPERATIONS = re.compile(
    _NUMBER + r"\s*(?:(?:fp|int|bf)\d+\s+)?" + _PREFIX + r"(?P<unit>fl?ops?|ops?|operations?|macs?)"
    r"(?:\s?(?:/|per)\s?s(?:ec(?:ond)?)?|ps)?(?![\w/])",
    re.IGNORECASE,
)
_BYTES = re.compile(
    _NUMBER
    + r"\s*(?P<prefix>(?i:kilo|mega|giga|tera)|[kKmMgGtT]?)(?P<binary>i?)-?(?P<unit>[bB]ytes?|[bB]its?|B|b|(?<=[gGmMtT]))"
    r"(?P<rate>\s?(?:/|per)\s?s(?:ec(?:ond)?)?|ps)?(?![\w/])"
)
_QUALIFIERS = re.compile(
    r"\b(?:up to|maximum|max|peak|about|approximately|approx|ca|circa|theoretical|total|unified|shared|onboard|on-board|on-chip|"
    r"dense|without sparsity|no sparsity|non[- ]sparse|npu|gpu|cpu|dsp|ai|tensor cores?|performance|compute|with|of|ram|sdram|ecc|memory|bandwidth|system|l2|l3|llc|slc|last-level|cache|wide|at least|half[ -]precision)\b|"
    r"[()\[\]~≈≥>@.,;:|]",
    re.IGNORECASE,
)
_SPARSE = re.compile(
    r"(?<!without )(?<!non[- ])(?<!no )\b(?:with\s+)?(?:structured\s+|2:4\s+)?spars(?:e|ity)\b", re.IGNORECASE
)
_UNITLESS = re.compile(
    r"^\s*([\d.,]*\d)(?=\s*(?:$|[(\[](?!.*ops)|(?:sparse|dense)\b(?!.*ops)))", re.IGNORECASE
)  # `24 (sparse)`
_LIST = re.compile(
    r"(?<![\w.])(\d[\d.]*)\s*/\s*(?=\d[\d.]*\s*(?P<unit>[kmgtp]?(?:fl?ops?|ops?))\b)", re.IGNORECASE
)  # `33 / 67 TOPS`
_BETWEEN = re.compile(r"\b(?:peak|max|dense|ai|npu)\b", re.IGNORECASE)  # words between a number and its unit
_FORMATS = re.compile(r"\b(?P<kind>fp|bf|tf|int|float|bfloat|i|f)-?(?P<bits>4|8|16|32)\b", re.IGNORECASE)
_SPACED = re.compile(r"(?<![\w.,-])\d{1,3}(?:[ '’]\d{3})+(?!\d|\s*-?bit)")
_DECIMAL_COMMA = re.compile(r"(?<![\w.,])(\d+),(\d{1,2})(?![\d,])")


@dataclass(frozen=True)
class Reading:
    """A figure in base units, and how it was computed if it is not what is written."""

    value: float
    computed: str = ""


def amount(value: float, unit: str) -> str:
    """Return a figure with its unit as text: `33.5 TOP/s`, `8 GB`."""
    scale, prefix = next(
        ((s, p) for p, s in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)) if value >= s), (1.0, "")
    )
    if unit == "B/s" and prefix == "T" and value < 10e12:
        scale, prefix = 1e9, "G"
    return f"{value / scale:.4g} {prefix}{unit}" if value / scale < 1e4 else f"{value / scale:.0f} {prefix}{unit}"


def line(key: str, value: float) -> str:
    """Return the line of a device file that states a figure."""
    return f"{key}: {amount(value, UNITS[key])}"


def reading(key: str, value: Any) -> Reading:
    """Return the figure of a device file's key from datasheet text.

    Raises:
        ValueError: what can mean nothing, or several things; with the line to write.
    """
    unit, example = UNITS.get(key, "FLOP/s"), EXAMPLES[UNITS.get(key, "FLOP/s")]
    number = _bare(value)
    if number is not None and number >= _LARGEST_BARE:
        return Reading(scaled(f"{number!r} {unit}", unit, 1.0, example), f"a bare number so large counts {unit}")
    try:
        return Reading(scaled(value, unit, _BARE[unit], example))
    except ValueError as error:
        if not isinstance(value, str) or "positive" in str(error):
            raise
        text = _tidy(value)
        try:
            return _row(key, text, unit, example)
        except ValueError as refused:
            raise ValueError(f'expected a quantity like "{example}", got {short(value)}; {refused}') from None


def _row(key: str, text: str, unit: str, example: str) -> Reading:
    """The figure in a row of a datasheet.

    Raises:
        ValueError: what to do instead.
    """
    text = _UNITLESS.sub(rf"\1 {'T' if unit.endswith('OP/s') else 'G'}{unit}", text)
    if comma := _DECIMAL_COMMA.search(text):
        raise ValueError(f"write {key}: {_DECIMAL_COMMA.sub(f'{comma[1]}.{comma[2]}', text, count=1)}")
    if unit == "B":
        return _capacity(key, text)
    if unit == "B/s":
        return _rate(key, text)
    return _peak(key, text, unit, example)


def _bare(value: Any) -> float | None:
    """A number without a unit, also as text; None where it is none."""
    try:
        number = None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number is not None and math.isfinite(number) else None


def _tidy(text: str) -> str:
    """Text with plain spaces, signs and thousands."""
    text = re.sub(r"[\u00a0\u2007\u2009\u202f\s]+", " ", text).replace("×", "x").replace("–", "-").strip()
    text = re.sub(r" \* ", " x ", text)
    return _SPACED.sub(lambda groups: re.sub(r"[ '’]", "", groups[0]), text)


def _amounts(pattern: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], float]]:
    for match in pattern.finditer(text):
        prefix = match["prefix"].lower()
        scale = _PREFIXES[_LONG.get(prefix, prefix)]
        if match.groupdict().get("binary"):
            scale = 1024.0 ** (math.log10(scale) / 3.0)
        yield match, float(match["number"].replace(",", "")) * scale


def _peak(key: str, text: str, unit: str, example: str) -> Reading:
    sparse, text = _SPARSE.search(text) is not None, " ".join(_BETWEEN.sub(" ", _SPARSE.sub(" ", text)).split())
    text = _LIST.sub(lambda match: f"{match[1]} {match['unit']} / ", text)
    parts = re.split(r"\s*[/|;]\s*|,\s+", text)
    own = [part for part in parts if {_format(match) for match in _FORMATS.finditer(part)} == {key}]
    if len(own) == 1 and len(parts) > 1 and _OPERATIONS.search(own[0]):
        text = own[0]
    figures = list(_amounts(_OPERATIONS, text))
    if re.search(r"ops?/W", text, re.IGNORECASE):
        raise ValueError(f"that is per watt; write {key}: the {unit} of the whole chip")
    if not figures:
        raise ValueError(_with_unit(key, text, unit, "T"))
    named = {_format(match) for match in _FORMATS.finditer(text)}
    if named - {key}:
        other = next(iter(sorted(named - {key})))
        raise ValueError(f"its figure is of {other.upper()}; write {other}: {_plainly(other, figures[0][1])}")
    values = sorted({value for _, value in figures})
    dense_too = len(values) == 2 and math.isclose(values[1], 2.0 * values[0], rel_tol=0.05)
    if len(values) > 1 and not (sparse and dense_too):
        raise ValueError(f"give the dense figure alone: write {key}: {_plainly(key, values[0])}")
    _refuse_rest(key, text, _OPERATIONS, values[0] / (2.0 if sparse and len(values) == 1 else 1.0))
    words = {match["unit"].lower()[0] for match, _ in figures}
    if words == {"m"}:
        return Reading(values[0] * 2.0, "2 operations per multiply-accumulate")
    if words - {unit[0].lower()}:
        raise ValueError(f"write {key}: {_plainly(key, values[0])} if it is of {key.upper()}")
    if sparse and len(values) == 1:
        return Reading(values[0] / 2.0, "half of the sparse figure")
    return Reading(values[0], "the dense one of two figures" if dense_too else "")


def _plainly(key: str, value: float) -> str:
    return amount(value, UNITS.get(key, "FLOP/s"))


def _format(match: re.Match[str]) -> str:
    """A number format's key, `int8` of i8: of 16 bits with a fraction `fp16`, which BF16 is as well."""
    kind = "int" if match["kind"].lower().startswith("i") else "fp"
    return "tf32" if match["kind"].lower() == "tf" else f"{kind}{match['bits']}"


def _refuse_rest(key: str, text: str, pattern: re.Pattern[str], value: float) -> None:
    """Refuse words beside a figure that could change it."""
    rest = _QUALIFIERS.sub(" ", _FORMATS.sub(" ", pattern.sub(" ", text)))
    if rest := " ".join(rest.split()).strip(" /&-"):
        raise ValueError(f"what is {rest!r}? Write {key}: {_plainly(key, value)} if that is all of it")


def _capacity(key: str, text: str) -> Reading:
    """Bytes; a row that says the memory's width and rate as well is read."""
    figures = [(match, value) for match, value in _amounts(_BYTES, text) if not match["rate"]]
    if not figures:
        raise ValueError(_with_unit(key, text, "B", "G"))
    if choice := re.match(r"((?:\d+ ?(?:GB)? ?(?:/|or|,|-|to) ?)+)(\d+) ?GB", text, re.IGNORECASE):
        sizes = " or ".join(f"{key}: {size} GB" for size in re.findall(r"\d+", choice[0]))
        raise ValueError(f"write the one that yours has, {sizes}")
    match, value = figures[0]
    if match["unit"].startswith("bit") or match["unit"].startswith("Bit"):
        return Reading(value / 8.0, "8 bits per byte")
    if match["unit"] == "b" and match["prefix"].isupper():
        raise ValueError(f"Gb are bits: write {line(key, value / 8.0)} if it is, {line(key, value)} if bytes are meant")
    if match["unit"] == "B" and match["prefix"] == "m":
        raise ValueError(f"write {line(key, value)}")
    modules = re.search(r"(\d+) ?x ?$", text[: match.start()])
    count = float(modules[1]) if modules else 1.0
    before = text[: modules.start()] if modules else text[: match.start()]
    _refuse_rest(key, without_memory(before + text[match.end() :]), _BYTES, value)
    return Reading(value * count, f"{count:g} × {amount(value, 'B')}" if modules else "")


def _rate(key: str, text: str) -> Reading:
    """Bytes per second: stated, or rate and width of a memory."""
    figures = [(match, value) for match, value in _amounts(_BYTES, text) if match["rate"]]
    plain = [(match, value) for match, value in figures if "yte" in match["unit"].lower() or match["unit"] == "B"]
    if plain:
        match, value = plain[0]
        if match["prefix"] == "m" and match["unit"] == "B":
            raise ValueError(f"write {line(key, value)}")
        if len({stated for _, stated in plain}) > 1:
            raise ValueError(f"give one of them: write {line(key, max(stated for _, stated in plain))}")
        _refuse_rest(key, without_memory(_BYTES.sub(" ", text)), _BYTES, value)
        return Reading(value)
    computed = memory_rate(key, text)
    if computed is not None:
        _refuse_rest(key, without_memory(text), _BYTES, computed[0])
        return Reading(*computed)
    if figures:
        match, value = figures[0]
        if match["unit"].lower().startswith("bit"):
            return Reading(value / 8.0, f"{amount(value, 'bit/s')} / 8")
        raise ValueError(
            f"bits or bytes? Write {line(key, value / 8.0)} if it counts bits, {line(key, value)} if bytes"
        )
    raise ValueError(_with_unit(key, text, "B/s", "G"))


def _with_unit(key: str, text: str, unit: str, usual: str) -> str:
    """The line of a number whose unit is another figure's, or that has none that is known."""
    number = re.match(r"([\d.]+)\s*([kKMGTP]?)(?=B|b|F|OP|$)", text)
    return f"write {key}: {number[1]} {number[2] or usual}{unit}" if number else "write a number and a unit"


_NOISE = {
    *("peak", "max", "dense", "theoretical", "performance", "compute", "total", "npu", "gpu", "ai", "tensor"),
    *("core", "cores", "system", "device", "size", "of", "in", "per", "s", "sec", "second"),
}
_KEY_UNITS = {
    **{f"{prefix}ops": f"{prefix.upper()}OP/s" for prefix in "gt"},
    **{f"{prefix}flops": f"{prefix.upper()}FLOP/s" for prefix in "gt"},
    **{name: name[0].upper() + name[1:-1] + "B" for name in ("gb", "mb", "gib", "mib")},
    **{f"{prefix}bs": f"{prefix.upper()}B/s" for prefix in "mgt"},
}
_MEMORY = frozenset(["memory", "mem", "ram", "dram", "vram"])
#: Words of which a key consists, with at least one of the first set; then what it is called here.
_KEYS: tuple[tuple[frozenset[str], frozenset[str], str], ...] = (
    (frozenset(["fp16", "bf16", "half", "float16", "f16"]), frozenset(), "fp16"),
    (frozenset(["int8", "i8"]), frozenset(), "int8"),
    *((frozenset((name,)), frozenset(), name) for name in OTHER_PEAKS),
    (frozenset(["bandwidth", "bw"]), _MEMORY, "bandwidth"),
    (_MEMORY, frozenset(["capacity", "unified", "shared"]), "memory"),
    (frozenset(["cache", "l2", "l3", "llc", "slc"]), frozenset(["last", "level"]), "cache"),
    (frozenset(["name", "product"]), frozenset(["board", "model"]), "name"),
    (frozenset(["vendor", "manufacturer", "maker", "brand"]), frozenset(), "vendor"),
)


def _words(key: str) -> list[str]:
    return re.findall(r"[a-z]+\d*|\d+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).lower())


def _key(written: str) -> tuple[str, str, bool]:
    """What a key is called here, the unit that it names, whether it is of sparse matrices; "" of one that says nothing."""
    words = _words(written)
    unit = next((_KEY_UNITS[word] for word in words if word in _KEY_UNITS), "")
    rest = {word for word in words if word not in _NOISE and word not in _KEY_UNITS} - {"sparse", "sparsity"}
    name = next((name for needed, also, name in _KEYS if rest & needed and rest <= needed | also), "")
    return name, unit, bool({"sparse", "sparsity"} & set(words))


def as_printed(raw: Mapping[str, Any], own: Collection[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a device's content with every key in our spelling, and the original spelling of each.

    A peak beside those of the fields goes to `other_peaks`; a memory's row that says its bandwidth gives both.
    """
    content = {key: value for key, value in raw.items() if key in own}
    written: dict[str, str] = {}
    for key, value in raw.items():
        name, unit, sparse = ("", "", False) if key in own else _key(str(key))
        place = "other_peaks" if name in OTHER_PEAKS else name
        peaks = content.get("other_peaks") or {}
        taken = name in peaks if name in OTHER_PEAKS and isinstance(peaks, Mapping) else name in content
        if place not in own or taken:
            content.setdefault(key, value)
            continue
        if unit:
            unit = f"{unit}/s" if UNITS.get(name) == "B/s" and not unit.endswith("/s") else unit
            value = _UNITLESS.sub(rf"\1 {unit}", str(value))
        value = f"{value} sparse" if sparse else value
        content[place] = {**peaks, name: value} if name in OTHER_PEAKS else value
        written[name] = str(key)
    if "bandwidth" in own and "bandwidth" not in content and isinstance(content.get("memory"), str):
        row = _BYTES.sub(lambda match: match[0] if match["rate"] else " ", content["memory"])
        with suppress(ValueError):
            reading("bandwidth", row)
            content["bandwidth"] = row.strip()
    return content, written


def computed(content: Mapping[str, Any]) -> dict[str, str]:
    """Return how each figure was computed if it differs from its text, by key."""
    notes = {}
    for key, value in content.items():
        if key in UNITS:
            with suppress(ValueError):
                figure = reading(key, value)
                if figure.computed:
                    notes[key] = f"{amount(figure.value, UNITS[key])} ({figure.computed}, of {short(value)})"
    return notes


def hint(key: str, value: Any) -> str:
    """Return advice on what to write instead of an ambiguous or foreign key; "" for other keys."""
    words = set(_words(key))
    name, _, _ = _key(key)
    if name:
        return f"{name} is given already; remove one"
    for word, lines in (("tops", ("int8", "int4")), ("tflops", ("fp16", "fp32")), ("gflops", ("fp16", "fp32"))):
        if word in words:
            number = _bare(value)
            text = f"{value:g} {_KEY_UNITS[word]}" if number is not None else str(value)
            ways = [f"{line_key}: {text} if that is of {line_key.upper()}" for line_key in lines]
            return f"write {', '.join(ways)}"
    if words & {"workload", "prompt", "context", "tokens", "batch"}:
        return "a workload is of a study: give --input-tokens, --output-tokens, --batch, or these keys in its file"
    if words & _MEMORY:
        return "write its data rate and width: bandwidth: LPDDR5-6400 64-bit"
    return (
        f"to keep it, write columns: {{{'_'.join(_words(key))}: {value}}}" if words & {"tdp", "power", "price"} else ""
    )


MISSING = object()  # stands for the peaks of a device that states none


def _validated(value: Any, info: ValidationInfo) -> float:
    if value is MISSING:
        raise ValueError("expected a peak, int8, fp16 or both, got nothing; write int8: 12 TOP/s")
    return reading(info.field_name or "", value).value


Figure = Annotated[float, BeforeValidator(_validated)]


def _of_other_peaks(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {name: _other_peak(str(name), figure) for name, figure in value.items()}


def _other_peak(name: str, value: Any) -> float:
    """A peak of a number format; the units of floating point and of integers are the same."""
    with suppress(ValueError):
        return scaled(value, "OP/s" if UNITS.get(name) == "FLOP/s" else "FLOP/s", _BARE["FLOP/s"], "")
    return reading(name, value).value


OtherPeaks = Annotated[
    dict[Name, float], BeforeValidator(_of_other_peaks, json_schema_input_type=dict[Name, float | str])
]
