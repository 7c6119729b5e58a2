"""llama.cpp's llama-bench as JSON, JSONL or CSV: an entry is one test of one file, all formats with the same fields.

Source: ggml-org/llama.cpp tools/llama-bench/llama-bench.cpp, `test::get_fields`, and README.md.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PureWindowsPath
from typing import Any

from plas_board.calibrate.figure import (
    UNCOUNTED,
    Cells,
    Document,
    Figure,
    Unusable,
    cells_of,
    middle,
    named,
    number,
    positive,
    precision,
    refuse,
    refuse_scatter,
    stated,
    whole,
)

NAME = "llama-bench"
FIELDS = {"model_type", "n_prompt", "n_gen"}
#: What llama.cpp calls a file type at the end of a model's description (`llama_model_ftype_name`).
FILE_TYPE = re.compile(r"\b(all F32|BF16|F16|MXFP4(?: MoE)?|I?Q\d\w*(?: mix)?(?: - .*)?|TQ\d\w*(?: - .*)?)$")
#: Backends in the fields of builds before `backends`.
SWITCHES = ("cuda", "vulkan", "kompute", "metal", "sycl", "opencl", "gpu_blas", "blas")
#: GPUs of processors, on which llama.cpp puts layers only where no other is there.
INTEGRATED = re.compile(
    r"\b(?:UHD|HD|Iris\S*(?: Xe)?) Graphics|Radeon(?:\(TM\))? (?:Vega \d+ |\d{3}M )?Graphics", re.IGNORECASE
)
CPU_BACKENDS = ("CPU", "BLAS", "ZenDNN")


def recognises(document: Document) -> bool:
    """Objects or columns with llama-bench's fields."""
    first = document.objects[0] if document.objects else {}
    return (first.keys() >= FIELDS and "prompt_tps" not in first) or set(document.header) >= {*FIELDS, "avg_ns"}


def figures(documents: Sequence[Document]) -> Iterator[Figure]:
    """A figure an entry."""
    for document in documents:
        for entry in document.objects or document.table:
            yield figure(entry)


def figure(entry: Mapping[str, Any]) -> Figure:
    """An entry as a figure: prompts alone are prefills, generation alone decodes, at the depth that it began at."""
    kind, file_type = described(str(entry.get("model_type", "")))
    found: dict[str, Any] = {"names": _names(entry, kind, file_type), "family": kind.partition(" ")[0]}
    try:
        _refuse_settings(entry)
        found["parameters"] = stated(entry.get("model_n_params"), "model_n_params", UNCOUNTED)
        found["size"] = stated(entry.get("model_size"), "model_size")
        found |= {"gpu_layers": _layers(entry), "device": _device(entry), **_elsewhere(entry)}
        return Figure(**found, cells={"engine": _engine(entry), "precision": precision(file_type), **_measured(entry)})
    except Unusable as error:
        return Figure(**found, fault=str(error))


def described(model_type: str) -> tuple[str, str]:
    """`qwen2 1.5B Q4_K - Medium` as kind and file type; what llama.cpp guessed is checked by the file's size."""
    text = model_type.strip().removesuffix("(guessed)").strip()
    match = FILE_TYPE.search(text)
    return (text[: match.start()].strip().removesuffix(" mostly"), match[1]) if match else (text, "")


def _names(entry: Mapping[str, Any], kind: str, file_type: str) -> tuple[str, ...]:
    file = PureWindowsPath(str(entry.get("model_filename") or "")).name.removesuffix(".gguf")
    return named(file, f"{kind} {file_type}".strip(), kind)


def _refuse_settings(entry: Mapping[str, Any]) -> None:
    """Settings under which the operators are not those of the model, or run in several places."""
    text = {key: str(entry.get(key, "")).strip().lower() for key in ("type_k", "type_v", "split_mode", "devices")}
    together = computing(entry) if text["devices"] in ("", "auto", "none") else text["devices"].split("/")
    refuse(
        (_on(entry, "embeddings"), "embeddings instead of generation"),
        (_on(entry, "no_kv_offload"), "the KV cache was kept off the GPU (-nkvo)"),
        (
            any(text[key] not in ("", "f16") for key in ("type_k", "type_v")),
            "a KV cache in another format than f16",
        ),
        (len(together) > 1, f"several GPUs at once ({', '.join(together)})"),
        (_remote(entry), "layers on other machines (RPC)"),
    )


def _on(entry: Mapping[str, Any], key: str) -> bool:
    return str(entry.get(key, "")).strip().lower() in ("1", "true")


def gpus(entry: Mapping[str, Any]) -> list[str]:
    """GPUs that the build saw; builds of 2023 put a slash between equal ones."""
    text = str(entry.get("gpu_info") or "").strip()
    parts = text.split(", ") if ", " in text else text.split("/")
    return [part for part in parts if part] if ", " in text or len(set(parts)) == 1 else [text]


