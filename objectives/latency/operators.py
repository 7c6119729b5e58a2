"""The operators of a layer and of the head, also of experts in slow memory (host memory, flash) [app:problem_formulation]."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from objectives.dimensions import Dimensions, kv_cache_bytes
from objectives.latency.attention import attention_operators
from objectives.latency.operator import Operator, Phase, Values, linear, quantise
from objectives.layer_kinds import STATE_BYTES
from objectives.scenario import Scenario
from search_spaces.arrays import FloatArray


def mixer_operators(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Everything of a layer but its FFN: norms, what mixes tokens (attention or another kind), residual adds."""
    p, t, d, b_a = scenario.precision, phase.tokens, x.width, scenario.precision.activation_bytes
    yield Operator("norm", 4.0 * t * d, 2.0 * t * d * b_a, count=x.norms)
    yield from quantise("quantise_attention", t * d, p)
    yield from attention_operators(x, phase, scenario)
    yield from linear_attention_operators(x, phase, scenario)
    yield from short_convolution_operators(x, phase, scenario)
    if scenario.complete:
        yield Operator("residual_add", t * d, 3.0 * t * d * b_a, count=2.0)
    if scenario.serving.link and phase.name == "prefill":
        yield handed_over(x, phase, scenario)


def handed_over(x: Dimensions, phase: Phase, scenario: Scenario) -> Operator:
    """The KV cache of a prompt on its way to the chip that decodes, a layer's mean, at the link's rate; none overlaps with computing."""
    cache = kv_cache_bytes(x, phase.queries, phase.batch * scenario.precision.kv_bytes) / x.depth
    rates = scenario.seconds_per_flop("fp16"), 1.0 / scenario.serving.link
    return Operator("kv_cache over the link", 0.0 * cache, cache, own_rates=rates)


