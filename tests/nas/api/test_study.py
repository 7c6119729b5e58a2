"""Studies and frontiers from Python: what the commands answer, as tables."""

import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.optimize import minimize

import nas
from nas.answer import outcome
from nas.record.store import FILE
from search_spaces import columns

KEYS: dict[str, Any] = {"default_budget": "none", "baselines": [], "applications": {}}


@pytest.fixture
def small(tiny: dict[str, Any]) -> nas.Study:
    """The tiny space within a budget."""
    return nas.load_study(preset="paper", space=tiny, budgets={"total_ms": 30}, **KEYS)


def test_presets_and_keys_apply_as_on_the_command_line(inside: Any, tmp_path: Path) -> None:
    keys = {
        "device": "jetson_orin_nano_super_8gb",
        "preset": "device",
        "precision": "int8",
        "budgets": {"decode_ms": 150},
    }
    study = nas.load_study(algo="random", evaluations=60, **keys)
    found = study.search(out=tmp_path / "python")
    flags = ("--device", keys["device"], "--preset", "device", "--precision", "int8", "--budget", "decode_ms=150")
    inside("run", "--algo", "random", "--evaluations", "60", *flags, "--out", str(tmp_path / "shell"), "--quiet")
    for name in ("evaluations.csv", "frontier.csv", "config.yaml"):
        assert (tmp_path / "python" / name).read_bytes() == (tmp_path / "shell" / name).read_bytes(), name
    assert found.folder == tmp_path / "python"
    table = pd.read_csv(tmp_path / "shell" / "frontier.csv", float_precision="round_trip")
    assert found.frame.to_numpy().tolist() == table[found.frame.columns].to_numpy().tolist()


def test_an_exact_frontier_picks_of_the_whole_space(small: nas.Study) -> None:
    frontier = small.solve()
    everything = small.sample(10**6)
    assert (len(everything), frontier.exact) == (162, True)
    inside_ = everything[everything.feasible]
    best = inside_[inside_.decode_ms <= 5].sort_values(["loss", "decode_ms"]).iloc[0]
    picked = frontier.pick("decode_ms<=5")
    assert picked["loss"] == best["loss"]
    assert picked["depth"] == best["depth"]
    assert isinstance(picked["depth"], int)
    assert frontier.pick()["loss"] == inside_.loss.min() == frontier.frame.loss.min()
    assert frontier.select("best")["loss"].tolist() == [inside_.loss.min()]
    assert frontier.select("budget:decode_ms=5")["loss"].tolist() == [best["loss"]]
    assert len(frontier.select("diverse:3")) == 3
    with pytest.raises(nas.InfeasibleError, match="within total_ms <= 30, decode_ms <= 1e-05, got none"):
        frontier.pick("decode_ms<=0.00001")
    with pytest.raises(nas.UsageError, match="budget: expected a metric"):
        frontier.pick("haste<=3")


def test_a_search_is_measured_by_the_exact_frontier(small: nas.Study) -> None:
    exact, found = small.solve(), small.search(algo="random", evaluations=60, seed=3)
    apart = found.distance_to(exact)
    assert not found.exact
    assert 0 < apart.share < 1
    assert apart.gap > 0
    assert found.evaluated is not None
    assert found.pick()["loss"] == found.evaluated.metrics["loss"][found.evaluated.feasible].min()
    assert small.search(algo="exact").distance_to(exact).share == 1
    assert small.search(algo="random", evaluations=60, seed=3).frame.equals(found.frame)


