"""The operators of one layer and of the head: FLOPs and bytes of a pass [app:problem_formulation].

1 multiply-accumulate = 2 FLOPs. FLOPs and bytes are constant in the context length S_kv, except
in the attention core, where both are affine: `flops + flops_per_kv · S_kv`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

from objectives.device import Kind, Peak
from objectives.dimensions import Dimensions
from objectives.scenario import Precision, Scenario
from search_spaces.arrays import FloatArray

CHUNK = 16_384  # rows whose temporaries stay in the L2 cache
Values = FloatArray | float


@dataclass(frozen=True)
class Phase:
    """Passes of one phase: T = batch · queries tokens each, S_kv from `first_kv` to `last_kv`."""

    name: Literal["prefill", "decode"]
    batch: int
    queries: int
    first_kv: int
    last_kv: int

    @property
    def tokens(self) -> float:
        """T = B · S_q, tokens a pass."""
        return float(self.batch * self.queries)

    @property
    def passes(self) -> int:
        """Number of passes."""
        return self.last_kv - self.first_kv + 1


def phases(scenario: Scenario) -> tuple[Phase, Phase]:
    """Prefill: one pass, S_q = S_kv = S_in. Decode: S_out passes, S_q = 1, S_kv = S_in + t, t = 1 … S_out."""
    read, written, batch = scenario.input_tokens, scenario.output_tokens, scenario.batch
    return Phase("prefill", batch, read, read, read), Phase("decode", batch, 1, read + 1, read + written)


@dataclass(frozen=True, eq=False)
class Operator:
    """Cost of one operator in one pass; `count` instances, each launched where `present` is 1.

    epilogue_flops: work after the operator's max at the FP16 peak (fused dequantise), no traffic.
    fixed_seconds: time besides, once in the phase.
    kind: whose factors on the efficiencies hold, where `routed` is 1 (everywhere without it).
    """

    name: str
    flops: Values
    bytes: Values
    peak: Peak = "fp16"
    count: Values = 1.0
    present: Values = 1.0
    flops_per_kv: Values | None = None
    bytes_per_kv: Values | None = None
    epilogue_flops: Values | None = None
    fixed_seconds: float = 0.0
    kind: Kind = "plain"
    routed: FloatArray | None = None


def linear(
    name: str,
    rows: float,
    n_in: Values,
    n_out: Values,
    weights: Values,
    p: Precision,
    *,
    out_bytes: float,
    count: float = 1.0,
    present: Values = 1.0,
    weight_flops: Values | None = None,
    routed: FloatArray | None = None,
) -> Operator:
    """A linear operator: 2 · rows · weights FLOPs; weights at b_w, inputs at b_i, outputs as given.

    Where `n_in`, `n_out` are elements read and written in a pass, and `weight_flops` replaces the
    weights in the FLOPs where not all that are read are applied to every token (experts); `routed` marks experts.
    """
    return Operator(
        name,
        2.0 * rows * (weights if weight_flops is None else weight_flops),
        weights * p.weight_bytes + n_in * p.input_bytes + n_out * out_bytes,
        p.linear_peak,
        count,
        present,
        epilogue_flops=2.0 * n_out if p.quantises else None,
        kind="plain" if routed is None else "experts",
        routed=routed,
    )


def quantise(name: str, n: Values, p: Precision, present: Values = 1.0) -> Iterator[Operator]:
    """Dynamic quantisation of n activations: 2n FLOPs, n (b_a + 1) bytes; nothing unless int8."""
    if p.quantises:
        yield Operator(name, 2.0 * n, n * (p.activation_bytes + 1.0), present=present)


def attention_operators(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Everything of a layer that depends on (width, heads, KV heads): norms, projections, attention core."""
    p, t, d, d_q, d_m = scenario.precision, phase.tokens, x.width, x.query_dim, x.kv_dim
    b_a = p.activation_bytes
    yield Operator("norm", 4.0 * t * d, 2.0 * t * d * b_a, count=x.norms)
    yield from quantise("quantise_attention", t * d, p)
    yield linear("q_proj", t, t * d, t * d_q, d * d_q, p, out_bytes=b_a)
    yield linear("k_proj, v_proj", t, t * d, t * d_m, d * d_m, p, out_bytes=p.kv_bytes, count=2.0)
    if scenario.complete:
        yield Operator("rope_qk_norm", 8.0 * t * (d_q + d_m), 2.0 * t * (d_q + d_m) * b_a)
    yield from attention_core(x, phase, scenario)
    yield from quantise("quantise_o", t * d_q, p)
    yield linear("o_proj", t, t * d_q, t * d, d * d_q, p, out_bytes=b_a)
    if scenario.complete:
        yield Operator("residual_add", t * d, 3.0 * t * d * b_a, count=2.0)


