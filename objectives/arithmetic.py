"""Formulas over named numbers, as people write them: `256 * ceil(8 * width / 3 / 256)`, `memory >= 4 * channels`.

Of Python's syntax only arithmetic is read, and nothing is executed but the operators and functions named here.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np

from search_spaces.arrays import FloatArray

MOST = 1_000  # characters of a formula
OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
UNARY: dict[type, Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: np.logical_not}
LOGIC: dict[type, Callable[[Any, Any], Any]] = {ast.And: np.logical_and, ast.Or: np.logical_or}
FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "ceil": np.ceil,
        "log2": np.log2,
        "max": lambda *values: reduce(np.maximum, values),
        "min": lambda *values: reduce(np.minimum, values),
        "sqrt": np.sqrt,
        "where": np.where,
    }
)
EXPECTED = f"numbers, names, + - * / // ** > >= < <= == != and, or, not and {', '.join(FUNCTIONS)}"


def evaluated(
    formula: str, column: Callable[[str], FloatArray], functions: Mapping[str, Callable[..., Any]] = FUNCTIONS
) -> FloatArray:
    """Return the formula's value in every row, (n,). `column` returns a column by name. Conditions are 1 if they hold, else 0.

    Numbers are floating-point: what is too large or divided by 0 is infinite or NaN.

    Raises:
        ValueError: no formula, or anything else than EXPECTED.
    """
    tree = parsed(formula)
    with np.errstate(all="ignore"):
        try:
            return np.asarray(_value(tree, column, functions, formula), dtype=np.float64)
        except (TypeError, RecursionError):
            raise ValueError(f"expected as many arguments as a function takes, got {formula!r}; correct it") from None


def parsed(formula: str) -> ast.expr:
    """Return the formula's tree.

    Raises:
        ValueError: it is none, or longer than a formula is.
    """
    try:
        if len(formula) > MOST:
            raise SyntaxError
        return ast.parse(formula.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        shown = formula if len(formula) <= 60 else formula[:57] + "…"
        raise ValueError(f"expected a formula of {EXPECTED}, got {shown!r}; correct it") from None


def names(formulas: Mapping[str, str]) -> set[str]:
    """Return the names that formulas read, without the functions that they call."""
    return {name for formula in formulas.values() for name in names_of(parsed(formula))}


def names_of(tree: ast.expr) -> set[str]:
    """Return the names in a formula's tree, without the functions that it calls."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called}


def _value(
    node: ast.expr, column: Callable[[str], FloatArray], functions: Mapping[str, Callable[..., Any]], formula: str
) -> Any:
    def of(each: ast.expr) -> Any:
        return _value(each, column, functions, formula)

    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as value):
            return np.float64(value)
        case ast.Name(id=name):
            return column(name)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in UNARY:
            return UNARY[type(op)](of(operand))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](of(left), of(right))
        case ast.BoolOp(op=op, values=several):
            return reduce(LOGIC[type(op)], map(of, several))
        case ast.Compare(left=left, ops=ops, comparators=right) if all(type(op) in OPERATORS for op in ops):
            sides = [of(left), *map(of, right)]
            held = [OPERATORS[type(op)](a, b) for op, a, b in zip(ops, sides[:-1], sides[1:], strict=True)]
            return reduce(np.logical_and, held)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in functions and arguments:
            return functions[name](*map(of, arguments))
    raise ValueError(f"expected a formula of {EXPECTED}, got {ast.unparse(node)!r} in {formula!r}; correct it")
