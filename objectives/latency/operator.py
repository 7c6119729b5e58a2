"""One operator, one phase and the passes of a request: FLOPs and bytes [app:problem_formulation].

1 multiply-accumulate = 2 FLOPs. FLOPs and bytes are constant in the context length S_kv, except
in the attention core, where both are affine: `flops + flops_per_kv · S_kv`, up to a window.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from objectives.device import Kind, Peak
from objectives.dimensions import Dimensions
from objectives.precision import Precision
from objectives.scenario import Scenario
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

    def context(self, window: Values | None = None) -> Values:
        """Σ over passes of S_kv, or of min(S_kv, window)."""
        if window is None:
            return 0.5 * self.passes * (self.first_kv + self.last_kv)
        last = np.clip(window, self.first_kv - 1, self.last_kv)
        growing: FloatArray = 0.5 * (last - self.first_kv + 1) * (self.first_kv + last)
        return growing + (self.last_kv - last) * window


def phases(scenario: Scenario) -> tuple[Phase, Phase]:
    """Prefill: one pass, S_q = S_kv = S_in. Decode: S_out passes, S_q = 1, S_kv = S_in + t, t = 1 … S_out."""
    read, written, batch = scenario.input_tokens, scenario.output_tokens, scenario.batch
    return Phase("prefill", batch, read, read, read), Phase("decode", batch, 1, read + 1, read + written)


@dataclass(frozen=True, eq=False)
class Operator:
    """Cost of one operator in one pass; `count` instances in a layer (the mean of all), each launched where `present` is 1.

    window: tokens beyond which S_kv does not count.
    epilogue_flops: work after the operator's max at the FP16 peak (fused dequantise), no traffic.
    fixed_seconds: time besides, once in the phase.
    expert_bytes: of one expert's weights, where routed.
    kind: whose factors on the efficiencies hold, where `routed` is 1 (everywhere without it).
    own_rates: seconds a FLOP and a byte where it does not run on the device's own memory; wait_seconds: of a pass besides, an instance.
    """

    name: str
    flops: Values
    bytes: Values
    peak: Peak = "fp16"
    count: Values = 1.0
    present: Values = 1.0
    flops_per_kv: Values | None = None
    bytes_per_kv: Values | None = None
    window: Values | None = None
    epilogue_flops: Values | None = None
    fixed_seconds: float = 0.0
    kind: Kind = "plain"
    routed: FloatArray | None = None
    expert_bytes: Values = 0.0
    own_rates: tuple[float, float] | None = None
    wait_seconds: float = 0.0


def linear(
    name: str,
    rows: float,
    n_in: Values,
    n_out: Values,
    weights: Values,
    p: Precision,
    *,
    out_bytes: float,
    count: Values = 1.0,
    present: Values = 1.0,
    weight_flops: Values | None = None,
    routed: FloatArray | None = None,
    weight_bytes: Values | None = None,
    expert_bytes: Values = 0.0,
) -> Operator:
    """A linear operator: 2 · rows · weights FLOPs; weights at b_w or `weight_bytes`, inputs at b_i, outputs as given.

    Where `n_in`, `n_out` are elements read and written in a pass, and `weight_flops` replaces the
    weights in the FLOPs where not all that are read are applied to every token (experts); `routed` marks experts.
    """
    return Operator(
        name,
        2.0 * rows * (weights if weight_flops is None else weight_flops),
        weights * (p.weight_bytes if weight_bytes is None else weight_bytes) + n_in * p.input_bytes + n_out * out_bytes,
        p.linear_peak,
        count,
        present,
        epilogue_flops=2.0 * n_out if p.quantises else None,
        kind="plain" if routed is None else "experts",
        routed=routed,
        expert_bytes=expert_bytes,
    )


def quantise(name: str, n: Values, p: Precision, present: Values = 1.0, *, count: Values = 1.0) -> Iterator[Operator]:
    """Dynamic quantisation of n activations: 2n FLOPs, n (b_a + 1) bytes; nothing unless int8."""
    if p.quantises:
        yield Operator(name, 2.0 * n, n * (p.activation_bytes + 1.0), count=count, present=present)


def operator_work(operator: Operator, phase: Phase) -> tuple[Values, Values]:
    """FLOPs and bytes of all instances of an operator over a phase, each (n,): Σ over passes; S_kv from first to last."""
    context = phase.context(operator.window)
    flops, moved = operator.flops * phase.passes, operator.bytes * phase.passes
    if operator.flops_per_kv is not None and operator.bytes_per_kv is not None:
        flops, moved = flops + operator.flops_per_kv * context, moved + operator.bytes_per_kv * context
    if operator.epilogue_flops is not None:
        flops = flops + operator.epilogue_flops * phase.passes
    return operator.count * flops, operator.count * moved


def total_work(operators: Iterable[Operator], phase: Phase) -> tuple[Values, Values]:
    """FLOPs and bytes of some operators over a phase."""
    work = [operator_work(operator, phase) for operator in operators]
    return sum((flops for flops, _ in work), 0.0), sum((moved for _, moved in work), 0.0)


@dataclass(frozen=True, eq=False)
class Pass:
    """The passes of a phase through all layers or through one, and how many of them a request takes of each.

    scenario: the chip that they run on. share: of the phase's passes, of their FLOPs and bytes; time_share: of their time. head:
    whether they end in the LM head. name: what they are for, "" where a model reads and writes.
    """

    phase: Phase
    scenario: Scenario
    share: float = 1.0
    time_share: float = 1.0
    one_layer: bool = False
    head: bool = True
    name: str = ""

    def depth(self, x: Dimensions) -> FloatArray:
        """Layers that it goes through, (n,)."""
        return np.ones_like(x.depth) if self.one_layer else x.depth


def passes(scenario: Scenario) -> Iterator[Pass]:
    """Prefill and decode; where tokens are drafted, decode steps of n + 1 positions, 1 / (1 + accepted) for each token.

    Each further position takes a share kappa of a plain step besides what its operators do: engines' kernels for few positions are
    slower than the roofline of one.
    A head for multi-token prediction reads the prompt too, and takes n passes through its layer and the LM head a step; its own
    experts lie in fast memory.
    """
    (prefill, decode), serving = phases(scenario), scenario.serving
    yield Pass(prefill, scenario.of_phase("prefill"))
    if not serving.drafted:
        yield Pass(decode, scenario)
        return
    steps, n = 1.0 / (1.0 + serving.accepted), serving.drafted
    yield Pass(replace(decode, queries=n + 1), scenario, steps, steps)
    if cost := scenario.position_cost:
        yield Pass(decode, scenario, 0.0, n * cost * steps, name="further positions")
    if serving.drafts_itself:
        fast = replace(scenario, serving=replace(serving, experts_in="fast"))
        yield Pass(prefill, fast.of_phase("prefill"), one_layer=True, head=False, name="drafting")
        yield Pass(decode, fast, n * steps, n * steps, one_layer=True, name="drafting")
