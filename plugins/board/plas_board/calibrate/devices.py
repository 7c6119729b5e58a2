"""Whether the device that a log names can be the one that is calibrated.

A name is compared by what tells chips apart: maker, model, memory, form, processor or GPU. What a name does not say contradicts nothing.
"""

import re

from objectives.device import Device

MAKERS = {
    "nvidia": r"nvidia|geforce|rtx|gtx|quadro|tesla|cuda\d*|jetson|orin|thor|tensorrt|trt|gb10|dgx|[abhv][1-3]00|l40s?|[lt]4",
    "amd": r"amd|radeon|ryzen|epyc|threadripper|instinct|radv|gfx\d+|rocm\d*|hip|xdna\d?|fastflowlm|flm|strix|mi\d{2,3}x?|x86",
    "intel": r"intel|xeon|arc|core ultra|sycl\d*|oneapi|ipex|x86",
    "apple": r"apple|m[1-9] (?:pro|max|ultra)|metal|mtl\d*|mlx|coreml|iphone\d*|ipad\d*|mac\d*|macbook",
    "qualcomm": r"qualcomm|snapdragon|adreno|oryon|hexagon|htp\d*|qnn|qairt|genie",
    "rockchip": r"rockchip|r[kv]\d{4}\w?|rkllm|rknn|rknpu\d?",
    "axera": r"axera|ax6[35]0\w?|ax8850\w?",
    "google": r"tensor g\d|pixel",
    "raspberry": r"raspberry|rpi|bcm\d{4}",
    "hailo": r"hailo",
}
CHIP = re.compile(
    r"\b(?:(?:rtx|gtx|gt|rx)(?: pro)? ?[a-z]?\d{3,4}(?: (?:ti|super|xtx|xt|gre|laptop|max q|mobile|ada|blackwell|[dms]))*"
    r"|m[1-9](?: (?:pro|max|ultra))?|a1[4-9](?: pro)?|(?<!cortex )(?:g[bh]|mi|[abhlpvwr])\d{2,4}[a-z]{0,2}|[lt]4|gfx\d{3,4}|strix halo"
    r"|ryzen ai max \d{3}|[678]\d0m|80[456]0s|core ultra \d \d{3}[a-z]|1[34]0[tv]|r[kv]\d{4}[a-z]?|hailo \d+h|raspberry pi \d|dgx spark|ax6[35]0[a-z]?"
    r"|\d{4,5}(?:x3d|hx|hs|kf|[xgkhu])|snapdragon (?:x2? \w+|\d\w? (?:elite(?: gen \d)?|gen \d))|tensor g\d|agx orin|orin n(?:ano|x)|thor)\b"
)
#: Names of one chip: a GPU by its architecture's number, an accelerator's memory.
ALIASES = {
    "gfx1151": "8060s",
    "strix halo": "8060s",
    "ryzen ai max 395": "8060s",
    "rk3588s": "rk3588",
    "dgx spark": "gb10",
}
ALIASES |= {"sm8750": "snapdragon 8 elite", "sm8650": "snapdragon 8 gen 3"}
#: How people write a chip, and how it is compared.
SPELT = (
    (re.compile(r"\b(apple|nvidia|radeon|geforce|gen)(?=[a-z]?\d)"), r"\1 "),
    (re.compile(r"\b(m[1-9]|a1[4-9])(pro|max|ultra)\b"), r"\1 \2"),
    (re.compile(r"\b([rg]tx|rx)(?=[a-z]?\d)"), r"\1 "),
    (re.compile(r"(?<=\d{4})(ti|super|xtx|xt|gre)\b"), r" \1"),
    (re.compile(r"\b(?<!rtx )(?=[2-5]0[5-9]0\b)"), "rtx "),
    (re.compile(r"\b(?:raspberry ?|r)?pi ?(?=[3-6]\b)"), "raspberry pi "),
    (re.compile(r"\b(?:snapdragon ?)?(8s?|7s?) ?gen ?(?=\d\b)"), r"snapdragon \1 gen "),
    (re.compile(r"\b(?:snapdragon ?)?(8|x2?) ?elite\b"), r"snapdragon \1 elite"),
    (re.compile(r"\bai max (?=\d{3}\b)(?<!ryzen ai max )"), "ryzen ai max "),
)
#: What of a heading is a device's and no model's: `M2` and `A13B` are a model's as often.
WEAK = re.compile(r"m[1-9]|a1[4-9](?: pro)?|[abhlpvwr]\d{2,4}[a-z]{0,2}|\d{4,5}\w{1,3}")
SERVERS = re.compile(
    r"a(?:10|30|40|100|6000)|b(?:[12]00|5[78]0|[67]0)|h(?:[128]00)|l40s?|v100|p(?:40|100)|r9700|w7[789]00"
)
MAC, VERSUS = (
    re.compile(r"\b(?:apple|mac\w*|i(?:phone|pad)\d*)\b"),
    re.compile(r"\b(?:vs|versus|compar\w+|than|against)\b"),
)
BACKEND = re.compile(
    r"\b(?:cuda|metal|mlx|rocm|hip|sycl|htp|hexagon|genie|qnn|coreml|tensorrt|fastflowlm|rkllm|rknn)\b"
)
MEMORY, FORM = re.compile(r"\b(\d{1,3}) ?gi?b\b"), re.compile(r"\b(sxm|pcie|nvl|\d{1,2} core gpu)\d?\b")
SEVERAL = re.compile(r"\b[2-9] ?x [a-z]|\bx ?[2-9]$")
GPU = re.compile(
    r"\b(?:geforce|rtx|gtx|radeon|quadro|tesla|arc|adreno|mali|(?:cuda|mtl|vulkan|rocm|sycl)\d*|metal|mlx|hip|opencl|i?gpu)\b"
)
NPU = re.compile(r"\b(?:npu\d*|htp\d*|hexagon|genie|qnn|rkllm|rknn|xdna\d?|fastflowlm|flm)\b")
CPU = re.compile(r"\b(?:cpu|cortex|armv\d)\b")
PROCESSOR = re.compile(r"\b(?:ryzen [3579]|ryzen threadripper|epyc|xeon|core i\d|core ultra|cortex|armv\d|processor)\b")
UNITS = {"server_gpu": "gpu", "soc": "gpu"}  # what computes in a class of chips that has not its name
LONGEST_HEADING = 120  # characters, above which a line is a sentence
MEMORY_SLACK = 0.15  # of a memory's size, by which names round it


