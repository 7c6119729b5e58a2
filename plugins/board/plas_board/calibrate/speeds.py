"""Speeds that people publish as a table, as lines or as objects: headings, keys and units say what each number is.

A table is Markdown, a box, or CSV with commas, semicolons or tabs: a row a measurement, or a row a metric. A column may be of a length (`4k`), a format
(`8B Q4_K_M`) or a device. What the columns leave open, the caption and the headings above say: model, format, phase and tokens.
"""

import csv
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from itertools import pairwise, zip_longest
from typing import Any

from objectives.measured_formats import FORMATS
from objectives.published_models import models_named
from plas_board.calibrate.devices import VERSUS, chips
from plas_board.calibrate.figure import Cells, Document, Figure, cells, cells_of, filled, named, positive, refuse, rule

NAME = "table or lines of speeds"
SECOND = r"s(?:ec(?:onds?)?)?\b"
RATE = re.compile(
    rf"\b(?:toks?|tokens?|t|pp|tg)(?: ?\(s\))? ?(?:/|per|-per-) ?{SECOND}|\btps\b|\btok(?:en)?s? {SECOND}|\bper {SECOND}"
)
PER_TOKEN = re.compile(
    r"(?:/|per) ?(?:output )?(?:tok(?:en)?|t)\b|\btpot\b|\bitl\b|inter token|(?:next|other|2nd) token"
)
TIMES = {"us": 1e-3, "µs": 1e-3, "ms": 1.0, "milliseconds": 1.0, "s": 1e3, "sec": 1e3, "second": 1e3, "seconds": 1e3}
TIME = re.compile(rf"\b({'|'.join(TIMES)})\b")
TIMED = re.compile(r"\btime\b|ttft|tpot|\bitl\b|latency|duration|first token")
PREFILL = re.compile(r"\bpp\b|\bpp ?\d|prompt|prefill|ttft|first token|\binput\b|\bprocess(?:ing)?\b|\bisl\b|seqlen")
DECODE = re.compile(
    r"\btg\b|\btg ?\d|\bgen\b|generat|generier|predict|decod|\be?val\b|output|tpot|\bitl\b|\bosl\b|inter token|response|complet"
)
#: Numbers that are of both phases, of something else, or not the middle of repetitions.
OTHER = re.compile(
    r"\b(?:total|overall|combined|e2e|end to end|request|requests|req|power|watts?|energy|joules?|tokens? ?/ ?j|memory|mem|v?ram|load|init|startup|sampl\w+"
    r"|token(?:iz|is)ation|detoken\w+|speed ?up|gain|vs|cost|price|accuracy|ppl|perplexity|std\w*|sd|p\d\d|peak|min|max|vision|image|audio|cached|official)\b|[%$]"
)
TEST = re.compile(r"\b(pp|tg) ?(\d{1,6})?(?: ?@ ?d ?(\d{1,6}))?\b")
COUNT = re.compile(
    r"(?:prompt|predicted) n\b|\bn (?:prompt|gen|predict)|tokens?|toks?\b|length|\blen\b|seqlen|\b[io]sl\b|context|\bctx\b|depth"
)
BATCH = re.compile(r"batch|concurren|\bbs\b|\busers?\b|parallel|streams")
KINDS = {
    "model": r"(?:llm |base )?model(?:l| ?name| id| file| type)?|模型(?:名称)?|checkpoint",
    "size": r"(?:# ?)?(?:params?|parameters?)|model size|参数量",
    "format": r".*quant.*|.*precision.*|.*format.*|d(?:ata ?)?type|weights?|bits",
    "device": r"(?:\w+ )?(?:gpus?|device|hardware|hw|system|chip|soc|platforms?|board|machine|processor|cpu|accelerator|graphics card|cpu ?/ ?gpu|gerät)(?: name)?",
    "engine": r"engine|runtime|backend|framework|software|provider|method|api",
    "label": r"artifact|config(?:uration)?|variant|name|band|",
    "metric": r"metric|test|phase|stage|measure|指标",
    "cores": r"(?:gpu )?cores",
    "build": r"commit|build",
    "llama": r"llama 7b",  # of chips, in llama.cpp's discussion 4167, whose commands name models/llama-7b-v2
}
FORMAT = re.compile(
    r"(?<![a-z\d])(i?q\d_\w+|q4f16|q8|mxfp[48]|nvfp4|bf16|fp?16|fp?32|bfloat16|float16|fp8|awq|gptq|w8a8|w4a16|int[48]|[48][- ]?bit)(?![a-z\d])"
)
SPELT = {
    "awq": "int4_awq",
    "gptq": "int4_gptq",
    "w8a8": "int8",
    "bfloat16": "bf16",
    "float16": "fp16",
    "f16": "fp16",
    "f32": "fp32",
    "q8": "q8_0",
    "4bit": "w4",
    "q4f16": "int4_mlc",
    "q4f16_1": "int4_mlc",
    "q4f16_0": "int4_mlc",
}
NUMBER = r"(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,12}(?:[.,]\d{1,9})?)"
CELL = re.compile(rf"[~≈]? ?{NUMBER} ?(k)?(?: ?(?:±|\+/-) ?[\d.,]+)? ?([a-zµ/ ]{{0,24}})(?:/s)?")
PAIR = re.compile(
    rf"(?<![\w.,]){NUMBER}(?: ?± ?[\d.]+)? ?((?:ms|us|µs|s) ?/ ?(?:token|T)\b|(?:toks?|tokens?|T|t) ?(?:/|per) ?{SECOND}|tps\b|(?:{'|'.join(TIMES)})\b|tok(?:en)?s?\b)?(?![\w.])"
)
LENGTHS = (
    re.compile(
        r"(\d[\d,]{0,8})[ -](?:tokens? )?(?:prefill|prompt|input)\b|(?:\bisl|prompt|input)(?: length| len)?[ =:]+(\d{2,7})\b|-p (\d{2,6})\b"
    ),
    re.compile(
        r"(\d[\d,]{0,8})[ -](?:tokens? )?(?:decode|output|generat|new)|\bosl[ =:]+(\d{2,7})\b|generating (\d{1,7})|-n (\d{2,6})\b"
    ),
)
ENGINES = re.compile(
    r"llama\.?cpp|llama-bench|llama-cli|ollama|vllm|sglang|mlx|tensorrt[ -](?:edge[ -])?llm|litert-?lm|executorch|mlc|openvino|genie|fastflowlm|\bflm\b|exllama\w*"
    r"|lm ?studio|ax-llm|axera|ax6[35]0\w?|rkllm|rknn|onnx ?runtime|koboldcpp|\bmnn\b|hailo|\bqnn\b",
    re.IGNORECASE,
)
FLASH = re.compile(r"\b(?:with|\+) *(?:FA|flash attention)\b|\bFA *(?:=|on|enabled)|-fa 1\b", re.IGNORECASE)
UNKNOWN = "an unknown engine"
UNSTATED = 128  # tokens of a prompt and of an output that nobody states
LLAMA_BENCH = {"pp": 512, "tg": 128}
TIMED_AS = {"prefill_tok_s": "ttft_ms", "decode_tok_s": "tpot_ms"}
BOX = str.maketrans({"│": "|", "┃": "|", "║": "|"})
LONGEST_LINE, NEAREST, MOST = 4_000, 4, 4_000_000
MARKS = re.compile(r"^[#> \t]+|[*`]|[✅☑⭐🥇]")
HTML = (
    ("|", re.compile(r"\s{0,9}</t[dh]>\s{0,9}|<t[dh][^>]{0,80}>")),
    ("\n", re.compile(r"\s{0,9}<tr[^>]{0,80}>\s{0,9}")),
)
Row = list[tuple[str, str]]


