"""Scalar reference of the model page, sections 2 to 7: the test oracle.

One architecture at a time, one operator at a time, plain Python floats. Every
row below is the row of the same name in the model page's tables; every decode pass
and every layer is walked explicitly. It is slow on purpose and shares no code
with the product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
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


Mixer = Literal["full", "local", "linear", "conv"]


@dataclass(frozen=True)
class Layer:
    """One layer: what mixes tokens, whether it owns a KV cache, whether its FFN is the dense one."""

    mixer: Mixer = "full"
    own_kv: bool = True
    dense: bool = False


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
    n_local: int = 0
    window: int = 0
    n_kv_shared: int = 0
    n_kv_shared_local: int = 0
    n_linear: int = 0
    linear_kind: Literal["no", "deltanet", "mamba2"] = "no"
    linear_heads: int = 0
    linear_key_heads: int = 0
    linear_key_dim: int = 0
    linear_value_dim: int = 0
    linear_kernel: int = 0
    n_conv: int = 0
    conv_kernel: int = 0
    n_dense: int = 0
    dense_size: int = 0
    attention_gate: bool = False
    full_head_dim: int = 0
    full_kv_heads: int = 0
    keys_are_values: bool = False
    latent_size: int = 0
    latent_rope: int = 0
    latent_queries: int = 0
    value_dim: int = 0
    further_parameters: int = 0
    table_parameters: int = 0
    index_heads: int = 0
    index_dim: int = 0
    ungated_ffn: bool = False

    @cached_property
    def layers(self) -> list[Layer]:
        """Every layer: its mixer, whether it has keys and values of its own, its FFN."""
        full = self.depth - self.n_local - self.n_linear - self.n_conv
        full_shared = self.n_kv_shared - self.n_kv_shared_local
        mixers: list[tuple[Mixer, bool]] = []
        mixers += [("full", i >= full_shared) for i in range(full)]
        mixers += [("local", i >= self.n_kv_shared_local) for i in range(self.n_local)]
        mixers += [("linear", False) for _ in range(self.n_linear)]
        mixers += [("conv", False) for _ in range(self.n_conv)]
        return [Layer(mixer, own, i < self.n_dense) for i, (mixer, own) in enumerate(mixers)]

    def seen_by(self, layer: Layer) -> Arch:
        """The architecture with the heads of a layer: full attention may have its own."""
        if layer.mixer != "full" or not self.full_head_dim:
            return replace(self, keys_are_values=False)
        return replace(self, head_dim=self.full_head_dim, n_kv_heads=self.full_kv_heads)

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
    head_bytes: float | None = None
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
    decode_attention_compute: float | None = None
    decode_compute: float = 1.0
    batched_compute: float = 1.0
    scan_compute: float = 1.0
    expert_compute: float = 1.0
    expert_bandwidth: float = 1.0
    routing_overlap: float = 0.0
    cache: float = 0.0
    cache_bandwidth: float = 0.0
    cache_efficiency: float | None = None

    @property
    def table_bytes(self) -> float:
        """b_head; where it is not given, of 16 bits but under fp32."""
        return self.head_bytes or (4.0 if self.precision == "fp32" else 2.0)

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


def layers_nats(arch: Arch, deltas: dict[str, float], context: int) -> float:
    """What its layers cost beside the law: every layer a depth-th of the delta of its kind, a window that of its halvings."""
    total = 0.0
    for layer in arch.layers:
        names = {"local": ("local",), "conv": ("conv",), "linear": (arch.linear_kind,)}.get(layer.mixer, ())
        nats = sum(deltas.get(name, 0.0) for name in names)
        if layer.mixer in ("full", "local") and not layer.own_kv:
            nats += deltas.get("kv_shared", 0.0)
        if layer.mixer == "local" and arch.window < context:
            nats += deltas.get("window", 0.0) * (math.log(context) - math.log(arch.window)) / math.log(2.0)
        total += nats / arch.depth
    return total


def perplexity(arch: Arch) -> float:
    """exp(L)."""
    return math.exp(loss(arch))


# Section 4: latency, closed form


def _check_closed_form(arch: Arch, setting: Setting) -> None:
    """Refuse what the closed form does not cover: d_q not d, the options of section 5."""
    refused = {
        "query_dim other than width": arch.query_dim != arch.width,
        "shared expert": arch.shared_expert_size != 0,
        "layer kinds": arch.layers != [Layer()] * arch.depth or arch.attention_gate,
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


def _projections_in(arch: Arch, setting: Setting, t: int, layer: Layer) -> list[Operator]:
    """q, and k and v where the layer keeps its own; a gated attention projects a gate beside the queries."""
    d, d_q, d_m = arch.width, arch.query_dim, arch.kv_dim
    b_w, b_a, b_i, b_kv = (
        setting.weight_bytes,
        setting.activation_bytes,
        setting.input_bytes,
        setting.kv_bytes,
    )
    out = 2 * d_q if arch.attention_gate else d_q
    q_bytes = d * out * b_w + t * d * b_i + t * out * b_a
    rows = _linear(setting, "q_proj", 2.0 * t * d * out, q_bytes, t * out)
    if layer.own_kv:
        kv_bytes = d * d_m * b_w + t * d * b_i + t * d_m * b_kv
        rows += _linear(setting, "k_proj", 2.0 * t * d * d_m, kv_bytes, t * d_m)
        if not arch.keys_are_values:
            rows += _linear(setting, "v_proj", 2.0 * t * d * d_m, kv_bytes, t * d_m)
    return rows


def _projection_out(arch: Arch, setting: Setting, t: int) -> list[Operator]:
    """The gate where there is one, quantise of the o_proj input, then o_proj."""
    d, d_q = arch.width, arch.query_dim
    b_w, b_a, b_i = setting.weight_bytes, setting.activation_bytes, setting.input_bytes
    rows: list[Operator] = []
    if arch.attention_gate:
        rows.append(("attention_gate", 5.0 * t * d_q, 3.0 * t * d_q * b_a, FP16))
    rows += _quantise(setting, "o_proj_input", t * d_q)
    o_bytes = d * d_q * b_w + t * d_q * b_i + t * d * b_a
    rows += _linear(setting, "o_proj", 2.0 * t * d * d_q, o_bytes, t * d)
    return rows


def _keys_of_a_query(arch: Arch, layer: Layer, before: int) -> int:
    """Keys that the query at a place attends to, of those before it and itself."""
    return min(before, arch.window) if layer.mixer == "local" else before


def _score_pairs(arch: Arch, setting: Setting, phase: Phase, s_q: int, s_kv: int, layer: Layer) -> float:
    """Pairs of query and key: every one up to the window, counted query by query in a causal prefill."""
    if setting.causal and phase == "prefill":
        if layer.mixer == "full" or arch.window >= s_kv:
            return s_kv * (s_kv + 1) / 2.0
        return float(sum(_keys_of_a_query(arch, layer, i) for i in range(1, s_kv + 1)))
    return float(s_q * _keys_of_a_query(arch, layer, s_kv))


def _keys_read(arch: Arch, phase: Phase, s_kv: int, layer: Layer) -> int:
    """Keys that a pass reads: in the prefill every one is in some query's window."""
    return s_kv if phase == "prefill" else _keys_of_a_query(arch, layer, s_kv)


