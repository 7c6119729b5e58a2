"""How latency scales, the comparison with Qwen2.5-0.5B, transfer between devices, costs of the study."""

import math

import numpy as np

from nas.answer.design_words import describe
from nas.study.baselines import baseline
from plas_paper.reproduce.claim import CONDITIONS, FAILS, HOLDS, UNKNOWN, Claim, Number, judged, percent, stated
from plas_paper.reproduce.gains import MODEL, PRINTED_GAIN
from plas_paper.reproduce.whole_spaces import everything, problem, whole
from search_spaces.architectures import one
from search_spaces.arrays import FloatArray

EXAMPLE = one(
    {"depth": 16, "width": 2048, "n_experts": 16, "top_k": 1, "expert_ffn_ratio": 0.5, "n_kv_heads": 4, "head_dim": 64}
)
HEAD = 151_936
DEVICES = ("jetson_agx_orin_64gb", "jetson_orin_nano_super_8gb", "jetson_agx_thor", "rtx_4090", "m4_max_40c")
LENGTHS = (256, 1024, 4096, 16_384, 65_536)
EXPLAIN = "plas explain --architecture depth=16,width=2048,n_experts=16,top_k=1,expert_size=1024,n_kv_heads=4"


def milliseconds(metric: str, **study: object) -> float:
    """A latency of the example design, ms."""
    return float(problem(**study).assess(EXAMPLE)[metric][0])


def slopes(metric: str, **study: object) -> FloatArray:
    """Exponents of a latency of the example design between successive input lengths."""
    times: FloatArray = np.array([milliseconds(metric, input_tokens=length, **study) for length in LENGTHS])
    found: FloatArray = np.diff(np.log(times)) / np.diff(np.log(LENGTHS))
    return found


def length_exponents() -> dict[str, FloatArray]:
    """The exponents of prefill, scores in memory and fused, and of decoding."""
    return {
        "prefill, scores in memory": slopes("prefill_ms", attention="unfused"),
        "prefill, fused attention": slopes("prefill_ms", attention="fused"),
        "decode": slopes("decode_ms"),
    }


def over_input() -> list[Claim]:
    """Exponents of prefill and decode in the input length."""
    found = length_exponents()
    unfused, fused, decode = (" → ".join(f"{x:.2f}" for x in exponents) for exponents in found.values())
    last = {
        name: Number(f"{name}, at the longest input", 1 if name == "decode" else 2, float(x[-1]), exponent=True)
        for name, x in found.items()
    }
    return [
        Claim(
            stated("prefill-length"),
            CONDITIONS,
            f"Exponent between {', '.join(f'{n:,}' for n in LENGTHS)} tokens: {unfused} with scores in memory, {fused} with fused attention. "
            "Linear operators dominate up to some thousand tokens; the square comes after.",
            f"{EXPLAIN} --input-tokens 4096",
            tuple(number for name, number in last.items() if name != "decode"),
        ),
        Claim(
            stated("decode-length"),
            CONDITIONS,
            f"Exponent between the same lengths: {decode}. Affine: weights are a constant that hides the slope until the KV cache outweighs them.",
            f"{EXPLAIN} --input-tokens 65536",
            (last["decode"],),
        ),
    ]


def over_output() -> Claim:
    """The share of decoding in the total."""
    written = (16, 64, 256, 1024)
    share = [milliseconds("decode_ms", output_tokens=n) / milliseconds("total_ms", output_tokens=n) for n in written]
    return Claim(
        stated("decode-share"),
        HOLDS,
        f"Its share of 1,024 in and {', '.join(map(str, written))} out: {', '.join(percent(s) for s in share)}.",
        f"{EXPLAIN} --output-tokens 256",
    )


def over_batch() -> Claim:
    """Time per sequence as sequences share what is read."""
    batches = (1, 4, 16, 64, 256)
    each = {p: [milliseconds(p, batch=b) / b for b in batches] for p in ("prefill_ms", "decode_ms")}
    gained = "; ".join(
        f"{p.removesuffix('_ms')} {', '.join(f'{ms:.3g}' for ms in values)} ms" for p, values in each.items()
    )
    return Claim(
        stated("batching"),
        CONDITIONS,
        f"Time per sequence at batch {', '.join(map(str, batches))}: {gained}. Prefill gains little, since 1,024 tokens already read "
        "most experts; decoding gains until every expert is touched by some token, which the closed form leaves out.",
        f"{EXPLAIN} --set batch=16",
    )


def projections() -> Claim:
    """FFN share and KV saving as printed."""
    shares = [6 * 4 / (6 * 4 + 4 + 4 / gqa) for gqa in (1, 8)]
    return Claim(
        stated("ffn-share"),
        CONDITIONS,
        f"6r/ξ_F at r = 4: {percent(shares[0])} with gqa 1, {percent(shares[1])} with gqa 8, of the linear operators; with the scores' 4S/d at S = d and gqa 1 "
        f"{percent(24 / (24 + 8 + 4))}. "
        f"Projections: {percent(1 - (2 + 2 / 8) / 4)} saved, as printed.",
        "plas explain --model qwen2.5_0.5b",
        (Number("% of projections saved", 44, 100 * (1 - (2 + 2 / 8) / 4)),),
    )