def test_a_search_solves_and_answers_only_what_is_asked_for(
    small: nas.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = small.search(algo="random", evaluations=60, seed=3, out=tmp_path / "run")
    solved: list[object] = []
    monkeypatch.setattr(outcome, "quick_frontier", lambda problem: solved.append(problem))
    found = small.search(algo="random", evaluations=60, seed=3)
    assert not solved
    assert pickle.loads(pickle.dumps(found)).answer == kept.answer != ""
    assert (found.how, found.exact, len(found)) == (kept.how, kept.exact, len(kept))


def test_typing_errors_are_not_looked_for_in_tables_that_ask_wrote(
    small: nas.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    optimizer, looked = small.optimizer("random", seed=1, evaluations=20), list[str]()
    small.evaluate(optimizer.ask(1))
    optimizer = small.optimizer("random", seed=2, evaluations=20)
    monkeypatch.setattr(columns, "get_close_matches", lambda word, *_, **__: looked.append(word))
    for _ in range(3):
        optimizer.tell(designs := optimizer.ask(1), small.evaluate(designs))
    assert not looked


def test_any_architectures_are_evaluated_with_units(small: nas.Study, tmp_path: Path) -> None:
    row = {"depth": 8, "width": 1024, "n_kv_heads": 2, "expert_ffn_ratio": 2}
    table = small.evaluate(row)
    assert table.attrs["units"]["total_ms"] == "ms"
    assert table[["reason", "feasible"]].to_numpy().tolist() == [["", bool(table.total_ms[0] <= 30)]]
    path = tmp_path / "frontier.csv"
    small.solve().save(path)
    for given in ([row, row], pd.DataFrame([row, row]), {name: [value] * 2 for name, value in row.items()}):
        assert small.evaluate(given).loss.tolist() == table.loss.tolist() * 2
    assert small.evaluate(path).loss.tolist() == small.solve().frame.loss.tolist()
    with pytest.raises(nas.UsageError, match="n_kv_heads: expected a divisor of n_heads 16, got 3"):
        small.evaluate({**row, "n_kv_heads": 3})
    with pytest.raises(nas.UsageError, match="expected a row or more"):
        small.evaluate([])


def test_a_metric_of_ones_own_may_take_the_scenario(tiny: dict[str, Any]) -> None:
    def heat(architectures: Any, scenario: Any) -> Any:
        return architectures.depth * scenario.device.memory_gb

    heat.UNIT = "K"  # type: ignore[attr-defined]
    heat.__qualname__, heat.__module__ = "heat", __name__
    module = sys.modules.setdefault(__name__, type(sys)(__name__))
    module.heat = heat  # type: ignore[attr-defined]
    study = nas.load_study(space=tiny, objectives=["loss", heat], **KEYS)
    table = study.sample(20)
    assert study.units[f"{__name__}:heat"] == "K"
    assert table[f"{__name__}:heat"].tolist() == (64.0 * table.depth).tolist()


def format_and_device(architectures: Any, scenario: Any) -> Any:
    """A metric of where designs run."""
    assert not scenario.formats
    return np.full(len(architectures), 100.0 * scenario.precision.weight_bytes + len(scenario.device.name))


@pytest.mark.parametrize(
    "several", [{"precisions": "int4,fp16"}, {"devices": ["l4", "jetson_agx_orin_64gb"], "precisions": "int4,fp16"}]
)
def test_a_metric_gets_the_scenario_of_each_design(several: dict[str, Any], tiny: dict[str, Any]) -> None:
    keys: Any = {"preset": "device", "space": tiny, "baselines": [], "applications": {}, **several}
    study = nas.load_study(objectives=["loss", format_and_device], **keys)
    found = study.sample(60)
    for row, value in zip(found.to_dict("records"), found[f"{__name__}:format_and_device"], strict=True):
        own = study.problem.scenario.on_device(row.get("device", "")).at(row["precision"])
        assert value == 100.0 * own.precision.weight_bytes + len(own.device.name)
    assert found[f"{__name__}:format_and_device"].nunique() == 2 * len(several.get("devices", [0]))


def test_one_architecture_is_explained(small: nas.Study) -> None:
    member = small.solve().frame.iloc[[0]]
    explanation = small.explain(member)
    assert explanation.metrics["loss"] == member.loss.iloc[0]
    assert explanation.steps
    with pytest.raises(nas.UsageError, match="expected one architecture, got 2"):
        small.explain([member.iloc[0].to_dict()] * 2)


def test_an_unknown_key_is_answered_with_the_one_that_is_meant() -> None:
    for key, said in (
        ("speculation", r"did you mean serving\.speculation\?"),
        ("qqqqq", "known are what 'plas list --schema study' names"),
    ):
        with pytest.raises(nas.UsageError, match=f"{key}: unknown key; .*{said}"):
            nas.load_study(**{key: 1})  # type: ignore[arg-type]


def test_a_fault_names_the_key(tiny: dict[str, Any]) -> None:
    with pytest.raises(nas.UsageError) as caught:
        nas.load_study(space=tiny, precision="fp17", devise="x")
    assert sorted(line.split(":")[0] for line in str(caught.value).splitlines()) == ["devise", "precision"]


def test_pymoo_minimises_it(small: nas.Study) -> None:
    problem = small.as_pymoo()
    result = minimize(problem, NSGA2(pop_size=20), ("n_gen", 8), seed=1)
    losses = small.solve().frame.loss
    assert result.F[:, 0].min() >= losses.min()
    assert (result.G <= 0).all()
    genotypes = small.problem.space.repair(np.rint(np.atleast_2d(result.X)).astype(np.int64))
    assert np.array_equal(small.problem.evaluate(genotypes).values, result.F)


def test_optuna_minimises_it(small: nas.Study) -> None:
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    objective = small.as_optuna_objective()
    study = optuna.create_study(
        directions=objective.directions, sampler=optuna.samplers.NSGAIISampler(seed=0, population_size=10)
    )
    study.optimize(objective, n_trials=30)
    assert study.best_trials
    for trial in study.best_trials:
        assert trial.values[1] <= 30
        assert set(trial.params) == {f"gene_{name}" for name in small.problem.space.genes}
        row = small.problem.space.repair(np.array([[trial.params[name] for name in trial.params]]))
        assert small.problem.evaluate(row).values[0].tolist() == trial.values


@pytest.mark.slow
def test_designs_come_back_from_every_tool_in_the_same_columns(small: nas.Study, tmp_path: Path) -> None:
    """pymoo's individuals, Optuna's trials and rows of genes are designs again; a storage of trials is known results."""
    problem, exact = small.as_pymoo(), small.solve()
    assert problem.pareto_front().tolist() == exact.members.values.tolist()
    assert problem.architectures(problem.pareto_set()).equals(
        exact.frame[list(problem.architectures(problem.pareto_set()))]
    )
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    objective = small.as_optuna_objective()
    storage = f"sqlite:///{tmp_path}/trials.db"
    study = optuna.create_study(
        directions=objective.directions, storage=storage, sampler=optuna.samplers.RandomSampler(seed=0)
    )
    study.optimize(objective, n_trials=12)
    table = small.evaluate(objective.architectures(study.trials))
    assert table[["loss", "total_ms"]].to_numpy().tolist() == [trial.values for trial in study.trials]
    assert [trial.user_attrs["depth"] for trial in study.trials] == table.depth.tolist()
    assert small.evaluate(pd.DataFrame([trial.params for trial in study.trials])).equals(table)
    found = small.search(algo="random", evaluations=20, known=f"{tmp_path}/trials.db")
    assert found.evaluated is not None
    assert len(found.evaluated) == 20 + len(table.drop_duplicates())


def rough(architectures: Any) -> Any:
    """Fails for half of the designs, and is large where it does not."""
    return np.where(architectures.depth > 8, np.nan, 1e18 * architectures.width)


def test_what_failed_is_infinite_and_breaks_a_constraint_in_pymoo(tiny: dict[str, Any]) -> None:
    study = nas.load_study(space=tiny, objectives=["loss", rough], **KEYS)
    problem = study.as_pymoo()
    everything = study.problem.space.genotypes(np.arange(study.problem.space.size))
    out = problem.evaluate(everything.astype(float), return_as_dictionary=True)
    failed = study.problem.architectures(everything).depth > 8
    assert np.isposinf(out["F"][failed]).all()
    assert (out["G"][failed] > 0).all()
    assert (out["G"][~failed] <= 0).all()
    result = minimize(problem, NSGA2(pop_size=20), ("n_gen", 5), seed=1)
    assert (problem.architectures(result.X).depth <= 8).all()


@pytest.mark.slow
def test_every_public_object_pickles_and_has_a_short_repr(small: nas.Study, tmp_path: Path) -> None:
    found, exact = small.search(algo="random", evaluations=40, out=tmp_path / "run"), small.solve()
    problem, run = small.problem, nas.read_run(tmp_path / "run")
    rows = nas.load_study().sample(40, seed=7)
    fitted = nas.fit_law(rows, tokens=10e9, bootstraps=5)
    designs = problem.architectures(exact.members.genotypes)
    parts = [problem, problem.space, problem.space.specification, problem.scenario, problem.scenario.law]
    parts += [problem.scenario.device, problem.assess(designs), designs, exact.members, exact.distance_to(exact)]
    whole = [small, found, exact, run, fitted, small.as_pymoo(), small.as_optuna_objective()]
    whole += [small.optimizer("nsga2"), small.explain(exact.frame.iloc[[0]]), exact.pick(), run.pick(), small.assembled]
    for each in (*parts, *whole):
        assert len(repr(each)) < 500, type(each)
        copy = pickle.loads(pickle.dumps(each))
        assert repr(copy) == repr(each), type(each)
    assert pickle.loads(pickle.dumps(exact)).answer == exact.answer
    assert pickle.loads(pickle.dumps(found)).pick().equals(found.pick())
    assert pickle.loads(pickle.dumps(small)).solve().frame.equals(exact.frame)


@pytest.mark.slow
def test_a_search_is_followed_and_resumed(small: nas.Study, tmp_path: Path) -> None:
    tables: list[pd.DataFrame] = []
    keys: Any = {"algo": "random", "params": {"batch": 10}, "seed": 1, "callback": tables.append}
    whole = small.search(**keys, evaluations=40)
    assert pd.concat(tables).loss.tolist() == whole.evaluated.metrics["loss"].tolist()  # type: ignore[union-attr]
    assert [len(table) for table in tables] == [10] * 4
    small.search(**keys, evaluations=20, out=tmp_path / "run")
    longer = small.search(**keys, evaluations=40, out=tmp_path / "run", resume=True)
    assert longer.frame.equals(whole.frame)
    with pytest.raises(nas.UsageError, match=r"resume: .*seed: 1 in the run, 2 now"):
        small.search(**{**keys, "seed": 2}, evaluations=40, out=tmp_path / "run", resume=True)
    with pytest.raises(nas.UsageError, match="resume: expected out"):
        small.search(**keys, resume=True)


def test_what_an_exception_ended_is_kept_where_the_message_says(small: nas.Study) -> None:
    def stop(table: pd.DataFrame) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="10 evaluations, all kept") as caught:
        small.search(algo="random", params={"batch": 10}, callback=stop)
    assert "plas" not in str(caught.value).partition("out=")[0]
    folder = Path(str(caught.value).rpartition("out='")[2].partition("', resume=True)")[0])
    try:
        assert len(nas.read_run(folder).evaluations) == 10
    finally:
        shutil.rmtree(folder.parent)


def test_picks_are_the_least_of_the_first_objective_where_the_loss_is_none(
    tiny: dict[str, Any], tmp_path: Path
) -> None:
    study = nas.load_study(space=tiny, objectives=["tpot_ms", "memory_gb"], **KEYS)
    exact, everything = study.solve(), study.sample(10**6)
    assert exact.pick().tpot_ms == exact.select("best").tpot_ms.iloc[0] == everything.tpot_ms.min()
    assert "computed for the loss alone" in exact.answer
    assert re.match(r"Train [^:]*: tpot [\d.]+ ms, loss", exact.answer), exact.answer
    found = study.search(algo="random", evaluations=50, out=tmp_path / "run")
    best = found.evaluated.metrics["tpot_ms"].min()  # type: ignore[union-attr]
    run = nas.read_run(tmp_path / "run")
    assert {found.pick().tpot_ms, run.pick().tpot_ms, run.select("best").tpot_ms.iloc[0], run.picks.tpot_ms[0]} == {
        best
    }


@pytest.mark.slow
def test_a_run_folder_is_read(small: nas.Study, tmp_path: Path) -> None:
    found = small.search(algo="random", evaluations=40, out=tmp_path / "run")
    run = nas.read_run(tmp_path / "run")
    assert (tmp_path / "run" / FILE).exists()
    assert run.frontier.loss.tolist() == found.frame.loss.tolist()
    assert len(run.evaluations) == 40
    assert (set(run.evaluations.state), set(run.evaluations.reason)) == ({"ok"}, {""})
    assert run.select("best").loss.tolist() == [found.pick()["loss"]]
    assert nas.load_study(run.folder).problem.space.size == 162
    assert "40 of 162" in repr(run)
    assert "<table" in run._repr_html_()
    assert "(ms)" in found._repr_html_()


@pytest.mark.slow
@pytest.mark.parametrize("source", ["exact", "search", "run"])
def test_a_pick_is_shown_with_its_units_in_a_notebook(source: str, small: nas.Study, tmp_path: Path) -> None:
    if source == "run":
        small.search(algo="random", evaluations=40, out=tmp_path / "run")
    made: Any = {"exact": small.solve, "search": lambda: small.search(algo="random", evaluations=40)}
    best = (made[source]() if source in made else nas.read_run(tmp_path / "run")).pick()
    assert (best.attrs["units"]["total_ms"], best.attrs["units"]["memory_gb"]) == ("ms", "GB")
    rows = re.findall(r"<td>(\w+)</td>\s*<td>([^<]*)</td>\s*<td>([^<]*)</td>", best._repr_html_())
    assert ("total_ms", f"{best.total_ms:.6g}", "ms") in rows
    assert isinstance(best, pd.Series)
    assert type(best[["loss", "total_ms"]]) is pd.Series


@pytest.mark.slow
def test_a_pick_is_printed_with_its_units_and_all_others_in_a_line(small: nas.Study, tmp_path: Path) -> None:
    frontier = small.search(algo="random", evaluations=40, out=tmp_path / "run")
    best = frontier.pick()
    lines = [line.split() for line in str(best).splitlines()]
    assert ["loss", f"{best.loss:.6g}", "nats"] in lines
    assert ["total_ms", f"{best.total_ms:.6g}", "ms"] in lines
    assert ["depth", str(best.depth)] in lines
    for each in (small, frontier, small.solve(), nas.read_run(tmp_path / "run")):
        assert "\n" not in repr(each)


def test_differences_from_published_models_have_units(tiny: dict[str, Any]) -> None:
    best = (
        nas.load_study(space=tiny, preset="device", budgets={"total_ms": 500}, baselines="qwen2.5_0.5b").solve().pick()
    )
    own = [name for name in best.index if "Qwen" in name]
    assert {name: best.attrs["units"][name] for name in own} == {
        name: "probability" if name.startswith("better") else "nats" for name in own
    }
    assert len(own) == 4


def test_a_study_is_shown_without_groups_of_keys_that_were_left_as_they_are(small: nas.Study) -> None:
    assert "<td>serving</td>" not in small._repr_html_()
    assert "<td>serving</td>" in small.replace(serving={"speculation": "mtp:1"})._repr_html_()


@pytest.mark.slow
def test_a_frontier_and_a_run_are_shown_with_answer_and_units(small: nas.Study, tmp_path: Path) -> None:
    frontier = small.search(algo="random", evaluations=40, out=tmp_path / "run")
    for each in (frontier, nas.read_run(tmp_path / "run"), small.solve()):
        shown = each._repr_html_()
        assert shown.startswith("<p>Train ")
        assert "<th>total_ms (ms)</th>" in shown
        assert len(shown) < 60_000
    (tmp_path / "run" / "summary.json").unlink()
    assert nas.read_run(tmp_path / "run")._repr_html_().startswith("<p>Run ")


SCRIPT = """import nas
from nas.commands import run


def energy_j(architectures, scenario):
    return architectures.depth * 0.5


if __name__ == "__main__":
    run.draw = lambda *_: None  # nobody looks at the pictures
    study = nas.load_study(objectives=["loss", energy_j], algo="random", evaluations=20)
    print(study.search(out="run", **({"workers": 2} if WORKERS else {})).frame.columns[-1])
"""


@pytest.mark.parametrize("workers", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_function_of_a_script_goes_by_the_name_of_its_file(
    workers: bool, tmp_path: Path, inside: Callable[..., Any]
) -> None:
    (tmp_path / "own_script.py").write_text(SCRIPT.replace("WORKERS", str(workers)))
    done = subprocess.run([sys.executable, "own_script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout == "own_script:energy_j\n", done.stderr
    objectives = ("--objectives", "loss,own_script:energy_j")  # a name of a file alone imports nothing
    resumed = inside("run", "--resume", "run", "--evaluations", 30, "--quiet", "--no-plots", *objectives)
    assert (resumed.code, resumed.err) == (0, "")


def test_the_package_is_quick_to_import_and_says_what_it_holds() -> None:
    code = "import sys, nas; print(sorted(nas.PUBLIC) == dir(nas) == sorted(nas.__all__), 'numpy' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["True", "False"]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        nas.nothing  # noqa: B018


def test_a_law_that_is_mute_on_a_design_leaves_its_times_and_bytes() -> None:
    designs = {
        "depth": [24, 24],
        "width": 896,
        "n_kv_heads": 2,
        "expert_size": 1024,
        "n_experts": [1, 8],
        "top_k": [1, 2],
    }
    mute = nas.load_study(law="routed").evaluate(designs)
    spoken = nas.load_study().evaluate(designs)
    assert np.isnan(mute.loss[1])
    assert np.isnan(mute.perplexity[1])
    assert "prices designs of top_k 1 alone" in mute.reason[1]
    assert not mute.feasible[1]
    for name in ("prefill_ms", "decode_ms", "total_ms", "memory_gb", "resident_gb", "params_total", "params_active"):
        assert mute[name].tolist() == spoken[name].tolist()


@pytest.mark.slow
def test_a_pick_at_a_quantile_that_the_study_did_not_ask_for(tiny: dict[str, Any], tmp_path: Path) -> None:
    """Of an exact frontier, of a search and of its run: the lowest loss whose own upper end is within the limit."""
    study = nas.load_study(space=tiny, preset="device", precision="int4", algo="random", evaluations=80, **KEYS)
    whole = nas.load_study(space=tiny, preset="device", precision="int4", columns=["total_ms@q80"], **KEYS).sample(
        10**6
    )
    whole = whole[whole.feasible]
    limit = float(whole["total_ms@q80"].median())
    within = whole[whole["total_ms@q80"] <= limit]
    assert 0 < len(within) < len(whole)
    picked = study.solve().pick({"total_ms@q80": limit})
    assert picked["loss"] == within.loss.min()
    assert picked["total_ms@q80"] <= limit
    found = study.search(out=tmp_path / "run")
    of_search = found.pick(f"total_ms@q80<={limit!r}")
    of_run = nas.read_run(tmp_path / "run").pick(f"total_ms@q80<={limit!r}")
    assert of_search["loss"] == of_run["loss"] >= picked["loss"]
    assert len(found.select(f"budget:total_ms@q80={limit!r}")) == 1
    assert len(nas.read_run(tmp_path / "run").select(f"budget:total_ms@q80={limit!r}")) == 1
