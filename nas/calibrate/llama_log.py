"""Facts that llama.cpp's programs print while they load a file: which model, its weight format, the device, the build.

Source: ggml-org/llama.cpp src/llama-model-loader.cpp, src/llama-model.cpp (`print_info`), common/common.cpp.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import PureWindowsPath
from typing import Any

from nas.calibrate import llama_bench
from nas.calibrate.figure import EVERY_LAYER, Figure, Unusable, amount, named, precision, refuse

LOADED = re.compile(r"loaded meta data with .{0,80}? from (.{1,300}?) \(version", re.ASCII)
FILE = re.compile(r"(?:\s-m|--model)[ =]([^\s'\"]{1,300}\.gguf)\b")
#: `print_info: file type   = Q4_K - Medium`, in builds of 2023 and 2024 `llm_load_print_meta: model ftype = Q4_K - Medium`.
INFO = re.compile(
    r"(?:print_info|llm_load_print_meta): +(arch|general\.name|file type|model ftype|file size|model size|model params) += *([^\n]{1,120})"
)
KEYS = {"model ftype": "file type", "model size": "file size"}
DEVICE = re.compile(r"using device (\w{1,20}) \(([^()\n]{1,100})")
CUDA = re.compile(r"Device \d{1,3}: ([^,|\n]{1,100}),")
OFFLOADED = re.compile(r"offloaded (\d{1,4})/(\d{1,4}) layers to GPU")
BUILD = re.compile(r"build: \d{1,6} \(([0-9a-f]{4,40})\)")
FLASH = re.compile(r"flash_attn += *(\w{1,10})")
CPU_EXPERTS = re.compile(r"\s(?:-ncmoe|--n-cpu-moe)[ =](\d{1,6})\b")
ALL_CPU_EXPERTS = re.compile(r"\s(?:-cmoe|--cpu-moe)(?=\s|$)")
PLACED = re.compile(r"\s(?:-ot|--override-tensor)[ =](?:\"([^\"\n]{1,2000})\"|'([^'\n]{1,2000})'|([^\s\"']{1,2000}))")
OVERRIDDEN = (
    "buffer type overridden to"  # of every tensor that is put elsewhere, by -fit too, which no command line says
)
DRAFT = re.compile(r"loading draft model")
CACHE = re.compile(r"\s(?:-ct[kv]|--cache-type-[kv])[ =](?!f16\b)\w|\b[KV] \((?!f16\))\w{2,8}\): ")
ON = {"1": "fa", "enabled": "fa", "auto": "fa auto"}


def loads(text: str) -> Iterator[str]:
    """The text of each model that was loaded, what stands before the first one with it."""
    found = list(LOADED.finditer(text))
    own = [one for before, one in zip([None, *found], found, strict=False) if not _drafts(text, before, one)]
    starts = [match.start() for match in own]
    bounds = [0, *starts[1:], len(text)]
    yield from (text[start:end] for start, end in pairwise(bounds))


def _drafts(text: str, before: re.Match[str] | None, one: re.Match[str]) -> bool:
    """Whether the model that is loaded here drafts for the one before."""
    return before is not None and DRAFT.search(text, before.end(), one.start()) is not None


def figure(text: str, program: str) -> Figure:
    """A figure without times of the model that a log says was loaded first; it names nothing that the log does not."""
    info = {KEYS.get(key, key): value.strip() for key, value in reversed(INFO.findall(text))}
    file = next((match[1] for pattern in (LOADED, FILE) if (match := pattern.search(text))), "")
    size = info.get("file size", "").partition(" (")[0]
    found: dict[str, Any] = {
        "names": named(PureWindowsPath(file).name.removesuffix(".gguf"), info.get("general.name", "")),
        "family": info.get("arch", ""),
        "parameters": amount(info.get("model params", "")),
        "size": amount(size),
        "gpu_layers": _on_gpu(text),
        "device": _device(text),
        **_elsewhere(text),
    }
    try:
        refuse(
            (
                (len(_devices(text)) > 1, "several GPUs at once"),
                (
                    OVERRIDDEN in text and not found["experts_on_cpu"] and not found["placed"],
                    "tensors were kept elsewhere, and no command line says which (-ncmoe, -ot, -fit)",
                ),
                (CACHE.search(text), "a KV cache in another format than f16"),
            )
        )
        file_type = llama_bench.described(info.get("file type", ""))[1] or info.get("file type", "")
        return Figure(**found, cells={"engine": _engine(text, program), "precision": precision(file_type)})
    except Unusable as error:
        return Figure(**found, fault=str(error))


def _on_gpu(text: str) -> int | None:
    """Layers on the GPU where these are not all."""
    match = OFFLOADED.search(text)
    return None if match is None or match[1] in ("0", match[2]) else int(match[1])


def _elsewhere(text: str) -> dict[str, Any]:
    """Layers whose experts lay in host memory, and tensors that were put somewhere by hand, by the command line."""
    counts = [int(number) for number in CPU_EXPERTS.findall(text)]
    every = [EVERY_LAYER] * bool(ALL_CPU_EXPERTS.search(text))
    placed = ",".join(dict.fromkeys(next(filter(None, found)) for found in PLACED.findall(text)))
    return {"experts_on_cpu": max([0, *counts, *every]), "placed": placed}


def _devices(text: str) -> list[tuple[str, str]]:
    """Backend and name of every GPU that holds layers, those that the build saw where it does not say which it uses."""
    offloaded = OFFLOADED.search(text)
    if offloaded is not None and offloaded[1] == "0":
        return []
    found = [(match[1], match[2].strip()) for match in DEVICE.finditer(text)]
    return list(dict.fromkeys(found)) or [("", match[1]) for match in CUDA.finditer(text)]


def _device(text: str) -> str:
    return next(iter(named(*(name for _, name in _devices(text)))), "")


def _engine(text: str, program: str) -> str:
    build, device, flash = BUILD.search(text), DEVICE.search(text), FLASH.search(text)
    parts = [program, build[1] if build else "of an unknown build", device[1].rstrip("0123456789") if device else ""]
    setting = ON.get(flash[1], "") if flash else ""
    return next(iter(named(" ".join(part for part in parts if part) + (f", {setting}" if setting else ""))), "")
