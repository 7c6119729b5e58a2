"""Formulas over the columns of a table, as a source's document writes them: `256 * ceil(8 * width / 3 / 256)`."""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from search_spaces.arrays import FloatArray

OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.Gt: operator.gt,
    ast.Lt: operator.lt,
    ast.Eq: operator.eq,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ceil": np.ceil,
    "max": np.maximum,
    "min": np.minimum,
    "where": np.where,
}
EXPECTED = f"numbers, columns, + - * / // ** > < == and {', '.join(FUNCTIONS)}"


def evaluated(formula: str, column: Callable[[str], FloatArray]) -> FloatArray:
    """The formula's value in every row, (n,); `column` gives one by its name.

    Raises:
        ValueError: no formula, or anything else than EXPECTED.
    """
    try:
        tree = ast.parse(formula, mode="eval").body
    except SyntaxError:
        raise ValueError(f"expected a formula of {EXPECTED}, got {formula!r}") from None
    return np.asarray(_value(tree, column, formula), dtype=np.float64)


def names(formulas: Mapping[str, str]) -> set[str]:
    """The columns that formulas read."""
    trees = [ast.parse(formula, mode="eval") for formula in formulas.values()]
    return {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)} - FUNCTIONS.keys()


def _value(node: ast.expr, column: Callable[[str], FloatArray], formula: str) -> Any:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name):
            return column(name)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left, column, formula), _value(right, column, formula))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left, column, formula), _value(right, column, formula))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_value(argument, column, formula) for argument in arguments))
    raise ValueError(f"expected a formula of {EXPECTED}, got {ast.unparse(node)!r} in {formula!r}")
