"""Scalar reference of the model page, sections 2 to 7: the test oracle.

One architecture at a time, one operator at a time, plain Python floats. Every
row below is the row of the same name in the model page's tables; every decode pass
and every layer is walked explicitly. It is slow on purpose and shares no code
with the product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

FP16: Literal["fp16"] = "fp16"
INT8: Literal["int8"] = "int8"
DEQUANTISE = "dequantise"

FP4: Literal["fp4"] = "fp4"
Peak = Literal["fp16", "int8", "fp4"]
Phase = Literal["prefill", "decode"]

#: (name, FLOPs, bytes, peak). The peak is a label, not a number of FLOP/s,
#: because each peak has its own calibrated efficiency.
Operator = tuple[str, float, float, Peak]


@dataclass(frozen=True)
class Arch:
    """One architecture [section 1]; the vocabulary is one of its columns."""

    depth: int
    width: int
    head_dim: int
    n_heads: int
    n_kv_heads: int
    n_experts: int
    top_k: int
    expert_size: int
    shared_expert_size: int = 0
    shared_gate: bool = False
    qk_norm: Literal["head", "full", "no"] = "head"
    qkv_bias: bool = False
    norms_per_layer: int = 2
    tied: bool = True
    vocabulary: int = 0

    @property
    def query_dim(self) -> int:
        """d_q = n_h d_h."""
        return self.n_heads * self.head_dim

    @property
    def kv_dim(self) -> int:
        """d_m = d_h n_kv."""
        return self.head_dim * self.n_kv_heads

    @property
    def gqa(self) -> float:
        """n_h / n_kv."""
        return self.n_heads / self.n_kv_heads

    @property
    def activation_rate(self) -> float:
        """rho = K / E."""
        return self.top_k / self.n_experts

    @property
    def expert_ffn_ratio(self) -> float:
        """r_single = m / d."""
        return self.expert_size / self.width

    @property
    def ffn_ratio(self) -> float:
        """r = K r_single."""
        return self.top_k * self.expert_ffn_ratio


@dataclass(frozen=True)
class Setting:
    """Hardware, precision, workload and options of the latency model [sections 3 to 5]."""

    fp16_peak: float
    int8_peak: float
    bandwidth: float
    precision: Literal["fp32", "fp16", "int8", "int4", "nvfp4"] = "fp16"
    kv_bits: int | None = None
    down_inputs_of_8_bits: bool = False
    batch: int = 1
    input_tokens: int = 1024
    output_tokens: int = 16
    latency: Literal["operator", "closed_form"] = "operator"
    attention: Literal["unfused", "fused"] = "unfused"
    causal: bool = False
    complete: bool = False
    head_bytes: float = 2.0
    group_size: int | None = None
    compute_efficiency_fp16: float = 1.0
    compute_efficiency_int8: float = 1.0
    bandwidth_efficiency: float = 1.0
    overhead_s: float = 0.0
    fp4_peak: float = 0.0
    compute_efficiency_fp4: float = 1.0
    prefill_bandwidth_efficiency: float | None = None
    prefill_overhead_s: float | None = None
    attention_compute: float = 1.0
    attention_bandwidth: float = 1.0
    expert_compute: float = 1.0
    expert_bandwidth: float = 1.0
    routing_overlap: float = 0.0
    cache: float = 0.0
    cache_bandwidth: float = 0.0
    cache_efficiency: float | None = None

    @property
    def weight_bytes(self) -> float:
        """b_w; under int4 with groups, 0.5 + 2.5 / g. Other precisions have no groups."""
        if self.precision == "fp32":
            return 4.0
        if self.precision == "fp16":
            return 2.0
        if self.precision == "int8":
            return 1.0
        if self.precision == "int4":
            return 0.5 if self.group_size is None else 0.5 + 2.5 / self.group_size
        if self.precision == "nvfp4":
            return (16 * 4 + 8) / 16 / 8  # 16 elements of 4 bits share a scale of 8
        raise ValueError(f"unknown precision {self.precision!r}")

    @property
    def activation_bytes(self) -> float:
        """b_a."""
        return 4.0 if self.precision == "fp32" else 2.0

    @property
    def kv_bytes(self) -> float:
        """b_kv; as wide as activations unless the cache has bits of its own."""
        if self.kv_bits is not None:
            return self.kv_bits / 8
        return 4.0 if self.precision == "fp32" else 2.0

    @property
    def input_bytes(self) -> float:
        """b_i, of a linear operator's input: b_a, but 1 under int8 and as a weight under nvfp4."""
        return {"int8": 1.0, "nvfp4": (16 * 4 + 8) / 16 / 8}.get(self.precision, self.activation_bytes)

    @property
    def linear_peak(self) -> Peak:
        """Which peak q, k, v, o, gate, up and down run at."""
        return INT8 if self.precision == "int8" else FP4 if self.precision == "nvfp4" else FP16


