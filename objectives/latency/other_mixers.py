"""The operators of mixers that keep a state instead of a KV cache: linear attention and short convolution."""

from collections.abc import Iterator

from objectives.dimensions import Dimensions
from objectives.latency.operator import Operator, Phase, linear, quantise
from objectives.layer_kinds import STATE_BYTES
from objectives.scenario import Scenario


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
