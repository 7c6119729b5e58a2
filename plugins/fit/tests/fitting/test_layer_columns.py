"""Rows with layers of several kinds: read, fitted beside the law's own terms, written as studies read them, nothing ignored."""

import csv
from pathlib import Path

import numpy as np
import pytest

from objectives.counts import total
from objectives.loss_law.form import named_form
from objectives.loss_law.law import Law
from plas_fit.fitting.estimate import Method, fitted
from plas_fit.fitting.intervals import intervals
from plas_fit.fitting.law_file import deltas_of, law_of
from plas_fit.fitting.report import kinds
from plas_fit.fitting.several_tables import read_tables
from plas_fit.fitting.trained_models import Table, read_table
from search_spaces.architectures import Architectures, architectures_of

TOLD = {"local": 0.04, "conv": 0.12}
SMALL = {"n_kv_heads": 2, "expert_size": 1024}
PLAIN = {"n_local": 0, "window": 0, "n_conv": 0, "conv_kernel": 0}


def mixed(n: int = 48) -> Architectures:
    """Models of full attention, of windows and of short convolutions, by turns."""
    kinds_of = [{}, {"n_local": 3, "window": 512}, {"n_conv": 4, "conv_kernel": 3}, {"n_local": 6, "window": 1024}]
    sizes = [{"depth": 8 + 2 * (i % 5), "width": 256 * (1 + i % 7)} for i in range(n)]
    return architectures_of([{**SMALL, **PLAIN, **sizes[i], **kinds_of[i % 4]} for i in range(n)])


def truth(deltas: dict[str, float]) -> Law:
    form = named_form("parameters_power")
    values = {name: {"l_inf": 2.0}.get(name, 0.2) for name in form.coefficients}
    values[form.scales[0]] = 30.0
    return Law.model_validate({"form": "parameters_power", "coefficients": values, "layer_deltas": deltas})


def written(path: Path, a: Architectures, loss: np.ndarray, without: tuple[str, ...] = ()) -> Path:
    columns = {name: column for name, column in a.columns().items() if name not in without}
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([*columns, "loss"])
        rows.writerows(zip(*(column.tolist() for column in columns.values()), loss.tolist(), strict=True))
    return path


@pytest.fixture
def table(tmp_path: Path) -> Table:
    a = mixed()
    noise = np.random.default_rng(0).normal(0, 0.003, len(a))
    return read_table(written(tmp_path / "runs.csv", a, truth(TOLD).loss(a) + noise))


def test_a_fit_finds_what_kinds_of_layers_cost_with_intervals_that_hold_it(table: Table) -> None:
    fit = fitted("parameters_power", named_form("parameters_power"), table, Method(starts=3))
    known = intervals(fit, 40, np.random.default_rng(0))
    found = kinds(fit, known)
    assert found["unseen"] == ["kv_shared", "deltanet", "mamba2"]
    assert found["windows"] == [512, 1024]
    for kind, delta in TOLD.items():
        low, high = found["deltas"][kind]["linear"]
        assert low < delta < high
        assert high - low < 0.05
        assert low < found["deltas"][kind]["value"] < high
        assert found["deltas"][kind]["determined"]


def test_the_law_of_a_fit_has_the_deltas_as_studies_read_them_and_draws_them_with_the_rest(table: Table) -> None:
    form = named_form("parameters_power")
    fit = fitted("parameters_power", form, table, Method(starts=3))
    known = intervals(fit, 30, np.random.default_rng(0))
    read = Law.model_validate(law_of(fit, known, "own", "parameters_power", None).mapping())
    a = mixed()
    assert read.layer_deltas == deltas_of(fit)
    np.testing.assert_allclose(read.loss(a), fit.predicted, rtol=1e-9)
    kappa, alpha, floor, local, conv = (column[:, None] for column in known.draws.T)
    shares = local * a.n_local / a.depth + conv * a.n_conv / a.depth
    expected = kappa * table.feature("active_parameters") ** -alpha + floor + shares
    np.testing.assert_allclose(read.drawn_losses(a), expected, rtol=1e-9)


