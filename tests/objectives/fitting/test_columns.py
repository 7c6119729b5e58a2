"""Names and cells as people write them: what is read under which name, what is proposed, every fault at once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from objectives.fitting.estimate import Method, fitted
from objectives.fitting.several_tables import read_tables
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
        ("bs", "batch"), ("batch_size", "batch"), ("heads", "n_heads"), ("Experts", "n_experts"), ("active experts", "top_k"),
        ("hidden dim", "width"), ("num_query_groups", "n_kv_heads"),
    ],
)  # fmt: skip
def test_names_that_people_use_are_read_and_said(written: str, name: str, csv: Csv) -> None:
    table = read_table(csv(f"{written},loss\n200000,3.2\n100000,3.0\n"))
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
        "columns that may be meant, add what is right: --rename hiden_size=width --rename tokns=tokens --rename train_nll_loss=loss"
    )


def test_near_misses_are_proposed_where_nothing_is_wrong_and_where_a_form_lacks_them(csv: Csv) -> None:
    rows = "".join(f"{n}e8,{d}e9,{3 - n / 10 - d / 100}\n" for n in (1, 2, 4) for d in (1, 2, 4))
    table = read_table(csv("parameters,tokns,loss\n" + rows))
    assert "column tokns is not used; --rename tokns=tokens reads it as tokens" in table.notes
    with pytest.raises(ValueError, match="expected a column of training tokens") as caught:
        fitted("chinchilla", named_form("chinchilla"), table, Method())
    assert "columns that may be meant, add what is right: --rename tokns=tokens" in str(caught.value)
    with pytest.raises(ValueError, match="expected") as caught:
        fitted("hw_codesign", named_form("hw_codesign"), table, Method())
    assert {line.partition(":")[0] for line in str(caught.value).splitlines()} >= {
        "depth",
        "ffn_ratio",
        "kv_dim",
        "width",
    }


def test_letters_of_papers_and_nested_names_are_proposed_and_never_read(csv: Csv) -> None:
    text = "L,d,n_h,n_kv,config.moe.top_k,D,N (non-emb),GQA groups,loss\n8,512,8,2,1,1e9,1e8,4,3.2\n9,512,8,2,1,1e9,2e8,4,3.1\n"
    table = read_table(csv(text))
    assert set(table.numbers) == {"loss"}
    with pytest.raises(ValueError, match="expected") as caught:
        fitted("chinchilla", named_form("chinchilla"), table, Method())
    assert str(caught.value).splitlines()[-1] == (
        "columns that may be meant, add what is right: --rename L=depth --rename d=width --rename n_h=n_heads "
        "--rename config.moe.top_k=top_k --rename D=tokens --rename 'N (non-emb)=parameters' "
        "(either --rename n_kv=n_kv_heads or --rename 'GQA groups=n_kv_heads')"
    )


def test_hidden_and_ffn_alone_are_proposed(csv: Csv) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        read_tables([csv("layers,hidden,FFN,kv heads,loss\n8,512,2048,2,?\n9,512,1024,2,3\n")], needs=("ffn_ratio",))
    assert str(caught.value).endswith("add what is right: --rename hidden=width --rename FFN=expert_size")


def test_empty_cells_matter_only_where_a_law_needs_the_column(csv: Csv) -> None:
    rows = "".join(
        f"{n}e8,{d}e9,{'' if n == d else 512},{3 - n / 10 - d / 100}\n" for n in (1, 2, 4) for d in (1, 2, 4)
    )
    table = read_table(csv("parameters,tokens,width,loss\n" + rows))
    assert "width is not used: 3 empty cells (lines 2, 6, 10)" in table.notes
    fitted("chinchilla", named_form("chinchilla"), table, Method(starts=1))
    with pytest.raises(
        ValueError, match=r"runs.csv:2: width: expected a number, got '', wrong in 3 rows \(lines 2, 6, 10\)"
    ):
        table.feature("width")
    with pytest.raises(ValueError, match="loss: expected a number, got ''"):
        read_table(csv("parameters,loss\n1e8,3\n2e8,\n3e8,2\n"))


def test_experts_that_some_rows_do_not_say_are_not_taken_for_none(csv: Csv) -> None:
    table = read_table(csv("parameters,n_experts,tokens,loss\n1e8,4,1e9,3.2\n2e8,,1e9,3.0\n"))
    assert not table.has("active_parameters")
    with pytest.raises(ValueError, match="n_experts: expected a number, got ''"):
        table.feature("depth")


def test_words_and_units_in_cells(csv: Csv) -> None:
    table = read_table(
        csv("parameters,tokens,activation_rate,loss\n1.3 billion,10 million,12.5%,3.2 nats\n2e8,2e10,0.25,3.0\n")
    )
    assert table.feature("parameters").tolist() == [1.3e9, 2e8]
    assert table.feature("tokens").tolist() == [1e7, 2e10]
    assert table.feature("activation_rate").tolist() == [0.125, 0.25]
    assert table.loss.tolist() == [3.2, 3.0]
    with pytest.raises(ValueError, match="depth: expected a number, got '8 layers'; write the number alone"):
        read_table(csv("depth,loss\n8 layers,3.2\n9,3.0\n"))


def test_what_a_law_lacks_is_said_with_the_faults_of_cells(csv: Csv) -> None:
    path = csv("depth,hiden,n_heads,loss\nx,512,8,3.2\n9,512,8,?\n")
    with pytest.raises(ValueError, match="expected") as caught:
        read_tables([path], needs=("parameters", "tokens"))
    said = str(caught.value)
    assert [line.partition(": expected")[0].partition(".csv")[2] or line.partition(":")[0] for line in said.splitlines()] == [
        ":2: depth", ":3: loss", "parameters", "tokens"
    ]  # fmt: skip
    assert "of which width, n_kv_heads, expert_size is missing or wrong (n_kv_heads of models without grouped" in said


def test_the_faults_of_all_files_come_at_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("parameters,loss\nx,3.2\n2e8,3.0\n")
    with pytest.raises(ValueError, match=r"a\.csv:2: parameters(?s:.*)b\.csv:2: parameters"):
        read_tables([tmp_path / "a.csv", tmp_path / "b.csv"])


@pytest.mark.parametrize("header", ["activation_rate", "Activation rate (%)", "activation-rate [percent]"])
def test_activation_rates_above_one_are_no_shares(header: str, csv: Csv) -> None:
    path = csv(f"{header},loss\n100,3.2\n12.5,3.0\n")
    if header == "activation_rate":
        with pytest.raises(ValueError, match="activation_rate: expected a share of at most 1, got 100"):
            read_table(path)
    else:
        assert read_table(path).feature("activation_rate").tolist() == [1.0, 0.125]
        renamed = read_table(path, renamed=[f"{header}=activation_rate"])
        assert renamed.feature("activation_rate").tolist() == [1.0, 0.125]


@pytest.mark.parametrize("fault", ["x", "45"])
def test_what_a_file_holds_is_not_called_missing_beside_another_fault(fault: str, csv: Csv) -> None:
    path = csv(
        f"depth,width,n_kv_heads,n_experts,top_k,expert_size,loss\n8,512,4,8,1,1024,{fault}\n9,512,4,8,1,512,3\n"
    )
    needs = ("depth", "activation_rate", "ffn_ratio", "width", "kv_dim", "parameters")
    with pytest.raises(ValueError, match=r"runs\.csv:2: loss: expected [^\n]*$"):
        read_tables([path], needs=needs)
    ratios = csv("depth,width,kv_dim,activation_rate,ffn_ratio,loss\n8,512,256,0.1,2,?\n9,512,256,0.2,2,3\n")
    with pytest.raises(ValueError, match=r"runs\.csv:2: loss: expected [^\n]*$"):
        read_tables([ratios], needs=needs[:-1])


def test_one_name_twice_is_no_renaming(csv: Csv) -> None:
    for name in ("loss", "val loss"):
        with pytest.raises(ValueError, match="expected") as caught:
            read_table(csv(f"parameters,{name},{name}\n1e8,3.2,3.3\n2e8,3.0,3.1\n"))
        assert str(caught.value).partition(":1: ")[2] == (
            f"expected each column once, got {name} twice; remove one, or give it another name in the file"
        )


@pytest.mark.parametrize("cell", ["", "0"])
def test_experts_of_dense_rows_are_one(cell: str, csv: Csv) -> None:
    path = csv(
        f"depth,width,n_kv_heads,n_experts,top_k,expert_size,loss\n8,512,4,{cell},{cell},1024,3.1\n9,512,4,8,1,512,3\n"
    )
    with pytest.raises(
        ValueError, match=r"n_experts: [^\n]*of a dense model write 1(?s:.*)top_k: [^\n]*of a dense model write 1"
    ):
        read_tables([path], needs=("activation_rate",))[0].feature("activation_rate")


@pytest.mark.parametrize("name", ["val_ppl", "Perplexity (test)", "eval/ppl"])
def test_a_perplexity_is_no_loss_whatever_it_is_renamed_to(name: str, csv: Csv) -> None:
    path = csv(f"parameters,{name}\n1e8,14.2\n2e8,9.1\n")
    for renamed in ([], [f"{name}=loss"]):
        with pytest.raises(ValueError, match="expected") as caught:
            read_table(path, renamed=renamed)
        said = f":1: expected nats per token, got {name}, a perplexity; loss is its natural logarithm: add that column"
        assert str(caught.value).endswith(said)


@pytest.mark.parametrize(
    ("params", "tokens"),
    [
        ("params (M)", "tokens [B]"), ("params_M", "tokens_B"), ("Params in millions", "Tokens in B"),
        ("n_params_M", "train_tokens_billion"), ("params M", "tokens (billions)"),
    ],
)  # fmt: skip
def test_units_of_counts_in_names(params: str, tokens: str, csv: Csv) -> None:
    table = read_table(csv(f"{params},{tokens},loss\n50,1,3.2\n1600,20,3.0\n"))
    assert table.feature("parameters").tolist() == [5e7, 1.6e9]
    assert table.feature("tokens").tolist() == [1e9, 2e10]
    renamed = read_table(
        csv(f"x {params},x_{tokens},loss\n50,1,3.2\n1600,20,3.0\n"),
        renamed=[f"x {params}=parameters", f"x_{tokens}=tokens"],
    )
    assert renamed.feature("tokens").tolist() == [1e9, 2e10]


def test_counts_that_are_none_are_asked_for_their_unit(csv: Csv) -> None:
    """50 and 1600 parameters are millions: a law of them would be off by their units in every study."""
    with pytest.raises(ValueError, match="expected") as caught:
        read_table(csv("params,tokens,loss\n50,1,3.2\n1600,20,3.0\n"))
    assert [line.partition(".csv")[2] for line in str(caught.value).splitlines()] == [
        ":2: parameters: expected a count, got 50, wrong in 2 rows (lines 2, 3); say its unit, in the header as parameters (M) or in the cells as 50M",
        ":2: tokens: expected a count, got 1, wrong in 2 rows (lines 2, 3); say its unit, in the header as tokens (B) or in the cells as 1B",
    ]
    assert read_table(csv("params,tokens,loss\n20000,100000,3.2\n900,30,3.0\n")).feature("tokens").tolist() == [
        1e5,
        30.0,
    ]
    with pytest.raises(ValueError, match="tokens: expected a count, got 10"):
        read_table(csv("depth,width,tokens,loss\n16,1024,10,3.2\n24,2048,20,3.0\n"))


def test_small_models_may_be_trained_on_few_tokens(csv: Csv) -> None:
    small = read_table(csv("depth,width,tokens,loss\n1,32,256,6.2\n4,64,512,6.0\n"))
    assert small.feature("tokens").tolist() == [256.0, 512.0]
    assert read_table(csv("params,tokens,loss\n20000,256,6.2\n40000,512,6.0\n")).feature("tokens").tolist() == [
        256,
        512,
    ]


def test_what_is_no_count_is_never_proposed_as_one(tmp_path: Path) -> None:
    """Names of models are no width, training losses no FLOP, and tokens per parameter no tokens."""
    path = tmp_path / "runs.csv"
    path.write_text(
        "model,params,tokens,train_loss,loss,tokens_per_second\npythia,1e9,1e10,2.4,2.5,9000\nolmo,4e8,1e10,2.6,2.7,9900\n"
    )
    table = read_table(path)
    assert not [note for note in table.notes if "--rename" in note]
    assert table.proposed == ()
