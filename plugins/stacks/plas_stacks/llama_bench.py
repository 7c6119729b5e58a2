"""llama.cpp: llama-bench on a GGUF file with random weights (--weights), prefill and decode apart; inference."""

from pathlib import Path
from typing import Any

from nas.export.families import family_of
from nas.export.model import DRAFT, Model
from nas.export.stack_files import HEAD, PIVOT_PATH, architecture_fields, command, number, parsed, referred_architecture
from objectives import outside
from plas_stacks.gguf import (
    bits_per_weight,
    entries,
    fallbacks,
    holds,
    holds_tokenizer,
    read_gguf,
    splits_as_gpt2,
    tokenizer_digest,
    tokenizer_keys,
    write_gguf,
)
from plas_stacks.gguf_classes import architecture_in
from plas_stacks.gguf_types import format_numbered

FILE, GGUF = "bench.sh", "model.gguf"
PATH = f"llama-bench/{GGUF}"
LLAMA_CPP = '"${LLAMA_CPP:?folder of llama.cpp}"'
CONVERT = f"python {LLAMA_CPP}/convert_hf_to_gguf.py"
AS_GPT2 = "convert.py"
CONVERT_AS_GPT2 = f"python llama-bench/{AS_GPT2} {LLAMA_CPP}"
CONVERTER = '''"""llama.cpp's own converter, which knows tokenizers by what they make of one text: this one splits text as GPT-2 does."""

import sys

sys.path.insert(0, sys.argv.pop(1))
import convert_hf_to_gguf
from conversion.base import TextModel

TextModel.get_vocab_base_pre = lambda model, tokenizer: "gpt-2"
convert_hf_to_gguf.main()
'''
PROGRAM, QUANTISE = "llama-bench", "llama-quantize"
SERVE, SERVER = "serve.sh", "llama-server"
SERVED_FLAGS = ("--n-cpu-moe", "--override-tensor", "--spec-type", "--spec-draft-n-max", "--spec-draft-model")
QUANTISED_AS = {"mxfp4": "mxfp4_moe"}  # formats that llama-quantize calls otherwise
HALF = "llama-bench/f16.gguf"
ROW = 256  # elements of a row that K-quants divide


def _written(model: Model) -> bool:
    return model.weights and holds(model)


def emit(model: Model, folder: Path) -> None:
    """Write bench.sh, and with weights model.gguf; without them, the script converts the trained model."""
    script = HEAD
    if _written(model):
        write_gguf(folder / GGUF, model)
    else:
        script += _converted(model)
        if splits_as_gpt2(model.tokenizer):
            (folder / AS_GPT2).write_text(CONVERTER, encoding="utf-8")
    w = model.workload
    flags = [("-m", PATH), ("-p", w.input_tokens), ("-n", w.output_tokens), ("-r", 5), ("-o", "json")]
    script += command(PROGRAM, [*flags, *_placed(model)]).rstrip() + " > llama-bench/result.json\n"
    scripts = {FILE: script}
    if _serves(model):
        scripts[SERVE] = HEAD + command(SERVER, _server_flags(model))
    for name, content in scripts.items():
        (folder / name).write_text(content, encoding="utf-8")
        (folder / name).chmod(0o755)


def _serves(model: Model) -> bool:
    """Whether the model is served otherwise than token by token from one memory."""
    return bool(model.served.drafted) or model.served.experts_in != "fast"


def _placed(model: Model) -> list[tuple[str, Any]]:
    """Experts of the first layers in host memory; of a dense design their FFN, which --n-cpu-moe does not know."""
    slow = model.served.slow_layers(model.architecture)
    if not slow:
        return []
    if model.sparse:
        return [("--n-cpu-moe", slow)]
    layers = "|".join(map(str, range(slow)))
    return [("--override-tensor", f"blk\\.({layers})\\.ffn_(gate|up|down)\\.weight=CPU")]


def _server_flags(model: Model) -> list[tuple[str, Any]]:
    """llama-server's; llama-bench drafts nothing.

    Source: ggml-org/llama.cpp tools/server/README.md of builds since May 2026 (pull requests 22673, 22964), which refuse --draft-max.
    """
    w, served = model.workload, model.served
    drafting: list[tuple[str, Any]] = []
    if served.drafted:
        kind = "draft-mtp" if served.drafter == "mtp" else "draft-simple"
        drafting = [("--spec-type", kind), ("--spec-draft-n-max", served.drafted)]
        drafting += [("--spec-draft-model", f"{DRAFT}.gguf")] if served.drafter == "draft" else []
    context = w.batch * (w.input_tokens + w.output_tokens)
    return [("-m", PATH), ("--ctx-size", context), ("--parallel", w.batch), *_placed(model), *drafting]


def _converted(model: Model) -> str:
    """Commands that make the GGUF of what was trained: 16 bits first, then the format."""
    half = PATH if model.gguf == "f16" else HALF
    convert = CONVERT_AS_GPT2 if splits_as_gpt2(model.tokenizer) else CONVERT
    text = command(convert, [("--outfile", half), ("--outtype", "f16")]).rstrip() + f" \\\n  {PIVOT_PATH}\n"
    return (
        text if model.gguf == "f16" else f"{text}{QUANTISE} {half} {PATH} {QUANTISED_AS.get(model.gguf, model.gguf)}\n"
    )


def launch(_: Model) -> str:
    """The result beside it, which `plas calibrate` reads."""
    return f"llama-bench/{FILE}"


