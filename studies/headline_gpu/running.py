"""What runs on the machine with the GPU: short trainings that choose each shape's rate, then the full ones, piece by piece in order."""

import argparse
import contextlib
import gc
import glob
import importlib.util
import io
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nas.export.recipe import Recipe, load_recipe
from nas.export.tokenizer import byte_level
from nas.record.candidates import read_candidates
from plas_train.corpus import Corpus, Sources, prepared
from plas_train.jobs import CURVES, UNFINISHED, How, Job, job_settings, jobs_of, row_of
from search_spaces.architectures import Architectures, one
from search_spaces.columns import SHAPE
from studies.headline_gpu.design import HERE, SHAPES

RECIPE, RESULTS = HERE / "recipe.yaml", "results.jsonl"
FACTORS, SEEDS = (0.5, 1.0, 2.0), (0, 1, 2)
PACKAGES = ("torch", "transformers", "numpy", "sympy", "networkx")  # beside Python's standard library
SHORT, FULL = "short", "full"
VALIDATED = 524_288  # bytes
SUPPOSED, SLACK, COMPILING_S = 60e12, 1.1, 60.0  # FLOP/s before a piece has ended; of a prediction; of a full one
Line = Mapping[str, Any]


@dataclass(frozen=True)
class Size:
    """How much is trained: tokens of short and full trainings, sequences of a step, their length, and the text."""

    tokens: Mapping[str, int]
    batch: int
    length: int
    text: Sequence[str]
    miniature: bool = False


@dataclass(frozen=True)
class Piece:
    """One training: what is done whole or not at all."""

    kind: str
    id: str
    factor: float
    seed: int


def whole() -> Size:
    """The study as designed; text of the packages that are installed here.

    Raises:
        SystemExit: one of them is not.
    """
    places = {name: importlib.util.find_spec(name) for name in PACKAGES}
    if missing := [name for name, spec in places.items() if spec is None or not spec.submodule_search_locations]:
        sys.exit(f"text: expected the packages {', '.join(PACKAGES)}, got no {', '.join(missing)}; install them")
    folders = [
        spec.submodule_search_locations[0] for spec in places.values() if spec and spec.submodule_search_locations
    ]
    text = ["stdlib", *(f"{glob.escape(folder)}/**/*.py" for folder in folders)]
    return Size({SHORT: 8_388_608, FULL: 100_000_000}, 64, 512, text)


def miniature() -> Size:
    """The same pieces of shapes that a CPU trains in a second, to try everything but the numbers."""
    folder = glob.escape(str(Path(json.__file__).parents[1]))
    return Size({SHORT: 8_192, FULL: 16_384}, 4, 64, [f"{folder}/{name}/*.py" for name in ("json", "email")], True)


def shapes(size: Size) -> tuple[Architectures, list[str]]:
    """Every shape with the vocabulary of bytes, and its name; in miniature 2 layers of width 64 with its experts and ratio of FFN."""
    listed, ids = read_candidates(SHAPES)
    rows = [{name: int(getattr(listed, name)[i]) for name in SHAPE} for i in range(len(ids))]
    if size.miniature:
        small = {"depth": 2, "width": 64, "head_dim": 64, "n_heads": 1, "n_kv_heads": 1}
        rows = [{**row, **small, "expert_size": 8 * round(8 * row["expert_size"] / row["width"])} for row in rows]
    return Architectures.concatenate([one({**row, "vocabulary": byte_level().size}) for row in rows]), ids


def recipe_of(size: Size, factor: float) -> Recipe:
    """The recipe with its rate times a factor."""
    recipe = load_recipe(str(RECIPE))
    rate = recipe.learning_rate
    faster = rate.model_copy(update={"peak": factor * rate.peak, "final": factor * rate.final})
    changed = {"learning_rate": faster, "sequence_length": size.length, "global_batch": size.batch}
    return recipe.model_copy(update=changed)


def job_of(piece: Piece, size: Size) -> Job:
    """The training of a piece."""
    architectures, ids = shapes(size)
    row, tokens = ids.index(piece.id), size.tokens[piece.kind]
    design = architectures[row : row + 1]
    (job,) = jobs_of(design, [piece.id], [[piece.seed]], [tokens], recipe_of(size, piece.factor), byte_level())
    return job


def pieces(lines: Sequence[Line]) -> Iterator[Piece]:
    """Every piece in order; the full ones with the factors that the finished short ones chose. `lines` may grow while this is read."""
    _, ids = read_candidates(SHAPES)
    yield from (Piece(SHORT, name, factor, 0) for name in ids for factor in FACTORS)
    for seed in SEEDS:
        for name in ids:
            if (factor := factor_of(name, lines)) is not None:
                yield Piece(FULL, name, factor, seed)


