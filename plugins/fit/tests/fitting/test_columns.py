"""Names and cells as people write them: what is read under which name, what is proposed, every fault at once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from objectives.loss_law.form import named_form
from plas_fit.fitting.estimate import Method, fitted
from plas_fit.fitting.several_tables import read_tables
from plas_fit.fitting.trained_models import read_table

Csv = Callable[[str], Path]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("num_layers", "depth"), ("n_layer", "depth"), ("layers", "depth"), ("d_model", "width"), ("n_embd", "width"),
        ("kv_heads", "n_kv_heads"), ("num_key_value_heads", "n_kv_heads"), ("config.n_kv_head", "n_kv_heads"),
        ("config/n_kv_head", "n_kv_heads"), ("params.model.hidden_size", "width"), ("summary/lr", "learning_rate"),
        ("config.n_layer.value", "depth"), ("experts", "n_experts"), ("num_experts", "n_experts"), ("topk", "top_k"),
        ("d_ff", "expert_size"), ("n_params", "parameters"), ("lr", "learning_rate"), ("max_lr", "learning_rate"),
        ("bs", "batch"), ("batch_size", "batch"), ("heads", "n_heads"), ("active_experts", "top_k"),
        ("hidden_dim", "width"), ("num_query_groups", "n_kv_heads"),
    ],
)  # fmt: skip
def test_names_that_people_use_are_read_and_said(written: str, name: str, csv: Csv) -> None:
    table = read_table(csv(f"{written},loss\n200000,3.2\n100000,3.0\n"))
    assert name in table.numbers
    assert f"column {written} is read as {name}" in table.notes


@pytest.mark.parametrize(
    "written", ["val_loss", "eval/loss", "test_loss", "final_val_loss", "metrics.val_loss", "summary/eval/loss"]
)
def test_names_of_held_out_losses(written: str, csv: Csv) -> None:
    assert read_table(csv(f"parameters,{written}\n1e8,3.2\n2e8,3.0\n")).loss.tolist() == [3.2, 3.0]


@pytest.mark.parametrize(
    "name",
    ["hiden_size", "L", "E", "config.moe.top_k", "params_M"],
)  # fmt: skip
def test_a_name_that_is_not_exactly_one_is_not_read(name: str, csv: Csv) -> None:
    """No heading is taken for another that it is like: it is said, and the flag that reads it where a form lacks something."""
    rows = "".join(f"{n}e8,{n},{3 - n / 10}\n" for n in (1, 2, 4))
    table = read_table(csv(f"parameters,{name},loss\n" + rows))
    assert set(table.numbers) == {"parameters", "loss"}
    assert f"columns that no law reads: {name}" in table.notes
    with pytest.raises(ValueError, match="expected a column of training tokens") as caught:
        fitted("chinchilla", named_form("chinchilla"), table, Method())
    assert str(caught.value).splitlines()[-1] == (
        f"columns that no law reads: {name}; --rename OLD=NEW reads one under another name"
    )
    assert "depth" in read_table(csv(f"{name},loss\n4,3.2\n8,3.0\n"), renamed=[f"{name}=depth"]).numbers


@pytest.mark.parametrize(
    ("name", "meant"),
    [("# layers", "depth"), ("KV heads", "n_kv_heads"), ("#experts", "n_experts"), ("config.top-k", "top_k"), ("Experts", "n_experts"), ("nLayer", "depth")],
)  # fmt: skip
def test_a_column_of_nearly_a_name_is_not_taken_for_absent(name: str, meant: str, csv: Csv) -> None:
    """A table whose experts nobody reads would be one of dense models."""
    path = csv(f"parameters,{name},loss\n1e8,4,3.2\n2e8,8,3.0\n")
    with pytest.raises(ValueError, match="expected") as caught:
        read_table(path)
    line = f'df = df.rename(columns={{"{name}": "{meant}"}})'
    assert str(caught.value) == f"{path}:1: expected {meant} by an exact name, got {name}; {line}"
    assert meant in read_table(path, renamed=[f"{name}={meant}"]).numbers


def test_a_unit_in_a_name_is_mended_with_its_factor(csv: Csv) -> None:
    path = csv("parameters,Tokens (B),loss\n1e8,4,3.2\n2e8,8,3.0\n")
    with pytest.raises(ValueError, match="expected tokens by an exact name") as caught:
        read_table(path)
    assert str(caught.value).endswith('; df["tokens"] = df["Tokens (B)"] * 1e9')


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        ("Loss", "Loss=loss"),
        ("Val/Loss", "Val/Loss=loss"),
        ("val loss", "'val loss=loss'"),
        *((name, "OLD=loss") for name in ("train/loss", "val loss (nats)", "evalloss")),
    ],
)
def test_a_loss_of_another_name_is_asked_for(name: str, flag: str, csv: Csv) -> None:
    with pytest.raises(
        ValueError, match=f"expected a column loss, got parameters, .*; rename one with --rename {flag}$"
    ):
        read_table(csv(f"parameters,{name}\n1e8,3.2\n2e8,3.0\n"))


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("eval/loss,val_loss", "expected one column of held-out losses, got eval/loss, val_loss; choose with --rename eval/loss=loss"),
        ("metrics.loss,metrics.eval_loss", "choose with --rename metrics.loss=loss"),
        ("config.width,params.width,loss", "expected each column once, got width twice (config.width, params.width); keep one with --rename"),
    ],
)  # fmt: skip
def test_two_columns_of_one_meaning_are_a_question(header: str, said: str, csv: Csv) -> None:
    columns = header.count(",") + 1
    with pytest.raises(ValueError, match="expected") as caught:
        read_table(csv(f"parameters,{header}\n1e8{',3' * columns}\n2e8{',2' * columns}\n"))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "cell", "line"),
    [
        ("parameters", "1.3B", 'df["parameters"] = df["parameters"].str.removesuffix("B").astype(float) * 1e9'),
        ("width", "1K", 'df["width"] = df["width"].str.removesuffix("K").astype(float) * 1e3'),
        ("tokens", '"10,000"', 'df["tokens"] = df["tokens"].str.replace(",", "").astype(float)'),
        ("loss", '"3,21"', 'df["loss"] = df["loss"].str.replace(",", ".").astype(float)'),
        ("activation_rate", "12.5%", 'df["activation_rate"] = df["activation_rate"].str.removesuffix("%").astype(float) / 100'),
        ("loss", "3.2 nats", 'correct it, or df["loss"] = pd.to_numeric(df["loss"], errors="coerce") empties such cells'),
        ("tokens", "NaN", 'correct it, or df["tokens"] = pd.to_numeric(df["tokens"], errors="coerce") empties such cells'),
        ("n_kv_heads", "None", "correct it, or df["),
    ],
)  # fmt: skip
def test_a_cell_that_is_written_otherwise_is_refused(name: str, cell: str, line: str, csv: Csv) -> None:
    columns = {"parameters": "2e8", "tokens": "2e10", "loss": "3.0"}
    broken = columns | {name: cell}
    text = "\n".join(",".join({**dict.fromkeys(broken, "0.5"), **row}.values()) for row in (columns, broken))
    with pytest.raises(ValueError, match="expected") as caught:
        read_table(csv(f"{','.join(broken)}\n{text}\n"))
    assert f"runs.csv:3: {name}: expected a number, got {cell.strip(chr(34))!r}; {line}" in str(caught.value)


def test_a_condition_on_numbers_written_otherwise_leaves_no_row_out(csv: Csv) -> None:
    """Nor does a column of progress that orders checkpoints."""
    for options in ({"where": ["budget>1e9"]}, {"last": "budget"}):
        with pytest.raises(ValueError, match=r"runs.csv:3: budget: expected a number or an empty cell, got '1,5'"):
            read_table(csv('run,budget,loss\na,1e9,3.2\na,"1,5",3.0\nb,2e9,3.1\n'), **options)


@pytest.mark.parametrize("name", ["val_ppl", "perplexity (test)", "eval/ppl"])
def test_a_perplexity_is_no_loss_whatever_it_is_renamed_to(name: str, csv: Csv) -> None:
    path = csv(f"parameters,{name}\n1e8,14.2\n2e8,9.1\n")
    for renamed in ([], [f"{name}=loss"]):
        with pytest.raises(ValueError, match="expected") as caught:
            read_table(path, renamed=renamed)
        said = f':1: expected nats per token, got {name}, a perplexity; df["loss"] = np.log(df["{name}"])'
        assert str(caught.value).endswith(said)


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


def test_what_a_law_lacks_is_said_with_the_faults_of_cells(csv: Csv) -> None:
    path = csv("depth,hiden,n_heads,loss\nx,512,8,3.2\n9,512,8,?\n")
    with pytest.raises(ValueError, match="expected") as caught:
        read_tables([path], needs=("parameters", "tokens"))
    said = str(caught.value)
    assert [line.partition(": expected")[0].partition(".csv")[2] or line.partition(":")[0] for line in said.splitlines()] == [
        ":2: depth", ":3: loss", "parameters", "tokens", "columns that no law reads"
    ]  # fmt: skip
    assert "of which width, n_kv_heads, expert_size is missing or wrong (n_kv_heads of models without grouped" in said


def test_the_faults_of_all_files_come_at_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("parameters,loss\nx,3.2\n2e8,3.0\n")
    with pytest.raises(ValueError, match=r"a\.csv:2: parameters(?s:.*)b\.csv:2: parameters"):
        read_tables([tmp_path / "a.csv", tmp_path / "b.csv"])


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


@pytest.mark.parametrize("cell", ["", "0"])
def test_experts_of_dense_rows_are_one(cell: str, csv: Csv) -> None:
    path = csv(
        f"depth,width,n_kv_heads,n_experts,top_k,expert_size,loss\n8,512,4,{cell},{cell},1024,3.1\n9,512,4,8,1,512,3\n"
    )
    with pytest.raises(
        ValueError, match=r"n_experts: [^\n]*of a dense model write 1(?s:.*)top_k: [^\n]*of a dense model write 1"
    ):
        read_tables([path], needs=("activation_rate",))[0].feature("activation_rate")


def test_counts_that_are_none_are_asked_for_their_unit(csv: Csv) -> None:
    """50 and 1600 parameters are millions: a law of them would be off by their units in every study."""
    with pytest.raises(ValueError, match="expected") as caught:
        read_table(csv("params,tokens,loss\n50,1,3.2\n1600,20,3.0\n"))
    assert [line.partition(".csv")[2] for line in str(caught.value).splitlines()] == [
        ':2: parameters: expected a count, got 50, wrong in 2 rows (lines 2, 3); df["parameters"] = df["parameters"] * 1e6 of millions',
        ':2: tokens: expected a count, got 1, wrong in 2 rows (lines 2, 3); df["tokens"] = df["tokens"] * 1e9 of billions',
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
