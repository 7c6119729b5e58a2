"""The brute-force check of exact frontiers, built for a processor: it verifies what is right and reports every planted fault."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nas.exact.solution import solve
from nas.problem.problem import Problem
from studies.exact_cuda.check import MEMBER, judge, members, problem_of, said, within, write

SOURCE = Path(__file__).resolve().parents[2] / "studies" / "exact_cuda" / "exact_check.cu"
OWN = {
    "axes": {
        "depth": {"from": 3, "to": 90, "step": 3},
        "width": [512, 768, 3072, 4096],
        "n_experts": [1, 2, 5, 96],
        "top_k": [1, 2, 3],
        "expert_size": {"from": 64, "to": 16384, "step": 320},
        "n_kv_heads": "divisors",
    },
    "conditions": {"max_expert_ffn_ratio": 3},
}
GENES = MEMBER.names[:6]
pytestmark = pytest.mark.slow  # the compiler takes seconds


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++")
    built = tmp_path_factory.mktemp("exact_cuda") / "exact_check"
    subprocess.run([compiler, "-O1", "-std=c++17", "-x", "c++", str(SOURCE), "-o", str(built)], check=True)
    return built


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Problem]:
    problem = problem_of("paper", ["loss", "total_ms"])
    data = tmp_path_factory.mktemp("data") / "paper"
    write(data, problem, solve(problem).frontier)
    return data, problem


def checked(program: Path, data: Path, *options: str) -> dict[str, str]:
    """What the program says of a claim, with its exit status."""
    result = data.with_name("result.txt")
    done = subprocess.run([program, data, result, *options], check=False, stdout=subprocess.PIPE, text=True)
    return {**said(result), "status": str(done.returncode)}


def planted(paper: tuple[Path, Problem], folder: Path, rows: np.ndarray) -> Path:
    """The paper's case with other members."""
    data = folder / "planted"
    shutil.copy(paper[0].with_name("paper.txt"), folder / "planted.txt")
    (folder / "planted.members").write_bytes(rows.tobytes())
    return data


def claimed(paper: tuple[Path, Problem]) -> np.ndarray:
    return np.frombuffer(paper[0].with_name("paper.members").read_bytes(), dtype=MEMBER).copy()


def row_of(problem: Problem, key: int) -> np.ndarray:
    """One design of the space as a row of members, with its own values."""
    return members(problem, problem.evaluate(problem.space.genotypes(np.array([key]))))


def test_the_papers_frontier_is_that_of_both_brute_forces(program: Path, paper: tuple[Path, Problem]) -> None:
    found = checked(program, paper[0])
    assert (found["verdict"], found["status"]) == ("verified", "0")
    assert found["designs enumerated"] == "13120"
    assert found["non-dominated designs at 12 digits"] == found["claimed members"] == "196"


@pytest.mark.parametrize("beside", [["total_ms"], ["prefill_ms", "decode_ms"], ["total_ms", "memory_gb"]])
def test_a_space_of_ones_own_with_two_and_three_objectives(program: Path, tmp_path: Path, beside: list[str]) -> None:
    problem = problem_of(OWN, ["loss", *beside])
    write(tmp_path / "own", problem, solve(problem).frontier)
    found = checked(program, tmp_path / "own")
    assert found["verdict"] == "verified"
    assert int(found["designs enumerated"]) == problem.space.size
    assert 0 < int(found["within budgets"]) < problem.space.size


def test_members_left_out_are_reported(program: Path, paper: tuple[Path, Problem], tmp_path: Path) -> None:
    kept, problem = np.delete(claimed(paper), [3, 100, 195]), paper[1]
    every = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    beaten = (kept["value"][None, :, :2] <= every.values[:, None] * (1 + 1e-11)).all(axis=2).any(axis=1)
    found = checked(program, planted(paper, tmp_path, kept))
    assert (found["verdict"], found["status"]) == ("REFUTED", "1")
    assert found["of them not claimed"] == "3"
    free = int(found["designs that no claimed member weakly dominates"])
    assert free == np.count_nonzero(every.feasible & ~beaten) > 3  # with what only these three dominated
    assert found["missing"].startswith("l ")


def test_a_member_that_is_dominated_is_reported(program: Path, paper: tuple[Path, Problem], tmp_path: Path) -> None:
    rows, problem = claimed(paper), paper[1]
    taken = {tuple(row[name] for name in GENES) for row in rows}
    others = (row_of(problem, key) for key in range(6000, 6100))
    stranger = next(row for row in others if tuple(row[0][name] for name in GENES) not in taken)
    found = checked(program, planted(paper, tmp_path, np.concatenate([rows, stranger])))
    assert found["verdict"] == "REFUTED"
    assert found["absent (clearly dominated or over a budget)"] == "1"
    alone = checked(program, planted(paper, tmp_path, stranger))
    assert alone["claimed members that are dominated"] == "1"
    assert int(alone["designs that dominate a claimed member"]) > 0


@pytest.mark.parametrize(
    ("field", "value"),
    [("depth", 5), ("width", 770), ("experts", 2), ("top_k", 3), ("size", 1000), ("n_kv", 5)],
)
def test_what_is_no_design_is_reported(
    program: Path, paper: tuple[Path, Problem], tmp_path: Path, field: str, value: int
) -> None:
    rows = claimed(paper)
    rows[7][field] = value
    found = checked(program, planted(paper, tmp_path, rows))
    assert (found["verdict"], found["no designs of the space"]) == ("REFUTED", "1")


def test_a_value_that_is_off_and_a_member_twice_are_reported(
    program: Path, paper: tuple[Path, Problem], tmp_path: Path
) -> None:
    rows = claimed(paper)
    rows["value"][50, 1] *= 1 + 1e-10
    found = checked(program, planted(paper, tmp_path, rows))
    assert found["verdict"] == "REFUTED"
    assert float(found["largest relative difference of a claimed value"]) == pytest.approx(1e-10, rel=1e-2)
    twice = np.concatenate([claimed(paper), claimed(paper)[:1]])
    assert checked(program, planted(paper, tmp_path, twice))["repeated"] == "1"


def test_another_count_of_designs_is_reported(program: Path, paper: tuple[Path, Problem], tmp_path: Path) -> None:
    data = planted(paper, tmp_path, claimed(paper))
    text = data.with_name("planted.txt")
    text.write_text(text.read_text().replace("stated 13120 13002", "stated 13120 13003"))
    assert checked(program, data)["verdict"] == "REFUTED"


def test_a_part_of_a_space_verifies_nothing(program: Path, paper: tuple[Path, Problem]) -> None:
    found = checked(program, paper[0], "--from", "4", "--designs", "3000")
    assert found["verdict"].startswith("PARTIAL")
    assert 3000 <= int(found["designs enumerated"]) < 13120
    assert not judge([paper[0].with_name("result.txt")])


def test_prices_are_the_projects_at_random_designs(program: Path, tmp_path: Path) -> None:
    problem = problem_of("huge", ["loss", "prefill_ms", "decode_ms"])
    genotypes = problem.space.sample(2000, np.random.default_rng(3))
    designs = problem.architectures(genotypes)
    genes = ("depth", "width", "n_experts", "top_k", "expert_size", "n_kv_heads")
    asked = np.column_stack([getattr(designs, name) for name in genes])
    write(tmp_path / "huge", problem, problem.evaluate(genotypes[:1]))
    lines = "\n".join(" ".join(map(str, row)) for row in asked)
    done = subprocess.run(
        [program, "price", tmp_path / "huge"], input=lines, check=True, capture_output=True, text=True
    )
    priced = np.array([[float.fromhex(word) for word in line.split()] for line in done.stdout.splitlines()])
    names = ("loss", "prefill_ms", "decode_ms", "total_ms", "memory_gb")
    own = problem.evaluate(genotypes).metrics
    for i, name in enumerate(names):
        np.testing.assert_allclose(priced[:, i] / (1e9 if name == "memory_gb" else 1), own[name], rtol=1e-12)


def test_designs_within_a_budget_are_counted_as_brute_force_counts_them() -> None:
    problem = problem_of(OWN, ["loss", "memory_gb"])
    weights = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size))).values[:, 1]
    for gigabytes in (0.5, 8.0, 64.0):
        assert within(problem, gigabytes * 1e9) == np.count_nonzero(weights <= gigabytes)