def _scores_unfused(arch: Arch, setting: Setting, phase: Phase, s_kv: int, layer: Layer) -> list[Operator]:
    """qk_matmul, softmax and sv_matmul, three operators."""
    b, n_h, d_q, d_m = setting.batch, arch.n_heads, arch.query_dim, arch.kv_dim
    b_a, b_kv = setting.activation_bytes, setting.kv_bytes
    s_q, read = _queries(setting, phase), _keys_read(arch, phase, s_kv, layer)
    pairs = _score_pairs(arch, setting, phase, s_q, s_kv, layer)
    matmul_flops = 2.0 * b * pairs * d_q
    qk_bytes = b * s_q * d_q * b_a + b * read * d_m * b_kv + b * n_h * pairs * b_a
    sv_bytes = b * n_h * pairs * b_a + b * read * d_m * b_kv + b * s_q * d_q * b_a
    return [
        ("qk_matmul", matmul_flops, qk_bytes, FP16),
        ("softmax", 5.0 * b * n_h * pairs, 2.0 * b * n_h * pairs * b_a, FP16),
        ("sv_matmul", matmul_flops, sv_bytes, FP16),
    ]


def _scores_fused(arch: Arch, setting: Setting, phase: Phase, s_kv: int, layer: Layer) -> list[Operator]:
    """qk, softmax and sv as one operator; causal changes its FLOPs alone."""
    b, n_h, d_q, d_m = setting.batch, arch.n_heads, arch.query_dim, arch.kv_dim
    b_a, b_kv = setting.activation_bytes, setting.kv_bytes
    s_q, read = _queries(setting, phase), _keys_read(arch, phase, s_kv, layer)
    pairs = _score_pairs(arch, setting, phase, s_q, s_kv, layer)
    flops = 4.0 * b * pairs * d_q + 5.0 * b * n_h * pairs
    traffic = 2.0 * b * s_q * d_q * b_a + 2.0 * b * read * d_m * b_kv
    return [("fused_attention", flops, traffic, FP16)]


