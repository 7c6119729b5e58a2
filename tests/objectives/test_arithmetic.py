"""Formulas: what Python says of random expressions, and that nothing but arithmetic is read."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from objectives.arithmetic import MOST, evaluated, names

NAMES = {"a": np.array([0.5, 2.0, -3.0]), "b": np.array([4.0, 1.25, 0.75]), "c": np.array([1.0, 2.0, 3.0])}
PYTHON: dict[str, Any] = {"ceil": math.ceil, "log2": math.log2, "max": max, "min": min, "sqrt": math.sqrt}

numbers = st.integers(1, 99).map(str) | st.floats(0.01, 99.0).map(lambda x: f"{x:.3f}")
leaves = numbers | st.sampled_from(sorted(NAMES))


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.sampled_from([" ** 2", " ** 3"])).map("".join).map(lambda t: f"({t})"),
        inner.map(lambda x: f"(-{x})"),
        two.map(lambda t: f"max({t[0]}, {t[1]})"),
        two.map(lambda t: f"min({t[0]}, {t[1]}, 7)"),
        inner.map(lambda x: f"ceil({x})"),
    )


expressions = st.recursive(leaves, larger, max_leaves=12)
comparisons = st.tuples(expressions, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), expressions).map(" ".join)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        inner.map(lambda x: f"not ({x})"),
    ),
    max_leaves=4,
)


@pytest.mark.slow
@settings(max_examples=300)
@given(formula=expressions | conditions)
def test_a_formula_is_what_python_says(formula: str) -> None:
    if len(formula) > MOST:
        return
    found = np.broadcast_to(evaluated(formula, NAMES.__getitem__), (3,))
    for i in range(3):
        row = {name: float(column[i]) for name, column in NAMES.items()}
        try:
            expected = float(eval(formula, {"__builtins__": {}}, {**PYTHON, **row}))
        except (ZeroDivisionError, OverflowError, ValueError):
            continue  # Python raises where floating-point numbers are infinite or none
        assert found[i] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [("log2(b) + sqrt(b)", 4.0), ("1 < b < 5", 1.0), ("2 < a < 5", 0.0), ("b // 3", 1.0), ("where(b > 3, a, c)", 0.5)],
)
def test_functions_and_chains(formula: str, expected: float) -> None:
    assert evaluated(formula, NAMES.__getitem__)[0] == expected


@pytest.mark.parametrize(
    "formula",
    [
        "__import__('os').system('true')",
        "a.__class__",
        "(lambda: 1)()",
        "[x for x in (1, 2)]",
        "a[0]",
        "'text'",
        "True",
        "1j",
        "open(a)",
        "max(*a)",
        "max(a, key=b)",
        "f'{a}'",
        "a := 3",
        "a if b else c",
        "a @ b",
        "a & b",
        "a in b",
        "",
        "a +",
        "a; b",
        "-" * 900 + "a",
        "(" * 400 + "a" + ")" * 400,
        "a + " * 400 + "a",
        "sqrt(a, b, c)",
        "max()",
    ],
)
def test_nothing_else_is_read(formula: str) -> None:
    with pytest.raises(ValueError, match="expected "):
        evaluated(formula, NAMES.__getitem__)


def test_a_large_power_is_infinite_at_once() -> None:
    assert evaluated("9 ** 9 ** 9 ** 9", NAMES.__getitem__) == math.inf


def test_names_are_what_a_formula_reads() -> None:
    assert names({"x": "max(a, 2 * b)", "y": "c > 1"}) == {"a", "b", "c"}
