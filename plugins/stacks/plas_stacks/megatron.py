"""Megatron-LM: a pretrain_gpt.py command line for training at scale."""

from pathlib import Path
from typing import Any

from nas.export.hf_config import NORM_EPSILON, ROPE_THETA
from nas.export.model import Model
from nas.export.stack_files import HEAD, architecture_fields, command, number, parsed, training_fields
from objectives import outside
from search_spaces.architectures import one

FILE = "train.sh"
VERSION = "core_v0.16 to core_v0.18"
PROGRAM = 'torchrun --nproc-per-node "${GPUS:-1}" "${MEGATRON:?folder of Megatron-LM}/pretrain_gpt.py"'
MORE = "Data, checkpoints and parallelism follow the script's name: megatron/train.sh --data-path ...\n"
PARALLEL, PADDING = (2, 4, 8), 128  # usual tensor-parallel sizes; what Megatron pads to where nothing is said


def emit(model: Model, folder: Path) -> None:
    """train.sh, which takes further flags of Megatron behind its name."""
    line = command(PROGRAM, [*_shape(model), *_training(model)]).rstrip("\n") + ' \\\n  "$@"\n'
    more = MORE + "\n".join(f"# {line}" for line in _in_parallel(model.column("vocabulary")))
    (folder / FILE).write_text(f"{HEAD}# For Megatron-LM {VERSION}.\n# {more}\n{line}", encoding="utf-8")
    (folder / FILE).chmod(0o755)


