"""Candidate files read back as they were written, and faults name their row."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.answer.outcome_files import file_columns
from nas.errors import UsageError
from nas.files.tables import csv_text
from nas.problem.problem import Problem
from nas.record.candidates import read_candidates, read_numbers, write_candidates
from search_spaces.architectures import Architectures, architectures_of

SHAPE = ("depth", "width", "head_dim", "n_heads", "n_kv_heads", "n_experts", "top_k", "expert_size")
FURTHER = ("shared_expert_size", "shared_gate", "qk_norm", "qkv_bias", "norms_per_layer", "tied", "vocabulary")
ROWS: list[dict[str, Any]] = [
    {"depth": 16, "width": 2048, "n_kv_heads": 4, "n_experts": 16, "top_k": 1, "expert_size": 1024},
    {
        "depth": 24,
        "width": 896,
        "n_kv_heads": 2,
        "expert_size": 4864,
        "qkv_bias": True,
        "qk_norm": "no",
        "vocabulary": 151_936,
    },
    {
        "depth": 28,
        "width": 1024,
        "head_dim": 128,
        "n_heads": 16,
        "n_kv_heads": 8,
        "expert_size": 3072,
        "shared_expert_size": 64,
        "shared_gate": True,
        "tied": False,
        "norms_per_layer": 4,
    },
]


def same(first: Architectures, second: Architectures) -> bool:
    """Equal in every stored column."""
    return all(getattr(first, name).tolist() == getattr(second, name).tolist() for name in (*SHAPE, *FURTHER))


def columns(architectures: Architectures) -> dict[str, Any]:
    """A candidate file's columns with two metrics, one with a gap."""
    n = len(architectures)
    return {
        "id": [f"a-{i}" for i in range(n)],
        **file_columns(architectures, {"loss": np.linspace(3, 4, n), "speed": np.full(n, np.nan)}),
    }


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], ROWS[1:2]], ids=["all", "plain", "Qwen"])
def test_what_is_written_reads_back(ending: str, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    path, architectures = tmp_path / f"x.{ending}", architectures_of(rows)
    write_candidates(path, columns(architectures))
    back, ids = read_candidates(path)
    assert same(back, architectures)
    assert ids == [f"a-{i}" for i in range(len(rows))]


def test_json_lines_are_one_object_a_line_with_null_for_gaps(tmp_path: Path) -> None:
    write_candidates(tmp_path / "x.jsonl", columns(architectures_of(ROWS)))
    lines = (tmp_path / "x.jsonl").read_text().splitlines()
    assert len(lines) == 3
    first = json.loads(lines[0], parse_constant=pytest.fail)
    assert (first["id"], first["depth"], first["expert_ffn_ratio"], first["speed"]) == ("a-0", 16, 0.5, None)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_frontier_is_a_candidate_file(ending: str, problem_of: Callable[..., Problem], tmp_path: Path) -> None:
    problem = problem_of()
    architectures = problem.architectures(problem.space.genotypes(np.arange(problem.space.size)))
    path = tmp_path / f"frontier.{ending}"
    write_candidates(path, file_columns(architectures, {}))
    back, ids = read_candidates(path)
    assert same(back, architectures)
    assert ids == [str(i) for i in range(problem.space.size)]


def test_columns_in_any_order_with_unknown_ones_are_read(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(
        "remark,n_kv_heads,id,expert_ffn_ratio,width,depth\nfine,4,mine,2,768,8\n,1,,0.5,768,4\n"
    )
    back, ids = read_candidates(tmp_path / "x.csv")
    assert (back.expert_size.tolist(), back.n_heads.tolist(), ids) == ([1536, 384], [12, 12], ["mine", "1"])


def test_a_quoted_cell_may_hold_a_line_break(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(
        csv_text(
            {
                "id": ["one"],
                "note": ["two\nlines"],
                "depth": [8],
                "width": [768],
                "n_kv_heads": [4],
                "expert_size": [768],
            }
        )
    )
    back, ids = read_candidates(tmp_path / "x.csv")
    assert (len(back), ids) == (1, ["one"])


@pytest.mark.parametrize("name", ["two\nlines", "\x1b[31mred", "x" * 300])
def test_an_id_is_plain_text(name: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(
        csv_text({"id": [name], "depth": [8], "width": [768], "n_kv_heads": [4], "expert_size": [768]})
    )
    with pytest.raises(UsageError, match="row 1: id: expected a name of"):
        read_candidates(tmp_path / "x.csv")


HEAD = "depth,width,n_kv_heads,expert_size\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.csv", "", "got an empty file"),
        ("x.csv", HEAD, "got an empty file"),
        ("x.csv", HEAD + "8,768,4,768\n8,768,5,768\n", "row 2: n_kv_heads: expected a divisor of n_heads 12, got 5"),
        ("x.csv", HEAD + "8,wide,4,768\n", "row 1: width: expected a positive integer, got wide"),
        ("x.csv", HEAD + "8,768\n", "x.csv:2: expected 4 cells, got 2; correct the row"),
        (
            "x.csv",
            HEAD + "8,768,4,768\n8,768,4,768,5\n",
            "x.csv:3: expected 4 cells, got 5; correct the row, with decimals written with points",
        ),
        (
            "x.csv",
            HEAD.replace(",", ";") + "8;768;4;768\n",
            'got depth;width;n_kv_heads;expert_size; pd.read_csv("x.csv", sep=";").to_csv("mended.csv", index=False)',
        ),
        ("x.csv", "a,b\n1,2\n", "row 1: depth: expected a positive integer, got nothing"),
        ("x.jsonl", '{"depth": 8', "x.jsonl:1: expected a JSON object"),
        ("x.jsonl", "[1, 2]\n", "x.jsonl:1: expected a JSON object, got [1, 2]"),
        ("x.jsonl", "5\n", "x.jsonl:1: expected a JSON object, got 5"),
        ("x.jsonl", '{"depth": [8], "width": 768, "n_kv_heads": 4, "expert_size": 768}\n', "row 1"),
        ("x.jsonl", '{"depth": {"a": 8}, "width": 768, "n_kv_heads": 4, "expert_size": 768}\n', "depth.a"),
        ("x.jsonl", '{"depth": 8, "width": 768, "n_kv_heads": 4, "expert_size": NaN}\n', "row 1"),
    ],
)
def test_faults_name_the_file_and_the_row(name: str, text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError) as caught:
        read_candidates(tmp_path / name)
    assert str(caught.value).startswith(f"{tmp_path / name}:")
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_number_written_otherwise_is_no_missing_one(tmp_path: Path) -> None:
    """A measured time of 3,5 beside 4.5 is refused; names and words are columns of their own."""
    path = tmp_path / "x.csv"
    head, row = "id,note," + HEAD, "8,768,4,768"
    path.write_text(f'{head[:-1]},total_ms\n7,2nd,{row},4.5\n8a,,{row},"3,5"\n')
    with pytest.raises(UsageError, match=r"row 2: total_ms: expected a number, got '3,5'; df\["):
        read_numbers(path)
    path.write_text(f"{head[:-1]},total_ms\n7,2nd,{row},4.5\n8a,,{row},nan\n")
    assert set(read_numbers(path)) == {"id", "total_ms"}


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"\xef\xbb\xbf" + f"{HEAD}8,768,4,768\n".encode())
    assert read_candidates(tmp_path / "x.csv")[0].depth.tolist() == [8]


def test_unreadable_files_and_other_endings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "none.csv", tmp_path / "x.csv", tmp_path):
        with pytest.raises(UsageError, match=r"expected (a readable CSV|UTF-8)"):
            read_candidates(path)
    with pytest.raises(UsageError, match=r"expected a \.csv or \.jsonl file"):
        write_candidates(tmp_path / "x.xlsx", columns(architectures_of(ROWS)))
    assert not (tmp_path / "x.xlsx").exists()
