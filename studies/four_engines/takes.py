"""Which engine takes what, by trying: small designs of every kind of layer, with experts and without, and every format of the plain one.

    PYTHON -m studies.four_engines.takes openvino --out FOLDER     # the Python that has the engine beside PLAS
    python -m studies.four_engines.takes --out FOLDER              # objectives/engine_tries.csv of what was tried there

A design is taken if the engine's converter writes it, the file has its parameters, and its first logits are those of transformers.
"""

import argparse
import csv
import importlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from nas.export.checkpoint import tensors
from nas.export.families import family_of, refuse_stack
from nas.export.model import Model, Workload
from nas.export.recipe import load_recipe
from nas.export.stack_protocol import PIVOT, shown, stack
from nas.export.tokenizer import byte_level
from objectives.counts import total
from objectives.engines import kinds_of
from objectives.plugins import version_of
from plas_stacks.engine import WORKER, engines
from plas_stacks.gguf import holds
from search_spaces.architectures import one

TABLE = Path("objectives/engine_tries.csv")
BASE = {"depth": 4, "width": 256, "n_kv_heads": 2, "expert_size": 512, "vocabulary": 1024}
EXPERTS = {"n_experts": 4, "top_k": 2, "expert_size": 256}
TOP_1 = {**EXPERTS, "top_k": 1}
WINDOWS = {"n_local": 3, "window": 16}
SHARING = {"depth": 7, "n_local": 5, "window": 16, "norms_per_layer": 4, "n_kv_shared": 3, "n_kv_shared_local": 2}
MAMBA2 = {
    "n_linear": 3, "linear_kind": "mamba2", "linear_heads": 8, "linear_key_heads": 1, "linear_key_dim": 16,
    "linear_value_dim": 64, "linear_kernel": 4, "qk_norm": "no",
}  # fmt: skip
DELTANET = {
    "n_linear": 3, "linear_kind": "deltanet", "linear_heads": 8, "linear_key_heads": 4, "linear_key_dim": 32,
    "linear_value_dim": 32, "linear_kernel": 4, "attention_gate": True,
}  # fmt: skip
KINDS: tuple[dict[str, Any], ...] = (
    {}, {"qk_norm": "no"}, {"qk_norm": "no", "qkv_bias": True}, WINDOWS, {**WINDOWS, "norms_per_layer": 4}, SHARING,
    {"n_conv": 3, "conv_kernel": 3}, MAMBA2, DELTANET,
)  # fmt: skip
FEW = ("no", "top_2", "top_1")
ENOUGH = 0.02  # of the logits' spread, of a kind of layers, whose weights have 16 bits or more


def tries(formats: tuple[str, ...]) -> Iterator[tuple[dict[str, Any], str]]:
    """Columns and format: every format of the plain design, then every kind in the first, of which transformers has a class."""
    yield from (({}, kind) for kind in formats)
    for columns in KINDS:
        for more in ({}, EXPERTS, TOP_1):
            shared = {"shared_expert_size": 64, "shared_gate": True} if "attention_gate" in columns and more else {}
            with suppress(UsageError):
                family_of(one({**BASE, **columns, **more, **shared}))
                if columns or more:
                    yield columns | more | shared, formats[0]


def tried(name: str, root: Path) -> None:
    """Try what was not tried yet; a line of JSON each."""
    engine = engines()[name]
    sys.path.insert(0, str(WORKER.parent))
    worker = importlib.import_module("engine_worker")
    importlib.import_module(engine.module)
    own = importlib.import_module(f"{name}_worker")
    root.mkdir(parents=True, exist_ok=True)
    log = root / f"{name}.jsonl"
    done = log.read_text().count("\n") if log.is_file() else 0
    for number, (columns, kind) in enumerate(tries(engine.formats)):
        if number < done:
            continue
        experts = FEW[2 if columns.get("top_k") == 1 else 1 if "top_k" in columns else 0]
        design = one({**BASE, **columns})
        row = {
            "engine": engine.label,
            "version": version_of(engine.packages[-1]),
            "kind": " and ".join(kinds_of(design)),
        }
        row |= {"experts": experts, "format": kind}
        place = root / f"{name}-{number}"
        try:
            model = Model(
                "m", "m", design, byte_level(), load_recipe("paper"), Workload(1, 8, 16), True, 0, "f16", kind
            )
            (place / PIVOT).mkdir(parents=True, exist_ok=True)
            stack(PIVOT).emit(model, place / PIVOT)
            row |= one_try(engine, worker, own, model, place, kind)
        except Exception as error:  # whatever an engine or its converter raises is why it does not take it
            row |= {
                "takes": "no",
                "why": f"{type(error).__name__}: {error}".replace(f"{place}/", "").splitlines()[0][:160],
            }
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(row, file=sys.stderr, flush=True)


def one_try(engine: Any, worker: Any, own: Any, model: Model, place: Path, kind: str) -> dict[str, Any]:
    """Convert and check, in this process."""
    folder = place / shown(engine.name)
    folder.mkdir(exist_ok=True)
    job = {
        "hf": str(place / PIVOT),
        "file": str(folder / engine.file),
        "precision": kind,
        "vocabulary": 257,
        "tokens": 24,
    }
    if engine.name == "llama_cpp":
        refuse_stack(model.architecture, "llama_bench")
        if not holds(model):
            return {"takes": "", "why": "PLAS writes no GGUF of the class"}
        if family_of(model.architecture).model_type == "granitemoehybrid":
            return {"takes": "", "why": "its converter drops the rotation of attention from what was trained"}
        engine.emit(model, folder)
    else:
        own.convert(job)
    answer = worker.check(own, job)
    far, parameters = answer["difference"], int(total(model.architecture)[0])
    most = engine.tolerance[kind] if kind != engine.formats[0] else max(ENOUGH, engine.tolerance[kind])
    why = "" if far <= most else f"first logits {100 * far:.3g} % of their spread away"
    held = parameters + sum(tensor.size for tensor in tensors(model) if tensor.buffer)
    if not why and answer["parameters"] not in (parameters, held):
        why = f"{answer['parameters']:,} parameters of {parameters:,}"
    return {"takes": "no" if why else "yes", "why": why}


def table(root: Path) -> None:
    """The table that ships, of every engine that was tried in the folder, others kept as they are."""
    rows = [json.loads(line) for path in sorted(root.glob("*.jsonl")) for line in path.read_text().splitlines()]
    new = {row["engine"] for row in rows}
    if TABLE.is_file():
        with TABLE.open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["engine"] not in new] + rows
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(
            file, ("engine", "version", "kind", "experts", "format", "takes", "why"), lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: row["engine"]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", nargs="?", choices=sorted(engines()))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.engine is None:
        table(options.out)
    else:
        tried(options.engine, options.out)
        os._exit(0)  # some engines fail while Python ends