def _scores(arch: Arch, setting: Setting, phase: Phase, s_kv: int, layer: Layer) -> list[Operator]:
    """The attention between the projections."""
    if setting.attention == "fused":
        return _scores_fused(arch, setting, phase, s_kv, layer)
    if setting.attention == "unfused":
        return _scores_unfused(arch, setting, phase, s_kv, layer)
    raise ValueError(f"unknown attention {setting.attention!r}")


def _linear_sizes(arch: Arch) -> tuple[int, int, int]:
    """Of linear attention: inner features h_v d_v, convolved channels 2 h_k d_k + h_v d_v, and all that is projected.

    Gated DeltaNet projects q, k, v, z and two numbers per head; Mamba2 C, B, x, z and one.
    """
    inner = arch.linear_heads * arch.linear_value_dim
    channels = 2 * arch.linear_key_heads * arch.linear_key_dim + inner
    per_head = {"deltanet": 2, "mamba2": 1}[arch.linear_kind]
    return inner, channels, channels + inner + per_head * arch.linear_heads


def _linear_attention(arch: Arch, setting: Setting, t: int) -> list[Operator]:
    """Projection, causal convolution, recurrence, gated norm, projection."""
    d, b = arch.width, setting.batch
    inner, channels, projected = _linear_sizes(arch)
    b_w, b_a, b_i = setting.weight_bytes, setting.activation_bytes, setting.input_bytes
    state = arch.linear_heads * arch.linear_key_dim * arch.linear_value_dim
    per_element = {"deltanet": 7, "mamba2": 5}[arch.linear_kind]
    in_bytes = d * projected * b_w + t * d * b_i + t * projected * b_a
    rows = _linear(setting, "linear_in_proj", 2.0 * t * d * projected, in_bytes, t * projected)
    taps, kept = channels * arch.linear_kernel, b * channels * (arch.linear_kernel - 1)
    rows.append(("linear_conv", 2.0 * t * taps, (taps + 2.0 * t * channels + 2.0 * kept) * b_a, FP16))
    scanned = t * (channels + inner) * b_a + 2.0 * b * state * 4.0
    rows.append(("linear_scan", float(per_element * t * state), scanned, FP16))
    rows.append(("gated_norm", 9.0 * t * inner, 3.0 * t * inner * b_a, FP16))
    rows += _quantise(setting, "linear_out_input", t * inner)
    out_bytes = d * inner * b_w + t * inner * b_i + t * d * b_a
    return rows + _linear(setting, "linear_out_proj", 2.0 * t * d * inner, out_bytes, t * d)


def _short_convolution(arch: Arch, setting: Setting, t: int) -> list[Operator]:
    """Projection to two gates and a value, gated causal convolution, projection."""
    d, b = arch.width, setting.batch
    b_w, b_a, b_i = setting.weight_bytes, setting.activation_bytes, setting.input_bytes
    in_bytes = 3 * d * d * b_w + t * d * b_i + 3 * t * d * b_a
    rows = _linear(setting, "conv_in_proj", 6.0 * t * d * d, in_bytes, 3 * t * d)
    taps, kept = d * arch.conv_kernel, b * d * (arch.conv_kernel - 1)
    rows.append(("short_conv", 2.0 * t * taps + 2.0 * t * d, (taps + 4.0 * t * d + 2.0 * kept) * b_a, FP16))
    rows += _quantise(setting, "conv_out_input", t * d)
    return rows + _linear(setting, "conv_out_proj", 2.0 * t * d * d, d * d * b_w + t * d * b_i + t * d * b_a, t * d)


