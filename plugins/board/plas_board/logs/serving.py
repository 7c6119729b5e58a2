"""The block that `vllm bench serve`, its forerunner benchmark_serving.py and SGLang's bench_serving print at the end.

Read where requests came one at a time: medians of first token and step, at the mean lengths. The model is that of the command or of its
arguments above the block. Source: vllm-project/vllm vllm/benchmarks/serve.py; samples in its pull requests 18566, 33743 and 23867.
"""

import re
from collections.abc import Iterator, Sequence

from plas_board.calibrate.figure import Document, Figure, filled, named
from plas_board.logs.vllm import SERVED, mean_request

NAME = "serving benchmark"
#: A block to its last line, or to where it is cut.
BLOCK = re.compile(
    r"=+ Serving Benchmark Result =+\n(.{1,4000}?)(?=\n={20,}|\n=+ Serving|\n\s*(?:\n|```)|\s*\Z)", re.DOTALL
)
LINE = re.compile(r"^\s*([A-Za-z][\w ().,/-]{2,60}?): +(\S{1,40})\s*$", re.MULTILINE)
MODEL = re.compile(r"(?:--(?:model|served-model-name)[ =]|\bmodel(?:_id)?=)['\"]?([\w./:-]{2,200})")
CONCURRENCY = re.compile(r"(?:--max-concurrency[ =]|\bmax_concurrency=)(\d{1,6})\b")
COUNTS = ("Successful requests", "Total input tokens", "Total generated tokens")
ALONE = ("Maximum request concurrency", "Max request concurrency", "Peak concurrent requests")


def recognises(document: Document) -> bool:
    """Such a block."""
    return BLOCK.search(document.text) is not None


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """First token and step of every block."""
    for document in documents:
        for heads, part in document.segments():
            end = 0
            for block in BLOCK.finditer(part):
                before, end = part[end : block.start()], block.end()
                names = named(*MODEL.findall(before)[-1:], *heads)
                yield from _of_block(block[1], before, names)


def _of_block(text: str, before: str, names: tuple[str, ...]) -> Iterator[Figure]:
    lines = dict(LINE.findall(text))
    engine = "SGLang server" if lines.get("Backend", "").startswith("sglang") else "vLLM server"
    asked = [*(lines.get(name) for name in ALONE), *CONCURRENCY.findall(before)[-1:]]
    alone = any(number in ("1", "1.0", "1.00") for number in asked)
    for metric, line in (("ttft_ms", "Median TTFT (ms)"), ("tpot_ms", "Median TPOT (ms)")):
        base = Figure(names, {"engine": engine, "precision": ""}, fault="" if alone else SERVED)
        yield filled(base, mean_request, metric, lines, line, *COUNTS)
