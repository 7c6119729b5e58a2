"""ExecuTorch's runners: the line `PyTorchObserver {...}` that follows a request, with its times of day.

Samples: https://github.com/pytorch/executorch/pull/7175, https://github.com/pytorch/executorch/pull/2776.
Source: pytorch/executorch extension/llm/runner/stats.h.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import PureWindowsPath
from typing import Any

from objectives import outside
from plas_board.calibrate.figure import Document, Figure, Unusable, named, number, positive, refuse, whole

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
                for phase in PHASES:
                    yield _figure(match[1], phase, model)


def _figure(text: str, phase: str, model: str) -> Figure:
    try:
        observed = _content(text)
        start, end = (number(observed.get(key), key) for key in PHASES[phase])
        per_second = positive(observed.get("SCALING_FACTOR_UNITS_PER_SECOND", 1000), "SCALING_FACTOR_UNITS_PER_SECOND")
        read, written = (whole(observed.get(key), key) for key in ("prompt_tokens", "generated_tokens"))
        ms = positive(max(end - start, 0.0) * 1e3 / per_second, phase)
        shared: dict[str, str | float] = {"engine": "ExecuTorch", "precision": "", "batch": 1, "prompt_len": read}
        if phase == "prefill":
            return Figure(named(model), {**shared, "metric": "prefill_ms", "value": ms, "gen_len": 0})
        refuse([(not written, "no tokens were generated")])
        return Figure(named(model), {**shared, "metric": "tpot_ms", "value": ms / written, "gen_len": written})
    except Unusable as error:
        return Figure(named(model), fault=str(error))


def _content(text: str) -> dict[str, Any]:
    try:
        found = outside.parsed(text)
    except ValueError:
        raise Unusable("a line that is no JSON") from None
    refuse([(not isinstance(found, dict), "a line that is no JSON object")])
    return dict(found)