def plain(name: str) -> str:
    """A device's name as words in lower case, without marks of registration."""
    words = re.sub(r"\((?:r|tm|c)\)|[®™+]|\bpro(?= \d{3}\b)", "", name.lower())
    words = " ".join(re.sub(r"[^a-z0-9]+", " ", words).split())
    for pattern, spelling in SPELT:
        words = pattern.sub(spelling, words)
    return words


def in_heading(text: str, *, backends: bool) -> str:
    """The chips that a heading or a line names and that no model is called after, and the backends where wanted, "" where there are none."""
    words = plain(text)
    if VERSUS.search(words) or len(words) > LONGEST_HEADING:
        return ""
    own = [
        chip
        for chip in dict.fromkeys(CHIP.findall(words))
        if not WEAK.fullmatch(chip) or SERVERS.fullmatch(chip) or (MAC.search(words) and re.match(r"[am]\d", chip))
    ]
    return ", ".join([*own, *(dict.fromkeys(BACKEND.findall(words)) if backends else ())]).upper()


def chips(name: str) -> set[str]:
    """Chips that a name holds, each by the words that tell it from its neighbours."""
    return {ALIASES.get(chip, chip) for chip in CHIP.findall(plain(name))}


def is_same(name: str, device: Device) -> bool:
    """Return True if a log's name is of the device's chip and contradicts nothing."""
    return bool(chips(name) & chips(device.name)) and not contradicts(name, device)


def contradicts(name: str, device: Device, engine: str = "") -> bool:
    """Return True if a log's name of a device, or the program that ran there, cannot be of the device."""
    text, own = plain(name), plain(device.name)
    theirs, ours = chips(name), chips(device.name)
    sizes = [(int(m), int(o)) for m in MEMORY.findall(text) for o in MEMORY.findall(own)]
    other_memory = sizes and all(abs(m - o) > MEMORY_SLACK * o for m, o in sizes)
    ran, unit = f"{text} {plain(engine)}", UNITS.get(device.chip, device.chip)
    units, may_be = _units(plain(engine)) or _units(text), {unit} if unit != "any" else _units(own)
    return bool(
        SEVERAL.search(text)
        or _apart(_makers(ran), _makers(f"{own} {plain(device.vendor)}"))
        or _apart(theirs, ours)
        or (theirs & ours and (other_memory or _apart({*FORM.findall(text)}, {*FORM.findall(own)})))
        or _apart(units, may_be)
        or (not units and PROCESSOR.search(text) and device.chip in ("gpu", "server_gpu"))
    )


def _units(text: str) -> set[str]:
    """Which units of a chip a text says computed: a GPU, an NPU, or the CPU where it names neither."""
    units = {unit for unit, words in (("gpu", GPU), ("npu", NPU)) if words.search(text)}
    return units or ({"cpu"} if CPU.search(text) else set())


def _apart(one: set[str], other: set[str]) -> bool:
    return bool(one and other and not one & other)


def _makers(text: str) -> set[str]:
    return {maker for maker, words in MAKERS.items() if re.search(rf"\b(?:{words})\b", text)}