def attention_core(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Scores, softmax and values, affine in S_kv; one operator without score traffic when fused.

    Under `causal` the prefill's S(S+1)/2 pairs replace S_q · S_kv (in FLOPs alone when fused).
    """
    p, batch, queries = scenario.precision, float(phase.batch), float(phase.queries)
    b_a, d_q, n_h = p.activation_bytes, x.query_dim, x.n_heads
    halved = scenario.causal and phase.name == "prefill"
    pairs, extra = (batch * queries / 2.0,) * 2 if halved else (batch * queries, 0.0)
    vectors = batch * queries * d_q * b_a
    kv_bytes = batch * x.kv_dim * p.kv_bytes
    score_flops, softmax_flops, score_bytes = 2.0 * d_q, 5.0 * n_h, n_h * b_a
    core = partial(Operator, kind="attention")
    if scenario.attention == "fused":
        flops = 2.0 * score_flops + softmax_flops
        yield core("attention", flops * extra, 2.0 * vectors, flops_per_kv=flops * pairs, bytes_per_kv=2.0 * kv_bytes)
        return
    matmul = partial(
        core,
        flops=score_flops * extra,
        bytes=vectors + score_bytes * extra,
        flops_per_kv=score_flops * pairs,
        bytes_per_kv=kv_bytes + score_bytes * pairs,
    )
    yield matmul("qk_matmul")
    yield core(
        "softmax",
        softmax_flops * extra,
        2.0 * score_bytes * extra,
        flops_per_kv=softmax_flops * pairs,
        bytes_per_kv=2.0 * score_bytes * pairs,
    )
    yield matmul("sv_matmul")


def ffn_operators(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Everything of a layer that depends on (width, E, K, m): router, experts, shared expert."""
    p, t, d = scenario.precision, phase.tokens, x.width
    b_a, active, out = p.activation_bytes, t * x.activated_size, t * x.top_k * d
    if x.sparse.any():
        experts = x.n_experts * x.sparse
        router_bytes = (d * experts + t * experts) * b_a + t * d * b_a * x.sparse
        yield Operator("router", 2.0 * t * d * experts, router_bytes, present=x.sparse)
    yield from quantise("quantise_ffn", t * d, p)
    touched, applied = x.touched_experts(t, scenario.routing_overlap), x.activated_size * d
    expert = partial(linear, weights=touched * x.expert_size * d, p=p, weight_flops=applied, routed=x.sparse)
    yield expert("gate_proj, up_proj", t, out, active, out_bytes=b_a, count=2.0)
    yield Operator("gated_activation", 5.0 * active, 3.0 * active * b_a)
    yield from quantise("quantise_down", active, p)
    yield expert("down_proj", t, active, out, p=p.of_down, out_bytes=b_a)
    if scenario.complete and x.sparse.any():
        yield Operator(
            "combine_experts", 2.0 * out * x.sparse, (x.top_k + 1.0) * t * d * b_a * x.sparse, present=x.sparse
        )
    yield from shared_expert_operators(x, phase, scenario)


def shared_expert_operators(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Gate, up, activation and down of an expert that every token takes; nothing where its size is 0."""
    if x.shared is None:
        return
    p, t, d, size = scenario.precision, phase.tokens, x.width, x.shared
    here = (size > 0).astype(float)
    rows, active = t * here, t * size
    yield linear(
        "shared_gate_proj, shared_up_proj",
        t,
        rows * d,
        active,
        d * size,
        p,
        out_bytes=p.activation_bytes,
        count=2.0,
        present=here,
    )
    yield Operator("shared_activation", 5.0 * active, 3.0 * active * p.activation_bytes, present=here)
    yield from quantise("quantise_shared_down", active, p, here)
    down = p.of_down
    yield linear("shared_down_proj", t, active, rows * d, d * size, down, out_bytes=p.activation_bytes, present=here)


def head_operators(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Once per pass: embedding look-up of all T tokens, LM head for one position per sequence; a request's constant."""
    if phase.name == "prefill" and scenario.request_s:
        none = 0.0 * x.width
        yield Operator("request", none, none, present=none, fixed_seconds=scenario.request_s)
    if x.vocabulary is None:
        return
    b_a, b_head, batch, vocabulary = (
        scenario.precision.activation_bytes,
        scenario.head_bytes,
        float(phase.batch),
        x.vocabulary,
    )
    here = (vocabulary > 0).astype(float)
    yield Operator("embedding", 0.0 * here, phase.tokens * x.width * (b_head + b_a) * here, present=here)
    traffic = x.width * vocabulary * b_head + batch * (x.width * here + vocabulary) * b_a
    yield Operator("lm_head", 2.0 * batch * x.width * vocabulary, traffic, present=here)


#: Operators of a layer's attention or FFN, or of the head (`base`).
OF_PART = {"base": head_operators, "attention": attention_operators, "ffn": ffn_operators}