def _latent_attention(arch: Arch, setting: Setting, phase: Phase, s_kv: int, t: int, layer: Layer) -> list[Operator]:
    """Latent attention, absorbed: r + c elements kept of a token, scores of r + c features a head, values of r."""
    b, d, n_h, r, c = setting.batch, arch.width, arch.n_heads, arch.latent_size, arch.latent_rope
    b_a, b_kv, rank = setting.activation_bytes, setting.kv_bytes, arch.latent_queries
    d_q, d_v = arch.query_dim, n_h * arch.value_dim

    def product(name: str, n_in: int, n_out: int, weights: int, out: float = b_a) -> list[Operator]:
        moved = weights * setting.weight_bytes + t * n_in * setting.input_bytes + t * n_out * out
        return _linear(setting, name, 2.0 * t * weights, moved, t * n_out)

    rows = product("q_down", d, rank, d * rank) if rank else []
    rows += product("q_up", rank or d, d_q, (rank or d) * d_q)
    rows += product("kv_down", d, r + c, d * (r + c), b_kv)
    rows += product("k_up", d_q - n_h * c, n_h * r, r * (d_q - n_h * c))
    if arch.index_dim:
        h, i = arch.index_heads, arch.index_dim
        rows += product("index_q", rank, h * i, rank * h * i)
        rows += product("index_k", d, i, d * i, b_kv)
        rows += product("index_weights", d, h, d * h)
        seen = _score_pairs(arch, setting, phase, _queries(setting, phase), s_kv, Layer())
        rows.append(("index_scores", 2.0 * b * seen * h * (i + 1), t * h * i * b_a + b * s_kv * i * b_kv, FP16))
    pairs = _score_pairs(arch, setting, phase, _queries(setting, phase), s_kv, layer)
    vectors, kept = b * _queries(setting, phase) * n_h * b_a, b * s_kv * (r + c) * b_kv
    scores = n_h * b * pairs * b_a
    if setting.attention == "fused":
        flops = 2.0 * b * pairs * n_h * (r + c + r) + 5.0 * b * n_h * pairs
        rows.append(("fused_attention", flops, vectors * (r + c + r) + kept, FP16))
    else:
        rows.append(("qk_matmul", 2.0 * b * pairs * n_h * (r + c), vectors * (r + c) + kept / 2 + scores, FP16))
        rows.append(("softmax", 5.0 * b * n_h * pairs, 2.0 * scores, FP16))
        rows.append(("sv_matmul", 2.0 * b * pairs * n_h * r, vectors * r + kept / 2 + scores, FP16))
    rows += product("v_up", n_h * r, d_v, r * d_v)
    return [*rows, *_quantise(setting, "o_proj_input", t * d_v), *product("o_proj", d_v, d, d * d_v)]


def _mixer(arch: Arch, setting: Setting, phase: Phase, s_kv: int, t: int, layer: Layer) -> list[Operator]:
    """What mixes tokens in a layer, behind the quantise of its input."""
    rows = _quantise(setting, "attention_input", t * arch.width)
    if layer.mixer == "linear":
        return rows + _linear_attention(arch, setting, t)
    if layer.mixer == "conv":
        return rows + _short_convolution(arch, setting, t)
    if arch.latent_size:
        return rows + _latent_attention(arch, setting, phase, s_kv, t, layer)
    rows += _projections_in(arch, setting, t, layer)
    rows += _scores(arch, setting, phase, s_kv, layer)
    return rows + _projection_out(arch, setting, t)


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
    rows = _linear(setting, f"{prefix}up_proj", flops, up_bytes, t * r_d)
    if arch.ungated_ffn:
        rows.append((f"{prefix}activation", 2.0 * t * r_d, 2.0 * t * r_d * b_a, FP16))
    else:
        rows += _linear(setting, f"{prefix}gate_proj", flops, up_bytes, t * r_d)
        rows.append((f"{prefix}gated_activation", 5.0 * t * r_d, 3.0 * t * r_d * b_a, FP16))
    rows += _quantise(setting, f"{prefix}down_proj_input", t * r_d)
    rows += _linear(setting, f"{prefix}down_proj", flops, down_bytes, t * k * d, INT8 if eight else None)
    return rows


