"""Columns that no law reads: they are named, and one that tells kinds of rows apart is called."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from objectives.loss_law.form import named_form
from plas_fit.fitting.diagnostics import mixture, replicates, sweep
from plas_fit.fitting.estimate import Fit, Method, fitted
from plas_fit.fitting.several_tables import read_tables
from plas_fit.fitting.trained_models import Table
from search_spaces.arrays import FloatArray


def trained(n: int = 48, seed: int = 1) -> pd.DataFrame:
    """Rows of one Chinchilla law with noise of 0.01 nats."""
    random = np.random.default_rng(seed)
    size, tokens = np.exp(random.uniform(17, 21.5, n)).round(), np.exp(random.uniform(21, 25, n)).round()
    loss = 406 * size**-0.34 + 410 * tokens**-0.28 + 1.69 + random.normal(0, 0.01, n)
    return pd.DataFrame({"params": size, "tokens": tokens, "loss": loss})


def table_of(rows: pd.DataFrame, path: Path) -> Table:
    rows.to_csv(path, index=False)
    return read_tables([path])


def fit(table: Table) -> Fit:
    return fitted("chinchilla", named_form("chinchilla"), table, Method(None, 4, 0, {}))


def halves(rows: pd.DataFrame, first: str, second: str) -> list[str]:
    return [first if i % 2 else second for i in range(len(rows))]


def shifted(rows: pd.DataFrame, kinds: list[str], of: str, by: float) -> FloatArray:
    return np.asarray(rows["loss"] + by * (np.array(kinds) == of))


def test_two_data_sets_in_one_table_are_called(tmp_path: Path) -> None:
    """Losses of two data sets differ by what no law can know: the column and the flag that keeps one are named."""
    rows = trained()
    kinds = halves(rows, "c4", "fine web")
    mixed = rows.assign(loss=shifted(rows, kinds, "c4", 0.3), dataset=kinds, name=[f"run {i}" for i in range(48)])
    said = mixture(fit(table_of(mixed, tmp_path / "a.csv")))
    assert said is not None
    assert "residuals differ by dataset" in said
    assert "from fine web -0.1" in said
    assert "(24 rows) to c4 +0.1" in said
    assert "--where dataset=c4 keeps one kind" in said
    kept = tmp_path / "a.csv"
    assert mixture(fit(read_tables([kept], where=["dataset=c4"]))) is None


@pytest.mark.parametrize("seed", range(8))
def test_a_column_that_moves_no_loss_is_not_called(seed: int, tmp_path: Path) -> None:
    """Words that say nothing of the loss, and names of architectures, are no kinds."""
    rows = trained(seed=seed)
    repeated = pd.concat([rows.assign(name=[f"{size / 1e6:.0f}M" for size in rows["params"]], who="us")] * 3)
    law = 406 * repeated["params"] ** -0.34 + 410 * repeated["tokens"] ** -0.28 + 1.69
    repeated["loss"] = law + np.random.default_rng(seed).normal(0, 0.01, len(repeated))
    repeated["engine"] = halves(repeated, "jax", "torch")
    assert mixture(fit(table_of(repeated, tmp_path / "a.csv"))) is None


def test_two_files_are_kinds_too(tmp_path: Path) -> None:
    """Tables of two laboratories whose losses differ are no rows of one law."""
    rows = trained()
    rows[:24].to_csv(tmp_path / "a.csv", index=False)
    rows[24:].assign(loss=rows["loss"][24:] + 0.3).to_csv(tmp_path / "b.csv", index=False)
    said = mixture(fit(read_tables([tmp_path / "a.csv", tmp_path / "b.csv"])))
    assert said is not None
    assert "residuals differ by the file" in said
    assert said.endswith("fit one file at a time")


def test_rows_of_one_design_that_a_column_tells_apart_are_no_sweep(tmp_path: Path) -> None:
    """The column that differs among rows of one design is named: the lowest loss would be of one kind alone."""
    rows = trained()
    both = pd.concat([rows.assign(metric="raw"), rows.assign(metric="scaled", loss=rows["loss"] * 2)])
    table = table_of(both, tmp_path / "a.csv")
    said = sweep(table)
    assert said is not None
    assert "in metric, which no law reads: --where metric=raw keeps one kind" in said
    assert "--best-of" not in said
    noise = replicates(table)
    assert noise is not None
    assert noise["ceiling_r2"] == 0.0


def test_columns_that_no_law_reads_are_named(tmp_path: Path) -> None:
    """Nothing of a table is passed over in silence, but for what orders or numbers its rows."""
    table = table_of(trained().assign(dataset="c4", dropout=0.1, step=7), tmp_path / "a.csv")
    assert "columns that no law reads: dataset, dropout" in table.notes