@dataclass(frozen=True)
class Column:
    """What a heading or a key says of its numbers: their kind, phase, unit in ms (times), tokens and depth, whether of one token, what else it names."""

    kind: str = ""
    phase: str = ""
    ms: float = 0.0
    tokens: int = 0
    depth: int = 0
    per_token: bool = False
    bench: str = ""
    text: str = ""


@dataclass
class Stated:
    """What a row says: values by kind and phase, names by kind, tokens by phase."""

    values: list[tuple[Column, float]] = field(default_factory=list)
    names: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    tokens: dict[str, int] = field(default_factory=dict)
    batch: float = 1.0


def plain(text: str) -> str:
    """A heading in lower case, without marks, with one kind of bracket and blanks for underscores."""
    text = unicodedata.normalize("NFKC", re.sub(r"<[^>]{1,20}>|!?\[([^\]]{0,120})\]\([^)]{0,300}\)|[*`]", r"\1 ", text))
    return " ".join(re.sub(r"[_\[\](),:=-]+", " ", text.lower()).split())


@lru_cache(maxsize=4096)
def column(heading: str) -> Column:
    """The meaning of a heading; one without a kind says nothing that is read."""
    text = plain(heading)
    if kind := next((kind for kind, words in KINDS.items() if re.fullmatch(words, text)), ""):
        return Column(kind, text=heading)
    test = TEST.search(text)
    phase = _phase(text)
    shared: dict[str, Any] = {"phase": phase, "text": heading, "bench": test[1] if test else ""}
    if test:
        shared |= {"tokens": int(test[2] or 0), "depth": int(test[3] or 0)}
    if BATCH.search(text):
        return Column("batch", text=heading)
    if OTHER.search(text):
        return Column(text=heading)
    if RATE.search(text) or (test and not TIME.search(text) and not COUNT.search(text)):
        return Column("rate", **shared)
    unit = TIME.search(text)
    if phase and (unit or TIMED.search(text)):
        each = PER_TOKEN.search(text) is not None
        return Column("time", ms=TIMES[unit[1]] if unit else 0.0, per_token=each, **shared)
    speed = re.search(r"\bspeed\b|throughput|\brate\b", text)
    if COUNT.search(text) and not speed:
        return Column(
            "tokens", **shared | {"phase": phase or ("prefill" if re.search("context|ctx|depth", text) else "decode")}
        )
    if re.fullmatch(r"\d{1,3}k|\d{3,6}", text):
        return Column("length", tokens=round(_number(text)[0] or 0), text=heading)
    if re.fullmatch(r"(?:\d{1,3}(?:\.\d)?b)?[ ,]*(?:i?q\d\w*(?: \w){0,2}|b?f16)?(?: speed)?", text) or chips(text):
        return Column("open", **shared)
    return Column("speed" if speed else "", **shared)


