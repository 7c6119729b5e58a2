"""What a newcomer types from Python: other forms of the same thing are taken, what cannot be is one sentence, never a traceback."""

import doctest
import inspect
import json
import pydoc
import shutil
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import nas
from nas.api import frontier
from nas.api import own_loops as loops
from nas.api import run_folder as runs
from nas.api import study as studies
from plas_fit import fitted_law as laws

QWEN = {"depth": 24, "width": 896, "n_kv_heads": 2, "expert_size": 4864}
BARE: dict[str, Any] = {"default_budget": "none", "baselines": [], "applications": {}}


@pytest.fixture(scope="session")
def paper() -> nas.Study:
    """The paper's study."""
    return nas.load_study()


@pytest.fixture
def small(tiny: dict[str, Any]) -> nas.Study:
    """The tiny space."""
    return nas.load_study(space=tiny, **BARE)


def depth_squared(architectures: Any) -> Any:
    """A metric of this module."""
    return architectures.depth**2


def test_one_architecture_may_be_given_in_every_form(paper: nas.Study) -> None:
    wanted = paper.evaluate(QWEN)
    for given in (
        [QWEN],
        {name: [value] for name, value in QWEN.items()},
        {**QWEN, "depth": [24]},
        {name: np.int64(value) for name, value in QWEN.items()},
        {name: float(value) for name, value in QWEN.items()},
        pd.DataFrame([QWEN]),
        pd.Series(QWEN),
        [pd.Series(QWEN)],
        (row for row in [QWEN]),
        wanted,
        wanted.iloc[0],
    ):
        pd.testing.assert_frame_equal(paper.evaluate(given), wanted)
    assert len(paper.evaluate([QWEN, {**QWEN, "depth": 12}])) == 2
    model = nas.load_study(preset="device").evaluate("qwen2.5_0.5b")
    assert model.params_total[0] == 494032768  # with its own vocabulary, as published
    assert paper.explain(paper.solve().pick()).metrics["loss"] == paper.solve().frame.loss.min()


