"""Sorting in kernels is numpy's, and compiles faster."""

import ast
from pathlib import Path

import numpy as np
import pytest
from numba import njit

import hindsched
from hindsched.solvers.kernels.stable_order import RUN, copy_to, stable_order


@pytest.mark.parametrize("size", [0, 1, 2, RUN - 1, RUN, RUN + 1, 5 * RUN, 700])
def test_order_is_numpys_with_ties_infinite_ends_and_what_is_no_number(size):
    draws = np.random.default_rng(size)
    for values in (1, 3, 10_000):
        keys = draws.integers(0, values, size)
        assert stable_order(keys).tolist() == np.argsort(keys, kind="stable").tolist()
        mixed = keys.astype(float)
        mixed[draws.random(size) < 0.1] = np.inf
        mixed[draws.random(size) < 0.1] = np.nan
        assert stable_order(mixed).tolist() == np.argsort(mixed, kind="stable").tolist()


def test_a_copy_stays_within_its_slices():
    @njit
    def shift(target, source):
        copy_to(target[1:3], source[2:4])

    target = np.arange(5)
    shift(target, np.arange(10, 15))
    assert target.tolist() == [0, 12, 13, 3, 4]


def test_kernels_copy_and_sort_by_what_compiles_fast():
    """Numba takes seconds for each of its own sorts, and for an array's assignment to a slice."""
    slow = list[str]()
    for path in Path(hindsched.__path__[0]).rglob("*.py"):
        for kernel in ast.walk(ast.parse(path.read_text())):
            if isinstance(kernel, ast.FunctionDef) and "njit" in "".join(
                map(ast.unparse, kernel.decorator_list)
            ):
                slow += [f"{path.name}: {text}" for text in map(_slow, ast.walk(kernel)) if text]
    assert slow == []


def _slow(node: ast.AST) -> str:
    match node:
        case ast.Call(ast.Attribute(attr="sort" | "argsort")):
            return ast.unparse(node)
        case ast.Assign([ast.Subscript(slice=ast.Slice() | ast.Tuple())], ast.Name()):
            place = node.targets[0].slice
            cells = place.elts if isinstance(place, ast.Tuple) else [place]
            return ast.unparse(node) if any(isinstance(c, ast.Slice) for c in cells) else ""
    return ""
