"""OpenVINO GenAI's llm_bench: the lines that every iteration logs, with the model that the command line names.

Samples: https://github.com/openvinotoolkit/openvino.genai/pull/336 (two sequences), https://github.com/openvinotoolkit/openvino.genai/issues/494.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import PureWindowsPath

from plas_board.calibrate.figure import Cells, Document, Figure, cells_of, filled, named, positive, refuse

NAME = "OpenVINO llm_bench"
SIZES = re.compile(r"\]\[?(?:P\d{1,4}\])? ?Input token size: (\d{1,9}), Output size: (\d{1,9})")
FIRST = re.compile(r"First token latency: (\d{1,12}\.\d{1,6}) ms(?:/(\d{0,6})tokens?)?")
OTHERS = re.compile(r"other tokens latency: (\d{1,12}\.\d{1,6}) ms")
MODEL = re.compile(r"benchmark\.py\b.{0,400}?\s(?:-m|--model)[ =](\S{1,300})")
DTYPE = re.compile(r"\b(FP16|BF16|FP32|INT8|INT4)\b", re.IGNORECASE)
PLAIN_FOLDERS = {"pytorch", "dldt", "optimum", "ov", "genai", "fp16", "bf16", "fp32", "int8", "int4"}


def recognises(document: Document) -> bool:
    """A line with both sizes, and one with the first token's time."""
    return SIZES.search(document.text) is not None and FIRST.search(document.text) is not None


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """The first token and the mean of the others of every iteration."""
    for document in documents:
        names, precision, sizes = named(), "", ("0", "0")
        for line in document.text.splitlines():
            if match := MODEL.search(line):
                names, precision = _model(match[1])
            if match := SIZES.search(line):
                sizes = match[1], match[2]
            if match := FIRST.search(line):
                first, others = match, OTHERS.search(line)
                base = Figure(names, {"engine": "OpenVINO", "precision": precision})
                for measured in (_first_token, _step):
                    yield filled(base, measured, sizes, first, others, warm="warm-up" in line)


def _model(path: str) -> tuple[tuple[str, ...], str]:
    """The names of a model's folder, `models/llama-2-7b-chat/pytorch/dldt/FP16`, and its weight format."""
    parts = [part for part in PureWindowsPath(path.strip("'\"")).parts if part.lower() not in PLAIN_FOLDERS]
    dtype = DTYPE.search(path.replace("_", "-"))
    names = named(*parts[-1:], *(part.removesuffix("-ov") for part in parts[-1:]))
    return names, dtype[1].lower() if dtype else ""


def _first_token(sizes: tuple[str, str], first: re.Match[str], _: re.Match[str] | None, *, warm: bool) -> Cells:
    """One of an iteration; sizes are of all sequences together."""
    batch = max(int(first[2] or 1), 1)
    prompt = int(sizes[0]) // batch
    refuse((warm, "a warm-up"), (not prompt, "no prompt"))
    return cells_of("prefill_ms", positive(first[1], "First token latency"), prompt, batch=batch)


def _step(sizes: tuple[str, str], first: re.Match[str], others: re.Match[str] | None, *, warm: bool) -> Cells:
    cells = _first_token(sizes, first, others, warm=warm)
    output = int(sizes[1]) // int(cells["batch"])
    refuse((output < 2, "an output of one token"), (others is None, "the time of other tokens is not stated"))
    ms = positive(others[1] if others else None, "other tokens latency")
    return {**cells, "metric": "tpot_ms", "value": ms, "gen_len": output - 1}
