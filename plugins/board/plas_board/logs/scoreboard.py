"""Scoreboards of llama.cpp's discussions: a table with a row for each chip, prefills and decodings of one model as columns.

Rows are of `llama-bench` at its default lengths where columns do not say others; the model stands in the heading (`… for Llama 2 7B, Q4_0`), in the
command above the table or in its first column's name. Source: ggml-org/llama.cpp discussions 4167 (Apple), 10879 (Vulkan), 15013 (CUDA), 15021 (ROCm).
"""

import re
from collections.abc import Iterator, Sequence

from plas_board.calibrate.figure import Document, Figure, Unusable, cells, named, positive, precision, refuse, rule

NAME = "llama.cpp scoreboard"
CHIP = re.compile(r"chip|gpu|device|soc|hardware|(?:llama|qwen|gemma).*", re.IGNORECASE)
TEST = re.compile(
    r"(?:(I?Q\d\w*|B?F16|MXFP4)[ ,]+)?(pp|tg) ?(\d{1,6})?(?: *(?:\[t/s\]|\(t/s\)|t/s|tok/s))?", re.IGNORECASE
)
DEFAULT = {"pp": "512", "tg": "128"}
COLUMN_MODELS = {"llama 7b": "Llama-2-7B"}  # of discussion 4167, whose commands name models/llama-7b-v2
VALUE = re.compile(r"(\d{1,3}(?:,\d{3})+|\d{1,9})(\.\d{1,6})?(?: *± *\d{1,9}(?:\.\d{1,6})?)?")
MODEL = re.compile(r"\bfor ([^,|()\n]{3,60}?), *(I?Q\d\w*|B?F16|MXFP4)\b", re.IGNORECASE)
FILE = re.compile(r"\s-m +(?:\S*/)?([^\s/]{1,150})\.gguf")
FLASH = re.compile(r"\b(?:with|\+) *(?:FA|flash attention)\b|\bFA *(?:=|on|enabled)|-fa 1\b", re.IGNORECASE)
NOISE = re.compile(r"<sup>.{0,20}?</sup>|<[^>]{1,20}>|[^\w\s()/.,+@-]")
SEVERAL = re.compile(r"^\s*[2-9]\d? ?[x×] |\b[x×] ?[2-9]\b", re.IGNORECASE)


def recognises(document: Document) -> bool:
    """A line that is the header of such a table."""
    return any(_header(_cells(line)) for line in document.text.splitlines())


def _cells(line: str) -> list[str]:
    """Cells without the line breaks that a header has."""
    return cells(line.replace("<br>", " "))


def _header(names: Sequence[str]) -> bool:
    """A column of chips first, and rates of both phases."""
    kinds = {match[2].lower() for name in names[1:] if (match := TEST.fullmatch(name.strip()))}
    return kinds == {"pp", "tg"} and CHIP.fullmatch(names[0]) is not None


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """Every rate of every chip."""
    for document in documents:
        for heads, part in document.segments():
            header: list[str] = []
            models = dict.fromkeys(FILE.findall(part))
            for line in part.splitlines():
                row = _cells(line)
                if _header(row):
                    header = row
                elif header and row and not rule(row):
                    yield from _of_chip(header, row, heads, list(models), document.text)
                header = header if row else []


def _of_chip(
    header: Sequence[str], row: Sequence[str], heads: Sequence[str], models: Sequence[str], text: str
) -> Iterator[Figure]:
    columns = {name.lower(): cell for name, cell in zip(header, row, strict=False)}
    chip = " ".join(NOISE.sub(" ", row[0]).split())
    cores = columns.get("gpu cores", "").strip()
    device = next(iter(named(f"Apple {chip} ({cores}-core GPU)" if cores else chip)), "")
    stated = next((match for head in (*heads, text[:4000]) if (match := MODEL.search(head))), None)
    given = named(stated[1]) if stated else named(*models) if len(models) == 1 else ()
    flash = ", fa" * any(FLASH.search(head) for head in heads)
    engine = f"llama-bench {columns.get('commit', '').strip('`') or 'of an unknown build'}{flash}"
    for name, cell in zip(header[1:], row[1:], strict=False):
        test = TEST.fullmatch(name.strip())
        if test is None:
            continue
        names = given or named(COLUMN_MODELS.get(header[0].lower(), "")) or named(*heads)
        try:
            value = VALUE.fullmatch(cell.strip())
            refuse([(value is None, "no figure in this column"), (SEVERAL.search(chip), "several GPUs at once")])
            rate = positive((value[1].replace(",", "") + (value[2] or "")) if value else "", name)
            written = precision((test[1] or (stated[2] if stated else "")).lower())
            tokens, prefill = int(test[3] or DEFAULT[test[2].lower()]), test[2].lower() == "pp"
            lengths: dict[str, str | float] = (
                {"prompt_len": tokens, "gen_len": 0} if prefill else {"prompt_len": 0, "gen_len": tokens}
            )
            metric = "prefill_tok_s" if prefill else "decode_tok_s"
            shared: dict[str, str | float] = {"engine": engine, "precision": written, "batch": 1}
            yield Figure(names, {"metric": metric, "value": rate, **shared, **lengths}, device=device)
        except Unusable as error:
            yield Figure(names, device=device, fault=str(error))
