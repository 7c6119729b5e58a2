"""ExecuTorch's runners: the line `PyTorchObserver {...}` that follows a request, with its times of day.

Samples: https://github.com/pytorch/executorch/pull/7175, https://github.com/pytorch/executorch/pull/2776.
Source: pytorch/executorch extension/llm/runner/stats.h.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import PureWindowsPath

from objectives import outside
from plas_board.calibrate.figure import (
    Cells,
    Document,
    Figure,
    Unusable,
    cells_of,
    filled,
    named,
    number,
    positive,
    refuse,
    whole,
)

NAME = "ExecuTorch"
LINE = re.compile(r"PyTorchObserver (\{[^{}\n]{1,2000}\})")
MODEL = re.compile(r"([\w./\\-]{1,200})\.pte\b")
PHASES = {"prefill": ("inference_start_ms", "prompt_eval_end_ms"), "decode": ("first_token_ms", "inference_end_ms")}


def recognises(document: Document) -> bool:
    """Such a line."""
    return LINE.search(document.text) is not None


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """A prefill and the mean step of every request."""
    for document in documents:
        model = ""
        for line in document.text.splitlines():
            if ".pte" in line:
                model = next((PureWindowsPath(name).name for name in MODEL.findall(line)), model)
            if match := LINE.search(line):
                base = Figure(named(model), {"engine": NAME, "precision": ""})
                yield from (filled(base, _measured, match[1], phase) for phase in PHASES)


def _measured(text: str, phase: str) -> Cells:
    try:
        observed = outside.parsed(text)
    except ValueError:
        raise Unusable("a line that is no JSON") from None
    refuse((not isinstance(observed, dict), "a line that is no JSON object"))
    start, end = (number(observed.get(key), key) for key in PHASES[phase])
    per_second = positive(observed.get("SCALING_FACTOR_UNITS_PER_SECOND", 1000), "SCALING_FACTOR_UNITS_PER_SECOND")
    prompt, output = (whole(observed.get(key), key) for key in ("prompt_tokens", "generated_tokens"))
    ms = positive(max(end - start, 0.0) * 1e3 / per_second, phase)
    if phase == "prefill":
        return cells_of("prefill_ms", ms, prompt)
    refuse((not output, "no tokens were generated"))
    return cells_of("tpot_ms", ms / output, prompt, output)
