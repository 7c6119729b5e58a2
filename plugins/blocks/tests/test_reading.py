"""Libraries as people have them: Puzzletron's two layouts, tables; and broken ones, a line a fault."""

import json
from pathlib import Path

import pytest
from plas_blocks.checking import Meaning
from plas_blocks.files import read_library, write_library
from plas_blocks.puzzletron import FILE, solution

from nas.errors import UsageError

ATTENTION = {"no_op": False, "num_key_value_heads": 8, "mamba": None}
FFN = {"no_op": False, "intermediate_size": 14336, "moe": None}
PARENT = {"attention": ATTENTION, "ffn": FFN, "parallel_blocks": None}
SMALL = {"attention": {"no_op": True}, "ffn": {**FFN, "intermediate_size": 4096}, "parallel_blocks": None}


def replacement(
    layers: list[int], config: object, loss: float, memory: float, *, own: bool = False
) -> dict[str, object]:
    return {
        "block_config": config,
        "parent_layer_indices": layers,
        "metrics": {"lm_loss": loss, "token_accuracy_top_1": 0.6 - loss / 100},
        "stats": {"memory_mib": memory, "runtime_ms": None, "num_params": memory * 1e6},
        "is_teacher": own,
        "layer_replacement": {"parent_layer_indices": layers, "child_block_configs": [config], "weight_paths": []},
    }


def puzzletron() -> dict[str, object]:
    entries = []
    for layer in (0, 1):
        entries += [replacement([layer], PARENT, 2.0, 400.5, own=True), replacement([layer], SMALL, 2.25, 100.25)]
    entries.append(replacement([0, 1], PARENT, 2.375, 400.5))
    return {f"replacement_{i}": entry for i, entry in enumerate(entries)}


def written(folder: Path, content: object, name: str = FILE) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_puzzletrons_file(tmp_path: Path) -> None:
    library = read_library(written(tmp_path, puzzletron()), Meaning())
    assert (library.layers, len(library)) == (2, 5)
    assert library.scores == ("lm_loss", "token_accuracy_top_1")
    assert library.larger == {"token_accuracy_top_1"}
    assert library.costs == ("has_attention", "has_ffn", "memory_mib", "num_params")
    assert library.baselines["lm_loss"] == 2.0
    assert library.parents is not None
    assert library.total("lm_loss", library.parents) == 2.0
    small = [row for row in range(5) if library.metrics["memory_mib"][row] == 100.25]
    assert library.total("lm_loss", small) == 2.5
    assert library.metrics["has_attention"][small].tolist() == [0, 0]
    assert library.blocks[small[0]] == "attention: no_op ffn: intermediate_size_4096"
    assert library.named("stats.memory_mib") == "memory_mib"


def test_puzzletrons_earlier_and_later_layouts(tmp_path: Path) -> None:
    listed = {
        "subblock_configs": [{"kind": "attention", "no_op": False, "num_kv_heads": 2}, {"kind": "moe", "no_op": True}]
    }
    inner = {
        "block_config": listed,
        "block_idx": 0,
        "metrics": {"loss": 1.0},
        "stats": {"memory_mib": 1.0},
        "block_repr": " a  b\n",
    }
    library = read_library(written(tmp_path, {"block_0": {"one": inner}}), Meaning())
    assert library.blocks == ("a b",)
    assert [library.metrics[n][0] for n in ("has_attention", "has_ffn", "memory_mib", "loss")] == [1, 0, 1, 1]


def test_a_mixture_goes_out_as_puzzletrons_solution(tmp_path: Path) -> None:
    library = read_library(written(tmp_path, puzzletron()), Meaning())
    small = [row for row in range(5) if library.metrics["memory_mib"][row] == 100.25]
    told = solution(library, small, "lm_loss", {"memory_mib": 300.0})
    assert told["chosen_block_configs"] == [SMALL, SMALL]
    assert told["total_value"] == {"metrics.lm_loss": 4.5}
    assert told["total_costs"]["stats.memory_mib"] == 200.5
    assert told["chosen_replacements"][1]["layer_replacement"]["parent_layer_indices"] == [1]


def test_a_library_written_and_read_is_the_same(tmp_path: Path) -> None:
    library = read_library(written(tmp_path, puzzletron()), Meaning(rest={"memory_mib": 7.0}))
    (tmp_path / "again").mkdir()
    write_library(tmp_path / "again", library)
    again = read_library(tmp_path / "again", Meaning())
    assert (again.blocks, again.kinds, again.scores, again.larger) == (
        library.blocks,
        library.kinds,
        library.scores,
        library.larger,
    )
    assert again.rest == {"memory_mib": 7.0}
    assert all((again.metrics[name] == library.metrics[name]).all() for name in library.metrics)
    assert again.contents == library.contents


