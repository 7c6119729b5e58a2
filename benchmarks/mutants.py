"""Small faults that can be planted in a Python file: one changed operator, constant, argument, branch or statement each."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
PAIRS = [("min", "max"), ("any", "all"), ("minimum", "maximum"), ("argmin", "argmax"), ("floor", "ceil")]
RENAMED = {**dict(PAIRS), **{second: first for first, second in PAIRS}}


@dataclass(frozen=True)
class Mutant:
    """One fault: where it is, what stood there and what stands there now; `start` and `end` are byte offsets."""

    path: str
    line: int
    operator: str
    before: str
    after: str
    start: int
    end: int

    def source(self, original: bytes) -> bytes:
        """The file with this fault in it."""
        return original[: self.start] + self.after.encode() + original[self.end :]


def mutants_of(root: Path, path: str) -> list[Mutant]:
    """Every fault that can be planted in a file, in order; messages, docstrings and annotations are left alone."""
    content = (root / path).read_bytes()
    offsets = [0]
    for line in content.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    found: dict[tuple[int, int, str], Mutant] = {}
    for node, operator, after in _faults(ast.parse(content)):
        start = offsets[node.lineno - 1] + node.col_offset
        end = offsets[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        before = content[start:end].decode()
        found.setdefault((start, end, after), Mutant(path, node.lineno, operator, before, after, start, end))
    return sorted(found.values(), key=lambda m: (m.start, m.end, m.after))


def _faults(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    """Nodes with the name of the fault and the text that replaces them."""
    for node in _logic(tree):
        if isinstance(node, ast.expr):
            for operator, changed in _expressions(node):
                yield node, operator, f"({ast.unparse(changed)})"
        elif isinstance(node, ast.stmt):
            for operator, statement in _statements(node):
                yield node, operator, statement


def _logic(node: ast.AST) -> Iterator[ast.AST]:
    """What decides something: no annotations, decorators, format strings, raised messages, bare strings."""
    skipped: list[object] = []
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        skipped = [node.returns, *node.decorator_list]
    elif isinstance(node, ast.ClassDef):
        skipped = [*node.decorator_list, *node.bases]
    elif isinstance(node, ast.arg | ast.AnnAssign):
        skipped = [node.annotation]
    for child in ast.iter_child_nodes(node):
        if any(child is each for each in skipped) or isinstance(child, ast.JoinedStr | ast.Import | ast.ImportFrom):
            continue
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        yield child
        if not isinstance(child, ast.Raise):
            yield from _logic(child)


def _expressions(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Compare(ops=[op]):
            for other in COMPARISONS.get(type(op), ()):
                yield "comparison", ast.Compare(node.left, [other()], node.comparators)
        case ast.BinOp(op=op) if type(op) in ARITHMETIC:
            yield "arithmetic", ast.BinOp(node.left, ARITHMETIC[type(op)](), node.right)
        case ast.BoolOp(op=op):
            yield "boolean", ast.BoolOp(ast.And() if isinstance(op, ast.Or) else ast.Or(), node.values)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield "unary", node.operand
        case ast.IfExp():
            yield "branch", ast.IfExp(node.test, node.orelse, node.body)
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield "constant", ast.Constant(value + 1)
        case ast.Call():
            yield from _calls(node)


def _calls(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    match node.func:
        case ast.Name(id=name) if name in RENAMED:
            yield "function", ast.Call(ast.Name(RENAMED[name]), node.args, node.keywords)
        case ast.Attribute(value=value, attr=name) if name in RENAMED:
            yield "function", ast.Call(ast.Attribute(value, RENAMED[name]), node.args, node.keywords)
        case ast.Name(id="TypeVar"):
            return
    symmetric = getattr(node.func, "id", getattr(node.func, "attr", "")) in RENAMED
    if len(node.args) > 1 and not symmetric and not any(isinstance(each, ast.Starred) for each in node.args[:2]):
        yield "swap", ast.Call(node.func, [node.args[1], node.args[0], *node.args[2:]], node.keywords)
    for i, keyword in enumerate(node.keywords):
        if keyword.arg:
            yield "keyword", ast.Call(node.func, node.args, node.keywords[:i] + node.keywords[i + 1 :])


def _statements(node: ast.stmt) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield "return", "return None"
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.Continue() | ast.Break():
            yield "deletion", "pass"
        case ast.AugAssign(op=op) if type(op) in ARITHMETIC:
            yield "arithmetic", ast.unparse(ast.AugAssign(node.target, ARITHMETIC[type(op)](), node.value))


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None
