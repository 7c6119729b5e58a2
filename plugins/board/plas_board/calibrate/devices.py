"""Whether the device that a log names can be the one that is calibrated.

A name is compared by what tells chips apart: maker, model, memory, form, processor or GPU. What a name does not say contradicts nothing.
"""

import re

from objectives.device import Device

MAKERS = {
    "nvidia": r"nvidia|geforce|rtx|gtx|quadro|tesla|cuda|jetson|orin|thor",
    "amd": r"amd|radeon|ryzen|epyc|threadripper|instinct|radv|gfx\d+|rocm|x86",
    "intel": r"intel|xeon|arc|core ultra|x86",
    "apple": r"apple|metal|mtl|iphone\d*|ipad\d*|mac\d*",
    "qualcomm": r"qualcomm|snapdragon|adreno|oryon|hexagon",
    "rockchip": r"rockchip|r[kv]\d{4}\w?",
    "google": r"tensor g\d|pixel",
    "raspberry": r"raspberry|bcm\d{4}",
    "hailo": r"hailo",
}
CHIP = re.compile(
    r"\b(?:(?:rtx|gtx|gt|rx)(?: pro)? ?[a-z]?\d{3,4}(?: (?:ti|super|xtx|xt|gre|laptop|max q|mobile|ada|blackwell|[dms]))*"
    r"|m[1-9](?: (?:pro|max|ultra))?|a1[4-9](?: pro)?|(?<!cortex )(?:g[bh]|mi|[abhlpvwr])\d{2,4}[a-z]{0,2}|[lt]4|gfx\d{3,4}|strix halo"
    r"|ryzen ai max \d{3}|[678]\d0m|80[456]0s|core ultra \d \d{3}[a-z]|1[34]0[tv]|r[kv]\d{4}[a-z]?|hailo \d+h|raspberry pi \d"
    r"|\d{4,5}(?:x3d|hx|hs|kf|[xgkhu])|snapdragon (?:x2? \w+|\d\w? (?:elite(?: gen \d)?|gen \d))|tensor g\d|agx orin|orin n(?:ano|x)|thor)\b"
)
#: Names of one chip: a GPU by its architecture's number, an accelerator's memory.
ALIASES = {"gfx1151": "8060s", "strix halo": "8060s", "rk3588s": "rk3588"}
MEMORY, FORM = re.compile(r"\b(\d{1,3}) ?gi?b\b"), re.compile(r"\b(sxm|pcie|nvl|\d{1,2} core gpu)\d?\b")
SEVERAL = re.compile(r"\b[2-9] ?x [a-z]|\bx ?[2-9]$")
GPU = re.compile(r"\b(?:geforce|rtx|gtx|radeon|quadro|tesla|arc|adreno|mali|cuda|metal|vulkan|rocm)\b")
PROCESSOR = re.compile(
    r"^cpu$|\b(?:ryzen [3579]|ryzen threadripper|epyc|xeon|core i\d|core ultra|cortex|armv\d|processor)\b"
)
MEMORY_SLACK = 0.15  # of a memory's size, by which names round it


def plain(name: str) -> str:
    """A device's name as words in lower case, without marks of registration."""
    words = re.sub(r"\((?:r|tm|c)\)|[®™+]|\bpro(?= \d{3}\b)", "", name.lower())
    return " ".join(re.sub(r"[^a-z0-9]+", " ", words).split())


def chips(name: str) -> set[str]:
    """Chips that a name holds, each by the words that tell it from its neighbours."""
    return {ALIASES.get(chip, chip) for chip in CHIP.findall(plain(name))}


def is_same(name: str, device: Device) -> bool:
    """Return True if a log's name is of the device's chip and contradicts nothing."""
    return bool(chips(name) & chips(device.name)) and not contradicts(name, device)


def contradicts(name: str, device: Device) -> bool:
    """Return True if a log's name cannot be of the device."""
    text, own = plain(name), plain(device.name)
    theirs, ours = chips(name), chips(device.name)
    sizes = [(int(m), int(o)) for m in MEMORY.findall(text) for o in MEMORY.findall(own)]
    other_memory = sizes and all(abs(m - o) > MEMORY_SLACK * o for m, o in sizes)
    on_gpu = GPU.search(text) is not None
    return bool(
        SEVERAL.search(text)
        or _apart(_makers(text), _makers(own))
        or _apart(theirs, ours)
        or (theirs & ours and (other_memory or _apart({*FORM.findall(text)}, {*FORM.findall(own)})))
        or (on_gpu and device.chip == "cpu")
        or (not on_gpu and PROCESSOR.search(text) and device.chip in ("gpu", "server_gpu"))
    )


def _apart(one: set[str], other: set[str]) -> bool:
    return bool(one and other and not one & other)


def _makers(text: str) -> set[str]:
    return {maker for maker, words in MAKERS.items() if re.search(rf"\b(?:{words})\b", text)}