# Section 2: loss law


def loss(arch: Arch) -> float:
    """L, the natural-log loss per token."""
    width = arch.width
    depth_term = 9.96 / math.pow(arch.depth, 1.63)
    r_term = math.pow(arch.ffn_ratio, 0.17)
    rho_term = 0.031 * math.pow(arch.activation_rate, 1.09) / (r_term * math.pow(width, -0.33))
    width_term = 500.0 / (r_term * math.pow(width, 0.97))
    kv_term = 0.20 / math.pow(arch.kv_dim, 0.05)
    return depth_term + rho_term + width_term + kv_term + 2.53


def perplexity(arch: Arch) -> float:
    """exp(L)."""
    return math.exp(loss(arch))


# Section 4: latency, closed form


def _check_closed_form(arch: Arch, setting: Setting) -> None:
    """Refuse what the closed form does not cover: d_q not d, the options of section 5."""
    refused = {
        "query_dim other than width": arch.query_dim != arch.width,
        "shared expert": arch.shared_expert_size != 0,
        "vocabulary": arch.vocabulary != 0,
        "fused attention": setting.attention != "unfused",
        "causal": setting.causal,
        "complete": setting.complete,
        "group_size": setting.group_size is not None,
        "calibration": setting.compute_efficiency_fp16 != 1.0
        or setting.compute_efficiency_int8 != 1.0
        or setting.compute_efficiency_fp4 != 1.0
        or setting.bandwidth_efficiency != 1.0
        or setting.overhead_s != 0.0,
    }
    for name, asked in refused.items():
        if asked:
            raise ValueError(f"the closed form has no {name}")


def _closed_form_prefill_s(arch: Arch, setting: Setting) -> float:
    """l B S_in d^2 xi_F / pi."""
    xi_f = 4.0 + 4.0 / arch.gqa + 6.0 * arch.ffn_ratio
    peak = {INT8: setting.int8_peak, FP4: setting.fp4_peak, FP16: setting.fp16_peak}[setting.linear_peak]
    return arch.depth * setting.batch * setting.input_tokens * arch.width**2 * xi_f / peak


def _closed_form_decode_s(arch: Arch, setting: Setting) -> float:
    """(l S_out / beta) [xi_W^dec d^2 b_w + 2 B S_bar d b_kv / gqa], all steps."""
    xi_w = 2.0 + 2.0 / arch.gqa + 3.0 * arch.ffn_ratio
    s_bar = setting.input_tokens + (setting.output_tokens + 1) / 2.0
    weights = xi_w * arch.width**2 * setting.weight_bytes
    cache = 2.0 * setting.batch * s_bar * arch.width * setting.kv_bytes / arch.gqa
    return arch.depth * setting.output_tokens / setting.bandwidth * (weights + cache)


# Section 5: latency, operator model


def _expected_experts(n_experts: int, top_k: int, tokens: float) -> float:
    """A = E (1 - (1 - K/E)^T), the expected number of distinct experts T tokens touch."""
    return n_experts * (1.0 - (1.0 - top_k / n_experts) ** tokens)


def _queries(setting: Setting, phase: Phase) -> int:
    """S_q: S_in in the prefill, 1 in a decode pass."""
    if phase == "prefill":
        return setting.input_tokens
    if phase == "decode":
        return 1
    raise ValueError(f"unknown phase {phase!r}")


def _quantise(setting: Setting, name: str, n: float) -> list[Operator]:
    """The quantise operator of n elements; none unless int8."""
    if setting.precision != "int8":
        return []
    return [(f"{name}_quantise", 2.0 * n, n * (setting.activation_bytes + 1.0), FP16)]


def _linear(
    setting: Setting, name: str, flops: float, traffic: float, n_out: float, peak: Peak | None = None
) -> list[Operator]:
    """A linear operator and, under int8, its fused dequantise (no bytes, no launch)."""
    rows: list[Operator] = [(name, flops, traffic, peak or setting.linear_peak)]
    if setting.precision == "int8":
        rows.append((f"{name}_{DEQUANTISE}", 2.0 * n_out, 0.0, FP16))
    return rows


