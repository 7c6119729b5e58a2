"""llama-bench's Markdown tables as people paste them into issues: quoted, between other text, several with their builds.

Source: ggml-org/llama.cpp tools/llama-bench/llama-bench.cpp, `markdown_printer`: columns that are at their default are left out.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from nas.calibrate import llama_bench
from nas.calibrate.document import Document
from nas.calibrate.figure import Figure, Stated

NAME = "llama-bench table"
NEEDED = {"model", "test", "t/s"}
#: Columns under the names that the table prints them with.
COLUMNS = {
    "model": "model_type",
    "backend": "backends",
    "ngl": "n_gpu_layers",
    "threads": "n_threads",
    "sm": "split_mode",
    "fa": "flash_attn",
    "dev": "devices",
    "ot": "tensor_buft_overrides",
    "embd": "embeddings",
    "nkvo": "no_kv_offload",
}
BATCHED_COLUMNS = {"PP", "TG", "B", "N_KV"}
BATCHED = "a row of llama-batched-bench, whose table names no model: write a measured CSV with its model and batch"
TEST = re.compile(r"(?:pp ?(\d{1,9}))?(?:\+?tg ?(\d{1,9}))?(?: ?@ ?d(\d{1,9}))?")
RATE = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(?: *± *(\d{1,12}(?:\.\d{1,9})?))?")
BUILD = re.compile(r"build: ([0-9a-f]{4,40})\b")
CUDA = re.compile(r"Device \d{1,3}: ([^,|]{1,100}),")
AMOUNT = re.compile(r"(\d{1,9})(\.\d{1,6})? *([KMGT]i?B|[KMBT])")
UNITS = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}


def recognises(document: Document) -> bool:
    """A line that is the header of such a table."""
    return any(
        set(cells) >= NEEDED or set(cells) >= BATCHED_COLUMNS for cells in map(_cells, document.text.splitlines())
    )


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """A figure a row of every table."""
    for document in documents:
        yield from map(_figure, entries(document.text))
        yield from (Figure((), fault=BATCHED) for _ in range(batched_rows(document.text)))


def batched_rows(text: str) -> int:
    """Rows of llama-batched-bench's tables."""
    rows, inside = 0, False
    for cells in map(_cells, text.splitlines()):
        header = set(cells) >= BATCHED_COLUMNS
        inside = bool(cells) and (inside or header) and not set(cells) >= NEEDED
        rows += inside and not header and not set("".join(cells)) <= set("-: ")
    return rows


def entries(text: str) -> list[dict[str, Any]]:
    """Rows as llama-bench's fields, with the build below their table and the GPUs named above it."""
    found: list[dict[str, Any]] = []
    header: list[str] = []
    gpus: list[str] = []
    unbuilt = 0
    for line in text.splitlines():
        cells = _cells(line)
        if match := CUDA.search(line):
            gpus = [] if found and not header else gpus
            gpus, header = [*gpus, match[1].strip()], []
        if set(cells) >= NEEDED:
            header = cells
        elif header and len(cells) == len(header) and not set("".join(cells)) <= set("-: "):
            found.append(_entry(dict(zip(header, cells, strict=True)), gpus))
        elif not cells and header:
            header, gpus = [], []
        if match := BUILD.search(line):
            for entry in found[unbuilt:]:
                entry["build_commit"] = match[1]
            unbuilt = len(found)
    return found


def _cells(line: str) -> list[str]:
    """Cells of a table's line, maybe quoted; none where it is no such line."""
    line = line.lstrip("> \t")
    if not line.startswith("|"):
        return []
    return [cell.strip().strip("`*") for cell in line.strip().strip("|").replace("\\|", " ").split("|")]


def _entry(row: dict[str, str], gpus: Sequence[str]) -> dict[str, Any]:
    """A row as an entry; what the table rounds keeps its own words."""
    entry: dict[str, Any] = {COLUMNS.get(name, name): cell for name, cell in row.items()}
    test = TEST.fullmatch(entry.pop("test").strip())
    rate = RATE.fullmatch(entry.pop("t/s").strip())
    counts = zip(("n_prompt", "n_gen", "n_depth"), test.groups() if test else ("", "", ""), strict=True)
    entry |= {name: count or "0" for name, count in counts}
    entry |= {
        "avg_ts": rate[1] if rate else "",
        "stddev_ts": (rate[2] if rate else "") or "0",
        "gpu_info": ", ".join(gpus),
    }
    return entry


def _figure(entry: dict[str, Any]) -> Figure:
    """The entry's figure, with size and parameters as far as two decimals determine them."""
    parameters, size = _amount(entry.pop("params", "")), _amount(entry.pop("size", ""))
    return replace(llama_bench.figure(entry), parameters=parameters, size=size)


def _amount(text: str) -> Stated | None:
    """`1.54 B` as 1.54e9 give or take half of the last digit."""
    match = AMOUNT.fullmatch(text.strip())
    if match is None or match[3] not in UNITS:
        return None
    unit = UNITS[match[3]]
    decimals = len(match[2] or ".") - 1
    return Stated(float(match[1] + (match[2] or "")) * unit, 0.5 * 10.0**-decimals * unit + llama_bench.UNCOUNTED)
