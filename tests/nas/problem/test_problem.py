"""The problem: batches, budgets, and a user's own metrics that fail in every way."""

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.errors import UsageError
from nas.problem.objective import Budget, Objective
from nas.problem.problem import METRIC_ORDER, REPAID, Problem, call_user_metric, is_mute
from objectives.plugins import importable
from search_spaces.architectures import Architectures

Made = Callable[..., Problem]
ALL = np.arange(162)


def test_every_metric_is_computed_in_file_order(problem_of: Made, user_module: Callable[[str], str]) -> None:
    name = user_module("def fn(a):\n    return a.depth\n")
    problem = problem_of(objectives=[f"{name}:fn", "loss"])
    assert problem.metric_names == (*METRIC_ORDER, f"{name}:fn")
    assert set(METRIC_ORDER) <= set(importable("objectives.metrics"))
    found = problem.evaluate(problem.space.genotypes(ALL))
    assert tuple(found.metrics) == problem.metric_names
    assert found.objectives == (f"{name}:fn", "loss")


@pytest.mark.parametrize(
    "study",
    [{"law": "chinchilla_epoch"}, {"precision": "int4", "precision_law": "qat"}, {"precision_law": "qat"}, {}],
    ids=str,
)
def test_a_law_is_mute_on_the_designs_that_it_leaves_without_a_loss(study: dict[str, Any], problem_of: Made) -> None:
    problem = problem_of(**study)
    found = problem.evaluate(problem.space.genotypes(ALL))
    mute = [is_mute(problem, genotype) for genotype in found.genotypes]
    assert mute == (~found.ok).tolist()
    assert any(mute) == (study.get("law") is not None)


@given(st.permutations(range(162)), st.integers(0, 162))
def test_permuted_and_split_batches_give_the_same_bits(problem_of: Made, order: list[int], cut: int) -> None:
    problem = problem_of(budgets={"decode_ms": 5})
    genotypes = problem.space.genotypes(ALL)
    before = genotypes.copy()
    whole = problem.evaluate(genotypes)
    parts = [problem.evaluate(genotypes[order][:cut]), problem.evaluate(genotypes[order][cut:])]
    for name, column in whole.metrics.items():
        assert np.concatenate([part.metrics[name] for part in parts]).tobytes() == column[order].tobytes(), name
    assert (np.concatenate([part.violations for part in parts]) == whole.violations[order]).all()
    assert (genotypes == before).all()


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6))
def test_a_violation_is_the_value_over_its_limit_less_one(value: float, limit: float) -> None:
    (violation,) = Budget("total_ms", limit).violation(np.array([value])).tolist()
    assert violation == value / limit - 1
    assert (violation <= 0) == (value <= limit) or math.isclose(value, limit, rel_tol=1e-15)


def test_a_value_at_its_limit_is_feasible(problem_of: Made) -> None:
    free = problem_of(default_budget="none")
    times = free.evaluate(free.space.genotypes(ALL)).metrics["total_ms"]
    for limit in np.sort(times)[[0, 50, 161]].tolist():
        found = problem_of(default_budget="none", budgets={"total_ms": limit})
        assert found.evaluate(found.space.genotypes(ALL)).feasible.sum() == (times <= limit).sum()


def with_function(
    problem_of: Made, user_module: Callable[[str], str], body: str, **study: object
) -> tuple[Problem, str]:
    """A problem with a user's metric; its name."""
    name = user_module(f"import numpy as np\nUNIT = 'never read'\ndef fn(a):\n    {body}\n") + ":fn"
    return problem_of(objectives=["loss", name], **study), name


@pytest.mark.parametrize(
    ("body", "failed", "reason"),
    [
        ("return np.where(a.depth == 8, np.nan, 1.0)", 54, "nan"),
        ("return np.where(a.depth == 8, -np.inf, 1.0)", 54, "-inf"),
        (
            "if (a.depth == 8).any():\n        raise KeyError('no such depth')\n    return a.depth",
            54,
            "KeyError: 'no such depth'",
        ),
        ("raise RuntimeError('first line\\nsecond')", 162, "RuntimeError: first line second"),
        ("1 / 0", 162, "ZeroDivisionError: division by zero"),
        ("assert False", 162, "AssertionError: "),
        ("raise RuntimeError('x' * 1000)", 162, "RuntimeError: " + "x" * 200),
    ],
)
def test_failures_are_rows_with_a_reason_of_one_line(
    body: str, failed: int, reason: str, problem_of: Made, user_module: Callable[[str], str]
) -> None:
    problem, name = with_function(problem_of, user_module, body)
    found = problem.evaluate(problem.space.genotypes(ALL))
    assert found.reasons is not None
    assert (~found.ok).sum() == failed
    assert {r for r in found.reasons if r} == {f"{name}: {reason}"}
    failed = {metric: np.isnan(column) for metric, column in found.metrics.items()}
    assert (failed.pop(name) == ~found.ok).all()
    assert not any(column.any() for column in failed.values())  # formulas
    assert np.isnan(found.values[~found.ok]).all()
    assert not found.feasible[~found.ok].any()