WRONG: dict[str, tuple[Any, str]] = {
    "misspelt": ({**QWEN, "n_expert": 8}, "expected names of columns, got 'n_expert'; did you mean n_experts?"),
    "misspelt needed": ({"depths": 1, "width": 896}, "got 'depths'; did you mean depth?"),
    "number": (3, "expected columns by name, got int; give depth, width, n_kv_heads and expert_size"),
    "nothing": (None, "expected columns by name, got NoneType"),
    "array": (np.zeros((3, 6), dtype=int), r"got ndarray; .* study.problem.architectures\(genotypes\)"),
    "numbers": ([1, 2], "expected columns by name, got int"),
    "uneven": ({**QWEN, "depth": [1, 2], "width": [896]}, "expected columns of one length"),
    "empty table": (pd.DataFrame(), "expected a row or more, got none"),
    "empty columns": (pd.DataFrame({"depth": []}), "expected a row or more, got none"),
    "empty": ([], "expected a row or more, got none"),
    "text": ({**QWEN, "depth": "deep"}, "depth: expected a positive integer, got deep"),
    "half": ({**QWEN, "depth": 24.5}, "depth: expected a positive integer, got 24.5"),
    "missing value": ({**QWEN, "depth": None}, "depth: expected a positive integer, got nothing"),
    "other names": (
        {**QWEN, "vocab_size": 49152, "tie_word_embeddings": False, "intermediate_size": 1, "num_key_value_heads": 2},
        r"(?s)'vocab_size'; did you mean vocabulary\?.*did you mean tied\?.*'intermediate_size'.*'num_key_value_heads'",
    ),
    "unknown": (pd.DataFrame([{**QWEN, "banana": 2}]), "got 'banana'; leave it out"),
    "other format": ({**QWEN, "precision": "int4"}, r"precision: expected fp16.*study.replace\(precision='int4'\)"),
    "other device": ({**QWEN, "device": "l4"}, r"device: expected one of this study, got l4"),
    "config of none": ({"model_type": "banana"}, "model_type: expected a family that is read"),
    "no model": ("qwen2.5", "expected a published model .* did you mean"),
    "no file": ("absent.csv", "absent.csv: expected a readable CSV, got No such file or directory"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_architecture_is_said(name: str, paper: nas.Study) -> None:
    given, said = WRONG[name]
    with pytest.raises(nas.UsageError, match=said):
        paper.evaluate(given)


CONFIG = {
    "model_type": "qwen2",
    "hidden_size": 896,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "intermediate_size": 4864,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
}


def test_a_config_is_read_as_what_it_is(paper: nas.Study, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    wanted = paper.evaluate("qwen2.5_0.5b")
    for given in (tmp_path, f"{tmp_path}/config.json", CONFIG, {"config": str(tmp_path)}, [CONFIG]):
        pd.testing.assert_frame_equal(paper.evaluate(given), wanted)
    assert paper.explain(str(tmp_path)).metrics == paper.explain("qwen2.5_0.5b").metrics
    both = paper.evaluate(["qwen2.5_0.5b", QWEN])
    assert both.vocabulary.tolist() == [151936, 0]
    assert both.total_ms[1] == paper.evaluate(QWEN).total_ms[0]
    baselines = nas.load_study(baselines=[CONFIG]).assembled.baselines
    assert [each.label for each in baselines] == ["qwen2"]
    with pytest.raises(nas.UsageError, match=r"baselines.0: .*'vocab_size'; did you mean vocabulary"):
        nas.load_study(baselines=[{**QWEN, "vocab_size": 49152}])


def test_rows_may_give_other_columns_and_columns_that_are_given_count(paper: nas.Study, tmp_path: Path) -> None:
    sparse = {**QWEN, "n_experts": 8, "top_k": 2}
    both = paper.evaluate([QWEN, sparse])
    pd.testing.assert_frame_equal(both, paper.evaluate(pd.DataFrame([QWEN, sparse])))
    assert both.loss.tolist() == [paper.evaluate(QWEN).loss[0], paper.evaluate(sparse).loss[0]]
    device = nas.load_study(preset="device")
    plain, untied = device.evaluate(QWEN), device.evaluate({**QWEN, "tied": False})
    assert untied.vocabulary[0] == plain.vocabulary[0] == device.problem.vocabulary
    assert untied.params_total[0] == plain.params_total[0] + 896 * device.problem.vocabulary
    file = tmp_path / "designs.csv"
    for name, meant in {"n_expert": "n_experts", "vocab_size": "vocabulary", "num_attention_heads": "n_heads"}.items():
        file.write_text(f"depth,width,n_kv_heads,expert_size,{name}\n24,896,2,4864,14\n")
        with pytest.raises(nas.UsageError, match=meant):
            paper.evaluate(file)
    file.write_text("depth,width,n_kv_heads,expert_size,measured\n24,896,2,4864,14\n")
    assert len(paper.evaluate(file)) == 1


def test_keys_are_completed_and_helped_with() -> None:
    for function in (nas.load_study, nas.Study.replace, nas.Study.search, nas.Study.optimizer):
        assert {"device", "budgets", "input_tokens"} <= {*inspect.signature(function).parameters}
    assert "device: Device: id, id@mode, YAML file or mapping" in pydoc.render_doc(nas.load_study)


def test_a_design_broken_down_is_a_table(paper: nas.Study) -> None:
    found = paper.explain(QWEN)
    for phase in ("prefill", "decode"):
        assert found.frame[found.frame.phase == phase].ms.sum() == pytest.approx(found.metrics[f"{phase}_ms"])
    assert repr(found).startswith("Explanation(loss=")
    for text in (str(found), found._repr_html_()):
        assert "total_ms" in text
        assert "qk_matmul" in text


KEYS: dict[str, tuple[dict[str, Any], str]] = {
    "misspelt": ({"devise": "l4"}, "devise: unknown key; did you mean device?"),
    "device": ({"device": "jetson_orin_nano"}, "device: expected a device .* did you mean jetson_orin_nano"),
    "number": ({"device": 3}, "device: expected text, got 3"),
    "lambda": ({"objectives": ["loss", lambda a: a.depth]}, "objectives: expected a function that its module holds"),
    "method": ({"budgets": {QWEN.get: 3}}, "budgets: expected a function that its module holds"),
    "config": ({"config": {"device": "l4"}}, r"config: expected a file, .* give keys as load_study\(\*\*keys\)"),
    "batch": ({"batch": np.array([1, 2])}, "batch: expected an integer"),
}


@pytest.mark.parametrize("name", KEYS)
def test_what_is_no_key_is_said(name: str) -> None:
    keys, said = KEYS[name]
    with pytest.raises(nas.UsageError, match=said):
        nas.load_study(**keys)


def test_keys_may_be_numpys_and_functions_anywhere(tiny: dict[str, Any]) -> None:
    study = nas.load_study(
        preset="paper", space=tiny, batch=np.int64(2), budgets={depth_squared: np.float64(100)}, **BARE
    )
    assert study.problem.scenario.batch == 2
    name = f"{__name__}:depth_squared"
    assert study.sample(200).query("feasible").eval(f"`{name}`").max() <= 100
    assert "<th>key</th>" in study._repr_html_()
    assert "tiny" in study._repr_html_()


def test_budgets_of_a_pick_are_texts_or_mappings(small: nas.Study) -> None:
    found = small.solve()
    wanted = found.pick("total_ms<=20", "memory_gb<=1")
    pd.testing.assert_series_equal(found.pick({"total_ms": 20, "memory_gb": "1 GB"}), wanted)
    for budget, said in {
        ("total_ms", 3): 'expected "total_ms<=100" or',
        3: 'expected "total_ms<=100" or',
        "totl_ms<=3": "did you mean total_ms?",
        "total_ms>=3": "at most, got total_ms>=3",
        "": "expected metric=limit",
    }.items():
        with pytest.raises(nas.UsageError, match=said):
            found.pick(budget)  # type: ignore[arg-type]
    for how in ("nee", 3, None):
        with pytest.raises(nas.UsageError, match="expected frontier, best, knee"):
            found.select(how)  # type: ignore[arg-type]
    for limits in (["total_ms<=0.001"], ["total_ms<=0.001", "total_ms<=5"], ["total_ms<=60", "total_ms<=0.001"]):
        with pytest.raises(
            nas.InfeasibleError, match=r"within (?!.*total_ms.*total_ms).*total_ms <= 0\.001, got none; raise a limit"
        ):
            found.pick(*limits)
    with pytest.raises(nas.InfeasibleError, match=r"within total_ms <= 0\.001, got none; raise a limit"):
        found.pick({"total_ms": 0.001})


def test_a_distance_is_to_a_frontier_of_the_same_study(small: nas.Study, paper: nas.Study) -> None:
    found, exact = small.search("random", evaluations=30), small.solve()
    evaluated = small.problem.architectures(found.evaluated.genotypes)  # type: ignore[union-attr]
    for own in (evaluated, small.evaluate(evaluated), found.frame):  # designs of any search
        assert exact.distance_to(own) == found.distance_to(exact)
    for other, said in (
        (QWEN, "expected a Frontier, or designs of tiny, got another in row 1"),
        (paper.solve(), r"same problem, got another \(space\.axes\.depth: "),
        (
            small.replace(objectives=["loss", "memory_gb"]).solve(),
            r"another \(objectives\.objectives: \[.loss., .memory_gb.\] there",
        ),
        (small.replace(law="sparsity_iso").solve(), r"another \(law\."),
        (small.replace(device="l4", preset="paper").solve(), r"another \(device\."),
        (
            small.replace(precision="int8", preset="paper").solve(),
            r"another \(scenario\.precision: \"int8\" there, \"fp16\" here",
        ),
        (small.replace(input_tokens=64, preset="paper").solve(), r"another \(scenario\.input_tokens: 64 there"),
        (small.replace(budgets={"total_ms": 30}, preset="paper").solve(), r"another \(budgets\."),
    ):
        with pytest.raises(nas.UsageError, match=said):
            found.distance_to(other)


@pytest.mark.parametrize("keys", [{"n": -1}, {"n": 2.5}, {"n": "3"}, {"n": True}, {"n": 1, "seed": -1}])
def test_a_sample_has_a_whole_number_of_rows(keys: dict[str, Any], small: nas.Study) -> None:
    with pytest.raises(nas.UsageError, match="to be a whole number from 0 on"):
        small.sample(**keys)


def test_a_run_picks_as_the_command_does(finished: Path, tmp_path: Path) -> None:
    run = nas.read_run(finished)
    everything = run.evaluations.query("feasible")
    assert run.pick().loss == everything.loss.min()
    assert run.pick({"decode_ms": 10}).loss == everything.query("decode_ms <= 10").loss.min()
    with pytest.raises(
        nas.InfeasibleError,
        match="expected an evaluated architecture within memory_gb <= 64, total_ms <= 60, decode_ms <= 1e-05",
    ):
        run.pick("decode_ms<=0.00001")
    with pytest.raises(nas.UsageError, match="did you mean decode_ms"):
        run.pick("decode<=3")
    with pytest.raises(nas.UsageError, match="expected frontier, best, knee"):
        run.select("x")


@pytest.mark.slow
def test_an_exact_run_answers_for_its_whole_space_not_its_log(tmp_path: Path) -> None:
    study = nas.load_study(space="fine", evaluations=None)
    study.search(algo="exact", out=tmp_path / "run")
    run = nas.read_run(tmp_path / "run")
    wanted = study.solve().pick("memory_gb<=0.5")
    assert run.pick("memory_gb<=0.5").loss == wanted.loss
    assert run.select("budget:memory_gb=0.5").loss.tolist() == [wanted.loss]
    logged = run.evaluations.query("memory_gb <= 0.5")
    assert logged.empty or logged.loss.min() >= wanted.loss


def test_a_folder_that_is_no_run_is_said(tmp_path: Path, inside: Callable[..., Any], finished: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "comparison.yaml").write_text("algos: [random]\n")
    for place, said in (
        ("absent", "got no folder"),
        (".", "got no evaluations.sqlite in it"),
        ("c", "got a comparison, whose runs lie in its cells"),
    ):
        with pytest.raises(nas.UsageError, match=said):
            nas.read_run(tmp_path / place)
        assert inside("select", tmp_path / place).code == 2
    with pytest.raises(nas.UsageError, match="read_run: expected the path of a run folder, got NoneType"):
        nas.read_run(None)  # type: ignore[arg-type]
    shutil.copytree(finished, tmp_path / "unfinished")
    for name in ("summary.json", "manifest.json", "frontier.csv", "picks.csv", "evaluations.csv"):
        (tmp_path / "unfinished" / name).unlink()
    run = nas.read_run(tmp_path / "unfinished")
    assert len(run.evaluations) == 60
    assert "60 of 162" in repr(run)
    assert "<table" in run._repr_html_()


@pytest.mark.slow
def test_a_law_is_fitted_to_columns_and_rows_as_to_a_table(paper: nas.Study) -> None:
    table = paper.sample(40, seed=1)[["depth", "width", "n_kv_heads", "n_experts", "top_k", "expert_size", "loss"]]
    wanted = nas.fit_law(table, tokens=1e10, bootstraps=0).law
    assert nas.fit_law(table.to_dict("list"), tokens=1e10, bootstraps=0).law == wanted
    assert (
        nas.fit_law(table.to_dict("records"), tokens=1e10, bootstraps=0, where="depth>1").law.coefficients
        == wanted.coefficients
    )
    for runs_, keys, said in (
        (pd.DataFrame(), {}, "runs: expected a row per trained model, got none"),
        ({"depth": [1, 2], "width": [1]}, {}, "runs: expected a CSV, a table, columns or rows"),
        (3, {}, "runs: expected a CSV, a table, columns or rows, got int"),
        (table.drop(columns="loss"), {}, r'^runs: expected a column loss, .*rename=\{"OLD": "loss"\}'),
        (table, {"bootstrap": 3}, "fit_law: expected an option .* did you mean bootstraps?"),
        (table, {"bootstraps": -1}, "bootstraps: expected a whole number from 0 on, got -1"),
        (table, {"seed": "x"}, "seed: expected a whole number"),
        (table, {"form": "chinchila"}, "did you mean chinchilla?"),
        (table, {"form": 3}, "form: expected text, got 3"),
        (table, {"tokens": "many"}, "tokens: expected a number, got 'many'"),
        (table, {"tokens": -1}, "tokens: expected a positive number, got -1"),
        (table, {"where": 3}, "where: expected a list, got 3"),
        (table, {"rename": "a=b"}, "rename: expected a mapping, got 'a=b'"),
        (table, {"fix": ["alpha_m"]}, "fix: expected a mapping, got"),
        (table, {"best_of": 3, "law": 3}, "best_of: expected text, got 3; correct it\nlaw: expected text, got 3"),
        (table, {"config": 3}, "config: expected text, got 3"),
        (table, {"max_params": [3]}, "max_params: expected text, got"),
        (table, {"delta": -1}, "delta: expected auto, none or a positive number"),
    ):
        with pytest.raises(nas.UsageError, match=said):
            nas.fit_law(runs_, **keys)


def test_a_strategy_of_ones_own_is_imported_where_code_names_it(
    small: nas.Study, tmp_path: Path, user_module: Callable[[str], str]
) -> None:
    name = user_module(
        "from nas.strategies.random import *\nfrom nas.strategies.random import TRAITS, Parameters, build\n"
    )
    found = small.search(algo=name, evaluations=20, out=tmp_path / "run")
    assert len(found.evaluated or ()) == 20
    with pytest.raises(nas.UsageError, match=f"named in the call, got {name} in a file alone, .* add algo='{name}'"):
        nas.load_study(tmp_path / "run")
    assert nas.load_study(tmp_path / "run", algo=name).assembled.config.algo == name


@pytest.mark.slow
@pytest.mark.parametrize("module", [studies, frontier, runs, laws, loops], ids=lambda module: module.__name__)
def test_the_examples_of_the_docstrings_hold(
    module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(finished, tmp_path / "run")
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    examples = {one.name: one for one in doctest.DocTestFinder().find(module, extraglobs={"nas": nas})}
    for owner in (each for each in vars(module).values() if getattr(each, "__module__", None) == module.__name__):
        for name, member in vars(owner).items() if isinstance(owner, type) else ():
            if isinstance(member, cached_property):  # found by Python itself from 3.13 on
                full = f"{module.__name__}.{owner.__name__}.{name}"
                examples[full] = parser.get_doctest(member.__doc__ or "", {"nas": nas}, full, None, None)
    for example in examples.values():
        runner.run(example)
    assert runner.failures == 0


def test_every_public_function_says_its_errors_and_has_an_example() -> None:
    documented = [
        nas.load_study,
        nas.read_run,
        nas.fit_law,
        nas.Frontier.pick,
        nas.Frontier.select,
        nas.Frontier.distance_to,
    ]
    documented += [nas.Frontier.save, nas.Study.evaluate, nas.Study.sample, nas.Study.solve, nas.Study.search]
    documented += [nas.Study.explain, nas.Study.replace]
    for function in documented:
        text = function.__doc__ or ""
        assert "Examples:" in text, function
        assert "Raises:" in text, function


@pytest.mark.parametrize("given", [pd.DataFrame({"a": [1, 2]}), np.array([1, 2])])
@pytest.mark.parametrize("key", ["space", "device", "law"])
def test_arrays_and_tables_are_refused_where_names_and_mappings_stand(key: str, given: Any) -> None:
    with pytest.raises(nas.UsageError, match=f"^{key}: expected text, got"):
        nas.load_study(**{key: given})