def qwen() -> Claim:
    """19.42 % lower perplexity at equal latency."""
    known, clauses, numbers = baseline(MODEL), [], list[Number]()
    for vocabulary in (0, HEAD):
        made = problem(vocabulary=vocabulary)
        theirs = made.assess(made.headed(known.architecture))
        every = everything(made, ("loss", "total_ms", "memory_gb"))
        fits = (every.metrics["total_ms"] <= theirs["total_ms"][0]) & (every.metrics["memory_gb"] <= 64)
        row = int(np.where(fits, every.metrics["loss"], np.inf).argmin())
        lower = 1 - math.exp(every.metrics["loss"][row] - theirs["loss"][0])
        name = f"LM head of {vocabulary:,} on both" if vocabulary else "no LM head"
        numbers.append(Number(f"% lower perplexity, {name}", PRINTED_GAIN, 100 * lower))
        clauses.append(
            f"{name}: {100 * lower:.1f} % lower at {theirs['total_ms'][0]:.1f} ms ({describe(made.architectures(every.genotypes[row : row + 1]))})"
        )
    loss = float(made.scenario.law.loss(known.architecture)[0])
    return Claim(
        stated("qwen"),
        UNKNOWN,
        f"The arithmetic holds: 1 − 50.88/63.14 = {100 * (1 - 50.88 / 63.14):.2f} %. Measured perplexity needs the trained models. Predicted "
        f"by the law: {'; '.join(clauses)}. Qwen's r of 5.43 is outside the law's range, and its predicted perplexity {math.exp(loss):.1f} is on "
        "another data set.",
        "plas run --algo exact",
        tuple(numbers),
    )


def device_transfer() -> Claim:
    """No transfer between devices."""
    home = whole(device=DEVICES[0])
    kept, regrets = {}, {}
    for phase in ("total_ms", "decode_ms"):
        mine = set(home.frontier(phase).tolist())
        for device in DEVICES[1:]:
            there = whole(device=device)
            theirs = there.frontier(phase)
            kept[phase, device] = len(mine & set(theirs.tolist())) / len(theirs)
            losses, times = there.metrics["loss"], there.metrics[phase]
            rows = home.frontier(phase)
            best = np.array([losses[theirs][times[theirs] <= t * (1 + 1e-12)].min() for t in times[rows]])
            regrets[phase, device] = float(np.quantile(losses[rows] - best, 0.9))

    def line(phase: str) -> str:
        return ", ".join(f"{d} {percent(kept[phase, d])} ({regrets[phase, d]:.4f} nats)" for d in DEVICES[1:])

    return Claim(
        stated("devices"),
        CONDITIONS,
        f"Share of each device's exact loss–total frontier that AGX Orin's holds too, and the 90th percentile of what AGX Orin's designs lose "
        f"there: {line('total_ms')}. Loss–decode: {line('decode_ms')}. Decoding is bound by bandwidth alone, so its frontier is nearly the same "
        "everywhere; what changes between devices is which point of it a budget in ms buys. Between workloads the frontiers differ (below).",
        "plas run --algo exact --preset paper --device rtx_4090",
    )


def workload_transfer() -> Claim:
    """No transfer between workloads."""
    home, other = whole(), whole(workload=(1, 256, 256))
    mine, theirs = set(home.frontier("total_ms").tolist()), other.frontier("total_ms")
    share = len(mine & set(theirs.tolist())) / len(theirs)
    return Claim(
        stated("workloads"),
        HOLDS if share < 0.9 else FAILS,
        f"Of the loss–total frontier of 256 in / 256 out, {percent(share)} is on that of 1,024 in / 16 out.",
        "plas run --algo exact --input-tokens 256 --output-tokens 256",
    )


def study_costs() -> list[Claim]:
    """GPU-hours, fit quality, saved time."""
    return [
        Claim(
            stated("gpu-hours"),
            HOLDS,
            f"{170 * 8 * 10:,}. A prediction and its check take seconds on a laptop; training three to five designs to validate it, {5 * 8 * 10} of those hours at most.",
            numbers=(Number("GPU-hours", 13_600, 170 * 8 * 10),),
        ),
        Claim(
            stated("weeks"),
            UNKNOWN,
            "The search itself takes seconds. Months and weeks are of training, which depends on the clusters of both.",
        ),
        Claim(
            stated("fit"),
            UNKNOWN,
            "The losses of the 170 models are not published; the text splits them 120/17, the figure 138/32.",
        ),
        Claim(
            stated("correlation"),
            UNKNOWN,
            "No measurement is printed.",
        ),
    ]


def claims() -> list[Claim]:
    """All of them."""
    return judged(
        (over_input, over_output, over_batch, projections, qwen, device_transfer, workload_transfer, study_costs)
    )