@pytest.mark.parametrize(
    "body",
    [
        "return 5",
        "return a.depth[:-1]",
        "return np.ones((len(a), 1))",
        "return None",
        "return 'fast'",
        "return [object()] * len(a)",
        "return {}",
        "pass",
        "return a",
    ],
)
def test_a_wrong_shape_or_type_stops_the_run_with_what_was_expected(
    body: str, problem_of: Made, user_module: Callable[[str], str]
) -> None:
    problem, name = with_function(problem_of, user_module, body)
    with pytest.raises(UsageError, match=rf"^{name}: expected .*shape \((162|n),\)"):
        problem.evaluate(problem.space.genotypes(ALL))


@pytest.mark.parametrize(
    "body",
    [
        "return a.depth",
        "return a.depth.tolist()",
        "return a.depth.astype(np.float32)",
        "return [float(d) for d in a.depth]",
        "return a.n_experts == 1",
    ],
)
def test_any_numbers_of_the_right_shape_are_taken(
    body: str, problem_of: Made, user_module: Callable[[str], str]
) -> None:
    problem, name = with_function(problem_of, user_module, body)
    found = problem.evaluate(problem.space.genotypes(ALL))
    assert found.metrics[name].dtype == np.float64
    assert found.reasons is None


def test_a_function_that_changes_its_input_fails_and_changes_nothing(
    problem_of: Made, user_module: Callable[[str], str]
) -> None:
    problem, _name = with_function(problem_of, user_module, "a.depth[:] = 1\n    return a.depth")
    found = problem.evaluate(problem.space.genotypes(ALL))
    assert found.reasons is not None
    assert all("read-only" in reason for reason in found.reasons)


def test_attributes_of_the_function_declare_unit_and_scale(problem_of: Made, user_module: Callable[[str], str]) -> None:
    name = user_module(
        "def fast(a):\n    return a.depth\nfast.LOG_SCALE = True\nfast.UNIT = 'ms'\ndef plain(a):\n    return a.width\n"
    )
    problem = problem_of(objectives=[f"{name}:fast", f"{name}:plain"], budgets={f"{name}:fast": "0.006 s"})
    assert [(o.log_scale, o.unit) for o in problem.objectives] == [(True, "ms"), (False, "")]
    assert problem.budgets[-1] == Budget(f"{name}:fast", 6.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nomodule_xyz:fn", "expected an importable module, got ModuleNotFoundError"),
        ("{}:nothing", "expected a function of"),
        ("{}:VALUE", "expected a function of"),
        ("{}:thing", "did you mean think?"),
        ("broken{}:fn", "expected an importable module, got"),
        ("{}:think:x", "expected a metric"),
        ("{}.think", "expected a metric"),
        ("..:fn", "expected a metric"),
    ],
)
def test_names_that_lead_to_no_function_are_refused(
    text: str, said: str, problem_of: Made, user_module: Callable[[str], str]
) -> None:
    name = user_module("VALUE = 5\ndef think(a):\n    return a.depth\n")
    with pytest.raises(UsageError, match=said.replace("?", r"\?")):
        problem_of(objectives=["loss", text.format(name)])


@pytest.mark.parametrize("text", ["raise ValueError('at import')", "def broken(:", "import sys; sys.exit(3)", "1 / 0"])
def test_a_module_that_cannot_be_imported_is_a_usage_error(
    text: str, problem_of: Made, user_module: Callable[[str], str]
) -> None:
    with pytest.raises(UsageError, match="expected an importable module, got"):
        problem_of(objectives=["loss", f"{user_module(text)}:fn"])


def test_functions_see_the_studys_vocabulary(problem_of: Made, user_module: Callable[[str], str]) -> None:
    name = user_module("SEEN = []\ndef fn(a):\n    SEEN.extend(a.vocabulary.tolist())\n    return a.depth\n")
    problem = problem_of(objectives=["loss", f"{name}:fn"], vocabulary=1000)
    problem.evaluate(problem.space.genotypes(ALL[:3]))
    assert importlib.import_module(name).SEEN == [1000] * 3


