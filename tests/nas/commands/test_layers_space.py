"""A space with layers of several kinds, through the commands as a user types them."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nas
from objectives.plugins import importable

SPACE = """name: tiny_layers
axes:
  depth: [8, 12]
  layers:
    - full
    - {period: [2, 4], local: 256, kv_shared: [0, 4]}
    - {period: 3, conv: 3}
    - {period: 4, linear: deltanet}
  width: [512, 1024]
  n_experts: [1, 8]
  top_k: [1, 2]
  expert_ffn_ratio: [0.5, 1, 2]
  n_kv_heads: [1, 4]
"""
LINE = ("--preset", "paper", "--space", "space.yaml", "--seed", 3, "--verbose")
KINDS = ("n_local", "n_conv", "n_linear")
LIMITS = "Layers of several kinds: at least 2 and one in 6 of full attention"


@pytest.fixture(autouse=True)
def _space(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(SPACE)


def rows(path: str) -> list[dict[str, str]]:
    """A CSV's rows."""
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def text(ran: Any) -> str:
    """What a command printed, whatever its line breaks."""
    return " ".join(f"{ran.out} {ran.err}".split())


def full(row: dict[str, str]) -> int:
    """Layers of full attention of a row."""
    return int(row["depth"]) - sum(int(row.get(name, 0)) for name in KINDS)


@pytest.mark.slow
def test_a_run_is_searched_shown_chosen_and_explained(inside: Callable[..., Any]) -> None:
    ran = inside("run", "--algo", "nsga2", *LINE, "--evaluations", 60, "--out", "run")
    assert ran.code == 0, ran.err
    assert LIMITS in text(ran)
    assert "kv_shared +0.0071" in text(ran)
    assert "recall is not seen" in text(ran)
    found = rows("run/evaluations.csv")
    assert len(found) == 60
    assert {full(row) for row in found} >= {2, 3, 4}
    assert {row["linear_kind"] for row in found} == {"no", "deltanet"}
    assert all(int(row["window"]) == 256 * (int(row["n_local"]) > 0) for row in found)
    assert inside("run", "--resume", "run", "--evaluations", 90, "--quiet").code == 0
    assert [row["index"] for row in rows("run/evaluations.csv")] == [str(i) for i in range(90)]
    assert "n_local" in text(inside("watch", "run", "--once"))
    chosen = inside("select", "run", "--select", "best", "--out", "best.csv")
    assert chosen.code == 0, chosen.err
    explained = inside("explain", "run", "--select", "best")
    assert explained.code == 0, explained.err
    assert "layers " in text(explained)
    assert inside("report", "run").code == 0
    again = inside(
        "run", "--algo", "nsga2", *LINE, "--evaluations", 50, "--set", "seed_from=best.csv", "--out", "again"
    )
    assert again.code == 0, again.err
    best, first = rows("best.csv")[0], rows("again/evaluations.csv")[0]
    assert all(first[name] == best.get(name, "0") for name in (*KINDS, "n_kv_shared", "loss", "total_ms"))


def test_exact_stays_within_lower_limits_on_what_designs_can_do(inside: Callable[..., Any]) -> None:
    fewest = {}
    for limit in (None, "full_layers>=4", "full_layers>=9"):
        out = f"run{len(fewest)}"
        given = () if limit is None else ("--budget", limit)
        ran = inside("run", "--algo", "exact", *LINE, *given, "--set", "deltas=none", "--out", out)
        assert ran.code == 0, ran.err
        fewest[limit] = min(map(full, rows(f"{out}/frontier.csv")))
        assert (LIMITS in text(ran)) == (limit is None)
        assert limit is None or f"at least {limit[-1]} and one in 6 of full attention" in text(ran)
    assert fewest == {None: 2, "full_layers>=4": 4, "full_layers>=9": 12}
    assert {row["depth"] for row in rows("run2/frontier.csv")} == {"12"}
    content = json.loads(Path("run1/summary.json").read_text())
    assert "layers" in content["law_does_not_see"]
    longer = inside(
        "run", "--algo", "exact", *LINE, "--budget", "window>=512", "--set", "deltas=none", "--out", "longer"
    )
    assert "windows of at least 512 tokens" in text(longer)
    assert not any("n_local" in row for row in rows("longer/frontier.csv"))


def test_a_limit_of_ones_own_loosens_no_condition() -> None:
    """A stricter wish for layers of full attention leaves the other default; conditions of the space stay where they are tighter."""
    space = nas.load_study(preset="paper", space="edge2026", budgets={"full_layers": ">=3"}).problem.space
    assert space.specification.conditions.min_full_layers == 3
    assert space.specification.conditions.full_layer_every == 6
    wider = nas.load_study(space="edge2026").problem.space
    assert space.size < wider.size
    least = nas.load_study(preset="paper", space="edge2026", budgets={"full_layers": ">=1"}).problem.space
    assert least.size == wider.size