def _number(cell: str) -> tuple[float | None, str]:
    """The number of a cell, thousands and decimals as people part them, and the unit beside it."""
    match = CELL.fullmatch(unicodedata.normalize("NFKC", re.sub(r"[*`]|<[^>]{1,20}>", "", cell)).strip().lower())
    if match is None:
        return None, ""
    thousands = re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", match[1])
    digits = match[1].replace(",", "" if thousands else ".")
    thousand = 1 if not match[2] else 1000 if match[3].strip() or "." in digits else 1024
    return float(digits) * thousand, match[3].strip()


def recognises(document: Document) -> bool:
    """A table, a line or an object with a speed, that is no measured CSV and no file of ours."""
    return not {"metric", "loss"} & {name.lower() for name in document.header} and any(
        stated.values for *_, stated in _stated(document)
    )


def why_unread(document: Document) -> str:
    """What a document is that has no speed: its columns or keys, or how it begins."""
    first = next((line.strip() for line in document.text.splitlines() if line.strip()), "")
    if first[:1] in ("{", "[") and document.json is None and not document.objects:
        return "JSON that is not whole"
    tables = [rows[0] for _, part in document.segments() for _, rows in _tables(part)]
    names = [name for row in document.objects[:1] for name, _ in next(_flat(row, []), [])] or next(iter(tables), [])
    if not names:
        return f"text that begins {first[:40]!r}, without a table, and without a line of tokens per second or of the time of a phase"
    listed = ", ".join(plain_link(name)[:30] for name in names[:8]) + ", …" * (len(names) > 8)
    return f"{'keys' if document.objects else 'a table of'} {listed}, of which none is a speed, or a phase's time with its unit"


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """A figure of every speed, or why it is none."""
    for document in documents:
        for above, stated in _stated(document):
            yield from _figures(stated, above)


def _stated(document: Document) -> Iterator[tuple[Sequence[str], Stated]]:
    """What each row, line or object says, with the lines above it that matter, the nearest first."""
    if len(document.text) > MOST:
        return
    rows = [(list[str](), row) for entry in document.objects for row in _flat(entry, [])] or [
        ([*caption, *heads], row)
        for heads, part in document.segments()
        for caption, table in _tables(part)
        for row in _rows(table)
    ]
    read = [(above, _read(row, " ".join(above))) for above, row in rows]
    yield from [pair for pair in read if pair[1].values] or _of_lines(document)


