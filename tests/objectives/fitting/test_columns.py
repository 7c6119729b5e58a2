"""Names and cells as people write them: what is read under which name, what is proposed, every fault at once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from objectives.fitting.estimate import Method, fitted
from objectives.fitting.trained_models import read_table
from objectives.loss_law.form import named_form

Csv = Callable[[str], Path]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("num_layers", "depth"), ("n_layer", "depth"), ("# layers", "depth"), ("d_model", "width"), ("n_embd", "width"),
        ("KV heads", "n_kv_heads"), ("num_key_value_heads", "n_kv_heads"), ("config.n_kv_head", "n_kv_heads"),
        ("#experts", "n_experts"), ("num_experts", "n_experts"), ("top-k", "top_k"), ("d_ff", "expert_size"),
        ("n_params", "parameters"), ("Params (M)", "parameters"), ("Tokens (billions)", "tokens"), ("lr", "learning_rate"), ("max_lr", "learning_rate"),
        ("bs", "batch"), ("batch_size", "batch"),
    ],
)  # fmt: skip
def test_names_that_people_use_are_read_and_said(written: str, name: str, csv: Csv) -> None:
    table = read_table(csv(f"{written},loss\n4,3.2\n8,3.0\n"))
    assert name in table.numbers
    assert f"column {written} is read as {name}" in table.notes


@pytest.mark.parametrize("written", ["val_loss", "val loss (nats)", "eval/loss", "test_loss", "final val loss", "Loss"])
def test_names_of_held_out_losses(written: str, csv: Csv) -> None:
    assert read_table(csv(f"parameters,{written}\n1e8,3.2\n2e8,3.0\n")).loss.tolist() == [3.2, 3.0]


def test_a_unit_in_the_name_answers_the_question_of_bits(csv: Csv) -> None:
    text = "parameters,{}\n1e8,5.5\n2e8,5.3\n"
    assert any("not bits" in note for note in read_table(csv(text.format("val loss"))).notes)
    assert not any("not bits" in note for note in read_table(csv(text.format("val loss (nats)"))).notes)


def test_counts_with_a_unit(csv: Csv) -> None:
    table = read_table(csv('parameters,tokens,loss\n1.3B,"10,000M",3.2\n2e8,2e10,3.0\n350 M,0.1T,3.1\n'))
    assert table.feature("parameters").tolist() == [1.3e9, 2e8, 3.5e8]
    assert table.feature("tokens").tolist() == [1e10, 2e10, 1e11]
    assert "parameters: 1.3B is read as 1.3e+09" in table.notes
    european = read_table(csv("parameters;tokens;loss\n1,3B;10M;3,2\n2,6B;20M;3,05\n"))
    assert european.feature("parameters").tolist() == [1.3e9, 2.6e9]
    headed = read_table(csv("Params (M),Tokens (billions),loss\n10,1.5,3.2\n20,3B,3.0\n"))
    assert headed.feature("parameters").tolist() == [1e7, 2e7]
    assert headed.feature("tokens").tolist() == [1.5e9, 3e9]


def test_conditions_see_counts_with_a_unit(csv: Csv) -> None:
    table = read_table(csv("parameters,loss\n1.3B,3.2\n2e8,3.0\n3e9,2.9\n"), where=["parameters>1e9"])
    assert table.lines.tolist() == [2, 4]


def test_a_unit_elsewhere_is_no_number(csv: Csv) -> None:
    with pytest.raises(ValueError, match="width: expected a number, got '1K'"):
        read_table(csv("depth,width,loss\n8,1K,3.2\n9,1024,3.0\n"))


def test_an_exact_name_wins_and_the_other_is_said(csv: Csv) -> None:
    table = read_table(csv("parameters,total_params,lr,max_lr,loss\n1e8,2e8,1,3,3.2\n2e8,3e8,2,4,3.0\n"))
    assert table.feature("parameters").tolist() == [1e8, 2e8]
    assert table.numbers["learning_rate"].tolist() == [1, 2]
    assert "column total_params is not used beside parameters" in table.notes
    renamed = read_table(csv("n_params,total_params,loss\n1e8,2e8,3.2\n2e8,3e8,3.0\n"), ["n_params=parameters"])
    assert renamed.feature("parameters").tolist() == [1e8, 2e8]


def test_heads_without_a_size_share_the_width(csv: Csv) -> None:
    table = read_table(csv("n_layer,n_embd,n_head,kv_heads,d_ff,loss\n4,256,8,2,1024,3.2\n8,512,16,4,2048,3.0\n"))
    assert table.feature("query_dim").tolist() == [256, 512]
    assert table.feature("kv_dim").tolist() == [64, 128]
    assert "head_dim is width / n_heads" in table.notes
    said = read_table(csv("depth,width,n_heads,n_kv_heads,kv_dim,loss\n4,256,8,2,128,3.2\n8,512,8,2,128,3.0\n"))
    assert "head_dim" not in said.numbers


def test_every_fault_is_named_at_once_with_its_lines(csv: Csv) -> None:
    rows = "8,512,8,2,1e9,3.5\n12,wide,8,9,2e9,3.2\n12,-,0,1,x,3.1\n12,768,8,2,2e9,45\n"
    with pytest.raises(ValueError, match="expected") as caught:
        read_table(csv("depth,width,n_experts,top_k,tokens,loss\n" + rows))
    lines = str(caught.value).splitlines()
    assert [line.partition(": ")[2].partition("; ")[0] for line in lines] == [
        "width: expected a number, got 'wide', wrong in 2 rows (lines 3, 4)",
        "tokens: expected a number, got 'x'",
        "n_experts: expected a positive number, got 0",
        "loss: expected nats per token between 0.01 and 20, got 45",
        "top_k: expected at most n_experts 8, got 9, wrong in 2 rows (lines 3, 4)",
    ]


def test_names_and_cells_that_are_wrong_come_together_with_what_may_be_meant(csv: Csv) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        read_table(csv("hiden_size,depth,config.depth,params.depth,tokns,train_nll_loss\n512,x,1,1,2,3\n,8,1,1,2,3\n"))
    said = str(caught.value)
    assert "expected a column loss, got hiden_size" in said
    assert "depth: expected a number, got 'x'" in said
    assert said.splitlines()[-1] == (
        "columns that may be meant: --rename hiden_size=width, --rename tokns=tokens, --rename train_nll_loss=loss"
    )


def test_near_misses_are_proposed_where_nothing_is_wrong_and_where_a_form_lacks_them(csv: Csv) -> None:
    rows = "".join(f"{n}e8,{d}e9,{3 - n / 10 - d / 100}\n" for n in (1, 2, 4) for d in (1, 2, 4))
    table = read_table(csv("parameters,tokns,loss\n" + rows))
    assert "column tokns is not used; --rename tokns=tokens reads it as tokens" in table.notes
    with pytest.raises(ValueError, match="expected a column of training tokens") as caught:
        fitted("chinchilla", named_form("chinchilla"), table, Method())
    assert "columns that may be meant: --rename tokns=tokens" in str(caught.value)
    with pytest.raises(ValueError, match="expected") as caught:
        fitted("hw_codesign", named_form("hw_codesign"), table, Method())
    assert {line.partition(":")[0] for line in str(caught.value).splitlines()} >= {
        "depth",
        "ffn_ratio",
        "kv_dim",
        "width",
    }
