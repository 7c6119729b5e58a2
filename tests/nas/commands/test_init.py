"""What init writes: a study whose first line names the schema beside it."""

import json
from pathlib import Path
from typing import Any

import pytest

from nas.commands.schema import schema_of


@pytest.mark.parametrize(
    ("study", "kind"), [("paper", "study"), ("compare_paper", "comparison"), ("devices_paper", "devices")]
)
def test_a_study_names_the_schema_that_is_written_beside_it(study: str, kind: str, inside: Any, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    answer = inside("init", "deep/mine.yaml", "--from", study)
    schema = tmp_path / "deep" / f"{kind}.schema.json"
    assert f"deep/{kind}.schema.json is for editors" in answer.err
    first = (tmp_path / "deep" / "mine.yaml").read_text().splitlines()[0]
    assert first == f"# yaml-language-server: $schema={schema.name}"
    assert json.loads(schema.read_text()) == json.loads(json.dumps(schema_of(kind)))
    assert inside("list", "--schema", kind).out == schema.read_text()


def test_a_schema_that_is_there_stays_as_it_is(inside: Any, tmp_path: Path) -> None:
    (tmp_path / "study.schema.json").write_text("{}")
    answer = inside("init", "mine.yaml")
    assert (
        "study.schema.json was there and stays as it is; python -m nas.list --schema study prints this version's"
        in answer.err
    )
    assert (tmp_path / "study.schema.json").read_text() == "{}"


def test_a_strategy_has_no_schema_and_a_refused_study_leaves_none(inside: Any, tmp_path: Path) -> None:
    assert inside("init", "my_search.py").code == 0
    (tmp_path / "mine.yaml").write_text("")
    assert inside("init", "mine.yaml").code == 2
    assert not list(tmp_path.glob("*.json"))