HEAD = "layer,block,parent,score,memory_mib\n"
BROKEN = {
    "missing layers": (HEAD + "0,a,1,0,5\n3,a,1,0,5\n", "every layer up to 3, got none of 1, 2"),
    "NaN": (HEAD + "0,a,1,nan,5\n", "line 2: score: expected a finite number, got nan"),
    "infinite": (HEAD + "0,a,1,0,inf\n", "line 2: memory_mib: expected a finite number, got inf"),
    "a unit in a cell": (HEAD + "0,a,1,0,5 GiB\n", "expected a plain number in the column's unit, got '5 GiB'"),
    "two units": (
        HEAD + "0,a,1,0,4096\n1,a,1,0,4\n",
        "memory_mib: expected one unit, got up to 4 at layer 1 and 4096 at layer 0",
    ),
    "negative": (HEAD + "0,a,1,0,-5\n", "line 2: memory_mib: expected a cost of at least 0, got -5"),
    "twice": (HEAD + "0,a,1,0,5\n0,a,1,0.5,5\n", "line 3: expected each block once a layer, got 'a' of layer 0"),
    "empty": (HEAD + "0,a,1,,5\n0,b,0,1,5\n", "line 2: score: expected a number, got nothing"),
    "nothing": (HEAD, "expected replacements of layers, got none"),
    "no layer": ("block,score\na,1\n", "got no layer; name them"),
    "layer": (HEAD + "x,a,1,0,5\n", "layer: expected a number such as 7, or 7-9, got 'x'"),
    "layers the wrong way": (HEAD + "3-1,a,1,0,5\n", "layer: expected a number such as 7, or 7-9, got '3-1'"),
    "too many layers": (HEAD + "0-999999,a,1,0,5\n", "count from 0 to 4095 at most"),
    "no name": (HEAD + "0,,1,0,5\n", "line 2: block: expected a name, got nothing"),
    "what overflows": (HEAD + "0,a,1,0,1e308\n", "line 2: memory_mib: expected a finite number, got 1e+308"),
    "two parents": (HEAD + "0,a,1,0,5\n0,b,1,1,4\n", "one block of the parent's a layer, got 'a' and 'b' at layer 0"),
    "an answer's column": (HEAD.replace("score", "kinds") + "0,a,1,0,5\n", "got 'kinds', a column of answers"),
    "a terminal's code": (HEAD.replace("score", "\x1b[31m") + "0,a,1,0,5\n", "expected a name of plain text"),
    "two units of one block among many": (
        HEAD
        + "".join(
            f"{i},{b},{int(b == 'a')},0,{v / (1024 if i == 2 else 1)}\n"
            for i in range(3)
            for b, v in (("a", 400), ("b", 30))
        ),
        "memory_mib: expected one unit, got up to 0.390625 at layer 2 and 400 at layer 0",
    ),
    "cells": (HEAD + "0,a,1,0\n", "library.csv:2: expected 5 cells, got 4"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_tables_say_what_is_wrong_in_a_line(case: str, tmp_path: Path) -> None:
    content, said = BROKEN[case]
    with pytest.raises(UsageError) as caught:
        read_library(written(tmp_path, content, "library.csv"), Meaning())
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_fault_is_a_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_library(written(tmp_path, HEAD + "0,a,1,nan,-5\n0,b,0,1,x\n", "library.csv"), Meaning())
    assert len(str(caught.value).splitlines()) == 3


def test_the_same_row_twice_is_no_fault(tmp_path: Path) -> None:
    library = read_library(written(tmp_path, HEAD + "0,a,0,0,5\n0,a,1,0,5\n", "library.csv"), Meaning())
    assert library.parent.tolist() == [True]


def test_a_layer_of_hardly_anything_is_in_the_same_unit(tmp_path: Path) -> None:
    table = HEAD + "0,a,1,0,400\n1,a,1,0,410\n2,skip,1,0,0.016\n"
    assert read_library(written(tmp_path, table, "library.csv"), Meaning()).layers == 3


def test_scores_are_known_by_name_or_by_what_is_said_of_them(tmp_path: Path) -> None:
    table = "layer,block,parent,accuracy_top_1,lm_loss,quality,memory_mib\n0,a,1,0.5,2,7,5\n"
    library = read_library(written(tmp_path, table, "library.csv"), Meaning(larger=("quality",)))
    assert library.scores == ("accuracy_top_1", "lm_loss", "quality")
    assert library.larger == {"accuracy_top_1", "quality"}
    assert library.costs == ("memory_mib",)
    puzzle = read_library(written(tmp_path, puzzletron()), Meaning(("lm_loss",)))
    assert puzzle.scores == ("lm_loss", "token_accuracy_top_1")
    assert puzzle.larger == {"token_accuracy_top_1"}


def test_a_table_of_pandas_with_spaces_and_names_like_formulas(tmp_path: Path) -> None:
    table = ", layer, block, parent, score, =size\n0, 0, a, 1, 0, 5\n1, 0, b, 0, 1, 4\n"
    library = read_library(written(tmp_path, table, "library.csv"), Meaning())
    assert tuple(library.metrics) == ("score", "=size")
    (tmp_path / "again").mkdir()
    write_library(tmp_path / "again", library)
    assert tuple(read_library(tmp_path / "again", Meaning()).metrics) == ("score", "=size")


def test_a_file_without_an_end_is_not_read_to_it() -> None:
    with pytest.raises(UsageError, match="got a device or pipe"):
        read_library(Path("/dev/zero"), Meaning())


def alone(layer: int, loss: float) -> str:
    return json.dumps({"a": replacement([layer], PARENT, 1, 5) | {"metrics": {"lm_loss": loss}}})


@pytest.mark.parametrize(
    "content",
    ["[]", "{", '{"a": {"metrics": {"x": 1}}}', '{"a": 3}', "[" * 100_000, alone(10**9, 1), alone(0, 10**400)],
    ids=["list", "open", "no layer", "number", "deep", "a far layer", "a huge number"],
)
def test_json_that_is_not_puzzletrons(content: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected"):
        read_library(written(tmp_path, content), Meaning())