@pytest.mark.parametrize(
    ("study", "first"),
    [({"space": "fine"}, 0), ({"space": "edge2026", "preset": "device", "precision": "int4"}, 3948 // REPAID)],
)
def test_once_it_repays_the_times_of_mixers_are_at_hand_and_every_metric_keeps_its_bits(
    study: dict[str, str], first: int, problem_of: Made
) -> None:
    problem, plain = problem_of(**study), problem_of(**study)
    for batch in range(first + 3):
        genotypes = problem.space.sample(20, np.random.default_rng(batch))
        priced = problem.priced(genotypes)
        assert (priced.mixer is not None) == (batch >= first)
        expected = plain.evaluate(genotypes, assessment=plain.assess(plain.architectures(genotypes))).metrics
        for name, column in problem.evaluate(genotypes, assessment=priced).metrics.items():
            assert column.tobytes() == expected[name].tobytes(), name


@pytest.mark.parametrize(
    "study",
    [
        {"space": "fine", "latency": "closed_form"},
        {"space": "fine", "vocabulary": 32000, "serving": {"speculation": "mtp:2", "acceptance": 0.7}},
        {"space": "edge2026", "precisions": ["fp16", "int8"]},
        {"space": "fine", "devices": ["jetson_orin_nano_super_8gb", "jetson_agx_orin_64gb"]},
    ],
    ids=["closed form", "drafted", "formats", "devices"],
)
def test_where_a_mixer_does_not_decide_its_time_no_table_is_made(study: dict[str, object], problem_of: Made) -> None:
    problem = problem_of(**study)
    genotypes = problem.space.sample(20, np.random.default_rng(0))
    first = problem.evaluate(genotypes).metrics["total_ms"]
    for _ in range(10):
        assert problem.priced(genotypes).mixer is None
    assert problem.evaluate(genotypes).metrics["total_ms"].tobytes() == first.tobytes()


def test_more_mixers_than_batches_repay_are_not_timed_before(problem_of: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, genotypes = problem_of(space="fine"), problem_of(space="fine").space.sample(5, np.random.default_rng(0))
    monkeypatch.setattr("nas.problem.problem.MIXERS", 200)
    assert [problem.priced(genotypes).mixer for _ in range(3)] == [None] * 3


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (np.array([1.0 + 2.0j]), "expected real numbers of shape (n,), got an array of complex128; return an array of them"),
        ([1j], "expected real numbers of shape (n,), got list"),
        (np.array(["x"]), "got an array of <U1"),
        (None, "expected shape (1,), got ()"),
        (np.ones(3), "expected shape (1,), got (3,); return one value per architecture"),
        ((np.ones(1), np.ones(1)), "got (2, 1); return one value per architecture, or a mapping of arrays and name one"),
    ],
)  # fmt: skip
def test_what_is_no_value_per_architecture_is_refused(returned: Any, said: str) -> None:
    one = Architectures.from_columns({"depth": [4], "width": [256], "n_kv_heads": [1], "expert_size": [512]})
    with pytest.raises(UsageError) as caught:
        call_user_metric(Objective("own:fn", "", False, lambda _: returned), one, None)
    assert said in str(caught.value)


def test_a_penalty_near_the_largest_float_is_a_failure_that_says_so(
    problem_of: Made, user_module: Callable[[str], str]
) -> None:
    name = user_module(
        "import sys\nimport numpy as np\n\ndef fn(a):\n    return np.where(a.depth == 8, sys.float_info.max, 1e98 * a.depth)\n"
    )
    problem = problem_of(objectives=["loss", f"{name}:fn"])
    found = problem.evaluate(problem.space.genotypes(ALL))
    assert found.reasons is not None
    assert (found.ok == (problem.architectures(found.genotypes).depth != 8)).all()
    assert set(found.reasons) == {
        "",
        f"{name}:fn: 1.79769e+308, beyond 1e+100, where squares overflow: taken as a failure",
    }


def test_a_screened_design_names_the_first_limit_that_it_exceeds(
    problem_of: Made, user_module: Callable[[str], str]
) -> None:
    name = user_module("def fn(a):\n    return a.depth\nfn.COST_S = 60.0\n")
    problem = problem_of(objectives=["loss", f"{name}:fn"], budgets={"decode_ms": 20, "params_total": 2e8})
    genotypes = problem.space.genotypes(ALL)
    priced = problem.assess(problem.architectures(genotypes))
    reasons = problem.screened(priced)
    assert reasons is not None
    expected = [
        f"screened: decode_ms {time:.6g} > 20"
        if time > 20
        else f"screened: params_total {size:.6g} > 2e+08"
        if size > 2e8
        else ""
        for time, size in zip(priced["decode_ms"], priced["params_total"], strict=True)
    ]
    assert reasons == expected
    assert {reason.partition(" ")[2].partition(" ")[0] for reason in reasons} == {"", "decode_ms", "params_total"}
