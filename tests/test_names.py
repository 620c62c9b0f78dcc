"""One name, one thing: what two files define at top level under the same name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import hindsched
from hindsched.kernel import BUILT_IN

PACKAGE = Path(hindsched.__file__).parent
COMMANDS = {"look": {"schema"}}
"""Commands in another file than ``cli/NAME.py``, which has the command of ``hs.NAME``."""
DISPATCHER = "instances/generators/registry.py"
"""Asks the family's function of the same word."""


def homes() -> dict[str, list[str]]:
    """Files by the name of each class and function that they define at top level."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                found[node.name].append(path.relative_to(PACKAGE).as_posix())
    return found


def is_command(name: str, path: str) -> bool:
    stem = Path(path).stem
    return path.startswith("cli/") and (stem == name or name in COMMANDS.get(stem, ()))


def is_protocol(paths: list[str]) -> bool:
    """Whether every file is another family's on the same floor, the skeleton's family included."""
    families = [[f for f in BUILT_IN if f in Path(path).with_suffix("").parts] for path in paths]
    floors = {path.split("/")[0] for path in paths}
    distinct = {family for known in families for family in known}
    return len(floors) == 1 and all(families) and len(distinct) == len(paths)


def test_a_name_has_one_home() -> None:
    shared = {}
    for name, paths in homes().items():
        own = [
            path
            for path in paths
            if not (
                is_command(name, path) or path == DISPATCHER or path.startswith("cli/skeleton/")
            )
        ]
        if len(own) > 1 and not is_protocol(own):
            shared[name] = own
    assert not shared