def factor_of(name: str, lines: Sequence[Line]) -> float | None:
    """The factor with the lowest validation loss of a shape's short trainings, of equal ones the smaller; None where all failed."""
    losses = {line["factor"]: line["loss"] for line in lines if (line["kind"], line["id"]) == (SHORT, name)}
    good = [factor for factor, loss in sorted(losses.items()) if loss is not None and math.isfinite(loss)]
    return min(good, key=lambda factor: losses[factor], default=None)


def predicted_s(piece: Piece, flops: float, sparse: bool, lines: Sequence[Line]) -> float:
    """Seconds that a piece is predicted to take, by the slowest of its kind."""
    rates = [
        line["training_flops"] / line["seconds"]
        for line in lines
        if (line["kind"], line["n_experts"] > 1, line["status"]) == (piece.kind, sparse, "ok")
    ]
    return SLACK * flops / min(rates, default=SUPPOSED)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Whole lines of the record; the half of one that a kill left is cut off."""
    content = path.read_bytes() if path.is_file() else b""
    kept = content[: content.rfind(b"\n") + 1]
    if kept != content:
        path.write_bytes(kept)
    return [json.loads(line) for line in kept.splitlines()]


def run(given: argparse.Namespace) -> None:
    """Train piece by piece until the next is predicted not to end in time; what has ended is kept.

    Raises:
        SystemExit: the record is of another text.
    """
    end = time.monotonic() + given.seconds
    size = miniature() if given.miniature else whole()
    for folder in (given.out, given.data / CURVES, given.data / UNFINISHED):
        folder.mkdir(parents=True, exist_ok=True)
    corpus = prepared(given.data, Sources(size.text, [], {}, VALIDATED), byte_level(), lambda _: None)
    lines = read_lines(given.out / RESULTS)
    if others := {line["text"] for line in lines} - {corpus.train.sha256}:
        sys.exit(f"{given.out}: expected results of the text {corpus.train.sha256[:12]}, got {min(others)[:12]}")
    print(f"{corpus.train.tokens:,} bytes to train on; {len(lines)} pieces are done", flush=True)
    for piece in pieces(lines):
        if any(asdict(piece).items() <= line.items() for line in lines):
            continue
        job = job_of(piece, size)
        seconds = predicted_s(piece, job.flops, bool(job.model.column("n_experts") > 1), lines)
        seconds += COMPILING_S if piece.kind == FULL and given.device != "cpu" else 0.0
        if seconds > end - time.monotonic():
            print(f"next is {piece}, predicted to take {seconds:.0f} s: more than is left", flush=True)
            return
        lines.append(trained(piece, job, given.device, corpus, given.data))
        with (given.out / RESULTS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(lines[-1]) + "\n")
        print(
            {name: lines[-1][name] for name in ("kind", "id", "factor", "seed", "status", "loss", "seconds")},
            flush=True,
        )
    print("nothing is left", flush=True)


def trained(piece: Piece, job: Job, device: str, corpus: Corpus, folder: Path) -> dict[str, Any]:
    """A line of the record: the row that `plas train` would write, with the piece, the text and the machine."""
    import torch

    how = How(device, "fp32" if device == "cpu" else "bf16", 1, 1, math.inf)
    begin = time.monotonic()
    try:
        content = answered(job_settings(job, how, corpus, folder))
    except torch.OutOfMemoryError:
        content = {"state": "out_of_memory"}
    except RuntimeError as error:
        content = {"state": "failed", "reason": str(error).splitlines()[0][:300]}
    torch._dynamo.reset()
    gc.collect()
    peak = 0
    if device != "cpu":
        peak = torch.cuda.max_memory_allocated()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    ended = {"reason": "", **content, "status": content["state"], "seconds": time.monotonic() - begin}
    machine = {"text": corpus.train.sha256, "gpu": gpu() if device != "cpu" else "", "peak_bytes": peak}
    return {**row_of(job, how, corpus, ended), **asdict(piece), **machine}


def answered(settings: dict[str, Any]) -> dict[str, Any]:
    """One training by the worker of `plas train` in this process; its lines of progress are not shown."""
    from plas_train.workers import train_worker

    worker: Any = train_worker
    with contextlib.redirect_stdout(io.StringIO()):
        content: dict[str, Any] = worker.answer(settings)
    return content


def gpu() -> str:
    """What nvidia-smi calls the GPU."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
