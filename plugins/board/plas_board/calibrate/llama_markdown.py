"""llama-bench's Markdown tables as people paste them into issues: quoted, between other text, several with their builds.

Source: ggml-org/llama.cpp tools/llama-bench/llama-bench.cpp, `markdown_printer`: columns that are at their default are left out.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from plas_board.calibrate import llama_batched, llama_bench
from plas_board.calibrate.figure import Document, Figure, amount, cells, rule

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
    "mg": "main_gpu",
    "ts": "tensor_split",
    "ot": "tensor_buft_overrides",
    "embd": "embeddings",
    "nkvo": "no_kv_offload",
    "ncmoe": "n_cpu_moe",
}
TEST = re.compile(r"(?:pp ?(\d{1,9}))?(?:\+?tg ?(\d{1,9}))?(?: ?@ ?d(\d{1,9}))?")
RATE = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(?: *± *(\d{1,12}(?:\.\d{1,9})?))?")
BUILD = re.compile(r"build: ([0-9a-f]{4,40})\b")
GPU = re.compile(
    r"(?:Device \d{1,3}: ([^,|]{1,100}),|GPU name: +(\S.{0,99})"
    r"|ggml_vulkan: \d{1,3} = ([^|]{1,100}?)(?: \((?!RADV)[^()|]{0,60}\))* *(?:\||$))"
)


def recognises(document: Document) -> bool:
    """A line that is the header of such a table."""
    return any(set(cells(line)) >= NEEDED for line in document.text.splitlines())


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """A figure a row of every table, those of llama-batched-bench in the same text too."""
    for document in documents:
        yield from map(_figure, entries(document.text))
        if llama_batched.has_table(document.text):
            yield from llama_batched.of_text(document, _models(document))


def _models(document: Document) -> dict[tuple[str, ...], Figure]:
    """The model of all rows under the same headings, where it is one."""
    found: dict[tuple[str, ...], Figure] = {}
    for heads, part in document.segments():
        rows = [row for row in map(_figure, entries(part)) if not row.fault]
        if len({row.names for row in rows}) == 1:
            engine = str(rows[0].cells["engine"]).replace(llama_bench.NAME, llama_batched.NAME)
            found[heads] = replace(rows[0], cells={"engine": engine, "precision": rows[0].cells["precision"]})
    return found


def entries(text: str) -> list[dict[str, Any]]:
    """Rows as llama-bench's fields, with the build below their table and the GPUs named above it."""
    found: list[dict[str, Any]] = []
    header: list[str] = []
    gpus: list[str] = []
    unbuilt = 0
    remote = "--rpc " in text
    for line in text.splitlines():
        row = cells(line)
        if match := GPU.search(line):
            gpus = [] if found and not header else gpus
            gpus, header = [*gpus, next(name for name in match.groups() if name).strip()], []
        if set(row) >= NEEDED:
            header = row
        elif header and row and not rule(row):
            found.append(_entry(dict(zip(header, row, strict=False)), gpus) | {"rpc": remote})
        elif not row and header:
            header, gpus = [], []
        if match := BUILD.search(line):
            for entry in found[unbuilt:]:
                entry["build_commit"] = match[1]
            unbuilt = len(found)
    return found


def _entry(row: dict[str, str], gpus: Sequence[str]) -> dict[str, Any]:
    """A row as an entry; what the table rounds keeps its own words."""
    entry: dict[str, Any] = {COLUMNS.get(name, name): cell for name, cell in row.items()}
    test = TEST.fullmatch(entry.pop("test", "").strip())
    rate = RATE.fullmatch(entry.pop("t/s", "").strip())
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
    parameters, size = amount(entry.pop("params", "")), amount(entry.pop("size", ""))
    return replace(llama_bench.figure(entry), parameters=parameters, size=size)