def computing(entry: Mapping[str, Any]) -> list[str]:
    """GPUs that layers were put on: one by -sm none, those with a share by -ts, else all that have their own memory, if any has."""
    seen = gpus(entry)
    main, shares = str(entry.get("main_gpu") or "0"), str(entry.get("tensor_split") or "").split("/")
    if str(entry.get("split_mode")) == "none" and re.fullmatch(r"\d{1,2}", main):
        return seen[int(main) : int(main) + 1] or seen
    if len(shares) == len(seen) and any(share.strip("0.") for share in shares):
        return [gpu for gpu, share in zip(seen, shares, strict=True) if share.strip("0.")]
    return [gpu for gpu in seen if not INTEGRATED.search(gpu)] or seen


def _remote(entry: Mapping[str, Any]) -> bool:
    """Whether layers were on other machines: those are named as GPUs; a build that could use them says nothing."""
    return "RPC" in str(entry.get("gpu_info")) or "RPC" in str(entry.get("devices")).upper() or bool(entry.get("rpc"))


def backend(entry: Mapping[str, Any]) -> str:
    """The processor, as llama-bench names it; CPU where nothing else computed."""
    text = entry.get("backends") or entry.get("backend")
    if not text:
        text = ",".join(name.upper() if name == "cuda" else name.capitalize() for name in SWITCHES if _on(entry, name))
    return ",".join(part for part in str(text or "").split(",") if part != "RPC")


def _on_cpu(entry: Mapping[str, Any]) -> bool:
    return backend(entry) in CPU_BACKENDS


def _layers(entry: Mapping[str, Any]) -> int | None:
    """Layers put on the GPU, None for all (negative), unknown, or a build without one."""
    text = str(entry.get("n_gpu_layers", "")).strip()
    return int(text) if re.fullmatch(r"\d{1,6}", text) and not _on_cpu(entry) and backend(entry) else None


def _elsewhere(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Layers whose experts lay in host memory, and tensors that were put somewhere by hand; nothing where all is the processor's."""
    if _on_cpu(entry):
        return {}
    placed = str(entry.get("tensor_buft_overrides") or "").strip()
    on_cpu = whole(entry.get("n_cpu_moe") or 0, "n_cpu_moe")
    return {"experts_on_cpu": on_cpu, "placed": "" if placed.lower() == "none" else placed}


def _device(entry: Mapping[str, Any]) -> str:
    cpu, gpu = (str(entry.get(key) or "").strip() for key in ("cpu_info", "gpu_info"))
    chosen = str(entry.get("devices") or "").strip()
    several = len(gpus(entry)) > 1 and chosen not in ("", "auto", "none")
    used = computing(entry)
    found = cpu if _on_cpu(entry) else f"{gpu} ({chosen})" if several else used[0] if len(used) == 1 else gpu
    return next(iter(named(found, backend(entry))), "")


def _engine(entry: Mapping[str, Any]) -> str:
    """Program, build and backend, and the settings by which speeds differ: each is calibrated apart."""
    text = f"llama-bench {entry.get('build_commit') or 'of an unknown build'} {backend(entry)}".strip()
    threads = str(entry.get("n_threads") or "") if _on_cpu(entry) else ""
    ubatch, attention = str(entry.get("n_ubatch") or "512"), str(entry.get("flash_attn", "")).lower()
    extra = [f"{threads} threads"] * bool(threads) + [f"ubatch {ubatch}"] * (ubatch != "512")
    extra += [{"1": "fa", "true": "fa", "on": "fa", "-1": "fa auto", "auto": "fa auto"}.get(attention, "")]
    return next(iter(named(", ".join([text, *(part for part in extra if part)]))), "")


def _measured(entry: Mapping[str, Any]) -> Cells:
    """Metric, value, lengths and batch: llama-bench runs one sequence, n_batch cuts its prompt."""
    prompt, output = whole(entry.get("n_prompt"), "n_prompt"), whole(entry.get("n_gen"), "n_gen")
    depth = whole(entry.get("n_depth") or 0, "n_depth")
    refuse(
        (prompt and output, "prompt and generation measured together"),
        (not prompt and not output, "a test of no tokens"),
    )
    ms = milliseconds(entry, prompt + output)
    if prompt:
        return cells_of("prefill_ms", ms, prompt, **after(depth, prompt))
    return cells_of("tpot_ms", ms / output, depth, output)


def after(context: int, read: int) -> dict[str, float]:
    """The mean number of keys that the tokens of a prompt attend to, where a context stands before it."""
    return {"attended_len": context + (read + 1) // 2} if context else {}


def milliseconds(entry: Mapping[str, Any], tokens: int) -> float:
    """Of the whole test: the median of its samples, else their mean, else from its rate."""
    samples = entry.get("samples_ns")
    if isinstance(samples, list) and samples:
        return middle([positive(ns, "samples_ns") for ns in samples]) / 1e6
    if entry.get("avg_ns"):
        mean = positive(entry["avg_ns"], "avg_ns")
        refuse_scatter(number(entry.get("stddev_ns") or 0, "stddev_ns"), mean)
        return mean / 1e6
    rate = positive(entry.get("avg_ts"), "avg_ts")
    refuse_scatter(number(entry.get("stddev_ts") or 0, "stddev_ts"), rate)
    return 1e3 * tokens / rate
