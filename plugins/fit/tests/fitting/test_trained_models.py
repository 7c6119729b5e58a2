"""Reading tables of trained models: what is understood, what is said, what is refused."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from plas_fit.fitting import trained_models as module
from plas_fit.fitting.trained_models import read_table

Csv = Callable[[str], Path]
HEADER = "depth,width,n_kv_heads,n_experts,top_k,expert_size,loss\n"
ROWS = "8,1024,4,8,1,1024,3.2\n16,1536,4,8,2,1024,3.0\n"


def test_architecture_columns_give_a_laws_quantities(csv: Csv) -> None:
    table = read_table(csv(HEADER + ROWS))
    assert table.feature("activation_rate").tolist() == [0.125, 0.25]
    assert table.feature("ffn_ratio") == pytest.approx([1.0, 4 / 3])
    assert (table.feature("active_parameters") < table.feature("parameters")).all()


def test_hugging_face_names_are_read_and_said(csv: Csv) -> None:
    text = "num_hidden_layers,hidden_size,num_attention_heads,num_key_value_heads,head_dim,intermediate_size,loss\n"
    table = read_table(csv(text + "8,1024,16,4,64,4096,3.2\n16,1024,16,4,64,4096,3.0\n"))
    assert table.feature("ffn_ratio").tolist() == [4.0, 4.0]
    assert "column hidden_size is read as width" in table.notes


def test_parameters_and_flops_alone_suffice_for_a_size_law(csv: Csv) -> None:
    table = read_table(csv("N,flop,loss\n1e8,6e18,3.5\n2e8,6e19,3.1\n"), ["N=parameters", "flop=training_flops"])
    assert table.feature("tokens") == pytest.approx([1e10, 5e10])
    assert table.feature("active_parameters").tolist() == [1e8, 2e8]


def test_rows_left_out_are_counted(csv: Csv) -> None:
    table = read_table(csv(HEADER + ROWS + "4,768,4,8,1,768,4.0\n"), where=["depth>4", "loss<=3.2"])
    assert table.lines.tolist() == [2, 3]
    assert "1 rows left out by depth>4 (lines 4)" in table.notes


def test_copies_are_said_and_kept(csv: Csv) -> None:
    table = read_table(csv(HEADER + ROWS + ROWS))
    assert len(table) == 4
    assert any("2 rows repeat another's design and loss" in note for note in table.notes)


def test_large_losses_raise_the_question_of_bits(csv: Csv) -> None:
    table = read_table(csv("parameters,loss\n1e8,5.5\n2e8,5.3\n"))
    assert any("not bits" in note for note in table.notes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("depth,width\n8,1024\n9,1024\n", "expected a column loss"),
        (HEADER + ROWS + "8,wide,4,8,1,1024,3.0\n", "runs.csv:4: width: expected a number, got 'wide'"),
        (HEADER + ROWS + "8,1024,4,8,1,1024,\n", "runs.csv:4: loss: expected a number, got ''"),
        (
            HEADER + "8,1024,4,8,1,1024,\n16,1024,4,8,1,1024,\n",
            "runs.csv:2: loss: expected a number, got '', wrong in 2 rows",
        ),
        (HEADER + "8,1024,4,8,1,1024,3.2\n", "expected a row per trained model, got one"),
        (HEADER, "expected a header and a row per trained model"),
        (HEADER + ROWS + "8,1024,4,8,16,1024,3.0\n", "runs.csv:4: top_k: expected at most n_experts 8, got 16"),
        (HEADER + ROWS + "8,1024,4,0,1,1024,3.0\n", "runs.csv:4: n_experts: expected a positive number, got 0"),
        (HEADER + ROWS + "8,1024,4,8,1,1024,31.0\n", "runs.csv:4: loss: expected nats per token"),
        (HEADER + ROWS + "8,1024,5,8,1,1024,3.0\n", "runs.csv:4: n_kv_heads: expected a divisor"),
        (HEADER + ROWS + "8,1024\n", "runs.csv:4: expected 7 cells, got 2"),
        ("loss,loss\n1,1\n2,2\n", "expected each column once, got loss twice"),
        (HEADER + "\n\n" + ROWS + "8,wide,4,8,1,1024,3.0\n", "runs.csv:6: width: expected a number, got 'wide'"),
        (
            HEADER + ROWS + "8" * 200_000 + ",1,4,8,1,1024,3.0\n",
            "runs.csv:4: expected CSV, got a cell of more than 131,072 characters, or a quote",
        ),
        (HEADER + ROWS.replace("3.2", "3.0"), "loss: expected values that vary, got 3 in every row"),
    ],
)
def test_a_bad_table_is_a_clear_line(text: str, said: str, csv: Csv) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        read_table(csv(text))
    assert said in str(caught.value)


def test_any_line_ending_is_read(tmp_path: Path) -> None:
    for ending in ("\n", "\r\n", "\r"):
        path = tmp_path / "runs.csv"
        path.write_bytes((HEADER + ROWS).replace("\n", ending).encode())
        assert read_table(path).loss.tolist() == [3.2, 3.0]


def test_too_many_rows_are_refused_before_they_are_parsed(csv: Csv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 3)
    with pytest.raises(ValueError, match="at most 3 rows, got 5"):
        read_table(csv("loss\n" + "3.0\n" * 5))


@pytest.mark.parametrize(
    ("renamed", "where", "said"),
    [
        (["nothing=loss"], [], "rename: expected OLD=NEW"),
        ([], ["nothing<1"], "where: expected COLUMN<VALUE"),
        ([], ["depth>99"], "where: expected conditions that leave rows"),
        ([], ["depth<deep"], "where: expected a number after <"),
        ([], ["tokens_per_parameter>1"], "where: expected columns tokens and parameters"),
    ],
)
def test_wrong_options_are_a_clear_line(renamed: list[str], where: list[str], said: str, csv: Csv) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        read_table(csv(HEADER + ROWS), renamed, where)
    assert said in str(caught.value)


def test_weights_have_mean_one(csv: Csv) -> None:
    table = read_table(csv("parameters,loss,weight\n1e8,3.5,1\n2e8,3.1,3\n"))
    assert table.weight.tolist() == [0.5, 1.5]
    assert np.unique(table.design).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "parameters,tokens,loss\n1e9,2e10,2.5\n4e8,10,2.7\n",
            'tokens: expected a count, got 10; df["tokens"] = df["tokens"] * 1e9 of billions',
        ),
        (
            "parameters,training_flops,loss\n1e9,120,2.5\n4e8,24,2.7\n",
            "training_flops: expected FLOP of a training, got 120, wrong in 2 rows (lines 2, 3); write FLOP",
        ),
        (
            "parameters,training_flops,loss\n1e9,1.2e20,2.5\n4e8,24,2.7\n",
            "training_flops: expected FLOP of a training, got 24;",
        ),
    ],
)
def test_a_count_that_lacks_its_unit_is_told_row_by_row(text: str, fault: str, csv: Csv) -> None:
    """One cell without its unit moves every coefficient; tokens that follow from FLOP are held to the same."""
    with pytest.raises(ValueError, match=re.escape(fault)):
        read_table(csv(text))


def test_few_tokens_of_small_models_stay(csv: Csv) -> None:
    assert len(read_table(csv("parameters,tokens,loss\n2e6,4e4,5.5\n4e6,2e9,2.7\n"))) == 2
