"""The list of corrections, each with the number that shows it."""

from dataclasses import dataclass

import numpy as np

from nas.study.baselines import baseline
from objectives.dimensions import Dimensions
from plas_paper.program import solve
from plas_paper.reproduce import latency_claims, search_claims, theory_claims
from plas_paper.reproduce.claim import Claim
from plas_paper.reproduce.whole_spaces import problem, whole


@dataclass(frozen=True)
class Correction:
    """One row: where in paper.tex, what it says, what holds."""

    label: str
    paper: str
    holds: str


def _found(claims: list[Claim], word: str) -> str:
    return next(claim.found for claim in claims if word in claim.text)


def corrections() -> list[Correction]:
    """Every correction in order."""
    theory = theory_claims.claims()
    return [*_study(), *_theory(theory), *_model(), *_fine_print(theory)]


def _study() -> list[Correction]:
    every = whole()
    weak = sum(
        bool(((every.metrics["loss"] < loss) & (every.metrics["total_ms"] < time)).any())
        for loss, time in zip(every.metrics["loss"], every.metrics["total_ms"], strict=True)
    )
    strict = len(every.shapes) - weak
    return [
        Correction(
            "sec:scaling_fit",
            "120 trained and 17 held out; 138 and 32 in the figure",
            "Sums 137 and 170; both are quoted, neither can be checked.",
        ),
        Correction(
            "app:pretrain_details",
            "loss averaged over the last 10 steps, or over 1,000",
            "Unknowable; a parameter of the recipe, 10 by default.",
        ),
        Correction(
            "tab:scaling_space_app",
            "no grid of the FFN ratio",
            f"A grid per expert of 8 values: {every.problem.space.size:,} designs.",
        ),
        Correction(
            "prac_pareto",
            "strict dominance in both objectives, elsewhere in one",
            f"The strict form keeps {strict} designs of the loss–total plane, the standard one {len(every.frontier('total_ms'))}.",
        ),
    ]


def _theory(theory: list[Claim]) -> list[Correction]:
    return [
        Correction("eq:rho-dual-decode", "a quadratic for ξ_all", _found(theory, "quadratic")),
        Correction("sec:theory:insights", "η much less than 1: memory", _found(theory, "η much less")),
        Correction("sec:theory:insights", "η_p compared with 1", _found(theory, "Prefill and memory")),
        Correction("thm:memory-only", "ρ* 0.15, 0.25, 0.20", _found(theory, "ρ ≈ 0.15")),
        Correction("sec:theory:insights", "M̄_d = 0.1 · 50 / 10 for one token", _found(theory, "10 TOPS")),
        Correction(
            "sec:theory:insights",
            "larger GQA values (more KV heads)",
            "gqa = n_h / n_kv: at d = 1024 (16 heads) gqa 16 is one KV head, gqa 1 sixteen. Both are always printed.",
        ),
    ]


def _model() -> list[Correction]:
    search, latency = search_claims.claims(), latency_claims.claims()
    return [
        Correction(
            "sec:arch_evolution",
            "phase-dependent experts from closed forms without ρ",
            _found(search, "Prefill favours few experts"),
        ),
        Correction("sec:arch_evolution", "MoE 100 % of the frontier", _found(search, "100 %")),
        Correction(
            "eq:memory_footprint",
            "weights only",
            _resident(),
        ),
        Correction(
            "eq:decode_latency_full",
            "no embedding or LM head",
            _embedding(),
        ),
        Correction("thm:memory-only", "r, gqa, ρ interior", _bounds()),
        Correction(
            "eq:decode_latency_full",
            "B tokens, the cache of one sequence; experts of one token",
            _batched(),
        ),
        Correction("sec:empirical_validation", "layers alone, idealised peaks", _found(latency, "19.42 %")),
        Correction("app:pretrain_details", "10 B tokens for every size", _tokens()),
    ]


def _resident() -> str:
    head = problem(vocabulary=latency_claims.HEAD)
    found = head.assess(head.headed(latency_claims.EXAMPLE))
    weights, resident = (float(found[metric][0]) for metric in ("memory_gb", "resident_gb"))
    return (
        f"The example design holds {weights:.3f} GB of weights and {resident:.3f} GB with head, cache and activations."
    )


def _embedding() -> str:
    known, head = baseline("qwen2.5_0.5b").architecture, problem(vocabulary=latency_claims.HEAD)
    whole, layers = head.headed(known), known.with_vocabulary(0)
    table = float(head.assess(whole)["params_total"][0] - head.assess(layers)["params_total"][0])
    without, with_it = (
        float(problem(vocabulary=v).assess(known.with_vocabulary(v))["decode_ms"][0]) for v in (0, latency_claims.HEAD)
    )
    return (
        f"Qwen2.5-0.5B: {table / 1e6:.0f} M of its parameters are the table; "
        f"decoding {without:.1f} ms without it, {with_it:.1f} ms with it."
    )


def _batched() -> str:
    device = problem(vocabulary=latency_claims.HEAD).scenario.device
    touched = float(Dimensions(latency_claims.EXAMPLE).touched_experts(8.0)[0])
    return f"The cache is read B times, and {device.name} reads {touched:.2f} of 16 experts for 8 tokens with K = 1."


def _bounds() -> str:
    point = theory_claims.optimum(theory_claims.unbounded(1024), memory=4e9).point
    return f"At d = 1024, 4 GB, memory alone the unbounded optimum has gqa {point['gqa']:.2f} (below 1) and r {point['ffn_ratio']:.1f} (the grid ends at 8)."


def _tokens() -> str:
    every = problem()
    stored = every.evaluate(every.space.genotypes(np.arange(every.space.size)), ("params_total",)).metrics[
        "params_total"
    ]
    return f"{100 * float((stored > 10e9).mean()):.0f} % of the space stores more than 10 B parameters, fewer tokens than parameters."


def _fine_print(theory: list[Claim]) -> list[Correction]:
    whole_problem = solve(theory_claims.memory_program(4.0))
    return [
        Correction("sec:theory:other", "l* ∝ d^−2", _found(theory, "l* ∝")),
        Correction("sec:theory:insights", "depth first", _found(theory, "exceeds its bound")),
        Correction("tab:coefficients-summary", "2× asymmetry", _found(theory, "2× asymmetry")),
        Correction("thm:dual-constrained", "one dual regime", _dual_corners()),
        Correction("eq:rho-memory", "ρ* independent of the budget", _found(theory, "Memory-only: ρ*")),
        Correction(
            "tab:prefill_decode_comparison",
            "decode and memory need a quadratic",
            "Both dual cases are linear in ξ_all; see the fifth row.",
        ),
        Correction("app:P2", "scenario independence", _found(theory, "Memory-only optima")),
        Correction(
            "sec:theory",
            "six cases by hand",
            f"One geometric program, convex in logarithms: 4 GB, width free, solved to below 1e{int(np.ceil(np.log10(whole_problem.residual)))} in {whole_problem.steps} steps, with a certified bound.",
        ),
    ]


def _dual_corners() -> str:
    """A point where both budgets bind with ρ = ρ_min, next to η_lo."""
    box = theory_claims.unbounded(2048)
    for eta in np.linspace(0.12, 0.2, 17):
        found = theory_claims.optimum(box, decode=float(eta) * 4e9, memory=4e9)
        if {"decode", "memory", "least activation_rate"} <= set(found.active):
            return f"Next to η_lo both budgets bind with ρ = ρ_min: at d = 2048, 4 GB for example η = {eta:.3f}. At η = 1 + δ/(α + 3r) ρ reaches 1."
    return "No point with both budgets binding at ρ_min was found between η 0.12 and 0.2."
