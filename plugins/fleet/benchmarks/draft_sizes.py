"""How small is the best draft? The claim "about 1/200 of the target" (arXiv 2603.11053) on a roofline, by target, vocabulary and acceptance.

    python benchmarks/draft_sizes.py [--write]

Fastest decoding over the `drafts` space and 1 to 6 drafted tokens, preset device, q4_k_m; acceptance is affine in the draft's perplexity under
law evidence, stated at those of Qwen3-1.7B and SmolLM2-135M. `--write` writes docs/draft-sizes.csv, and of one vocabulary the table
of docs/pairs.md. Last run on 26 November 2026.
"""

import csv
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from plas_fleet.pairs.metrics import Shares
from plas_fleet.pairs.question import pair_problem
from plas_fleet.pairs.solution import PairProblem

from nas.problem.evaluations import Evaluations
from nas.search.assembly import assemble
from nas.study.baselines import model_named
from nas.study.layers import layered
from search_spaces.arrays import FloatArray

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE, SIZES = DOCS / "pairs.md", DOCS / "draft-sizes.csv"
BEGIN, END = "<!-- sizes of drafts -->", "<!-- end of sizes of drafts -->"
DEVICES = ("rtx_4090", "jetson_agx_orin_64gb")
TARGETS = ("llama_3.2_3b", "llama_3.1_8b", "qwen3_32b", "llama_3.1_70b")
VOCABULARIES = (0, 32_000, 151_936)
SHOWN = "32,000"  # on the page
FALLS = {"0.8 and 0.7": (0.8, 0.7), "0.8 and 0.5": (0.8, 0.5), "0.8 and 0.3": (0.8, 0.3)}
NUMBERS = "1,2,3,4,5,6"
NEAR = 0.98  # of the best speed


def problem_of(device: str, vocabulary: int, shares: tuple[float, float]) -> PairProblem:
    """Pairs of a study whose budgets do not matter."""
    flags = {
        "preset": "device",
        "device": device,
        "precision": "q4_k_m",
        "vocabulary": vocabulary,
        "output_tokens": 256,
    }
    studies = [
        assemble(*layered({**flags, "space": space}, ["budgets.resident_gb=none"], None))
        for space in ("paper", "drafts")
    ]
    return pair_problem(*studies, f"qwen3_1.7b={shares[0]},smollm2_135m={shares[1]}", NUMBERS)


def decoding(problem: PairProblem, target: str, drafts: Evaluations) -> FloatArray:
    """Decode of one target with each draft at its best number of tokens over that of the target alone, (n,)."""
    design = problem.targets.headed(
        model_named(target).architecture.with_vocabulary(problem.targets.vocabulary, tied=False)
    )
    alone = problem.targets.assess(design)["decode_ms"][0]
    found = []
    for drafted in problem.drafted:
        shares = Shares.of(drafts, problem.acceptance, drafted, problem.drafts.scenario.engine_memory[0])
        own = replace(problem.targets, scenario=problem.at(drafted)).assess(design)["decode_ms"][0]
        found.append((shares.steps * own + shares.decode_ms) / alone)
    return np.min(found, axis=0)


def rows(device: str) -> Iterator[list[str]]:
    """A row per target and vocabulary: best size and speed-up by acceptance, the range of sizes within 2 % of it."""
    for target in TARGETS:
        for vocabulary in VOCABULARIES:
            cells = []
            for shares in FALLS.values():
                problem = problem_of(device, vocabulary, shares)
                space = problem.drafts.space
                drafts = problem.drafts.evaluate(space.genotypes(np.arange(space.size)))
                relative = decoding(problem, target, drafts)
                design = model_named(target).architecture.with_vocabulary(vocabulary, tied=False)
                size = problem.targets.assess(problem.targets.headed(design))["params_total"][0]
                ratio = size / drafts.metrics["params_total"]
                near = ratio[relative <= relative.min() / NEAR]
                cells.append(
                    f"1/{ratio[relative.argmin()]:.0f} (1/{near.max():.0f} to 1/{near.min():.0f}), {1 / relative.min():.2f}x"
                )
            yield [device, target, f"{vocabulary:,}", *cells]


def table(found: list[list[str]]) -> str:
    """The page's table: one vocabulary on both devices."""
    shown = [[device, target, *cells] for device, target, vocabulary, *cells in found if vocabulary == SHOWN]
    header = ["device", "target", *FALLS]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *shown))


def main() -> None:
    """Print all rows, or write them and the page's table."""
    found = [row for device in DEVICES for row in rows(device)]
    if "--write" not in sys.argv[1:]:
        print("\n".join(" | ".join(row) for row in found))
        return
    with SIZES.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([["device", "target", "vocabulary", *FALLS], *found])
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.index(BEGIN) + len(BEGIN), text.index(END)
    PAGE.write_text(f"{text[:before]}\n\n{table(found)}\n\n{text[after:]}", encoding="utf-8")


if __name__ == "__main__":
    main()
