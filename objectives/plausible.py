"""Plausibility of a device's figures, judged by shipped devices of its class: slips, swaps, sparse peaks."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import yaml

from objectives import outside
from objectives.datasheet import UNITS, amount, line, reading
from objectives.device import CHIPS, Chip, Device
from objectives.plugins import documents, packaged

Figures = Mapping[str, float]
PEAKS = ("fp16", "int8")
FIGURES = (*PEAKS, "bandwidth", "memory")
RATIOS = (("fp16", "bandwidth"), ("int8", "bandwidth"), ("memory", "bandwidth"))
WIDER = 10.0  # how far beyond the catalogue's least and greatest of a class a figure is still taken as it is
NEARER = 3.0  # the same of a figure that is proposed instead
SLIP = 1000.0
TWICE = (1.9, 2.1)  # times a dense figure, as rounded sparse ones are
SAME = {"bandwidth": 1.03, "memory": 1.08}  # within which a board is a known one: rounded, GiB for GB
MAKERS = {
    *("nvidia", "apple", "google", "qualcomm", "amd", "intel", "gpu", "npu", "cpu", "name", "pro", "max", "core"),
    *("generic", "the", "phone"),
}
VENDORS = {
    *("nvidia", "apple", "amd", "intel", "google", "qualcomm", "rockchip", "samsung"),
    *("geforce", "radeon", "instinct"),
}
MAC = re.compile(r"macbook (?:pro|air)|mac (?:studio|mini|pro)|macbook|imac", re.IGNORECASE)  # beside its chip's name
LEFT = "or dense_confirmed: true if it is right"
Line = tuple[tuple[str, ...], str]


@cache
def shipped() -> Mapping[str, tuple[Chip, Figures]]:
    """Return the class and figures of each shipped device."""
    devices = {}
    for name, path in documents("objectives.devices").items():
        head = re.split(r"^(?:profiles|energy|modes):", outside.text(path, outside.MB), maxsplit=1, flags=re.MULTILINE)[
            0
        ]
        content = yaml.load(head, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        devices[name] = (content.get("chip", "any"), {key: reading(key, content[key]).value for key in FIGURES})
    return MappingProxyType(devices)


def device_called(given: str) -> str:
    """Return the shipped device that a name means: its id or printed name in any spelling, or an alias; "" if none, or several."""
    wanted = _words(given) - VENDORS
    named = {name for name, forms in _forms().items() if wanted in forms}
    return named.pop() if len(named) == 1 else ""


def called_alike(given: str) -> list[str]:
    """Return the shipped devices that have every word and number of a name such as `pixel 9`; none if it holds makers' words alone."""
    wanted = _words(given) - VENDORS
    return [name for name, words in _words_by_device().items() if wanted - MAKERS and wanted <= words]


def numbers_agree(given: str, name: str) -> bool:
    """Return True if a device has every number of a name; True for one that does not ship."""
    own = _words_by_device().get(name)
    return own is None or {word for word in _words(given) if word.isdigit()} <= own


def _words(text: str) -> frozenset[str]:
    """Words and numbers in small letters, with an amount of memory as one."""
    return frozenset(re.findall(r"\d+gb|[a-z]+|\d+", re.sub(r"(\d)[ _]gb", r"\1gb", MAC.sub("", text.lower()))))


def _printed(name: str) -> str:
    text = outside.text(documents("objectives.devices")[name], outside.MB)
    return text.partition("name:")[2].partition("\n")[0].partition("(before")[0]  # which it is not


@cache
def _also() -> dict[str, list[str]]:
    """What else people call shipped devices."""
    return dict(packaged("objectives", "device_names"))


@cache
def _words_by_device() -> Mapping[str, frozenset[str]]:
    """Words of every shipped device's id, printed name and aliases."""
    return {
        name: _words(" ".join((name, _printed(name), *_also().get(name, ()))))
        for name in documents("objectives.devices")
    }