def _tables(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Tables of a text, header first, each with the lines before it, the nearest first."""
    before: list[str] = []
    rows: list[list[str]] = []
    for mark, pattern in HTML:
        text = pattern.sub(mark, text) if "<tr" in text else text
    lines = [line for line in text.translate(BOX).replace("||", "|").splitlines() if len(line) < LONGEST_LINE]
    for line, after in pairwise([*lines, "", ""]):
        row = _cells(line, after if not rows else "", len(rows[0]) if rows else 0)
        if row and not (rule(row) or set("".join(row)) <= set("─┼├┤ -:+")):
            rows.append(row)
        elif not row and rows and not re.match(r"[├┌└╞]", line.strip()):
            yield before[::-1][:NEAREST], rows
            before, rows = [], []
        if not row and line.strip() and not rows:
            before.append(MARKS.sub("", line).strip())
    if rows:
        yield before[::-1][:NEAREST], rows


def _cells(line: str, after: str, width: int) -> list[str]:
    """Cells of a line: between bars; else parted as CSV, where the next line or the header has as many."""
    if between := cells(line):
        return between
    for mark in ("|", ",", ";", "\t", "  "):
        parts = _parted(line, mark) if mark in line else []
        kinds = [bool(column(part).kind) for part in parts] if not width else []
        header = any(kinds) if len(parts) > 2 else mark != "  " and all(kinds)
        if len(parts) > 1 and len(parts) == (width or len(_parted(after, mark))) and (width or header):
            return parts
    return []


def _parted(line: str, mark: str) -> list[str]:
    """Parts of a line between marks, or between two blanks and more."""
    if mark == "  ":
        return re.split(r" {2,}|\t", line.strip())
    return [part.strip(" *`") for part in next(csv.reader([line], delimiter=mark), [])]


def _rows(rows: Sequence[Sequence[str]]) -> Iterator[Row]:
    """Rows as headings and cells; of a table whose first column holds the headings, its other columns."""
    header, body = rows[0], rows[1:]
    speeds = any(column(name).kind in ("rate", "time", "open", "length", "speed") for name in header[1:])
    if not speeds and any(column(row[0]).kind in ("rate", "time") for row in body):
        for at, name in enumerate(header[1:], start=1):
            own = [] if re.fullmatch("value|result|measured|avg|mean|average", plain(name)) else [("label", name)]
            yield own + [(row[0], row[at]) for row in body if len(row) > at]
        return
    stating = {column(name).kind for name in header} & {"rate", "time", "speed"}
    last: dict[str, str] = {}
    for row in body:
        pairs = list(zip(header, row, strict=False))
        last |= {name: cell for name, cell in pairs if column(name).kind == "model" and cell.strip()}
        tests = [cell for name, cell in pairs if column(name).kind == "metric"]
        kinds = stating or {""} if tests else set()
        yield [
            (" ".join([*tests, name]) if column(name).kind in kinds else name, cell or last.get(name, ""))
            for name, cell in pairs
        ]


def _flat(entry: Mapping[str, Any], above: Row) -> Iterator[Row]:
    """An object as rows: what holds others gives each of them what it says itself."""
    own, lists = list(above), list[Mapping[str, Any]]()
    for name, value in entry.items():
        if isinstance(value, Mapping) and "value" in value:
            own.append((name, f"{value['value']} {value.get('unit', '')}"))
        elif isinstance(value, Mapping):
            inner = list(_flat(value, []))
            own += inner[0] if len(inner) == 1 else []
            lists += [value] if len(inner) > 1 else []
        elif isinstance(value, list):
            lists += [part for part in value if isinstance(part, Mapping)]
        elif isinstance(value, int | float | str) and not isinstance(value, bool):
            own.append((name, str(value)))
    if not lists:
        yield own
    for part in lists[:10_000]:
        yield from _flat(part, own)


def _read(row: Row, above: str) -> Stated:
    """A row's values; a heading that leaves phase or unit open has those of the caption."""
    stated = Stated()
    ours = any(plain(heading) == "loss" for heading, _ in row)  # designs of a run, whose times are predicted
    for heading, cell in () if ours else row:
        of = column(heading)
        number, unit = _number(cell)
        if of.kind in KINDS:
            stated.names[of.kind].append(plain_link(cell))
        if of.kind in ("length", "open", "speed") or (of.kind == "" and of.phase):
            caption = column(reduce(lambda text, lengths: lengths.sub("", text), LENGTHS, above.lower()))
            words = f"{heading} {unit}" if of.kind == "speed" or not of.kind else above
            rate = RATE.search(plain(words)) or (of.kind == "open" and RATE.search(unit))
            phase, depth = of.phase or caption.phase or "decode", of.tokens if of.kind == "length" else of.depth
            of = replace(of, kind="rate" if rate else "", phase=phase, depth=depth)
        if number is None or not number > 0:
            continue
        if of.kind == "time" and (beside := TIME.search(unit)):
            of = replace(of, ms=TIMES[beside[1]])
        if of.kind == "tokens":
            stated.tokens.setdefault(of.phase, round(number))
        elif of.kind == "batch":
            stated.batch = number
        elif of.kind == "rate" or (of.kind == "time" and of.ms):
            stated.values.append((replace(of, phase=of.phase or "decode"), number))
    return stated


def _of_lines(document: Document) -> Iterator[tuple[Sequence[str], Stated]]:
    """Lines of keys, numbers and units: what follows until a phase comes again is one measurement."""
    for heads, part in document.segments():
        stated, above = Stated(), list[str]()
        for line in part.splitlines():
            read = _of_line(line[:LONGEST_LINE])
            phases = {of.phase for of, _ in stated.values if of.kind == "rate"}
            if phases & {of.phase for of, _ in read.values if of.kind == "rate"}:
                yield [*above[::-1], *heads], stated
                stated = Stated(tokens={}, batch=stated.batch, names=stated.names)
            stated.values += read.values
            stated.tokens, stated.batch = read.tokens | stated.tokens, max(stated.batch, read.batch)
            above = [*above, line.strip()][-40:] if line.strip() and not read.values else above
        if stated.values:
            yield [*above[::-1], *heads], stated


def _of_line(line: str) -> Stated:
    """A line's numbers, each by the words before it; of one without words by those of the number before, else by the words after."""
    stated, end, phase = Stated(), 0, ""
    matches = list(PAIR.finditer(line))
    for match, after in zip_longest(matches, matches[1:]):
        key, unit = line[end : match.start()], match[2] or ""
        words = plain(f"{key} {unit}")
        end = match.end()
        if not _phase(words):
            words += f" {phase or line[end : after.start() if after else len(line)] if unit else ''}"
        phase = _phase(words) or phase
        if unit or column(words).kind in ("tokens", "batch") or re.search(r"[:=] *$", key):
            read = _read([(words, f"{match[1]} {unit}")], "")
            stated.values += read.values
            stated.tokens, stated.batch = read.tokens | stated.tokens, max(stated.batch, read.batch)
    return stated


def _phase(words: str) -> str:
    return "prefill" if PREFILL.search(words) else "decode" if DECODE.search(words) else ""


@lru_cache(maxsize=4096)
def mentioned(text: str, size: str = "") -> str:
    """The longest run of words in a text that names a published model, with a size beside it where one is given."""
    words = re.findall(r"[\w.:+-]*\w", re.sub(r"[-_](?:exl[23]|ov|onnx)\b\S*|\.json\b", "", MARKS.sub("", text)))[:60]
    runs = (" ".join(words[at : at + n]) for n in (4, 3, 2, 1) for at in range(len(words) - n + 1))
    return next((run for run in runs if re.search(r"\d", run + size) and models_named(f"{run} {size}".strip())), "")


def stated_format(*texts: str) -> str:
    """The weight format that the first of the texts which has one names, "" where none does."""
    for text in texts:
        if (match := FORMAT.search(text.lower().replace("int4-awq", "awq"))) and not re.search(r"(?i)\bkv\b", text):
            spelt = re.sub(r"[- ]", "", match[1]).replace("_xl", "_m")
            return SPELT.get(spelt, spelt) if SPELT.get(spelt, spelt) in FORMATS else ""
    return ""


def _figures(stated: Stated, above: Sequence[str]) -> Iterator[Figure]:
    """The first speed of each phase, a rate before a time; every test of its own length."""
    done: set[tuple[str, str]] = set()
    several = "several sequences at once: whether the speed is of all or of each is not stated"
    drafts = re.search(r"speculat|\bmtp\b|draft", " ".join(stated.names["label"]))
    for of, value in sorted(stated.values, key=_rank):
        place = (of.phase, of.text if of.tokens or of.depth or chips(of.text) or FORMAT.search(of.text.lower()) else "")
        if place in done or ((of.kind == "time" or not place[1]) and any(phase == of.phase for phase, _ in done)):
            continue
        done.add(place)
        names, device = _model(stated, of, above), _device(stated, of)
        fault = several if stated.batch > 1 else "drafted tokens" * bool(drafts)
        yield filled(Figure(names, device=device, fault=fault), _measured, stated, of, value, above)


def _rank(pair: tuple[Column, float]) -> tuple[int, bool]:
    """Rates first, then times; a throughput, which has the first token in it, last."""
    return 2 * (pair[0].kind != "rate") + 3 * ("throughput" in pair[0].text.lower()), not pair[0].per_token


def _model(stated: Stated, of: Column, above: Sequence[str]) -> tuple[str, ...]:
    """The names of a row's model: of its column, with the size beside it, else of the headings above."""
    names = stated.names
    size = next(iter([*names["size"], *re.findall(r"^\d[\d.]*[bB]\b", of.text)]), "")
    if names["model"] or names["llama"]:
        name = re.sub(r" \([^)]*\)$", "", next(reversed(names["model"]), "Llama-2-7B"))
        name = name if re.search(r"\d[bB]\b", name) else f"{name} {size}".strip()
        return named(re.sub(r"(?<=\d)\.0(?![.\d])", "", name))
    run = next((run for text in (*names["label"], *above) if (run := mentioned(text, size))), "")
    return named(f"{run} {size}".strip()) if run else ()


def _device(stated: Stated, of: Column) -> str:
    """The device of a row or of a column; Apple's chips are told apart by their GPU cores."""
    names = stated.names
    own = " ".join(names["device"] or names["llama"] or filter(chips, [*names["label"], of.text]))
    apple = f"Apple {own} ({names['cores'][0]}-core GPU)" if names["cores"] and names["llama"] else own
    return next(iter(named(apple)), "")


def plain_link(text: str) -> str:
    """A cell without the addresses of its links and its marks."""
    return MARKS.sub("", re.sub(r"\[([^\]]*)\]\([^)]*\)|<[^>]{1,20}>.{0,3}?</[^>]{1,20}>", r"\1", text)).strip()


def _measured(stated: Stated, of: Column, value: float, above: Sequence[str]) -> Cells:
    """Metric, lengths, engine and format of a speed.

    Raises:
        Unusable: a prompt of unknown length, or a time without the tokens that it took.
    """
    names, caption = stated.names, " ".join(above)
    texts = [*names["format"], of.text, *names["model"], *names["label"], *above]
    phases = enumerate(("prefill", "decode"))
    prompt, written = (stated.tokens.get(p) or _length(caption, at) or _product(stated, p) for at, p in phases)
    alone = [line for line in above if not VERSUS.search(line.lower())]
    programs = ENGINES.findall(" ".join([*names["device"], *alone]).lower())
    engine = " ".join(names["engine"]) or next(
        iter(programs), "llama-bench" if of.bench and (of.tokens or names["llama"]) else UNKNOWN
    )
    engine += "".join(f" {build}" for build in names["build"]) + ", fa" * any(map(FLASH.search, above))
    engine += "".join(f", groups of {n}" for n in re.findall(r"_g(\d{2,3})\b", " ".join(names["format"])))
    if of.phase == "prefill":
        metric, before, output = "prefill_tok_s", of.tokens or prompt or LLAMA_BENCH.get(of.bench, 0), 0
        refuse((not before, "tokens of the prompt are not stated"))
        took = of.ms * (before if of.per_token else 1)
    else:
        refuse((of.kind == "time" and not of.per_token and not written, "tokens of the output are not stated"))
        unstated = not of.bench and not prompt and not of.depth
        engine += ", lengths not stated" * unstated
        before = of.depth or (0 if of.bench and of.tokens else prompt) or UNSTATED * unstated
        output = of.tokens * bool(of.bench) or written or LLAMA_BENCH.get(of.bench, UNSTATED)
        metric, took = "decode_tok_s", of.ms / (written if of.kind == "time" and not of.per_token else 1)
    if of.kind == "time":
        metric, value = TIMED_AS[metric], value * took
    cells = cells_of(metric, positive(value, of.text), before, output)
    return {**cells, "engine": next(iter(named(engine))), "precision": stated_format(*texts)}


def _product(stated: Stated, phase: str) -> int:
    """Tokens of a phase as its rate times its time, 0 where one of them is not stated."""
    own = [(of.kind, v * (of.ms or 1.0)) for of, v in stated.values if of.phase == phase and not of.per_token]
    rates, times = ([v for called, v in own if called == kind] for kind in ("rate", "time"))
    return round(rates[0] * times[0] / 1e3) if rates and times else 0


def _length(text: str, at: int) -> int:
    """Tokens of a prompt (0) or of an output (1) that a caption states."""
    match = LENGTHS[at].search(text.lower())
    return int(next(filter(None, match.groups())).replace(",", "")) if match else 0