def _norms(arch: Arch, setting: Setting, t: int) -> list[Operator]:
    """`norms_per_layer` norms, each an operator."""
    d, b_a = arch.width, setting.activation_bytes
    return [(f"norm_{i + 1}", 4.0 * t * d, 2.0 * t * d * b_a, FP16) for i in range(arch.norms_per_layer)]


def _projections_in(arch: Arch, setting: Setting, t: int) -> list[Operator]:
    """Quantise of the attention input, then q, k and v."""
    d, d_q, d_m = arch.width, arch.query_dim, arch.kv_dim
    b_w, b_a, b_i, b_kv = (
        setting.weight_bytes,
        setting.activation_bytes,
        setting.input_bytes,
        setting.kv_bytes,
    )
    rows = _quantise(setting, "attention_input", t * d)
    q_bytes = d * d_q * b_w + t * d * b_i + t * d_q * b_a
    rows += _linear(setting, "q_proj", 2.0 * t * d * d_q, q_bytes, t * d_q)
    kv_bytes = d * d_m * b_w + t * d * b_i + t * d_m * b_kv
    rows += _linear(setting, "k_proj", 2.0 * t * d * d_m, kv_bytes, t * d_m)
    rows += _linear(setting, "v_proj", 2.0 * t * d * d_m, kv_bytes, t * d_m)
    return rows


def _projection_out(arch: Arch, setting: Setting, t: int) -> list[Operator]:
    """Quantise of the o_proj input, then o_proj."""
    d, d_q = arch.width, arch.query_dim
    b_w, b_a, b_i = setting.weight_bytes, setting.activation_bytes, setting.input_bytes
    rows = _quantise(setting, "o_proj_input", t * d_q)
    o_bytes = d * d_q * b_w + t * d_q * b_i + t * d * b_a
    rows += _linear(setting, "o_proj", 2.0 * t * d * d_q, o_bytes, t * d)
    return rows


def _score_pairs(setting: Setting, phase: Phase, s_q: int, s_kv: int) -> float:
    """S_q S_kv, or S (S + 1) / 2 in a causal prefill."""
    if setting.causal and phase == "prefill":
        return s_kv * (s_kv + 1) / 2.0
    return float(s_q * s_kv)


def _scores_unfused(arch: Arch, setting: Setting, phase: Phase, s_kv: int) -> list[Operator]:
    """qk_matmul, softmax and sv_matmul, three operators."""
    b, n_h, d_q, d_m = setting.batch, arch.n_heads, arch.query_dim, arch.kv_dim
    b_a, b_kv = setting.activation_bytes, setting.kv_bytes
    s_q = _queries(setting, phase)
    pairs = _score_pairs(setting, phase, s_q, s_kv)
    matmul_flops = 2.0 * b * pairs * d_q
    qk_bytes = b * s_q * d_q * b_a + b * s_kv * d_m * b_kv + b * n_h * pairs * b_a
    sv_bytes = b * n_h * pairs * b_a + b * s_kv * d_m * b_kv + b * s_q * d_q * b_a
    return [
        ("qk_matmul", matmul_flops, qk_bytes, FP16),
        ("softmax", 5.0 * b * n_h * pairs, 2.0 * b * n_h * pairs * b_a, FP16),
        ("sv_matmul", matmul_flops, sv_bytes, FP16),
    ]


def _scores_fused(arch: Arch, setting: Setting, phase: Phase, s_kv: int) -> list[Operator]:
    """qk, softmax and sv as one operator; causal changes its FLOPs alone."""
    b, n_h, d_q, d_m = setting.batch, arch.n_heads, arch.query_dim, arch.kv_dim
    b_a, b_kv = setting.activation_bytes, setting.kv_bytes
    s_q = _queries(setting, phase)
    pairs = _score_pairs(setting, phase, s_q, s_kv)
    flops = 4.0 * b * pairs * d_q + 5.0 * b * n_h * pairs
    traffic = 2.0 * b * s_q * d_q * b_a + 2.0 * b * s_kv * d_m * b_kv
    return [("fused_attention", flops, traffic, FP16)]


def _scores(arch: Arch, setting: Setting, phase: Phase, s_kv: int) -> list[Operator]:
    """The attention between the projections."""
    if setting.attention == "fused":
        return _scores_fused(arch, setting, phase, s_kv)
    if setting.attention == "unfused":
        return _scores_unfused(arch, setting, phase, s_kv)
    raise ValueError(f"unknown attention {setting.attention!r}")


