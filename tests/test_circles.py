"""No file of the package needs another that needs it, not even late or for its types."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import hindsched

PACKAGE = Path(hindsched.__file__).parent


def modules():
    """Files by dotted name."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def needs(path, known):
    """Modules that a file imports anywhere."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in known else node.module for name in inner]
        yield from (name for name in names if name in known)


def test_there_is_no_circle_of_files():
    known = modules()
    graph = {name: set(needs(path, known)) for name, path in known.items()}
    assert sum(map(len, graph.values())) > len(graph)
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle
