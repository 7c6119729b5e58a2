"""Traces of any tool: by genes, by columns of architectures, several runs in a file, run folders; what is refused; how they score."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import plas_bench
import pytest
from plas_bench.instance import BenchProblem
from plas_bench.logger import Logger
from plas_bench.measures import reported
from plas_bench.running import searched, strategy_of
from plas_bench.scoring import scored
from plas_bench.traces import GivenTrace, read_traces

import nas
from nas.errors import UsageError

NAME = "plas1-paper-loss-latency"


@pytest.fixture(scope="module")
def bench() -> BenchProblem:
    """The paper's study."""
    return plas_bench.problem(NAME)


def written(folder: Path, text: str) -> Path:
    """A trace of the test's own."""
    path = folder / "tool.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_genes_and_columns_of_architectures_say_the_same(bench: BenchProblem, tmp_path: Path) -> None:
    genotypes = bench.sample(40, seed=2)
    header = ",".join(f"gene_{name}" for name in bench.genes)
    (by_genes,) = read_traces(
        written(tmp_path, "\n".join([header, *(",".join(map(str, row)) for row in genotypes.tolist())])), bench
    )
    columns = bench.problem.architectures(genotypes).columns(())
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    (by_columns,) = read_traces(
        written(tmp_path, "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)])), bench
    )
    assert np.array_equal(by_genes.genotypes, genotypes)
    assert np.array_equal(by_columns.genotypes, genotypes)
    assert (by_genes.algorithm, by_genes.run) == ("tool", "tool")


def test_columns_may_have_the_names_of_other_tools(bench: BenchProblem, tmp_path: Path) -> None:
    header = "num_hidden_layers,hidden_size,num_experts,topk,expert_ffn_ratio,num_key_value_heads,note"
    (found,) = read_traces(written(tmp_path, f"{header}\n8,1024,8,2,0.5,4,full\n"), bench)
    design = bench.problem.architectures(found.genotypes)
    columns = (design.depth, design.width, design.n_experts, design.top_k, design.n_kv_heads)
    assert [int(column[0]) for column in columns] == [8, 1024, 8, 2, 4]


def test_a_column_of_nearly_a_name_is_not_taken_for_absent(bench: BenchProblem, tmp_path: Path) -> None:
    path = written(tmp_path, "depth,width,Num Experts,expert_ffn_ratio,n_kv_heads\n8,1024,8,0.5,4\n")
    with pytest.raises(
        UsageError, match=r"expected n_experts by an exact name, got Num Experts; df = df.rename\(columns="
    ):
        read_traces(path, bench)


def test_runs_are_told_apart_and_ordered(bench: BenchProblem, tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "algorithm,seed,evaluation,depth,width,expert_ffn_ratio,n_kv_heads\n"
        "a,1,2,4,768,1,1\na,1,1,8,768,1,1\nb,7,1,4,1024,1,1\na,2,1,4,768,2,1\n",
    )
    found = read_traces(path, bench)
    assert [(each.algorithm, each.run, each.seed, len(each.genotypes)) for each in found] == [
        ("a", "1", 1, 2),
        ("b", "7", 7, 1),
        ("a", "2", 2, 1),
    ]
    assert found[0].genotypes[:, 0].tolist() == [1, 0]


def test_a_logger_writes_what_is_read_back(bench: BenchProblem, tmp_path: Path) -> None:
    genotypes = bench.sample(25, seed=4)
    with Logger(bench, tmp_path / "logs", algorithm="mine", seed=3, population=10) as log:
        first, second = log.evaluate(genotypes[:10]), log.evaluate(genotypes[10:].astype(float) + 0.2)
    assert np.array_equal(np.concatenate([first.objectives, second.objectives]), bench.evaluate(genotypes).objectives)
    (found,) = read_traces(log.path, bench)
    assert (found.algorithm, found.run, found.seed) == ("mine", "3", 3)
    assert np.array_equal(found.genotypes, genotypes)
    logged = pd.read_csv(log.path)
    study = nas.load_study()
    assert (
        study.evaluate(logged).depth.tolist() == study.evaluate(study.problem.architectures(genotypes)).depth.tolist()
    )
    assert logged.depth.tolist() == bench.problem.architectures(genotypes).depth.tolist()
    info = json.loads(log.path.with_suffix(".json").read_text(encoding="utf-8"))
    assert (info["problem"], info["version"], info["evaluations"], info["population"]) == (NAME, 1, 25, 10)
    assert info["sha256"] == bench.definition.front.sha256
    with pytest.raises(UsageError, match="expected a new file"):
        Logger(bench, tmp_path / "logs", algorithm="mine", seed=3)
    with pytest.raises(UsageError, match="expected a name that a file can have"):
        Logger(bench, tmp_path, algorithm="a/b")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected a row per evaluation, got none"),
        ("depth,width\n4,768\n", "tool.csv: .*gene_depth"),
        (
            "depth,width,expert_ffn_ratio,n_kv_heads\n5,768,1,1\n",
            r"row 1: expected a design of plas1-paper-loss-latency, got depth 5 \(near it are 4 and 8\); plas bench show",
        ),
        (
            "n_layers,num_layers,width,expert_ffn_ratio,n_kv_heads\n4,4,768,1,1\n",
            "depth: expected one column, got n_layers and num_layers; leave one out",
        ),
        (
            "depth,width,n_experts,top_k,expert_ffn_ratio,n_kv_heads\n4,768,1,2,1,1\n",
            "row 1: top_k: expected",
        ),
        (
            "depth,width,expert_ffn_ratio,n_kv_heads\n4,768,1,3\n",
            "row 1: expected a design of plas1-paper-loss-latency, got values that are there, but not together",
        ),
        ("gene_depth,gene_width\n1,2\n", "row 1: gene_n_experts: expected a whole number from 0 to 2, got None"),
        (
            "gene_depth,gene_width,gene_n_experts,gene_top_k,gene_ffn,gene_n_kv_heads\n0,0,0,0,x,0\n",
            "row 1: gene_ffn: expected a whole number from 0 to 7, got 'x'",
        ),
        (
            "gene_depth,gene_width,gene_n_experts,gene_top_k,gene_ffn,gene_n_kv_heads\n0,0,0,0,0,0\n0,0,0,0,8,0\n",
            "row 2: gene_ffn: expected a whole number from 0 to 7, got '8'",
        ),
        (
            "gene_depth,gene_width,gene_n_experts,gene_top_k,gene_ffn,gene_n_kv_heads,gene_heads\n0,0,0,0,0,0,0\n",
            r"expected genes of plas1-paper-loss-latency \(gene_depth, .*\), got gene_heads; leave it out",
        ),
        (
            "depth,width,expert_ffn_ratio,n_kv_heads,loss\n4,768,1,1,1.25\n",
            r"row 1: loss: expected \d\.\d+, as plas1-paper-loss-latency has it of this design, got 1\.25; name the problem",
        ),
        (
            "evaluation,depth,width,expert_ffn_ratio,n_kv_heads\n1,4,768,1,1\nlast,4,768,2,1\n",
            "row 2: evaluation: expected a number, got 'last'",
        ),
        (
            "seed,depth,width,expert_ffn_ratio,n_kv_heads\n1,4,768,1,1\n,4,768,2,1\n",
            "row 2: run or seed: expected it in every row or in none, got nothing",
        ),
    ],
)
def test_what_is_no_trace_is_refused_with_its_row(bench: BenchProblem, tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        read_traces(written(tmp_path, text), bench)


def test_the_whole_front_scores_0_and_a_repeat_is_free(bench: BenchProblem) -> None:
    front = bench.exact_front()
    twice = np.repeat(front.genotypes, 2, axis=0)
    result = scored(bench, [GivenTrace("front", "0", 0, twice)])
    run = result.runs_of("front")[0]
    assert run.evaluations == len(front.keys)
    last = {name: result.last("front", name)[0] for name in ("gap", "share", "igd_plus", "epsilon")}
    assert last == {"gap": 0.0, "share": 1.0, "igd_plus": 0.0, "epsilon": 0.0}


def test_what_breaks_a_limit_does_not_count() -> None:
    bench = plas_bench.problem("plas1-paper-rare")
    drawn = bench.sample(500, seed=0)
    broken = drawn[(bench.evaluate(drawn).violations > 0).any(axis=1)]
    table = bench.score(broken)
    assert (table["gap"] == 1).all()
    assert (table["share"] == 0).all()
    held = np.concatenate([broken[:20], bench.exact_front().genotypes])
    assert bench.score(held)["gap"].iloc[-1] == 0


def test_noise_does_not_score() -> None:
    bench = plas_bench.problem("plas1-kind-heavy-1")
    values, _ = bench.true(bench.exact_front().genotypes)
    assert not np.allclose(bench.evaluate(bench.exact_front().genotypes).objectives, values, rtol=1e-3)
    assert bench.score(bench.exact_front().genotypes)["gap"].iloc[-1] == 0


def test_results_are_reported_at_10_30_100(bench: BenchProblem) -> None:
    assert reported(1000).tolist() == [10, 30, 100, 300, 1000]
    assert reported(50).tolist() == [10, 30, 50]
    assert bench.score(bench.sample(50, seed=0)).index.tolist() == [10, 30, 50]


@pytest.mark.parametrize("name", [NAME, "plas1-paper-rare", "plas1-table-trained", "plas1-kind-budgets-1"])
@pytest.mark.parametrize("algo", ["random", "nsga2", "moead", "local_search"])
def test_strategies_search_every_family(name: str, algo: str) -> None:
    bench = plas_bench.problem(name)
    first, again = (searched(bench, strategy_of(algo, {}), 3, 60) for _ in range(2))
    assert np.array_equal(first, again)
    assert len(np.unique(bench.problem.space.keys(first))) == len(first) <= 60
    assert np.array_equal(bench.repair(first), first)


def test_a_strategy_that_covers_the_space_or_is_unknown_is_refused() -> None:
    with pytest.raises(UsageError, match="expected a strategy that searches, got exact"):
        strategy_of("exact", {})
    with pytest.raises(UsageError, match="did you mean nsga2"):
        strategy_of("nsga22", {})
