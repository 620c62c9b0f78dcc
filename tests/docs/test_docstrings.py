"""What docstrings name is there: names between single backticks, and source files."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatch
from itertools import pairwise

import hindsched
from tests.scripts import ROOT

FILES = {
    path.relative_to(ROOT).as_posix(): path
    for folder in ("hindsched", "benchmarks", "tests")
    for path in sorted((ROOT / folder).rglob("*.py"))
}
TREES = {
    name: ast.parse(path.read_text(encoding="utf-8"))
    for name, path in FILES.items()
    if name.startswith("hindsched/")
}
NAME = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)`(?!`)")
SOURCE = re.compile(r"`([\w./<>*-]+\.py)`")
PLACEHOLDER = re.compile(r"<\w+>|\b[A-Z]{2,}\b")  # of a family, say


def docstrings() -> Iterator[tuple[str, str]]:
    """Place and text of each of the package's, those of attributes too."""
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                yield f"{path}:{node.lineno}", str(node.value.value)


def is_defined(node: ast.AST) -> bool:
    is_stored = isinstance(getattr(node, "ctx", None), ast.Store)
    return is_stored or isinstance(node, ast.FunctionDef | ast.ClassDef | ast.alias)


def words_of(node: ast.AST) -> set[str]:
    """The name that a node of code defines or uses."""
    text = node.value if isinstance(node, ast.Constant) else None
    named = [getattr(node, field, text) for field in ("name", "id", "arg", "attr")]
    return {word.rpartition(".")[2] for word in named if isinstance(word, str)}


def test_names_in_docstrings_are_names_of_the_code() -> None:
    defined, bases, every = defaultdict[str, set[str]](set), dict[str, list[str]](), set[str]()
    for path, tree in TREES.items():
        parts = path.removesuffix("/__init__.py").removesuffix(".py").split("/")
        owners = [
            (parts[-1], tree),
            *((c.name, c) for c in ast.walk(tree) if isinstance(c, ast.ClassDef)),
        ]
        for name, owner in owners:
            inner = [node for node in ast.walk(owner) if node is not owner]
            defined[name] |= set[str]().union(*map(words_of, filter(is_defined, inner)))
            bases[name] = [
                ast.unparse(base).partition("[")[0] for base in getattr(owner, "bases", ())
            ]
        for outer, inside in pairwise(parts):
            defined[outer].add(inside)
        every |= set[str]().union(*map(words_of, ast.walk(tree)))
    defined["hindsched"] |= set(hindsched.__all__)
    every |= set(defined)

    def has(owner: str, word: str) -> bool:
        inherited = (base.rpartition(".")[2] for base in bases.get(owner, ()))
        return word in defined[owner] or any(has(base, word) for base in inherited)

    wrong = []
    for place, text in docstrings():
        for name in NAME.findall(text):
            first, *rest = name.split(".")
            if rest != ["py"] and not (first in every and all(map(has, [first, *rest], rest))):
                wrong.append(f"{place}: {name}")
    assert not wrong, "\n".join(wrong)


def test_source_files_in_docstrings_are_there() -> None:
    wrong = []
    for place, text in docstrings():
        for path in SOURCE.findall(text):
            pattern = f"*/{PLACEHOLDER.sub('*', path)}"
            if not any(fnmatch(f"/{known}", pattern) for known in FILES):
                wrong.append(f"{place}: {path}")
    assert not wrong, "\n".join(wrong)
