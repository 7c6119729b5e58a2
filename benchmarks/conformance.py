"""Writes `conformance/`: what published models hold and take, for other tools to test against, from this project's own model.

    python -m benchmarks.conformance            # every file again, from the config.json inside it, and schema.json
    python -m benchmarks.conformance --check    # change nothing; say which files would change

A file holds the keys of a config.json that say the shape; everything else in it follows from them through the Python interface (`nas.load_study`).
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

import nas
from nas.errors import UsageError
from nas.export.gguf_formats import FORMATS
from nas.export.model import Model, Workload
from nas.export.recipe import load_recipe
from nas.export.tokenizer import byte_level
from nas.study.config_file import architecture_of
from objectives import counts
from plas_stacks import gguf
from search_spaces.architectures import Architectures

FOLDER = Path(__file__).parents[1] / "conformance"
FORMULAS, SCHEMA = "formulas.json", "schema.json"
Unit = Literal["parameters", "bytes", "FLOP"]
LENGTHS = (1024, 8192)  # tokens of a prompt, and of a context that a step reads
STUDY: dict[str, Any] = {
    "preset": "device",
    "device": "rtx_4090",
    "precision": "fp16",
    "attention": "unfused",
    "calibration": "none",
    "batch": 1,
}
#: Operators that are products of matrices; others are element by element, or a recurrence.
PRODUCTS = re.compile(r"proj|matmul|router|lm_head|latent_(q|kv|k|v)_(up|down)")


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class At(_Closed):
    """What a number is for."""

    tokens: int | None = Field(
        None, ge=1, description="Tokens of the prompt, or keys that a step reads, its own among them."
    )
    bits: int | None = Field(None, description="Bits of an element of the cache.")
    format: str | None = Field(None, description="bf16, or gguf and llama.cpp's name of the format.")


class Value(_Closed):
    """One number."""

    quantity: str = Field(description="A key of `quantities` in formulas.json, which has its formula and source.")
    at: At | None = None
    value: int = Field(ge=0)
    unit: Unit
    operators: dict[str, int] | None = Field(
        None, description="FLOP by operator over all layers; they add up to the value."
    )


class Document(_Closed):
    """What a published model holds and takes."""

    kind: Literal["plas_conformance"]
    version: Literal[1]
    model: str = Field(description="Name of the repository on Hugging Face.")
    traits: list[str] = Field(description="What the file tests, in words.")
    config: dict[str, Any] = Field(
        description="Keys of config.json that say the shape; the text's part of a multimodal one."
    )
    config_source: str
    values: list[Value]


def value(quantity: str, number: float, unit: Unit, *, operators: dict[str, int] | None = None, **at: Any) -> Value:
    """One number: what it is, where, and in which unit; all are whole."""
    place = At(**at) if at else None
    return Value(quantity=quantity, at=place, value=round(number), unit=unit, operators=operators)


def values(architecture: Architectures) -> list[Value]:
    """Every number of an architecture."""
    found = [*_parameters(architecture), *_file_bytes(architecture)]
    for length in LENGTHS:
        found += _at(architecture, length)
    return found


def _parameters(architecture: Architectures) -> Iterator[Value]:
    groups = counts.count(architecture)
    table = nas.load_study(**STUDY).evaluate(architecture)
    yield value("parameters", table.params_total[0], "parameters")
    yield value("active_parameters", table.params_active[0], "parameters")
    yield value("embedding_parameters", groups.embedding[0], "parameters")


def _at(architecture: Architectures, length: int) -> Iterator[Value]:
    """The caches that `length` tokens leave, and the FLOPs of reading them and of the step that comes to as many."""
    whole = nas.load_study(**STUDY, input_tokens=length, output_tokens=1).explain(architecture)
    step = nas.load_study(**STUDY, input_tokens=length - 1, output_tokens=1).explain(architecture)
    kept, one_more = step.resident_gb["kv cache"] * 1e9, whole.resident_gb["kv cache"] * 1e9
    yield value("kv_cache_bytes", kept, "bytes", tokens=length, bits=16)
    yield value("kv_bytes_of_next_token", one_more - kept, "bytes", tokens=length, bits=16)
    if states := step.resident_gb.get("states"):
        yield value("state_bytes", states * 1e9, "bytes", tokens=length)
    for phase, explained in (("prefill", whole), ("decode", step)):
        flops = {row.operator: round(row.gflop * 1e9) for row in explained.operators[phase]}
        products = sum(number for name, number in flops.items() if PRODUCTS.search(name))
        yield value(f"{phase}_product_flops", products, "FLOP", tokens=length)
        yield value(f"{phase}_flops", sum(flops.values()), "FLOP", operators=flops, tokens=length)


def _file_bytes(architecture: Architectures) -> Iterator[Value]:
    """Bytes of the weights in files: 2 a parameter in bf16; in GGUF tensor by tensor, of classes that `plas export` writes."""
    yield value("file_bytes", 2.0 * counts.total(architecture)[0], "bytes", format="bf16")
    for name in FORMATS:
        model = Model("model", "model", architecture, byte_level(), load_recipe("paper"), Workload(1, 1, 1), gguf=name)
        try:
            held = gguf.entries(model) if gguf.holds(model) else []
        except UsageError:  # no class of Hugging Face that `plas export` writes is exactly this
            held = []
        if held:
            yield value("file_bytes", sum(entry.bytes for entry in held), "bytes", format=f"gguf {name}")


def traits(a: Architectures) -> list[str]:
    """What a file tests, in words."""
    told = {
        "dense": a.n_experts[0] == 1,
        "experts": a.n_experts[0] > 1,
        "shared experts": a.shared_expert_size[0] > 0,
        "dense layers beside experts": a.n_dense[0] > 0,
        "multi-head attention": a.n_kv_heads[0] == a.n_heads[0] and not a.latent_size[0],
        "grouped-query attention": a.n_kv_heads[0] < a.n_heads[0],
        "latent attention": a.latent_size[0] > 0,
        "sliding window": a.n_local[0] > 0,
        "heads of full attention of their own": a.full_head_dim[0] > 0,
        "layers that share a KV cache": a.n_kv_shared[0] > 0,
        "linear attention": a.n_linear[0] > 0,
        "short convolutions": a.n_conv[0] > 0,
        "QKV bias": a.qkv_bias[0],
        "tied head": a.tied[0],
        "untied head": not a.tied[0],
    }
    return [name for name, has in told.items() if has]


def document(model: str, config: Mapping[str, Any], source: str) -> Document:
    """A file's content."""
    architecture = architecture_of(config)
    return Document(
        kind="plas_conformance",
        version=1,
        model=model,
        traits=traits(architecture),
        config=dict(config),
        config_source=source,
        values=values(architecture),
    )