def size(model: Model) -> int:
    """Bytes of the GGUF file, without padding."""
    return sum(entry.bytes for entry in entries(model)) if _written(model) else 0


def cautions(model: Model) -> list[str]:
    """Routing, conversion, quantisation, batches."""
    lines = []
    if model.sparse and model.column("top_k") == 1:
        lines.append(
            "llama.cpp always renormalises routing weights, to 1 for one expert per token: speed is right, text is not"
        )
    if not _written(model):
        known = "" if splits_as_gpt2(model.tokenizer) else ", which needs a tokenizer that llama.cpp knows"
        lines.append(f"no GGUF written: bench.sh converts hf once it holds trained weights{known}")
        if family_of(model.architecture).model_type == "granitemoehybrid":
            lines.append(
                "llama.cpp's converter drops the rotation of Granite's attention: speed is right, trained text is not"
            )
    elif model.tokenizer.kind != "bytes" and not holds_tokenizer(model.tokenizer, model.column("vocabulary")):
        lines.append(
            "model.gguf has no tokenizer: it holds byte-level BPE of the vocabulary's size that splits text as GPT-2 does, "
            "as the recipe in docs/vocabulary.md makes it; speed is right, text cannot be made"
        )
    lines += _larger_types(model)
    if _serves(model):
        lines.append(f"{SERVE} serves it as the study does, with the flags of llama.cpp since May 2026")
    if model.served.drafted:
        lines.append(
            "llama-bench drafts nothing: its steps are plain; timings that llama-server prints hold what drafting takes"
        )
    if model.served.drafter == "draft":
        lines.append(f"{SERVE} takes the draft model from {DRAFT}.gguf beside hf: put it there")
    if model.served.drafter == "mtp":
        lines.append("llama.cpp's converter keeps the head that drafts since July 2026 (pull request 25589)")
    if model.workload.batch > 1:
        lines.append("llama-bench runs one sequence: plas measure measures batches, with llama-batched-bench")
    return lines


def _larger_types(model: Model) -> list[str]:
    """Which tensors are larger than the format says, as llama-quantize makes them too, because of their rows."""
    short = model.column("expert_size") % ROW or model.column("width") % ROW
    if model.gguf == "f16" and short:
        return [f"rows are no multiple of {ROW}: K-quants fall back to larger types; --expert-multiple {ROW} rounds"]
    if not holds(model) or not (found := fallbacks(model)):
        return []
    parts = [
        f"rows of {length} ({', '.join(names)}) {have.name} instead of {want.name}"
        for (length, want, have), names in found.items()
    ]
    return [
        f"{model.gguf} has blocks of {ROW} or 32 weights: {'; '.join(parts)}; {bits_per_weight(model):.2f} bits per weight in all; "
        f"--expert-multiple {ROW} rounds expert sizes"
    ]


def fields(model: Model) -> dict[str, Any]:
    """The architecture, from the GGUF file's own metadata where there is one, every tensor, the tokenizer, the workload."""
    own = tokenizer_keys(model.tokenizer, model.column("vocabulary")) if _written(model) else {}
    held = {e.name: (e.kind.number, e.shape) for e in entries(model)} if _written(model) else {}
    return {
        **architecture_fields(model.architecture),
        "tensors": held,
        "tokenizer": tokenizer_digest(own),
        "input_tokens": model.workload.input_tokens,
        "output_tokens": model.workload.output_tokens,
        "model": PATH,
        "format": model.gguf,
        **(_flags_served(dict(_server_flags(model))) if _serves(model) else {}),
    }


def _flags_served(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags of how a model is served, as text."""
    return {name: str(flags[name]) for name in SERVED_FLAGS if name in flags}


def read(folder: Path) -> dict[str, Any]:
    """The same, from the script and the GGUF file."""
    script = outside.text(folder / FILE, outside.MB).replace(" > llama-bench/result.json", "")
    (flags,) = parsed(script, PROGRAM)
    held: dict[str, tuple[int, tuple[int, ...]]] = {}
    metadata: dict[str, Any] = {}
    if (folder / GGUF).exists():
        metadata, held = read_gguf(folder / GGUF)
        architecture = architecture_fields(architecture_in(metadata, held))
        kind = format_numbered(metadata["general.file_type"])
    else:
        kind = _weight_format(script)
        named = script.split("--outtype f16", 1)[-1].split("\n")[1].strip()
        architecture = referred_architecture(folder, named)
    return {
        **architecture,
        "tensors": held,
        "tokenizer": tokenizer_digest(metadata),
        "input_tokens": number(flags, "-p"),
        "output_tokens": number(flags, "-n"),
        "model": flags["-m"],
        "format": kind,
        **_served_in(folder, flags),
    }


def _served_in(folder: Path, bench: dict[str, Any]) -> dict[str, Any]:
    """Flags of serve.sh; the bench's must place tensors as it does.

    Raises:
        ValueError: they do not.
    """
    if not (folder / SERVE).exists():
        return {}
    (server,) = parsed(outside.text(folder / SERVE, outside.MB), SERVER)
    for name in ("--n-cpu-moe", "--override-tensor"):
        if bench.get(name) != server.get(name):
            raise ValueError(f"{FILE}: {name}: expected {server.get(name)} as {SERVE} has, got {bench.get(name)}")
    return _flags_served(server)


def _weight_format(script: str) -> str:
    """The format that a converting script ends with."""
    lines = [line.split() for line in script.splitlines() if line.startswith(QUANTISE)]
    written = lines[0][-1] if lines else "f16"
    return next((own for own, theirs in QUANTISED_AS.items() if theirs == written), written)
