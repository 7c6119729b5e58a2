"""Tables of sweeps: the best run of each design is kept and counted, and a table that looks like one says so."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from plas_fit.fitting.diagnostics import sweep
from plas_fit.fitting.several_tables import read_tables
from plas_fit.fitting.trained_models import Table, read_table

Csv = Callable[[str], Path]
DESIGNS = ((1e8, 1e9), (1e8, 4e9), (4e8, 1e9))


def swept(header: str = "parameters,tokens,lr,bs,loss", spread: float = 0.3, names: Sequence[str] = ()) -> str:
    """Three designs at three learning rates and two batches, the second rate best, the first batch better by 0.001."""
    rows = [
        f"{n!r},{d!r},{rate!r},{batch},{3 - i / 10 + spread * abs(k - 1) + 0.001 * j!r}"
        for i, (n, d) in enumerate(DESIGNS)
        for k, rate in enumerate((1e-4, 1e-3, 1e-2))
        for j, batch in enumerate((64, 128))
    ]
    return "\n".join([header, *rows]) + "\n"


@pytest.mark.parametrize("asked", ["lr,bs", "learning_rate,batch", "bs, learning_rate", "max_lr,batch_size"])
def test_the_run_of_lowest_loss_of_each_design_is_kept_and_the_rest_counted(asked: str, csv: Csv) -> None:
    table = read_table(csv(swept()), best_of=asked)
    assert table.loss == pytest.approx([3.0, 2.9, 2.8])
    assert table.lines.tolist() == [4, 10, 16]
    said = [note for note in table.notes if "left out by --best-of" in note]
    assert len(said) == 1
    assert re.match(r"15 rows left out by --best-of .*: the lowest loss of each of 3 designs is kept", said[0])
    assert sweep(table) is None


def test_what_is_read_and_not_swept_tells_designs_apart(csv: Csv) -> None:
    table = read_table(csv(swept()), best_of="learning_rate")
    assert len(table) == 6
    assert table.numbers["batch"].tolist() == [64, 128] * 3
    named = swept("parameters,tokens,learning_rate,seed,loss")
    assert len(read_table(csv(named), best_of="learning_rate")) == 6
    assert len(read_table(csv(named), best_of="learning_rate,seed")) == 3
    unread = swept("parameters,tokens,warmup,note,loss")
    assert len(read_table(csv(unread), best_of="warmup")) == 3


@pytest.mark.parametrize(
    "header",
    [
        "parameters,tokens,lr,bs,loss",
        "parameters,tokens,learning_rate,batch_size,loss",
        "parameters,tokens,max_lr,batch,loss",
    ],
)
def test_learning_rates_and_batches_are_recognised_and_no_quantity_of_a_law(header: str, csv: Csv) -> None:
    table = read_table(csv(swept(header)))
    assert {"learning_rate", "batch"} < set(table.numbers)
    assert set(table.levels) == {"parameters", "tokens"}
    assert len(np.unique(table.design)) == 3


def test_a_table_that_looks_like_a_sweep_says_so_with_the_flag(csv: Csv) -> None:
    said = sweep(read_table(csv(swept())))
    assert said is not None
    assert "18 of 18 rows share all that is read with others" in said
    assert "--best-of learning_rate,batch keeps the lowest loss of each design" in said
    unnamed = sweep(read_table(csv(swept("parameters,tokens,warmup,decay,loss"))))
    assert unnamed is not None
    assert "--best-of A,B" in unnamed


def test_repeats_are_no_sweep(csv: Csv) -> None:
    assert sweep(read_table(csv(swept(spread=0.01)))) is None
    assert sweep(read_table(csv("parameters,loss\n1e8,3\n2e8,2.5\n"))) is None


def test_of_ties_the_first_is_kept(csv: Csv) -> None:
    table = read_table(csv("parameters,lr,loss\n1e8,1e-3,3\n1e8,1e-2,3\n2e8,1e-3,2\n"), best_of="lr")
    assert table.lines.tolist() == [2, 4]


def test_checkpoints_of_each_run_of_a_sweep_are_left_out_first(csv: Csv) -> None:
    header, rows = "depth,width,n_kv_heads,expert_size,lr,step,loss", []
    for rate, end, last in ((1, 200, 3.0), (2, 100, 2.5)):  # the better run ends earlier, and was lower before
        rows += [f"8,1024,4,2048,{rate},{end // 2},{last - 1}", f"8,1024,4,2048,{rate},{end},{last}"]
    table = read_table(csv("\n".join([header, *rows, "16,1024,4,2048,1,200,1.5"])), best_of="lr")
    assert table.loss.tolist() == [2.5, 1.5]


def test_several_tables_are_each_reduced(csv: Csv, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text(swept().replace("100000000.0", "900000000.0"))
    table: Table = read_tables([csv(swept()), other], best_of="lr,bs")
    assert len(table) == 6


def test_a_column_that_is_not_there_is_a_clear_line(csv: Csv) -> None:
    with pytest.raises(
        ValueError, match=r"best_of: expected columns of .*runs.csv \(parameters, tokens, lr, bs, loss\), got 'rate'"
    ):
        read_table(csv(swept()), best_of="lr,rate")
