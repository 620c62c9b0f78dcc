"""Small changes of a program: one comparison, sign, constant, condition or statement at a time."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult, ast.Mod: ast.FloorDiv, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "True": "False", "False": "True"}
Change = Callable[[ast.AST], None]


def changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """What can be changed of one node: a word for it, and the change itself."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
        new = SWAPPED[type(node.ops[0])]
        yield f"{type(node.ops[0]).__name__} to {new.__name__}", _set_first_operator
    elif isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in SWAPPED:
        new = SWAPPED[type(node.op)]
        yield f"{type(node.op).__name__} to {new.__name__}", _set_operator
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield f"{node.value} to {not node.value}", _negate
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield f"{node.value} to {node.value + 1}", _increase
    elif isinstance(node, ast.Name) and node.id in NAMES and isinstance(node.ctx, ast.Load):
        yield f"{node.id} to {NAMES[node.id]}", _rename
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield "condition negated", _negate_test
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "minus to plus", _plus
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "call left out", _leave_out
    if isinstance(node, ast.AugAssign):
        yield "assignment left out", _nothing_added


def _set_first_operator(node: ast.AST) -> None:
    node.ops[0] = SWAPPED[type(node.ops[0])]()  # type: ignore[attr-defined]


def _set_operator(node: ast.AST) -> None:
    node.op = SWAPPED[type(node.op)]()  # type: ignore[attr-defined]


def _negate(node: ast.AST) -> None:
    node.value = not node.value  # type: ignore[attr-defined]


def _increase(node: ast.AST) -> None:
    node.value += 1  # type: ignore[attr-defined]


def _rename(node: ast.AST) -> None:
    node.id = NAMES[node.id]  # type: ignore[attr-defined]


def _negate_test(node: ast.AST) -> None:
    node.test = ast.UnaryOp(ast.Not(), node.test)  # type: ignore[attr-defined]


def _plus(node: ast.AST) -> None:
    node.op = ast.UAdd()  # type: ignore[attr-defined]


def _leave_out(node: ast.AST) -> None:
    node.value = ast.Constant(None)  # type: ignore[attr-defined]


def _nothing_added(node: ast.AST) -> None:
    node.value = ast.Constant(0)  # type: ignore[attr-defined]


def nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes of what runs: no docstrings, annotations, decorators or type-checking blocks.

    Nor the ``strict`` of a zip, which only guards against a mistake of the code itself, nor how
    many steps of a budget a search is said to take: whether it says so at all is a change.
    """
    if isinstance(tree, ast.keyword) and tree.arg == "strict":
        return
    if isinstance(tree, ast.Call) and ast.unparse(tree.func).split(".")[-1] == "spend":
        return
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            checking = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
            text = isinstance(child, ast.Constant | ast.JoinedStr) and name != "values"
            if isinstance(child, ast.AST) and not checking:
                if not (text and isinstance(tree, ast.Expr)):
                    yield child
                if not isinstance(child, ast.JoinedStr):
                    yield from nodes(child)


def sites(source: str) -> list[tuple[int, int, str]]:
    """Every change that can be made: position of the node, line, and what it is."""
    tree = ast.parse(source)
    return [
        (position, getattr(node, "lineno", 0), word)
        for position, node in enumerate(nodes(tree))
        for word, _ in changes(node)
    ]


def mutant(source: str, position: int, word: str) -> str:
    """The source with one change made."""
    tree = copy.deepcopy(ast.parse(source))
    node = list(nodes(tree))[position]
    dict(changes(node))[word](node)
    return ast.unparse(ast.fix_missing_locations(tree))