def _ffns(arch: Arch, setting: Setting, t: int, layer: Layer) -> list[Operator]:
    """Quantise of the FFN input (once), then a dense FFN, or router, routed experts and the shared expert (E = K = 1)."""
    rows = _quantise(setting, "ffn_input", t * arch.width)
    if layer.dense:
        return rows + _ffn(arch, setting, t, "dense_", 1, 1, arch.dense_size)
    rows += _router(arch, setting, t)
    rows += _ffn(arch, setting, t, "", arch.n_experts, arch.top_k, arch.expert_size)
    if arch.shared_expert_size > 0:
        rows += _ffn(arch, setting, t, "shared_", 1, 1, arch.shared_expert_size)
    return rows


def _complete(arch: Arch, setting: Setting, t: int, layer: Layer) -> list[Operator]:
    """What `complete` adds: two residual adds, RoPE with QK-norm, combination of experts."""
    if not setting.complete:
        return []
    d, k, b_a = arch.width, arch.top_k, setting.activation_bytes
    rows: list[Operator] = [
        ("residual_add_1", float(t * d), 3.0 * t * d * b_a, FP16),
        ("residual_add_2", float(t * d), 3.0 * t * d * b_a, FP16),
    ]
    if layer.mixer in ("full", "local"):
        kept = arch.latent_size + arch.latent_rope if arch.latent_size else arch.kv_dim
        heads = arch.query_dim + (kept if layer.own_kv else 0)
        rows.append(("rope_qk_norm", 8.0 * t * heads, 2.0 * t * heads * b_a, FP16))
    if arch.n_experts > 1 and not layer.dense:
        rows.append(("combine_experts", 2.0 * t * k * d, (k + 1.0) * t * d * b_a, FP16))
    return rows


def operators(arch: Arch, setting: Setting, phase: Phase, s_kv: int, layer: Layer | None = None) -> list[Operator]:
    """The operators of one layer in one pass: (name, FLOPs, bytes, "fp16", "int8" or "fp4").

    The layer is one of full attention unless given. Under int8 the fused epilogues stand as rows of their own, named
    `<operator>_dequantise`, with no bytes; they are no launch (no tau).
    """
    t, layer = setting.batch * _queries(setting, phase), layer or Layer()
    arch = arch.seen_by(layer)
    rows = _norms(arch, setting, t)
    rows += _mixer(arch, setting, phase, s_kv, t, layer)
    rows += _ffns(arch, setting, t, layer)
    rows += _complete(arch, setting, t, layer)
    return rows


def vocabulary_operators(arch: Arch, setting: Setting, phase: Phase) -> list[Operator]:
    """Embedding look-up (all T tokens) and LM head (one position per sequence), once per pass."""
    if arch.vocabulary == 0:
        return []
    b, d, v = setting.batch, arch.width, arch.vocabulary
    t = b * _queries(setting, phase)
    b_a, b_head = setting.activation_bytes, setting.table_bytes
    return [
        ("embedding", 0.0, t * d * b_head + t * d * b_a, FP16),
        ("lm_head", 2.0 * b * d * v, d * v * b_head + b * d * b_a + b * v * b_a, FP16),
    ]


ATTENTION = ("index_scores", "qk_matmul", "softmax", "sv_matmul", "fused_attention")
EXPERTS = ("gate_proj", "up_proj", "down_proj")


def _factors(arch: Arch, setting: Setting, name: str, phase: Phase) -> tuple[float, float]:
    """What multiplies eta_c and eta_b: of the attention core, and of routed experts' linear operators."""
    if name in ATTENTION and phase == "decode" and setting.decode_attention_compute is not None:
        return setting.decode_attention_compute, setting.attention_bandwidth
    if name in ATTENTION:
        return setting.attention_compute, setting.attention_bandwidth
    share = 1.0
    if phase == "decode":
        share = setting.decode_compute
        if setting.batch > 1:
            share = min(setting.batch * setting.decode_compute, setting.batched_compute)
    elif name == "linear_scan":
        share = setting.scan_compute
    if name in EXPERTS and arch.n_experts > 1:
        return share * setting.expert_compute, setting.expert_bandwidth
    return share, 1.0


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
    more_flops, more_bytes = _factors(arch, setting, name, phase)
    return max(flops / (rate * more_flops), traffic / (eta_b * more_bytes * setting.bandwidth)) + tau