def test_shared_caches_may_be_left_out(inside: Callable[..., Any]) -> None:
    shared = {}
    for limit in ("kv_shared<=4", "kv_shared<=0"):
        ran = inside("run", "--algo", "exact", *LINE, "--budget", limit, "--out", limit[-1])
        assert ran.code == 0, ran.err
        assert LIMITS in text(ran)
        shared[limit] = {int(row.get("n_kv_shared", 0)) for row in rows(f"{limit[-1]}/frontier.csv")}
        assert ("no shared KV caches" in text(ran)) == (limit == "kv_shared<=0")
    assert 4 in shared["kv_shared<=4"]
    assert shared["kv_shared<=0"] == {0}


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("full_layers>=0", "expected a whole number of at least 1, got 0; no loss law sees the layers' kinds"),
        ("full_layers=4", "expected full_layers>=limit, at least, got full_layers=4"),
        ("full_layers>4", "expected metric>=limit, at least, got 'full_layers>4'; write 'full_layers>=4'"),
        ("kv_shared>=1", "expected kv_shared<=limit, at most, a whole number of layers, got kv_shared=>=1"),
        ("kv_shared<1", "expected metric<=limit, at most, got 'kv_shared<1'"),
        ("full_layers>=13", "expected limits that some layers of tiny_layers meet, got full_layers >= 13"),
    ],
)
def test_limits_that_are_none_are_refused(limit: str, said: str, inside: Callable[..., Any]) -> None:
    refused = inside("run", "--algo", "exact", *LINE, "--budget", limit, "--out", "run")
    assert refused.code == 2
    assert said in text(refused)


def test_what_knows_full_attention_alone_refuses_by_name(inside: Callable[..., Any]) -> None:
    theory = inside("theory", "--space", "space.yaml", "--budget", "decode_ms=20")
    assert theory.code == 2
    assert "theory: expected a space whose layers are all of full attention" in text(theory)
    closed = inside("run", "--algo", "random", *LINE, "--set", "latency=closed_form", "--out", "closed")
    assert closed.code == 2
    assert "latency: expected operator for n_local" in text(closed)
    plain = inside("run", "--algo", "random", "--budget", "full_layers>=4", "--out", "plain")
    assert plain.code == 2
    assert "expected a space with axes.layers, got paper" in text(plain)


def test_many_devices_have_the_same_limits(inside: Callable[..., Any]) -> None:
    given = ("--set", "devices=jetson_agx_orin_64gb,rtx_4090", "--budget", "full_layers>=4", "--out", "study")
    ran = inside("devices", "--space", "space.yaml", *given)
    assert ran.code == 0, ran.err
    assert all(full(row) >= 4 for row in rows("study/frontiers.csv"))


@pytest.mark.slow
@pytest.mark.parametrize("algo", [name for name in importable("nas.strategies") if name not in ("exact", "optuna_gp")])
def test_every_strategy_searches_layers_to_the_same_bytes_again(algo: str, inside: Callable[..., Any]) -> None:
    for out in ("first", "second"):
        ran = inside("run", "--algo", algo, *LINE, "--quiet", "--evaluations", 60, "--out", out)
        if ran.code == 2 and "install" in ran.err:
            pytest.skip(f"{algo}: {ran.err}")
        assert ran.code == 0, ran.err
    assert Path("first/evaluations.csv").read_bytes() == Path("second/evaluations.csv").read_bytes()
    assert len({tuple(row[name] for name in KINDS) for row in rows("first/evaluations.csv")}) > 3


HELD = SPACE.replace("{period: [2, 4], local: 256, kv_shared: [0, 4]}", "{period: [2, 4], local: 256}")


@pytest.mark.slow
def test_what_a_run_finds_is_exported_and_verified(inside: Callable[..., Any], tmp_path: Path) -> None:
    """Every member of a frontier of windows, as Qwen3 or Mellum, its order in README and manifest; shared caches are refused."""
    (tmp_path / "held.yaml").write_text(HELD)
    assert inside("run", "--algo", "exact", "--space", "held.yaml", "--set", "deltas=none", "--out", "run").code == 0
    ran = inside("export", "run", "--out", "out")
    assert ran.code == 0, ran.err
    held = json.loads(Path("out/export.json").read_text())["layer_order"]
    assert held
    page = Path("out/README.md").read_text()
    for row in rows("out/candidates.csv"):
        config = json.loads((Path("out") / row["folder"] / "hf" / "config.json").read_text())
        assert config["model_type"] in ("qwen3", "qwen3_moe", "mellum", "lfm2", "lfm2_moe", "qwen3_next")
        if row["id"] in held:
            assert config["layer_types"].count("full_attention") == full(row)
            assert f"- `{row['folder']}`, {config['architectures'][0]}: {held[row['id']]}." in page
    assert inside("export", "--verify", "out").code == 0
    assert inside("run", "--algo", "exact", *LINE, "--set", "deltas=none", "--out", "shared").code == 0
    refused = inside("export", "shared", "--out", "no")
    assert refused.code == 2
    assert re.search(
        r"norms_per_layer 2, n_kv_shared 0 for the nearest, MellumForCausalLM, got norms_per_layer 4, n_kv_shared 4; "
        r".* more of the [0-9,]+ candidates are refused: [\w-]+, [\w-]+",
        text(refused),
    )
    assert not Path("no").exists()