def _router(arch: Arch, setting: Setting, t: int) -> list[Operator]:
    """The router, only if E > 1; not a linear operator, its weights are at b_a."""
    if arch.n_experts == 1:
        return []
    d, e, b_a = arch.width, arch.n_experts, setting.activation_bytes
    return [("router", 2.0 * t * d * e, d * e * b_a + t * d * b_a + t * e * b_a, FP16)]


def _ffn(
    arch: Arch,
    setting: Setting,
    t: int,
    prefix: str,
    n_experts: int,
    top_k: int,
    size: int,
) -> list[Operator]:
    """Gate, up, gated activation and down rows, with r d = K m and r_single d^2 = m d."""
    d, k = arch.width, top_k
    r_d = top_k * size
    b_w, b_a, b_i = setting.weight_bytes, setting.activation_bytes, setting.input_bytes
    touched = _expected_experts(n_experts, top_k, t if t == 1 else 1 + (1 - setting.routing_overlap) * (t - 1))
    weights = touched * size * d * b_w
    flops = 2.0 * t * r_d * d
    up_bytes = weights + t * k * d * b_i + t * r_d * b_a
    eight = setting.down_inputs_of_8_bits
    down_bytes = weights + t * r_d * (1.0 if eight else b_i) + t * k * d * b_a
    rows = _linear(setting, f"{prefix}gate_proj", flops, up_bytes, t * r_d)
    rows += _linear(setting, f"{prefix}up_proj", flops, up_bytes, t * r_d)
    rows.append((f"{prefix}gated_activation", 5.0 * t * r_d, 3.0 * t * r_d * b_a, FP16))
    rows += _quantise(setting, f"{prefix}down_proj_input", t * r_d)
    rows += _linear(setting, f"{prefix}down_proj", flops, down_bytes, t * k * d, INT8 if eight else None)
    return rows


def _experts(arch: Arch, setting: Setting, t: int) -> list[Operator]:
    """Quantise of the FFN input (once), the routed experts and the shared expert (E = K = 1)."""
    rows = _quantise(setting, "ffn_input", t * arch.width)
    rows += _ffn(arch, setting, t, "", arch.n_experts, arch.top_k, arch.expert_size)
    if arch.shared_expert_size > 0:
        rows += _ffn(arch, setting, t, "shared_", 1, 1, arch.shared_expert_size)
    return rows


def _complete(arch: Arch, setting: Setting, t: int) -> list[Operator]:
    """What `complete` adds: two residual adds, RoPE with QK-norm, combination of experts."""
    if not setting.complete:
        return []
    d, k, b_a = arch.width, arch.top_k, setting.activation_bytes
    heads = arch.query_dim + arch.kv_dim
    rows: list[Operator] = [
        ("residual_add_1", float(t * d), 3.0 * t * d * b_a, FP16),
        ("residual_add_2", float(t * d), 3.0 * t * d * b_a, FP16),
        ("rope_qk_norm", 8.0 * t * heads, 2.0 * t * heads * b_a, FP16),
    ]
    if arch.n_experts > 1:
        rows.append(("combine_experts", 2.0 * t * k * d, (k + 1.0) * t * d * b_a, FP16))
    return rows


def operators(arch: Arch, setting: Setting, phase: Phase, s_kv: int) -> list[Operator]:
    """The operators of one layer in one pass: (name, FLOPs, bytes, "fp16", "int8" or "fp4").

    Under int8 the fused epilogues stand as rows of their own, named
    `<operator>_dequantise`, with no bytes; they are no launch (no tau).
    """
    t = setting.batch * _queries(setting, phase)
    rows = _norms(arch, setting, t)
    rows += _projections_in(arch, setting, t)
    rows += _scores(arch, setting, phase, s_kv)
    rows += _projection_out(arch, setting, t)
    rows += _router(arch, setting, t)
    rows += _experts(arch, setting, t)
    rows += _complete(arch, setting, t)
    return rows


def vocabulary_operators(arch: Arch, setting: Setting, phase: Phase) -> list[Operator]:
    """Embedding look-up (all T tokens) and LM head (one position per sequence), once per pass."""
    if arch.vocabulary == 0:
        return []
    b, d, v = setting.batch, arch.width, arch.vocabulary
    t = b * _queries(setting, phase)
    b_a, b_head = setting.activation_bytes, setting.head_bytes
    return [
        ("embedding", 0.0, t * d * b_head + t * d * b_a, FP16),
        ("lm_head", 2.0 * b * d * v, d * v * b_head + b * d * b_a + b * v * b_a, FP16),
    ]


