"""Dense or experts? The best of both within budgets on eight devices, served plainly, with tokens drafted ahead, with experts in slow memory.

    python -m studies.serving.dense_or_experts [--write]

Exact picks of the `paper` space under preset device in q4_k_m: as fast a token as Qwen2.5-1.5B served plainly, and 4 GB, or 1.5 GB with and without
slow memory at four times that. `--write` puts the table into studies/serving/results.md.
"""

import sys
from pathlib import Path
from typing import Any

from nas.exact.solution import solve
from nas.problem.evaluations import Evaluations
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.problem.quantiles import time_ranges
from nas.problem.uncertainty import differences
from nas.problem.wording import best_served
from nas.search.assembly import assemble
from nas.study.baselines import model_named
from nas.study.catalogue import load_device
from nas.study.layers import layered
from search_spaces.columns import CODES

PAGE = Path("studies/serving/results.md")
BEGIN, END = "<!-- {} -->", "<!-- end of {} -->"
PUBLISHED = ("qwen3.5_9b", "qwen3.5_35b_a3b")
DRAFTING = ("none", "mtp:1", "mtp:2", "mtp:3")
LARGE = ("qwen3_30b_a3b", "qwen3_14b")
CARDS = ("rtx_3070", "rtx_5070", "rtx_4080")
FASTER = ("ryzen_ai_max_395", "m4_max_40c", "jetson_agx_thor")
HOST, FLASH = {"capacity": "32 GB"}, {"bandwidth": "4 GB/s", "capacity": "128 GB"}
DEVICES: dict[str, dict[str, str] | None] = {
    "rtx_3070": HOST,
    "rtx_5070": HOST,
    "rtx_4090": HOST,
    "snapdragon_8_elite": FLASH,
    "m4_10c": None,
    "jetson_orin_nano_super_8gb": None,
    "jetson_agx_orin_64gb": None,
    "raspberry_pi_5": None,
}
EXPERTS = {"dense": [1], "experts": [8, 16]}
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "drafting": {"speculation": "none,mtp:1,mtp:2,mtp:3"},
    "1.5 GB, 4 times the time": {},
    "1.5 GB, 4 times the time, slow memory": {"experts_in": "auto"},
}


def problem_of(device: dict[str, Any], kind: str, serving: dict[str, Any], budgets: dict[str, float]) -> Problem:
    """The study's problem with dense designs or with experts alone."""
    space = assemble({"space": "paper", "algo": "exact"}, {}).problem.space.mapping()
    axes = {"n_experts": EXPERTS[kind], **({"top_k": [1]} if kind == "dense" else {})}
    space["axes"] |= axes
    flags = {"preset": "device", "algo": "exact", "precision": "q4_k_m", "objectives": ["loss", "tpot_ms"]}
    given = {"space": space, "device": device, "serving": serving, "budgets": budgets, "output_tokens": 256}
    raw, _ = layered({**flags, **given}, [], None)
    return assemble({**raw, "params": {}}, {}).problem


def best(problem: Problem) -> Evaluations | None:
    """The design of least loss within the budgets, one row; None where there is none."""
    return PickRule(None).answer(solve(problem).frontier)


def cell(device: dict[str, Any], serving: dict[str, Any], budgets: dict[str, float]) -> str:
    """`experts -0.05 (-0.11 to +0.01), 0.93: E 16 K 1`: the better kind, its difference with 90 %, probability, and how it is served."""
    found = {}
    for kind in EXPERTS:
        problem = problem_of(device, kind, serving, budgets)
        if (row := best(problem)) is not None:
            found[kind] = (row, problem)
    if len(found) < 2:
        return f"{next(iter(found), 'neither')} alone fits"
    (dense, problem), (sparse, _) = found["dense"], found["experts"]
    kinds = ("experts", "dense") if sparse.metrics["loss"][0] < dense.metrics["loss"][0] else ("dense", "experts")
    first, second = (found[kind][1].architectures(found[kind][0].genotypes) for kind in kinds)
    gap = differences(problem.scenario.law, first, second)[0][0]
    a = first.columns()
    words = [str(a[name][0]) for name in ("speculation", "experts_in") if name in a and ":" in str(a[name][0])]
    served = f", {' '.join(words)}" if words else ""
    sure = f"({gap.low:+.2f} to {gap.high:+.2f}), {gap.better:.2f}" if gap.known else "outside of the evidence"
    return f"{kinds[0]} {gap.nats:+.3f} {sure}{served}"


