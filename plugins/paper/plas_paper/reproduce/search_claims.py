"""The space, the frontiers and what they are made of."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from nas.answer.design_words import describe
from nas.problem.evaluations import non_dominated
from nas.problem.law_caveats import MEASURED, more_active
from nas.study.configuration import PAPER_APPLICATIONS
from objectives.dimensions import Dimensions
from objectives.latency.operator import Pass, phases
from objectives.latency.roofline import phase_times
from plas_paper.reproduce.claim import CONDITIONS, FAILS, HOLDS, UNKNOWN, Claim, Number, judged, percent, stated
from plas_paper.reproduce.gains import PRINTED_GAIN, gains_at_equal_latency
from plas_paper.reproduce.whole_spaces import NEEDED, PHASES, Whole, look_at, problem, whole
from search_spaces.arrays import FloatArray, IntArray

SHORT = {"prefill_ms": "prefill", "decode_ms": "decode", "total_ms": "total"}
MODELS = {"operator": "operator model", "closed_form": "closed form"}
MANY = 50_000
COARSE = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0)  # of r_single


def by_phase(value: Callable[[Whole, np.ndarray[tuple[int], np.dtype[np.int64]]], str], **setting: Any) -> str:
    """`prefill …, decode …, total …` of a quantity of each frontier."""
    every = whole(**setting)
    return ", ".join(f"{SHORT[phase]} {value(every, every.frontier(phase))}" for phase in PHASES)


def space_size() -> Claim:
    """How many architectures the space has."""
    size = whole().problem.space.size
    grid = len(whole().problem.space.specification.axes.expert_ffn_ratio or [])
    return Claim(
        stated("space-size"),
        UNKNOWN,
        f"The printed axes give {size // grid:,} valid designs per FFN ratio (n_kv must divide n_h); with our grid of {grid} "
        f"ratios of one expert {size:,}. No grid is printed, and no grid gives 1,942, which {size // grid:,} does not divide.",
        "plas list spaces",
        (Number("designs of the space", 1942, size),),
    )


def fast_enough() -> Claim:
    """50,000 configurations in 20 minutes."""
    fine = problem(space="fine")
    sample = fine.space.sample(MANY, np.random.default_rng(0))
    look_at(fine.space.size, MANY)
    start = time.perf_counter()
    fine.evaluate(sample, NEEDED)
    minutes = (time.perf_counter() - start) / 60
    return Claim(
        stated("throughput"),
        UNKNOWN,
        f"Their code and machine are not published. Ours evaluates {MANY:,} random designs of the `fine` space, operator model, in less than {'one minute' if minutes < 1 else f'{np.ceil(minutes):.0f} minutes'}.",
        "python benchmarks/throughput.py",
    )


def enumerable() -> Claim:
    """Prohibitively large to enumerate."""
    return Claim(
        stated("enumerable"),
        FAILS,
        f"All {whole().problem.space.size:,} designs are evaluated in a fraction of a second; the frontiers on this page are exact.",
        "plas run --algo exact",
    )


def speedups(phase: str) -> FloatArray:
    """FP16 latency over the least INT8 latency at no higher loss, at every point of the FP16 frontier."""
    slow, fast = whole(), whole(precision="int8")
    rows = slow.frontier(phase)
    best = fast.frontier(phase)
    loss, time_ = fast.metrics["loss"][best], fast.metrics[phase][best]
    least = np.array([time_[loss <= limit].min() for limit in slow.metrics["loss"][rows]])
    ratios: FloatArray = slow.metrics[phase][rows] / least
    return ratios


def int8() -> list[Claim]:
    """INT8 helps, below 2×."""
    found = {phase: speedups(phase) for phase in PHASES}
    text = ", ".join(
        f"{SHORT[phase]} {np.median(s):.2f} (from {s.min():.2f} to {s.max():.2f})" for phase, s in found.items()
    )
    least, most = min(s.min() for s in found.values()), max(s.max() for s in found.values())
    return [
        Claim(
            stated("int8-gain"),
            HOLDS if most < 2 else FAILS,
            f"Median speed-up at equal loss along the FP16 frontier: {text}. Decoding comes close to 2, since weights dominate "
            "its traffic; the loss of INT8 weights themselves is not in the law.",
            "plas run --algo exact --precision int8",
        ),
        Claim(
            stated("int8-shift"),
            HOLDS if least > 1 else CONDITIONS,
            f"Smallest speed-up on any frontier {least:.2f}. " + frontier_sizes(),
            "plas run --algo exact --precision int8",
        ),
    ]


def frontier_sizes() -> str:
    """Sizes of the exact frontiers."""
    parts = [f"{name} {by_phase(lambda _, rows: str(len(rows)), precision=name)}" for name in ("fp16", "int8")]
    return f"Exact frontiers: {'; '.join(parts)} designs."


def sparse(every: Whole, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    """Share of sparse designs."""
    return float((every.shapes.n_experts[rows] > 1).mean())


def sparse_share(every: Whole, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> str:
    """The same in words."""
    return percent(sparse(every, rows))


def router_ms(every: Whole, phase: str) -> FloatArray:
    """Time of the routers of every design in a phase, ms."""
    x, spent = Dimensions(every.shapes), np.zeros(len(every.shapes))
    for one, name in zip(phases(every.problem.scenario), PHASES[:2], strict=True):
        if phase in (name, "total_ms"):
            routers = [
                t.seconds for t in phase_times(x, Pass(one, every.problem.scenario)).ffn if t.operator.name == "router"
            ]
            spent = spent + 1e3 * every.shapes.depth * sum(routers, np.zeros(len(every.shapes)))
    return spent


def without_router(phase: str) -> IntArray:
    """Rows of the frontier if the router took no time."""
    every = whole()
    return non_dominated(np.stack([every.metrics["loss"], every.metrics[phase] - router_ms(every, phase)], axis=1))


def moe() -> Claim:
    """MoE is 100 % of the frontier."""
    free = ", ".join(f"{SHORT[phase]} {sparse_share(whole(), without_router(phase))}" for phase in PHASES)
    models = "; ".join(f"{MODELS[m]}: {by_phase(sparse_share, latency=m)}" for m in MODELS)
    rows = whole().frontier("prefill_ms")
    dense = rows[whole().shapes.n_experts[rows] == 1]
    slowest = whole().metrics["prefill_ms"][dense].max() if len(dense) else 0.0
    shares = {phase: 100 * sparse(whole(), whole().frontier(phase)) for phase in PHASES}
    return Claim(
        stated("moe-share"),
        CONDITIONS,
        f"FP16, {models}. The dense exceptions are the fastest designs (prefill up to {slowest:.3g} ms). "
        f"Without router cost: {free}.",
        "plas run --algo exact",
        tuple(Number(f"% sparse, {SHORT[phase]}", 100, share) for phase, share in shares.items()),
    )


def wide_and_shallow() -> Claim:
    """Wide and shallow."""

    def shape(every: Whole, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> str:
        depth, width = every.columns["depth"][rows], every.columns["width"][rows]
        return f"median depth {np.median(depth):.0f}, {percent(float((depth < 20).mean()))} below 20, d/l {np.median(width / depth):.0f}"

    every = whole()
    rows = every.frontier("total_ms")
    time_ = every.metrics["total_ms"][rows]
    wide = time_[every.columns["width"][rows] == every.columns["width"].max()].min()
    deep = time_[every.columns["depth"][rows] == every.columns["depth"].max()].min()
    return Claim(
        stated("wide-and-shallow"),
        CONDITIONS,
        f"{by_phase(shape)}; Qwen2.5-0.5B has 24 layers and d/l 37. Width is at its bound from {wide:.0f} ms of total time, depth from "
        f"{deep:.0f} ms. Depth exceeds 20 as soon as the budget lets width reach the end of its axis.",
    )


def experts_by_phase() -> Claim:
    """Mean E along the prefill and the decode frontier."""

    def mean(every: Whole, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> str:
        counts = every.columns["n_experts"][rows]
        half = len(rows) // 2
        return f"{counts.mean():.1f} ({counts[:half].mean():.1f} in the faster half, {counts[half:].mean():.1f} in the slower)"

    decode = whole()
    most = float((decode.columns["n_experts"][decode.frontier("decode_ms")] == 16).mean())
    return Claim(
        stated("experts-by-phase"),
        CONDITIONS,
        f"Mean E, operator model: {by_phase(mean)}; {percent(most)} of the decode frontier has E = 16. In the closed form, which does not "
        f"know ρ, the largest E is everywhere: {by_phase(mean, latency='closed_form')}. The finding needs the operator model.",
    )


def top_1() -> Claim:
    """Share of K = 1 along both frontiers."""

    def share(every: Whole, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> str:
        return percent(float((every.shapes.top_k[rows] == 1).mean()))

    return Claim(
        stated("top-1"),
        CONDITIONS,
        f"Share of K = 1, operator model: {by_phase(share)}; closed form: {by_phase(share, latency='closed_form')}. It holds under the "
        f"law: at equal E and expert size it predicts no lower loss with 2 or 4 times the active experts for {_no_lower()} of the space's sparse "
        f"designs, whatever they cost, while {MEASURED}.",
    )


def _no_lower() -> str:
    """Share of the space's sparse designs whose loss the law does not lower with 2 or 4 times the active experts."""
    found = more_active(whole().problem.scenario.law, whole().shapes)
    return percent(float(found.not_lowered.any(axis=1).sum() / found.priced.sum()))