ATTENTION = ("qk_matmul", "softmax", "sv_matmul", "fused_attention")
EXPERTS = ("gate_proj", "up_proj", "down_proj")


def _factors(arch: Arch, setting: Setting, name: str) -> tuple[float, float]:
    """What multiplies eta_c and eta_b: of the attention core, and of routed experts' linear operators."""
    if name in ATTENTION:
        return setting.attention_compute, setting.attention_bandwidth
    if name in EXPERTS and arch.n_experts > 1:
        return setting.expert_compute, setting.expert_bandwidth
    return 1.0, 1.0


def operator_s(arch: Arch, setting: Setting, operator: Operator, phase: Phase) -> float:
    """max(FLOPs / (eta_c pi), bytes / (eta_b beta)) + tau; no tau for a fused dequantise."""
    name, flops, traffic, peak = operator
    eta_b, tau = setting.bandwidth_efficiency, setting.overhead_s
    routed = name in EXPERTS and arch.n_experts > 1
    if phase == "prefill" and setting.prefill_bandwidth_efficiency is not None and not routed:
        eta_b = setting.prefill_bandwidth_efficiency
    if phase == "prefill" and setting.prefill_overhead_s is not None:
        tau = setting.prefill_overhead_s
    if peak == INT8:
        rate = setting.compute_efficiency_int8 * setting.int8_peak
    elif peak == FP4:
        rate = setting.compute_efficiency_fp4 * setting.fp4_peak
    else:
        rate = setting.compute_efficiency_fp16 * setting.fp16_peak
    if name.endswith(DEQUANTISE):
        return flops / rate
    more_flops, more_bytes = _factors(arch, setting, name)
    return max(flops / (rate * more_flops), traffic / (eta_b * more_bytes * setting.bandwidth)) + tau


def _pass_s(arch: Arch, setting: Setting, phase: Phase, s_kv: int) -> float:
    """One pass: every operator of every layer, then the vocabulary's operators."""
    layer = operators(arch, setting, phase, s_kv)
    seconds = 0.0
    for _ in range(arch.depth):
        for operator in layer:
            seconds += operator_s(arch, setting, operator, phase)
    for operator in vocabulary_operators(arch, setting, phase):
        seconds += operator_s(arch, setting, operator, phase)
    return seconds


def _operator_prefill_s(arch: Arch, setting: Setting) -> float:
    """One pass with S_q = S_kv = S_in."""
    return _pass_s(arch, setting, "prefill", setting.input_tokens)


def _operator_decode_s(arch: Arch, setting: Setting) -> float:
    """S_out passes, t = 1 ... S_out, with S_q = 1 and S_kv = S_in + t; a share of each from the cache."""
    seconds = 0.0
    for t in range(1, setting.output_tokens + 1):
        seconds += _pass_s(arch, setting, "decode", setting.input_tokens + t)
    if setting.cache_efficiency is None or not setting.cache or not setting.cache_bandwidth:
        return seconds
    achieved = max(setting.cache_efficiency * setting.cache_bandwidth / setting.bandwidth, setting.bandwidth_efficiency)
    within = replace(setting, bandwidth_efficiency=achieved, cache_efficiency=None)
    hits = min(1.0, setting.cache / _working_set(arch, setting)) ** 2.25
    return (1.0 - hits) * seconds + hits * _operator_decode_s(arch, within)


def _working_set(arch: Arch, setting: Setting) -> float:
    """Bytes that decode passes come back to: those of a mean pass, and half of the experts that it leaves out."""
    uniform, steps = replace(setting, routing_overlap=0.0), range(1, setting.output_tokens + 1)
    moved = 0.0
    for t in steps:
        layer = operators(arch, uniform, "decode", setting.input_tokens + t)
        moved += arch.depth * sum(traffic for _, _, traffic, _ in layer)
        moved += sum(traffic for _, _, traffic, _ in vocabulary_operators(arch, uniform, "decode"))
    left = arch.n_experts - _expected_experts(arch.n_experts, arch.top_k, setting.batch)
    half = 0.5 * 3.0 * arch.depth * left * arch.expert_size * arch.width * setting.weight_bytes
    return moved / len(steps) + half


# Sections 4, 5 and 7: latency metrics


def _is_closed_form(arch: Arch, setting: Setting) -> bool:
    """Whether the closed form was asked for; an error where it cannot answer."""
    if setting.latency == "operator":
        return False
    if setting.latency == "closed_form":
        _check_closed_form(arch, setting)
        return True
    raise ValueError(f"unknown latency {setting.latency!r}")