def text(content: Document) -> str:
    """A file's text: one line a value."""
    head = json.dumps(content.model_dump(exclude={"values"}), indent=1, ensure_ascii=False)
    lines = ",\n".join(
        f"  {json.dumps(each.model_dump(exclude_none=True), ensure_ascii=False)}" for each in content.values
    )
    return f'{head.removesuffix("}").rstrip()},\n "values": [\n{lines}\n ]\n}}\n'


def of_models() -> list[Path]:
    """The files of models."""
    return [path for path in sorted(FOLDER.glob("*.json")) if path.name not in (FORMULAS, SCHEMA)]


def again(path: Path) -> str:
    """A model's file as it should be, from the config.json inside it."""
    old = json.loads(path.read_text(encoding="utf-8"))
    return text(document(old["model"], old["config"], old["config_source"]))


def schema() -> str:
    """The JSON schema of the files."""
    return json.dumps(Document.model_json_schema(), indent=1) + "\n"


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; say which files would change")
    check = parser.parse_args().check
    made = {path: again(path) for path in of_models()} | {FOLDER / SCHEMA: schema()}
    stale = {path: content for path, content in made.items() if path.read_text(encoding="utf-8") != content}
    for path, content in stale.items():
        print(f"{path.name}: {'other numbers than this version gives' if check else 'written'}")
        if not check:
            path.write_text(content, encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
