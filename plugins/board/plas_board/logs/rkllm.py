"""Rockchip's RKLLM runtime with RKLLM_LOG_LEVEL=1: its table of stages after every request.

Samples: https://huggingface.co/happyme531/Qwen2.5-VL-3B-Instruct-RKLLM (runtime 1.2.1) and https://github.com/N-E-W-T-O-N/Orpheus-RKLLM.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plas_board.calibrate.figure import Cells, Document, Figure, cells_of, filled, named, positive, refuse, whole

NAME = "RKLLM"
HEADER = re.compile(r"Stage +Total Time \(ms\) +Tokens +Time per Token \(ms\)")
STAGE = re.compile(r"\b(Prefill|Generate) +(\d{1,12}\.\d{1,6}) +(\d{1,9})\b")
MODEL = re.compile(r"([\w.-]{1,150})\.rkllm\b")
FORMAT = re.compile(r"[-_](w8a8|w4a16)", re.IGNORECASE)
RUNTIME = re.compile(r"rkllm-runtime version: ([\d.]{1,20})(?:.{0,80}?platform: (\w{1,20}))?")
DTYPE = re.compile(r"model_dtype: (W8A8|W4A16)\b")
PRECISIONS = {"w8a8": "int8", "w4a16": "w4a16"}
PLATFORM = re.compile(r"[-_](rk\d{4}\w?|rv\d{4}\w?)\b|[-_](?:opt|hybrid|ratio)\b.*", re.IGNORECASE)


def recognises(document: Document) -> bool:
    """The header of its table."""
    return HEADER.search(document.text) is not None


@dataclass
class Loaded:
    """The file's name, its weight format, the board, the runtime, and the tokens of the prompt that was read last."""

    model: str = ""
    precision: str = ""
    board: str = ""
    engine: str = NAME
    read: int = 0

    def see(self, line: str) -> None:
        """Take from a line what it says."""
        if ".rkllm" in line and (file := MODEL.search(line)):
            self.model, named_format = file[1], FORMAT.search(file[1])
            self.precision = PRECISIONS[named_format[1].lower()] if named_format else self.precision
        if dtype := DTYPE.search(line):
            self.precision = PRECISIONS[dtype[1].lower()]
        if runtime := RUNTIME.search(line):
            self.engine, self.board = f"{NAME} {runtime[1]}", runtime[2] or self.board


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """A prefill and the mean step of every table."""
    for document in documents:
        loaded = Loaded()
        for line in document.text.splitlines():
            loaded.see(line)
            if match := STAGE.search(line):
                loaded.read = int(match[3]) if match[1] == "Prefill" else loaded.read
                names = named(loaded.model, PLATFORM.sub("", FORMAT.sub("", loaded.model)))
                engine: Cells = {"engine": loaded.engine, "precision": loaded.precision}
                yield filled(Figure(names, engine, device=loaded.board), _measured, match, loaded.read)


def _measured(stage: re.Match[str], prompt: int) -> Cells:
    ms, tokens = positive(stage[2], "Total Time"), whole(stage[3], "Tokens")
    refuse((not tokens, "no tokens"))
    decoded = stage[1] == "Generate"
    return cells_of("tpot_ms", ms / tokens, prompt, tokens) if decoded else cells_of("prefill_ms", ms, prompt)