def prefill_ms(arch: Arch, setting: Setting) -> float:
    """Prefill latency in ms."""
    if _is_closed_form(arch, setting):
        return _closed_form_prefill_s(arch, setting) * 1e3
    return _operator_prefill_s(arch, setting) * 1e3


def decode_ms(arch: Arch, setting: Setting) -> float:
    """Decode latency of all S_out steps in ms."""
    if _is_closed_form(arch, setting):
        return _closed_form_decode_s(arch, setting) * 1e3
    return _operator_decode_s(arch, setting) * 1e3


def tpot_ms(arch: Arch, setting: Setting) -> float:
    """Time per output token: decode / S_out, in ms."""
    return decode_ms(arch, setting) / setting.output_tokens


def total_ms(arch: Arch, setting: Setting) -> float:
    """Prefill + decode, in ms."""
    return prefill_ms(arch, setting) + decode_ms(arch, setting)


# Section 6: memory and parameters


def _attention_params(arch: Arch) -> int:
    """q, k, v and o weights of one layer."""
    return 2 * arch.width * arch.query_dim + 2 * arch.width * arch.kv_dim


def _expert_params(arch: Arch, experts: int) -> int:
    """Weights of that many routed experts and of the shared expert, one layer."""
    return 3 * arch.width * arch.expert_size * experts + 3 * arch.width * arch.shared_expert_size


def _small_params(arch: Arch) -> int:
    """Router, shared gate, norms, QK-norm and biases of one layer."""
    qk_norm = {"head": 2 * arch.head_dim, "full": arch.query_dim + arch.kv_dim, "no": 0}
    params = qk_norm[arch.qk_norm] + arch.norms_per_layer * arch.width
    if arch.qkv_bias:
        params += arch.query_dim + 2 * arch.kv_dim
    if arch.n_experts > 1:
        params += arch.width * arch.n_experts
    if arch.shared_gate:
        params += arch.width
    return params


def _embedding_params(arch: Arch) -> int:
    """V d tied, 2 V d untied."""
    tables = 1 if arch.tied else 2
    return tables * arch.vocabulary * arch.width


def _params(arch: Arch, experts: int) -> int:
    """All parameters, counting that many routed experts per layer."""
    layer = _attention_params(arch) + _expert_params(arch, experts) + _small_params(arch)
    return arch.depth * layer + arch.width + _embedding_params(arch)


def params_total(arch: Arch) -> int:
    """Stored parameters, the final norm included."""
    return _params(arch, arch.n_experts)


def params_active(arch: Arch) -> int:
    """Parameters with K for E in the expert term; router and shared expert whole."""
    return _params(arch, arch.top_k)


def _weights_bytes(arch: Arch, setting: Setting) -> float:
    """Attention projections and experts, shared too, at b_w."""
    layer = _attention_params(arch) + _expert_params(arch, arch.n_experts)
    return arch.depth * layer * setting.weight_bytes


def _kv_cache_bytes(arch: Arch, setting: Setting) -> float:
    """2 l B (S_in + S_out) d_m b_kv."""
    context = setting.input_tokens + setting.output_tokens
    return 2 * arch.depth * setting.batch * context * arch.kv_dim * setting.kv_bytes


def _peak_activation_bytes(arch: Arch, setting: Setting) -> float:
    """B S_in (4 d + 2 d_m + 2 r d + 2 shared) b_a, and the scores unless attention is fused."""
    b, s_in, b_a = setting.batch, setting.input_tokens, setting.activation_bytes
    r_d = arch.top_k * arch.expert_size
    per_token = 4 * arch.width + 2 * arch.kv_dim + 2 * r_d + 2 * arch.shared_expert_size
    total = b * s_in * per_token * b_a
    if setting.attention != "fused":
        total += b * arch.n_heads * s_in**2 * b_a
    return total


def memory_gb(arch: Arch, setting: Setting) -> float:
    """`weights`, never embeddings, in GB of 10^9 bytes."""
    return _weights_bytes(arch, setting) / 1e9


def resident_gb(arch: Arch, setting: Setting) -> float:
    """Weights, embeddings, small tensors, KV cache at full context and activations, in GB."""
    small = (arch.depth * _small_params(arch) + arch.width) * setting.activation_bytes
    total = _weights_bytes(arch, setting)
    total += _embedding_params(arch) * setting.head_bytes
    total += small
    total += _kv_cache_bytes(arch, setting)
    total += _peak_activation_bytes(arch, setting)
    return total / 1e9
