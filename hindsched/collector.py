"""Importing and compiling while Python's collector of garbage rests.

What modules make stays, and the collector would go through all of it again and again while numba,
Pyomo and CVXPY are loaded, or numba compiles.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Collect no garbage inside, where it is collected at all."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
