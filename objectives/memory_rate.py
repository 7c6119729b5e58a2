"""Bandwidth of a memory from its data rate and width: "LPDDR5X-8533 64-bit", "DDR4-3200 dual channel", "GDDR6 14 Gbps 256-bit"."""

import re

#: Fastest data rates that are sold, MT/s: a clock of more than half of one is no clock but the rate.
FASTEST = {
    "DDR2": 1066,
    "DDR3": 2133,
    "DDR3L": 1866,
    "DDR4": 3200,
    "DDR5": 9600,
    "LPDDR2": 1066,
    "LPDDR3": 2133,
    "LPDDR4": 4267,
    "LPDDR4X": 4267,
    "LPDDR5": 6400,
    "LPDDR5X": 10700,
    "LPDDR5T": 9600,
}
WORDS = {"single": 1, "dual": 2, "triple": 3, "quad": 4, "hexa": 6, "octa": 8}
CHANNEL_BITS = 64  # of a channel of DDR3, DDR4 and, of two halves, DDR5 modules
NARROWEST = {"L": 16, "D": 32}  # bits of the narrowest channel of LPDDR and DDR
_TYPE = re.compile(
    r"\b(LPDDR\d[XT]?|G?DDR\d[XL]?|HBM\d?[eE]?)(?:[-@ ]+(\d{3,5})(?:\s*M[Tb](?:/s|ps))?(?![\d.]|\s*(?:MHz|-?bit|[kKMGT]i?B)))?",
    re.IGNORECASE,
)
_TRANSFERS = re.compile(
    r"(?<![\w.,])(\d[\d,]*(?:\.\d+)?)\s*(?P<prefix>[GM])(?:T|b|bit|bits)(?:/s(?:ec)?|ps)?(?:/pin)?(?![\w/])",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"(?<![\w.,])(\d[\d,]*(?:\.\d+)?)\s*(?P<prefix>[GM])Hz\b", re.IGNORECASE)
_SEVERAL = re.compile(r"\b(\d+)\s*x\s*(\d+)\s*-?(?:bits?|b)\b|\b(\d+)\s*x\s*(16|32|64)\b(?!\s*\d)", re.IGNORECASE)
_WIDTH = re.compile(r"\bx?\s*(\d+)\s*-?(?:bits?|b)\b|\bx(16|32|64|128|256|512)\b", re.IGNORECASE)
_CHANNELS = re.compile(
    r"\b(\d+)[- ]?(?:ch|channels?)\b|\b(single|dual|triple|quad|hexa|octa)\b(?:[- ]?(?:ch|channels?)\b)?", re.IGNORECASE
)
_ALONE = re.compile(r"(?<![\w.,-])(\d{4,5})(?![\w.,]|\s*-?bit)")


def memory_rate(key: str, text: str) -> tuple[float, str] | None:
    """Return bytes/s and how they were computed, rate · width / 8; None for text that states no memory.

    Raises:
        ValueError: text of a memory that does not say its rate and width, or may say two; with the line to write.
    """
    memory = _TYPE.search(text)
    kind = memory[1].upper() if memory else ""
    rest = _TYPE.sub(" ", text) if memory and memory[2] else text
    rate = float(memory[2]) if memory and memory[2] else _number(_TRANSFERS, rest)
    clock = None if rate else _number(_CLOCK, rest)
    if not memory and not (rate and (_WIDTH.search(text) or re.search(r"[GM]T/?s?\b", text))):
        return None
    if rate is None and clock is not None and not kind.startswith(("G", "H")):
        rate = _of_clock(key, kind, clock, rest)
    if rate is None and (alone := _ALONE.search(rest)):
        rate = float(alone[1])
    if rate is None:
        like = f"{kind}-{FASTEST.get(kind, 6400)} 64-bit"
        raise ValueError(f"write its data rate and width, like {key}: {like}, or its GB/s")
    width, words = _width(key, kind, rate, rest)
    return rate * width / 8.0 * 1e6, f"{rate:,.6g} MT/s × {words} / 8"


def without_memory(text: str) -> str:
    """Return text without the words for a memory's kind, rate and width."""
    for pattern in (_TYPE, _SEVERAL, _CHANNELS, _TRANSFERS, _CLOCK, _WIDTH, _ALONE):
        text = pattern.sub(" ", text)
    return text


def _number(pattern: re.Pattern[str], text: str) -> float | None:
    match = pattern.search(text)
    return (
        None if match is None else float(match[1].replace(",", "")) * (1e3 if match["prefix"].upper() == "G" else 1.0)
    )


def _of_clock(key: str, kind: str, clock: float, text: str) -> float:
    """The data rate of so many MHz: of a clock twice as many, unless no such memory is so fast.

    Raises:
        ValueError: it may be either.
    """
    if kind in FASTEST and 2.0 * clock > FASTEST[kind] * 1.01:
        return clock
    width = _WIDTH.search(text)
    bits = f" {width[1] or width[2]}-bit" if width else ""
    raise ValueError(
        f"is {clock:g} MHz the clock or the data rate? Write {key}: {kind}-{2 * clock:g}{bits} if it is the clock, "
        f"{key}: {kind}-{clock:g}{bits} if the rate"
    )


def _width(key: str, kind: str, rate: float, text: str) -> tuple[float, str]:
    """Bits of a memory's bus, and how they were counted.

    Raises:
        ValueError: it is not stated, or may be of each channel or of all.
    """
    if several := _SEVERAL.search(text):
        count, each_bits = (int(part) for part in several.groups() if part)
        return count * each_bits, f"{count} × {each_bits} bits"
    width, channels = _WIDTH.search(text), _CHANNELS.search(text)
    bits = int(width[1] or width[2]) if width else 0
    count = int(channels[1] or WORDS[channels[2].lower()]) if channels else 1
    start = f"{key}: {kind}-{rate:g}" if kind else f"{key}: {rate:g} MT/s"
    if not bits:
        if channels and kind.startswith("DDR"):
            return count * CHANNEL_BITS, f"{count} × {CHANNEL_BITS} bits"
        raise ValueError(f"how wide is it? Write {start} 64-bit if it has 64 bits, or its GB/s")
    if count == 1:
        return bits, f"{bits} bits"
    if bits > CHANNEL_BITS:
        return bits, f"{bits} bits"
    if bits / count < NARROWEST.get(kind[:1], 16):
        return count * bits, f"{count} × {bits} bits"
    raise ValueError(
        f"is it {bits} bits in all? Write {start} {bits}-bit if so, {start} {count}x{bits}-bit if each channel has them"
    )