@cache
def _forms() -> Mapping[str, set[frozenset[str]]]:
    """The names of every shipped device as words; what stands in brackets is left out where no other device has the rest too."""
    forms = {}
    for name in documents("objectives.devices"):
        short = _words(_printed(name).partition("(")[0]) - VENDORS
        alone = sum(short <= words for words in _words_by_device().values()) == 1
        texts = (name, _printed(name), *_also().get(name, ()))
        forms[name] = {_words(text) - VENDORS for text in texts} | ({short} if alone else set())
    return forms


@cache
def ranges(chip: Chip) -> Mapping[tuple[str, ...], tuple[float, float]]:
    """Return the least and greatest of each figure and ratio among shipped devices of a class; of all if no class is stated."""
    devices = [figures for own, figures in shipped().values() if chip in ("any", own)]
    keys: list[tuple[str, ...]] = [*((name,) for name in FIGURES), *RATIOS]
    values = {key: [_of(figures, key) for figures in devices] for key in keys}
    return MappingProxyType({key: (min(those), max(those)) for key, those in values.items()})


def _of(figures: Figures, key: tuple[str, ...]) -> float:
    return figures[key[0]] / (figures[key[1]] if len(key) > 1 else 1.0)


def _beyond(figures: Figures, chip: Chip, wider: float = WIDER) -> list[tuple[str, ...]]:
    """The figures and ratios that lie outside of the class's, widened."""
    own = ranges(chip)
    return [
        key
        for key, (least, most) in own.items()
        if figures.keys() >= set(key) and not least / wider <= _of(figures, key) <= most * wider
    ]


def impossible(device: Device) -> Iterator[Line]:
    """Return impossible figures by key with the line to write; measured and confirmed figures are exempt."""
    if device.dense_confirmed or device.confidence == "measured":
        return
    figures = _figures(device)
    for name, theirs, alike in _same_memory(figures, device):
        many = [key for key in _peaks(figures) if figures[key] / theirs[key] >= TWICE[0]]
        for key in many if alike else ():
            dense = figures[key] / 2.0 if _twice(figures, theirs) else theirs[key]
            times = f"{figures[key] / theirs[key]:.2g} times that of {name}, which has the same memory and bandwidth"
            yield (
                (key,),
                f"expected a dense figure of the part that models run on, got {times}; write {line(key, dense)}, {LEFT}",
            )
        if alike and many:
            return
    if wrong := _swapped(figures, device.chip):
        for key, value in wrong.items():
            got = amount(figures[key], UNITS[key])
            yield (
                (key,),
                f"expected bandwidth and memory each at its key, got {got}, as if the two were swapped; write {line(key, value)}, {LEFT}",
            )
        return
    wrong = _thousandfold(figures, device.chip)
    for key in wrong:
        yield (key,), f"{_expected(key, figures[key], device.chip)}; write {line(key, wrong[key])}, {LEFT}"
    if not wrong and {"fp16", "int8"} <= figures.keys() and figures["int8"] < figures["fp16"]:
        fp16, int8 = (amount(figures[key], UNITS[key]) for key in ("fp16", "int8"))
        yield (
            ("int8",),
            f"expected at least the FP16 figure, {fp16}, got {int8}; write {line('int8', figures['fp16'])} where INT8 is no faster, "
            f"{line('fp16', figures['int8'])} and {line('int8', figures['fp16'])} if they are swapped",
        )


