"""Times of the designs of the GPU table, before anything is trained: `plas measure`'s own worker, in one process."""

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nas.export.candidates import columns
from studies.gpu_table.lists import MEASUREMENTS, PROMPT, STEPS, designs

ROUNDS, SEED = 2, 20261126
WARM_S = 2.0  # of products that bring the clock up
#: How each design is timed; what is warmed up and repeated differs because steps called one by one take longest.
MODES: Mapping[str, Mapping[str, Any]] = {
    "called_b1": {"batch": 1, "graphs": False, "warmup": 1, "repetitions": 3},
    "graphs_b1": {"batch": 1, "graphs": True, "warmup": 2, "repetitions": 7},
    "graphs_b16": {"batch": 16, "graphs": True, "warmup": 2, "repetitions": 5},
}


def measured(out: Path, device: str, seconds: float, few: int | None = None) -> int:
    """Measure until the seconds are over; how many lines were added to the record."""
    import torch

    from plas_board.measure.workers import torch_worker

    end, count = time.monotonic() + seconds, 0
    if device == "cuda":
        warm(torch)
    with (out / MEASUREMENTS).open("a", encoding="utf-8") as file:
        for line in asked(device, few):
            if time.monotonic() >= end:
                break
            begin = time.monotonic()
            try:
                line["result"] = torch_worker.measure(line["job"])
            except Exception as error:  # whatever it is, the others are measured
                line["error"] = f"{type(error).__name__}: {error}"[:300]
            line["seconds"] = round(time.monotonic() - begin, 4)
            file.write(json.dumps(line) + "\n")
            file.flush()
            count += 1
    if device == "cuda":
        torch.cuda.empty_cache()
    return count


def warm(torch: Any) -> None:
    """Products until the clock is up."""
    end, a = time.monotonic() + WARM_S, torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    while time.monotonic() < end:
        for _ in range(50):
            a @ a
        torch.cuda.synchronize()


def asked(device: str, few: int | None) -> Iterator[dict[str, Any]]:
    """What to measure, in order: rounds over all designs in another random order each, every mode of a design after the other."""
    architectures, ids = designs()
    generator = np.random.default_rng(SEED)
    modes = {name: mode for name, mode in MODES.items() if device == "cuda" or not mode["graphs"]}
    common = {"precision": "bf16", "input_tokens": PROMPT, "output_tokens": STEPS, "threads": 1, "seed": 0}
    for turn in range(1, ROUNDS + 1):
        for row in generator.permutation(len(ids))[:few].tolist():
            shape = columns(architectures[row : row + 1])
            for name, mode in modes.items():
                job = {**common, **mode, "torch_device": device, "architecture": shape}
                yield {"id": ids[row], "round": turn, "mode": name, "job": job}