def _pass_s(arch: Arch, setting: Setting, phase: Phase, s_kv: int) -> float:
    """One pass: every operator of every layer, then the vocabulary's operators."""
    seconds = 0.0
    times = {
        layer: [operator_s(arch, setting, operator, phase) for operator in operators(arch, setting, phase, s_kv, layer)]
        for layer in set(arch.layers)
    }
    for layer in arch.layers:
        for operator_time in times[layer]:
            seconds += operator_time
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
        rows = {
            layer: operators(arch, uniform, "decode", setting.input_tokens + t, layer) for layer in set(arch.layers)
        }
        moved += sum(traffic for layer in arch.layers for _, _, traffic, _ in rows[layer])
        moved += sum(traffic for _, _, traffic, _ in vocabulary_operators(arch, uniform, "decode"))
    left = arch.n_experts - _expected_experts(arch.n_experts, arch.top_k, setting.batch)
    with_experts = sum(not layer.dense for layer in arch.layers)
    half = (
        0.5
        * (2.0 if arch.ungated_ffn else 3.0)
        * with_experts
        * left
        * arch.expert_size
        * arch.width
        * setting.weight_bytes
    )
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


def _mixer_params(arch: Arch, layer: Layer) -> int:
    """Weights of a layer's projections, without its FFN."""
    arch = arch.seen_by(layer)
    if arch.latent_size and layer.mixer == "full":
        d, n_h, r, c, rank = arch.width, arch.n_heads, arch.latent_size, arch.latent_rope, arch.latent_queries
        queries = rank * (d + arch.query_dim) if rank else d * arch.query_dim
        ups = r * n_h * (arch.head_dim - c) + r * n_h * arch.value_dim
        index = rank * arch.index_heads * arch.index_dim + d * (arch.index_dim + arch.index_heads)
        return queries + d * (r + c) + ups + n_h * arch.value_dim * d + index
    d, d_q, d_m = arch.width, arch.query_dim, arch.kv_dim
    if layer.mixer == "linear":
        inner, _, projected = _linear_sizes(arch)
        return d * projected + inner * d
    if layer.mixer == "conv":
        return d * 3 * d + d * d
    projections = 1 if arch.keys_are_values else 2
    return (3 if arch.attention_gate else 2) * d * d_q + (projections * d * d_m if layer.own_kv else 0)


def _ffn_params(arch: Arch, experts: int, layer: Layer) -> int:
    """Weights of that many routed experts and of the shared expert, or of the dense FFN, in one layer."""
    matrices = 2 if arch.ungated_ffn else 3
    if layer.dense:
        return matrices * arch.width * arch.dense_size
    return matrices * arch.width * (arch.expert_size * experts + arch.shared_expert_size)


def _mixer_small_params(arch: Arch, layer: Layer) -> int:
    """QK-norm and biases of attention, norms of latents; convolution, steps, decays and norm of the others."""
    arch = arch.seen_by(layer)
    if arch.latent_size and layer.mixer == "full":
        return arch.latent_size + arch.latent_queries + 2 * arch.index_dim
    keys, d_q, d_m = int(layer.own_kv), arch.query_dim, arch.kv_dim
    if layer.mixer == "conv":
        return arch.width * arch.conv_kernel
    if layer.mixer == "linear":
        inner, channels, _ = _linear_sizes(arch)
        if arch.linear_kind == "deltanet":  # dt_bias, A_log; a norm that the heads share
            return channels * arch.linear_kernel + 2 * arch.linear_heads + arch.linear_value_dim
        return channels * (arch.linear_kernel + 1) + 3 * arch.linear_heads + inner  # with D and the convolution's bias
    params = {"head": arch.head_dim * (1 + keys), "full": d_q + keys * d_m, "no": 0}[arch.qk_norm]
    return params + (d_q + 2 * keys * d_m if arch.qkv_bias else 0)


def _small_params(arch: Arch, layer: Layer) -> int:
    """Router, shared gate, norms and the mixer's small tensors of one layer."""
    params = _mixer_small_params(arch, layer) + arch.norms_per_layer * arch.width
    if arch.n_experts > 1 and not layer.dense:
        params += arch.width * arch.n_experts
    if arch.shared_gate and not layer.dense:
        params += arch.width
    return params


