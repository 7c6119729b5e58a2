"""llama.cpp's llama-batched-bench: prompts and steps of several sequences at once, as its table or as lines of JSON.

A row is a prefill of B prompts of PP tokens and TG steps of B tokens. The table names no model; the loading log above it does.
Source: ggml-org/llama.cpp tools/batched-bench/batched-bench.cpp and README.md, whose sample rows the tests have.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from plas_board.calibrate import llama_server
from plas_board.calibrate.figure import (
    Cells,
    Document,
    Figure,
    cells,
    cells_of,
    filled,
    named,
    positive,
    refuse,
    rule,
    whole,
)

NAME = "llama-batched-bench"
HEADER = {"PP", "TG", "B", "N_KV"}
COLUMNS = {"PP": "pp", "TG": "tg", "B": "pl", "N_KV": "n_kv", "S_PP t/s": "speed_pp", "S_TG t/s": "speed_tg"}
KEYS = {*COLUMNS.values()}
SETTING = re.compile(r"\b(n_ubatch|flash_attn|is_pp_shared|is_tg_separate) = (-?\w{1,10})")
SHARED = "sequences that share one prompt: its KV cache is read once for all of them"


def recognises(document: Document) -> bool:
    """A line that is the header of its table, or its keys in lines of JSON."""
    return bool(document.objects and document.objects[0].keys() >= KEYS) or has_table(document.text)


def has_table(text: str) -> bool:
    """Whether a line is the header of its table."""
    return any(_is_header(cells(line)) for line in text.splitlines())


def _is_header(names: Sequence[str]) -> bool:
    return set(names) >= HEADER


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """Two figures a row, a prefill and a step."""
    for document in documents:
        if document.objects and document.objects[0].keys() >= KEYS:
            loaded = llama_server.figure(document.text, NAME)
            for entry in document.objects:
                yield from _of_row(entry, loaded, entry)
        else:
            yield from of_text(document, {})


def of_text(document: Document, beside: Mapping[tuple[str, ...], Figure]) -> Iterator[Figure]:
    """Two figures a row of every table in a text, of the model that was loaded, or that its headings or another table under them name."""
    loaded, above, device = Figure(()), None, llama_server.figure(document.text, NAME).device
    for heads, part in document.segments():
        for text in llama_server.loads(part):
            own = llama_server.figure(text, NAME)
            if own.names:
                loaded, above = own, heads
            elif above is None or heads[len(heads) - len(above) :] != above:
                loaded, above = beside.get(heads, own), None
            model = replace(loaded, names=named(*loaded.names, *heads), device=loaded.device or device)
            settings = dict(SETTING.findall(text))
            for row in _rows(text):
                yield from _of_row(row, model, settings)


def _rows(text: str) -> Iterator[dict[str, str]]:
    """Rows of the tables by the keys of its lines of JSON."""
    header: list[str] = []
    for found in map(cells, text.splitlines()):
        if _is_header(found):
            header = found
        elif header and found and not rule(found):
            yield {COLUMNS[name]: cell for name, cell in zip(header, found, strict=False) if name in COLUMNS}
        elif header and not found:
            header = []


def _of_row(row: Mapping[str, Any], loaded: Figure, settings: Mapping[str, Any]) -> Iterator[Figure]:
    ubatch, flash = str(settings.get("n_ubatch", "512")), llama_server.ON.get(str(settings.get("flash_attn")), "")
    engine = str(loaded.cells.get("engine", "")).partition(",")[0]
    extra = [f"ubatch {ubatch}"] * (ubatch != "512") + [flash] * bool(flash)
    base = {**loaded.cells, "engine": ", ".join([engine, *extra])} if loaded.cells else {}
    yield from (filled(replace(loaded, cells=base), phase, row, settings) for phase in (_prefill, _step))


def _shape(row: Mapping[str, Any], settings: Mapping[str, Any]) -> tuple[int, int, int, bool]:
    """Prompt, output, sequences, and whether all share the prompt: by the setting, or by the cache that they need."""
    read, written, batch = whole(row.get("pp"), "PP"), whole(row.get("tg"), "TG"), whole(row.get("pl"), "B")
    kept = whole(row.get("n_kv"), "N_KV")
    shared = batch > 1 and (str(settings.get("is_pp_shared")) == "1" or kept == read + batch * written)
    refuse((batch < 1, "B: expected at least 1 sequence, got 0"))
    return read, written, batch, shared


def _prefill(row: Mapping[str, Any], settings: Mapping[str, Any]) -> Cells:
    prompt, _, batch, shared = _shape(row, settings)
    refuse((not prompt, "a test of no prompt"))
    return cells_of("prefill_tok_s", positive(row.get("speed_pp"), "S_PP"), prompt, batch=1 if shared else batch)


def _step(row: Mapping[str, Any], settings: Mapping[str, Any]) -> Cells:
    prompt, output, batch, shared = _shape(row, settings)
    apart = str(settings.get("is_tg_separate", "0")) == "1" and batch > 1
    refuse((not output, "a test of no output"), (shared, SHARED), (apart, "sequences one after another (-tgs)"))
    return cells_of("decode_tok_s", positive(row.get("speed_tg"), "S_TG"), prompt, output, batch=batch)
