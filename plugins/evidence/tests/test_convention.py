"""Published files become the convention: formulas, embeddings taken off, counts held against shapes, sweeps, groups."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from plas_evidence.convention import Converted, EvidenceSource, converted

from objectives.arithmetic import evaluated
from objectives.plugins import documents

SOURCES = documents("objectives.evidence.sources")
READ_FROM = {
    "morph": "loss/morph.csv",
    "gemstones": "loss/gemstones_hot.csv",
    "routing": "loss/deepmind_routing.csv",
    "fineweb": "loss/fineweb_13b.csv",
    "chinchilla": "loss/chinchilla_epoch.csv",
}
PLAIN: dict[str, Any] = {
    "columns": {"layers": "depth", "hidden": "width", "count": "parameters", "D": "tokens", "final": "loss"},
    "derived": {"n_experts": "1", "top_k": "1"},
    "embeddings": "2 * 1000 * hidden",
    "counts": {"parameters": "12 * depth * width ** 2"},
}
HEADER = "recipe,lr,layers,hidden,count,D,final\n"
ROWS = (
    ("a", 1e-3, 2, 64, 12 * 2 * 64**2 + 2000 * 64, 10**9, 3.5),
    ("a", 3e-3, 2, 64, 12 * 2 * 64**2 + 2000 * 64, 10**9, 3.25),
    ("b", 1e-3, 4, 64, 12 * 4 * 64**2 + 2000 * 64, 10**9, 3.0),
)


def as_text(table: Converted) -> str:
    """A CSV of a table, whole numbers without a point."""
    rows = zip(*(values.tolist() for values in table.columns.values()), strict=True)
    lines = [",".join(str(int(v)) if v == int(v) else repr(v) for v in row) for row in rows]
    return "\n".join([",".join(table.columns), *lines]) + "\n"


def source(**reading: Any) -> EvidenceSource:
    """A made-up source."""
    about = {"name": "made up", "description": "x", "laboratory": "y", "url": "z", "file": "runs.csv", "licence": "MIT"}
    rest = {"packaged": False, "counted": "with embeddings", "varies": ["depth"], "bibtex": "@misc{x}"}
    return EvidenceSource.model_validate({**about, **rest, "reading": {**PLAIN, **reading}})


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """The published file of the made-up source."""
    path = tmp_path / "runs.csv"
    path.write_text(HEADER + "".join(",".join(map(str, row)) + "\n" for row in ROWS))
    return path


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("256 * ceil(8 * a / 3 / 256)", [256.0, 512.0]),
        ("max(1, a // 96) ** 2", [1.0, 4.0]),
        ("where(a > 100, 7, a)", [96.0, 7.0]),
        ("min(a, 100) - 1", [95.0, 99.0]),
    ],
)
def test_formulas(formula: str, value: list[float]) -> None:
    columns = {"a": np.array([96.0, 192.0])}
    assert evaluated(formula, columns.__getitem__).tolist() == value


@pytest.mark.parametrize("formula", ["a b", "a.real", "__import__('os')", "[a]", "a if a else 1", "'x'", "max(a, b=1)"])
def test_anything_else_is_refused(formula: str) -> None:
    with pytest.raises(ValueError, match="expected a formula of numbers"):
        evaluated(formula, {"a": np.ones(2)}.__getitem__)


def test_embeddings_are_taken_off_and_what_is_left_follows_from_the_shapes(runs: Path) -> None:
    found = converted(source(), runs)
    assert found.columns["parameters"].tolist() == [12 * n * 64**2 for n in (2, 2, 4)]
    assert found.columns["active_parameters"].tolist() == found.columns["parameters"].tolist()
    assert found.off == 0


def test_counts_that_do_not_follow_are_refused_by_name_and_row(runs: Path) -> None:
    with pytest.raises(ValueError, match=r"made up: parameters: expected counts .* got 162304 for 98304 in row 1"):
        converted(source(embeddings="1000 * hidden"), runs)


def test_of_a_sweep_the_best_of_each_design_is_taken(runs: Path) -> None:
    found = converted(source(best_of=["lr"]), runs)
    assert found.columns["loss"].tolist() == [3.25, 3.0]
    assert found.swept == 1


def test_groups_are_numbered_in_order(runs: Path) -> None:
    assert converted(source(group=["recipe"]), runs).columns["group"].tolist() == [0, 0, 1]


def test_another_file_is_refused(runs: Path) -> None:
    with pytest.raises(ValueError, match=r"expected the columns of runs.csv, got none named width_of_layers"):
        converted(source(columns={"width_of_layers": "width"}), runs)


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_is_whole(name: str) -> None:
    content = yaml.safe_load(SOURCES[name].read_text(encoding="utf-8"))
    known = EvidenceSource.model_validate(content)
    rows = SOURCES[name].with_suffix(".csv")
    assert rows.is_file() == known.packaged
    assert not known.packaged or known.licence != "none stated"
    assert known.bibtex.strip().startswith("@")
    if known.packaged:
        header = rows.read_text(encoding="utf-8").partition("\n")[0].split(",")
        assert {"group", "parameters", "active_parameters", "tokens", "loss"} <= set(header)
        assert set(known.varies) <= {*header, "ffn_ratio"}


@pytest.mark.parametrize("name", ["miniature", "gpu_table"])
def test_tables_of_our_own_follow_from_their_files(name: str) -> None:
    own = EvidenceSource.model_validate(yaml.safe_load(SOURCES[name].read_text(encoding="utf-8")))
    again = converted(own, Path(__file__).resolve().parents[3] / own.file)
    assert as_text(again) == SOURCES[name].with_suffix(".csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SOURCES)
def test_active_counts_and_heads_of_packaged_rows_follow_from_their_shapes(name: str) -> None:
    path = SOURCES[name].with_suffix(".csv")
    if not path.is_file():
        return
    header, *rows = (line.split(",") for line in path.read_text(encoding="utf-8").splitlines())
    columns = {key: np.array(values, float) for key, values in zip(header, zip(*rows, strict=True), strict=True)}
    total, active = columns["parameters"], columns["active_parameters"]
    assert np.all(active <= total)
    if {"n_experts", "top_k"} <= set(columns):
        assert np.all((active < 0.999 * total) == (columns["top_k"] < columns["n_experts"]))
    for key in {"query_dim", "kv_dim"} & set(columns) if "head_dim" in columns else ():
        assert not np.any(columns[key] % columns["head_dim"])


@pytest.mark.parametrize("name", READ_FROM)
def test_packaged_rows_follow_from_the_published_file(name: str, external_data: Path) -> None:
    known = EvidenceSource.model_validate(yaml.safe_load(SOURCES[name].read_text(encoding="utf-8")))
    found = converted(known, external_data / READ_FROM[name])
    if known.packaged:
        assert as_text(found) == SOURCES[name].with_suffix(".csv").read_text(encoding="utf-8")
    assert found.off in (None, 0)


def test_models_on_repeated_data_are_counted_without_embeddings(tmp_path: Path) -> None:
    source = EvidenceSource.model_validate(yaml.safe_load(SOURCES["repeated"].read_text()))
    path = tmp_path / "together.csv"
    path.write_text(
        "params,d_model,kv_size,n_heads,n_layers,unique_tokens,tokens,loss\n"
        "19703712,288,32,7,5,400000000,400000000,6.1\n201236224,896,64,14,16,1500000000,1500000000,3.93\n"
    )
    counts = converted(source, path).columns["parameters"]
    published, width = np.array([19_703_712, 201_236_224]), np.array([288, 896])
    assert counts.tolist() == (published - (50_304 + 2_048) * width).tolist()
    packaged = np.genfromtxt(SOURCES["repeated"].with_suffix(".csv"), delimiter=",", names=True)["parameters"]
    assert set(counts.tolist()) < set(packaged.tolist())
