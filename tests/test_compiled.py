"""Kernels and their parts: what only kernels call is compiled with them, and runs from Python."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import numpy as np
import pytest
from numba import njit

import hindsched
from hindsched.compiled import compiled, part_of_kernel, sources_of

ROOT = Path(hindsched.__file__).parent
Name = tuple[str, str]


@part_of_kernel()
def reciprocal(values, place=0):
    """One over a value."""
    if values[place] == 0.0:
        raise ValueError("a zero")
    return 1.0 / values[place]


@part_of_kernel(nogil=True)
def harmonic_sum(values):
    total = 0.0
    for place in range(values.size):
        total += reciprocal(values, place)
    return total


@compiled()
def harmonic_mean(values):
    return values.size / harmonic_sum(values) + 0.0 * reciprocal(values)


def test_a_kernel_takes_its_parts_in_and_raises_what_they_raise():
    assert harmonic_mean(np.array([1.0, 2.0, 4.0])) == 3 / 1.75
    with pytest.raises(ValueError, match="a zero"):
        harmonic_mean(np.array([0.0, 1.0]))


def test_no_machine_code_is_made_of_a_part_for_its_callers():
    never_kept = njit(lambda values: harmonic_sum(values))  # of a kept one no part is compiled
    never_kept(np.array([1.0]))
    (code,) = [overload.library for overload in harmonic_sum._part.overloads.values()]
    assert not code._codegen._engine.is_symbol_defined(code.name)
    assert code.get_pointer_to_function(code.name) == 0


def test_a_part_called_from_python_is_a_kernel_like_any_other():
    values = np.array([4.0, 0.0])
    assert reciprocal(values) == reciprocal(values, 0) == reciprocal(values, place=0) == 0.25
    assert harmonic_sum(values[:1]) == 0.25
    with pytest.raises(ValueError, match="a zero"):
        reciprocal(values, 1)
    assert (reciprocal.__name__, reciprocal.__doc__) == ("reciprocal", "One over a value.")


def test_what_only_kernels_call_is_part_of_them_and_nothing_else():
    """A part that Python calls would be compiled twice, a kernel that it does not, for nothing."""
    trees = {_module(path): ast.parse(path.read_text()) for path in ROOT.rglob("*.py")}
    decorated = {
        (module, node.name): " ".join(ast.unparse(item) for item in node.decorator_list)
        for module, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }
    made = {
        name: text
        for name, text in decorated.items()
        if text.startswith(("compiled(", "part_of_kernel("))
    }
    from_python: set[Name] = set()
    from_kernels: set[Name] = set()
    for module, tree in trees.items():
        imported = _imported(tree)
        for node in tree.body:
            own = (module, getattr(node, "name", ""))
            found = from_kernels if own in made else from_python
            found |= {
                name for name in _named(node, module, imported) if name in made and name != own
            }
    parts = {name for name, text in made.items() if text.startswith("part_of_kernel(")}
    assert parts == from_kernels - from_python
    assert len(parts) > 100


def test_parts_need_nothing_that_only_kernels_have():
    """A fresh kernel has no environment for its parts: none prints or raises worked-out values.

    Numba does not see that a part that Python calls calls itself, nor parts that call each other.
    """
    calls: dict[Name, set[Name]] = {}
    for path in ROOT.rglob("*.py"):
        tree, module = ast.parse(path.read_text()), _module(path)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and any(
                ast.unparse(item).startswith("part_of_kernel(") for item in node.decorator_list
            ):
                called = {item for item in ast.walk(node) if isinstance(item, ast.Call)}
                functions = {item.func.id for item in called if isinstance(item.func, ast.Name)}
                assert not functions & {"print", "objmode"}
                assert not any(isinstance(item, ast.Raise | ast.With) for item in ast.walk(node))
                imported = _imported(tree)
                calls[module, node.name] = {
                    imported.get(name, (module, name)) for name in functions
                }
    assert len(list(TopologicalSorter(calls).static_order())) >= len(calls) > 100  # no circle


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)


def _imported(tree: ast.Module) -> dict[str, Name]:
    found: dict[str, Name] = {}
    for item in ast.walk(tree):
        if isinstance(item, ast.ImportFrom) and item.module:
            found |= {name.asname or name.name: (item.module, name.name) for name in item.names}
    return found


def _named(node: ast.stmt, module: str, imported: dict[str, Name]) -> set[Name]:
    """Module and name of all that a statement of a module may mean by its names."""
    found: set[Name] = set()
    for item in ast.walk(node):
        if isinstance(item, ast.Name):
            found.add(imported.get(item.id, (module, item.id)))
        elif isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name):
            package, name = imported.get(item.value.id, ("", item.value.id))
            found.add((f"{package}.{name}", item.attr))
    return found


def test_a_kernel_that_was_kept_is_compiled_anew_when_a_part_in_another_file_changes(tmp_path):
    """Numba looks at the kernel's own file only: a part that was mended stayed as it was."""
    parts, kernel = tmp_path / "parts.py", tmp_path / "kernel.py"
    text = "from hindsched.compiled import part_of_kernel\n\n@part_of_kernel()\ndef part(x):\n"
    kernel.write_text(
        "from hindsched.compiled import compiled\nfrom parts import part\n\n"
        "@compiled()\ndef whole(x):\n    return 2 * part(x)\n\n"
        "print(whole(5), sum(whole.stats.cache_hits.values()))\n"
    )
    seen = []
    for body in ("x + 1", "x + 1", "x + 10", "x + 10"):
        if f"return {body}\n" not in (parts.read_text() if parts.exists() else ""):
            parts.write_text(f"{text}    return {body}\n")
        done = subprocess.run(
            [sys.executable, "-c", "import kernel"], cwd=tmp_path, check=True, text=True,
            capture_output=True, env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        )  # fmt: skip
        seen.append(done.stdout.split())
    assert seen == [["12", "0"], ["12", "1"], ["30", "0"], ["30", "1"]]


def test_a_kernel_is_as_old_as_all_sources_of_its_family():
    names = {Path(name).name for name, _, _ in sources_of(ROOT / "solvers" / "methods" / "gang")}
    assert {"orders.py", "methods.py", "stable_order.py"} <= names
    assert "window_moves.py" not in names
