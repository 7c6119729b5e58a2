"""Which layers' experts llama.cpp kept in host memory, from its flags: `--n-cpu-moe N`, `--cpu-moe`, `--override-tensor PATTERN=BUFFER`.

Source: ggml-org/llama.cpp common/arg.cpp (`--n-cpu-moe`: `blk\\.I\\.ffn_(up|down|gate|gate_up)_(ch|)exps` of the first N blocks),
tools/llama-bench/llama-bench.cpp (fields n_cpu_moe and tensor_buft_overrides, whose overrides a semicolon parts).
"""

import re
from collections.abc import Iterator

from nas.calibrate.figure import Figure, Unusable, refuse
from nas.calibrate.models import Model

LONGEST, MOST_REPEATS = 2_000, 4
#: Characters of a pattern that can be matched in a time that does not run away, and what may not be repeated.
PLAIN_PATTERN, REPEATED = re.compile(r"[\w\\.|()\[\]*+?^$-]{1,300}"), re.compile(r"[)\]*+?][*+?]")
EXPERTS = ("ffn_up_exps", "ffn_gate_exps", "ffn_down_exps")
OTHERS = (
    *(
        "attn_norm",
        "attn_q",
        "attn_k",
        "attn_v",
        "attn_output",
        "attn_q_norm",
        "attn_k_norm",
        "ffn_norm",
        "ffn_gate_inp",
    ),
    *("ffn_up_shexp", "ffn_gate_shexp", "ffn_down_shexp", "ffn_up", "ffn_gate", "ffn_down"),
)
NOT_PLAIN = "-ot {pattern}: not the experts of whole layers in host memory, which alone have a formula"


def slow_share(model: Model, figure: Figure) -> float:
    """The share of a model's layers with experts whose experts lay in host memory; 0 of a model without.

    Raises:
        Unusable: other tensors were put elsewhere.
    """
    depth, dense = int(model.architecture.depth[0]), int(model.architecture.n_dense[0])
    sparse = bool(model.architecture.n_experts[0] > 1)
    if not sparse:
        refuse([(figure.placed, NOT_PLAIN.format(pattern=figure.placed))])
        return 0.0
    slow = set(range(min(figure.experts_on_cpu, depth))) | (_placed(figure.placed, depth) if figure.placed else set())
    return len(slow - set(range(dense))) / (depth - dense)


def _placed(text: str, depth: int) -> set[int]:
    """The layers whose experts patterns name, where they name nothing else."""
    fault = NOT_PLAIN.format(pattern=text[:80])
    refuse([(len(text) > LONGEST, fault)])
    found: set[int] = set()
    for override in re.split(r"[;,]", text):
        pattern, _, buffer = override.strip().rpartition("=")
        refuse([(not pattern or buffer.upper() != "CPU", fault)])
        found |= _layers(pattern, depth, fault)
    return found


def _layers(pattern: str, depth: int, fault: str) -> set[int]:
    """The layers of which one pattern names all experts."""
    repeats = len(re.findall(r"[*+?]", pattern))
    refuse([(not PLAIN_PATTERN.fullmatch(pattern) or REPEATED.search(pattern) or repeats > MOST_REPEATS, fault)])
    try:
        match = re.compile(pattern, re.ASCII)
    except re.error:
        raise Unusable(fault) from None
    named = [{name for name in EXPERTS if match.search(f"blk.{layer}.{name}.weight")} for layer in range(depth)]
    refuse([(any(0 < len(names) < len(EXPERTS) for names in named), fault)])
    refuse([(any(match.search(name) for name in _others(depth)), fault)])
    found = {layer for layer, names in enumerate(named) if names}
    refuse([(not found, fault)])
    return found


def _others(depth: int) -> Iterator[str]:
    """Tensors that are no routed experts."""
    yield from ("token_embd.weight", "output.weight", "output_norm.weight")
    yield from (f"blk.{layer}.{name}.weight" for layer in range(depth) for name in OTHERS)
