"""MLX: trials of `mlx_lm.benchmark`, and the rates that `mlx_lm.generate` prints, of the model that the command line names.

Samples: https://github.com/ml-explore/mlx-lm/pull/396, averages alone in https://github.com/ml-explore/mlx-lm/pull/478.
Source: ml-explore/mlx-lm mlx_lm/benchmark.py, mlx_lm/generate.py.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from plas_board.calibrate.figure import (
    Cells,
    Document,
    Figure,
    cells_of,
    filled,
    middle,
    named,
    positive,
    refuse,
    whole,
)

NAME = "MLX"
TIMING = re.compile(
    r"Timing with prompt_tokens=(\d{1,9})(?:,| and) generation_tokens=(\d{1,9})(?:, batch_size=(\d{1,6}))?"
)
COMMAND = re.compile(r"mlx_lm\.benchmark\b(.{1,400})")
FLAG = re.compile(r"(?:^|\s)(-p|--prompt-tokens|-g|--generation-tokens|-b|--batch-size)[ =](\d{1,9})\b")
TRIAL = re.compile(r"(Trial \d{1,6}|Averages): +prompt_tps=(\d{1,12}\.\d{1,6}), generation_tps=(\d{1,12}\.\d{1,6})")
RATE = re.compile(r"(Prompt|Generation): (\d{1,9}) tokens, (\d{1,12}(?:\.\d{1,6})?) tokens-per-sec")
MODEL = re.compile(r"--model[ =]['\"]?([\w./-]{1,200})")
BITS = re.compile(r"[-_](?:([468])bit|(bf16|fp16))\b", re.IGNORECASE)


@dataclass
class Run:
    """Rates of alike runs: prompt and output in tokens, sequences, tokens per second of each phase; whether averages ended it."""

    model: str
    read: str = "0"
    written: str = "0"
    batch: str = "1"
    prefill: list[str] = field(default_factory=list)
    decode: list[str] = field(default_factory=list)
    over: bool = False


def recognises(document: Document) -> bool:
    """A line of one of its programs."""
    return TRIAL.search(document.text) is not None or RATE.search(document.text) is not None


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """Two figures a benchmark, the medians of its trials, and two a generation."""
    for document in documents:
        for heads, part in document.segments():
            for run in _runs(part):
                yield from _of_run(run, heads)


def _runs(text: str) -> Iterator[Run]:
    """Benchmarks and generations in order; averages end one, and count where no trial is shown."""
    run = Run("")
    for line in text.splitlines():
        command, timing, trial, rate, model = (of.search(line) for of in (COMMAND, TIMING, TRIAL, RATE, MODEL))
        if run.prefill and (command or timing or model or (trial and run.over) or (rate and rate[1] == "Prompt")):
            yield run
            run = replace(run, prefill=[], decode=[], over=False) if trial else Run(run.model)
        run.model = model[1] if model else run.model
        if command:
            flags = {name.lstrip("-")[0]: value for name, value in FLAG.findall(command[1])}
            run.read, run.written, run.batch = flags.get("p", "512"), flags.get("g", "1024"), flags.get("b", "1")
        if timing:
            run.read, run.written, run.batch = timing[1], timing[2], timing[3] or "1"
        if trial and (trial[1] != "Averages" or not run.prefill):
            run.prefill, run.decode = [*run.prefill, trial[2]], [*run.decode, trial[3]]
        run.over = run.over or (trial is not None and trial[1] == "Averages")
        if rate and rate[1] == "Prompt":
            run.read, run.prefill = rate[2], [rate[3]]
        elif rate:
            run.written, run.decode = rate[2], [rate[3]]
    if run.prefill or run.decode:
        yield run


def _of_run(run: Run, heads: Sequence[str]) -> Iterator[Figure]:
    names = named(run.model, *heads)
    bits = BITS.search(run.model)
    precision = "" if bits is None else f"mlx_{bits[1]}bit" if bits[1] else bits[2].lower()
    base = Figure(names, {"engine": NAME, "precision": precision})
    yield filled(base, _measured, run, "prefill_tok_s", run.prefill, 0)
    yield filled(base, _measured, run, "decode_tok_s", run.decode, int(run.written))


def _measured(run: Run, metric: str, rates: Sequence[str], output: int) -> Cells:
    refuse(
        (not rates, "no rate of this phase"),
        (not int(run.read), "tokens of the prompt are not stated"),
        (metric == "decode_tok_s" and not output, "tokens of the output are not stated"),
    )
    value = middle([positive(rate, metric) for rate in rates])
    return cells_of(metric, value, int(run.read), output, batch=whole(run.batch, "batch_size"))