def test_draws_of_a_rival_form_keep_their_own_deltas(table: Table) -> None:
    form = named_form("parameters_power")
    fit, rival = (fitted(name, form, table, Method(starts=2)) for name in ("own", "parameters_power"))
    law = law_of(
        fit, intervals(fit, 20, np.random.default_rng(1)), "own", "parameters_power", None, {"parameters_power": rival}
    )
    read = Law.model_validate(law.mapping())
    assert [len(read.draws), len(read.rivals[0].draws)] == [10, 10]
    assert [len(row.split()) for row in read.layer_delta_draws.values()] == [20, 20]
    assert {round(draw.layer_deltas["conv"], 2) for draw in read.drawn} <= {0.11, 0.12, 0.13}


def test_models_that_differ_in_their_kinds_alone_are_no_replicates_and_no_checkpoints(tmp_path: Path) -> None:
    a = architectures_of(
        [{**SMALL, "depth": 8, "width": 512, **kind} for kind in (PLAIN, {**PLAIN, "n_conv": 4, "conv_kernel": 3})]
    )
    path = written(tmp_path / "two.csv", a, np.array([3.0, 3.1]))
    path.write_text(
        "\n".join(f"{line},{end}" for line, end in zip(path.read_text().split(), ("step", "1", "2"), strict=True))
    )
    table = read_table(path)
    assert len(table) == 2
    assert len(np.unique(table.design)) == 2
    assert table.feature("parameters").tolist() == total(a).tolist()


def test_words_truths_and_empty_cells_of_kinds_are_read(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    head = "depth,width,n_kv_heads,expert_size,n_linear,linear_kind,linear_heads,linear_key_heads,linear_key_dim,linear_value_dim,linear_kernel,attention_gate,loss"
    path.write_text(f"{head}\n8,512,2,1024,,,,,,,,,3.1\n8,512,2,1024,6,Mamba2,16,1,128,64,4,true,3.2\n")
    assert read_table(path).kinds["mamba2"].tolist() == [0.0, 0.75]
    path.write_text(path.read_text().replace("Mamba2", "mamba"))
    with pytest.raises(ValueError, match=r"runs.csv:3: linear_kind: expected one of no, deltanet, mamba2, got 'mamba'"):
        read_table(path)


def test_a_kind_without_its_size_is_refused_with_its_line(tmp_path: Path) -> None:
    a = mixed(4)
    path = written(tmp_path / "runs.csv", a, np.array([3.0, 3.1, 3.2, 3.3]), without=("window",))
    with pytest.raises(ValueError, match=r"runs.csv:3: window: expected a positive integer beside n_local 3"):
        read_table(path)


def test_of_several_tables_one_without_columns_of_kinds_is_of_full_attention(tmp_path: Path) -> None:
    a, plain = mixed(8), mixed(8)[np.array([0, 4])]
    names = tuple(PLAIN)
    paths = [
        written(tmp_path / "a.csv", a, truth(TOLD).loss(a)),
        written(tmp_path / "b.csv", plain, np.array([3.0, 3.1]), names),
    ]
    table = read_tables(paths)
    assert table.kinds["conv"][-2:].tolist() == [0.0, 0.0]
    assert table.kinds["conv"].max() == 0.4
    assert not any("not used" in note for note in table.notes)


def test_rows_of_one_share_and_forms_of_the_logarithm_are_refused_by_name(table: Table) -> None:
    half = table[np.flatnonzero(table.kinds["conv"] > 0)]
    alike = half[np.flatnonzero(half.feature("depth") == 8)]
    with pytest.raises(
        ValueError, match=r"conv: expected rows with other shares of such layers, got 0\.5 in every row"
    ):
        fitted("parameters_power", named_form("parameters_power"), alike, Method(starts=1))
    with pytest.raises(ValueError, match="form: expected terms that add up to the loss beside layers of several kinds"):
        fitted("bilinear_moe", named_form("bilinear_moe"), table, Method(starts=1))