def table() -> list[str]:
    """Lines of the table."""
    lines = [f"| device | {' | '.join(SETTINGS)} |", f"| --- |{' --- |' * len(SETTINGS)}"]
    model = model_named("qwen2.5_1.5b").architecture
    for name, slow in DEVICES.items():
        device = load_device(name).mapping() | ({} if slow is None else {"slow_memory": slow})
        plain = problem_of(device, "dense", {}, {})
        limit = float(plain.assess(plain.headed(model))["tpot_ms"][0])
        cells = []
        for setting, serving in SETTINGS.items():
            if "experts_in" in serving and slow is None:
                cells.append("-")
                continue
            small = "1.5 GB" in setting
            budgets = {"tpot_ms": 4 * limit if small else limit, "resident_gb": 1.5 if small else 4.0}
            cells.append(cell(device, serving, budgets))
        lines.append(f"| {name}, {limit:.3g} ms | {' | '.join(cells)} |")
    return lines


def published() -> list[str]:
    """Lines of tokens/s of two published models on three devices."""
    lines = [f"| device, model | {' | '.join(DRAFTING)} |", f"| --- |{' --- |' * len(DRAFTING)}"]
    for name in FASTER:
        for model in PUBLISHED:
            rates = []
            for word in DRAFTING:
                problem = problem_of(load_device(name).mapping(), "dense", {"speculation": word}, {})
                chosen = model_named(model).architecture
                rates.append(f"{problem.assess(chosen)['tokens_per_second'][0]:.0f}")
            lines.append(f"| {name}, {model} | {' | '.join(rates)} |")
    return lines


def fitting() -> list[str]:
    """Lines of two published models on three cards: the share of layers in slow memory with which they fit, and tokens/s."""
    lines = ["| card | model | experts | tokens/s, 80 % |", "| --- | --- | --- | --- |"]
    for name in CARDS:
        device = load_device(name).mapping() | {"slow_memory": HOST}
        for model in LARGE:
            problem = problem_of(device, "dense", {"experts_in": "auto"}, {})
            chosen = best_served(problem, model_named(model).architecture)
            rate = float(problem.assess(chosen)["tokens_per_second"][0])
            metrics = {"tokens_per_second": rate, "prefill_ms": float(problem.assess(chosen)["prefill_ms"][0])}
            low, high = time_ranges(problem.pricing(chosen), chosen, metrics)["tokens_per_second"]
            word = CODES["experts_in"][chosen.experts_in[0]]
            lines.append(f"| {name} | {model} | {word} | {rate:.0f} ({low:.0f} to {high:.0f}) |")
    return lines


def put(name: str, lines: list[str]) -> None:
    """Put a table into the page between its marks."""
    text, begin, end = PAGE.read_text(encoding="utf-8"), BEGIN.format(name), END.format(name)
    before, rest = text.split(begin)
    PAGE.write_text(f"{before}{begin}\n\n{chr(10).join(lines)}\n\n{end}{rest.split(end, 1)[1]}", encoding="utf-8")


def main() -> None:
    """Print the tables, or put them into the page."""
    for name, made in {"published models": published, "cards": fitting, "dense or experts": table}.items():
        lines = made()
        print("\n".join(lines))
        if "--write" in sys.argv:
            put(name, lines)


if __name__ == "__main__":
    main()