def unusual(device: Device) -> list[str]:
    """Return a line on figures that are rare for the class; measured, confirmed and shipped figures are exempt."""
    figures = _figures(device)
    if device.dense_confirmed or device.confidence == "measured" or (device.chip, figures) in shipped().values():
        return []
    lines = [f"{'.'.join(key)}: {text}" for key, text in impossible(device)]
    if not lines:
        lines = [
            _expected(key[0], figures[key[0]], device.chip, key[0])
            for key in _beyond(figures, device.chip)
            if len(key) == 1
        ]
    most = max(values["int8"] / values["fp16"] for _, values in shipped().values())
    if (times := figures.get("int8", 0.0) / figures.get("fp16", float("inf"))) > 1.05 * most:
        lines.append(
            f"int8 is {times:.3g} times fp16, in the catalogue 1 to {most:.2g} times; are both of one part of the chip?"
        )
    for name, theirs, _ in _same_memory(figures, device) if not lines else ():
        if _twice(figures, theirs):
            halves = " and ".join(line(key, figures[key] / 2.0) for key in _peaks(figures))
            lines = [
                f"peaks are twice those of {name}, which has the same memory and bandwidth; of sparse matrices? If so write {halves}, {LEFT}"
            ]
    return [f"device {device.name}: {'; '.join(lines)}"] if lines else []


def _figures(device: Device) -> dict[str, float]:
    values: dict[str, Any] = {key: getattr(device, key) for key in FIGURES}
    return {key: value for key, value in values.items() if value is not None}


def _swapped(figures: Figures, chip: Chip) -> dict[str, float]:
    """Bandwidth and memory of a device whose file has one for the other; none of others."""
    swapped = {"bandwidth": figures["memory"], "memory": figures["bandwidth"]}
    far = figures["memory"] / figures["bandwidth"] > 2.0 * ranges(chip)["memory", "bandwidth"][1]
    own, others = (
        {key[0] for key in _beyond({**figures, **changed}, chip, 1.0) if len(key) == 1} for changed in ({}, swapped)
    )
    right = not others & swapped.keys() and not _beyond({**figures, **swapped}, chip)
    return swapped if far and own & swapped.keys() and right else {}


def _thousandfold(figures: Figures, chip: Chip) -> dict[str, float]:
    """The figures that are a thousand times too large or small, corrected, where that and nothing less explains their ratios."""
    if all(len(key) == 1 for key in _beyond(figures, chip)):
        return {}
    peaks = tuple(_peaks(figures))
    for keys in dict.fromkeys([*((key,) for key in figures), peaks]):
        for by in (SLIP, 1.0 / SLIP):
            changed = {key: figures[key] * by for key in keys}
            near = not any(set(key) <= set(keys) for key in _beyond({**figures, **changed}, chip, NEARER))
            if near and not _beyond({**figures, **changed}, chip) and _ordered({**figures, **changed}):
                return changed
    return {}


def _ordered(figures: Figures) -> bool:
    return figures.get("int8", float("inf")) >= figures.get("fp16", 0.0)


def _expected(key: str, value: float, chip: Chip, name: str = "") -> str:
    """`expected 300 GFLOP/s to 300 TFLOP/s (…), got 6 GFLOP/s`."""
    least, most = (amount(end, UNITS[key]) for end in (ranges(chip)[key,][0] / WIDER, ranges(chip)[key,][1] * WIDER))
    start = f"{name} " if name else ""
    got = amount(value, UNITS[key])
    return f"{start}expected {least} to {most} ({CHIPS[chip]}: the catalogue's and {WIDER:.0f} times beyond), got {got}"


def _same_memory(figures: Figures, device: Device) -> Iterator[tuple[str, Figures, bool]]:
    """Shipped devices of the class with the same memory and bandwidth, and whether the names are alike."""
    words = set(re.findall(r"[a-z]{3,}", device.name.lower()))
    for name, (chip, theirs) in shipped().items():
        near = all(max(figures[key] / theirs[key], theirs[key] / figures[key]) <= by for key, by in SAME.items())
        if near and device.chip in ("any", chip):
            yield name, theirs, len(words & set(re.findall(r"[a-z]{3,}", name))) > 1


def _peaks(figures: Figures) -> list[str]:
    return [key for key in PEAKS if key in figures]


def _twice(figures: Figures, theirs: Figures) -> bool:
    """Whether every peak is twice theirs."""
    times = [figures[key] / theirs[key] for key in _peaks(figures)]
    return bool(times) and all(TWICE[0] <= each <= TWICE[1] for each in times)
