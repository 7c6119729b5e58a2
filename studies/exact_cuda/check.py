"""Exact frontiers held against every design of their spaces, by a program that shares no code with this project.

    python -m studies.exact_cuda.check prepare FOLDER --case huge:loss,total_ms [--case ...]
    nvcc -O3 -std=c++17 -arch=sm_90 studies/exact_cuda/exact_check.cu -o exact_check     # or g++ -x c++, one core
    ./exact_check FOLDER/huge-loss-total_ms RESULT
    python -m studies.exact_cuda.check judge RESULT [RESULT ...]

`prepare` solves the default study of a space (law hw_codesign, Jetson AGX Orin 64 GB, fp16, operator model, memory_gb <= 64)
exactly and writes what the program reads: axes, coefficients and rates as numbers, members with their values to the last bit, and
two counts to be found again, designs and designs within the budget. Formulas and rules of validity stand in the program, written
from docs/model.md and docs/search-spaces.md. It forms the values of every design. What no member beats in every objective by more
than 10^-10 of the value is kept; among these designs dominance is judged at 12 significant digits, as docs/model.md says. The claim
holds if those that none dominates are the members, one for one, and their values differ by less than 10^-11.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from nas.exact.solution import solve
from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from search_spaces.arrays import IntArray

AXES = ("depth", "width", "n_experts", "top_k", "expert_size", "expert_ffn_ratio")
LAW = (
    "kappa_l",
    "alpha_l",
    "kappa_rho",
    "alpha_rho",
    "alpha_r",
    "beta_1",
    "kappa_d",
    "beta_2",
    "kappa_m",
    "alpha_m",
    "l_inf",
)
MEMBER = np.dtype(
    [(gene, "<i4") for gene in ("depth", "width", "experts", "top_k", "size", "n_kv")] + [("value", "<f8", 3)]
)
SHOWN = (
    "designs enumerated",
    "within budgets",
    "claimed members",
    "designs that dominate a claimed member",
    "designs that no claimed member weakly dominates",
    "non-dominated designs at 12 digits",
    "largest relative difference of a claimed value",
    "seconds",
    "verdict",
)


def problem_of(space: object, objectives: list[str]) -> Problem:
    """The default study of a space, by name or as a mapping."""
    return assemble({"space": space, "objectives": objectives, "algo": "exact"}, {}).problem


def within(problem: Problem, bytes_at_most: float) -> int:
    """Designs whose weights fit, counted per width, depth, KV heads and experts: 2 d d_q + 2 d d_m + 3 d m E words a layer."""
    axes = _axes(problem)
    depths, experts, top_ks = (np.array(axes[name], dtype=np.int64) for name in ("depth", "n_experts", "top_k"))
    pairs = np.array([np.count_nonzero((top_ks < e) | ((e == 1) & (top_ks == 1))) for e in experts])
    words = np.floor(bytes_at_most / (problem.scenario.precision.weight_bytes * depths)).astype(np.int64)
    return sum(_fitting(problem, int(d), words, experts, pairs) for d in axes["width"])


def _fitting(problem: Problem, width: int, words: IntArray, experts: IntArray, pairs: IntArray) -> int:
    """Of one width: (depths, experts) sizes up to what is left beside each attention, times the pairs of E and K."""
    axes, head_dim, limit = _axes(problem), problem.space.specification.head_dim, _largest_ratio(problem)
    sizes = np.array([m for m in axes.get("expert_size", []) if m <= limit * width], dtype=np.int64)
    ratios = np.array([r for r in axes.get("expert_ffn_ratio", []) if r <= limit])
    sizes = np.sort(np.concatenate([sizes, np.rint(ratios * width).astype(np.int64)]))
    heads, total = width // head_dim, 0
    listed = [heads if n == "n_heads" else n for n in axes["n_kv_heads"]] or range(1, heads + 1)
    for n_kv in {n for n in listed if heads % n == 0}:
        left = words - 2 * width * width - 2 * width * head_dim * n_kv
        largest = left[:, None] // (3 * width * experts[None, :])
        total += int((np.searchsorted(sizes, largest, side="right") * pairs).sum())
    return total


def _axes(problem: Problem) -> dict[str, list[float]]:
    """The values of every axis; n_kv_heads [] for all divisors."""
    axes = dict(problem.space.mapping()["axes"])
    axes["n_kv_heads"] = [] if axes["n_kv_heads"] == "divisors" else axes["n_kv_heads"]
    return {name: values for name, values in axes.items() if values is not None}


def _largest_ratio(problem: Problem) -> float:
    conditions = problem.space.mapping().get("conditions") or {}
    return float(conditions.get("max_expert_ffn_ratio") or np.inf)


def described(problem: Problem) -> str:
    """What the program reads as text: one key a line, floating-point numbers in hexadecimal."""
    scenario, axes = problem.scenario, _axes(problem)
    precision, (limit,) = scenario.precision, [b.limit * 1e9 for b in problem.budgets if b.metric == "memory_gb"]
    kv = [0 if n == "n_heads" else n for n in axes["n_kv_heads"]]
    lines = {
        "space": [problem.space.name],
        **{name: _hex(axes[name]) for name in AXES if name in axes},
        "n_kv_heads": _hex(kv),
        "head_dim": _hex([problem.space.specification.head_dim]),
        "max_expert_ffn_ratio": [str(_largest_ratio(problem))],
        "memory_limit_bytes": _hex([limit]),
        "stated": [str(problem.space.size), str(within(problem, limit))],
        "objectives": [objective.name for objective in problem.objectives[1:]],
        "law": _hex(scenario.law.coefficients[name] for name in LAW),
        "peak": _hex([scenario.device.fp16]),
        "bandwidth": _hex([scenario.device.bandwidth]),
        "element_bytes": _hex([precision.weight_bytes, precision.activation_bytes, precision.kv_bytes]),
        "workload": _hex([scenario.batch, scenario.input_tokens, scenario.output_tokens]),
    }
    return "".join(f"{' '.join([key, *values])}\n" for key, values in lines.items())


def _hex(values: object) -> list[str]:
    return [float(v).hex() for v in values]  # type: ignore[attr-defined]


def members(problem: Problem, frontier: Evaluations) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """The members as the program reads them: six integers and three values each."""
    architectures = problem.architectures(frontier.genotypes)
    rows = np.zeros(len(frontier), dtype=MEMBER)
    columns = ("depth", "width", "n_experts", "top_k", "expert_size", "n_kv_heads")
    for gene, column in zip(MEMBER.names or (), columns, strict=False):
        rows[gene] = getattr(architectures, column)
    rows["value"][:, : frontier.values.shape[1]] = frontier.values
    return rows


def prepare(folder: Path, case: str) -> Path:
    """Solve a case, SPACE:OBJECTIVES, and write its two files; the common part of their paths."""
    space, _, names = case.partition(":")
    problem = problem_of(space, names.split(","))
    path = folder / f"{Path(space).stem}-{names.replace(',', '-')}"
    write(path, problem, solve(problem).frontier)
    return path


def write(path: Path, problem: Problem, frontier: Evaluations) -> None:
    """PATH.txt and PATH.members."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(f"{path.name}.txt").write_text(described(problem))
    path.with_name(f"{path.name}.members").write_bytes(members(problem, frontier).tobytes())


def said(result: Path) -> dict[str, str]:
    """The lines `key: value` of a result; of a repeated key the last."""
    return dict(line.split(": ", 1) for line in result.read_text().splitlines() if ": " in line)


def judge(results: list[Path]) -> bool:
    """Print what each result says; True if every claim is verified by a whole enumeration."""
    read = [said(result) for result in results]
    for result in read:
        print(f"\n{result.get('space', '?')}, {result.get('objectives', '?')}")
        for key in SHOWN:
            print(f"  {key:<50}{result.get(key, 'not reached')}")
    return all(result.get("verdict") == "verified" for result in read)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("prepare")
    first.add_argument("folder", type=Path)
    first.add_argument("--case", action="append", required=True, metavar="SPACE:OBJECTIVES")
    commands.add_parser("judge").add_argument("results", type=Path, nargs="+")
    asked = parser.parse_args()
    if asked.command == "judge":
        return 0 if judge(asked.results) else 1
    for case in asked.case:
        print(prepare(asked.folder, case))
    return 0


if __name__ == "__main__":
    sys.exit(main())
