"""Checkpoints of a run are not models of their own: the last is kept, and none counts as a replicate."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from plas_fit.fitting.diagnostics import replicates
from plas_fit.fitting.intervals import resampled
from plas_fit.fitting.trained_models import read_table

Csv = Callable[[str], Path]
HEADER = "{},depth,width,n_kv_heads,expert_size,loss\n"
HISTORY = "100,8,1024,4,2048,4.1\n200,8,1024,4,2048,3.6\n300,8,1024,4,2048,3.4\n100,16,1024,4,2048,4.0\n300,16,1024,4,2048,3.2\n"


@pytest.mark.parametrize("name", ["step", "epoch", "iteration", "train/global_step", "_step"])
def test_the_last_of_each_run_is_kept_and_said(name: str, csv: Csv) -> None:
    table = read_table(csv(HEADER.format(name) + HISTORY))
    assert table.loss.tolist() == [3.4, 3.2]
    assert table.lines.tolist() == [4, 6]
    assert f"3 rows are earlier checkpoints of 2 runs (by {name}) and left out; --last none keeps them" in table.notes
    assert replicates(table) is None


def test_kept_checkpoints_are_no_replicates_and_stay_together(csv: Csv) -> None:
    table = read_table(csv(HEADER.format("step") + HISTORY), last="none")
    assert len(table) == 5
    assert replicates(table) is None
    drawn = resampled(table.family, 20, np.random.default_rng(0))
    assert (drawn[:, :3] == drawn[:, :1]).all()
    assert any("5 rows are checkpoints of 2 runs" in note for note in table.notes)


def test_seeds_that_end_at_one_step_are_replicates(csv: Csv) -> None:
    seeds = "".join(f"{line},{seed}\n" for seed in (0, 1) for line in HISTORY.splitlines())
    seeds = seeds.replace("3.4,1", "3.42,1")
    table = read_table(csv(HEADER.format("step").replace("loss", "loss,seed") + seeds))
    assert table.loss.tolist() == [3.4, 3.2, 3.42, 3.2]
    noise = replicates(table)
    assert noise is not None
    assert noise["freedom"] == 1
    unnamed = read_table(csv(HEADER.format("step") + HISTORY + HISTORY.replace("3.4\n", "3.42\n")))
    assert sorted(unnamed.loss.tolist()) == [3.2, 3.2, 3.4, 3.42]


def test_a_named_column_orders_what_no_name_says(csv: Csv) -> None:
    path = csv(HEADER.format("shards") + HISTORY)
    assert len(read_table(path)) == 5
    assert read_table(path, last="shards").loss.tolist() == [3.4, 3.2]
    with pytest.raises(ValueError, match=r"last: expected a column of .* or none, got 'shard'"):
        read_table(path, last="shard")
    with pytest.raises(ValueError, match="last: expected numbers in the column"):
        read_table(csv((HEADER.format("phase") + HISTORY).replace("\n100", "\na").replace("\n200", "\nb").replace("\n300", "\nc")), last="phase")  # fmt: skip


def test_runs_are_distinguished_by_their_name(csv: Csv) -> None:
    text = "run_id," + HEADER.format("step")
    rows = "".join(f"r{i // 3},{line}\n" for i, line in enumerate([*HISTORY.splitlines()[:3] * 2]))
    assert read_table(csv(text + rows.replace("r1,300,8,1024,4,2048,3.4", "r1,300,8,1024,4,2048,3.5"))).loss.tolist() == [3.4, 3.5]  # fmt: skip
    with pytest.raises(ValueError, match=r"expected one loss at the end of each run, got several \(lines 4, 7\)"):
        read_table(csv(text + rows.replace("r1", "r0").replace("3.4\n", "3.5\n", 1)))


@pytest.mark.parametrize("label", ["id", "name", "learning_rate", "tokens"])
def test_what_may_be_runs_of_their_own_is_a_question(label: str, csv: Csv) -> None:
    lines = [f"{i + 1}e9,{line}" for i, line in enumerate(HISTORY.splitlines())]
    path = csv(f"{label}," + HEADER.format("step") + "\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=f"differ in step and {label}; --last step keeps the last of each run"):
        read_table(path)
    assert read_table(path, last="step").loss.tolist() == [3.4, 3.2]
    assert len(read_table(path, last="none")) == 5


def test_tokens_order_the_checkpoints_of_a_named_run(csv: Csv) -> None:
    path = csv("run,parameters,tokens,loss\na,1e8,1e9,4.0\na,1e8,2e9,3.8\nb,2e8,1e9,3.9\nb,2e8,2e9,3.5\n")
    assert read_table(path).feature("tokens").tolist() == [2e9, 2e9]


def test_runs_that_did_not_end_are_left_out(csv: Csv) -> None:
    text = "Name,State,_step,config.num_hidden_layers,config.hidden_size,config.num_key_value_heads,config.intermediate_size,eval/loss\n"
    rows = "a,finished,900,8,1024,4,2048,3.4\nb,crashed,100,8,1024,4,2048,\nc,finished,901,8,1024,4,2048,3.41\nd,running,500,16,1024,4,2048,3.3\ne,finished,900,16,1024,4,2048,3.2\n"
    table = read_table(csv(text + rows))
    assert table.loss.tolist() == [3.4, 3.41, 3.2]
    assert "2 rows left out by State crashed, running (lines 3, 5)" in table.notes
    assert "column config.hidden_size is read as width" in table.notes
    assert "column eval/loss is read as loss" in table.notes


def test_diverged_runs_are_left_out_and_counted_and_no_earlier_checkpoint_takes_their_place(csv: Csv) -> None:
    text = HEADER.format("step") + HISTORY + "100,24,1024,4,2048,3.9\n300,24,1024,4,2048,inf\n300,32,1024,4,2048,NaN\n"
    table = read_table(csv(text))
    assert table.loss.tolist() == [3.4, 3.2]
    assert "2 rows of diverged runs (loss inf or nan) left out (lines 8, 9)" in table.notes
    with pytest.raises(ValueError, match="every run diverged"):
        read_table(csv("depth,width,loss\n8,1024,inf\n16,1024,inf\n"))


def test_a_blank_seed_or_learning_rate_refuses_no_table(csv: Csv) -> None:
    table = read_table(csv("depth,width,loss,seed,learning_rate\n8,1024,3.4,0,\n16,1024,3.2,,1e-3\n"))
    assert len(table) == 2
    assert not {"seed", "learning_rate"} & set(table.numbers)
    table = read_table(csv("depth,width,loss,seed,lr\n8,1024,3.4,first,cosine\n16,1024,3.2,1,1e-3\n"))
    assert {
        "seed is not used: 'first' is no number (line 2)",
        "learning_rate is not used: 'cosine' is no number (line 2)",
    } < {*table.notes}