def ffn_operators(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Every FFN of a layer: router, experts, shared expert, and the dense FFN of layers without experts."""
    p, t, d, layers = scenario.precision, phase.tokens, x.width, x.kinds.experts
    b_a, active, out = p.activation_bytes, t * x.activated_size, t * x.top_k * d
    if x.sparse.any():
        experts = x.n_experts * x.sparse
        router_bytes = d * experts * p.small_bytes + t * experts * b_a + t * d * b_a * x.sparse
        yield Operator("router", 2.0 * t * d * experts, router_bytes, count=layers, present=x.sparse)
    yield from quantise("quantise_ffn", t * d, p)
    touched = x.touched_experts(independent_tokens(phase, scenario), scenario.routing_overlap)
    applied = x.activated_size * d
    weights = touched * x.expert_size * d
    (b_up, b_down), one = p.bytes_of_ffn(x.sparse), x.expert_size * d
    expert = partial(linear, weights=weights, weight_flops=applied, routed=x.sparse, out_bytes=b_a)
    up = partial(expert, p=p, weight_bytes=b_up, expert_bytes=one * b_up)
    down = partial(expert, p=p.of_down, weight_bytes=b_down, expert_bytes=one * b_down)
    yield from placed(up("gate_proj, up_proj", t, out, active, count=2.0 * layers), phase, scenario)
    yield Operator("gated_activation", 5.0 * active, 3.0 * active * b_a, count=layers)
    yield from quantise("quantise_down", active, p, count=layers)
    yield from placed(down("down_proj", t, active, out, count=layers), phase, scenario, last=True)
    if scenario.complete and x.sparse.any():
        combined = 2.0 * out * x.sparse, (x.top_k + 1.0) * t * d * b_a * x.sparse
        yield Operator("combine_experts", *combined, count=layers, present=x.sparse)
    if x.shared is not None:
        yield from _one_ffn("shared", x.shared, layers, x, phase, scenario)
    if x.kinds.dense is not None:
        yield from _one_ffn("dense", x.dense_size, x.kinds.dense, x, phase, scenario)


def independent_tokens(phase: Phase, scenario: Scenario) -> float:
    """Tokens of a pass, of a decode step's further positions those that choose experts independently of its first."""
    if phase.name == "prefill" or phase.queries == 1:
        return phase.tokens
    return phase.batch * (1.0 + (1.0 - scenario.serving.position_overlap) * (phase.queries - 1))


def _one_ffn(
    name: str, size: FloatArray, layers: Values, x: Dimensions, phase: Phase, scenario: Scenario
) -> Iterator[Operator]:
    """Gate, up, activation and down of an FFN that every token takes; nothing where its size is 0."""
    p, t, d, b_a = scenario.precision, phase.tokens, x.width, scenario.precision.activation_bytes
    here = (size > 0).astype(float)
    rows, active, up = t * here, t * size, f"{name}_gate_proj, {name}_up_proj"
    one = partial(linear, rows=t, weights=d * size, out_bytes=b_a, present=here)
    yield one(up, n_in=rows * d, n_out=active, p=p, count=2.0 * layers)
    yield Operator(f"{name}_activation", 5.0 * active, 3.0 * active * b_a, count=layers, present=here)
    yield from quantise(f"quantise_{name}_down", active, p, here, count=layers)
    yield one(
        f"{name}_down_proj", n_in=active, n_out=rows * d, p=p.of_down, count=layers, weight_bytes=p.bytes_of("down")
    )


def head_operators(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Once per pass: embedding look-up of all T tokens, LM head for one position per sequence, in decoding for each; a request's constant."""
    if phase.name == "prefill" and scenario.request_s:
        none = 0.0 * x.width
        yield Operator("request", none, none, present=none, fixed_seconds=scenario.request_s)
    if x.vocabulary is None:
        return
    b_a, vocabulary = scenario.precision.activation_bytes, x.vocabulary
    batch = phase.tokens if phase.name == "decode" else float(phase.batch)
    b_head, b_table = scenario.bytes_of_head(), scenario.bytes_of_embedding(x.architectures.tied)
    here = (vocabulary > 0).astype(float)
    yield Operator("embedding", 0.0 * here, phase.tokens * x.width * (b_table + b_a) * here, present=here)
    traffic = x.width * vocabulary * b_head + batch * (x.width * here + vocabulary) * b_a
    yield Operator("lm_head", 2.0 * batch * x.width * vocabulary, traffic, present=here)


def drafting_operators(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """What a head for multi-token prediction has besides a layer and the LM head: two norms, and the projection of 2 d features to d.

    Source: DeepSeek-AI 2024 (2412.19437), section 2.2.
    """
    p, t, d, b_a = scenario.precision, phase.tokens, x.width, scenario.precision.activation_bytes
    yield Operator("mtp_norms", 8.0 * t * d, 4.0 * t * d * b_a)
    yield from quantise("quantise_mtp", 2.0 * t * d, p)
    yield linear("mtp_proj", t, 2.0 * t * d, t * d, 2.0 * d * d, p, out_bytes=b_a)


#: Operators of a layer's mixer or FFN, or of the head (`base`).
OF_PART = {"base": head_operators, "attention": mixer_operators, "ffn": ffn_operators}


def placed(operator: Operator, phase: Phase, scenario: Scenario, *, last: bool = False) -> Iterator[Operator]:
    """An operator of experts: of the layers whose experts lie in slow memory at that memory's rates; `last` waits for it.

    Layers are taken as alike, a share of each operator's instances.
    """
    share = scenario.serving.slow_share
    if not share:
        yield operator
        return
    if share < 1.0:
        yield replace(operator, count=operator.count * (1.0 - share))
    wait = scenario.slow_memory.overhead_s + scenario.serving.hot.wait_ms * 1e-3 if last else 0.0
    rates = slow_rates(operator, phase, scenario)
    yield replace(
        operator, name=f"slow {operator.name}", count=operator.count * share, own_rates=rates, wait_seconds=wait
    )


def slow_rates(operator: Operator, phase: Phase, scenario: Scenario) -> tuple[float, float]:
    """Seconds a FLOP and a byte of experts in slow memory.

    A decode step computes them where they lie, if the device file states that memory's processor, and reads what the hot
    experts serve from fast memory, the one after the other: (1 - h) / (eta_s beta_s) + h / (eta_b beta). A prefill brings them over the
    link and computes on the device.
    """
    memory, hits = scenario.slow_memory, scenario.serving.hot.hits
    per_flop, fast = scenario.seconds_per_flop(operator.peak), scenario.seconds_per_byte(phase.name, routed=True)
    rate = memory.rate if phase.name == "decode" else memory.link or memory.rate
    slow = 1.0 / (scenario.slow_efficiency * rate)
    if phase.name == "decode" and memory.fp16 is not None:
        per_flop = 1.0 / memory.fp16
    return per_flop, (1.0 - hits) * slow + hits * fast


def linear_attention_operators(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Gated DeltaNet or Mamba2: projection, causal convolution, recurrence, gated norm, projection.

    The recurrence is counted token by token, 7 (Gated DeltaNet: decay, read-out of the key, update, read-out) or 5
    (Mamba2: decay, update, read-out) FLOPs per token and element of the state; a pass reads and writes the state once.
    """
    kinds, p, t, d = x.kinds, scenario.precision, phase.tokens, x.width
    layers, b_a, batch = kinds.linear, p.activation_bytes, float(phase.batch)
    if layers is None:
        return
    out, inner, channels = kinds.projected, kinds.inner, kinds.channels
    yield linear("linear_in_proj", t, t * d, t * out, d * out, p, out_bytes=b_a, count=layers)
    taps, kept = channels * kinds.kernel, batch * channels * (kinds.kernel - 1.0) * (layers > 0)
    moved = (taps + 2.0 * t * channels + 2.0 * kept) * b_a
    yield Operator("linear_conv", 2.0 * t * taps, moved, count=layers)
    state = 2.0 * batch * kinds.state * STATE_BYTES
    scan = kinds.scan_flops * t * kinds.state
    yield Operator("linear_scan", scan, t * (channels + inner) * b_a + state, count=layers)
    yield Operator("gated_norm", 9.0 * t * inner, 3.0 * t * inner * b_a, count=layers)
    yield from quantise("quantise_linear_out", t * inner, p, count=layers)
    yield linear("linear_out_proj", t, t * inner, t * d, d * inner, p, out_bytes=b_a, count=layers)


def short_convolution_operators(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """LFM2's mixer: projection to two gates and a value, gated causal convolution of d channels, projection."""
    kinds, p, t, d = x.kinds, scenario.precision, phase.tokens, x.width
    layers, b_a, batch = kinds.conv, p.activation_bytes, float(phase.batch)
    if layers is None:
        return
    yield linear("conv_in_proj", t, t * d, 3.0 * t * d, 3.0 * d * d, p, out_bytes=b_a, count=layers)
    taps, kept = d * kinds.conv_kernel, batch * d * (kinds.conv_kernel - 1.0) * (layers > 0)
    moved = (taps + 4.0 * t * d + 2.0 * kept) * b_a
    yield Operator("short_conv", 2.0 * t * taps + 2.0 * t * d, moved, count=layers)
    yield from quantise("quantise_conv_out", t * d, p, count=layers)
    yield linear("conv_out_proj", t, t * d, t * d, d * d, p, out_bytes=b_a, count=layers)