def _in_parallel(vocabulary: int) -> list[str]:
    """What to add for tensor parallelism: Megatron pads the table of T devices to T times its flag."""
    even = [t for t in PARALLEL if vocabulary % t == 0]
    odd = [t for t in PARALLEL if t not in even]
    lines = [
        f"With --tensor-model-parallel-size {t} add --make-vocab-size-divisible-by {vocabulary // t}." for t in even
    ]
    if odd:
        rows = -(-vocabulary // (PADDING * odd[0])) * PADDING * odd[0]
        sizes = ", ".join(map(str, odd))
        lines += [
            f"A vocabulary of {vocabulary:,} is not split evenly over {sizes} devices: Megatron's own padding, {PADDING}, makes "
            f"{rows:,} rows for {odd[0]}.",
            f"For the same model everywhere export a --vocabulary that {odd[-1]} divides.",
        ]
    return lines


def _shape(model: Model) -> list[tuple[str, Any]]:
    a, q = model.architecture, model.column
    return [
        ("--num-layers", q("depth")),
        ("--hidden-size", q("width")),
        ("--num-attention-heads", q("n_heads")),
        ("--kv-channels", q("head_dim")),
        ("--group-query-attention", True),
        ("--num-query-groups", q("n_kv_heads")),
        ("--ffn-hidden-size", q("expert_size")),
        ("--qk-layernorm", bool(q("qk_norm"))),
        ("--add-qkv-bias", bool(a.qkv_bias[0])),
        ("--untie-embeddings-and-output-weights", not a.tied[0]),
        ("--disable-bias-linear", True),
        ("--swiglu", True),
        ("--normalization", "RMSNorm"),
        ("--norm-epsilon", NORM_EPSILON),
        ("--position-embedding-type", "rope"),
        ("--rotary-base", ROPE_THETA),
        ("--attention-dropout", 0.0),
        ("--hidden-dropout", 0.0),
        ("--max-position-embeddings", model.context),
        *(_experts(model) if model.sparse else []),
        *_vocabulary(model),
    ]


def _experts(model: Model) -> list[tuple[str, Any]]:
    """For one expert per token softmax comes before the choice: after it every weight is 1, and Megatron refuses."""
    return [
        ("--num-experts", model.column("n_experts")),
        ("--moe-router-topk", model.column("top_k")),
        ("--moe-ffn-hidden-size", model.column("expert_size")),
        ("--moe-router-pre-softmax", model.column("top_k") == 1),
        ("--moe-router-load-balancing-type", "aux_loss"),
        ("--moe-aux-loss-coeff", model.recipe.auxiliary_loss),
        ("--moe-token-dispatcher-type", "alltoall"),
    ]


def _vocabulary(model: Model) -> list[tuple[str, Any]]:
    """Megatron sizes the embedding by the tokenizer; one that uses fewer ids is replaced by data of token ids.

    Up to core_v0.17 NullTokenizer adds an end token to the size that it is given, since core_v0.18 it does not: padding to
    the whole vocabulary makes the same embedding of both.
    """
    if model.tokenizer.size == model.column("vocabulary"):
        kind: list[tuple[str, Any]] = [("--tokenizer-type", "HuggingFaceTokenizer"), ("--tokenizer-model", "hf")]
    else:
        kind = [("--tokenizer-type", "NullTokenizer")]
    size = model.column("vocabulary")
    return [*kind, ("--vocab-size", size - (len(kind) == 1)), ("--make-vocab-size-divisible-by", size)]


def _training(model: Model) -> list[tuple[str, Any]]:
    recipe, plan = model.recipe, model.schedule
    return [
        ("--seq-length", recipe.sequence_length),
        ("--micro-batch-size", 1),
        ("--global-batch-size", recipe.global_batch),
        ("--train-iters", plan.steps),
        ("--lr", plan.peak),
        ("--min-lr", plan.final),
        ("--lr-decay-style", "cosine"),
        ("--lr-decay-iters", plan.steps),
        ("--lr-warmup-iters", plan.warmup_steps),
        ("--adam-beta1", recipe.beta1),
        ("--adam-beta2", recipe.beta2),
        ("--adam-eps", recipe.epsilon),
        ("--weight-decay", recipe.weight_decay),
        ("--clip-grad", recipe.gradient_clip),
        ("--init-method-std", plan.std),
        ("--bf16", True),
        ("--seed", 1234 + model.seed),
    ]


def launch(_: Model) -> str:
    """Data and parallelism follow."""
    return f'MEGATRON=/path/to/Megatron-LM GPUS="$GPUS" megatron/{FILE} --data-path corpus --split 99,1,0'


def size(_: Model) -> int:
    """No large files."""
    return 0


def cautions(model: Model) -> list[str]:
    """Tokenizer, tensor parallelism, initialisation."""
    lines = []
    if model.tokenizer.size != model.column("vocabulary"):
        lines.append(
            f"the tokenizer has {model.tokenizer.size:,} of {model.column('vocabulary'):,} ids, and Megatron sizes the embedding "
            "by its tokenizer: NullTokenizer is set, the data must be token ids, a document ending with "
            f"{model.column('vocabulary') - 1:,} up to core_v0.17 and {model.column('vocabulary') - 2:,} since core_v0.18"
        )
    if model.column("n_kv_heads") == 1:
        lines.append("one KV head cannot be split: keep --tensor-model-parallel-size 1")
    if not model.recipe.initialisation.residual_by_depth:
        lines.append("Megatron scales what ends a residual branch by depth, which the recipe does not ask for")
    if model.schedule.expert_std != model.schedule.residual_std:
        lines.append(
            "Megatron gives experts the deviation of every residual branch, not the recipe's own for single experts"
        )
    if model.weights:
        lines.append("the weights in hf are not read: Megatron initialises its own, with the recipe's deviation")
    return lines


def fields(model: Model) -> dict[str, Any]:
    """The architecture and the recipe; router and vocabulary as Megatron will build them."""
    return {
        **architecture_fields(model.architecture),
        **training_fields(model),
        "init_std": model.schedule.std,
        "auxiliary_loss": model.recipe.auxiliary_loss if model.sparse else None,
        "router_alive": True,
    }


def read(folder: Path) -> dict[str, Any]:
    """The same, from the command line."""
    lines = parsed(outside.text(folder / FILE, outside.MB), PROGRAM)
    if len(lines) != 1:
        raise ValueError(f"{FILE}: expected one command of pretrain_gpt.py, got {len(lines)}")
    flags = lines[0]
    for name in ("--group-query-attention", "--disable-bias-linear", "--swiglu", "--bf16"):
        if flags.get(name) is not True:
            raise ValueError(f"{name}: expected it, got nothing")
    return {
        **architecture_fields(one(_columns(flags))),
        **_recipe(flags),
        "init_std": number(flags, "--init-method-std"),
        "auxiliary_loss": number(flags, "--moe-aux-loss-coeff") if "--num-experts" in flags else None,
        "router_alive": "--num-experts" not in flags
        or (number(flags, "--moe-router-topk") == 1) == ("--moe-router-pre-softmax" in flags),
    }


def _columns(flags: dict[str, Any]) -> dict[str, Any]:
    sparse = "--num-experts" in flags
    added = (0, 1) if flags["--tokenizer-type"] == "NullTokenizer" else (0,)
    padded = number(flags, "--make-vocab-size-divisible-by")
    sizes = {-(-(number(flags, "--vocab-size") + more) // padded) * padded for more in added}
    if len(sizes) > 1:
        raise ValueError(f"--vocab-size: expected one embedding under every version, got {sorted(sizes)}")
    (vocabulary,) = sizes
    return {
        "depth": number(flags, "--num-layers"),
        "width": number(flags, "--hidden-size"),
        "n_heads": number(flags, "--num-attention-heads"),
        "head_dim": number(flags, "--kv-channels"),
        "n_kv_heads": number(flags, "--num-query-groups"),
        "expert_size": number(flags, "--moe-ffn-hidden-size" if sparse else "--ffn-hidden-size"),
        "n_experts": number(flags, "--num-experts", 1),
        "top_k": number(flags, "--moe-router-topk", 1),
        "qk_norm": "head" if "--qk-layernorm" in flags else "no",
        "qkv_bias": "--add-qkv-bias" in flags,
        "tied": "--untie-embeddings-and-output-weights" not in flags,
        "vocabulary": vocabulary,
    }


def _recipe(flags: dict[str, Any]) -> dict[str, Any]:
    names = {
        "steps": "--train-iters",
        "warmup_steps": "--lr-warmup-iters",
        "learning_rate": "--lr",
        "final_learning_rate": "--min-lr",
        "beta1": "--adam-beta1",
        "beta2": "--adam-beta2",
        "epsilon": "--adam-eps",
        "weight_decay": "--weight-decay",
        "gradient_clip": "--clip-grad",
        "sequence_length": "--seq-length",
        "global_batch": "--global-batch-size",
    }
    return {name: number(flags, flag) for name, flag in names.items()}
