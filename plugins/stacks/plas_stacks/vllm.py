"""vLLM: bench latency on dummy weights, prefill and decode apart; inference."""

import json
from pathlib import Path
from typing import Any

from nas.export.families import family_of
from nas.export.model import DRAFT, Model
from nas.export.stack_files import HEAD, PIVOT_PATH, architecture_fields, command, number, parsed, referred_architecture
from objectives import outside

FILE = "bench.sh"
PROGRAM = "vllm bench latency"
LEAST_VOCABULARY = 10_000  # the bench draws token ids below it


def emit(model: Model, folder: Path) -> None:
    """bench.sh: T(1) is the prefill, and (T(n + 1) - T(1)) / n a decode step."""
    lines = [command(PROGRAM, _flags(model, tokens)) for tokens in _runs(model)]
    (folder / FILE).write_text(HEAD + "".join(lines), encoding="utf-8")
    (folder / FILE).chmod(0o755)


def _runs(model: Model) -> tuple[int, int]:
    return 1, model.workload.output_tokens + 1


def _flags(model: Model, tokens: int) -> list[tuple[str, Any]]:
    w = model.workload
    return [
        ("--model", PIVOT_PATH),
        ("--load-format", "auto" if model.weights else "dummy"),
        ("--model-impl", _code(model)),
        ("--skip-tokenizer-init", True),
        ("--dtype", "bfloat16"),
        ("--batch-size", w.batch),
        ("--input-len", w.input_tokens),
        ("--output-len", tokens),
        ("--max-model-len", w.input_tokens + w.output_tokens + 1),
        ("--max-num-seqs", w.batch),
        ("--num-iters-warmup", 5),
        ("--num-iters", 30),
        ("--speculative-config", _speculation(model)),
        ("--output-json", f"vllm/latency-{tokens}.json"),
    ]


def _speculation(model: Model) -> str | None:
    """What drafts, as JSON: the model's own head, or the model in the folder `draft`.

    Source: vllm-project/vllm vllm/config/speculative.py, docs/features/speculative_decoding.
    """
    if not model.served.drafted:
        return None
    how = {"method": "mtp"} if model.served.drafter == "mtp" else {"method": "draft_model", "model": DRAFT}
    return json.dumps({**how, "num_speculative_tokens": model.served.drafted})


def _code(model: Model) -> str | None:
    """Whose code of the class: vLLM's own Qwen3 has no windows, so that transformers' runs on vLLM's attention."""
    family = family_of(model.architecture)
    return "transformers" if (family.model_type, family.mixers) == ("qwen3", ("local",)) else None


def launch(_: Model) -> str:
    """Results beside it, which `plas calibrate` reads."""
    return f"vllm/{FILE}"


def size(_: Model) -> int:
    """No large files."""
    return 0


def cautions(model: Model) -> list[str]:
    """A vocabulary too small for the bench's token ids; what a bench of dummy weights does not say of how the model is served."""
    lines, served = [], model.served
    if model.column("vocabulary") < LEAST_VOCABULARY:
        lines.append(
            f"the bench draws token ids below {LEAST_VOCABULARY:,}: a vocabulary of that size or more is needed"
        )
    if served.drafted:
        lines.append(
            "random weights accept drafted tokens by chance: bench.sh times a trained model, and calibrate leaves its result out"
        )
    if served.drafter == "draft":
        lines.append(f"--speculative-config takes the draft model from the folder {DRAFT} beside hf: put it there")
    if served.experts_in != "fast":
        lines.append(
            "vLLM computes every expert on the device: its offloading moves weights over the link in each step, which is not experts "
            f"{served.experts_in}; bench.sh keeps all of them in fast memory"
        )
    return lines


def fields(model: Model) -> dict[str, Any]:
    """The architecture behind the path, the workload of both runs."""
    w, runs = model.workload, _runs(model)
    return {
        **architecture_fields(model.architecture),
        "load_format": ["auto" if model.weights else "dummy"] * 2,
        "code": [_code(model)] * 2,
        "batch": [w.batch] * 2,
        "input_tokens": [w.input_tokens] * 2,
        "output_tokens": list(runs),
        "long_enough": [True] * 2,
        **({"speculation": [_speculation(model)] * 2} if model.served.drafted else {}),
    }


def read(folder: Path) -> dict[str, Any]:
    """The same, from the script."""
    runs = parsed(outside.text(folder / FILE, outside.MB), PROGRAM)
    if len(runs) != 2 or runs[0].get("--model") != runs[1].get("--model"):
        raise ValueError(f"{FILE}: expected two runs of one model, got {len(runs)}")
    drafting = [run.get("--speculative-config") for run in runs]
    return {
        **({"speculation": drafting} if any(drafting) else {}),
        **referred_architecture(folder, runs[0].get("--model")),
        "load_format": [run.get("--load-format") for run in runs],
        "code": [run.get("--model-impl") for run in runs],
        "batch": [number(run, "--batch-size") for run in runs],
        "input_tokens": [number(run, "--input-len") for run in runs],
        "output_tokens": [number(run, "--output-len") for run in runs],
        "long_enough": [
            number(run, "--max-model-len") >= number(run, "--input-len") + number(run, "--output-len") for run in runs
        ],
    }
