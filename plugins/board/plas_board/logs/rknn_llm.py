"""Tables of airockchip/rknn-llm's benchmark.md and README: a row a model and format, under the platform's heading or with a column of it.

Source: airockchip/rknn-llm benchmark.md at commit 878f9361; `w4a16_g128` has a scale for every 128 weights and is calibrated apart.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from plas_board.calibrate.figure import Document, Figure, Unusable, cells, named, positive, refuse, rule, whole

NAME = "rknn-llm table"
NEEDED = {"dtype", "seqlen", "new_tokens", "ttft(ms)", "tokens/s"}
PLATFORM = re.compile(r"\b(r[kv]\d{4}\w?)\b", re.IGNORECASE)
DTYPES = {"w8a8": "int8", "w4a16": "w4a16"}
IMAGES = "a stage of a model that reads images"


def recognises(document: Document) -> bool:
    """A line that is the header of such a table."""
    return any(_columns(cells(line)) >= NEEDED for line in document.text.splitlines())


def _columns(header: Sequence[str]) -> set[str]:
    return {name.lower() for name in header}


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """Prefill and decoding of every row; stages of models that read images are counted."""
    for document in documents:
        for heads, part in document.segments():
            header, model = list[str](), ""
            for line in part.splitlines():
                row = cells(line)
                if _columns(row) >= NEEDED or {"model", "stage"} <= _columns(row):
                    header, model = [name.lower() for name in row], ""
                elif header and row and not rule(row):
                    entry = dict(zip_longest(header, row[: len(header)], fillvalue=""))
                    model = entry.get("model") or entry.get("llm model") or model
                    yield from _of_row(entry, model, heads)
                header = header if row else []


def _of_row(entry: Mapping[str, str], model: str, heads: Sequence[str]) -> Iterator[Figure]:
    if "stage" in entry:
        yield Figure(named(model), fault=IMAGES)
        return
    names = named(f"{model} {entry.get('model size', '')}".strip())
    place = " ".join([entry.get("platform", entry.get("platforms", "")), *heads[:1]])
    device = next(iter(PLATFORM.findall(place)), "")
    dtype, _, group = entry["dtype"].lower().partition("_g")
    engine = NAME.removesuffix(" table") + f", groups of {group}" * bool(group)
    read, written = entry["seqlen"], entry["new_tokens"]
    for metric, column, output in (("prefill_ms", "ttft(ms)", "0"), ("decode_tok_s", "tokens/s", written)):
        try:
            refuse([(dtype not in DTYPES, f"weights in {dtype!r}: no profile is of that format")])
            lengths = {"batch": 1, "prompt_len": whole(read, "Seqlen"), "gen_len": whole(output, "New_tokens")}
            shared: dict[str, str | float] = {"engine": engine, "precision": DTYPES[dtype], **lengths}
            yield Figure(names, {"metric": metric, "value": positive(entry[column], column), **shared}, device=device)
        except Unusable as error:
            yield Figure(names, device=device, fault=str(error))