def _embedding_params(arch: Arch) -> int:
    """V d tied, 2 V d untied."""
    tables = 1 if arch.tied else 2
    return tables * arch.vocabulary * arch.width


def _params(arch: Arch, experts: int) -> int:
    """All parameters, counting that many routed experts per layer."""
    layers = sum(
        _mixer_params(arch, layer) + _ffn_params(arch, experts, layer) + _small_params(arch, layer)
        for layer in arch.layers
    )
    return layers + arch.width + arch.further_parameters + _embedding_params(arch)


def params_total(arch: Arch) -> int:
    """Stored parameters, the final norm included."""
    return _params(arch, arch.n_experts) + arch.table_parameters * (arch.vocabulary > 0)


def params_active(arch: Arch) -> int:
    """Parameters with K for E in the expert term; router and shared expert whole."""
    return _params(arch, arch.top_k)


def _weights_bytes(arch: Arch, setting: Setting) -> float:
    """Projections of the mixers, experts (shared too) and dense FFNs at b_w."""
    weights = sum(_mixer_params(arch, layer) + _ffn_params(arch, arch.n_experts, layer) for layer in arch.layers)
    return weights * setting.weight_bytes


def kept_bytes(arch: Arch, setting: Setting, layer: Layer) -> float:
    """What one layer keeps of B sequences at full context: KV cache, or state and the inputs that a convolution needs."""
    b, b_a = setting.batch, setting.activation_bytes
    context = setting.input_tokens + setting.output_tokens
    if layer.mixer == "linear":
        state = arch.linear_heads * arch.linear_key_dim * arch.linear_value_dim * 4.0
        return b * (state + _linear_sizes(arch)[1] * (arch.linear_kernel - 1) * b_a)
    if layer.mixer == "conv":
        return b * arch.width * (arch.conv_kernel - 1) * b_a
    if not layer.own_kv:
        return 0.0
    tokens = min(context, arch.window) if layer.mixer == "local" else context
    kept = arch.latent_size + arch.latent_rope + arch.index_dim if arch.latent_size else 2 * arch.seen_by(layer).kv_dim
    return b * tokens * kept * setting.kv_bytes


def _mixer_activations(arch: Arch, setting: Setting, layer: Layer) -> float:
    """Elements of B prompts that a mixer holds: 4 d + 2 d_m per token and unfused scores; or what it projects."""
    b, s_in, d = setting.batch, setting.input_tokens, arch.width
    if layer.mixer == "linear":
        inner, channels, _ = _linear_sizes(arch)
        return b * s_in * (2 * d + channels + 2 * inner)
    if layer.mixer == "conv":
        return b * s_in * 6 * d
    scores = 0 if setting.attention == "fused" else b * arch.n_heads * s_in * _keys_of_a_query(arch, layer, s_in)
    return b * s_in * (4 * d + 2 * arch.kv_dim) + scores


def _peak_activation_bytes(arch: Arch, setting: Setting) -> float:
    """The mixer that holds most and, 2 features each, the FFN that holds most, at b_a."""
    tokens = setting.batch * setting.input_tokens
    mixer = max(_mixer_activations(arch, setting, layer) for layer in set(arch.layers))
    held = 1 if arch.ungated_ffn else 2
    experts = held * arch.top_k * arch.expert_size + held * arch.shared_expert_size
    return (mixer + tokens * max(experts, held * arch.dense_size)) * setting.activation_bytes


def memory_gb(arch: Arch, setting: Setting) -> float:
    """`weights`, never embeddings, in GB of 10^9 bytes."""
    return _weights_bytes(arch, setting) / 1e9


def resident_gb(arch: Arch, setting: Setting) -> float:
    """Weights, embeddings, small tensors, caches and states at full context and activations, in GB."""
    small = sum(_small_params(arch, layer) for layer in arch.layers) + arch.width + arch.further_parameters
    total = _weights_bytes(arch, setting)
    total += _embedding_params(arch) * setting.table_bytes
    total += arch.table_parameters * (arch.vocabulary > 0) * setting.weight_bytes
    total += small * setting.activation_bytes
    total += sum(kept_bytes(arch, setting, layer) for layer in arch.layers)
    total += _peak_activation_bytes(arch, setting)
    return total / 1e9