def experts_in_total() -> Claim:
    """Share of E = 8 along the frontier of total latency, by workload."""

    def eights(every: Whole) -> str:
        counts = every.columns["n_experts"][every.frontier("total_ms")]
        return f"{percent(float((counts == 8).mean()))} (mean {counts.mean():.1f}, median {np.median(counts):.0f})"

    workloads = ((1, 1024, 16), (1, 512, 64), (1, 256, 256), (1, 16, 1024))
    totals = "; ".join(f"{w[1]} in / {w[2]} out {eights(whole(workload=w))}" for w in workloads)
    return Claim(
        stated("eight-experts"),
        FAILS,
        f"Share of E = 8 on the loss–total frontier: {totals}. Eight is a compromise of prefill-heavy workloads; where decoding "
        "dominates, 16 does.",
        numbers=tuple(
            Number(f"mean E, {w[1]} in / {w[2]} out", 8, whole(workload=w).mean("n_experts", "total_ms"))
            for w in workloads
        ),
    )


def compact_ffn() -> Claim:
    """Compact FFN."""

    def ratio(every: Whole, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> str:
        r = every.columns["ffn_ratio"][rows]
        return f"median {np.median(r):.3g}, {percent(float((r < 1).mean()))} below 1, {percent(float((r < 4).mean()))} below 4"

    return Claim(
        stated("ffn-ratio"),
        HOLDS,
        f"Total activated ratio r = K r_single: {by_phase(ratio)}. With r_single from 1 up: "
        f"{by_phase(ratio, ratios=COARSE)}. Small ratios are at the end of the grid, which the paper does not print.",
    )


def applications() -> Claim:
    """The application table."""
    every, clauses = whole(), []
    for name, limit in PAPER_APPLICATIONS.items():
        row = every.best(**limit, memory_gb=64.0)
        assert row is not None
        (metric, most), shape = next(iter(limit.items())), describe(every.shapes[row : row + 1])
        clauses.append(f"{name} ({metric} ≤ {most}): {shape}, loss {every.metrics['loss'][row]:.4f}")
    return Claim(
        stated("applications"),
        HOLDS,
        "; ".join(clauses) + ". The budgets count layers alone on datasheet peaks; a device takes longer (README).",
        "plas run --algo exact",
    )


def equal_memory() -> Claim:
    """The headline at equal latency, with memory looked at as well."""
    gains, theirs = gains_at_equal_latency()
    lines = [
        f"{g.name} {g.percent:.1f} % lower with {g.memory_gb:.3g} GB ({g.design}) [evidence: {g.evidence}]"
        for g in gains
    ]
    return Claim(
        stated("equal-memory"),
        CONDITIONS,
        f"Qwen2.5-0.5B holds {theirs:.3g} GB of weights without embeddings. Predicted perplexity at its total time, "
        f"layers alone: {'; '.join(lines)}. Most of the headline is bought with memory.",
        "plas run --algo exact",
        tuple(Number(f"% lower perplexity, {g.name}", PRINTED_GAIN, g.percent) for g in gains),
    )


def evolution() -> Claim:
    """Parameters along the frontier."""

    def ranks(every: Whole, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> str:
        order = np.arange(len(rows))
        names = ("depth", "width", "n_experts", "ffn_ratio")
        return " ".join(f"{name} {spearmanr(order, every.columns[name][rows]).statistic:+.2f}" for name in names)

    return Claim(
        stated("evolution"),
        CONDITIONS,
        f"Rank correlation with latency along the frontier: {by_phase(ranks)}. Depth, width and experts do; the FFN ratio stays small and rises only at the slow end. "
        "Picture below.",
    )


def claims() -> list[Claim]:
    """All of them, in the paper's order."""
    makers = (space_size, enumerable, fast_enough, int8, moe, wide_and_shallow, experts_by_phase, top_1)
    return judged((*makers, experts_in_total, compact_ffn, applications, equal_memory, evolution))
