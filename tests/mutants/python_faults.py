"""Small faults in a Python module, such as a programmer makes: another comparison, a line that is missing."""

import ast
import copy
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.fixtures.paths import ROOT
from tests.mutants.campaign import Fault

_PAIRS: tuple[tuple[type[ast.AST], type[ast.AST]], ...] = (
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
    (ast.And, ast.Or),
    (ast.Add, ast.Sub),
    (ast.Mult, ast.Div),
    (ast.BitAnd, ast.BitOr),
)
_OTHER_OPERATOR: dict[type[ast.AST], type[ast.AST]] = {
    ast.FloorDiv: ast.Mult,
    **dict(_PAIRS),
    **{after: before for before, after in _PAIRS},
}
_OPPOSITE = {"min": "max", "max": "min"}
_LOGS = ("_log", "logger")
_LARGE = 10

_Put = Callable[[ast.AST], None]


def faults_of(path: Path) -> Iterator[Fault]:
    """Yield every fault that is put into a module; without annotations, texts and what is only logged."""
    tree = ast.parse(path.read_bytes())
    for node, put in _places(tree):
        for other in _others(node):
            text = functools.partial(_text_with, tree, put, other, node)
            before, after = (ast.unparse(each).partition("\n")[0] for each in (node, other))
            yield Fault(str(path.relative_to(ROOT)), getattr(node, "lineno", 0), before, after, text)


def _text_with(tree: ast.Module, put: _Put, other: ast.AST, node: ast.AST) -> str:
    put(other)
    text = ast.unparse(tree)
    put(node)
    return text


def _places(parent: ast.AST) -> Iterator[tuple[ast.AST, _Put]]:
    """Yield each node where a fault changes what the module does, and the function that puts another in its place."""
    for name, value in ast.iter_fields(parent):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr) and not _is_logged(child):
                put = functools.partial(setattr, parent, name)
                yield child, functools.partial(value.__setitem__, index) if isinstance(value, list) else put
                yield from _places(child)


def _is_logged(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name in _LOGS
    return False


def _others(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in the place of a node by mistake."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _OTHER_OPERATOR:
            yield _changed(node, ops=[_OTHER_OPERATOR[type(operator)]()])
        case ast.BoolOp(op=operator) | ast.BinOp(op=operator) | ast.AugAssign(op=operator) if (
            type(operator) in _OTHER_OPERATOR
        ):
            yield _changed(node, op=_OTHER_OPERATOR[type(operator)]())
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            yield operand
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as value):
            # Of a large number nobody notices one more; what matters is its magnitude.
            yield ast.Constant(value + 1 if value < _LARGE else value * 10)
            yield ast.Constant(value - 1 if value < _LARGE else value // 10)
        case ast.Call(func=ast.Name(id=name)) if name in _OPPOSITE:
            yield _changed(node, func=ast.Name(_OPPOSITE[name]))
        case ast.Call(args=[first, second, *rest]) if not any(isinstance(each, ast.Starred) for each in node.args):
            if ast.dump(first) != ast.dump(second):
                yield _changed(node, args=[second, first, *rest])
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield _changed(node, test=ast.UnaryOp(ast.Not(), test))
    if _is_missed(node):
        yield ast.Pass()


def _is_missed(node: ast.AST) -> bool:
    """Return whether a line does something that is missing without it."""
    match node:
        case ast.Return(value=ast.expr()) | ast.Expr(value=ast.Call()):
            return True
    return isinstance(node, ast.AugAssign | ast.Raise | ast.Continue | ast.Break | ast.Delete)


def _changed(node: ast.AST, **fields: Any) -> ast.AST:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other
