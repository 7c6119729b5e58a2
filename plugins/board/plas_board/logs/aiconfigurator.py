"""CSV of NVIDIA's aiconfigurator: steps that an engine logged are read; its estimates and its tables of operators are not measurements of a model.

Steps (`fpm_metrics_phase.csv`) name neither model nor weight format: both are given. Source: ai-dynamo/aiconfigurator, `ColumnsAgg` and
`ColumnsStatic` of sdk/common.py, collector/helper.py `log_perf`, and the recorded runs in fpm_golden_runs/.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from plas_board.calibrate.figure import Document, Figure, Unusable, cells_of, number, positive, refuse

NAME = "aiconfigurator CSV"
STEPS = {"phase", "ctx_tokens", "ctx_requests", "ctx_kv_tokens", "decode_requests", "decode_kv_tokens", "latency_ms"}
ESTIMATES = {"isl", "osl", "ttft", "tpot", "system", "backend"}
OPERATORS = {"framework", "device", "op_name", "kernel_source", "latency"}
ESTIMATED = "estimates of aiconfigurator, not measurements"
SINGLE = "single operators: times of whole models are what a profile is fitted to"
Key = tuple[str, int, int]


def recognises(document: Document) -> bool:
    """The columns of one of its files."""
    return any(set(document.header) >= columns for columns in (STEPS, ESTIMATES, OPERATORS))


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """Medians of like steps; a figure that is left out for every row that is no step of one phase."""
    for document in documents:
        if not set(document.header) >= STEPS:
            reason = ESTIMATED if set(document.header) >= ESTIMATES else SINGLE
            yield from (Figure((row.get("model", ""),), fault=reason) for row in document.table)
            continue
        alike: dict[Key, list[float]] = defaultdict(list)
        for row in document.table:
            try:
                taken = positive(row.get("latency_ms"), "latency_ms")
                alike[_key(row)].append(taken)
            except Unusable as error:
                yield Figure((), fault=str(error))
        yield from (_figure(key, times) for key, times in alike.items())


def _key(row: Mapping[str, str]) -> Key:
    """Phase, sequences and tokens of each of a step of one phase.

    Raises:
        Unusable: both phases together, or a prompt after a context.
    """
    prompts, steps, tokens, past, held = (
        int(number(row.get(name), name))
        for name in ("ctx_requests", "decode_requests", "ctx_tokens", "ctx_kv_tokens", "decode_kv_tokens")
    )
    refuse(
        (prompts and steps, "prompts and steps of other requests in one pass"),
        (not prompts and not steps, "a pass without requests"),
        (past, "a prompt after a context: only whole prompts are read"),
        (prompts and tokens % prompts, "prompts of different lengths in one pass"),
    )
    return ("prefill", prompts, tokens // prompts) if prompts else ("decode", steps, round(held / steps))


def _figure(key: Key, times: Sequence[float]) -> Figure:
    phase, batch, tokens = key
    prefill = phase == "prefill"
    metric, prompt = ("prefill_ms", tokens) if prefill else ("tpot_ms", max(tokens - 1, 0))
    own = cells_of(metric, median(times), prompt, int(not prefill), batch=batch)
    return Figure((), {**own, "engine": "aiconfigurator's steps", "precision": ""})
